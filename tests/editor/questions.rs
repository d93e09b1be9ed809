//! What agents ask beside permissions: forms, and addresses to be opened.

use serde_json::{Value as Json, json};

use crate::chat;
use crate::support::scenario::{Scenario, Step, end_turn, gate, new_session, request, send};
use crate::support::{Editor, ScriptedAgent, Setup};

const ASK: &str = "elicitation/create";

fn form(properties: &str, required: &[&str]) -> Step {
    // As text: the order of the fields is that of the agent.
    let properties: Box<serde_json::value::RawValue> = serde_json::from_str(properties).unwrap();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    request(
        ASK,
        json!({ "mode": "form", "sessionId": "$session", "message": "How shall I go on?", "requestedSchema": schema }),
    )
}

#[track_caller]
fn asked(steps: Vec<Step>) -> (ScriptedAgent, Editor) {
    let steps = steps.into_iter().chain([gate("end"), end_turn()]);
    let (agent, editor) = chat::open(&Scenario::new().on_prompt(steps), Setup::new());
    editor.prompt("go");
    editor.wait_until("the question", |e| e.status()["elicitations"] == 1);
    (agent, editor)
}

#[track_caller]
fn result(agent: &ScriptedAgent) -> Json {
    agent.wait_answer(ASK, 1)["result"].clone()
}

/// Whether a window of a question is there.
fn is_shown(editor: &Editor) -> bool {
    let code = "for _, win in ipairs(vim.api.nvim_list_wins()) do
      if vim.bo[vim.api.nvim_win_get_buf(win)].filetype == 'agentchat_question' then return true end
    end
    return false";
    editor.lua(code, json!([])) == json!(true)
}

#[test]
fn a_form_of_every_kind_is_filled_in_with_keys() {
    let properties = r#"{
        "zone": { "type": "string", "title": "Zone", "oneOf": [
            { "const": "eu", "title": "Europe", "description": "the near one" }, { "const": "us", "title": "America" }] },
        "name": { "type": "string", "title": "Name", "minLength": 3 },
        "count": { "type": "integer", "title": "Count", "minimum": 1, "maximum": 9, "default": 4 },
        "ratio": { "type": "number", "title": "Ratio" },
        "sure": { "type": "boolean", "title": "Sure", "default": false },
        "parts": { "type": "array", "title": "Parts", "items": { "type": "string", "enum": ["a", "b", "c"] }, "default": ["b"] },
        "odd": { "type": "colour", "title": "Odd" }
    }"#;
    let (agent, editor) = asked(vec![form(properties, &["zone", "name"])]);
    editor.wait_transcript("scripted asks: How shall I go on?");
    editor.wait_screen("scripted · running · asks you");
    assert!(!is_shown(&editor), "nobody is taken out of what they are doing");
    editor.command("AgentChat answer");
    editor.wait_screen("Zone *");
    for shown in [
        "( ) Europe — the near one",
        "Name * (at least 3 characters)",
        "Count (a whole number, 1 to 9)",
        "> 4",
        "[x] b",
    ] {
        editor.wait_screen(shown);
    }
    editor.wait_screen("Odd (of the unknown type colour");
    // The cursor is on the first choice: the second one, the name, the count stays, the ratio, yes, and a third part.
    editor.input("<Tab><CR>");
    editor.wait_screen("(●) America");
    editor.input("<Tab><CR>ab<CR>");
    editor.wait_screen("> ab");
    editor.input("<C-s>");
    editor.wait_screen("✗ at least 3 characters");
    assert!(agent.answers(ASK).is_empty(), "nothing is sent that does not fit");
    editor.input("<CR><BS>cd<CR>");
    editor.wait_screen("> acd");
    editor.input("<Tab><Tab><CR>0.5<CR>");
    editor.wait_screen("> 0.5");
    editor.input("<Tab><CR>");
    editor.wait_screen("> yes");
    editor.input("<Tab><CR>");
    editor.wait_screen("[x] a");
    editor.input("<C-s>");
    let content = json!({ "zone": "us", "name": "acd", "count": 4, "ratio": 0.5, "sure": true, "parts": ["a", "b"] });
    assert_eq!(result(&agent), json!({ "action": "accept", "content": content }));
    editor.wait_until("no window", |e| !is_shown(e));
    editor.wait_transcript("Zone: America");
    editor.wait_until("nothing to answer", |e| e.status()["elicitations"] == 0);
    let initialize = agent.received("initialize");
    let offered = &initialize[0]["params"]["clientCapabilities"]["elicitation"];
    assert_eq!(offered, &json!({ "form": {}, "url": {} }));
}

