//! Files that change on disk while an agent works: buffers follow, nothing of the user's is lost, and what somebody else did
//! is not taken for the agent's.

use std::fs;

use serde_json::json;

use crate::files::{at_work, at_work_with, is_modified, lines_of, on_disk, written};
use crate::support::scenario::{edit_call, gate, read_file, run, tool_call, tool_status, write_disk, write_file};
use crate::support::{Editor, Setup};

#[track_caller]
fn changed_by_agent(editor: &Editor, count: usize) {
    editor.wait_until("the agent's changes", |e| e.events("AgentChatFileChanged").len() == count);
}

#[test]
fn a_clean_buffer_follows_at_once_with_its_place_and_undo_kept_and_is_saved_without_a_question() {
    let old = (1..=40).fold(String::new(), |text, number| text + &format!("line {number}\n"));
    let new = old.replace("line 3\n", "line three\nand more\n");
    let steps = [edit_call("t1", "a.txt"), gate("placed"), write_disk("a.txt", &new), gate("end")];
    let (agent, editor) = at_work(&old, steps);
    editor.lua("vim.api.nvim_win_set_cursor(0, { 25, 3 })\nvim.cmd('normal! zt')", json!([]));
    agent.open_gate("placed");
    // The call is not over yet: the change itself is noticed.
    editor.wait_until("the new text", |e| lines_of(e, "a.txt").len() == 41);
    changed_by_agent(&editor, 1);
    assert!(!is_modified(&editor, "a.txt"));
    let code = "return require('agentchat.changes').get(..., 0, 1000).hunks";
    let path = editor.project().canonicalize().unwrap().join("a.txt");
    let hunks = editor.lua(code, json!([path]));
    assert_eq!((&hunks[0]["first"], &hunks[0]["old"]), (&json!(2), &json!(["line 3"])), "{hunks}");
    let code = "return { vim.api.nvim_win_get_cursor(0), vim.fn.line('w0') }";
    assert_eq!(editor.lua(code, json!([])), json!([[26, 3], 26]));
    editor.command("checktime");
    editor.input("Ax<Esc>:w<CR>");
    editor.wait_until("the save", |e| on_disk(e, "a.txt").contains("line 25x\n"));
    assert!(on_disk(&editor, "a.txt").contains("line three\nand more\n"));
    editor.input("uu");
    let old_lines: Vec<&str> = old.lines().collect();
    editor.wait_until("the old text", |e| lines_of(e, "a.txt") == old_lines);
    assert!(is_modified(&editor, "a.txt"));
}

#[test]
fn unsaved_changes_of_other_lines_are_merged() {
    let steps = [
        edit_call("t1", "a.txt"),
        gate("typed"),
        write_disk("a.txt", "ONE\ntwo\nthree\nfour\n"),
        tool_status("t1", "completed"),
        gate("end"),
    ];
    let (agent, editor) = at_work("one\ntwo\nthree\nfour\n", steps);
    editor.input("Gofrom the user<Esc>");
    editor.wait_screen("from the user");
    agent.open_gate("typed");
    editor.wait_until("both", |e| lines_of(e, "a.txt") == ["ONE", "two", "three", "four", "from the user"]);
    assert!(is_modified(&editor, "a.txt"));
    assert_eq!(on_disk(&editor, "a.txt"), "ONE\ntwo\nthree\nfour\n");
    editor.wait_transcript("merged with your unsaved changes");
    editor.input("u");
    editor.wait_until("the user's text", |e| lines_of(e, "a.txt") == ["one", "two", "three", "four", "from the user"]);
}

#[test]
fn unsaved_changes_of_the_same_lines_stay_and_the_user_is_told() {
    let steps = [
        edit_call("t1", "a.txt"),
        gate("typed"),
        write_disk("a.txt", "AGENT\n"),
        tool_status("t1", "completed"),
        gate("end"),
    ];
    let (agent, editor) = at_work("one\n", steps);
    editor.input("ccuser<Esc>");
    editor.wait_screen("user");
    agent.open_gate("typed");
    editor.wait_transcript("your unsaved changes are in its way");
    assert_eq!(lines_of(&editor, "a.txt"), ["user"]);
    assert!(is_modified(&editor, "a.txt"));
    // The user's save must not write over it without a word.
    editor.input(":w<CR>");
    editor.wait_screen("Do you really want to write to it");
    editor.input("n");
    editor.wait_until("the answer", |e| {
        // Some versions want their message to be confirmed.
        if e.is_blocked() {
            e.input("<CR>");
        }
        !e.is_blocked()
    });
    assert_eq!(on_disk(&editor, "a.txt"), "AGENT\n");
}

