//! Writes into open buffers: the user keeps their text, their place and their mode.

use serde_json::json;

use crate::files::{WRITE, at_work, at_work_with, content, is_modified, lines_of, on_disk, refusal, written};
use crate::support::scenario::{gate, read_file, write_file};
use crate::support::{Editor, Setup};

#[test]
fn an_open_buffer_is_edited_as_little_as_possible_in_one_undo_step_and_saved() {
    let old = (1..=40).fold(String::new(), |text, number| text + &format!("line {number}\n"));
    let new = old.replace("line 3\n", "line three\n").replace("line 5\n", "line 5\nadded\n").replace("line 30\n", "");
    let (agent, editor) = at_work(&old, [gate("placed"), write_file("a.txt", &new)]);
    let code = r#"
    vim.cmd("20mark a")
    _G.namespace = vim.api.nvim_create_namespace("test")
    _G.extmark = vim.api.nvim_buf_set_extmark(0, _G.namespace, 24, 2, {})
    vim.api.nvim_win_set_cursor(0, { 25, 3 })
    vim.cmd("normal! zt")
    _G.jumps = #vim.fn.getjumplist()[1]
    _G.writes = 0
    vim.api.nvim_create_autocmd("BufWritePost", { callback = function() _G.writes = _G.writes + 1 end })
    "#;
    editor.lua(code, json!([]));
    agent.open_gate("placed");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), new);
    assert!(!is_modified(&editor, "a.txt"));
    let code = r#"
    return {
      mark = vim.fn.line("'a"),
      extmark = vim.api.nvim_buf_get_extmark_by_id(0, _G.namespace, _G.extmark, {}),
      cursor = vim.api.nvim_win_get_cursor(0),
      top = vim.fn.line("w0"),
      jumps = #vim.fn.getjumplist()[1] - _G.jumps,
      writes = _G.writes,
    }
    "#;
    let expected = json!({ "mark": 21, "extmark": [25, 2], "cursor": [26, 3], "top": 26, "jumps": 0, "writes": 1 });
    assert_eq!(editor.lua(code, json!([])), expected);
    editor.input("u");
    let old_lines: Vec<&str> = old.lines().collect();
    editor.wait_until("the old text after one undo", |e| lines_of(e, "a.txt") == old_lines);
    assert_eq!(editor.screen().mode(), "normal");
}

#[test]
fn an_undo_step_holds_nothing_of_the_user() {
    let (agent, editor) =
        at_work("one\n", [gate("typed"), read_file("a.txt"), write_file("a.txt", "one user\nagent\n"), gate("again")]);
    editor.input("A user<Esc>");
    editor.wait_screen("one user");
    agent.open_gate("typed");
    written(&agent, 1);
    editor.input("Goafter<Esc>");
    editor.wait_until("the user's line", |e| lines_of(e, "a.txt") == ["one user", "agent", "after"]);
    for expected in [&["one user", "agent"][..], &["one user"], &["one"]] {
        editor.input("u");
        editor.wait_until(&format!("{expected:?}"), |e| lines_of(e, "a.txt") == expected);
    }
}

#[test]
fn a_write_waits_while_the_user_inserts_in_that_buffer() {
    let steps =
        [gate("inserting"), write_file("a.txt", "ONE\ntwo\n").without_waiting(), read_file("b.txt"), gate("end")];
    let (agent, editor) = at_work_with(Setup::new().file("a.txt", "one\ntwo\n").file("b.txt", "b").arg("a.txt"), steps);
    editor.input("i");
    editor.wait_until("insert mode", |e| e.screen().mode() == "insert");
    agent.open_gate("inserting");
    assert_eq!(content(&agent, 1), "b");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two"]);
    assert!(agent.answers(WRITE).is_empty());
    editor.input("<Esc>");
    written(&agent, 1);
    assert_eq!(lines_of(&editor, "a.txt"), ["ONE", "two"]);
    assert_eq!(on_disk(&editor, "a.txt"), "ONE\ntwo\n");
}

