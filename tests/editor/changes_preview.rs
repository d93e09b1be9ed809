//! Pending hunks as they look in their buffers.

use agentchat::changes::{Author, Hunk};
use serde_json::{Value as Json, json};

use crate::changes::{put, write_loaded, write_unloaded};
use crate::support::{Editor, Setup};

/// `line 1` to `line 60`, of which `replace` makes something else.
fn text(replace: impl Fn(usize) -> Vec<String>) -> Vec<String> {
    (1..=60).flat_map(replace).collect()
}

fn line(number: usize) -> String {
    format!("line {number} here")
}

fn plain() -> String {
    text(|number| vec![line(number)]).iter().fold(String::new(), |text, line| text + line + "\n")
}

fn start(init: &str) -> Editor {
    Editor::start(Setup::new().file("a.txt", plain()).arg("a.txt").init(init))
}

#[track_caller]
fn write(editor: &Editor, replace: impl Fn(usize) -> Vec<String>) {
    let new = text(replace);
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    write_loaded(editor, "a.txt", &new, json!({ "chat": 1 }));
}

/// Changes line 10, adds one after it, and deletes 20 and 21.
fn typical(number: usize) -> Vec<String> {
    match number {
        10 => vec!["line 10 there".into(), "added".into()],
        20 | 21 => vec![],
        other => vec![line(other)],
    }
}

fn view(editor: &Editor) -> Json {
    editor.lua("return { vim.fn.line('w0'), vim.fn.line('.'), vim.fn.winline(), vim.fn.col('.') }", json!([]))
}

#[test]
fn old_lines_new_lines_and_changed_words_are_seen() {
    let editor = start("vim.o.number = true");
    write(&editor, typical);
    editor.wait_screen("line 10 there");
    let screen = editor.wait_screen("line 10 here");
    let (old, _) = screen.find("line 10 here").unwrap();
    let (new, column) = screen.find("line 10 there").unwrap();
    assert_eq!(new, old + 1);
    assert!(screen.groups_at(old, column).contains(&"DiffDelete".into()));
    assert!(screen.groups_at(old, column + 8).contains(&"DiffText".into()));
    assert!(screen.groups_at(new, column).contains(&"DiffAdd".into()));
    assert!(!screen.groups_at(new, column).contains(&"DiffText".into()));
    assert!(screen.groups_at(new, column + 8).contains(&"DiffText".into()));
    assert!(screen.groups_at(new, column - 2).contains(&"Added".into()));
    assert_eq!(screen.find("line 9 here").unwrap().1, column, "the text is not shifted");
    editor.command("AgentChat next");
    editor.command("AgentChat accept all");
    editor.wait_until("nothing is drawn any more", |e| !e.screen().contains("line 10 here"));
}

#[test]
fn the_first_hunk_in_view_tells_how_to_decide() {
    let editor = start("");
    write(&editor, typical);
    let screen = editor.wait_screen(":AgentChat accept · :AgentChat reject");
    assert_eq!(screen.find(":AgentChat accept").unwrap().0, screen.find("line 10 there").unwrap().0);
    editor.lua("vim.keymap.set('n', ',a', '<Plug>(agentchat-accept)')", json!([]));
    editor.input("17Gzt");
    let screen = editor.wait_screen(",a accept · :AgentChat reject");
    assert_eq!(screen.find(",a accept").unwrap().0, screen.find("line 22 here").unwrap().0);
}

#[test]
fn where_the_user_looks_nothing_moves() {
    let editor = start("");
    editor.input("30Gzt20jzb5k4l");
    editor.wait_until("the view", |e| view(e)[3] == json!(5));
    let before = view(&editor);
    let around = |number| match number {
        3 => vec![],
        35 => vec!["changed".into()],
        48 => vec!["below the cursor".into()],
        other => vec![line(other)],
    };
    let (top, row) = (before[0].as_u64().unwrap(), before[2].clone());
    write(&editor, around);
    let screen = editor.wait_screen("−1 line");
    // The line that was deleted above the window makes all numbers smaller, nothing else.
    let after = view(&editor);
    assert_eq!((&after[0], &after[2]), (&json!(top - 1), &row), "{before} {after}");
    assert!(screen.contains("line 48 here"), "below the cursor there is room");
    assert!(!screen.contains("line 35 here"));
    editor.command("AgentChat prev");
    editor.wait_screen("line 35 here");
}

#[test]
fn typing_beside_hunks_moves_nothing_either() {
    let editor = start("");
    write(&editor, typical);
    editor.wait_screen("line 20 here");
    editor.input("25GA typed<Esc>");
    let screen = editor.wait_screen("typed");
    assert!(screen.contains("line 20 here") && screen.contains("line 10 here"));
    editor.input("5GOmore<Esc>");
    let screen = editor.wait_screen("more");
    assert_eq!(screen.find("line 10 here").unwrap().0 + 1, screen.find("line 10 there").unwrap().0);
}

