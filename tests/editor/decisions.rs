//! What becomes of decisions: the agent hears what was rejected, and what is committed needs no decision.

use std::process::Command;

use serde_json::{Value as Json, json};

use crate::changes::table_of;
use crate::chat::{self, enter_code};
use crate::files::{at_work_with, on_disk, written};
use crate::support::scenario::{Scenario, end_turn, gate, read_file, write_file};
use crate::support::{Editor, ScriptedAgent, Setup};

const OLD: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
const NEW: &str = "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n";

#[track_caller]
fn pending(editor: &Editor) -> usize {
    table_of(editor, &editor.project().join("a.txt")).0.len()
}

/// All that a prompt of the user's was sent as.
fn texts(prompt: &Json) -> String {
    let blocks = prompt["params"]["prompt"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("|")
}

/// An agent that has written `a.txt` and waits for the next prompt.
#[track_caller]
fn written_once(setup: Setup) -> (ScriptedAgent, Editor) {
    let scenario = Scenario::new().on_prompt([write_file("a.txt", NEW), end_turn()]);
    let (agent, editor) = chat::open(&scenario, setup.file("a.txt", OLD).arg("a.txt"));
    enter_code(&editor);
    editor.prompt("go");
    written(&agent, 1);
    editor.wait_state("idle");
    (agent, editor)
}

#[test]
fn the_agent_hears_of_rejections_with_the_next_prompt_and_once() {
    let (agent, editor) = written_once(Setup::new());
    editor.command("2 | AgentChat reject");
    assert_eq!(pending(&editor), 1);
    editor.prompt("and now?");
    let said = texts(&agent.wait_received("session/prompt", 2));
    assert!(said.starts_with("and now?|") && said.contains("rejected") && said.contains("a.txt:2: `two`"), "{said}");
    assert!(!said.contains("eight"), "{said}");
    editor.wait_transcript("The agent is told of 1 rejected change in a.txt.");
    editor.wait_state("idle");
    editor.prompt("again");
    assert_eq!(texts(&agent.wait_received("session/prompt", 3)), "again");
}

#[test]
fn the_agent_hears_that_its_version_was_rejected_as_a_whole() {
    let steps = [read_file("a.txt"), gate("busy"), write_file("a.txt", "ONE\ntwo\n"), end_turn()];
    let setup = Setup::new().file("a.txt", "one\ntwo\n").arg("a.txt").config("timeouts", json!({ "busy": 200 }));
    let (agent, editor) = chat::open(&Scenario::new().on_prompt(steps), setup);
    enter_code(&editor);
    editor.prompt("go");
    agent.wait_gate("busy");
    editor.input("ggA");
    editor.wait_until("insert mode", |e| e.lua("return vim.api.nvim_get_mode().mode", json!([])) == json!("i"));
    agent.open_gate("busy");
    written(&agent, 1);
    editor.input(" mine<Esc>");
    editor.wait_screen("the agent's version differs");
    editor.wait_state("idle");
    editor.command("AgentChat reject file");
    editor.prompt("and now?");
    let said = texts(&agent.wait_received("session/prompt", 2));
    assert!(said.contains("rejected") && said.contains("from `ONE` on"), "{said}");
}

#[test]
fn a_rejection_that_was_undone_is_not_told() {
    let (agent, editor) = written_once(Setup::new());
    editor.command("2 | AgentChat reject");
    editor.input("u");
    editor.wait_until("both are pending", |e| pending(e) == 2);
    editor.prompt("and now?");
    assert_eq!(texts(&agent.wait_received("session/prompt", 2)), "and now?");
}

#[test]
fn a_user_may_keep_rejections_to_themselves() {
    let (agent, editor) = written_once(Setup::new().config("changes", json!({ "tell_rejections": false })));
    editor.command("AgentChat reject all");
    editor.prompt("and now?");
    assert_eq!(texts(&agent.wait_received("session/prompt", 2)), "and now?");
}

// -- commits

fn git(editor: &Editor, arguments: &[&str]) {
    let who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
    let done = Command::new("git").arg("-C").arg(editor.project()).args(who).args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// In a repository in which `a.txt` is committed, the agent writes it and, after the gate `more`, again.
#[track_caller]
fn in_repository(setup: Setup) -> (ScriptedAgent, Editor) {
    let steps = [
        gate("ready"),
        write_file("a.txt", NEW),
        gate("more"),
        write_file("a.txt", &NEW.replace("5\n", "five\n")),
        gate("end"),
    ];
    let (agent, editor) = at_work_with(setup.file("a.txt", OLD), steps);
    git(&editor, &["init", "-q"]);
    git(&editor, &["add", "a.txt"]);
    git(&editor, &["commit", "-qm", "old"]);
    agent.open_gate("ready");
    written(&agent, 1);
    editor.wait_until("pending changes", |e| pending(e) == 2);
    (agent, editor)
}

#[test]
fn what_is_committed_is_accepted_and_the_user_told() {
    for setup in [Setup::new().arg("a.txt"), Setup::new()] {
        let (agent, editor) = in_repository(setup);
        git(&editor, &["add", "a.txt"]);
        assert_eq!(pending(&editor), 2);
        git(&editor, &["commit", "-qm", "new"]);
        let index = std::fs::read(editor.project().join(".git/index")).unwrap();
        editor.wait_until("nothing is pending", |e| pending(e) == 0);
        editor.wait_screen("accepted 2 changes in a.txt: committed");
        assert_eq!(std::fs::read(editor.project().join(".git/index")).unwrap(), index, "the index is the user's");
        agent.open_gate("more");
        written(&agent, 2);
        assert_eq!(pending(&editor), 1);
        git(&editor, &["commit", "-qam", "newer"]);
        editor.wait_until("nothing is pending", |e| pending(e) == 0);
        assert_eq!(on_disk(&editor, "a.txt"), NEW.replace("5\n", "five\n"));
    }
}

#[test]
fn what_a_commit_leaves_out_stays_pending() {
    let (_agent, editor) = in_repository(Setup::new().arg("a.txt"));
    // Only the first of the two, as with `git add --patch`.
    std::fs::write(editor.project().join("part"), OLD.replace("2\n", "two\n")).unwrap();
    let blob = Command::new("git").current_dir(editor.project()).args(["hash-object", "-w", "part"]).output().unwrap();
    let blob = String::from_utf8(blob.stdout).unwrap();
    git(&editor, &["update-index", "--cacheinfo", &format!("100644,{},a.txt", blob.trim())]);
    git(&editor, &["commit", "-qm", "a part"]);
    editor.wait_until("one is accepted", |e| pending(e) == 1);
    let path = editor.project().join("a.txt");
    assert_eq!(table_of(&editor, &path).0[0].old, ["8"]);
    editor.command("AgentChat reject all");
    assert_eq!(on_disk(&editor, "a.txt"), OLD.replace("2\n", "two\n"));
}
