//! What each session is set up with: the MCP servers of the user, further folders, a text for the model.

use serde_json::{Value as Json, json};

use crate::chat;
use crate::support::scenario::{Scenario, end_turn, gate, initialized, new_session, request};
use crate::support::{Editor, Setup};

fn configured() -> Setup {
    let servers = json!({
        "files": { "command": ["mcp-files", "--root", "."], "env": { "LEVEL": "2" } },
        "search": { "url": "https://example.com/mcp", "headers": { "x-team": "a" } },
        "old": { "url": "https://example.com/sse", "type": "sse" },
    });
    Setup::new().config("mcp_servers", servers)
}

fn names(servers: &Json) -> Vec<&str> {
    servers.as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap()).collect()
}

#[test]
fn each_agent_is_told_of_those_that_it_can_use_and_the_user_of_the_others() {
    let (agent, editor) = chat::open(&Scenario::new(), configured());
    let sent = agent.received("session/new")[0]["params"]["mcpServers"].clone();
    assert_eq!(
        sent,
        json!([{ "name": "files", "command": "mcp-files", "args": ["--root", "."], "env": [{ "name": "LEVEL", "value": "2" }] }])
    );
    editor.wait_transcript("scripted cannot use these MCP servers, for want of their transport: old, search.");

    let all = Scenario::new().on_initialize([initialized(json!({ "mcpCapabilities": { "http": true, "sse": true } }))]);
    let (agent, editor) = chat::open(&all, configured());
    let sent = agent.received("session/new")[0]["params"]["mcpServers"].clone();
    assert_eq!(names(&sent), ["files", "old", "search"]);
    assert_eq!((&sent[1]["type"], &sent[2]["type"]), (&json!("sse"), &json!("http")));
    assert_eq!(sent[2]["headers"], json!([{ "name": "x-team", "value": "a" }]));
    assert!(!editor.transcript_has("cannot use these MCP servers"));
}

#[test]
fn what_is_wrong_with_one_is_told_by_its_name() {
    for (server, problem) in [
        (json!({}), "must have either `command` or `url`"),
        (json!({ "command": [] }), "`command` must be a list of strings"),
        (json!({ "url": "x", "type": "smoke" }), "`type` must be"),
        (json!({ "url": "x", "colour": "red" }), "has no option `colour`"),
    ] {
        let editor = Editor::start(Setup::new().config("mcp_servers", json!({ "mine": server })));
        let errors = editor.lua("return require('agentchat.config').errors()", json!([]));
        assert!(errors.to_string().contains("mine") && errors.to_string().contains(problem), "{errors}");
    }
}

#[test]
fn folders_and_a_text_go_to_every_session_that_takes_them() {
    let more = tempfile::tempdir().unwrap();
    std::fs::write(more.path().join("b.txt"), "there\n").unwrap();
    let folder = more.path().canonicalize().unwrap();
    let setup =
        || Setup::new().config("additional_directories", json!([folder])).config("system_prompt", json!("Be brief."));
    let takes = json!({ "sessionCapabilities": { "additionalDirectories": {}, "systemPrompt": {} } });
    let read = request("fs/read_text_file", json!({ "sessionId": "$session", "path": folder.join("b.txt") }));
    let scenario = Scenario::new().on_initialize([initialized(takes)]).on_prompt([read, end_turn()]);
    let (agent, editor) = chat::open(&scenario, setup());
    let sent = agent.received("session/new")[0]["params"].clone();
    assert_eq!(sent["additionalDirectories"], json!([folder]));
    assert_eq!(sent["systemPrompt"], json!({ "mode": "append", "content": [{ "type": "text", "text": "Be brief." }] }));
    // It belongs to the workspace: nobody is asked.
    editor.prompt("read it");
    assert_eq!(agent.wait_answer("fs/read_text_file", 1)["result"]["content"], json!("there\n"));

    let (agent, editor) = chat::open(&Scenario::new(), setup());
    let sent = agent.received("session/new")[0]["params"].clone();
    assert_eq!((sent.get("additionalDirectories"), sent.get("systemPrompt")), (None, None));
    editor.wait_transcript("scripted takes no `additional_directories`");
    editor.wait_transcript("scripted takes no `system_prompt`");
}

#[test]
fn a_session_that_nobody_waits_for_is_taken_back() {
    let scenario = Scenario::new().on_new_session([gate("late"), new_session()]);
    let (agent, editor) = chat::start(&scenario, Setup::new().config("timeouts", json!({ "session_new": 300 })));
    editor.command("AgentChat open");
    editor.wait_until("the failure", |e| e.status()["state"] == "failed");
    agent.wait_received("$/cancel_request", 1);
    let asked = agent.received("session/new")[0]["id"].clone();
    assert_eq!(agent.received("$/cancel_request")[0]["params"], json!({ "requestId": asked }));
}
