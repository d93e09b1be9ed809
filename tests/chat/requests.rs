//! What is sent.

use serde_json::{Value, json};

use crate::responses_server::{Answer, Kind, Server};
use crate::{User, weather};

/// The body of the only request.
#[track_caller]
fn sent(kind: Kind, arguments: &[&str]) -> Value {
    let server = Server::start(kind);
    server.answer(Answer::new().text("Hello"));
    let user = User::of(&server, kind);
    user.chat(arguments).json();
    server.posts().remove(0)
}

fn user_message(text: &str) -> Value {
    json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}])
}

#[test]
fn only_what_was_said() {
    assert_eq!(sent(Kind::OpenAi, &["hi"]), json!({"model": "m", "input": user_message("hi")}));
    assert_eq!(sent(Kind::OpenAi, &["--", "get"])["input"], user_message("get"));
    assert_eq!(sent(Kind::OpenAi, &["how", "are", "you"])["input"], user_message("how are you"));
}

#[test]
fn every_option_has_its_field() {
    let body = sent(
        Kind::Ark,
        &[
            "hi",
            "--model",
            "ep-1",
            "--instructions",
            "Be brief.",
            "--temperature",
            "0",
            "--top-p",
            "0",
            "--max-output-tokens",
            "100",
            "--reasoning-effort",
            "low",
            "--thinking",
            "enabled",
            "--caching",
            "disabled",
            "--store",
            "--expire-at",
            "4000000000",
            "--text-format",
            "json_object",
            "--tools",
            "web_search",
            "--tool-choice",
            "auto",
            "--max-tool-calls",
            "3",
        ],
    );
    assert_eq!(
        body,
        json!({"model": "ep-1", "input": user_message("hi"), "instructions": "Be brief.", "temperature": 0.0, "top_p": 0.0,
            "max_output_tokens": 100, "reasoning": {"effort": "low"}, "thinking": {"type": "enabled"}, "caching": {"type": "disabled"},
            "store": true, "expire_at": 4_000_000_000_u64, "text": {"format": {"type": "json_object"}}, "tools": [{"type": "web_search"}],
            "tool_choice": "auto", "max_tool_calls": 3})
    );
}

#[test]
fn sugar_comes_first_and_objects_are_passed_on_whole() {
    let server = Server::start(Kind::Ark);
    server.answer(Answer::new());
    let user = User::of(&server, Kind::Ark);
    let search = json!({"type": "web_search", "limit": 10, "max_keyword": 3, "sources": ["toutiao"],
        "user_location": {"type": "approximate", "country": "中国", "city": "杭州"}});
    let mut function = weather();
    function["strict"] = true.into();
    let file = user.tools(&json!([function, search]));
    user.chat(&["hi", "--tools", "web_search", "--tools-file", &file]).json();
    assert_eq!(server.posts()[0]["tools"], json!([{"type": "web_search"}, function, search]));
}

#[test]
fn a_choice_may_name_a_function_in_two_ways() {
    for choice in ["function:query_weather", r#"{"type":"function","name":"query_weather"}"#] {
        let server = Server::start(Kind::OpenAi);
        server.answer(Answer::new());
        let user = User::of(&server, Kind::OpenAi);
        let file = user.tools(&json!([weather()]));
        user.chat(&["hi", "--tools-file", &file, "--tool-choice", choice]).json();
        assert_eq!(server.posts()[0]["tool_choice"], json!({"type": "function", "name": "query_weather"}));
    }
}

#[test]
fn a_profile_may_allow_more_tools() {
    let server = Server::start(Kind::Ark);
    server.answer(Answer::new());
    let user = User::with_config(&format!(
        "[profiles.test]\ndialect = \"ark\"\nbase_url = \"{}\"\nmodel = \"m\"\ntools = [\"mcp\", \"knowledge_search\"]\n",
        server.base_url()
    ));
    let file = user.tools(&json!([{"type": "mcp", "server_label": "x", "server_url": "https://x"}]));
    user.chat(&["hi", "--tools", "knowledge_search", "--tools-file", &file]).json();
    assert_eq!(server.posts()[0]["tools"][1]["server_label"], "x");
    assert_eq!(server.requests()[0].header("ark-beta-mcp"), Some("true"));
    assert_eq!(server.requests()[0].header("ark-beta-knowledge-search"), Some("true"));
}

#[test]
fn the_prompt_comes_from_standard_input_too() {
    for (arguments, wanted) in
        [(&[][..], "line 1\nline 2"), (&["Review:", "-"], "Review:\n\nline 1\nline 2"), (&["-"], "line 1\nline 2")]
    {
        let server = Server::start(Kind::OpenAi);
        server.answer(Answer::new());
        User::of(&server, Kind::OpenAi).chat_with_stdin(arguments, "line 1\nline 2\n").json();
        assert_eq!(server.posts()[0]["input"], user_message(wanted));
    }
}

#[test]
fn what_an_endpoint_does_not_have_is_warned_about() {
    let server = Server::start(Kind::Ollama);
    server.answer(Answer::new());
    let user = User::of(&server, Kind::Ollama);
    let file = user.tools(&json!([weather()]));
    let outcome = user.chat(&["hi", "--thinking", "disabled", "--tools-file", &file, "--tool-choice", "required"]);
    assert!(outcome.json().is_object());
    assert!(outcome.stderr.contains("warn: ollama has no \"thinking\""), "{outcome:#?}");
    assert!(outcome.stderr.contains("warn: ollama ignores tool_choice"), "{outcome:#?}");
    assert!(server.posts()[0].get("thinking").is_none());
}

#[test]
fn a_dry_run_sends_nothing() {
    let server = Server::start(Kind::OpenAi);
    let user = User::of(&server, Kind::OpenAi);
    let picture = user.file("a.png", [7; 3000]);
    let preview = user.chat(&["hi", "--dry-run", "--stream", "--input", &picture, "--api-key", "secret-key-0123"]);
    assert!(!preview.stdout.contains("secret"), "{preview:#?}");
    let preview = preview.json();
    assert_eq!((&preview["version"], &preview["method"]), (&json!("preview.v1"), &json!("POST")));
    assert_eq!(preview["url"], format!("{}/responses", server.base_url()));
    assert_eq!(preview["body"]["stream"], true);
    let content = &preview["body"]["input"][0]["content"];
    assert_eq!(content[1]["text"], "hi");
    assert_eq!(content[0]["image_url"], "data:image/png;base64,… (4022 bytes)");
    assert_eq!(server.requests().len(), 0);
}
