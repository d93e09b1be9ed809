//! Files that change on disk while an agent works: buffers follow, nothing of the user's is lost, and what somebody else did
//! is not taken for the agent's.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::chat::{self, enter_code};
use crate::files::{at_work, at_work_with, content, is_modified, lines_of, on_disk, written};
use crate::support::scenario::{
    Scenario, Step, edit_call, end_turn, gate, read_file, run, tool_call, tool_status, write_disk, write_file,
};
use crate::support::{Editor, ScriptedAgent, Setup};

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

/// What changes so soon before or after a turn may be of the turn (`GRACE` in `src/core/attribution.rs`).
const ECHO: Duration = Duration::from_millis(100);

/// The turn in which the agent writes this on disk, by itself.
fn turn_that_writes(id: &str, text: &str) -> Vec<Step> {
    vec![edit_call(id, "a.txt"), write_disk("a.txt", text), tool_status(id, "completed"), end_turn()]
}

#[test]
fn the_same_edit_is_pending_again_whatever_became_of_the_first() {
    same_edit_twice(0);
}

/// There, the agent is faster than whoever looks at all files when its turn begins.
#[test]
fn the_same_edit_is_pending_again_in_a_large_project_too() {
    same_edit_twice(4_000);
}

#[track_caller]
fn same_edit_twice(other_files: usize) {
    let (old, new) = ("one\ntwo\n", "ONE\ntwo\n");
    let scenario = Scenario::new().on_prompt(turn_that_writes("t1", new)).on_prompt(turn_that_writes("t2", new));
    let setup = Setup::new().file("a.txt", old).arg("a.txt");
    let setup = (0..other_files).fold(setup, |setup, number| setup.file(&format!("more/{number}.txt"), "x\n"));
    let (_agent, editor) = chat::open(&scenario, setup);
    enter_code(&editor);
    editor.prompt("go");
    editor.wait_until("the first edit", |e| pending(e) == json!(1));
    editor.wait_state("idle");
    editor.command("AgentChat reject all");
    editor.wait_until("the old bytes", |e| on_disk(e, "a.txt") == old);
    editor.input("u");
    editor.wait_until("pending again", |e| pending(e) == json!(1));
    editor.command("AgentChat accept all");
    // Somebody else puts the file back, later than what is still taken for an echo of the turn, and the buffer's unsaved
    // text is not wanted.
    let over = Instant::now();
    editor.wait_until("the turn to be over for a while", |_| over.elapsed() > 2 * ECHO);
    let path = editor.project().join("a.txt");
    fs::remove_file(&path).unwrap();
    fs::write(&path, old).unwrap();
    editor.command("bwipeout!");
    let is_older_than_a_turn = || fs::metadata(&path).unwrap().modified().unwrap().elapsed().unwrap() > 2 * ECHO;
    editor.wait_until("a turn that begins later", |_| is_older_than_a_turn());
    editor.command("edit a.txt");
    editor.prompt("again");
    editor.wait_until("the second edit", |e| lines_of(e, "a.txt") == ["ONE", "two"]);
    editor.wait_until("it to be pending", |e| pending(e) == json!(1));
}

