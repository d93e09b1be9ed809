//! What is printed.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::responses_server::{Answer, Ending, Kind, Server};
use crate::{User, weather};

fn answer() -> Answer {
    Answer::new().thought("I need it.").text("Let me see.").call("call_1", "query_weather", "{\"city\": \"北京\"}")
}

#[test]
fn one_object_in_every_dialect() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server.answer(answer());
        let user = User::of(&server, kind);
        let file = user.tools(&json!([weather()]));
        let outcome = user.chat(&["北京今天天气怎么样?", "--tools-file", &file, "--tool-choice", "required"]);
        let result = outcome.json();
        assert_eq!((&result["id"], &result["model"]), (&json!("resp_1"), &json!("m")), "{kind:?}");
        assert_eq!(
            (&result["content"], &result["reasoning_content"]),
            (&json!("Let me see."), &json!("I need it.")),
            "{kind:?}"
        );
        assert_eq!(
            result["usage"],
            json!({"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17}),
            "{kind:?}"
        );
        let calls = result["function_calls"].as_array().unwrap();
        assert_eq!(calls.len(), 1);
        assert_eq!((&calls[0]["type"], &calls[0]["call_id"]), (&json!("function_call"), &json!("call_1")), "{kind:?}");
        assert_eq!(calls[0]["arguments"], "{\"city\": \"北京\"}");
        assert!(result.get("output").is_none());
    }
}

#[test]
fn text_with_its_sections_in_every_dialect() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server.answer(answer());
        let user = User::of(&server, kind);
        let outcome = user.chat(&["hi", "--stream"]);
        let wanted = "Thinking:\nI need it.\n\nResponse:\nLet me see.\n[Tool args] {\"city\": \"北京\"}\n";
        assert_eq!(outcome.text(), wanted, "{kind:?}");
        assert_eq!(outcome.stderr, "", "{kind:?}");
    }
}

#[test]
fn tool_lines_fall_where_the_events_do() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().call("a", "f", "{}").text("Then."));
    assert_eq!(User::of(&server, Kind::OpenAi).chat(&["hi", "--stream"]).text(), "[Tool args] {}\nResponse:\nThen.\n");
}

#[test]
fn events_are_printed_as_they_came() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server.answer(answer());
        let outcome = User::of(&server, kind).chat(&["hi", "--stream", "--include-events"]);
        let events: Vec<Value> = outcome.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let name = |name: &str| if kind == Kind::Gateway { name.replace('.', "_") } else { name.to_owned() };
        assert_eq!(events[0]["type"], name("response.created"), "{kind:?}");
        assert_eq!(events.last().unwrap()["type"], name("response.completed"), "{kind:?}");
        assert!(outcome.stdout.starts_with("{\"type\":\"response"), "the fields keep their order: {}", outcome.stdout);
    }
}

#[test]
fn an_answer_that_is_cut_short_is_told() {
    let server = Server::start(Kind::OpenAi);
    let short = || Answer::new().text("Hel").ending(Ending::Incomplete("max_output_tokens".into()));
    server.answer(short()).answer(short());
    let user = User::of(&server, Kind::OpenAi);
    let outcome = user.chat(&["hi"]);
    assert_eq!(outcome.json()["status"], "incomplete");
    assert_eq!(outcome.json()["incomplete_details"]["reason"], "max_output_tokens");
    let outcome = user.chat(&["hi", "--stream"]);
    assert_eq!(
        (outcome.text(), outcome.stderr.as_str()),
        ("Response:\nHel\n", "warn: the answer is incomplete: max_output_tokens\n")
    );
}

#[test]
fn text_comes_while_it_is_said() {
    use std::io::Read as _;
    let server = Server::start(Kind::OpenAi);
    let begun = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"first \"}\n\n";
    let rest = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"last\"}\n\ndata: {\"type\":\"response.completed\"}\n\n";
    server.answer(Answer::raw([begun, rest]).gate_at(begun.len()));
    let user = User::of(&server, Kind::OpenAi);
    let mut child = user.command(&["chat", "hi", "--stream"]).spawn().unwrap();
    let mut seen = [0; 16];
    child.stdout.as_mut().unwrap().read_exact(&mut seen).unwrap();
    assert_eq!(&seen, b"Response:\nfirst ");
    server.open_gate();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"last\n");
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().text(&"many words ".repeat(100_000)).pieces(1000));
    let user = User::of(&server, Kind::OpenAi);
    let mut child = user.command(&["chat", "hi", "--stream"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn an_answer_that_has_to_fit_a_schema() {
    let server = Server::start(Kind::OpenAi);
    let user = User::of(&server, Kind::OpenAi);
    let schema = user.file(
        "schema.json",
        r#"{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"],"additionalProperties":false}"#,
    );
    let ask = |answer: Answer, more: &[&str]| {
        server.answer(answer);
        user.chat(&[&["hi", "--text-schema", &schema, "--text-strict"], more].concat())
    };
    assert_eq!(ask(Answer::new().text("{\"age\": 5}"), &[]).json()["content"], "{\"age\": 5}");
    assert_eq!(server.posts()[0]["text"]["format"]["strict"], true);
    assert_eq!(ask(Answer::new().text("{\"age\": 5}"), &["--stream"]).text(), "{\"age\": 5}\n");
    let short = Answer::new().text("{\"age\":").ending(Ending::Incomplete("max_output_tokens".into()));
    for (answer, wanted) in [
        (Answer::new().text("{\"age\": \"old\"}"), "did not match --text-schema"),
        (Answer::new().text("Sure! {\"age\": 5}"), "not a direct JSON value"),
        (short, "not completed"),
    ] {
        let outcome = ask(answer, &["--stream"]);
        let error = outcome.error(1);
        assert_eq!((error["type"].as_str(), outcome.stdout.as_str()), (Some("invalid_response"), ""));
        assert!(error["message"].as_str().unwrap().contains(wanted), "{error}");
    }
}

#[test]
fn what_takes_long_is_told_unless_not_wanted() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().text("Hello").gate_at(0)).answer(Answer::new().text("Hello").gate_at(0));
    let user = User::of(&server, Kind::OpenAi);
    let told = user.command(&["chat", "hi"]).spawn().unwrap();
    let quiet = user.command(&["chat", "hi", "--no-progress"]).spawn().unwrap();
    server.wait_requests(2);
    // The time of the promise itself: nothing else can be waited for.
    std::thread::sleep(Duration::from_millis(5500));
    server.open_gate();
    let stderr = |child: std::process::Child| String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert_eq!(stderr(told), "agentchat chat: still running… elapsed 5s\n");
    assert_eq!(stderr(quiet), "");
}
