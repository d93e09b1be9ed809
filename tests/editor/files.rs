//! `fs/read_text_file` and `fs/write_text_file`: what the user sees is what is read, and what they write is safe.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::chat::{self, enter_code, window};
use crate::support::scenario::{Scenario, Step, end_turn, gate, read_file, request, write_file};
use crate::support::{Editor, ScriptedAgent, Setup};

const READ: &str = "fs/read_text_file";
const WRITE: &str = "fs/write_text_file";

/// A turn in which the agent does this.
fn doing(steps: impl IntoIterator<Item = Step>) -> Scenario {
    Scenario::new().on_prompt(steps.into_iter().chain([end_turn()]))
}

/// An editor with `a.txt` of this content open in the current window, and an agent at work.
#[track_caller]
fn at_work(content: impl AsRef<[u8]>, steps: impl IntoIterator<Item = Step>) -> (ScriptedAgent, Editor) {
    at_work_with(Setup::new().file("a.txt", content).arg("a.txt"), steps)
}

#[track_caller]
fn at_work_with(setup: Setup, steps: impl IntoIterator<Item = Step>) -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::open(&doing(steps), setup);
    enter_code(&editor);
    editor.prompt("go");
    (agent, editor)
}

fn read_with(path: &str, more: &Json) -> Step {
    let mut params = json!({ "sessionId": "$session", "path": format!("$cwd/{path}") });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request(READ, params)
}

fn read_at(path: &Path) -> Step {
    request(READ, json!({ "sessionId": "$session", "path": path }))
}

fn write_at(path: &Path, content: &str) -> Step {
    request(WRITE, json!({ "sessionId": "$session", "path": path, "content": content }))
}

/// What the agent got for its `count`th read.
#[track_caller]
fn content(agent: &ScriptedAgent, count: usize) -> String {
    let answer = agent.wait_answer(READ, count);
    answer["result"]["content"].as_str().unwrap_or_else(|| panic!("no content: {answer}")).to_owned()
}

#[track_caller]
fn written(agent: &ScriptedAgent, count: usize) {
    let answer = agent.wait_answer(WRITE, count);
    assert!(answer.get("error").is_none() && answer.get("result").is_some(), "{answer}");
}

/// The error of the `count`th write.
#[track_caller]
fn refusal(agent: &ScriptedAgent, method: &str, count: usize) -> (i64, String) {
    let answer = agent.wait_answer(method, count);
    let error = &answer["error"];
    assert!(error.is_object(), "{answer}");
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}

#[track_caller]
fn lines_of(editor: &Editor, name: &str) -> Vec<String> {
    let lines = editor.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, true)", json!([name]));
    lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn is_modified(editor: &Editor, name: &str) -> bool {
    editor.lua("return vim.bo[vim.fn.bufnr(...)].modified", json!([name])) == json!(true)
}

fn on_disk(editor: &Editor, path: &str) -> String {
    String::from_utf8(editor.file(path).unwrap_or_default()).unwrap()
}

// -- reading

#[test]
fn unsaved_text_is_what_is_read() {
    let (agent, editor) = at_work("one\ntwo\n", [gate("typed"), read_file("a.txt")]);
    editor.input("ggOunsaved 完了<Esc>");
    editor.wait_screen("unsaved 完了");
    agent.open_gate("typed");
    assert_eq!(content(&agent, 1), "unsaved 完了\none\ntwo\n");
    assert_eq!(on_disk(&editor, "a.txt"), "one\ntwo\n");
}

#[test]
fn a_part_is_read_by_line_and_limit() {
    let steps = [
        read_with("a.txt", &json!({ "line": 2, "limit": 2 })),
        read_with("a.txt", &json!({ "line": 4 })),
        read_with("a.txt", &json!({ "limit": 1 })),
        read_with("a.txt", &json!({ "line": null, "limit": null })),
        read_with("a.txt", &json!({ "line": 9, "limit": 2 })),
    ];
    let (agent, _editor) = at_work("1\n2\n3\n4\n5\n", steps);
    agent.wait_answer(READ, 5);
    let texts: Vec<String> = (1..=4).map(|count| content(&agent, count)).collect();
    let texts: Vec<&str> = texts.iter().map(|text| text.trim_end_matches('\n')).collect();
    assert_eq!(texts, ["2\n3", "4\n5", "1", "1\n2\n3\n4\n5"]);
    let (_, message) = refusal(&agent, READ, 5);
    assert!(message.contains('5'), "it names the number of lines: {message}");
}

