//! MCP servers that the client names for a session: real processes and sockets.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::client::{self, Client};
use crate::responses_server::{Answer, Kind, Server};
use crate::tools::outputs;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");

fn python() -> String {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path).map(|folder| folder.join("python3")).find(|path| path.is_file());
    found.unwrap().display().to_string()
}

fn over_stdio(log: &Path) -> Value {
    let env = json!([{"name": "MCP_LOG", "value": log}, {"name": "MCP_MARK", "value": "!"}]);
    json!({"name": "test server", "command": python(), "args": [SERVER], "env": env})
}

/// A client whose session has these servers.
fn with(server: &Server, servers: Value) -> Client {
    let mut client = Client::start(Some((server, Kind::OpenAi)), client::everything());
    client.open_with(servers);
    client
}

fn names(server: &Server) -> Vec<String> {
    let posts = server.posts();
    let tools = posts.last().unwrap()["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn heard(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn tools_of_a_server_are_offered_asked_about_and_called() {
    let model = Server::start(Kind::OpenAi);
    let log = tempfile::tempdir().unwrap();
    let mut client = with(&model, json!([over_stdio(&log.path().join("log"))]));
    let told = outputs(
        &mut client,
        &model,
        &[
            ("mcp__test_server__shout", json!({"text": "hi"})),
            ("mcp__test_server__fail", json!({})),
            ("mcp__test_server__draw", json!({})),
            ("mcp__test_server__none", json!({})),
        ],
    );
    assert_eq!(told[..3], ["HI!", "it does not work", "(the picture follows)"]);
    assert!(told[3].starts_with("there is no function") && told[3].contains("mcp__test_server__shout"), "{told:?}");
    assert!(
        names(&model).ends_with(
            &["shout", "fail", "draw", "wait", "grow", "die"].map(|name| format!("mcp__test_server__{name}"))
        )
    );
    let shouted = client.call("call-0-0");
    assert_eq!((&shouted["title"], &shouted["status"]), (&json!("test server: Shout it"), &json!("completed")));
    assert_eq!(client.call("call-0-1")["status"], "failed");
    let asked = client.requests("session/request_permission");
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[0]["toolCall"]["title"], "test server: Shout it");
    assert!(asked[0]["toolCall"]["content"].to_string().contains("hi"), "{asked:?}");
    let sent = model.posts().last().unwrap()["input"].to_string();
    assert!(sent.contains("data:image/png;base64,AQID"), "{sent}");
}

#[test]
fn what_the_user_does_not_want_is_not_called_and_plan_mode_has_none() {
    let model = Server::start(Kind::OpenAi);
    let log = tempfile::tempdir().unwrap();
    let log = log.path().join("log");
    let mut client = with(&model, json!([over_stdio(&log)]));
    client.choice = "reject-once".to_owned();
    let told = outputs(&mut client, &model, &[("mcp__test_server__shout", json!({"text": "hi"}))]);
    assert!(told[0].contains("the user does not want this"), "{told:?}");
    assert!(heard(&log).iter().all(|message| message["method"] != "tools/call"));
    let params = json!({"sessionId": client.session, "modeId": "plan"});
    client.ask("session/set_mode", params);
    model.answer(Answer::new().text("Planned."));
    client.prompt("Plan.");
    assert!(names(&model).iter().all(|name| !name.starts_with("mcp__")));
}

#[test]
fn a_cancel_tells_the_server_that_nobody_waits() {
    let model = Server::start(Kind::OpenAi);
    let log = tempfile::tempdir().unwrap();
    let log = log.path().join("log");
    let mut client = with(&model, json!([over_stdio(&log)]));
    model.answer(Answer::new().call("w", "mcp__test_server__wait", "{}"));
    let prompt = client.begin_prompt("Go.");
    client.serve_until(|message| message["params"]["update"]["status"] == "in_progress");
    let sent = |method: &str| heard(&log).iter().any(|message| message["method"] == method);
    client.wait_until(|| sent("tools/call"));
    let session = json!({"sessionId": client.session});
    client.notify("session/cancel", session);
    assert_eq!(client.end(prompt)["stopReason"], "cancelled");
    client.wait_until(|| sent("notifications/cancelled"));
    assert_eq!(client.call("w")["status"], "failed");
}

