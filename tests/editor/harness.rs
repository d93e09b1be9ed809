//! The harness itself: what the other tests rely on when they pass, and see when they fail.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::json;

use crate::support::{Editor, PATIENCE, Setup, poll, processes};

/// What a failing wait or call says.
fn failure_of(act: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("this was meant to fail");
    panic.downcast_ref::<String>().expect("failures are worded").clone()
}

#[test]
fn typed_keys_are_on_the_screen() {
    let mut editor = Editor::start(Setup::new().file("a.txt", "one\n").arg("a.txt"));
    editor.input("otwo 完了 three<Esc>");
    let screen = editor.wait_screen("two 完了 three");
    assert_eq!(screen.row(0), "one");
    assert_eq!(screen.find("three"), Some((1, 9)), "wide characters take two columns");
    editor.wait_until("normal mode again", |e| e.screen().mode() == "normal");
    assert!(editor.quit().0.success());
}

#[test]
fn highlight_groups_and_floats_are_on_the_screen() {
    let editor = Editor::start(Setup::new().size(60, 12));
    editor.lua(
        r#"
        vim.api.nvim_buf_set_lines(0, 0, -1, true, { "plain marked" })
        vim.api.nvim_buf_set_extmark(0, vim.api.nvim_create_namespace("t"), 0, 6, { end_col = 12, hl_group = "Todo" })
        local buf = vim.api.nvim_create_buf(false, true)
        vim.api.nvim_buf_set_lines(buf, 0, -1, true, { "in a float" })
        vim.api.nvim_open_win(buf, false, { relative = "editor", row = 5, col = 20, width = 10, height = 1 })
        "#,
        json!([]),
    );
    let screen = editor.wait_screen("in a float");
    assert_eq!(screen.find("in a float"), Some((5, 20)));
    assert_eq!(screen.groups_of("marked"), Some(&["Todo".to_owned()][..]));
    assert_eq!(screen.groups_of("plain"), Some(&[][..]));
}

#[test]
fn scrolled_and_cleared_screens_are_followed() {
    let editor = Editor::start(Setup::new().size(40, 10));
    let lines: Vec<String> = (1..=100).map(|number| format!("line {number}")).collect();
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, ...)", json!([lines]));
    editor.input("G");
    let screen = editor.wait_screen("line 100");
    let shown = screen.rows().into_iter().filter(|row| row.starts_with("line")).collect::<Vec<_>>();
    assert_eq!(shown, lines[100 - shown.len()..]);
    editor.input("<C-y><C-y>");
    editor.wait_until("two lines back", |e| e.screen().row(0) == format!("line {}", 100 - shown.len() - 1));
    editor.command("enew");
    editor.wait_until("an empty buffer", |e| e.screen().row(0).is_empty() && !e.screen().contains("line 9"));
}

#[test]
fn a_wait_that_fails_shows_what_the_user_saw() {
    let editor = Editor::start(Setup::new());
    editor.lua("vim.notify('about to fail'); vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'on screen' })", json!([]));
    editor.set_patience(Duration::from_millis(200));
    let failure = failure_of(|| editor.wait_until("the impossible", |_| false));
    assert!(failure.starts_with("not within 200ms: the impossible"), "{failure}");
    assert!(failure.contains("│on screen") && failure.contains("about to fail"), "{failure}");
}

#[test]
fn a_neovim_that_waits_for_a_key_fails_the_call_instead_of_hanging_it() {
    let editor = Editor::start(Setup::new());
    editor.input("f");
    editor.wait_until("the half-typed command", Editor::is_blocked);
    editor.set_patience(Duration::from_millis(300));
    let failure = failure_of(|| editor.command("echo"));
    assert!(failure.contains("Neovim waits for a key"), "{failure}");
    editor.set_patience(PATIENCE);
    editor.input("<Esc>");
    editor.command("echo");
}

#[test]
fn a_busy_neovim_shows_in_the_key_delay() {
    let editor = Editor::start(Setup::new());
    let busy = |milliseconds: u64| editor.rtt(|e| e.lua("vim.uv.sleep(...)", json!([milliseconds]))).1;
    assert!(busy(1500).max >= Duration::from_millis(1200));
    assert!(busy(0).max < Duration::from_millis(1200));
}

#[test]
fn errors_of_lua_code_are_told() {
    let editor = Editor::start(Setup::new());
    let error = editor.try_lua("error('so it is')", json!([])).expect_err("an error");
    assert!(error.contains("so it is"), "{error}");
    assert_eq!(editor.lua("return { a = { 1, 'x', vim.NIL } }", json!([])), json!({ "a": [1, "x", null] }));
}

#[test]
fn user_events_are_recorded() {
    let editor = Editor::start(Setup::new());
    editor.lua("vim.api.nvim_exec_autocmds('User', { pattern = 'AgentChatTest', data = { n = 1 } })", json!([]));
    assert_eq!(editor.events("AgentChatTest"), [json!({ "n": 1 })]);
    assert!(editor.events("AgentChatOther").is_empty());
}

#[test]
fn the_transcript_is_found_in_this_tab_first() {
    let editor = Editor::start(Setup::new());
    assert!(editor.transcript().is_empty());
    editor.lua(
        r#"
        for _, line in ipairs({ "of the first tab", [[a \+ b.*]] }) do
          vim.cmd.tabnew()
          vim.bo.filetype = "agentchat"
          vim.api.nvim_buf_set_lines(0, 0, -1, true, { line })
        end
        "#,
        json!([]),
    );
    assert_eq!(editor.transcript(), [r"a \+ b.*"]);
    editor.wait_transcript(r"\+ b.*");
    editor.wait_transcript("first tab");
    assert!(!editor.transcript_has("First tab") && !editor.transcript_has("a.*b"));
}

#[test]
fn a_restart_finds_the_same_folders() {
    let editor = Editor::start(Setup::new());
    editor.lua("vim.fn.writefile({ 'kept' }, vim.fn.stdpath('state') .. '/note')", json!([]));
    let first = editor.pid();
    let editor = editor.restart();
    assert_ne!(editor.pid(), first);
    assert_eq!(editor.lua("return vim.fn.readfile(vim.fn.stdpath('state') .. '/note')", json!([])), json!(["kept"]));
}

#[test]
fn what_outlives_a_killed_neovim_is_found_and_ended() {
    let mut editor = Editor::start(Setup::new());
    // Every job of Neovim is in a session of its own; this one does not notice that its parent is gone.
    let job = editor.lua("return vim.fn.jobpid(vim.fn.jobstart({ 'sleep', '300' }))", json!([]));
    let pid = i32::try_from(job.as_i64().unwrap()).unwrap();
    editor.kill9();
    let left: Vec<i32> = editor.processes().iter().map(|process| process.pid).collect();
    assert_eq!(left, [pid]);
    let failure = failure_of(|| editor.wait_gone(Duration::from_millis(50)));
    assert!(failure.contains("sleep 300"), "{failure}");
    drop(editor);
    assert!(poll(Duration::from_secs(2), || (!processes::is_alive(pid)).then_some(())).is_some());
}