#[test]
fn what_is_no_readable_file_is_a_clear_error() {
    let setup = Setup::new().file("binary", b"\xff\xfe\x00\x01").file("folder/x", "");
    let steps = [read_file("missing"), read_file("binary"), read_file("folder"), read_at(Path::new("a.txt"))];
    let (agent, _editor) = at_work_with(setup, steps);
    let (code, message) = refusal(&agent, READ, 1);
    assert_eq!(code, -32002);
    assert!(message.contains("missing"), "{message}");
    assert!(refusal(&agent, READ, 2).1.contains("not a UTF-8 text file"));
    assert!(refusal(&agent, READ, 3).1.contains("not a regular file"));
    assert!(refusal(&agent, READ, 4).1.contains("absolute"));
}

#[test]
fn a_clean_buffer_older_than_its_file_gives_the_file_and_can_be_written() {
    let steps = [gate("changed"), read_file("a.txt"), write_file("a.txt", "agent\ntwo\n")];
    let (agent, editor) = at_work("one\ntwo\n", steps);
    fs::write(editor.project().join("a.txt"), "newer on disk\ntwo\n").unwrap();
    agent.open_gate("changed");
    assert_eq!(content(&agent, 1), "newer on disk\ntwo\n");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "agent\ntwo\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["agent", "two"]);
}

// -- outside of the project

#[test]
fn outside_of_the_project_the_user_is_asked_and_no_means_no() {
    let outside = TempDir::new().unwrap();
    let (secret, target) = (outside.path().join("secret.txt"), outside.path().join("target.txt"));
    fs::write(&secret, "secret").unwrap();
    let steps = [read_at(&secret), write_at(&target, "mine"), read_at(&secret), write_at(&target, "mine")];
    let (agent, editor) = at_work("", steps);
    let answers = [(READ, "reject_once"), (WRITE, "reject_once"), (READ, "allow_once"), (WRITE, "allow_once")];
    for (count, (method, answer)) in answers.into_iter().enumerate() {
        editor.wait_until("the question", |e| {
            window(e, "agentchat_permission").is_some() && e.events("AgentChatPermission").len() == count + 1
        });
        editor.wait_screen("outside of the project");
        if count < 2 {
            assert!(agent.answers(method).is_empty(), "nothing before the answer");
        }
        assert!(count == 3 || !target.exists());
        editor.lua("require('agentchat').respond(...)", json!([answer]));
        editor.wait_until("the answer taken", |e| e.events("AgentChatPermissionResolved").len() == count + 1);
    }
    assert!(refusal(&agent, READ, 1).1.contains("did not allow"));
    assert!(refusal(&agent, WRITE, 1).1.contains("did not allow"));
    assert_eq!(content(&agent, 2), "secret");
    written(&agent, 2);
    assert_eq!(fs::read_to_string(target).unwrap(), "mine");
}

#[test]
fn ways_out_through_links_and_dots_are_outside() {
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("secret.txt"), "secret").unwrap();
    let (agent, editor) = at_work("", [gate("linked"), read_file("link/secret.txt"), read_file("x/../../secret.txt")]);
    std::os::unix::fs::symlink(outside.path(), editor.project().join("link")).unwrap();
    agent.open_gate("linked");
    for count in 1..=2 {
        editor.wait_until("the question", |e| e.events("AgentChatPermission").len() == count);
        editor.wait_until("the float", |e| window(e, "agentchat_permission").is_some());
        editor.lua("require('agentchat').respond('reject_once')", json!([]));
        assert!(refusal(&agent, READ, count).1.contains("did not allow"));
    }
}

// -- writing into an open buffer

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

// -- bytes

/// What a file with these bytes, open in Neovim, is after the agent read it and wrote `text`.
#[track_caller]
fn after_writing(bytes: &[u8], text: &str) -> (String, Vec<u8>) {
    let (agent, editor) = at_work(bytes, [read_file("a.txt"), write_file("a.txt", text)]);
    let read = content(&agent, 1);
    written(&agent, 1);
    (read, editor.file("a.txt").unwrap())
}