#[test]
fn tools_that_come_later_are_offered_in_the_next_turn_and_a_server_that_ended_is_said() {
    let model = Server::start(Kind::OpenAi);
    let log = tempfile::tempdir().unwrap();
    let mut client = with(&model, json!([over_stdio(&log.path().join("log"))]));
    outputs(&mut client, &model, &[("mcp__test_server__grow", json!({}))]);
    let told = outputs(&mut client, &model, &[("mcp__test_server__grown", json!({}))]);
    assert_eq!(told, ["it grew"]);
    assert!(names(&model).contains(&"mcp__test_server__grown".to_owned()));
    let told =
        outputs(&mut client, &model, &[("mcp__test_server__die", json!({})), ("mcp__test_server__grown", json!({}))]);
    assert!(told.iter().all(|told| told.contains("the MCP server test server has ended")), "{told:?}");
}

#[test]
fn servers_that_cannot_be_used_are_said_once_and_the_others_work() {
    let model = Server::start(Kind::OpenAi);
    let log = tempfile::tempdir().unwrap();
    let silent = json!({"name": "ends", "command": "/bin/true", "args": [], "env": []});
    let missing = json!({"name": "missing", "command": "/nowhere/to/be found", "args": [], "env": []});
    let events = json!({"type": "sse", "name": "old", "url": "http://127.0.0.1:9/", "headers": []});
    let closed = json!({"type": "http", "name": "closed", "url": "http://127.0.0.1:9/", "headers": []});
    let servers = json!([silent, missing, events, closed, over_stdio(&log.path().join("log"))]);
    let mut client = with(&model, servers);
    let told = outputs(&mut client, &model, &[("mcp__test_server__shout", json!({"text": "hi"}))]);
    assert_eq!(told, ["HI!"]);
    let said = client.said();
    for problem in [
        "the MCP server ends cannot be used",
        "the MCP server missing cannot be used: /nowhere/to/be found cannot be started",
        "the MCP server old cannot be used: it is reached in a way",
        "the MCP server closed cannot be used",
    ] {
        assert_eq!(said.matches(problem).count(), 1, "{said}");
    }
    outputs(&mut client, &model, &[]);
    assert_eq!(client.said().matches("cannot be used").count(), 4);
    client.prompt("/tools");
    assert!(client.said().contains("- `mcp__test_server__shout`, of an MCP server: test server: Shout it"));
}

/// The test's server over HTTP; ends with the pipe to it.
struct Http {
    child: Child,
    url: String,
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Http {
    fn start() -> Self {
        let mut child = Command::new(python())
            .args([SERVER, "--http"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        Self { child, url: format!("http://127.0.0.1:{}/mcp", port.trim()) }
    }

    fn named(&self, name: &str, key: &str) -> Value {
        let headers = json!([{"name": "Authorization", "value": format!("Bearer {key}")}]);
        json!({"type": "http", "name": name, "url": self.url, "headers": headers})
    }
}

#[test]
fn a_server_is_reached_over_http_with_the_headers_that_the_user_gave() {
    let model = Server::start(Kind::OpenAi);
    let http = Http::start();
    let mut client = with(&model, json!([http.named("web", "right"), http.named("locked", "wrong")]));
    let told = outputs(&mut client, &model, &[("mcp__web__shout", json!({"text": "hi"}))]);
    assert_eq!(told, ["HI"]);
    let said = client.said();
    assert!(said.contains("the MCP server locked cannot be used") && !said.contains("wrong"), "{said}");
}
