//! Stopping a turn: agents that obey, that take their time, that do not; and agents that die.

use serde_json::json;

use crate::chat::{self, prompts, times_in_messages, wait_prompt_text};
use crate::support::scenario::{
    Scenario, ask_permission, chunk, end_turn, gate, repeat, request, stop, tool_call, tool_status, tool_update,
    wait_for,
};
use crate::support::{Setup, processes};

#[test]
fn a_running_call_is_cancelled_at_once_and_late_updates_are_shown() {
    let late = json!({ "status": "failed",
        "content": [{ "type": "content", "content": { "type": "text", "text": "late output" } }] });
    let scenario = Scenario::new()
        .on_prompt([
            tool_call("t1", "Run tests", "execute"),
            tool_status("t1", "in_progress"),
            gate("late"),
            tool_update("t1", late),
            stop("cancelled"),
        ])
        .on_cancel([]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("test it");
    editor.wait_transcript("Run tests  $ execute · running");
    editor.command("AgentChat cancel");
    editor.wait_transcript("Run tests  $ execute · cancelled");
    assert_eq!(editor.state(), "cancelling");
    let cancel = agent.wait_received("session/cancel", 1);
    assert_eq!(cancel["params"], json!({ "sessionId": "session-1.1" }));
    assert!(cancel.get("id").is_none(), "a notification");
    agent.open_gate("late");
    editor.wait_transcript("late output");
    editor.wait_state("idle");
    assert_eq!(editor.events("AgentChatTurnEnd"), [json!({ "chat": 1, "stop_reason": "cancelled" })]);
    editor.wait_transcript("Cancelled.");
}

#[test]
fn what_comes_after_a_cancel_belongs_to_the_turn_and_the_next_prompt_waits_for_its_end() {
    let scenario = Scenario::new()
        .on_prompt([
            chunk("begun\n"),
            wait_for("session/cancel", 1),
            repeat(5, [chunk("late $i\n")]),
            ask_permission("t9", "Late ask"),
            gate("end"),
            stop("cancelled"),
        ])
        .on_prompt([chunk("second answer"), end_turn()])
        .on_cancel([]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("one");
    editor.wait_transcript("begun");
    editor.command("AgentChat cancel");
    editor.prompt("two");
    let answer = agent.wait_answer("session/request_permission", 1);
    assert_eq!(answer["result"], json!({ "outcome": { "outcome": "cancelled" } }));
    editor.wait_transcript("late 4");
    agent.wait_gate("end");
    assert_eq!(prompts(&agent), ["one"]);
    assert_eq!(chat::window(&editor, "agentchat_permission"), None);
    agent.open_gate("end");
    editor.wait_transcript("second answer");
    assert_eq!(prompts(&agent), ["one", "two"]);
}

#[test]
fn an_agent_that_ignores_the_cancel_loses_the_turn_after_the_grace_time() {
    let scenario =
        Scenario::new().on_prompt([chunk("busy"), gate("never")]).on_prompt([chunk("again"), end_turn()]).on_cancel([]);
    let setup = Setup::new().config("timeouts", json!({ "cancel_grace": 300 }));
    let (_agent, editor) = chat::open(&scenario, setup);
    editor.prompt("one");
    editor.wait_transcript("busy");
    editor.command("AgentChat cancel");
    editor.wait_state("idle");
    editor.wait_transcript("0.3 s after the cancel, although scripted did not end the turn");
    editor.prompt("two");
    editor.wait_transcript("again");
}

#[test]
fn a_second_cancel_ends_the_turn_and_its_late_answer_ends_no_other() {
    let scenario = Scenario::new()
        .on_prompt([chunk("busy\n"), gate("late"), chunk("straggler\n"), end_turn()])
        .on_prompt([chunk("second\n"), gate("second"), end_turn()])
        .on_cancel([]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("one");
    editor.wait_transcript("busy");
    editor.command("AgentChat cancel");
    editor.wait_state("cancelling");
    editor.command("AgentChat cancel");
    editor.wait_state("idle");
    editor.wait_transcript("did not end the turn");
    editor.prompt("two");
    editor.wait_transcript("second");
    agent.open_gate("late");
    editor.wait_transcript("straggler");
    agent.wait("the late answer is sent", |log| {
        log.iter().filter(|entry| entry.what() == "at_gate").count().eq(&2).then_some(())
    });
    assert_eq!(editor.state(), "running");
    agent.open_gate("second");
    editor.wait_state("idle");
    assert_eq!(editor.events("AgentChatTurnEnd").len(), 2);
}

#[test]
fn a_cancel_gives_queued_prompts_back() {
    let scenario = Scenario::new().on_prompt([chunk("busy"), gate("never")]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("one");
    editor.wait_transcript("busy");
    editor.prompt("two");
    editor.prompt("three");
    editor.wait_until("the queued prompts", |e| chat::winbar(e).contains("2 queued"));
    editor.input("ifour<Esc>");
    wait_prompt_text(&editor, "four");
    editor.command("AgentChat cancel");
    editor.wait_state("idle");
    wait_prompt_text(&editor, "four\ntwo\nthree");
    assert_eq!(prompts(&agent), ["one"]);
}

#[test]
fn a_cancel_with_nothing_to_stop_says_so() {
    let (agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.command("AgentChat cancel");
    editor.wait_until("the message", |e| e.messages().contains("Nothing is running"));
    assert!(agent.received("session/cancel").is_empty());
    assert_eq!(editor.state(), "idle");
}

#[test]
fn requests_that_nobody_knows_are_answered() {
    let scenario = Scenario::new().on_prompt([
        request("x/unheard_of", json!({})),
        request("terminal/resize", json!({ "sessionId": "$session", "terminalId": "terminal-1" })),
        end_turn(),
    ]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("go");
    for method in ["x/unheard_of", "terminal/resize"] {
        assert_eq!(agent.wait_answer(method, 1)["error"]["code"], json!(-32601), "{method}");
    }
    editor.wait_until("the end of the turn", |e| !e.events("AgentChatTurnEnd").is_empty());
}

#[test]
fn an_agent_killed_in_mid_turn_starts_anew_and_its_forgetting_is_said() {
    let scenario = Scenario::new().on_prompt([
        tool_call("t1", "Think hard", "think"),
        chunk("half an ans"),
        gate("go"),
        chunk("wer"),
        end_turn(),
    ]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("one");
    editor.wait_transcript("half an ans");
    editor.prompt("two");
    editor.wait_until("the queued prompt", |e| chat::winbar(e).contains("1 queued"));
    processes::kill9(agent.pids()[0]);
    editor.wait_state("failed");
    editor.wait_transcript("signal 9");
    editor.wait_transcript("Think hard  … think · unfinished");
    assert_eq!(times_in_messages(&editor, "scripted ended"), 1);
    agent.open_gate("go");
    editor.command("AgentChat restart");
    editor.wait_transcript("does not know what was said above");
    chat::wait_prompt_text(&editor, "two");
    editor.wait_state("idle");
    assert_eq!(prompts(&agent), ["one"], "what was queued in the old talk is up to the user");
    editor.prompt("two");
    editor.wait_transcript("half an answer");
    assert_eq!(prompts(&agent), ["one", "two"]);
}

#[test]
fn a_call_that_the_turn_left_open_is_settled() {
    let scenario = Scenario::new().on_prompt([tool_call("t1", "Forgotten", "other"), stop("max_tokens")]);
    let (_agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("go");
    editor.wait_transcript("Forgotten  • other · unfinished");
    editor.wait_transcript("token limit");
}
