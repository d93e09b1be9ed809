//! From `:AgentChat` to a session: slow agents, agents that fail, starts that the user gives up.

use serde_json::json;

use crate::chat::{self, prompt_text, prompts, times_in_messages, wait_prompt_text, winbar};
use crate::support::scenario::{
    Scenario, ask_permission, chunk, end_turn, exit, gate, initialized, new_session, reply, reply_error, send, stderr,
};
use crate::support::{Editor, Setup};

#[track_caller]
fn wait_phase(editor: &Editor, phase: &str) {
    editor.wait_until(&format!("the phase {phase}"), |e| {
        let status = e.status();
        status["state"] == json!("starting") && status["phase"] == json!(phase)
    });
    editor.wait_until("the phase in the bar", |e| winbar(e).contains(phase));
}

/// Restarts as often as the time limit strikes, which on a loaded machine may hit a good agent too.
#[track_caller]
fn restart_until_idle(editor: &Editor) {
    editor.wait_until("a session after a restart", |e| {
        let state = e.state();
        if state == "failed" {
            e.command("AgentChat restart");
            e.wait_until("the restart", |e| e.state() != "failed");
        }
        state == "idle"
    });
}

#[test]
fn the_chat_is_usable_while_the_agent_is_slow() {
    let scenario = Scenario::new()
        .on_initialize([gate("initialize"), initialized(json!({}))])
        .on_new_session([gate("session"), new_session()])
        .on_prompt([chunk("Hello"), end_turn()]);
    let (agent, editor) = chat::start(&scenario, Setup::new());
    editor.command("AgentChat");
    assert!(chat::is_open(&editor), "the windows are there when the command returns");
    assert_eq!(editor.state(), "starting");
    agent.wait_gate("initialize");
    wait_phase(&editor, "initialize");
    editor.input("iearly<C-s>next");
    wait_prompt_text(&editor, "next");
    editor.wait_until("the prompt shown as queued", |e| winbar(e).contains("1 queued"));
    agent.open_gate("initialize");
    agent.wait_gate("session");
    wait_phase(&editor, "session");
    editor.input(" one");
    wait_prompt_text(&editor, "next one");
    assert!(prompts(&agent).is_empty(), "nothing can be sent yet");
    agent.open_gate("session");
    editor.wait_transcript("Hello");
    assert_eq!(prompts(&agent), ["early"]);
    assert_eq!(prompt_text(&editor), "next one");
    assert_eq!(editor.screen().mode(), "insert");
}

#[test]
fn two_chats_start_on_one_slow_agent() {
    let scenario = Scenario::new()
        .on_initialize([gate("initialize"), initialized(json!({}))])
        .on_prompt([chunk("for $session"), end_turn()]);
    let (agent, editor) = chat::start(&scenario, Setup::new());
    editor.command("AgentChat");
    editor.prompt("one");
    editor.command("tabnew");
    editor.command("AgentChat");
    editor.prompt("two");
    agent.wait_gate("initialize");
    agent.open_gate("initialize");
    editor.wait_transcript("for session-1.1");
    editor.wait_transcript("for session-1.2");
    editor.wait_state("idle");
    assert_eq!(agent.pids().len(), 1);
    let session = editor.status()["session_id"].clone();
    assert!(editor.transcript_text().contains(&format!("for {}", session.as_str().unwrap())));
    editor.command("tabfirst");
    assert_ne!(editor.status()["session_id"], session, "the status is that of the chat in this tab page");
}

#[test]
fn an_agent_that_never_answers_initialize_is_given_up() {
    let scenario = Scenario::new().on_initialize([gate("answer"), initialized(json!({}))]);
    let (agent, editor) = chat::start(&scenario, Setup::new().config("timeouts", json!({ "initialize": 300 })));
    editor.command("AgentChat");
    editor.wait_state("failed");
    let problem = "scripted did not answer `initialize` within 0.3 s";
    editor.wait_until("the message", |e| e.messages().contains(problem));
    editor.wait_transcript(problem);
    assert!(editor.status()["error"].as_str().unwrap().contains(":AgentChat restart"));
    assert_eq!(times_in_messages(&editor, problem), 1);
    agent.open_gate("answer");
    restart_until_idle(&editor);
    assert!(agent.pids().len() >= 2);
}