#[test]
fn what_the_user_saves_before_the_buffer_follows_is_not_taken_back() {
    let steps = [
        edit_call("t1", "a.txt"),
        gate("placed"),
        write_disk("a.txt", "one\ntwo\nTHREE\n"),
        gate("read"),
        read_file("a.txt"),
        gate("end"),
    ];
    let (agent, editor) = at_work("one\ntwo\nthree\n", steps);
    // Just before the buffer is to follow the file that was looked at a moment ago.
    let code = "local disk = require('agentchat.disk')
    local follow = disk.follow
    disk.follow = function(...)
      disk.follow, _G.has_saved = follow, true
      vim.fn.setline(1, 'ones')
      vim.cmd('silent write!')
      return follow(...)
    end";
    editor.lua(code, json!([]));
    agent.open_gate("placed");
    editor.wait_until("the user's save", |e| e.lua("return _G.has_saved or false", json!([])) == json!(true));
    agent.open_gate("read");
    assert_eq!(content(&agent, 1), "ones\ntwo\nthree\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["ones", "two", "three"]);
    assert_eq!(on_disk(&editor, "a.txt"), "ones\ntwo\nthree\n");
    assert!(!is_modified(&editor, "a.txt"));
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
    // The user's save asks nothing: they have what is on disk.
    editor.input(":checktime<CR>:w<CR>");
    editor.wait_until("the save", |e| on_disk(e, "a.txt") == "ONE\ntwo\nthree\nfour\nfrom the user\n");
    assert!(!editor.is_blocked() && !editor.messages().contains("W1"), "{}", editor.messages());
    editor.input("u");
    editor.wait_until("the user's text", |e| lines_of(e, "a.txt") == ["one", "two", "three", "four", "from the user"]);
}

/// The agent changed on disk the line that the user has changed and not saved.
#[track_caller]
fn in_each_others_way() -> (ScriptedAgent, Editor) {
    let steps = [
        edit_call("t1", "a.txt"),
        gate("typed"),
        write_disk("a.txt", "AGENT\ntwo\n"),
        tool_status("t1", "completed"),
        gate("end"),
    ];
    let (agent, editor) = at_work("one\ntwo\n", steps);
    editor.input("ccuser<Esc>");
    editor.wait_screen("user");
    agent.open_gate("typed");
    editor.wait_transcript("your unsaved changes are in its way");
    editor.wait_until("the other version", |e| pending(e) == json!(1));
    assert_eq!(lines_of(&editor, "a.txt"), ["user", "two"]);
    assert!(is_modified(&editor, "a.txt"));
    (agent, editor)
}

/// Decisions that wait.
fn pending(editor: &Editor) -> Json {
    editor.lua("return require('agentchat.changes.store').count()", json!([]))
}

fn offered(editor: &Editor) -> Json {
    let code = "local b = vim.fn.bufnr('agentchat://agent/a.txt') \
                return b > 0 and vim.api.nvim_buf_get_lines(b, 0, -1, true) or vim.NIL";
    editor.lua(code, json!([]))
}

#[test]
fn the_agents_version_of_the_same_lines_is_pending_and_a_save_does_not_write_over_it() {
    let (_agent, editor) = in_each_others_way();
    assert_eq!(offered(&editor), json!(["AGENT", "two"]));
    editor.wait_screen("the agent's version differs");
    for keys in [":w<CR>", ":x<CR>", ":wqa<CR>"] {
        editor.input(keys);
        editor.wait_until("the refusal", |e| e.messages().contains("not saved: the agent changed the same lines"));
        assert!(!editor.is_blocked(), "no question after {keys}");
        assert_eq!(on_disk(&editor, "a.txt"), "AGENT\ntwo\n");
    }
    editor.command("AgentChat review diff");
    let code = "return vim.iter(vim.api.nvim_tabpage_list_wins(0)):filter(function(w) return vim.wo[w].diff end):map(
      function(w) return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(w), 0, 1, true)[1] end):totable()";
    assert_eq!(editor.lua(code, json!([])), json!(["AGENT", "user"]));
    editor.command("tabclose");
    editor.command("AgentChat review");
    let code = "return vim.iter(vim.fn.getqflist()):map(function(item) return item.text end):totable()";
    let listed = editor.lua(code, json!([]));
    assert!(listed[0].as_str().is_some_and(|text| text.contains("waits beside your unsaved changes")), "{listed}");
    editor.command("cclose");
    // Who insists has decided.
    editor.input(":w!<CR>");
    editor.wait_until("the user's text on disk", |e| on_disk(e, "a.txt") == "user\ntwo\n");
    editor.wait_until("nothing left to decide", |e| pending(e) == json!(0) && offered(e).is_null());
}

#[test]
fn accepting_the_agents_version_takes_it_into_the_buffer_with_the_users_text_one_undo_away() {
    let (_agent, editor) = in_each_others_way();
    editor.command("AgentChat accept file");
    assert_eq!(lines_of(&editor, "a.txt"), ["AGENT", "two"]);
    assert!(!is_modified(&editor, "a.txt"));
    assert_eq!((pending(&editor), offered(&editor)), (json!(0), Json::Null));
    editor.input("u");
    editor.wait_until("the user's text", |e| lines_of(e, "a.txt") == ["user", "two"]);
    editor.input(":w<CR>");
    editor.wait_until("the user's save", |e| on_disk(e, "a.txt") == "user\ntwo\n");
}