#[test]
fn line_breaks_stay_what_they_are() {
    assert_eq!(after_writing(b"one\r\ntwo\r\n", "one\nTWO\n"), ("one\r\ntwo\r\n".into(), b"one\r\nTWO\r\n".to_vec()));
    assert_eq!(after_writing(b"one\r\ntwo\r\n", "one\r\nTWO\r\n").1, b"one\r\nTWO\r\n");
    assert_eq!(after_writing(b"one\ntwo\n", "one\nTWO\n").1, b"one\nTWO\n");
}

#[test]
fn mixed_line_breaks_stay_where_nothing_was_edited() {
    let old = b"one\r\ntwo\rstill two\nthree\n";
    let (read, new) = after_writing(old, "one\r\ntwo\rstill two\nTHREE\n");
    assert_eq!(read.as_bytes(), old);
    assert_eq!(new, b"one\r\ntwo\rstill two\nTHREE\n");
}

#[test]
fn old_mac_files_stay_what_they_are() {
    let setup = Setup::new().file("a.txt", "one\rtwo\r").init("vim.o.fileformats = 'unix,dos,mac'").arg("a.txt");
    let (agent, editor) = at_work_with(setup, [read_file("a.txt"), write_file("a.txt", "one\rTWO\r")]);
    assert_eq!(content(&agent, 1), "one\rtwo\r");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "one\rTWO\r");
}

#[test]
fn utf_16_is_kept() {
    let bytes = |text: &str| -> Vec<u8> {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        bytes
    };
    let (read, new) = after_writing(&bytes("one 完\n"), "one 了\n");
    assert_eq!(read, "one 完\n");
    assert_eq!(new, bytes("one 了\n"));
}

#[test]
fn the_form_of_a_file_that_is_not_loaded_is_kept() {
    let setup = Setup::new().file("dos.txt", "one\r\ntwo\r\n").file("bom.txt", "\u{feff}one\n");
    let steps = [write_file("dos.txt", "one\nTWO\n"), write_file("bom.txt", "two\n")];
    let (agent, editor) = at_work_with(setup, steps);
    written(&agent, 2);
    assert_eq!(on_disk(&editor, "dos.txt"), "one\r\nTWO\r\n");
    assert_eq!(on_disk(&editor, "bom.txt"), "\u{feff}two\n");
}

#[test]
fn a_last_newline_is_there_when_the_agent_wrote_one() {
    assert_eq!(after_writing(b"one\ntwo", "one\nTWO"), ("one\ntwo".into(), b"one\nTWO".to_vec()));
    assert_eq!(after_writing(b"one\ntwo", "one\nTWO\n").1, b"one\nTWO\n");
    assert_eq!(after_writing(b"one\ntwo\n", "one\nTWO").1, b"one\nTWO");
}

#[test]
fn a_byte_order_mark_is_there_once() {
    const BOM: &str = "\u{feff}";
    let old = format!("{BOM}one\n");
    let new = format!("{BOM}two\n").into_bytes();
    assert_eq!(after_writing(old.as_bytes(), "two\n").1, new);
    assert_eq!(after_writing(old.as_bytes(), &format!("{BOM}two\n")).1, new);
}

#[test]
fn other_encodings_are_kept() {
    assert_eq!(after_writing(b"caf\xe9\n", "caf\u{e9}s\n"), ("caf\u{e9}\n".into(), b"caf\xe9s\n".to_vec()));
    let (agent, editor) = at_work(b"caf\xe9\n", [write_file("a.txt", "完了\n")]);
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("encoding"), "{message}");
    assert_eq!(editor.file("a.txt").unwrap(), b"caf\xe9\n");
}

#[test]
fn a_locale_without_utf8_changes_nothing() {
    let setup = Setup::new().env("LANG", "C").env("LC_ALL", "C").file("a.txt", "完了 ✅\n").arg("a.txt");
    let (agent, editor) = at_work_with(setup, [read_file("a.txt"), write_file("a.txt", "完了 ✅ ja\n")]);
    assert_eq!(content(&agent, 1), "完了 ✅\n");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "完了 ✅ ja\n");
}

// -- files that are not loaded

