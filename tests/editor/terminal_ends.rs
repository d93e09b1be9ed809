//! No process of any terminal outlives what it was started for.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::chat;
use crate::helper_life::guard_and_helper;
use crate::support::scenario::{Step, gate};
use crate::support::{Editor, ScriptedAgent, Setup, processes};
use crate::terminals::{CREATE, WAIT, about, buffer, create, run, wait_buffer};

const GONE: Duration = Duration::from_secs(2);

/// A command with two children in its group, one in a session of its own, and one that was forked twice; all ignore what asks
/// them to end. Each tells its id, in any order.
fn stubborn() -> Json {
    let script = "
        trap '' TERM HUP INT
        tell='echo pid $$; exec sleep 300'
        sh -c 'echo grouped $$; exec sleep 300' &
        setsid sh -c \"$tell\" &
        (setsid sh -c \"$tell\" </dev/tty &)
        sh -c 'echo grouped $$; while :; do sleep 1; done'
    ";
    json!({ "command": "sh", "args": ["-c", script] })
}

/// The ids that were told; those of the command's group come first.
fn pids(editor: &Editor) -> Vec<i32> {
    let buffer = buffer(editor);
    let told = |word: &'static str| {
        buffer.lines().filter_map(move |line| line.trim().strip_prefix(word)?.trim().parse::<i32>().ok())
    };
    told("grouped").chain(told("pid")).collect()
}

#[track_caller]
fn started(steps: impl IntoIterator<Item = Step>) -> (ScriptedAgent, Editor, Vec<i32>) {
    let (agent, editor) = run([create(stubborn())].into_iter().chain(steps), Setup::new());
    agent.wait_answer(CREATE, 1);
    editor.wait_until("all four processes", |e| pids(e).len() == 4);
    let pids = pids(&editor);
    assert!(pids.iter().all(|&pid| processes::is_alive(pid)));
    (agent, editor, pids)
}

#[track_caller]
fn wait_dead(editor: &Editor, pids: &[i32]) {
    let asked = std::time::Instant::now();
    editor.wait_until("that all are dead", |_| !pids.iter().any(|&pid| processes::is_alive(pid)));
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[test]
fn nothing_is_left_of_a_neovim_that_quits() {
    let (_agent, mut editor, _) = started([gate("end")]);
    editor.quit();
    editor.wait_gone(GONE);
}

#[test]
fn nothing_is_left_of_a_neovim_that_is_killed() {
    let (_agent, mut editor, _) = started([gate("end")]);
    editor.kill9();
    editor.wait_gone(GONE);
}

#[test]
fn nothing_is_left_of_a_helper_that_is_killed() {
    let (_agent, editor, pids) = started([gate("end")]);
    processes::kill9(guard_and_helper(&editor).1);
    wait_dead(&editor, &pids);
    editor.wait_state("failed");
    assert!(buffer(&editor).contains("pid "), "what was on the terminal can still be read");
}

#[test]
fn the_commands_of_an_agent_that_is_killed_end_with_it() {
    let (agent, editor, pids) = started([gate("end")]);
    processes::kill9(agent.pids()[0]);
    editor.wait_state("failed");
    // The children that left the terminal's session are the guard's part, at the end.
    wait_buffer(&editor, "[SIGKILL]");
    wait_dead(&editor, &pids[..2]);
}

#[test]
fn a_kill_of_the_user_ends_the_whole_group_whatever_it_ignores() {
    let (agent, editor, _) = started([about(WAIT), gate("end")]);
    editor.command("AgentChat! terminals 1");
    assert_eq!(agent.wait_answer(WAIT, 1)["result"]["signal"], json!("SIGKILL"));
    wait_buffer(&editor, "[SIGKILL]");
}

#[test]
fn a_chat_that_is_closed_takes_its_commands_along() {
    let (_agent, editor, pids) = started([gate("end")]);
    editor.lua("for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      local filetype = vim.bo[buf].filetype
      if filetype == 'agentchat' or filetype == 'agentchat_prompt' then vim.api.nvim_buf_delete(buf, { force = true }) end
    end", json!([]));
    wait_buffer(&editor, "[SIGKILL]");
    assert!(!pids.is_empty());
    chat::enter_code(&editor);
}