#[test]
fn what_is_above_the_first_line_or_in_a_fold_can_be_found() {
    let editor = start("vim.o.foldmethod = 'manual'");
    editor.command("15,25fold | normal! gg");
    write(&editor, |number| match number {
        1 => vec![],
        other => typical(other),
    });
    let screen = editor.wait_screen("−1 line");
    assert_eq!(screen.find("−1 line").unwrap().0, 0);
    let fold = editor.wait_screen("1 change").find("1 change").unwrap().0;
    assert!(screen.row(fold).starts_with("+--"), "{screen}");
    editor.command("AgentChat next 2");
    editor.command("AgentChat prev 2");
    editor.wait_screen("line 1 here");
    editor.command("AgentChat next 2");
    editor.wait_screen("line 20 here");
}

#[test]
fn every_window_shows_the_hunks_and_files_opened_later_do_too() {
    let editor = Editor::start(Setup::new().file("a.txt", plain()).file("b.txt", plain()).arg("b.txt"));
    let new = text(typical);
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    let old = text(|number| vec![line(number)]);
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    write_unloaded(&editor, "a.txt", &old, &new, json!({}));
    editor.command("edit a.txt | vsplit");
    editor.wait_until("the old line in both windows", |e| {
        e.screen().rows().iter().any(|row| row.matches("line 10 here").count() == 2)
    });
}

#[test]
fn a_sign_is_only_where_signs_are_shown() {
    let editor = start("vim.o.signcolumn = 'yes'");
    write(&editor, typical);
    let screen = editor.wait_screen("line 10 there");
    assert_eq!(screen.find("line 9 here").unwrap().1, 2);
    editor.wait_screen("+ line 10 there");
    let editor = start("");
    write(&editor, typical);
    let screen = editor.wait_screen("line 10 there");
    assert_eq!(screen.find("line 10 there").unwrap().1, 0);
}

#[test]
fn nothing_is_drawn_if_the_user_does_not_want_it() {
    let setup = Setup::new().file("a.txt", plain()).arg("a.txt").config("changes", json!({ "preview": false }));
    let editor = Editor::start(setup);
    write(&editor, typical);
    editor.command("AgentChat next");
    let screen = editor.wait_screen("line 10 there");
    assert!(!screen.contains("line 10 here"));
}

#[test]
fn thousands_of_hunks_cost_no_more_than_those_in_view() {
    let is_new = |row: &usize| row % 4 == 1;
    let content = (0..20_000).fold(String::new(), |text, row| {
        text + &if is_new(&row) { format!("line {row} new\n") } else { format!("line {row}\n") }
    });
    let editor = Editor::start(Setup::new().file("a.txt", content).arg("a.txt"));
    let hunk = |row: usize| Hunk {
        id: row as u64,
        first: row,
        authors: vec![Author::Agent],
        old: vec![format!("line {row} old")],
    };
    let hunks: Vec<Hunk> = (0..20_000).filter(is_new).map(hunk).collect();
    put(&editor, &editor.project().join("a.txt"), 0, json!({}), &hunks);
    editor.wait_screen("line 1 old");
    editor.command("normal! G");
    editor.wait_screen("line 19997 old");
    let code = "return #vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('agentchat.diff'), 0, -1, {})";
    assert!(editor.lua(code, json!([])).as_u64().unwrap() < 500);
}

#[test]
fn many_old_lines_leave_room_for_the_new_ones() {
    let editor = start("");
    write(&editor, |number| match number {
        5 => vec!["the new line".into()],
        6..=55 => vec![],
        other => vec![line(other)],
    });
    let screen = editor.wait_screen("… and 31 lines");
    assert!(screen.contains("the new line"));
}

#[test]
fn old_lines_have_the_colours_of_their_language_where_they_can() {
    let old = "local kept = 1\nlocal gone = 'text'\nreturn kept\n";
    for (background, expected) in [("guibg=#402020", "@string.lua"), ("guifg=#ff0000", "AgentChatDiffDelete")] {
        let init = format!(
            "vim.cmd('hi AgentChatDiffDelete {background} | hi link @string.lua Title | hi link @string Title')"
        );
        let setup = Setup::new().file("a.lua", old).arg("a.lua").init(&init);
        let editor = Editor::start(setup);
        editor.lua("vim.o.termguicolors = true; vim.treesitter.start()", json!([]));
        write_loaded(&editor, "a.lua", &["local kept = 1", "return kept"], json!({ "chat": 1 }));
        editor.command("normal! G");
        editor.wait_screen("local gone");
        let code = "
        local ns = vim.api.nvim_create_namespace('agentchat.diff')
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, ns, 0, -1, { details = true })) do
          for _, chunk in ipairs((mark[4].virt_lines or {})[1] or {}) do
            if chunk[1]:find('text', 1, true) then
              return type(chunk[2]) == 'table' and chunk[2] or { chunk[2] }
            end
          end
        end";
        let groups = editor.lua(code, json!([]));
        let groups: Vec<&str> = groups.as_array().unwrap().iter().filter_map(Json::as_str).collect();
        assert_eq!(groups.first(), Some(&"AgentChatDiffDelete"));
        assert_eq!(groups.last(), Some(&expected), "with {background}");
    }
}
