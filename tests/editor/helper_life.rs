//! The helper's life: not there, not ours, killed; and what is left when Neovim goes.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rmpv::Value;
use serde_json::json;
use tempfile::TempDir;

use crate::chat::{self, prompt_text, prompts, times_in_messages, wait_prompt_text};
use crate::support::scenario::{
    Scenario, ask_permission, chunk, end_turn, gate, spawn_child_with_pipes, spawn_stubborn_child,
};
use crate::support::{Editor, ScriptedAgent, Setup, processes};

/// What Neovim may leave behind, and for how long.
const SOON: Duration = Duration::from_secs(2);

/// A program in a folder of its own that stands in for the helper.
fn program(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("helper");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The chat with that program as helper, once it failed.
#[track_caller]
fn failed_with(program: &Path) -> Editor {
    failed_with_setup(Setup::new().config("binary", json!(program)))
}

#[track_caller]
fn failed_with_setup(setup: Setup) -> Editor {
    let (_agent, editor) = chat::start(&Scenario::new(), setup);
    editor.input(":AgentChat<CR>");
    editor.wait_until("the windows, all the same", chat::is_open);
    editor.wait_state("failed");
    let error = editor.status()["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains(":AgentChat restart"), "it says what to do: {error}");
    assert_eq!(times_in_messages(&editor, "agentchat: "), 1, "one message: {}", editor.messages());
    editor
}

/// The process that Neovim started (the guard), and the helper below it.
#[track_caller]
pub(crate) fn guard_and_helper(editor: &Editor) -> (i32, i32) {
    let pids: Vec<i32> = editor
        .processes()
        .into_iter()
        .filter(|process| process.command.contains("agentchat nvim"))
        .map(|process| process.pid)
        .collect();
    let parent = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        after_name.split(' ').nth(1).and_then(|id| id.parse::<i32>().ok())
    };
    let neovim = i32::try_from(editor.pid()).ok();
    let guard = pids.iter().copied().find(|&pid| parent(pid) == neovim);
    let guard = guard.unwrap_or_else(|| editor.fail(&format!("Neovim started none of {pids:?}")));
    let helper = pids.iter().copied().find(|&pid| parent(pid) == Some(guard));
    (guard, helper.unwrap_or_else(|| editor.fail(&format!("the guard started none of {pids:?}"))))
}

#[test]
fn a_helper_that_is_missing_can_be_built_and_started() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("agentchat");
    let editor = failed_with(&path);
    assert!(editor.messages().contains(path.to_str().unwrap()));
    editor.input("ikept<Esc>");
    wait_prompt_text(&editor, "kept");
    editor.input("<CR>");
    editor.wait_until("that nothing is sent", |e| e.messages().contains("not sent"));
    assert_eq!(prompt_text(&editor), "kept");
    symlink(env!("CARGO_BIN_EXE_agentchat"), &path).unwrap();
    editor.command("AgentChat restart");
    editor.wait_state("idle");
}

#[test]
fn programs_that_are_no_helper_are_one_message() {
    for program in ["/bin/true", "/bin/cat"] {
        let editor = failed_with(Path::new(program));
        assert!(editor.messages().contains("the helper ended (exit code"), "{}", editor.messages());
    }
}

#[test]
fn a_program_that_talks_nonsense_is_ended() {
    let folder = TempDir::new().unwrap();
    for script in ["exec cat", "echo nonsense; exec sleep 300", "exec sleep 300"] {
        let program = program(folder.path(), script);
        let setup = Setup::new().config("binary", json!(program)).config("timeouts", json!({ "spawn": 500 }));
        let editor = failed_with_setup(setup);
        wait_alone(&editor);
        editor.input("istill usable<Esc>");
        wait_prompt_text(&editor, "still usable");
    }
}

#[test]
fn a_helper_of_another_version_says_which_command_to_run() {
    let folder = TempDir::new().unwrap();
    for (version, interface) in [("9.9.9", 1), (env!("CARGO_PKG_VERSION"), 99)] {
        let info = Value::Map(vec![
            ("version".into(), version.into()),
            ("interface".into(), interface.into()),
            ("agents".into(), Value::Array(Vec::new())),
        ]);
        let arguments = vec!["require('agentchat.hand').ready(...)".into(), Value::Array(vec![info])];
        let call = Value::Array(vec![0.into(), 1.into(), "nvim_exec_lua".into(), Value::Array(arguments)]);
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &call).unwrap();
        fs::write(folder.path().join("call"), bytes).unwrap();
        // Its stdout stays open: Neovim would close a channel that ended, with what it has not done yet.
        let script = format!("cat {}/call; exec cat 3>&1 >/dev/null", folder.path().display());
        let editor = failed_with(&program(folder.path(), &script));
        let error = editor.status()["error"].as_str().unwrap().to_owned();
        assert!(
            error.contains("cargo build --release") && error.contains(&format!("{version}/{interface}")),
            "{error}"
        );
        wait_alone(&editor);
    }
}

