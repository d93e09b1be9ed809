//! Pending changes of an agent: deciding about them hunk by hunk, file by file, by keys, in macros and with undo.

#![allow(clippy::needless_pass_by_value, reason = "tests read better with json!(…) than with &json!(…)")]

use std::path::Path;

use agentchat::changes::{Author, Hunk, Table, changes};
use serde_json::{Value as Json, json};

use crate::files::{is_modified, lines_of, on_disk};
use crate::support::{Editor, Setup};

fn to_json(hunks: &[Hunk]) -> Json {
    let hunk = |hunk: &Hunk| {
        let flags: String = hunk.authors.iter().map(|author| author.letter()).collect();
        json!({ "id": hunk.id, "first": hunk.first, "flags": flags, "old": hunk.old })
    };
    hunks.iter().map(hunk).collect()
}

fn number(value: &Json) -> usize {
    value.as_u64().and_then(|number| number.try_into().ok()).unwrap_or_else(|| panic!("a number: {value}"))
}

fn strings(value: &Json) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// The table of a file as Lua has it, its version, and its facts.
#[track_caller]
pub(crate) fn table_of(editor: &Editor, path: &Path) -> (Vec<Hunk>, u64, Json) {
    let got = editor.lua("return require('agentchat.changes').get(..., 0, 1e9)", json!([path]));
    assert_eq!(got["done"], json!(true));
    let hunk = |hunk: &Json| Hunk {
        id: hunk["id"].as_u64().unwrap(),
        first: number(&hunk["first"]),
        authors: hunk["flags"].as_str().unwrap().chars().map(|letter| Author::from_letter(letter).unwrap()).collect(),
        old: strings(&hunk["old"]),
    };
    let hunks = got["hunks"].as_array().into_iter().flatten().map(hunk).collect();
    (hunks, got["version"].as_u64().unwrap(), got["facts"].clone())
}

/// What the helper does when the agent writes a loaded file: the edits and the new table in one call, saved.
#[track_caller]
pub(crate) fn write_loaded(editor: &Editor, name: &str, new: &[&str], facts: Json) {
    let path = editor.project().join(name);
    let mut now = lines_of(editor, name);
    if now == [""] && on_disk(editor, name).is_empty() {
        now.clear();
    }
    let before = Table::new(table_of(editor, &path).0, now.len()).unwrap();
    let after = before.written(&now, new);
    let mut edits: Vec<Json> = Vec::new();
    for change in changes(&now, new).into_iter().rev() {
        let lines = &new[change.new.clone()];
        edits.push(if change.old.end < now.len() {
            let lines: Vec<&str> = lines.iter().copied().chain([""]).collect();
            json!([change.old.start, 0, change.old.end, 0, lines])
        } else if change.old.start > 0 {
            let lines: Vec<&str> = [""].into_iter().chain(lines.iter().copied()).collect();
            let last = now.len() - 1;
            json!([change.old.start - 1, now[change.old.start - 1].len(), last, now[last].len(), lines])
        } else {
            json!([
                0,
                0,
                now.len().saturating_sub(1),
                now.last().map_or(0, String::len),
                if lines.is_empty() { &[""] } else { lines }
            ])
        });
    }
    let code = r"
    local name, edits, changes = ...
    local buf = vim.fn.bufnr(name)
    local tick = vim.api.nvim_buf_get_changedtick(buf)
    return require('agentchat.files').file_edit(buf, tick, edits, { save = true, changes = changes })
    ";
    let table = json!({ "path": path, "facts": facts, "hunks": to_json(after.hunks()), "more": false });
    let answer = editor.lua(code, json!([name, edits, table]));
    assert_eq!(answer["ok"], json!(true), "{answer}");
}

/// The same for a file that is not loaded.
#[track_caller]
pub(crate) fn write_unloaded(editor: &Editor, name: &str, old: &[&str], new: &[&str], facts: Json) {
    let path = editor.project().join(name);
    std::fs::write(&path, new.iter().fold(String::new(), |text, line| text + line + "\n")).unwrap();
    let (_, version, _) = table_of(editor, &path);
    let after = Table::default().written(old, new);
    put(editor, &path, version, facts, after.hunks());
}

