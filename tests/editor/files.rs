//! `fs/read_text_file` and `fs/write_text_file`: what the user sees is what is read, and what they write is safe.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::chat::{self, enter_code, window};
use crate::support::scenario::{Scenario, Step, end_turn, gate, read_file, repeat, request, write_file};
use crate::support::{Editor, ScriptedAgent, Setup};

pub(crate) const READ: &str = "fs/read_text_file";
pub(crate) const WRITE: &str = "fs/write_text_file";

/// A turn in which the agent does this.
fn doing(steps: impl IntoIterator<Item = Step>) -> Scenario {
    Scenario::new().on_prompt(steps.into_iter().chain([end_turn()]))
}

/// An editor with `a.txt` of this content open in the current window, and an agent at work.
#[track_caller]
pub(crate) fn at_work(content: impl AsRef<[u8]>, steps: impl IntoIterator<Item = Step>) -> (ScriptedAgent, Editor) {
    at_work_with(Setup::new().file("a.txt", content).arg("a.txt"), steps)
}

#[track_caller]
pub(crate) fn at_work_with(setup: Setup, steps: impl IntoIterator<Item = Step>) -> (ScriptedAgent, Editor) {
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
pub(crate) fn content(agent: &ScriptedAgent, count: usize) -> String {
    let answer = agent.wait_answer(READ, count);
    answer["result"]["content"].as_str().unwrap_or_else(|| panic!("no content: {answer}")).to_owned()
}

#[track_caller]
pub(crate) fn written(agent: &ScriptedAgent, count: usize) {
    let answer = agent.wait_answer(WRITE, count);
    assert!(answer.get("error").is_none() && answer.get("result").is_some(), "{answer}");
}

/// The error of the `count`th write.
#[track_caller]
pub(crate) fn refusal(agent: &ScriptedAgent, method: &str, count: usize) -> (i64, String) {
    let answer = agent.wait_answer(method, count);
    let error = &answer["error"];
    assert!(error.is_object(), "{answer}");
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}

#[track_caller]
pub(crate) fn lines_of(editor: &Editor, name: &str) -> Vec<String> {
    let lines = editor.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, true)", json!([name]));
    lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect()
}

#[track_caller]
pub(crate) fn is_modified(editor: &Editor, name: &str) -> bool {
    editor.lua("return vim.bo[vim.fn.bufnr(...)].modified", json!([name])) == json!(true)
}

pub(crate) fn on_disk(editor: &Editor, path: &str) -> String {
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

#[test]
fn what_was_allowed_is_what_is_opened() {
    let outside = TempDir::new().unwrap();
    let secret = |name: &str| outside.path().join(name);
    for name in ["one.txt", "two.txt"] {
        fs::write(secret(name), name).unwrap();
    }
    let (agent, editor) = at_work("", [gate("linked"), read_file("link.txt")]);
    let link = editor.project().join("link.txt");
    std::os::unix::fs::symlink(secret("one.txt"), &link).unwrap();
    agent.open_gate("linked");
    editor.wait_screen("one.txt");
    editor.wait_until("the float", |e| window(e, "agentchat_permission").is_some());
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(secret("two.txt"), &link).unwrap();
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    assert_eq!(content(&agent, 1), "one.txt");
}

#[test]
fn a_path_that_leads_elsewhere_once_it_was_allowed_is_refused() {
    let outside = TempDir::new().unwrap();
    let folder = outside.path().canonicalize().unwrap();
    let (asked, secret) = (folder.join("asked.txt"), folder.join("secret.txt"));
    fs::write(&asked, "asked").unwrap();
    fs::write(&secret, "secret").unwrap();
    let (agent, editor) = at_work("", [read_at(&asked)]);
    editor.wait_until("the float", |e| window(e, "agentchat_permission").is_some());
    fs::remove_file(&asked).unwrap();
    std::os::unix::fs::symlink(&secret, &asked).unwrap();
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    assert!(refusal(&agent, READ, 1).1.contains("another file"));
}

// -- files that are not loaded

#[test]
fn writes_that_the_agent_does_not_wait_for_are_done_in_their_order() {
    const FILES: u32 = 150;
    let steps = [repeat(FILES, ["first", "second"].map(|text| write_file("f$i.txt", text).without_waiting()))];
    let (agent, editor) = at_work("", steps);
    (1..=2 * FILES as usize).for_each(|count| written(&agent, count));
    let wrong = (0..FILES).filter(|number| on_disk(&editor, &format!("f{number}.txt")) != "second").count();
    assert_eq!(wrong, 0, "of {FILES} files");
}

#[test]
fn a_file_without_bounds_is_an_error_and_no_memory() {
    let (agent, editor) = at_work("", [gate("made"), read_file("disk.img"), read_file("a.txt")]);
    fs::File::create(editor.project().join("disk.img")).unwrap().set_len(6 << 30).unwrap();
    agent.open_gate("made");
    assert!(refusal(&agent, READ, 1).1.contains("more than"));
    agent.wait_answer(READ, 2);
}

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