/// Waits until Neovim has no process but the one that parses code, with which the helper has nothing to do.
#[track_caller]
fn wait_alone(editor: &Editor) {
    let own = i32::try_from(editor.pid()).unwrap();
    editor.wait_until("the end of all that the helper started", |e| {
        e.processes()
            .iter()
            .all(|process| process.pid == own || process.command.contains(" --embed --headless -u NONE"))
    });
}

#[test]
fn a_killed_helper_costs_the_turn_and_nothing_that_the_user_wrote() {
    let scenario = Scenario::new()
        .on_prompt([spawn_stubborn_child(true), chunk("working on it"), gate("never")])
        .on_prompt([chunk("as good as new"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("first");
    editor.wait_transcript("working on it");
    editor.prompt("second, queued");
    editor.wait_until("the queued prompt", |e| chat::winbar(e).contains("1 queued"));
    editor.input("iunsent draft<Esc>");
    wait_prompt_text(&editor, "unsent draft");
    processes::kill9(guard_and_helper(&editor).1);
    editor.wait_state("failed");
    assert_eq!(times_in_messages(&editor, "agentchat: "), 1, "{}", editor.messages());
    assert!(editor.messages().contains("the helper ended (signal 9)"), "{}", editor.messages());
    assert_eq!(prompt_text(&editor), "unsent draft\nsecond, queued");
    wait_alone(&editor);

    editor.command("AgentChat restart");
    editor.wait_state("idle");
    assert_eq!(prompt_text(&editor), "unsent draft\nsecond, queued");
    let old = editor.lua(
        "return vim.iter(vim.api.nvim_list_bufs()):any(function(buf)
           return vim.iter(vim.api.nvim_buf_get_lines(buf, 0, -1, true)):any(function(line)
             return line:find('working on it', 1, true) ~= nil
           end)
         end)",
        json!([]),
    );
    assert_eq!(old, json!(true), "the old text can still be read");
    editor.input("<CR>");
    editor.wait_until("the prompt", |_| {
        prompts(&agent).last().is_some_and(|text| text == "unsent draft\nsecond, queued")
    });
}

#[test]
fn a_killed_guard_takes_everything_with_it() {
    let scenario = Scenario::new().on_prompt([chunk("working on it"), gate("never")]);
    let (_agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("first");
    editor.wait_transcript("working on it");
    processes::kill9(guard_and_helper(&editor).0);
    editor.wait_state("failed");
    wait_alone(&editor);
    editor.command("AgentChat restart");
    editor.wait_state("idle");
}

/// An agent that does not want to end, with children that do not either.
fn stubborn() -> Scenario {
    const SIGHUP: i32 = 1;
    const SIGTERM: i32 = 15;
    Scenario::new().ignoring_eof().ignoring_signals(&[SIGHUP, SIGTERM]).on_prompt([
        spawn_stubborn_child(false),
        spawn_stubborn_child(true),
        spawn_child_with_pipes(),
        chunk("settled in"),
        gate("never"),
    ])
}

fn settled(scenario: &Scenario) -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::open(scenario, Setup::new());
    editor.prompt("go");
    editor.wait_transcript("settled in");
    assert_eq!(agent.spawned().len(), 3);
    (agent, editor)
}

#[test]
fn nothing_outlives_a_killed_neovim() {
    let (_agent, mut editor) = settled(&stubborn());
    editor.kill9();
    editor.wait_gone(SOON);
}

#[test]
fn nothing_outlives_a_neovim_that_quits() {
    let (_agent, mut editor) = settled(&stubborn());
    let (status, took) = editor.quit();
    assert!(status.success(), "{status}");
    assert!(took < SOON, "quitting took {took:?}");
    editor.wait_gone(SOON);
}

#[test]
fn quitting_waits_for_nobody() {
    let (_agent, mut editor) = chat::open(&Scenario::new(), Setup::new());
    let (status, took) = editor.quit();
    assert!(status.success(), "{status}");
    assert!(took < SOON, "quitting took {took:?}");
    editor.wait_gone(SOON);
}

#[test]
fn a_killed_helper_takes_its_permission_requests_along() {
    let scenario = Scenario::new().on_prompt([ask_permission("t1", "Run it")]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("go");
    editor.wait_until("the float", |e| chat::window(e, "agentchat_permission").is_some());
    processes::kill9(guard_and_helper(&editor).1);
    editor.wait_state("failed");
    editor.wait_until("no float", |e| chat::window(e, "agentchat_permission").is_none());
    editor.wait_until("the agent's end", |_| !processes::is_alive(agent.pids()[0]));
    assert_eq!(editor.status()["permissions"], json!(0));
}

#[test]
fn a_restart_after_a_killed_helper_is_for_every_chat() {
    let scenario = Scenario::new().on_prompt([chunk("of $session"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("one");
    editor.wait_transcript("of session-1.1");
    editor.command("tabnew");
    editor.command("AgentChat");
    editor.prompt("two");
    editor.wait_transcript("of session-1.2");
    processes::kill9(guard_and_helper(&editor).1);
    editor.wait_state("failed");
    editor.command("tabfirst");
    assert_eq!(editor.state(), "failed");
    assert_eq!(times_in_messages(&editor, "the helper ended"), 1);
    editor.command("AgentChat restart");
    for tab in ["tabfirst", "tablast"] {
        editor.command(tab);
        editor.wait_state("idle");
        assert!(chat::is_open(&editor));
        editor.prompt(&format!("again in {tab}"));
        editor.wait_until("the reply", |e| e.transcript().iter().any(|line| line.contains("of session-2.")));
    }
    assert_eq!(agent.pids().len(), 2, "one process serves both");
}

#[test]
fn a_helper_that_is_killed_again_and_again_is_told_each_time() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    for round in 1..=3 {
        processes::kill9(guard_and_helper(&editor).1);
        editor.wait_state("failed");
        editor.wait_until("the message", |e| times_in_messages(e, "the helper ended") == round);
        editor.command("AgentChat restart");
        editor.wait_state("idle");
    }
}

#[test]
fn nothing_outlives_a_neovim_that_is_killed_during_the_start() {
    let scenario = stubborn().on_initialize([spawn_stubborn_child(true), gate("never")]);
    let start = || {
        let (agent, editor) = chat::start(&scenario, Setup::new());
        editor.input(":AgentChat<CR>");
        (agent, editor)
    };
    let (_agent, mut editor) = start();
    editor.wait_until("the guard", |e| e.processes().len() > 1);
    editor.kill9();
    editor.wait_gone(SOON);

    let (agent, mut editor) = start();
    agent.wait_gate("never");
    editor.kill9();
    editor.wait_gone(SOON);

    let (agent, mut editor) = start();
    agent.wait_gate("never");
    let (status, took) = editor.quit();
    assert!(status.success() && took < SOON, "{status} after {took:?}");
    editor.wait_gone(SOON);
}

#[test]
fn what_to_do_after_a_failure_is_on_a_small_screen_too_and_nothing_seems_to_wait() {
    let long = "a line\n".repeat(39) + "the last line";
    let scenario = Scenario::new().on_prompt([chunk(&long), gate("never")]);
    let (_agent, editor) = chat::open(&scenario, Setup::new().size(80, 20).init("vim.o.cmdheight = 0"));
    editor.prompt("go");
    editor.wait_transcript("the last line");
    editor.prompt("queued prompt");
    editor.wait_transcript("⏳ queued: queued prompt");
    processes::kill9(guard_and_helper(&editor).1);
    editor.wait_state("failed");
    wait_prompt_text(&editor, "queued prompt");
    // The message is gone with the next key; the chat still says it.
    editor.input("<C-l>");
    editor.wait_screen("AgentChat restart");
    assert!(!editor.transcript_has("⏳"), "{}", editor.transcript_text());
    assert_eq!(editor.transcript().last().unwrap(), "the last line");
}

#[test]
fn a_message_that_is_too_long_for_the_screen_says_what_to_do() {
    let (_agent, editor) = chat::start(&Scenario::new(), Setup::new().size(80, 20));
    let said = |text: &str| {
        editor.lua("require('agentchat.message').show('error', ...)", json!([text]));
        editor.messages().lines().last().unwrap().to_owned()
    };
    let long = "something of a rather long description went wrong in some place".repeat(2);
    assert!(said(&format!("{long}; :AgentChat restart")).ends_with("…; :AgentChat restart"));
    let cut = said(&format!("{long}; {long}"));
    assert!(cut.starts_with("agentchat: something") && cut.contains("…; something of"), "{cut}");
    assert!(said(&long).ends_with('…'));
    assert_eq!(said("short; do it"), "agentchat: short; do it");
}
