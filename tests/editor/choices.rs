//! What a session can be set to: by command, by picker, by configuration, and by the agent itself.

#![allow(clippy::needless_pass_by_value, reason = "tests read better with json!(…) than with &json!(…)")]

use serde_json::{Value as Json, json};

use crate::chat;
use crate::support::scenario::{Scenario, end_turn, reply, update};
use crate::support::{Editor, ScriptedAgent, Setup};

fn options(mode: &str, model: &str, fast: bool) -> Json {
    json!([
        { "id": "fast", "name": "Fast", "type": "boolean", "currentValue": fast },
        { "id": "llm", "name": "Model", "category": "model", "type": "select", "currentValue": model, "options": [
            { "group": "big", "name": "Big", "options": [{ "value": "m-1", "name": "M One" }] },
            { "group": "small", "name": "Small", "options": [{ "value": "m-2", "name": "M Two", "description": "quick" }] },
        ] },
        { "id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode, "options": [
            { "value": "ask", "name": "Ask" }, { "value": "code", "name": "Code" },
        ] },
        { "id": "later", "name": "Later", "type": "of-tomorrow" },
    ])
}

/// An agent whose sessions begin so.
fn beginning(more: Json) -> Scenario {
    let mut session = json!({ "sessionId": "$session" });
    session.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Scenario::new().on_new_session([reply(session)])
}

fn with_options() -> Scenario {
    beginning(json!({ "configOptions": options("ask", "m-1", false) }))
        .on("session/set_config_option", [reply(json!({ "configOptions": options("code", "m-2", true) }))])
}

#[track_caller]
fn names(editor: &Editor) -> Json {
    let code =
        "return vim.tbl_map(function(o) return o.id .. '=' .. o.current end, require('agentchat.choices').list())";
    editor.lua(code, json!([]))
}

#[test]
fn options_are_completed_set_by_name_and_shown_as_the_agent_answers() {
    let (agent, editor) = chat::open(&with_options(), Setup::new());
    editor.wait_until("the options", |e| names(e) == json!(["mode=ask", "llm=m-1", "fast=false"]));
    assert_eq!((editor.status()["mode"].clone(), editor.status()["model"].clone()), (json!("Ask"), json!("M One")));
    let complete = |line: &str| editor.lua("return vim.fn.getcompletion(..., 'cmdline')", json!([line]));
    assert_eq!(complete("AgentChat model "), json!(["m-1", "m-2"]));
    assert_eq!(complete("AgentChat set f"), json!(["fast"]));
    assert_eq!(complete("AgentChat set fast o"), json!(["on", "off"]));
    editor.command("AgentChat model m two");
    let sent = agent.wait_received("session/set_config_option", 1);
    assert_eq!((&sent["params"]["configId"], &sent["params"]["value"]), (&json!("llm"), &json!("m-2")));
    editor.wait_until("what the agent answers", |e| names(e) == json!(["mode=code", "llm=m-2", "fast=true"]));
    assert_eq!(editor.status()["mode"], json!("Code"));
    editor.command("AgentChat set fast off");
    let sent = agent.wait_received("session/set_config_option", 2);
    assert_eq!((&sent["params"]["type"], &sent["params"]["value"]), (&json!("boolean"), &json!(false)));
    editor.command("AgentChat set no-such thing");
    assert!(editor.messages().contains("no option no-such; it has mode, llm, fast"), "{}", editor.messages());
    editor.command("AgentChat mode dance");
    editor.wait_until("the refusal", |e| e.messages().contains("is no value of Mode"));
}