/// The agent writes the buffer that the user is in, while they are where `keys` lead; it is written after `leave`.
#[track_caller]
fn written_only_after(keys: &str, is_there: impl Fn(&Editor) -> bool, leave: &str) {
    let steps =
        [gate("there"), write_file("a.txt", "ONE\ntwo\nthree\n").without_waiting(), read_file("b.txt"), gate("end")];
    let setup = Setup::new().file("a.txt", "one\ntwo\nthree\n").file("b.txt", "b").arg("a.txt");
    let (agent, editor) = at_work_with(setup, steps);
    editor.input(keys);
    editor.wait_until("the user there", is_there);
    agent.open_gate("there");
    agent.wait("the write", |log| {
        log.iter().any(|entry| entry.what() == "asked" && entry.method() == WRITE).then_some(())
    });
    if !editor.is_blocked() {
        assert_eq!(content(&agent, 1), "b");
        assert_eq!(lines_of(&editor, "a.txt"), ["one", "two", "three"]);
    }
    assert!(agent.answers(WRITE).is_empty());
    editor.input(leave);
    written(&agent, 1);
    assert_eq!(lines_of(&editor, "a.txt"), ["ONE", "two", "three"]);
    assert_eq!(on_disk(&editor, "a.txt"), "ONE\ntwo\nthree\n");
}

fn in_mode(mode: &'static str) -> impl Fn(&Editor) -> bool {
    move |editor| editor.lua("return vim.api.nvim_get_mode().mode", json!([])) == json!(mode)
}

#[test]
fn a_write_waits_for_the_end_of_a_selection() {
    written_only_after("ggVj", in_mode("V"), "<Esc>");
}

#[test]
fn a_write_waits_for_the_end_of_a_recording() {
    let recording = |editor: &Editor| editor.lua("return vim.fn.reg_recording()", json!([])) == json!("q");
    written_only_after("qqj", recording, "q");
}

#[test]
fn a_write_waits_for_the_end_of_a_command() {
    written_only_after("gg\"", Editor::is_blocked, "<Esc>");
    written_only_after("ggf", Editor::is_blocked, "<Esc>");
}

#[test]
fn a_write_waits_for_the_end_of_the_command_line() {
    written_only_after(":2", in_mode("c"), "<Esc>");
}

#[test]
fn a_write_waits_for_the_end_of_a_substitution() {
    let asked = |editor: &Editor| editor.screen().contains("replace with 0");
    written_only_after(":%s/e/0/gc<CR>", asked, "<Esc>");
}

#[test]
fn what_the_user_types_meanwhile_is_not_written_over() {
    let steps = [
        read_file("a.txt"),
        gate("inserting"),
        write_file("a.txt", "ONE\ntwo\n").without_waiting(),
        read_file("b.txt"),
        gate("end"),
    ];
    let (agent, editor) = at_work_with(Setup::new().file("a.txt", "one\ntwo\n").file("b.txt", "b").arg("a.txt"), steps);
    assert_eq!(content(&agent, 1), "one\ntwo\n");
    editor.input("A typed");
    editor.wait_screen("one typed");
    agent.open_gate("inserting");
    assert_eq!(content(&agent, 2), "b");
    editor.input(" more<Esc>");
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("Read it again"), "{message}");
    editor.wait_until("the user's text", |e| lines_of(e, "a.txt") == ["one typed more", "two"]);
    assert_eq!(on_disk(&editor, "a.txt"), "one\ntwo\n");
}

