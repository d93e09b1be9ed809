//! The user's MCP servers, as each session's agent is told of them.

use serde_json::{Value as Json, json};

use crate::chat;
use crate::support::scenario::{Scenario, initialized};
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