#[test]
fn what_is_put_aside_comes_back_as_it_was_and_can_be_declined() {
    let (agent, editor) = asked(vec![form(r#"{ "why": { "type": "string", "title": "Why" } }"#, &[])]);
    editor.command("AgentChat answer");
    editor.wait_screen("Why");
    editor.input("<CR>because<CR>");
    editor.wait_screen("> because");
    editor.input("q");
    editor.wait_until("no window", |e| !is_shown(e));
    editor.command("AgentChat answer");
    editor.wait_screen("> because");
    editor.input("D");
    assert_eq!(result(&agent), json!({ "action": "decline" }));
    editor.wait_transcript("You declined to answer.");
    editor.command("AgentChat answer");
    editor.wait_until("that there is nothing", |e| e.messages().contains("no agent asks anything"));
}

#[test]
fn an_address_is_opened_only_after_its_host_was_shown() {
    let url = "https://login.example.org/device?code=1";
    let ask = |url: &str| {
        request(
            ASK,
            json!({ "mode": "url", "sessionId": "$session", "message": "Log in there", "elicitationId": "e-1", "url": url }),
        )
    };
    let done = |id: &str| {
        send(json!({ "jsonrpc": "2.0", "method": "elicitation/complete", "params": { "elicitationId": id } }))
    };
    let (agent, editor) = asked(vec![ask(url), gate("opened"), done("unknown"), done("e-1"), done("e-1")]);
    editor.lua("vim.ui.open = function(url) _G.opened = (_G.opened or '') .. url end", json!([]));
    editor.command("AgentChat answer");
    editor.wait_screen("Opens in your browser, on: login.example.org");
    editor.wait_screen(url);
    assert_eq!(editor.lua("return _G.opened", json!([])), Json::Null);
    editor.input("<CR>");
    assert_eq!(result(&agent), json!({ "action": "accept" }));
    assert_eq!(editor.lua("return _G.opened", json!([])), json!(url));
    editor.wait_transcript("You opened login.example.org.");
    agent.open_gate("opened");
    editor.wait_transcript("What there was to do on login.example.org is done.");
    assert_eq!(editor.transcript_text().matches("there was to do").count(), 1);
}

#[test]
fn what_cannot_be_asked_is_refused_and_a_doubtful_host_is_marked() {
    let params = |mode: &str, url: &str| json!({ "mode": mode, "sessionId": "$session", "message": "m", "elicitationId": "e", "url": url });
    let (agent, editor) = asked(vec![
        request(ASK, params("dance", "https://a.test")),
        request(ASK, params("url", "file:///etc/passwd")),
        request(ASK, params("url", "https://good.test@evil.test/")),
    ]);
    let answers = agent.answers(ASK);
    assert_eq!(answers.len(), 2);
    assert!(answers.iter().all(|answer| answer["error"]["code"] == -32602), "{answers:?}");
    editor.command("AgentChat answer");
    editor.wait_screen("on: evil.test");
    editor.wait_screen("is no part of where it leads to");
    editor.input("C");
    assert_eq!(agent.wait_answer(ASK, 3)["result"], json!({ "action": "cancel" }));
}

#[test]
fn a_cancel_and_the_end_of_a_turn_answer_what_is_open() {
    let question = || form(r#"{ "why": { "type": "string" } }"#, &[]);
    let first = [question().without_waiting(), gate("never"), end_turn()];
    let second = [question().without_waiting(), gate("end"), end_turn()];
    let (agent, editor) = chat::open(&Scenario::new().on_prompt(first).on_prompt(second), Setup::new());
    editor.prompt("go");
    editor.wait_until("the question", |e| e.status()["elicitations"] == 1);
    editor.command("AgentChat answer");
    editor.wait_until("the window", is_shown);
    editor.command("AgentChat cancel");
    assert_eq!(result(&agent), json!({ "action": "cancel" }));
    editor.wait_until("no window", |e| !is_shown(e));
    agent.open_gate("never");
    editor.wait_state("idle");
    editor.prompt("again");
    editor.wait_until("the question", |e| e.status()["elicitations"] == 1);
    agent.open_gate("end");
    assert_eq!(agent.wait_answer(ASK, 2)["result"], json!({ "action": "cancel" }));
    editor.wait_until("nothing to answer", |e| e.status()["elicitations"] == 0);
}

#[test]
fn what_is_asked_before_there_is_a_session_is_answered_by_a_script() {
    let schema = json!({ "type": "object", "properties": { "key": { "type": "string", "title": "Key" } } });
    let ask =
        request(ASK, json!({ "mode": "form", "requestId": 2, "message": "Which key?", "requestedSchema": schema }));
    let (agent, editor) = chat::start(&Scenario::new().on_new_session([ask, new_session()]), Setup::new());
    editor.command("AgentChat open");
    editor.wait_until("the event", |e| e.events("AgentChatElicitation").len() == 1);
    let asked = editor.lua("return require('agentchat').questions()", json!([]));
    assert_eq!((&asked[0]["message"], &asked[0]["fields"][0]["title"]), (&json!("Which key?"), &json!("Key")));
    let code = "local request = ... require('agentchat').answer(request, 'accept', { key = 'k' })";
    editor.lua(code, json!([asked[0]["request"]]));
    assert_eq!(result(&agent), json!({ "action": "accept", "content": { "key": "k" } }));
    editor.wait_state("idle");
}