#[test]
fn unsaved_changes_that_the_agent_has_not_seen_are_not_written_over() {
    let steps = [
        gate("typed"),
        write_file("a.txt", "agent\n"),
        read_file("a.txt"),
        write_file("a.txt", "unsaved\none\nagent\n"),
    ];
    let (agent, editor) = at_work("one\n", steps);
    editor.input("Ounsaved<Esc>");
    editor.wait_screen("unsaved");
    agent.open_gate("typed");
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("Read it again"), "{message}");
    assert_eq!(content(&agent, 1), "unsaved\none\n");
    written(&agent, 2);
    assert_eq!(lines_of(&editor, "a.txt"), ["unsaved", "one", "agent"]);
}

#[test]
fn two_writes_in_a_row_both_apply() {
    let (agent, editor) = at_work(
        "one\n",
        [read_file("a.txt"), write_file("a.txt", "one\ntwo\n"), write_file("a.txt", "one\ntwo\nthree\n")],
    );
    written(&agent, 1);
    written(&agent, 2);
    assert_eq!(on_disk(&editor, "a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_formatter_on_save_does_not_make_the_next_write_fail() {
    let init = r#"
    vim.api.nvim_create_autocmd("BufWritePre", { pattern = "a.txt", callback = function()
      vim.cmd([[keepjumps %s/^\s*/  /]])
    end })
    "#;
    let setup = Setup::new().file("a.txt", "one\n").arg("a.txt").init(init);
    let steps = [
        read_file("a.txt"),
        write_file("a.txt", "one\ntwo\n"),
        write_file("a.txt", "one\ntwo\nthree\n"),
        read_file("a.txt"),
    ];
    let (agent, editor) = at_work_with(setup, steps);
    written(&agent, 1);
    written(&agent, 2);
    assert_eq!(content(&agent, 2), "  one\n  two\n  three\n");
    assert_eq!(on_disk(&editor, "a.txt"), "  one\n  two\n  three\n");
    assert!(!is_modified(&editor, "a.txt"));
}

#[test]
fn what_the_user_types_right_after_a_save_is_not_written_over() {
    // As a key would that was pressed during the save: after it, and before anything else that is asked of Neovim.
    let init = r#"
    vim.api.nvim_create_autocmd("BufWritePost", { pattern = "a.txt", once = true, callback = function(event)
      vim.schedule(function() vim.api.nvim_buf_set_lines(event.buf, -1, -1, true, { "typed" }) end)
    end })
    "#;
    let setup = Setup::new().file("a.txt", "one\n").arg("a.txt").init(init);
    let steps = [read_file("a.txt"), write_file("a.txt", "two\n"), gate("typed"), write_file("a.txt", "three\n")];
    let (agent, editor) = at_work_with(setup, steps);
    written(&agent, 1);
    editor.wait_until("the user's line", |e| lines_of(e, "a.txt") == ["two", "typed"]);
    agent.open_gate("typed");
    let (_, message) = refusal(&agent, WRITE, 2);
    assert!(message.contains("Read it again"), "{message}");
    assert_eq!(lines_of(&editor, "a.txt"), ["two", "typed"]);
    assert_eq!(on_disk(&editor, "a.txt"), "two\n");
}

#[test]
fn a_save_that_takes_long_is_answered_with_what_became_of_it() {
    // Longer than an agent is kept waiting for Neovim otherwise.
    let init = r#"
    vim.api.nvim_create_autocmd("BufWritePre", { pattern = "a.txt", callback = function() vim.uv.sleep(10500) end })
    "#;
    let setup = Setup::new().file("a.txt", "one\n").arg("a.txt").init(init);
    let (agent, editor) = at_work_with(setup, [write_file("a.txt", "two\n")]);
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "two\n");
}

#[test]
fn identical_text_changes_nothing() {
    let (agent, editor) = at_work("one\ntwo\n", [gate("look"), write_file("a.txt", "one\ntwo\n")]);
    let undo = |e: &Editor| e.lua("return vim.fn.undotree(vim.fn.bufnr('a.txt')).seq_last", json!([]));
    let before = undo(&editor);
    agent.open_gate("look");
    written(&agent, 1);
    assert_eq!(undo(&editor), before);
    assert!(!is_modified(&editor, "a.txt"));
}

#[test]
fn a_buffer_that_cannot_be_written_says_why() {
    let (agent, editor) = at_work("one\n", [gate("set"), write_file("a.txt", "two\n")]);
    editor.command("set nomodifiable");
    agent.open_gate("set");
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("not modifiable"), "{message}");
    assert_eq!(on_disk(&editor, "a.txt"), "one\n");
}

