//! When a request is sent again, and when not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use agentchat::responses::{Request, Tool};
use serde_json::json;

use crate::responses_server::{Answer, Kind, Server};
use crate::{ask, client};

fn refusal(status: u16) -> Answer {
    Answer::error(status, json!({"error": {"message": "not now", "code": "x"}})).header("retry-after-ms", "1")
}

#[tokio::test]
async fn a_refusal_that_may_pass_is_tried_again_and_said() {
    for status in [408, 409, 429, 500, 503] {
        let server = Server::start(Kind::OpenAi);
        server.answer(refusal(status)).answer(refusal(status)).answer(Answer::new().text("Hello"));
        let waits = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&waits);
        let client =
            client(&server, Kind::OpenAi).with_retry_notice(move |retry| told.lock().unwrap().push(retry.wait));
        assert_eq!(client.create(&ask("hi")).await.unwrap().output_text(), "Hello", "{status}");
        assert_eq!(*waits.lock().unwrap(), [Duration::from_millis(1); 2]);
        assert_eq!(server.posts().len(), 3);
    }
}

#[tokio::test]
async fn it_is_given_up_at_last() {
    let server = Server::start(Kind::OpenAi);
    for _ in 0..5 {
        server.answer(refusal(429));
    }
    assert!(client(&server, Kind::OpenAi).create(&ask("hi")).await.is_err());
    assert_eq!(server.posts().len(), 3);
}

#[tokio::test]
async fn other_refusals_are_final() {
    for status in [400, 401, 403, 404, 422] {
        let server = Server::start(Kind::OpenAi);
        server.answer(refusal(status)).answer(Answer::new());
        assert!(client(&server, Kind::OpenAi).create(&ask("hi")).await.is_err());
        assert_eq!(server.posts().len(), 1, "{status}");
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_not_waited_for() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::error(429, json!({"error": {"message": "tomorrow"}})).header("retry-after", "86400"));
    assert!(client(&server, Kind::OpenAi).create(&ask("hi")).await.is_err());
    assert_eq!(server.posts().len(), 1);
}

#[tokio::test]
async fn a_request_whose_tools_may_have_run_is_not_sent_again() {
    let search = Request { tools: vec![Tool::Other(json!({"type": "web_search"}))], ..ask("hi") };
    let server = Server::start(Kind::OpenAi);
    server.answer(refusal(500));
    assert!(client(&server, Kind::OpenAi).create(&search).await.is_err());
    assert_eq!(server.posts().len(), 1);
    // Too many requests: nothing was done.
    let server = Server::start(Kind::OpenAi);
    server.answer(refusal(429)).answer(Answer::new().text("Hello"));
    assert!(client(&server, Kind::OpenAi).create(&search).await.is_ok());
}

#[tokio::test]
async fn what_has_begun_is_not_sent_again() {
    let server = Server::start(Kind::OpenAi);
    let begun = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n";
    server.answer(Answer::raw([begun]).cut_after(begun.len()));
    assert!(client(&server, Kind::OpenAi).create(&ask("hi")).await.is_err());
    assert_eq!(server.posts().len(), 1);
}
