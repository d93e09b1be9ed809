//! What goes wrong is told in the chat, and the turn ends.

use serde_json::{Value, json};

use crate::client::{self, Client};
use crate::ready;
use crate::responses_server::{Answer, Ending, Kind, Server};

fn refusal(code: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message, "type": "invalid_request_error"}})
}

/// What is said, and how the turn ends, if the model answers so; the turn after it works.
#[track_caller]
fn told(answer: Answer) -> (String, String) {
    let server = Server::start(Kind::OpenAi);
    server.answer(answer).answer(Answer::new().text("Here."));
    let mut client = ready(&server, Kind::OpenAi);
    let reason = client.prompt("Go.");
    let said = client.said();
    assert_eq!(client.prompt("Again."), "end_turn", "{said}");
    (said, reason)
}

#[test]
fn each_failure_has_its_words_and_its_stop_reason() {
    let cases = [
        (Answer::error(401, refusal("invalid_api_key", "Incorrect API key provided")), "check the key", "end_turn"),
        (Answer::error(404, refusal("model_not_found", "The model `m` does not exist")), "`/model`", "end_turn"),
        (Answer::error(429, refusal("insufficient_quota", "You exceeded your quota")), "check its billing", "end_turn"),
        (Answer::error(400, refusal("content_filter", "flagged")), "rephrase", "refusal"),
        (Answer::error(400, refusal("", "m does not support tools")), "cannot use tools", "end_turn"),
        (Answer::new().text("Half").ending(Ending::Incomplete("max_output_tokens".into())), "Half", "max_tokens"),
        (Answer::new().text("Half").ending(Ending::Incomplete("content_filter".into())), "Half", "refusal"),
        (
            Answer::new().text("Half").ending(Ending::Failed("server_error".into(), "it broke".into())),
            "it broke",
            "end_turn",
        ),
        (Answer::new().text("Half").ending(Ending::BareError("x".into(), "bare".into())), "bare", "end_turn"),
        (Answer::new(), "without an answer", "end_turn"),
    ];
    for (answer, words, reason) in cases {
        let (said, ended) = told(answer);
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(ended, reason, "{said}");
    }
}

#[test]
fn a_call_that_is_cut_off_is_closed_and_costs_the_turn_only() {
    let server = Server::start(Kind::OpenAi);
    server
        .answer(Answer::new().call("c1", "read_file", r#"{"path":"a.txt"}"#).cut_after(700))
        .answer(Answer::new().text("Here."));
    let mut client = ready(&server, Kind::OpenAi);
    assert_eq!(client.prompt("Go."), "end_turn");
    assert!(client.said().contains("The model did not answer"), "{}", client.said());
    for call in client.updates("tool_call") {
        assert_eq!(client.call(call["toolCallId"].as_str().unwrap())["status"], "failed");
    }
    assert_eq!(client.prompt("Again."), "end_turn");
}

#[test]
fn without_an_endpoint_the_user_hears_what_to_do() {
    let mut client = Client::start(None, client::everything());
    assert_eq!(client.prompt("Hello?"), "end_turn");
    assert!(
        client.said().contains("no endpoint") && client.said().contains("agentchat profile add"),
        "{}",
        client.said()
    );
}

#[test]
fn a_server_that_is_not_there_is_told_within_seconds() {
    let server = Server::start(Kind::LlamaCpp);
    let home = ready(&server, Kind::LlamaCpp);
    drop(server);
    let mut client = home.restart();
    assert_eq!(client.prompt("Hello?"), "end_turn");
    assert!(client.said().contains("no connection to"), "{}", client.said());
}

#[test]
fn a_wait_before_another_try_is_shown() {
    let server = Server::start(Kind::OpenAi);
    server
        .answer(Answer::error(429, refusal("rate_limit_exceeded", "slow down")).header("retry-after", "1"))
        .answer(Answer::new().text("Here."));
    let mut client = ready(&server, Kind::OpenAi);
    assert_eq!(client.prompt("Go."), "end_turn");
    let thoughts = client.updates("agent_thought_chunk");
    assert_eq!(thoughts[0]["content"]["text"], "slow down; asking again in 1 s");
    assert_eq!(client.said(), "Here.");
}