#[test]
fn a_failing_save_is_told_and_can_be_mended() {
    let init = r#"
    vim.api.nvim_create_autocmd("BufWriteCmd", { pattern = "a.txt", callback = function() error("no space left") end })
    "#;
    let setup = Setup::new().file("a.txt", "one\n").arg("a.txt").init(init);
    let (agent, editor) = at_work_with(setup, [write_file("a.txt", "two\n")]);
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("no space left"), "{message}");
    assert_eq!(on_disk(&editor, "a.txt"), "one\n");
    assert!(is_modified(&editor, "a.txt"));
    editor.input("u");
    editor.wait_until("the old text", |e| lines_of(e, "a.txt") == ["one"]);
}

#[test]
fn another_window_on_the_buffer_keeps_its_place() {
    let old = (1..=60).fold(String::new(), |text, number| text + &format!("line {number}\n"));
    let new = old.replace("line 2\n", "line 2\nadded\nadded\n");
    let (agent, editor) = at_work(&old, [gate("placed"), write_file("a.txt", &new)]);
    let code = "vim.cmd('split') vim.cmd('normal! 50Gzt') vim.cmd('wincmd p') vim.cmd('normal! 40Gzt')";
    editor.lua(code, json!([]));
    agent.open_gate("placed");
    written(&agent, 1);
    let code = r#"
    local found = {}
    for _, win in ipairs(vim.fn.win_findbuf(vim.fn.bufnr("a.txt"))) do
      table.insert(found, vim.api.nvim_win_get_cursor(win)[1])
      table.insert(found, vim.fn.line("w0", win))
    end
    table.sort(found)
    return found
    "#;
    assert_eq!(editor.lua(code, json!([])), json!([42, 42, 52, 52]));
}

#[test]
fn what_runs_on_a_save_does_not_end_an_insert_in_another_buffer() {
    let init = "vim.api.nvim_create_autocmd('BufWritePre', { pattern = '*.txt', command = 'stopinsert' })";
    let setup = Setup::new().file("a.txt", "one\n").file("b.txt", "b\n").arg("a.txt").init(init);
    let steps = [gate("there"), write_file("a.txt", "ONE\n").without_waiting(), read_file("b.txt"), gate("end")];
    let (agent, editor) = at_work_with(setup, steps);
    editor.command("new other.md");
    editor.input("ityping");
    editor.wait_screen("typing");
    agent.open_gate("there");
    assert_eq!(content(&agent, 1), "b\n");
    editor.input(" on");
    editor.wait_screen("typing on");
    assert_eq!(editor.screen().mode(), "insert");
    assert_eq!(on_disk(&editor, "a.txt"), "one\n");
    editor.input("<Esc>");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "ONE\n");
}

#[test]
fn a_write_does_not_wait_for_an_insert_elsewhere_when_nothing_runs_on_a_save() {
    let init = "vim.api.nvim_create_autocmd('BufWritePre', { pattern = '*.md', command = 'stopinsert' })";
    let setup = Setup::new().file("a.txt", "one\n").arg("a.txt").init(init);
    let (agent, editor) = at_work_with(setup, [gate("there"), write_file("a.txt", "ONE\n"), gate("end")]);
    editor.command("new other.md");
    editor.input("ityping");
    editor.wait_screen("typing");
    agent.open_gate("there");
    written(&agent, 1);
    assert_eq!(editor.screen().mode(), "insert");
    assert_eq!(on_disk(&editor, "a.txt"), "ONE\n");
}
