//! `:AgentChat undo`: what the agent did to files is taken back, what the user did stays.

use serde_json::json;

use crate::files::{at_work, at_work_with, is_modified, lines_of, on_disk, written};
use crate::support::scenario::{
    Scenario, edit_call, end_turn, gate, read_file, run, tool_call, tool_status, write_disk, write_file,
};
use crate::support::{Editor, Setup};

/// Undoes, and waits until the transcript says so.
#[track_caller]
fn undo(editor: &Editor, turn: &str, said: &str) {
    editor.wait_until("the turn's end", |e| {
        let ended = e.events("AgentChatTurnEnd").len();
        ended > 0 && ended == e.events("AgentChatTurnStart").len()
    });
    editor.command(&format!("AgentChat undo {turn}"));
    editor.wait_transcript(said);
}

#[track_caller]
fn changed_files(editor: &Editor, count: usize) {
    editor.wait_until("the changes", |e| e.events("AgentChatFileChanged").len() >= count);
}

#[test]
fn a_write_through_the_client_is_taken_back_in_one_undo_step() {
    let (agent, editor) = at_work("one\r\ntwo\r\n", [read_file("a.txt"), write_file("a.txt", "one\nTWO\nthree\n")]);
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "one\r\nTWO\r\nthree\r\n");
    undo(&editor, "", "Undo of turn 1: restored: a.txt.");
    assert_eq!(on_disk(&editor, "a.txt"), "one\r\ntwo\r\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two"]);
    assert!(!is_modified(&editor, "a.txt"));
    editor.input("u");
    editor.wait_until("the agent's text", |e| lines_of(e, "a.txt") == ["one", "TWO", "three"]);
}

#[test]
fn what_the_user_typed_later_stays() {
    let old = "one\ntwo\nthree\nfour\nfive\n";
    let (agent, editor) = at_work(old, [read_file("a.txt"), write_file("a.txt", &old.replace("two", "TWO"))]);
    written(&agent, 1);
    editor.input("Gofrom the user<Esc>");
    editor.wait_screen("from the user");
    undo(&editor, "1", "restored: a.txt");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two", "three", "four", "five", "from the user"]);
}

#[test]
fn where_both_changed_the_same_the_user_is_asked() {
    let init = r"
    _G.asked = 0
    vim.ui.select = function(items, _, on_choice)
      _G.asked = _G.asked + 1
      on_choice(items[_G.asked])
    end
    ";
    let setup = Setup::new().file("a.txt", "one\ntwo\n").arg("a.txt").init(init);
    let (agent, editor) = at_work_with(setup, [read_file("a.txt"), write_file("a.txt", "one\nTWO\n")]);
    written(&agent, 1);
    editor.input("G$a and more<Esc>");
    editor.wait_screen("TWO and more");
    undo(&editor, "", "left as you changed them: a.txt");
    editor.wait_until("the question", |e| e.lua("return _G.asked", json!([])) == json!(1));
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "TWO and more"]);
    // The second time the user lets it go.
    undo(&editor, "", "restored: a.txt");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two"]);
    assert_eq!(on_disk(&editor, "a.txt"), "one\ntwo\n");
}

#[test]
fn files_that_a_command_changed_created_and_deleted_are_as_they_were() {
    let setup = Setup::new()
        .file("changed.txt", "old\n")
        .file("deleted.bin", b"\xff\x00bytes")
        .file("users.txt", "u\n")
        .arg("changed.txt");
    let steps = [
        gate("users"),
        tool_call("t1", "sh work.sh", "execute"),
        run("printf 'new\\n' > changed.txt; mkdir sub; echo x > sub/created.txt; rm deleted.bin; chmod +x changed.txt"),
        tool_status("t1", "completed"),
        gate("end"),
    ];
    let (agent, editor) = at_work_with(setup, steps);
    agent.wait("the turn", |log| log.iter().any(|entry| entry.what() == "at_gate").then_some(()));
    // What the user does meanwhile is not touched.
    editor.command("split users.txt | call setline(1, 'later') | write | quit");
    agent.open_gate("users");
    changed_files(&editor, 3);
    editor.wait_until("the buffer follows", |e| lines_of(e, "changed.txt") == ["new"]);
    assert!(!is_modified(&editor, "changed.txt"));
    agent.open_gate("end");
    undo(&editor, "", "restored: changed.txt, deleted.bin, sub/created.txt");
    assert_eq!(on_disk(&editor, "changed.txt"), "old\n");
    assert_eq!(lines_of(&editor, "changed.txt"), ["old"]);
    assert_eq!(editor.file("deleted.bin").unwrap(), b"\xff\x00bytes");
    assert!(editor.file("sub/created.txt").is_none());
    assert_eq!(on_disk(&editor, "users.txt"), "later\n");
    // No question when the user saves.
    editor.input("ggAx<Esc>:w<CR>");
    editor.wait_until("the user's save", |e| on_disk(e, "changed.txt") == "oldx\n");
}

