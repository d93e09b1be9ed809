//! Requests, answers and notifications in every shape that JSON-RPC allows, or that agents send all the same.

use serde_json::{Value as Json, json};

use crate::support::scenario::{
    Scenario, Step, ask_permission, ask_permission_with, chunk, end_turn, gate, initialized, new_session, read_file,
    reply, reply_error, request, send, stop, tool_call, tool_update, update, write_file,
};
use crate::support::{Editor, ScriptedAgent, Setup};

/// An editor whose chat is open with an agent that plays `scenario`.
fn chat_with(scenario: &Scenario) -> (Editor, ScriptedAgent) {
    let agent = ScriptedAgent::new(scenario);
    let editor = Editor::start(Setup::new().agent("scripted", &agent).file("a.txt", "one\ntwo\n"));
    editor.command("AgentChat open");
    (editor, agent)
}

/// The same with one prompt that has come to its end.
fn after_a_prompt(steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    let (editor, agent) = chat_with(&Scenario::new().on_prompt(steps));
    editor.prompt("go");
    editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
    (editor, agent)
}

fn respond(editor: &Editor, option: &str) {
    editor.wait_until("a permission request is open", |e| e.status()["permissions"] == 1);
    editor.lua("require('agentchat').respond(...)", json!([option]));
}

#[test]
fn ids_of_every_type_are_answered_as_they_came() {
    let ids = [
        json!(0),
        json!(-7),
        json!(u64::MAX),
        json!(1.5),
        json!("1"),
        json!(""),
        json!("req/ä\u{1f600}\"\\\n"),
        json!(null),
        json!("a".repeat(10_000)),
    ];
    let reads = ids.iter().map(|id| read_file("a.txt").with_id(id.clone()));
    let (_editor, agent) = after_a_prompt(reads.chain([end_turn()]));
    let answers = agent.answers("fs/read_text_file");
    let answered: Vec<&Json> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(answered, ids.iter().collect::<Vec<_>>());
    assert!(answers.iter().all(|answer| answer["result"]["content"] == "one\ntwo\n"), "{answers:?}");
    assert_eq!(agent.stray_answers(), [Json::Null; 0]);
}

#[test]
fn requests_of_the_agent_may_use_the_ids_of_ours() {
    // 1 to 3 are `initialize`, `session/new` and the running prompt.
    let (editor, agent) = chat_with(&Scenario::new().on_prompt([
        read_file("a.txt").with_id(json!(1)),
        ask_permission("t", "Run it").with_id(json!(3)),
        write_file("b.txt", "written\n").with_id(json!(3)),
        chunk("all answered"),
        end_turn(),
    ]));
    editor.prompt("go");
    respond(&editor, "allow_once");
    editor.wait_transcript("all answered");
    editor.wait_state("idle");
    assert_eq!(agent.received("session/prompt")[0]["id"], 3);
    assert_eq!(agent.answers("session/request_permission")[0]["result"]["outcome"]["optionId"], "allow_once");
    assert!(agent.answers("fs/write_text_file")[0].get("result").is_some());
    assert_eq!(editor.file("b.txt").as_deref(), Some(&b"written\n"[..]));
    assert_eq!((agent.unanswered(), agent.stray_answers()), (vec![], vec![]));
}

#[test]
fn two_requests_with_one_id_have_an_answer_each() {
    let twice = |path| read_file(path).with_id(json!("same")).without_waiting();
    let (editor, agent) =
        chat_with(&Scenario::new().on_prompt([twice("a.txt"), twice("none.txt"), gate("end"), end_turn()]));
    editor.prompt("go");
    agent.wait("two answers", |log| {
        let answers = log.iter().filter(|entry| ["answered", "stray_answer"].contains(&entry.what())).count();
        (answers == 2).then_some(())
    });
    agent.open_gate("end");
    editor.wait_state("idle");
}

