//! Every error that is told before anything is sent, and those of the endpoint.

use serde_json::json;

use crate::responses_server::{Answer, Ending, Kind, Server};
use crate::{User, weather};

/// Refused before anything is sent.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let server = Server::start(Kind::Ark);
    let message = User::of(&server, Kind::Ark).chat(arguments).refused();
    assert_eq!(server.requests().len(), 0, "something was sent");
    message
}

#[track_caller]
fn refused_tools(tools: &serde_json::Value, arguments: &[&str]) -> String {
    let server = Server::start(Kind::Ark);
    let user = User::of(&server, Kind::Ark);
    let file = user.tools(tools);
    let message = user.chat(&[&["hi", "--tools-file", &file], arguments].concat()).refused();
    assert_eq!(server.requests().len(), 0, "something was sent");
    message
}

#[test]
fn a_tool_type_that_is_not_supported() {
    for kind in ["mcp", "knowledge_search", "image_process"] {
        assert_eq!(refused(&["hi", "--tools", kind]), format!("tool[0] type \"{kind}\" not supported in this build"));
        let message = refused_tools(&json!([weather(), {"type": kind}]), &["--tools", "web_search"]);
        assert_eq!(message, format!("tool[2] type \"{kind}\" not supported in this build"));
    }
}

#[test]
fn a_function_without_name() {
    assert_eq!(refused_tools(&json!([{"type": "function"}]), &[]), "function tool requires 'name'");
    assert_eq!(refused(&["hi", "--tools", "function"]), "function tool requires 'name'");
}

#[test]
fn a_tool_choice_that_is_not_supported() {
    assert_eq!(refused(&["hi", "--tool-choice", "always"]), "unsupported tool_choice \"always\"");
    assert_eq!(
        refused_tools(&json!([weather()]), &["--tool-choice", "query_weather"]),
        "unsupported tool_choice \"query_weather\""
    );
}

#[test]
fn max_tool_calls_with_a_function() {
    let message = refused_tools(&json!([weather()]), &["--max-tool-calls", "3"]);
    assert!(message.contains("--max-tool-calls") && message.contains("query_weather"), "{message}");
    let message = refused_tools(&json!([weather()]), &["--tools", "web_search", "--max-tool-calls", "3"]);
    assert!(message.contains("--max-tool-calls"), "{message}");
}

#[test]
fn what_arkcli_tells_of_the_other_options() {
    assert_eq!(refused(&[]), "prompt is required when no --input is provided");
    assert_eq!(refused(&["hi", "--thinking", "on"]), "unsupported thinking.type \"on\"");
    assert_eq!(refused(&["hi", "--caching", "on"]), "unsupported caching.type \"on\"");
    assert_eq!(refused(&["hi", "--text-format", "xml"]), "unsupported text.format.type \"xml\"");
    assert_eq!(
        refused(&["hi", "--text-format=json_schema"]),
        "--text-format=json_schema requires --text-schema <path>"
    );
    assert_eq!(
        refused(&["hi", "--text-schema", "/nowhere/s.json"]),
        "read --text-schema \"/nowhere/s.json\": no such file or directory"
    );
    assert_eq!(refused(&["hi", "--input", "/nowhere/a.png"]), "input file not found: /nowhere/a.png");
    assert_eq!(refused(&["hi", "--cache-prefix"]), "--cache-prefix requires --caching enabled");
    for command in ["get", "list-input-items", "delete"] {
        assert_eq!(refused(&[command]), "missing response id");
    }
}

#[test]
fn a_model_is_required() {
    let server = Server::start(Kind::OpenAi);
    let config = format!("[profiles.test]\ndialect = \"openai\"\nbase_url = \"{}\"\n", server.base_url());
    server.models(&["a", "b"]);
    let user = User::with_config(&config);
    let error = user.chat(&["hi"]).error(2);
    assert_eq!(error["message"], "model is required");
    assert!(error["hint"].as_str().unwrap().contains("a, b"), "{error}");
    // A server on this machine with one model needs no choice.
    server.models(&["only"]).answer(Answer::new().text("Hello"));
    assert_eq!(user.chat(&["hi"]).json()["content"], "Hello");
    assert_eq!(server.posts()[0]["model"], "only");
}

#[test]
fn a_key_is_required() {
    let user = User::new();
    let message = user.chat(&["hi", "--profile", "ark", "--model", "ep-1"]).refused();
    assert!(message.contains("API Key is required") && message.contains("ARK_API_KEY"), "{message}");
    let message = user.chat(&["hi", "--base-url", "https://example.invalid/v1", "--model", "m"]).refused();
    assert!(message.contains("--base-url requires --api-key"), "{message}");
}