#[test]
fn an_agent_that_never_answers_session_new_is_given_up() {
    let scenario = Scenario::new().on_new_session([gate("answer"), new_session()]);
    let (agent, editor) = chat::start(&scenario, Setup::new().config("timeouts", json!({ "session_new": 1500 })));
    editor.command("AgentChat");
    editor.prompt("kept");
    editor.wait_state("failed");
    editor.wait_until("the message", |e| e.messages().contains("scripted did not answer `session/new` within 1.5 s"));
    agent.open_gate("answer");
    restart_until_idle(&editor);
    assert!(agent.pids().len() >= 2, "a process that does not answer is not asked again");
    agent.wait_received("session/prompt", 1);
    assert_eq!(prompts(&agent), ["kept"]);
}

#[test]
fn an_agent_that_exits_is_shown_with_its_code_and_last_words() {
    let scenario = Scenario::new().on_start([stderr("no API key"), stderr("giving up"), exit(3)]);
    let (_agent, editor) = chat::start(&scenario, Setup::new());
    editor.command("AgentChat");
    editor.wait_state("failed");
    editor.wait_transcript("exit code 3");
    editor.wait_transcript("no API key");
    editor.wait_transcript("giving up");
    assert_eq!(times_in_messages(&editor, "exit code 3"), 1);
    let errors = editor.events("AgentChatError");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0]["message"].as_str().unwrap().contains("exit code 3"));
}

#[test]
fn an_agent_that_exits_without_a_word_is_a_failure_too() {
    let (_agent, editor) = chat::start(&Scenario::new().on_start([exit(0)]), Setup::new());
    editor.command("AgentChat");
    editor.wait_state("failed");
    editor.wait_transcript("exit code 0");
    editor.wait_until("the message", |e| e.messages().contains(":AgentChat restart"));
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let setup = Setup::new().agent_command("gone", &["/nowhere/agent".to_owned()]);
    let editor = Editor::start(setup);
    editor.command("AgentChat");
    editor.wait_state("failed");
    editor.wait_transcript("/nowhere/agent");
    assert_eq!(times_in_messages(&editor, "gone could not be started"), 1);
}

#[test]
fn another_version_of_the_protocol_is_said() {
    let scenario = Scenario::new().on_initialize([reply(json!({ "protocolVersion": 7, "agentCapabilities": {} }))]);
    let (agent, editor) = chat::start(&scenario, Setup::new());
    editor.command("AgentChat");
    editor.wait_state("failed");
    editor.wait_transcript("version 7 of the Agent Client Protocol");
    editor.wait_until("the agent's end", |_| !crate::support::processes::is_alive(agent.pids()[0]));
}

#[test]
fn a_session_that_needs_a_sign_in_says_so() {
    let scenario = Scenario::new().on_new_session([reply_error(-32000, "Authentication required")]);
    let (agent, editor) = chat::start(&scenario, Setup::new());
    editor.command("AgentChat");
    editor.wait_state("failed");
    editor.wait_transcript("Authentication required");
    editor.wait_transcript("Sign in");
    editor.command("AgentChat restart");
    editor.wait_until("a new process, which sees that the user signed in", |_| agent.pids().len() == 2);
}

