//! Refusals, and servers that are none.

use agentchat::responses::{Error, Reason, Request};
use serde_json::json;

use crate::responses_server::{Answer, Kind, Server};
use crate::{ask, client, impatient, with_key};

async fn failure(answer: Answer) -> Error {
    let server = Server::start(Kind::OpenAi);
    server.answer(answer);
    client(&server, Kind::OpenAi).create(&ask("hi")).await.unwrap_err()
}

#[tokio::test]
async fn a_refusal_is_shown_as_it_came_with_a_hint() {
    let body = json!({"error": {"code": "model_not_found", "message": "The model `m` does not exist", "param": null, "type": "invalid_request_error"}});
    let error = failure(Answer::error(404, body.clone()).header("x-request-id", "req_7")).await;
    assert_eq!(error.to_string(), format!("Error code: 404 - {body}"));
    let Error::Api(api) = &error else { panic!("{error:?}") };
    assert_eq!((api.reason(), api.request_id.as_deref()), (Reason::Model, Some("req_7")));
    assert!(error.hint().unwrap().contains("profile test"));
}

#[tokio::test]
async fn a_numeric_code_is_a_code() {
    let error =
        failure(Answer::error(400, json!({"error": {"code": 400, "message": "no", "type": "invalid_request_error"}})))
            .await;
    let Error::Api(api) = error else { panic!("{error:?}") };
    assert_eq!((api.status, api.code.as_deref()), (Some(400), Some("400")));
}

#[tokio::test]
async fn what_is_no_responses_api_is_called_so() {
    let page = Answer::raw(["<html><body>Please log in</body></html>"]).header("content-type", "text/html");
    let error = failure(page).await;
    assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
    assert!(error.to_string().contains("Please log in"), "{error}");
    let chat = json!({"id": "c", "object": "chat.completion", "choices": []});
    assert!(matches!(failure(Answer::error(200, chat)).await, Error::Protocol { .. }));
    let error = failure(Answer::error(200, json!({"error": {"message": "broken", "code": "x"}}))).await;
    assert!(matches!(&error, Error::Api(api) if api.message == "broken"), "{error:?}");
    // A gateway's page for an error.
    let page = Answer::raw(["<h1>404</h1>"]).status(404);
    assert!(failure(page).await.to_string().contains("Error code: 404"));
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let server = Server::start(Kind::OpenAi);
    let other = Server::start(Kind::OpenAi);
    let moved = Answer::raw([""]).status(307);
    server.answer(moved.header("location", &other.base_url()));
    let error = with_key(&server, "secret-key").create(&ask("hi")).await.unwrap_err();
    assert!(error.to_string().contains("base_url"), "{error}");
    assert_eq!(other.requests().len(), 0);
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_not_passed_on() {
    let server = Server::start(Kind::OpenAi);
    server.key("right-key-0123456789");
    let client = with_key(&server, "wrong-key-0123456789");
    let error = client.create(&ask("hi")).await.unwrap_err();
    let Error::Api(api) = &error else { panic!("{error:?}") };
    assert_eq!(api.reason(), Reason::Key);
    for shown in [error.to_string(), format!("{error:?}"), format!("{client:?}"), api.message.clone()] {
        assert!(!shown.contains("wrong-key"), "{shown}");
    }
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer wrong-key-0123456789"));
}

#[tokio::test]
async fn a_key_that_a_stream_repeats_is_not_passed_on() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::raw(["data: {\"error\":{\"message\":\"wrong-key-0123456789 is used up\"}}\n\n"]));
    let error = with_key(&server, "wrong-key-0123456789").create(&ask("hi")).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("wrong-key"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let server = Server::start(Kind::OpenAi);
    let client = client(&server, Kind::OpenAi);
    let address = server.address();
    drop(server);
    // The thread that accepts ends in a moment.
    let started = std::time::Instant::now();
    let error = loop {
        match client.create(&Request { model: "m".into(), ..Request::default() }).await {
            Err(error @ Error::Connect { .. }) if error.to_string().contains("refused") => break error,
            other => assert!(started.elapsed().as_secs() < 20, "{other:?}"),
        }
    };
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(error.hint().unwrap().contains("server runs"));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(Kind::OpenAi);
    let mut endpoint = impatient(&server).endpoint().clone();
    endpoint.base_url =
        agentchat::responses::BaseUrl::parse(&format!("http://{}/v1", silent.local_addr().unwrap())).unwrap();
    let error = agentchat::responses::Client::new(endpoint).unwrap().create(&ask("hi")).await.unwrap_err();
    assert!(matches!(error, Error::Stalled { partial: None, .. }), "{error:?}");
}