#[test]
fn a_file_that_is_not_loaded_is_written_in_its_place() {
    use std::os::unix::fs::PermissionsExt;

    let setup = Setup::new().file("tool.sh", "old\n");
    let steps = [
        gate("mode"),
        write_file("tool.sh", "new\n"),
        write_file("deep/er/new.txt", "fresh"),
        write_file("link.txt", "through the link\n"),
        read_file("deep/er/new.txt"),
    ];
    let (agent, editor) = at_work_with(setup, steps);
    let project = editor.project();
    fs::set_permissions(project.join("tool.sh"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::write(project.join("real.txt"), "real\n").unwrap();
    std::os::unix::fs::symlink("real.txt", project.join("link.txt")).unwrap();
    agent.open_gate("mode");
    for count in 1..=3 {
        written(&agent, count);
    }
    assert_eq!(content(&agent, 1), "fresh");
    assert_eq!(on_disk(&editor, "tool.sh"), "new\n");
    assert_eq!(fs::metadata(project.join("tool.sh")).unwrap().permissions().mode() & 0o777, 0o751);
    assert_eq!(on_disk(&editor, "real.txt"), "through the link\n");
    assert!(fs::symlink_metadata(project.join("link.txt")).unwrap().is_symlink());
    let mut names: Vec<String> = fs::read_dir(&project)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["deep", "link.txt", "real.txt", "tool.sh"], "nothing else is left behind");
    assert_eq!(editor.lua("return vim.fn.bufnr('tool.sh')", json!([])), json!(-1), "no buffer is made for it");
}

#[test]
fn a_buffer_with_bytes_that_are_no_text_is_refused_and_kept() {
    let bytes = b"one\nbad \xff\xfe byte\nthree\n";
    let setup = Setup::new().file("a.txt", bytes).arg("a.txt").init("vim.o.fileencodings = 'utf-8'");
    let (agent, editor) =
        at_work_with(setup, [gate("typed"), read_file("a.txt"), write_file("a.txt", "one\nTWO\nthree\n")]);
    editor.command("edit ++enc=utf-8 ++bad=keep a.txt");
    editor.input("Gotyped<Esc>");
    editor.wait_screen("typed");
    agent.open_gate("typed");
    assert!(refusal(&agent, READ, 1).1.contains("UTF-8"));
    refusal(&agent, WRITE, 1);
    assert_eq!(editor.file("a.txt").unwrap(), bytes);
    assert!(is_modified(&editor, "a.txt"));
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
fn names_with_special_characters_are_files_like_others() {
    const NAME: &str = "a b[1]%#{x}$HOME 完.txt";
    let setup = Setup::new().file(NAME, "one\n").arg(NAME);
    let (agent, editor) = at_work_with(setup, [gate("typed"), read_file(NAME), write_file(NAME, "typed\none\ntwo\n")]);
    editor.input("Otyped<Esc>");
    editor.wait_screen("typed");
    agent.open_gate("typed");
    assert_eq!(content(&agent, 1), "typed\none\n");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, NAME), "typed\none\ntwo\n");
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
fn an_empty_file_and_an_empty_line_are_told_apart() {
    for (old, new) in [("text\n", ""), ("text\n", "\n"), ("", "text\n"), ("\n", "")] {
        let (agent, editor) = at_work(old, [read_with("a.txt", &json!({})), write_file("a.txt", new)]);
        assert_eq!(content(&agent, 1), old);
        written(&agent, 1);
        let path = editor.project().join("a.txt");
        assert_eq!(fs::read_to_string(&path).unwrap(), new, "{old:?} to {new:?}");
    }
}

#[test]
fn unsaved_emptiness_is_read_as_the_user_would_save_it() {
    for (lines, text) in [("{''}", "\n"), ("{}", "")] {
        let (agent, editor) = at_work("text\n", [gate("emptied"), read_with("a.txt", &json!({}))]);
        editor.lua(&format!("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.txt'), 0, -1, true, {lines})"), json!([]));
        let saved_as = editor.lua("vim.cmd('silent write! copy.txt') return vim.fn.readblob('copy.txt')", json!([]));
        agent.open_gate("emptied");
        assert_eq!(content(&agent, 1), saved_as.as_str().unwrap_or(text), "{lines}");
    }
}