#[test]
fn answers_may_come_in_any_order() {
    let (editor, agent) = chat_with(
        &Scenario::new()
            .on_new_session([gate("first session"), new_session()])
            .on_new_session([new_session()])
            .on_prompt([chunk("to the second chat"), gate("second turn"), end_turn()])
            .on_prompt([chunk("to the first chat"), end_turn()]),
    );
    editor.prompt("first");
    agent.wait_gate("first session");
    editor.command("tabnew");
    editor.command("AgentChat open");
    editor.prompt("second");
    agent.wait_gate("second turn");
    editor.wait_state("running");
    agent.open_gate("first session");
    editor.command("tabprevious");
    editor.wait_transcript("to the first chat");
    editor.wait_state("idle");
    assert_eq!(editor.transcript().iter().filter(|line| line.contains("second")).count(), 0);
    agent.open_gate("second turn");
    editor.command("tabnext");
    editor.wait_state("idle");
    assert!(editor.transcript_text().contains("to the second chat"));
    assert_eq!(agent.pids().len(), 1);
}

#[test]
fn a_second_answer_to_the_same_call_changes_nothing() {
    let answer = |reason: &str| send(json!({ "jsonrpc": "2.0", "id": 3, "result": { "stopReason": reason } }));
    let (editor, agent) = chat_with(&Scenario::new().on_prompt([answer("end_turn"), answer("refusal")]).on_prompt([
        answer("max_tokens"),
        send(json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": 1, "message": "late" } })),
        send(json!({ "jsonrpc": "2.0", "id": 999, "result": { "stopReason": "refusal" } })),
        send(json!({ "jsonrpc": "2.0", "id": "never asked", "result": {} })),
        send(json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32700, "message": "Parse error" } })),
        chunk("the second turn runs"),
        gate("end"),
        end_turn(),
    ]));
    editor.prompt("one");
    editor.wait_until("the first turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
    editor.prompt("two");
    agent.wait_gate("end");
    editor.wait_transcript("the second turn runs");
    assert_eq!(editor.state(), "running");
    agent.open_gate("end");
    editor.wait_state("idle");
    let reasons: Vec<Json> = editor.events("AgentChatTurnEnd").iter().map(|data| data["stop_reason"].clone()).collect();
    assert_eq!(reasons, ["end_turn", "end_turn"]);
    assert!(!editor.transcript_has("Refused") && !editor.transcript_has("late"));
}

#[test]
fn an_answer_ends_the_turn_whatever_it_looks_like() {
    let answer = |mut message: Json| {
        message["jsonrpc"] = json!("2.0");
        message["id"] = json!("$id");
        [send(message)]
    };
    let (editor, _agent) = chat_with(
        &Scenario::new()
            .on_prompt([reply(Json::Null)])
            .on_prompt(answer(json!({})))
            .on_prompt(answer(json!({ "result": [] })))
            .on_prompt(answer(json!({ "result": { "stopReason": null } })))
            .on_prompt(answer(json!({ "error": { "message": "without a code" } })))
            .on_prompt(answer(json!({ "error": "only text" })))
            .on_prompt(answer(json!({ "error": { "code": "E1", "message": "a code of letters", "data": "and data" } })))
            .on_prompt([reply_error(-32000, "Authentication required")])
            .on_prompt([stop("tired")]),
    );
    for turn in 1..=9 {
        editor.prompt(&format!("prompt {turn}"));
        editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == turn);
        editor.wait_state("idle");
    }
    let reasons: Vec<Json> = editor.events("AgentChatTurnEnd").iter().map(|data| data["stop_reason"].clone()).collect();
    assert_eq!(reasons[..4], ["end_turn", "end_turn", "end_turn", "end_turn"]);
    assert_eq!(reasons[4..], ["error", "error", "error", "error", "tired"]);
    for said in ["without a code", "only text", "a code of letters: and data", "Sign in", "Stopped: tired."] {
        editor.wait_transcript(said);
    }
}