#[test]
fn what_is_not_given_is_picked() {
    let (agent, editor) = chat::open(&with_options(), Setup::new());
    editor.wait_until("the options", |e| names(e) != json!([]));
    // A picker of the user's: it takes the last item.
    let code = "vim.ui.select = function(items, opts, done)
      _G.shown = { opts.prompt, vim.tbl_map(opts.format_item, items) }
      done(items[#items])
    end";
    editor.lua(code, json!([]));
    editor.command("AgentChat model");
    agent.wait_received("session/set_config_option", 1);
    let shown = editor.lua("return _G.shown", json!([]));
    assert_eq!(shown, json!(["Model:", ["* Big: M One", "  Small: M Two — quick"]]));
    // Of all options the last one is on or off: it is turned over.
    editor.command("AgentChat set");
    let sent = agent.wait_received("session/set_config_option", 2);
    assert_eq!(sent["params"]["configId"], json!("fast"));
    editor.wait_until("the mode", |e| e.status()["mode"] == json!("Code"));
    editor.input("<Esc>");
    editor.lua("require('agentchat.choices').cycle('mode')", json!([]));
    let sent = agent.wait_received("session/set_config_option", 3);
    assert_eq!(sent["params"]["value"], json!("ask"), "after the last comes the first");
}

#[test]
fn what_is_configured_is_set_before_the_first_prompt() {
    let agent = ScriptedAgent::new(&with_options());
    let wanted = json!({ "model": "m-2", "fast": true, "nonsense": "x", "mode": "ask" });
    let agents = json!({ "scripted": { "command": agent.command(), "options": wanted } });
    let editor = Editor::start(Setup::new().config("agents", agents).config("default_agent", json!("scripted")));
    editor.command("AgentChat open");
    editor.prompt("go");
    agent.wait_received("session/prompt", 1);
    let set: Vec<(Json, Json)> = agent
        .received("session/set_config_option")
        .into_iter()
        .map(|message| (message["params"]["configId"].clone(), message["params"]["value"].clone()))
        .collect();
    let before = agent
        .log()
        .iter()
        .filter(|entry| entry.what() == "received")
        .map(|entry| entry.method().to_owned())
        .collect::<Vec<_>>();
    assert_eq!(before.last().map(String::as_str), Some("session/prompt"), "{before:?}");
    assert_eq!(set, [(json!("fast"), json!(true)), (json!("llm"), json!("m-2"))]);
    editor.wait_until("what cannot be set", |e| e.messages().contains("has no such options: nonsense = x"));
}

#[test]
fn modes_of_older_agents_are_set_by_their_own_method_and_followed() {
    let modes = json!({ "currentModeId": "ask", "availableModes": [{ "id": "ask", "name": "Ask" }, { "id": "plan", "name": "Plan" }] });
    let scenario = beginning(json!({ "modes": modes }))
        .on("session/set_mode", [reply(json!({}))])
        .on_prompt([update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "ask" })), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.wait_until("the options", |e| names(e) == json!(["mode=ask"]));
    editor.command("AgentChat mode Plan");
    let sent = agent.wait_received("session/set_mode", 1);
    assert_eq!(sent["params"]["modeId"], json!("plan"));
    editor.wait_until("the mode", |e| e.status()["mode"] == json!("Plan"));
    editor.prompt("go");
    editor.wait_until("the agent's own change", |e| names(e) == json!(["mode=ask"]));
    assert_eq!(editor.status()["mode"], json!("Ask"));
}

#[test]
fn what_the_agent_refuses_is_said_and_nothing_changes() {
    let scenario = beginning(json!({ "configOptions": options("ask", "m-1", false) }));
    let (_agent, editor) = chat::open(&scenario, Setup::new());
    editor.wait_until("the options", |e| names(e) != json!([]));
    editor.command("AgentChat model m-2");
    editor.wait_until("the refusal", |e| e.messages().contains("did not set Model"));
    assert_eq!(editor.status()["model"], json!("M One"));
}

#[test]
fn notices_and_compactions_are_said_in_the_chat() {
    let compaction = |more: Json| {
        let mut update_value = json!({ "sessionUpdate": "compaction_update", "compactionId": "c1" });
        update_value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update(update_value)
    };
    let scenario = Scenario::new().on_prompt([
        update(json!({ "sessionUpdate": "notice", "severity": "warning", "title": "Slow", "description": "the queue is long" })),
        update(json!({ "sessionUpdate": "notice", "severity": "_odd", "title": "Odd" })),
        compaction(json!({ "status": "in_progress" })),
        compaction(json!({ "status": "in_progress" })),
        compaction(json!({ "status": "completed", "summary": [{ "type": "text", "text": "We did this." }] })),
        compaction(json!({ "status": "failed", "error": "no room" })),
        end_turn(),
    ]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    let offered = agent.received("initialize")[0]["params"]["clientCapabilities"]["session"].clone();
    assert_eq!(offered, json!({ "compaction": {}, "configOptions": { "boolean": {} }, "notices": {} }));
    editor.prompt("go");
    editor.wait_state("idle");
    for said in [
        "Slow: the queue is long",
        "Odd",
        "The agent makes its context shorter.",
        "We did this.",
        "A summary takes the place of what was said, for the agent.",
        "could not make its context shorter: no room.",
    ] {
        editor.wait_transcript(said);
    }
    let times = editor.transcript_text().matches("makes its context shorter").count();
    assert_eq!(times, 1, "{}", editor.transcript_text());
}
