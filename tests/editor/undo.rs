//! `:AgentChat undo`: what the agent did to files is taken back, what the user did stays.

use serde_json::json;

use crate::files::{at_work, at_work_with, is_modified, lines_of, on_disk, written};
use crate::support::scenario::{
    Scenario, edit_call, end_turn, gate, read_file, run, tool_call, tool_status, write_disk, write_file,
};
use crate::support::{Editor, Setup, processes};

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

/// Ends the helper as a crash would, and starts it again.
#[track_caller]
fn crash_and_restart(editor: &Editor) {
    let is_helper = |line: &str| line.contains("agentchat") && line.contains(" nvim");
    for process in editor.processes().iter().filter(|process| is_helper(&process.command)) {
        processes::kill9(process.pid);
    }
    editor.wait_state("failed");
    editor.command("AgentChat restart");
    editor.wait_state("idle");
}

#[test]
fn turns_from_before_a_crash_of_the_helper_can_be_undone() {
    let steps =
        |text: &str| [write_file("a.txt", text), write_file(&format!("{}.txt", text.trim()), "new\n"), end_turn()];
    let scenario = Scenario::new().on_prompt(steps("one\n")).on_prompt(steps("two\n"));
    let setup = Setup::new().file("a.txt", "zero\n").arg("a.txt");
    let (_agent, mut editor) = crate::chat::open(&scenario, setup);
    crate::chat::enter_code(&editor);
    for turn in 1..=2 {
        editor.prompt("go");
        editor.wait_until("the turn's end", |e| e.events("AgentChatTurnEnd").len() == turn);
    }
    let kept = editor.xdg("state").join("agentchat/checkpoints");
    let noted = |editor: &Editor, count: usize| {
        editor.wait_until("the notes for the next helper", |_| {
            let folder = std::fs::read_dir(&kept).unwrap().flatten().next();
            let lines = folder.and_then(|folder| std::fs::read_to_string(folder.path().join("turns-1.jsonl")).ok());
            lines.is_some_and(|lines| lines.lines().count() >= count)
        });
    };
    noted(&editor, 4);
    crash_and_restart(&editor);
    editor.command("AgentChat undo");
    editor.wait_transcript("Undo of turn 2: restored: a.txt, two.txt.");
    assert_eq!((on_disk(&editor, "a.txt").as_str(), editor.file("two.txt")), ("one\n", None));
    // A new turn is counted on from there.
    editor.prompt("go");
    editor.wait_until("the turn's end", |e| e.events("AgentChatTurnEnd").len() == 3);
    assert_eq!(editor.status()["turn"], json!(3));
    noted(&editor, 4);
    crash_and_restart(&editor);
    editor.command("AgentChat undo 1");
    editor.wait_transcript("Undo of turn 1: restored: a.txt, one.txt.");
    assert_eq!((on_disk(&editor, "a.txt").as_str(), editor.file("one.txt")), ("zero\n", None));
    assert_eq!(lines_of(&editor, "a.txt"), ["zero"]);
    editor.quit();
    editor.wait_until("nothing to be left once Neovim is gone", |_| std::fs::read_dir(&kept).unwrap().count() == 0);
}

#[test]
fn a_helper_that_ends_while_neovim_lives_leaves_what_can_be_undone() {
    let scenario = Scenario::new().on_prompt([write_file("a.txt", "one\n"), end_turn()]);
    let (_agent, mut editor) = crate::chat::open(&scenario, Setup::new().file("a.txt", "zero\n").arg("a.txt"));
    crate::chat::enter_code(&editor);
    editor.prompt("go");
    editor.wait_until("the turn's end", |e| e.events("AgentChatTurnEnd").len() == 1);
    let (guard, helper) = crate::helper_life::guard_and_helper(&editor);
    // Without its guard the helper ends in good order.
    processes::kill9(guard);
    editor.wait_state("failed");
    editor.wait_until("the helper's end", |e| e.processes().iter().all(|process| process.pid != helper));
    editor.command("AgentChat restart");
    editor.wait_state("idle");
    editor.command("AgentChat undo 1");
    editor.wait_transcript("Undo of turn 1: restored: a.txt.");
    assert_eq!(on_disk(&editor, "a.txt"), "zero\n");
    let kept = editor.xdg("state").join("agentchat/checkpoints");
    editor.quit();
    editor.wait_until("nothing to be left once Neovim is gone", |_| std::fs::read_dir(&kept).unwrap().count() == 0);
}

#[test]
fn stashes_and_submodules_stay_what_they_are_and_their_files_come_back() {
    let setup = Setup::new().file("a.txt", "old\n").file("sub/s.txt", "sub\n").file("named\\C:\\x.txt", "odd\n");
    let steps = [
        tool_call("t1", "sh work.sh", "execute"),
        gate("ready"),
        run("echo agent > a.txt; echo agent > sub/s.txt; echo agent > 'named\\C:\\x.txt'"),
        tool_status("t1", "completed"),
    ];
    let (agent, editor) = at_work_with(setup, steps);
    let sh = |line: &str| {
        let who = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com GIT_COMMITTER_NAME=a \
                   GIT_COMMITTER_EMAIL=a@example.com; ";
        let mut command = std::process::Command::new("sh");
        let done = command.args(["-ec", &format!("{who}{line}")]).current_dir(editor.project()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    sh(
        "git init -q sub && git -C sub add -A && git -C sub commit -qm sub && git init -q . && git add -A && git commit -qm one",
    );
    sh("echo stashed > a.txt && git stash -q && printf 'old\\n' > a.txt && echo staged > b.txt && git add b.txt");
    let state = "git ls-files -s; git stash list; git branch -a; git -C sub status --porcelain; git rev-parse HEAD";
    let before = sh(state);
    // What git does is not the agent's: it is over before the agent's command.
    agent.wait_gate("ready");
    let index = editor.project().join(".git/index");
    editor.wait_until("git to be long done", |_| {
        let written = std::fs::metadata(&index).unwrap().modified().unwrap();
        written.elapsed().is_ok_and(|age| age.as_millis() > 2_500)
    });
    agent.open_gate("ready");
    changed_files(&editor, 3);
    undo(&editor, "", "restored: a.txt, named\\C:\\x.txt, sub/s.txt");
    for (name, text) in [("a.txt", "old\n"), ("sub/s.txt", "sub\n"), ("named\\C:\\x.txt", "odd\n")] {
        assert_eq!(on_disk(&editor, name), text);
    }
    assert_eq!(sh(state), before);
}

#[test]
fn what_is_too_large_is_listed_and_links_keep_leading_where_they_led() {
    let large = "x".repeat(2 << 20);
    let setup = Setup::new().file("large.txt", &large).file("real.txt", "real\n").arg("link.txt");
    let steps = [
        gate("linked"),
        tool_call("t1", "sh work.sh", "execute"),
        run("echo agent > large.txt; echo agent > link.txt"),
        tool_status("t1", "completed"),
    ];
    let (agent, editor) = at_work_with(setup, steps);
    agent.wait_gate("linked");
    let link = editor.project().join("link.txt");
    std::os::unix::fs::symlink("real.txt", &link).unwrap();
    editor.command("edit link.txt");
    agent.open_gate("linked");
    changed_files(&editor, 2);
    editor.wait_until("the buffer follows", |e| lines_of(e, "link.txt") == ["agent"]);
    undo(&editor, "", "could not be restored: large.txt (it is larger");
    assert!(editor.transcript_has("restored: real.txt"), "{}", editor.transcript_text());
    assert_eq!(on_disk(&editor, "real.txt"), "real\n");
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(lines_of(&editor, "link.txt"), ["real"]);
}