/// Hands a table over for a file whose text stays as it is.
#[track_caller]
pub(crate) fn put(editor: &Editor, path: &Path, version: u64, facts: Json, hunks: &[Hunk]) {
    let code = "return require('agentchat.changes').put(...)";
    let answer = editor.lua(code, json!([path, version, facts, to_json(hunks), false]));
    assert_eq!(answer["ok"], json!(true), "{answer}");
}

/// An editor in which the agent changed lines 2, 5 and 8 of `a.txt`.
fn three_hunks() -> Editor {
    let setup = Setup::new().file("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n").arg("a.txt");
    let editor = Editor::start(setup);
    write_loaded(&editor, "a.txt", &["1", "two", "3", "4", "five", "and", "6", "7", "9"], json!({ "chat": 1 }));
    editor
}

#[track_caller]
fn pending(editor: &Editor, name: &str) -> usize {
    table_of(editor, &editor.project().join(name)).0.len()
}

#[track_caller]
fn cursor_row(editor: &Editor) -> usize {
    number(&editor.lua("return vim.fn.line('.')", json!([])))
}

#[test]
fn next_and_prev_go_through_the_hunks_with_a_count_and_around() {
    let editor = three_hunks();
    let rows = [("next", 2), ("next", 5), ("next", 9), ("next", 2), ("prev", 9), ("prev 2", 2), ("next 2", 9)];
    for (command, row) in rows {
        editor.command(&format!("AgentChat {command}"));
        assert_eq!(cursor_row(&editor), row, "after {command}");
    }
    editor.lua("vim.keymap.set('n', ']h', '<Plug>(agentchat-next)')", json!([]));
    editor.input("gg2]h");
    editor.wait_until("the second hunk", |e| cursor_row(e) == 5);
}

#[test]
fn next_goes_to_files_that_are_not_loaded() {
    let setup = Setup::new().file("a.txt", "a\nb\n").file("b.txt", "1\n2\n").file("c.txt", "x\n").arg("c.txt");
    let editor = Editor::start(setup);
    write_unloaded(&editor, "a.txt", &["a", "b"], &["a", "B"], json!({}));
    write_unloaded(&editor, "b.txt", &["1", "2"], &["0", "1", "2"], json!({}));
    let current = |e: &Editor| e.lua("return vim.fn.expand('%:t')", json!([])).as_str().unwrap().to_owned();
    for (expected, row) in [("a.txt", 2), ("b.txt", 1), ("a.txt", 2)] {
        editor.command("AgentChat next");
        assert_eq!((current(&editor).as_str(), cursor_row(&editor)), (expected, row));
    }
    editor.command("AgentChat accept");
    editor.command("AgentChat next");
    assert_eq!(current(&editor), "b.txt");
}

#[test]
fn one_of_three_hunks_is_accepted_and_the_others_rejected() {
    let editor = three_hunks();
    editor.command("AgentChat next 2");
    editor.command("AgentChat accept");
    assert_eq!(pending(&editor, "a.txt"), 2);
    editor.command("AgentChat reject all");
    assert_eq!(pending(&editor, "a.txt"), 0);
    assert_eq!(on_disk(&editor, "a.txt"), "1\n2\n3\n4\nfive\nand\n6\n7\n8\n9\n");
    assert!(!is_modified(&editor, "a.txt"));
}

