//! Commands of an agent in terminals: what the agent reads, and what the user sees, types and ends.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::chat::{self, enter_code, window};
use crate::support::scenario::{Scenario, Step, end_turn, gate, request, tool_call, tool_update};
use crate::support::{Editor, ScriptedAgent, Setup, processes};

pub(crate) const CREATE: &str = "terminal/create";
pub(crate) const OUTPUT: &str = "terminal/output";
pub(crate) const WAIT: &str = "terminal/wait_for_exit";

pub(crate) fn create(params: Json) -> Step {
    let mut params = params;
    params["sessionId"] = json!("$session");
    request(CREATE, params)
}

pub(crate) fn about(method: &str) -> Step {
    request(method, json!({ "sessionId": "$session", "terminalId": "terminal-1" }))
}

/// A turn whose first request the user allows.
#[track_caller]
pub(crate) fn run(steps: impl IntoIterator<Item = Step>, setup: Setup) -> (ScriptedAgent, Editor) {
    let scenario = Scenario::new().on_prompt(steps.into_iter().chain([end_turn()]));
    let (agent, editor) = chat::open(&scenario, setup);
    editor.prompt("go");
    allow(&editor);
    (agent, editor)
}

/// The user allows what is asked, from a window that is not the chat's.
#[track_caller]
pub(crate) fn allow(editor: &Editor) {
    editor.wait_until("the permission float", |e| window(e, "agentchat_permission").is_some());
    enter_code(editor);
    let seen = Instant::now();
    editor.wait_until("that it can be read", |_| seen.elapsed() > Duration::from_millis(500));
    editor.command("AgentChat allow");
}

/// The text of the terminal's buffer.
pub(crate) fn buffer(editor: &Editor) -> String {
    let code = "
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.bo[buf].filetype == 'agentchat_terminal' then
        return table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, true), '\\n')
      end
    end
    return ''";
    editor.lua(code, json!([])).as_str().unwrap_or_default().to_owned()
}

#[track_caller]
pub(crate) fn wait_buffer(editor: &Editor, wanted: &str) {
    editor.wait_until(&format!("{wanted:?} in the terminal"), |e| buffer(e).contains(wanted));
}

#[test]
fn a_command_runs_in_a_buffer_and_the_agent_reads_clean_text() {
    let command = json!({ "command": "sh", "args": ["-c", "printf '\\033[31mred\\033[0m\\n10%%\\r100%%\\n'; exit 3"] });
    let steps = [
        create(command),
        tool_call("t", "Run", "execute"),
        tool_update("t", json!({ "content": [{ "type": "terminal", "terminalId": "terminal-1" }] })),
        about(WAIT),
        about(WAIT),
        about(OUTPUT),
        about("terminal/release"),
        about(OUTPUT),
    ];
    let (agent, editor) = run(steps, Setup::new());
    assert_eq!(agent.wait_answer(CREATE, 1)["result"], json!({ "terminalId": "terminal-1" }));
    agent.wait_answer(OUTPUT, 2);
    for exit in agent.answers(WAIT) {
        assert_eq!(exit["result"]["exitCode"], json!(3));
    }
    let output = &agent.answers(OUTPUT)[0]["result"];
    assert_eq!(output["output"], json!("red\n100%\n"));
    assert_eq!(output["truncated"], json!(false));
    assert_eq!(output["exitStatus"]["exitCode"], json!(3));
    assert!(agent.answers(OUTPUT)[1]["error"].is_object(), "the terminal is released");
    wait_buffer(&editor, "red\n100%\n[exit code 3]");
    editor.wait_transcript("│ 100%");
}

#[test]
fn a_shell_line_runs_in_a_shell_and_a_missing_program_is_an_error_at_once() {
    let line = create(json!({ "command": "echo one && echo two | tr a-z A-Z" }));
    let (agent, _editor) = run([line, about(WAIT), about(OUTPUT)], Setup::new());
    assert_eq!(agent.wait_answer(OUTPUT, 1)["result"]["output"], json!("one\nTWO\n"));

    let (agent, _editor) = run([create(json!({ "command": "no-such-program-here" }))], Setup::new());
    let error = agent.wait_answer(CREATE, 1)["error"]["message"].to_string();
    assert!(error.contains("no-such-program-here"), "{error}");
}

#[test]
fn a_rejected_command_is_not_run() {
    let scenario = Scenario::new().on_prompt([create(json!({ "command": "touch", "args": ["made"] })), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("go");
    editor.wait_until("the permission float", |e| window(e, "agentchat_permission").is_some());
    let seen = Instant::now();
    editor.wait_until("that it can be read", |_| seen.elapsed() > Duration::from_millis(500));
    editor.command("AgentChat deny");
    assert!(agent.wait_answer(CREATE, 1)["error"].is_object());
    editor.wait_state("idle");
    assert!(editor.file("made").is_none());
}

#[test]
fn the_user_types_into_a_command_and_ends_it() {
    let command =
        json!({ "command": "sh", "args": ["-c", "read x; echo got $x; trap '' TERM; sleep 300 & sleep 300"] });
    let (agent, editor) = run([create(command), about(WAIT), about(OUTPUT)], Setup::new());
    agent.wait_answer(CREATE, 1);
    editor.wait_until("the buffer", |e| e.lua("return #require('agentchat.terminals').all()", json!([])) == json!(1));
    editor.command("AgentChat terminals 1");
    editor.input("ihello<CR>");
    wait_buffer(&editor, "got hello");
    editor.input("<C-\\><C-n><C-c>");
    assert_eq!(agent.wait_answer(WAIT, 1)["result"]["signal"], json!("SIGKILL"));
    let output = &agent.wait_answer(OUTPUT, 1)["result"];
    assert!(output["output"].as_str().is_some_and(|text| text.contains("got hello")), "{output}");
    assert_eq!(output["exitStatus"]["signal"], json!("SIGKILL"));
    wait_buffer(&editor, "[SIGKILL]");
}

#[test]
fn a_flood_is_bounded_and_its_end_is_exact() {
    let command = json!({ "command": "seq", "args": ["1", "300000"], "outputByteLimit": 14 });
    let (agent, editor) = run([create(command), about(WAIT), about(OUTPUT)], Setup::new());
    let output = &agent.wait_answer(OUTPUT, 1)["result"];
    assert_eq!(output["output"], json!("299999\n300000\n"));
    assert_eq!(output["truncated"], json!(true));
    wait_buffer(&editor, "299998\n299999\n300000\n[exit code 0]");
    assert!(buffer(&editor).contains("lines are not shown"));
}

#[test]
fn no_command_outlives_a_killed_neovim() {
    let command =
        json!({ "command": "sh", "args": ["-c", "trap '' TERM HUP; echo pid $$; setsid sleep 300 & sleep 300"] });
    let (agent, mut editor) = run([create(command), gate("running")], Setup::new());
    agent.wait_gate("running");
    wait_buffer(&editor, "pid ");
    let pid: i32 = buffer(&editor).lines().find_map(|line| line.strip_prefix("pid ")?.trim().parse().ok()).unwrap();
    assert!(processes::is_alive(pid));
    editor.kill9();
    editor.wait_gone(Duration::from_secs(2));
    assert!(!processes::is_alive(pid));
}