#[test]
fn a_start_that_is_answered_with_nothing_fails_with_a_reason() {
    let (editor, _agent) = chat_with(&Scenario::new().on_initialize([reply(Json::Null)]));
    editor.wait_state("failed");
    editor.wait_transcript("scripted refused `initialize`: the answer names no protocolVersion");

    let (editor, _agent) = chat_with(&Scenario::new().on_new_session([reply(Json::Null)]));
    editor.wait_state("failed");
    editor.wait_transcript("the answer names no sessionId");

    let newer = json!({ "protocolVersion": 7, "agentCapabilities": {} });
    let (editor, _agent) = chat_with(&Scenario::new().on_initialize([reply(newer)]));
    editor.wait_state("failed");
    editor.wait_transcript("speaks version 7 of the Agent Client Protocol");
}

#[test]
fn requests_that_are_not_served_are_refused_at_once() {
    const METHODS: [&str; 7] = [
        "x/unknown",
        "_vendor.example/ask",
        "terminal/resize",
        "elicitation/withdraw",
        "mcp/message",
        "session/prompt",
        "",
    ];
    let asks = METHODS.map(|method| request(method, json!({ "sessionId": "$session", "deep": [[[{}]]] })));
    let odd_params = [json!([1, 2]), json!("text"), json!(null)].map(|params| request("x/params", params));
    let (editor, agent) = after_a_prompt(asks.into_iter().chain(odd_params).chain([end_turn()]));
    for method in METHODS {
        let answer = agent.wait_answer(method, 1);
        assert_eq!(answer["error"]["code"], -32601, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(method), "{answer}");
    }
    assert_eq!(agent.answers("x/params").len(), 3);
    assert_eq!(agent.unanswered(), []);
    assert_eq!(editor.state(), "idle");
}

#[test]
fn requests_that_cannot_be_understood_are_refused_with_the_reason() {
    let bad = [
        ("fs/read_text_file", json!({ "sessionId": "$session" })),
        ("fs/read_text_file", json!({ "sessionId": "$session", "path": 5 })),
        ("fs/read_text_file", json!({ "sessionId": "$session", "path": "relative.txt" })),
        ("fs/read_text_file", json!(null)),
        ("fs/write_text_file", json!({ "sessionId": "$session", "path": "$cwd/a.txt" })),
        ("fs/write_text_file", json!(["$session", "$cwd/a.txt"])),
        ("session/request_permission", json!({ "sessionId": "$session", "options": [] })),
        ("session/request_permission", json!({ "toolCall": { "toolCallId": "t" }, "options": [] })),
        ("session/request_permission", json!([])),
    ];
    let count = bad.len();
    let (_editor, agent) =
        after_a_prompt(bad.into_iter().map(|(method, params)| request(method, params)).chain([end_turn()]));
    let answers: Vec<Json> = ["fs/read_text_file", "fs/write_text_file", "session/request_permission"]
        .iter()
        .flat_map(|method| agent.answers(method))
        .collect();
    assert_eq!(answers.len(), count);
    for answer in answers {
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| text.len() > 10), "{answer}");
    }
}

