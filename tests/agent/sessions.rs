//! Sessions that outlive the agent.

use serde_json::json;

use crate::ready;
use crate::responses_server::{Answer, Kind, Server};

#[test]
fn a_session_is_listed_loaded_resumed_forked_and_deleted() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().text("It is a parser."));
    let mut client = ready(&server, Kind::OpenAi);
    client.prompt("What is this project?");
    let first = client.session.clone();
    let mut client = client.restart();
    let listed = client.ask("session/list", json!({"cwd": client.project()}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    let session = &listed["sessions"][0];
    assert_eq!((&session["sessionId"], &session["title"]), (&json!(first), &json!("What is this project?")));
    assert!(session["updatedAt"].as_str().unwrap().ends_with('Z'));

    let params = json!({"sessionId": first, "cwd": client.project(), "mcpServers": []});
    let loaded = client.ask("session/load", params.clone());
    assert!(loaded["modes"].is_object(), "{loaded}");
    assert_eq!(client.updates("user_message_chunk")[0]["content"]["text"], "What is this project?");
    assert_eq!(client.said(), "It is a parser.");
    client.session.clone_from(&first);
    server.answer(Answer::new().text("Written in Rust."));
    client.prompt("In which language?");
    let sent = server.posts()[1]["input"].to_string();
    assert!(sent.contains("It is a parser."), "the model knows what was said: {sent}");

    let forked = client.ask("session/fork", params.clone());
    let fork = forked["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(fork, first);
    client.session = fork;
    server.answer(Answer::new().text("Another way."));
    client.prompt("What else?");
    assert!(server.posts()[2]["input"].to_string().contains("Written in Rust."));
    let listed = client.ask("session/list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2);

    let mut client = client.restart();
    let before = client.seen.len();
    client.ask("session/resume", params.clone());
    assert!(
        !client.seen[before..]
            .iter()
            .any(|message| message["params"]["update"]["sessionUpdate"] == "user_message_chunk")
    );
    client.ask("session/delete", json!({"sessionId": first}));
    assert_eq!(client.ask("session/load", params)["code"], -32002);
    let listed = client.ask("session/list", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn unknown_sessions_and_methods_are_refused() {
    let server = Server::start(Kind::OpenAi);
    let mut client = ready(&server, Kind::OpenAi);
    for method in ["session/prompt", "session/set_mode", "session/close", "session/delete"] {
        let params = json!({"sessionId": "no", "prompt": [], "modeId": "ask"});
        assert!(client.ask(method, params)["code"].is_i64(), "{method}");
    }
    assert_eq!(client.ask("no/such", json!({}))["code"], -32601);
    assert_eq!(client.ask("session/new", json!({"cwd": "relative", "mcpServers": []}))["code"], -32602);
}
