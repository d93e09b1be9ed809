//! What every dialect has to be able to do.

use agentchat::responses::{FunctionCall, Input, Request, ToolChoice, Update, item, part};
use serde_json::{Value, json};

use crate::responses_server::{Answer, Kind, Server};
use crate::{all, ask, client, function, text, thoughts};

fn answer() -> Answer {
    Answer::new().thought("I need the tool.").text("Let me check: é日本🙂.").call(
        "call_1",
        "time",
        r#"{"city":"Zürich"}"#,
    )
}

fn expected_call() -> FunctionCall {
    FunctionCall { call_id: "call_1".into(), name: "time".into(), arguments: r#"{"city":"Zürich"}"#.into() }
}

#[tokio::test]
async fn a_streamed_answer_has_all_its_parts_in_every_dialect() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server.answer(answer());
        let request = Request { tools: vec![function("time")], ..ask("What time is it in Zürich?") };
        let (updates, response) = all(client(&server, kind).stream(&request).await.unwrap()).await;
        let response = response.unwrap();
        assert_eq!(thoughts(&updates), "I need the tool.", "{kind:?}");
        assert_eq!(text(&updates), "Let me check: é日本🙂.", "{kind:?}");
        let calls: Vec<_> = updates.iter().filter(|update| matches!(update, Update::CallDone { .. })).collect();
        assert_eq!(calls.len(), 1, "{kind:?}");
        assert_eq!(response.function_calls(), [expected_call()], "{kind:?}");
        assert_eq!(response.output_text(), "Let me check: é日本🙂.", "{kind:?}");
        assert_eq!(response.reasoning_text(), "I need the tool.", "{kind:?}");
        assert_eq!((response.id(), response.usage().unwrap().total), ("resp_1", 17), "{kind:?}");
        assert_eq!(updates.last(), Some(&Update::Finished), "{kind:?}");
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_is_the_same() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server.answer(answer());
        let response = client(&server, kind).create(&ask("hi")).await.unwrap();
        assert_eq!(response.function_calls(), [expected_call()], "{kind:?}");
        assert_eq!(response.output_text(), "Let me check: é日本🙂.", "{kind:?}");
        assert_eq!(response.output()[2]["type"], "function_call", "{kind:?}");
        assert!(server.posts()[0].get("stream").is_none());
    }
}

#[tokio::test]
async fn a_call_and_its_output_go_back_and_forth_without_a_store() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server.answer(answer()).answer(Answer::new().text("It is noon."));
        let client = client(&server, kind);
        let mut items = vec![item::user(vec![part::text("What time is it in Zürich?")])];
        let mut request = Request { tools: vec![function("time")], store: Some(false), ..ask("") };
        request.input = Input::Items(items.clone());
        let (_, response) = all(client.stream(&request).await.unwrap()).await;
        items.extend(response.unwrap().output().iter().cloned());
        items.push(item::function_call_output("call_1", "12:00"));
        request.input = Input::Items(items);
        let response = client.create(&request).await.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
        assert_eq!(response.output_text(), "It is noon.", "{kind:?}");
    }
}

#[tokio::test]
async fn a_response_is_continued_and_managed_where_it_is_kept() {
    for kind in [Kind::OpenAi, Kind::Ark] {
        let server = Server::start(kind);
        server.answer(answer()).answer(Answer::new().text("It is noon."));
        let client = client(&server, kind);
        let first = client.create(&ask("What time is it?")).await.unwrap();
        let output = Input::Items(vec![item::function_call_output("call_1", "12:00")]);
        let request = Request { previous_response_id: Some(first.id().to_owned()), input: output, ..ask("") };
        let second = client.create(&request).await.unwrap();
        assert_eq!(client.get(second.id(), &[]).await.unwrap().output_text(), "It is noon.");
        let page = client.input_items(second.id(), &[("order".to_owned(), "asc".to_owned())]).await.unwrap();
        let types: Vec<&Value> = page["data"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
        assert_eq!(types, ["message", "reasoning", "message", "function_call", "function_call_output"]);
        // OpenAI answers with an object, Ark with nothing.
        client.delete(second.id()).await.unwrap();
        let error = client.get(second.id(), &[]).await.unwrap_err();
        assert!(error.hint().is_some(), "{error}");
    }
}

#[tokio::test]
async fn a_choice_that_names_a_function_reaches_every_server_as_something_it_understands() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server.answer(Answer::new().call("c", "b", "{}"));
        let choice = Some(ToolChoice::Function("b".into()));
        let request = Request { tools: vec![function("a"), function("b")], tool_choice: choice, ..ask("hi") };
        client(&server, kind).create(&request).await.unwrap();
        let body = &server.posts()[0];
        let names: Vec<&Value> = body["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        match kind {
            Kind::Ollama => assert_eq!((names, &body["tool_choice"]), (vec![&json!("b")], &Value::Null)),
            Kind::LlamaCpp => assert_eq!((names, &body["tool_choice"]), (vec![&json!("b")], &json!("required"))),
            _ => assert_eq!((names.len(), &body["tool_choice"]), (2, &json!({"type": "function", "name": "b"}))),
        }
    }
}

#[tokio::test]
async fn a_web_search_is_told_while_it_runs() {
    for kind in [Kind::OpenAi, Kind::Ark, Kind::Gateway] {
        let server = Server::start(kind);
        server.answer(Answer::new().search("oslo time").text("Nine."));
        let tool = agentchat::responses::Tool::Other(json!({"type": "web_search"}));
        let request = Request { tools: vec![tool], ..ask("hi") };
        let (updates, response) = all(client(&server, kind).stream(&request).await.unwrap()).await;
        let of = |update: &Update| {
            if let Update::Tool { kind, status, .. } = update { Some((kind.clone(), status.clone())) } else { None }
        };
        let told: Vec<_> = updates.iter().filter_map(of).collect();
        assert!(told.iter().all(|(kind, _)| kind == "web_search_call"), "{told:?}");
        assert!(told.iter().any(|(_, status)| status == "searching"), "{told:?}");
        assert_eq!(response.unwrap().calls()[0]["action"]["query"], "oslo time");
        let beta = server.requests()[0].header("ark-beta-web-search").map(str::to_owned);
        assert_eq!(beta.as_deref(), (kind == Kind::Ark).then_some("true"));
    }
}

#[tokio::test]
async fn models_and_uploads() {
    let server = Server::start(Kind::Ark);
    server.models(&["a", "b"]);
    let client = client(&server, Kind::Ark);
    assert_eq!(client.models().await.unwrap(), ["a", "b"]);
    assert_eq!(client.upload("a \"b\".pdf", b"%PDF\r\n").await.unwrap(), "file-1");
    let upload = server.requests().into_iter().find(|request| request.method == "POST").unwrap();
    let body = upload.body.as_str().unwrap();
    assert!(body.contains("name=\"purpose\"\r\n\r\nuser_data\r\n"), "{body}");
    assert!(body.contains("filename=\"a _b_.pdf\"") && body.contains("\r\n\r\n%PDF\r\n\r\n--"), "{body}");
}
