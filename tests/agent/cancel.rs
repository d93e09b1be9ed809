//! A cancel, wherever a turn is: it ends at once, and the endpoint takes what is left of it.

use std::time::Instant;

use serde_json::json;

use crate::client::Client;
use crate::ready;
use crate::responses_server::{Answer, Kind, Server};

/// Cancels, and has the next prompt answered: the server checks that each call has its output.
#[track_caller]
fn cancelled(mut client: Client, server: &Server, id: u64) -> Client {
    let session = client.session.clone();
    client.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(client.end(id)["stopReason"], "cancelled");
    server.answer(Answer::new().text("Here again."));
    "allow-once".clone_into(&mut client.choice);
    client.lets_commands_end = true;
    assert_eq!(client.prompt("And now?"), "end_turn");
    assert!(client.said().ends_with("Here again."), "{}", client.said());
    client
}

#[test]
fn while_the_model_speaks() {
    let server = Server::start(Kind::OpenAi);
    // What comes before the text of such a server has some 1,500 bytes.
    server.answer(Answer::new().text(&"A long answer that never ends. ".repeat(100)).gate_at(6_000));
    let mut client = ready(&server, Kind::OpenAi);
    let id = client.begin_prompt("Speak.");
    client.serve_until(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    let client = cancelled(client, &server, id);
    let said = client.updates("agent_message_chunk")[0]["content"]["text"].as_str().unwrap().to_owned();
    let sent = server.posts()[1]["input"].to_string();
    assert!(sent.contains(&said), "the model knows what it has said: {sent}");
}

#[test]
fn before_the_model_answers() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().text("late").gate_at(0));
    let mut client = ready(&server, Kind::OpenAi);
    let id = client.begin_prompt("Speak.");
    server.wait_requests(2);
    cancelled(client, &server, id);
}

#[test]
fn while_the_user_is_asked() {
    let server = Server::start(Kind::LlamaCpp);
    server.answer(Answer::new().call("c1", "write_file", r#"{"path":"a.txt","content":"x"}"#).call(
        "c2",
        "glob",
        r#"{"pattern":"*"}"#,
    ));
    let mut client = ready(&server, Kind::LlamaCpp);
    client.choice = "nobody".to_owned();
    let id = client.begin_prompt("Write.");
    client.serve_until(|message| message["method"] == "session/request_permission");
    let client = cancelled(client, &server, id);
    for call in ["c1", "c2"] {
        assert_eq!(client.call(call)["status"], "failed", "{call}");
    }
    assert!(!client.project().join("a.txt").exists());
    let sent = server.posts()[1]["input"].to_string();
    assert_eq!(sent.matches("cancelled by the user").count(), 2, "{sent}");
}

#[test]
fn by_the_answer_to_the_question() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().call("c1", "run_command", r#"{"command":"touch ran"}"#));
    let mut client = ready(&server, Kind::OpenAi);
    client.choice = "cancelled".to_owned();
    assert_eq!(client.prompt("Run."), "cancelled");
    assert!(!client.project().join("ran").exists());
}

#[test]
fn while_a_command_runs() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().call("c1", "run_command", r#"{"command":"sleep 1000"}"#));
    let mut client = ready(&server, Kind::OpenAi);
    client.lets_commands_end = false;
    let id = client.begin_prompt("Run.");
    client.serve_until(|message| message["method"] == "terminal/wait_for_exit");
    let begun = Instant::now();
    let client = cancelled(client, &server, id);
    assert!(begun.elapsed().as_secs() < 10);
    assert_eq!(client.requests("terminal/release").len(), 1, "which ends it");
}
