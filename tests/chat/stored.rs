//! Responses that are kept, at the endpoint or here.

use serde_json::{Value, json};

use crate::responses_server::{Answer, Kind, Server};
use crate::{User, weather};

fn types(page: &Value) -> Vec<&str> {
    page["data"].as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap()).collect()
}

/// The same everywhere, whoever keeps the responses.
#[test]
fn a_streamed_call_its_output_and_the_answer_are_all_there_later() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server
            .answer(Answer::new().call("call_1", "query_weather", "{\"city\":\"Oslo\"}"))
            .answer(Answer::new().text("It rains."));
        let user = User::of(&server, kind);
        let file = user.tools(&json!([weather()]));
        user.chat(&["Weather in Oslo?", "--stream", "--store", "--tools-file", &file]).text();
        let first = user.chat(&["get", "resp_1"]).json();
        assert_eq!(first["function_calls"][0]["arguments"], "{\"city\":\"Oslo\"}", "{kind:?}");

        let second = user
            .chat(&[
                "--previous-response-id",
                "resp_1",
                "--tool-output",
                "call_1={\"rain\":true}",
                "--tools-file",
                &file,
            ])
            .json();
        assert_eq!(second["content"], "It rains.", "{kind:?}");
        let page = user.chat(&["list-input-items", "resp_2", "--order", "asc"]).json();
        assert_eq!(types(&page), ["message", "function_call", "function_call_output"], "{kind:?}");
        assert_eq!(page["data"][2]["output"], "{\"rain\":true}");
        assert_eq!(page["has_more"], false);
        let page = user.chat(&["list-input-items", "resp_2", "--limit", "1"]).json();
        assert_eq!((types(&page), &page["has_more"]), (vec!["function_call_output"], &json!(true)), "{kind:?}");

        assert_eq!(user.chat(&["delete", "resp_2"]).json(), json!({"id": "resp_2", "deleted": true}), "{kind:?}");
        let error = user.chat(&["get", "resp_2"]).error(5);
        assert!(error["hint"].is_string(), "{error}");
    }
}

#[test]
fn a_conversation_goes_on_where_the_endpoint_keeps_nothing() {
    for kind in [Kind::Ollama, Kind::LlamaCpp, Kind::Vllm, Kind::Gateway] {
        let server = Server::start(kind);
        server.answer(Answer::new().thought("hm").text("Nice, Ann.")).answer(Answer::new().text("Ann."));
        let user = User::of(&server, kind);
        user.chat(&["I am Ann."]).json();
        let result = user.chat(&["Who am I?", "--previous-response-id", "resp_1"]).json();
        assert_eq!((&result["content"], &result["previous_response_id"]), (&json!("Ann."), &json!("resp_1")));
        let body = &server.posts()[1];
        assert!(body.get("previous_response_id").is_none(), "{kind:?}");
        let texts: Vec<&Value> = body["input"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| item["type"] != "reasoning")
            .map(|item| &item["content"][0]["text"])
            .collect();
        assert_eq!(texts, ["I am Ann.", "Nice, Ann.", "Who am I?"], "{kind:?}");
    }
}

#[test]
fn a_conversation_goes_on_at_an_endpoint_that_keeps_it() {
    let server = Server::start(Kind::Ark);
    server.answer(Answer::new().text("Nice, Ann.")).answer(Answer::new().text("Ann."));
    let user = User::of(&server, Kind::Ark);
    user.chat(&["I am Ann."]).json();
    user.chat(&["Who am I?", "--previous-response-id", "resp_1"]).json();
    let body = &server.posts()[1];
    assert_eq!((&body["previous_response_id"], body["input"].as_array().unwrap().len()), (&json!("resp_1"), 1));
}

#[test]
fn a_call_that_was_never_answered_does_not_end_the_conversation() {
    let server = Server::start(Kind::LlamaCpp);
    server.answer(Answer::new().call("call_1", "f", "{}")).answer(Answer::new().text("Never mind."));
    let user = User::of(&server, Kind::LlamaCpp);
    user.chat(&["hi"]).json();
    assert_eq!(user.chat(&["Forget it.", "--previous-response-id", "resp_1"]).json()["content"], "Never mind.");
}

#[test]
fn a_response_that_is_not_there_is_told() {
    for kind in [Kind::Ark, Kind::Ollama] {
        let server = Server::start(kind);
        let user = User::of(&server, kind);
        let error = user.chat(&["hi", "--previous-response-id", "resp_9"]).error(5);
        assert!(error["message"].as_str().unwrap().contains("PreviousResponseNotFound"), "{error}");
        assert!(error["hint"].is_string(), "{error}");
    }
}

#[test]
fn nothing_is_kept_that_is_not_to_be() {
    let server = Server::start(Kind::Ollama);
    server.answer(Answer::new().text("Hello"));
    let user = User::of(&server, Kind::Ollama);
    user.chat(&["hi", "--store=false"]).json();
    assert!(!user.store().exists());
    assert_eq!(server.posts()[0]["store"], false);
}

#[test]
fn the_list_has_the_newest_first() {
    let server = Server::start(Kind::OpenAi);
    let user = User::of(&server, Kind::OpenAi);
    assert_eq!(user.chat(&["list"]).json(), json!({"object": "list", "data": [], "has_more": false}));
    for text in ["one", "two", "three"] {
        server.answer(Answer::new().text(text));
        user.chat(&[&format!("say {text}")]).json();
    }
    let list = user.chat(&["list", "--limit", "2"]).json();
    let ids: Vec<&str> = list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!((ids, &list["has_more"]), (vec!["resp_3", "resp_2"], &json!(true)));
    assert_eq!((&list["data"][0]["prompt"], &list["data"][0]["content"]), (&json!("say three"), &json!("three")));
    let rest = user.chat(&["list", "--before", "resp_2"]).json();
    assert_eq!(rest["data"][0]["id"], "resp_1");
}

#[test]
fn what_is_included_is_passed_on_in_its_whole_name() {
    let server = Server::start(Kind::Ark);
    server.answer(Answer::new().text("Hello"));
    let user = User::of(&server, Kind::Ark);
    user.chat(&["hi"]).json();
    user.chat(&["get", "resp_1", "--include", "image_url"]).json();
    let path = server.requests().pop().unwrap().path;
    assert_eq!(path, "/responses/resp_1?include=message.input_image.image_url");
}