#[test]
fn without_any_endpoint_the_way_to_one_is_told() {
    let error = User::new().chat(&["hi", "--dry-run"]).error(2);
    assert!(error["message"].as_str().unwrap().contains("no endpoint"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("profile add"), "{error}");
}

#[test]
fn mistakes_in_the_command_line_have_the_same_form() {
    let message = refused(&["hi", "--no-such-option"]);
    assert!(message.contains("--no-such-option"), "{message}");
    let message = refused(&["hi", "--max-output-tokens", "many"]);
    assert!(message.contains("many"), "{message}");
}

#[test]
fn a_configuration_that_is_wrong_is_named_with_its_line() {
    let user = User::with_config("[profiles.a]\nmodell = \"m\"\n");
    let message = user.chat(&["hi"]).refused();
    assert!(message.contains("config.toml") && message.contains("line 2") && message.contains("modell"), "{message}");
}

#[test]
fn the_endpoints_refusals_are_told_as_they_are() {
    let server = Server::start(Kind::Ark);
    let body = json!({"error": {"code": "InvalidEndpointOrModel.NotFound", "message": "The model or endpoint ep-1 does not exist", "param": "", "type": "NotFound"}});
    server.answer(Answer::error(404, body.clone()).header("x-tt-logid", "0217"));
    let error = User::of(&server, Kind::Ark).chat(&["hi"]).error(5);
    assert_eq!(error["type"], "api");
    assert_eq!(error["message"], format!("create_responses: Error code: 404 - {body}"));
    assert!(error["hint"].as_str().unwrap().contains("0217"), "{error}");
}

#[test]
fn each_kind_of_refusal_has_a_hint() {
    for (status, code, message, hint) in [
        (401, "invalid_api_key", "Incorrect API key", "key"),
        (404, "model_not_found", "The model does not exist", "model"),
        (429, "rate_limit_exceeded", "Rate limit reached", "too many requests"),
        (429, "insufficient_quota", "You exceeded your current quota", "used up"),
        (400, "context_length_exceeded", "This model's maximum context length is 8192", "longer than"),
        (400, "content_filter", "The content was filtered", "rephrase"),
        (400, "InvalidParameter.PreviousResponseNotFound", "not found", "--store"),
        (400, "invalid_request_error", "m does not support tools", "cannot use tools"),
    ] {
        let server = Server::start(Kind::OpenAi);
        let refusal = || {
            Answer::error(status, json!({"error": {"code": code, "message": message}})).header("retry-after-ms", "1")
        };
        server.answer(refusal()).answer(refusal()).answer(refusal());
        let error = User::of(&server, Kind::OpenAi).chat(&["hi"]).error(5);
        assert!(error["hint"].as_str().unwrap().contains(hint), "{error}");
    }
}

#[test]
fn a_server_that_fails_or_is_not_there_is_no_refusal() {
    let server = Server::start(Kind::OpenAi);
    for _ in 0..3 {
        server.answer(Answer::error(500, json!({"error": {"message": "broken"}})).header("retry-after-ms", "1"));
    }
    let outcome = User::of(&server, Kind::OpenAi).chat(&["hi"]);
    assert_eq!(outcome.error(1)["type"], "error");
    assert!(outcome.stderr.contains("warn: 500 broken: trying again in 0.0 s"), "{outcome:#?}");
    let user = User::with_config("[profiles.a]\nbase_url = \"http://127.0.0.1:9\"\nmodel = \"m\"\n");
    let error = user.chat(&["hi"]).error(1);
    assert!(error["message"].as_str().unwrap().contains("no connection to http://127.0.0.1:9"), "{error}");
}

#[test]
fn an_error_in_mid_stream_comes_after_what_was_said_and_tells_where_that_is() {
    let of = |ending: fn(String, String) -> Ending| ending("server_error".into(), "The model broke.".into());
    for ending in [of(Ending::ErrorEvent), of(Ending::Failed), of(Ending::BareError)] {
        for kind in Kind::ALL {
            let server = Server::start(kind);
            server.answer(Answer::new().text("Hel").ending(ending.clone()));
            let user = User::of(&server, kind);
            let outcome = user.chat(&["--stream", "hi"]);
            let error = outcome.error(5);
            assert_eq!(outcome.stdout, "Response:\nHel\n");
            assert!(error["message"].as_str().unwrap().contains("The model broke."), "{error}");
            assert!(error["hint"].as_str().unwrap().contains("agentchat chat get resp_1"), "{error}");
            if !matches!(kind, Kind::OpenAi | Kind::Ark) {
                let kept = user.chat(&["get", "resp_1"]).json();
                assert_eq!((&kept["content"], &kept["status"]), (&json!("Hel"), &json!("incomplete")));
            }
        }
    }
}

#[test]
fn a_stream_that_is_cut_or_stalls_is_told() {
    let server = Server::start(Kind::LlamaCpp);
    let begun = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hel\"}\n\n";
    server.answer(Answer::raw([begun]).cut_after(begun.len())).answer(Answer::raw([begun]).stall_after(begun.len()));
    let user = User::of(&server, Kind::LlamaCpp);
    let outcome = user.chat(&["--stream", "hi"]);
    assert!(outcome.error(1)["message"].as_str().unwrap().contains("in the middle of the answer"), "{outcome:#?}");
    assert_eq!(outcome.stdout, "Response:\nHel\n");
    let config = std::fs::read_to_string(user.config()).unwrap();
    std::fs::write(user.config(), format!("{config}stall_timeout = 0.2\n")).unwrap();
    let outcome = user.chat(&["--stream", "hi"]);
    assert!(outcome.error(1)["message"].as_str().unwrap().contains("nothing came"), "{outcome:#?}");
}

#[test]
fn no_key_is_ever_shown() {
    let server = Server::start(Kind::OpenAi);
    server.key("right-key-0123456789");
    let user = User::of(&server, Kind::OpenAi);
    for more in [&["--debug"][..], &["--dry-run"], &["--stream"]] {
        let outcome = user.chat(&[&["hi", "--api-key", "wrong-key-0123456789"], more].concat());
        assert!(!format!("{outcome:?}").contains("wrong-key"), "{outcome:#?}");
    }
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer wrong-key-0123456789"));
}