#[test]
fn turns_are_taken_back_by_number_and_one_after_the_other() {
    let step = |id: &str, text: &str| {
        [edit_call(id, "a.txt"), gate(id), write_disk("a.txt", text), tool_status(id, "completed")]
    };
    let scenario = Scenario::new()
        .on_prompt(step("t1", "one\n").into_iter().chain([end_turn()]))
        .on_prompt(step("t2", "two\n").into_iter().chain([end_turn()]));
    let setup = Setup::new().file("a.txt", "zero\n");
    let (agent, editor) = crate::chat::open(&scenario, setup);
    agent.open_gate("t1");
    agent.open_gate("t2");
    let go = |changes| {
        editor.prompt("go");
        changed_files(&editor, changes);
    };
    go(1);
    go(2);
    undo(&editor, "", "Undo of turn 2: restored: a.txt.");
    assert_eq!(on_disk(&editor, "a.txt"), "one\n");
    undo(&editor, "", "Undo of turn 1: restored: a.txt.");
    assert_eq!(on_disk(&editor, "a.txt"), "zero\n");
    editor.command("AgentChat undo");
    editor.wait_until("nothing is left", |e| e.messages().contains("nothing to undo"));
    go(5);
    undo(&editor, "3", "Undo of turn 3: restored: a.txt.");
    assert_eq!(on_disk(&editor, "a.txt"), "zero\n");
    editor.command("AgentChat undo 9");
    editor.wait_until("no such turn", |e| e.messages().contains("There is no turn 9"));
    assert_eq!(
        editor.lua(r#"return vim.fn.getcompletion("AgentChat undo ", "cmdline")"#, json!([])),
        json!(["3", "2", "1"])
    );
}

#[test]
fn nothing_of_gits_own_is_touched_and_no_git_is_needed() {
    let setup = Setup::new().file("a.txt", "old\n");
    let steps = [edit_call("t1", "a.txt"), gate("named"), write_disk("a.txt", "new\n"), tool_status("t1", "completed")];
    let (agent, editor) = at_work_with(setup, steps);
    let git = |arguments: &str| {
        let line = format!("git -c user.name=a -c user.email=a@example.com {arguments}");
        let done = std::process::Command::new("sh").args(["-c", &line]).current_dir(editor.project()).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    git("init -q . && git add a.txt && echo staged > b.txt && git add b.txt");
    let before = git("ls-files -s; git stash list; git branch -a");
    agent.open_gate("named");
    changed_files(&editor, 1);
    undo(&editor, "", "restored: a.txt");
    assert_eq!(on_disk(&editor, "a.txt"), "old\n");
    assert_eq!(git("ls-files -s; git stash list; git branch -a"), before);
    let code = r#"return vim.fn.readdir(vim.fn.stdpath("state") .. "/agentchat/checkpoints")"#;
    assert_eq!(editor.lua(code, json!([])), json!([]), "what is kept has no name");
}

#[test]
fn a_file_that_the_agent_made_is_gone_and_its_buffer_empty() {
    let (agent, editor) = at_work_with(Setup::new(), [write_file("new.txt", "new\n"), gate("opened")]);
    written(&agent, 1);
    editor.command("edit new.txt");
    agent.open_gate("opened");
    undo(&editor, "", "restored: new.txt");
    assert!(editor.file("new.txt").is_none());
    assert_eq!(lines_of(&editor, "new.txt"), [""]);
    assert!(!is_modified(&editor, "new.txt"));
}