#[test]
fn rejecting_the_agents_version_puts_the_file_back_and_keeps_what_was_typed() {
    let (_agent, editor) = in_each_others_way();
    editor.command("AgentChat reject");
    editor.wait_until("the old file", |e| on_disk(e, "a.txt") == "one\ntwo\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["user", "two"]);
    assert!(is_modified(&editor, "a.txt"));
    assert_eq!((pending(&editor), offered(&editor)), (json!(0), Json::Null));
    editor.wait_until("Neovim to know the file", |e| {
        e.lua("return require('agentchat.disk_state').is_behind(vim.fn.bufnr('a.txt'))", json!([])) == json!(false)
    });
    editor.input(":w<CR>");
    editor.wait_until("the user's save", |e| on_disk(e, "a.txt") == "user\ntwo\n");
    assert!(!editor.is_blocked());
}

#[test]
fn a_deleted_file_is_pending_and_comes_back_with_its_bytes() {
    let setup =
        Setup::new().file("a.txt", "one\r\ntwo").file("b.bin", b"\xff\x00\nbytes\n").file("c.txt", "c\n").arg("a.txt");
    let steps =
        [tool_call("t1", "rm", "execute"), run("rm a.txt b.bin c.txt"), tool_status("t1", "completed"), gate("end")];
    let (_agent, editor) = at_work_with(setup, steps);
    changed_by_agent(&editor, 3);
    editor.wait_until("three decisions", |e| pending(e) == json!(3));
    editor.wait_transcript("The agent deleted a.txt");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two"]);
    assert!(!editor.is_blocked());
    editor.command("AgentChat reject file");
    assert_eq!(on_disk(&editor, "a.txt"), "one\r\ntwo");
    assert!(!is_modified(&editor, "a.txt"));
    editor.input(":w<CR>");
    editor.wait_until("no question", |e| !e.is_blocked());
    editor.command("AgentChat next");
    editor.command("AgentChat reject all");
    editor.wait_until("the others", |e| {
        e.file("b.bin").is_some_and(|bytes| bytes == b"\xff\x00\nbytes\n") && on_disk(e, "c.txt") == "c\n"
    });
    assert_eq!(pending(&editor), json!(0));
}

#[test]
fn a_deletion_that_is_accepted_or_saved_over_waits_no_more() {
    let setup = Setup::new().file("a.txt", "one\n").file("b.txt", "b\n").arg("a.txt");
    let steps = [tool_call("t1", "rm", "execute"), run("rm a.txt b.txt"), tool_status("t1", "completed"), gate("end")];
    let (_agent, editor) = at_work_with(setup, steps);
    editor.wait_until("two decisions", |e| pending(e) == json!(2));
    editor.input(":w<CR>");
    editor.wait_until("the user's save", |e| on_disk(e, "a.txt") == "one\n");
    editor.wait_until("one decision", |e| pending(e) == json!(1));
    editor.command("AgentChat accept all");
    assert_eq!(pending(&editor), json!(0));
    assert!(editor.file("b.txt").is_none());
}

/// What is pending in a file: facts and hunks.
fn table(editor: &Editor, name: &str) -> Json {
    let code = "local got = require('agentchat.changes').get(..., 0, 1e6)
    return { got.facts and got.facts.created, got.facts and got.facts.deleted, got.facts and got.facts.renamed_from,
      vim.iter(got.hunks):map(function(h) return { h.first, h.flags, table.concat(h.old, '|') } end):totable() }";
    editor.lua(code, json!([editor.project().canonicalize().unwrap().join(name)]))
}

#[test]
fn a_file_that_is_deleted_and_made_again_is_compared_with_what_it_was() {
    let steps = [
        tool_call("t1", "rm", "execute"),
        run("rm a.txt b.txt"),
        tool_status("t1", "completed"),
        gate("gone"),
        tool_call("t2", "make", "execute"),
        run("printf 'ONE\\ntwo\\n' > a.txt"),
        tool_status("t2", "completed"),
        gate("made"),
        write_file("b.txt", "b\nmore\n"),
        gate("end"),
    ];
    let setup = Setup::new().file("a.txt", "one\ntwo\n").file("b.txt", "b\n").arg("a.txt");
    let (agent, editor) = at_work_with(setup, steps);
    editor.wait_until("two decisions", |e| pending(e) == json!(2));
    agent.open_gate("gone");
    editor.wait_until("the new text", |e| lines_of(e, "a.txt") == ["ONE", "two"]);
    assert!(!is_modified(&editor, "a.txt"));
    assert_eq!(table(&editor, "a.txt"), json!([null, null, null, [[0, "a", "one"]]]));
    agent.open_gate("made");
    written(&agent, 1);
    assert_eq!(table(&editor, "b.txt"), json!([null, null, null, [[1, "a", ""]]]));
    editor.command("AgentChat reject all");
    editor.wait_until("the old files", |e| on_disk(e, "a.txt") == "one\ntwo\n" && on_disk(e, "b.txt") == "b\n");
}

#[test]
fn a_file_with_another_name_is_one_change() {
    let setup = Setup::new().file("a.txt", "one\ntwo\n").file("b.txt", "b\n").arg("a.txt");
    let steps = [
        tool_call("t1", "mv", "execute"),
        run("mkdir sub; mv a.txt sub/A.txt; mv b.txt B.txt"),
        tool_status("t1", "completed"),
        gate("end"),
    ];
    let (_agent, editor) = at_work_with(setup, steps);
    changed_by_agent(&editor, 4);
    editor.wait_until("two decisions", |e| pending(e) == json!(2));
    let root = editor.project().canonicalize().unwrap();
    editor.wait_until("the buffer's new name", |e| {
        e.lua("return vim.api.nvim_buf_get_name(0)", json!([])) == json!(root.join("sub/A.txt"))
    });
    assert_eq!(table(&editor, "sub/A.txt")[2], json!(root.join("a.txt")));
    assert_eq!(table(&editor, "B.txt"), json!([null, null, root.join("b.txt"), []]));
    assert!(!is_modified(&editor, "A.txt"));
    editor.input("ggAs<Esc>:w<CR>");
    editor.wait_until("the user's save under the new name", |e| on_disk(e, "sub/A.txt") == "ones\ntwo\n");
    assert!(!editor.is_blocked());
    editor.command("AgentChat reject all");
    editor.wait_until("the old names", |e| on_disk(e, "a.txt") == "ones\ntwo\n" && on_disk(e, "b.txt") == "b\n");
    assert!(editor.file("sub/A.txt").is_none() && editor.file("B.txt").is_none());
    assert_eq!(editor.lua("return vim.fn.expand('%:t')", json!([])), json!("a.txt"));
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
fn an_agent_that_writes_the_disk_and_sends_the_same_text_changes_a_file_once() {
    let steps = [
        edit_call("t1", "a.txt"),
        gate("typed"),
        write_disk("a.txt", "ONE\ntwo\nthree\n"),
        write_file("a.txt", "ONE\ntwo\nthree\n"),
        write_disk("new.txt", "new\n"),
        write_file("new.txt", "new\n"),
        tool_status("t1", "completed"),
        gate("end"),
    ];
    let (agent, editor) = at_work("one\ntwo\nthree\n", steps);
    editor.input("Gomine<Esc>");
    editor.wait_screen("mine");
    agent.open_gate("typed");
    written(&agent, 2);
    editor.wait_until("both in the buffer", |e| lines_of(e, "a.txt") == ["ONE", "two", "three", "mine"]);
    assert!(is_modified(&editor, "a.txt"));
    assert_eq!(table(&editor, "a.txt")[3], json!([[0, "a", "one"]]));
    assert_eq!(table(&editor, "new.txt"), json!([true, null, null, [[0, "a", ""]]]));
    editor.input(":w<CR>");
    editor.wait_until("the save", |e| on_disk(e, "a.txt") == "ONE\ntwo\nthree\nmine\n");
    assert!(!editor.is_blocked());
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