#[test]
fn a_rejection_is_one_undo_step_that_makes_the_hunks_pending_again() {
    let editor = three_hunks();
    let changed = lines_of(&editor, "a.txt");
    let path = editor.project().join("a.txt");
    let before = table_of(&editor, &path).0;
    editor.command("AgentChat reject file");
    assert_eq!(on_disk(&editor, "a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    editor.input("u");
    editor.wait_until("the agent's text", |e| lines_of(e, "a.txt") == changed);
    assert_eq!(table_of(&editor, &path).0, before);
    editor.input("<C-r>");
    editor.wait_until("nothing pending", |e| pending(e, "a.txt") == 0);
    editor.input("uu");
    editor.wait_until("the text before the agent", |e| lines_of(e, "a.txt").len() == 9);
    assert_eq!(pending(&editor, "a.txt"), 0);
    editor.input("<C-r>");
    editor.wait_until("the agent's text again", |e| lines_of(e, "a.txt") == changed);
    assert_eq!(table_of(&editor, &path).0, before);
}

#[test]
fn unsaved_text_of_the_user_stays_unsaved_and_is_not_rejected() {
    let editor = three_hunks();
    editor.input("5Goinside<Esc>ggOabove<Esc>");
    editor.wait_until("the lines", |e| lines_of(e, "a.txt").len() == 11);
    let saved = on_disk(&editor, "a.txt");
    editor.command("AgentChat reject all");
    let expected = ["above", "1", "2", "3", "4", "5", "inside", "6", "7", "8", "9"];
    assert_eq!(lines_of(&editor, "a.txt"), expected);
    assert_eq!(on_disk(&editor, "a.txt"), saved);
    assert!(is_modified(&editor, "a.txt"));
}

#[test]
fn accepted_hunks_do_not_come_back_when_something_older_is_undone() {
    let editor = three_hunks();
    editor.input("GAtail<Esc>");
    editor.wait_screen("9tail");
    editor.command("AgentChat accept all");
    editor.input("u");
    editor.wait_until("the line without its tail", |e| lines_of(e, "a.txt").last().unwrap() == "9");
    assert_eq!(pending(&editor, "a.txt"), 0);
}

#[test]
fn keys_decide_in_a_macro_with_a_count_and_by_a_dot() {
    let maps = "
    vim.keymap.set('n', ']h', '<Plug>(agentchat-next)')
    vim.keymap.set('n', ',a', '<Plug>(agentchat-accept)')
    vim.keymap.set('n', ',r', '<Plug>(agentchat-reject)')";
    let editor = three_hunks();
    editor.lua(maps, json!([]));
    editor.input("gg]h,r]h.");
    editor.wait_until("two hunks gone", |e| pending(e, "a.txt") == 1);
    assert_eq!(lines_of(&editor, "a.txt"), ["1", "2", "3", "4", "5", "6", "7", "9"]);

    let editor = three_hunks();
    editor.lua(maps, json!([]));
    editor.input("ggqq]h,rq@q");
    editor.wait_until("two hunks gone", |e| pending(e, "a.txt") == 1);
    assert_eq!(lines_of(&editor, "a.txt"), ["1", "2", "3", "4", "5", "6", "7", "9"]);
    // A rejection undone within one macro is pending again, and so is the undone edit of the user redone.
    editor.input("qw]h,ruq");
    editor.wait_until("the last one pending again", |e| pending(e, "a.txt") == 1 && lines_of(e, "a.txt").len() == 8);

    let editor = three_hunks();
    editor.lua(maps, json!([]));
    editor.input("gg]h2,a");
    editor.wait_until("two accepted", |e| pending(e, "a.txt") == 1);
    assert_eq!(lines_of(&editor, "a.txt")[1], "two");
}

#[test]
fn a_key_on_an_empty_line_decides_too() {
    let editor = Editor::start(Setup::new().file("a.txt", "1\n2\n").arg("a.txt"));
    write_loaded(&editor, "a.txt", &["1", "", "2"], json!({}));
    editor.lua("vim.keymap.set('n', ',r', '<Plug>(agentchat-reject)')", json!([]));
    editor.input("2G,r");
    editor.wait_until("it is gone", |e| lines_of(e, "a.txt") == ["1", "2"]);
}

#[test]
fn bytes_come_back_whatever_the_format_of_the_file() {
    let cases: [(&str, &[u8], &[&str]); 4] = [
        ("dos.txt", b"one\r\ntwo\r\nthree\r\n", &["one", "TWO", "three"]),
        ("open.txt", b"one\ntwo", &["one", "two", "three"]),
        ("bom.txt", b"\xef\xbb\xbfone\ntwo\n", &["ONE", "two"]),
        ("latin.txt", b"caf\xe9\ntwo\n", &["caf\u{e9}", "deux"]),
    ];
    for (name, bytes, new) in cases {
        let editor = Editor::start(Setup::new().file(name, bytes).arg(name));
        let ends = bytes.ends_with(b"\n");
        let facts = if ends { json!({}) } else { json!({ "eol_old": false }) };
        write_loaded(&editor, name, new, facts);
        if !ends {
            editor.command("set eol | write");
        }
        assert_ne!(editor.file(name).unwrap(), bytes, "{name}");
        editor.command("AgentChat reject all");
        assert_eq!(editor.file(name).unwrap(), bytes, "{name}");
        editor.input("u");
        editor.wait_until("pending again", |e| pending(e, name) > 0);
    }
}

#[test]
fn a_new_file_that_is_rejected_is_deleted_and_a_deleted_one_comes_back() {
    let editor = Editor::start(Setup::new().file("gone.txt", "x\n"));
    write_unloaded(&editor, "new.txt", &[], &["a", "b"], json!({ "created": true }));
    let path = editor.project().join("gone.txt");
    std::fs::remove_file(&path).unwrap();
    let old = vec!["one\r".to_owned(), "n\nl".to_owned()];
    put(&editor, &path, 0, json!({ "deleted": true }), &[Hunk { id: 1, first: 0, authors: vec![], old }]);
    editor.command("AgentChat reject all");
    assert_eq!(editor.file("new.txt"), None);
    assert_eq!(editor.file("gone.txt").unwrap(), b"one\r\nn\0l\n");
    assert_eq!(editor.status()["changes"], json!(0));
}

#[test]
fn a_new_file_with_lines_of_the_user_is_kept() {
    let editor = Editor::start(Setup::new().file("new.txt", "").arg("new.txt"));
    write_loaded(&editor, "new.txt", &["a", "b"], json!({ "created": true }));
    editor.input("ggomine<Esc>:w<CR>");
    editor.wait_until("it is saved", |e| on_disk(e, "new.txt").contains("mine"));
    editor.command("AgentChat reject all");
    assert_eq!(on_disk(&editor, "new.txt"), "mine\n");
}

#[test]
fn a_renamed_file_gets_its_name_back() {
    let editor = Editor::start(Setup::new().file("new.txt", "1\n2\n"));
    let from = editor.project().join("old.txt");
    write_unloaded(&editor, "new.txt", &["1", "2"], &["1", "two"], json!({ "renamed_from": from }));
    editor.command("AgentChat review");
    editor.wait_screen("renamed from old.txt");
    editor.command("AgentChat reject all");
    assert_eq!((editor.file("new.txt"), on_disk(&editor, "old.txt").as_str()), (None, "1\n2\n"));
}

#[test]
fn review_lists_every_hunk_and_shows_a_file_beside_what_it_was() {
    let editor = three_hunks();
    editor.command("AgentChat review");
    let code = "return vim.tbl_map(function(item) return { item.lnum, item.text } end, vim.fn.getqflist())";
    let expected = json!([[2, "+1 −1  two"], [5, "+2 −1  five"], [9, "−1  8"]]);
    assert_eq!(editor.lua(code, json!([])), expected);
    assert_eq!(editor.lua("return vim.bo.buftype", json!([])), json!("quickfix"));
    editor.input("<CR>");
    editor.command("cclose");
    editor.command("AgentChat review diff");
    let code = "
    local wins = vim.api.nvim_tabpage_list_wins(0)
    return vim.tbl_map(function(win)
      return { vim.wo[win].diff, #vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, true) }
    end, wins)";
    assert_eq!(editor.lua(code, json!([])), json!([[true, 9], [true, 9]]));
    let old_lines = "
    local ns, count = vim.api.nvim_create_namespace('agentchat.diff'), 0
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(vim.fn.bufnr('a.txt'), ns, 0, -1, { details = true })) do
      count = count + #(mark[4].virt_lines or {})
    end
    return count";
    editor.wait_until("rows beside rows", |e| e.lua(old_lines, json!([])) == json!(0));
    editor.input(":q<CR>");
    editor.wait_until("the tab page is closed", |e| {
        e.lua("return #vim.api.nvim_list_tabpages() == 1 and not vim.wo.diff", json!([])) == json!(true)
    });
    editor.wait_until("the old lines again", |e| e.lua(old_lines, json!([])) == json!(3));
}

#[test]
fn a_table_follows_a_file_that_is_read_again_closed_and_opened() {
    let editor = three_hunks();
    let before = table_of(&editor, &editor.project().join("a.txt")).0;
    editor.input("ggOunsaved<Esc>");
    editor.wait_screen("unsaved");
    editor.command("edit!");
    let path = editor.project().join("a.txt");
    editor.wait_until("the rows from before", |e| table_of(e, &path).0 == before);
    editor.command("enew | bwipeout a.txt");
    assert_eq!(table_of(&editor, &path).0, before);
    editor.command("edit a.txt");
    editor.input("ggdd:enew! | bwipeout! a.txt<CR>");
    editor.wait_until("what was not saved is forgotten", |e| table_of(e, &path).0 == before);
    editor.command("edit a.txt");
    editor.input("ggOagain<Esc>");
    editor.wait_until("the rows moved", |e| table_of(e, &path).0[0].first == before[0].first + 1);
}

#[test]
fn a_table_that_comes_in_pieces_follows_what_is_typed_meanwhile() {
    let editor = Editor::start(Setup::new().file("a.txt", "1\n2\n3\n4\n5\n6\n").arg("a.txt"));
    let path = editor.project().join("a.txt");
    let hunk = |id, first| Hunk { id, first, authors: vec![Author::Agent], old: vec!["old".into()] };
    let code = "return require('agentchat.changes').put(...)";
    editor.lua(code, json!([path, 0, {}, to_json(&[hunk(1, 1)]), true]));
    editor.input("ggOtyped<Esc>");
    editor.wait_screen("typed");
    editor.command("AgentChat accept file");
    assert!(editor.messages().contains("still arriving"), "{}", editor.messages());
    let code = "return require('agentchat.changes').put_more(...)";
    assert_eq!(editor.lua(code, json!([path, to_json(&[hunk(2, 3)]), false]))["ok"], json!(true));
    assert_eq!(table_of(&editor, &path).0, [hunk(1, 2), hunk(2, 4)]);
    assert_eq!(editor.lua(code, json!([path, to_json(&[hunk(3, 5)]), false]))["stale"], json!(true));
    let code = "return require('agentchat.changes').put(...)";
    assert_eq!(editor.lua(code, json!([path, 0, {}, [], false]))["stale"], json!(true));
}

#[test]
fn what_the_rules_of_auto_accept_name_is_never_pending() {
    let rules = json!({ "auto_accept": [{ "path": "*.lock" }, { "kind": "create", "path": "docs/**" }] });
    let setup =
        Setup::new().file("a.lock", "1\n").file("docs/x.md", "1\n").file("b.txt", "1\n").config("changes", rules);
    let editor = Editor::start(setup);
    write_unloaded(&editor, "a.lock", &["1"], &["2"], json!({}));
    write_unloaded(&editor, "docs/x.md", &["1"], &["2"], json!({}));
    write_unloaded(&editor, "docs/y.md", &[], &["2"], json!({ "created": true }));
    write_unloaded(&editor, "b.txt", &["1"], &["2"], json!({}));
    let counts = ["a.lock", "docs/x.md", "docs/y.md", "b.txt"].map(|name| pending(&editor, name));
    assert_eq!(counts, [0, 1, 0, 1]);
    assert_eq!(editor.status()["changes"], json!(2));
}

#[test]
fn every_change_of_a_table_is_told() {
    let editor = three_hunks();
    let path = editor.project().join("a.txt");
    let told = |count: usize| json!({ "path": path, "pending": count });
    editor.wait_until("the new hunks are told", |e| e.events("AgentChatChanges").last() == Some(&told(3)));
    editor.command("AgentChat next");
    editor.command("AgentChat reject");
    editor.wait_until("the rejection is told", |e| e.events("AgentChatChanges").last() == Some(&told(2)));
    editor.input("u");
    editor.wait_until("its undoing is told", |e| e.events("AgentChatChanges").last() == Some(&told(3)));
}

#[test]
fn a_buffer_that_may_not_be_edited_is_left_alone() {
    let editor = three_hunks();
    let before = lines_of(&editor, "a.txt");
    editor.command("set nomodifiable");
    editor.command("AgentChat reject all");
    assert!(editor.messages().contains("nothing was rejected"), "{}", editor.messages());
    assert_eq!(lines_of(&editor, "a.txt"), before);
    assert_eq!(pending(&editor, "a.txt"), 3);
}