#[test]
fn a_buffer_follows_when_the_user_has_left_insert_mode() {
    let steps = [edit_call("t1", "a.txt"), gate("inserting"), write_disk("a.txt", "ONE\ntwo\n"), gate("end")];
    let (agent, editor) = at_work("one\ntwo\n", steps);
    editor.input("i");
    editor.wait_until("insert mode", |e| e.screen().mode() == "insert");
    agent.open_gate("inserting");
    editor.wait_until("the agent's text on disk", |e| on_disk(e, "a.txt") == "ONE\ntwo\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two"]);
    editor.input("<Esc>");
    editor.wait_until("the agent's text", |e| lines_of(e, "a.txt") == ["ONE", "two"]);
    assert!(!is_modified(&editor, "a.txt"));
}

#[test]
fn the_same_text_on_disk_and_through_the_client_is_one_change() {
    let steps = [
        edit_call("t1", "a.txt"),
        read_file("a.txt"),
        write_disk("a.txt", "two\n"),
        gate("noticed"),
        write_file("a.txt", "two\n"),
        tool_status("t1", "completed"),
        gate("end"),
        write_file("a.txt", "three\n"),
    ];
    let (agent, editor) = at_work("one\n", steps);
    editor.wait_until("the first", |e| lines_of(e, "a.txt") == ["two"]);
    agent.open_gate("noticed");
    written(&agent, 1);
    let code = "return vim.fn.undotree().seq_last";
    let steps = editor.lua(code, json!([]));
    assert_eq!(steps, json!(1), "one undo step");
    agent.open_gate("end");
    written(&agent, 2);
    assert_eq!(on_disk(&editor, "a.txt"), "three\n");
}

#[test]
fn what_somebody_else_changes_is_not_the_agents() {
    let setup = Setup::new().file("a.txt", "one\n").file("b.txt", "b\n").file("c.txt", "c\n").arg("a.txt");
    let steps = [
        tool_call("t1", "make", "execute"),
        tool_status("t1", "in_progress"),
        gate("saved"),
        run("echo agent > b.txt"),
        tool_status("t1", "completed"),
        gate("end"),
    ];
    let (agent, editor) = at_work_with(setup, steps);
    agent.wait("the command", |log| log.iter().any(|entry| entry.what() == "at_gate").then_some(()));
    // The user saves while the agent's command runs, and undoes the turn later: it is theirs.
    editor.input("ccuser<Esc>:w<CR>");
    editor.wait_until("the user's save", |e| on_disk(e, "a.txt") == "user\n");
    agent.open_gate("saved");
    changed_by_agent(&editor, 1);
    agent.open_gate("end");
    editor.wait_until("the turn's end", |e| !e.events("AgentChatTurnEnd").is_empty());
    // After the turn, by another program: no hunk, no event, and without 'autoread' Neovim's own way.
    fs::write(editor.project().join("c.txt"), "later\n").unwrap();
    // `b.txt` is not open; what the agent did to it is pending all the same, until the turn is undone.
    let path = editor.project().canonicalize().unwrap().join("b.txt");
    let pending = || editor.lua("return #require('agentchat.changes').get(..., 0, 1000).hunks", json!([path]));
    assert_eq!(pending(), json!(1));
    editor.command("AgentChat undo");
    editor.wait_transcript("Undo of turn 1: restored: b.txt.");
    assert_eq!(pending(), json!(0));
    assert_eq!((on_disk(&editor, "a.txt"), on_disk(&editor, "b.txt")), ("user\n".into(), "b\n".into()));
    assert_eq!(on_disk(&editor, "c.txt"), "later\n");
}

#[test]
fn a_checkout_is_not_the_agents() {
    let setup = Setup::new().file("a.txt", "one\n").file("b.txt", "b\n").arg("a.txt");
    let steps = [
        tool_call("t1", "make", "execute"),
        gate("checked out"),
        run("echo agent > b.txt"),
        tool_status("t1", "completed"),
        gate("end"),
    ];
    let (agent, editor) = at_work_with(setup, steps);
    let sh = |line: &str| {
        let done = std::process::Command::new("sh").args(["-ec", line]).current_dir(editor.project()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    // As a user would in another terminal, while the agent's command runs.
    sh("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
        git init -q . && git add -A && git commit -qm one && git checkout -qb other");
    sh("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
        git checkout -q - && git checkout -q other && printf 'theirs\\n' > a.txt && git commit -qam two && git checkout -q -");
    assert_eq!(on_disk(&editor, "a.txt"), "one\n");
    sh("git checkout -q other");
    editor.wait_until("the buffer follows, as by 'autoread'", |e| lines_of(e, "a.txt") == ["theirs"]);
    assert!(editor.events("AgentChatFileChanged").is_empty());
    agent.open_gate("checked out");
    agent.open_gate("end");
    editor.wait_until("the turn's end", |e| !e.events("AgentChatTurnEnd").is_empty());
    editor.command("AgentChat undo");
    editor.wait_until("the undo", |e| e.transcript_has("Undo of turn 1") || e.messages().contains("nothing to undo"));
    assert_eq!(on_disk(&editor, "a.txt"), "theirs\n");
}