#[test]
fn requests_of_sessions_that_do_not_exist_are_answered() {
    let (_editor, agent) = after_a_prompt([
        request("fs/read_text_file", json!({ "sessionId": "other", "path": "$cwd/a.txt" })),
        request("fs/write_text_file", json!({ "sessionId": "other", "path": "$cwd/a.txt", "content": "x" })),
        request(
            "session/request_permission",
            json!({ "sessionId": "other", "toolCall": { "toolCallId": "t" }, "options": [] }),
        ),
        end_turn(),
    ]);
    assert_eq!(agent.answers("fs/read_text_file")[0]["error"]["code"], -32002);
    assert_eq!(agent.answers("fs/write_text_file")[0]["error"]["code"], -32002);
    assert_eq!(agent.answers("session/request_permission")[0]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn unknown_notifications_are_passed_over() {
    let notify = |method: &str, params: Json| send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    let (editor, _agent) = after_a_prompt([
        notify("_vendor.example/status", json!({ "a": 1 })),
        notify("session/future", json!(null)),
        notify("$/cancel_request", json!({ "requestId": 77 })),
        notify("$/cancel_request", json!({})),
        send(json!({ "jsonrpc": "2.0", "method": "bare" })),
        chunk("and on"),
        end_turn(),
    ]);
    assert_eq!(editor.transcript(), ["❯ You", "go", "", "and on"]);
}

#[test]
fn an_update_that_cannot_be_read_is_told_and_costs_itself() {
    let notify = |params: Json| send(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    let (editor, _agent) = after_a_prompt([
        notify(json!({ "sessionId": "$session" })),
        notify(json!({ "update": { "sessionUpdate": "agent_message_chunk" } })),
        notify(json!([])),
        update(json!({ "sessionUpdate": "tool_call", "title": "without an id" })),
        update(json!({ "sessionUpdate": "agent_message_chunk" })),
        update(json!({ "no": "kind" })),
        update(json!(7)),
        chunk("and on"),
        end_turn(),
    ]);
    editor.wait_transcript("An update of the agent could not be read");
    editor.wait_transcript("without an id");
    assert_eq!(editor.transcript().last().map(String::as_str), Some("and on"));
}

#[test]
fn unknown_words_are_shown_generically() {
    let (editor, agent) = chat_with(&Scenario::new().on_prompt([
        update(json!({ "sessionUpdate": "dance", "steps": 3 })),
        update(json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "hologram", "x": 1 } })),
        tool_call("t", "Juggle", "juggling"),
        tool_update("t", json!({ "content": [
            { "type": "smell", "of": "coffee" }, { "type": "content", "content": { "type": "text", "text": "three balls" } },
        ] })),
        update(json!({ "sessionUpdate": "plan", "entries": [{ "content": "Step one", "status": "dreamt", "priority": 9 }] })),
        ask_permission_with(
            json!({ "toolCallId": "t", "status": "paused" }),
            json!([{ "optionId": "yes-ish", "name": "Allow for an hour", "kind": "allow_hourly" }, { "name": "no id" }]),
        ),
        stop("out_of_coffee"),
    ]));
    editor.prompt("go");
    editor.wait_screen("Allow for an hour");
    for said in
        ["dance", "\"steps\":3", "hologram", "Juggle", "juggling", "paused", "coffee", "three balls", "Step one"]
    {
        editor.wait_transcript(said);
    }
    respond(&editor, "yes-ish");
    assert_eq!(agent.wait_answer("session/request_permission", 1)["result"]["outcome"]["optionId"], "yes-ish");
    editor.wait_transcript("Stopped: out_of_coffee.");
    editor.wait_state("idle");
}

#[test]
fn the_agent_may_take_a_request_back() {
    let (editor, agent) = chat_with(&Scenario::new().on_prompt([
        ask_permission("t", "Run it").with_id(json!("p-1")).without_waiting(),
        gate("asked"),
        send(json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": "p-1" } })),
        end_turn(),
    ]));
    editor.prompt("go");
    editor.wait_screen("Run it");
    agent.open_gate("asked");
    assert_eq!(agent.wait_answer("session/request_permission", 1)["error"]["code"], -32800);
    editor.wait_state("idle");
    editor.wait_until("no request is open", |e| e.status()["permissions"] == 0);
}

#[test]
fn what_is_offered_to_the_agent_is_what_works() {
    let (editor, agent) = chat_with(&Scenario::new().on_initialize([initialized(json!({}))]));
    editor.wait_state("idle");
    let params = agent.received("initialize")[0]["params"].clone();
    assert_eq!(params["protocolVersion"], 1);
    assert_eq!(params["clientInfo"]["name"], "agentchat.nvim");
    assert_eq!(params["clientCapabilities"]["fs"], json!({ "readTextFile": true, "writeTextFile": true }));
    assert_eq!(params["clientCapabilities"]["terminal"], json!(true));
    assert_eq!(params["clientCapabilities"]["_meta"], json!({ "terminal_output": true }));
    let session = agent.received("session/new")[0]["params"].clone();
    assert_eq!(session, json!({ "cwd": editor.project(), "mcpServers": [] }));
}