#[test]
fn a_prompt_cancelled_before_the_session_is_never_sent() {
    let scenario = Scenario::new().on_new_session([gate("session"), new_session()]);
    let (agent, editor) = chat::start(&scenario, Setup::new());
    editor.command("AgentChat");
    editor.input("inever<C-s>");
    agent.wait_gate("session");
    editor.wait_until("the queued prompt", |e| winbar(e).contains("1 queued"));
    editor.command("AgentChat cancel");
    wait_prompt_text(&editor, "never");
    agent.open_gate("session");
    editor.wait_state("idle");
    editor.prompt("later");
    agent.wait_received("session/prompt", 1);
    editor.wait_state("idle");
    assert_eq!(prompts(&agent), ["later"]);
}

#[test]
fn a_start_is_cancelled_and_the_next_prompt_starts_anew() {
    let scenario =
        Scenario::new().on_initialize([gate("answer"), initialized(json!({}))]).on_prompt([chunk("Here"), end_turn()]);
    let (agent, editor) = chat::start(&scenario, Setup::new());
    editor.command("AgentChat");
    agent.wait_gate("answer");
    editor.command("AgentChat cancel");
    editor.wait_state("stopped");
    editor.wait_transcript("The start was cancelled");
    agent.open_gate("answer");
    editor.prompt("again");
    editor.wait_transcript("Here");
    let pids = agent.pids();
    assert_eq!(pids.len(), 2);
    editor.wait_until("the end of the first process", |_| !crate::support::processes::is_alive(pids[0]));
}

#[test]
fn what_an_agent_says_before_its_session_is_announced_is_kept() {
    let update = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "$session", "update": {
        "sessionUpdate": "session_info_update", "title": "Early title" } } });
    let (_agent, editor) = chat::open(&Scenario::new().on_new_session([send(update), new_session()]), Setup::new());
    editor.wait_until("the title", |e| e.status()["title"] == json!("Early title"));
}

#[test]
fn odd_environment_variables_reach_the_agent() {
    const FUNCTION: &str = "() { echo\n }";
    // Set inside, since a shell that starts Neovim would drop a name like this.
    let init = "vim.uv.os_setenv('BASH_FUNC_ml%%', '() { echo\\n }') vim.uv.os_setenv('WITH_NEWLINE', 'one\\ntwo=\"3\"') vim.uv.os_setenv('EMPTY', '')";
    let setup = Setup::new().init(init);
    let (agent, editor) = chat::open(&Scenario::new(), setup);
    editor.wait_state("idle");
    let environment = agent.wait("the start", |log| Some(log.first()?.get("env").clone()));
    assert_eq!(environment["BASH_FUNC_ml%%"], json!(FUNCTION));
    assert_eq!(environment["WITH_NEWLINE"], json!("one\ntwo=\"3\""));
    assert_eq!(environment["EMPTY"], json!(""));
}

#[test]
fn an_agent_that_nobody_configured_is_named_with_those_there_are() {
    let (_agent, editor) = chat::start(&Scenario::new(), Setup::new());
    editor.command("AgentChat open nobody");
    editor.wait_state("failed");
    editor.wait_transcript("nobody");
    editor.wait_transcript("scripted");
    editor.command("AgentChat open scripted");
    editor.wait_state("idle");
}

#[test]
fn a_restart_in_mid_turn_ends_the_process_and_what_it_waited_for() {
    let scenario =
        Scenario::new().on_prompt([ask_permission("t1", "Run it").without_waiting(), gate("go"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("one");
    editor.wait_until("the request", |e| chat::window(e, "agentchat_permission").is_some());
    editor.command("AgentChat restart");
    editor.wait_until("the new session", |e| e.status()["session_id"] == json!("session-2.1"));
    editor.wait_until("no request", |e| chat::window(e, "agentchat_permission").is_none());
    editor.wait_state("idle");
    assert_eq!(editor.events("AgentChatTurnEnd"), [json!({ "chat": 1, "stop_reason": "cancelled" })]);
    let pids = agent.pids();
    editor.wait_until("the end of the first process", |_| !crate::support::processes::is_alive(pids[0]));
    assert_eq!(chat::times_in_messages(&editor, "scripted ended"), 0, "an end that was asked for is no news");
}
