//! A prompt from its beginning to its end, with every kind of server.

use serde_json::{Value, json};

use crate::client::{self, Client};
use crate::ready;
use crate::responses_server::{Answer, Kind, Server};

/// A model that reads, edits, runs and says so.
fn at_work(server: &Server) {
    server
        .answer(Answer::new().thought("I look.").text("Let me see.").call("c1", "read_file", r#"{"path":"a.txt"}"#))
        .answer(Answer::new().call("c2", "edit_file", r#"{"path":"a.txt","old_text":"two","new_text":"2"}"#))
        .answer(Answer::new().call("c3", "run_command", r#"{"command":"cat a.txt; exit 3"}"#))
        .answer(Answer::new().text("Done."));
}

#[test]
fn the_model_reads_edits_and_runs_with_every_kind_of_server() {
    for kind in Kind::ALL {
        for capabilities in [client::everything(), client::nothing()] {
            let server = Server::start(kind);
            at_work(&server);
            let has_files = capabilities != client::nothing();
            let mut client = Client::start(Some((&server, kind)), capabilities);
            let path = client.file("a.txt", "one\r\ntwo\r\n");
            assert_eq!(client.prompt("Fix it."), "end_turn", "{kind:?}");
            assert!(client.said().starts_with("Let me see.") && client.said().ends_with("Done."), "{}", client.said());
            assert_eq!(client.text("a.txt"), "one\r\n2\r\n", "its line breaks stay");

            let read = client.call("c1");
            assert_eq!(
                (&read["title"], &read["kind"], &read["status"]),
                (&json!("Read a.txt"), &json!("read"), &json!("completed"))
            );
            let edit = client.call("c2");
            assert_eq!((&edit["title"], &edit["kind"]), (&json!("Edit a.txt"), &json!("edit")));
            assert_eq!(edit["locations"], json!([{"path": path, "line": 2}]));
            assert_eq!(edit["content"][0]["type"], "diff");
            assert_eq!(
                (&edit["content"][0]["oldText"], &edit["content"][0]["newText"]),
                (&json!("one\r\ntwo\r\n"), &json!("one\r\n2\r\n"))
            );
            assert_eq!(client.states("c2"), ["pending", "in_progress", "completed"]);
            let run = client.call("c3");
            assert_eq!(
                (&run["title"], &run["kind"], &run["status"]),
                (&json!("cat a.txt; exit 3"), &json!("execute"), &json!("failed"))
            );
            assert_eq!(run["content"][0]["type"], if has_files { "terminal" } else { "content" });

            let asked = client.requests("session/request_permission");
            assert_eq!(asked.len(), 2, "an edit, and a command");
            assert_eq!(asked[0]["toolCall"]["content"][0]["type"], "diff", "the diff comes with the question");
            let kinds = |asked: &Value| {
                asked["options"].as_array().unwrap().iter().map(|option| option["kind"].clone()).collect::<Vec<_>>()
            };
            assert_eq!(kinds(asked[0]), ["allow_once", "allow_always", "reject_once", "reject_always"]);
            assert_eq!(kinds(asked[1]), ["allow_once", "reject_once"], "of this command no beginning can stand for it");
            assert_eq!(client.requests("fs/write_text_file").len(), usize::from(has_files));
            let released = client.requests("terminal/release").len();
            assert_eq!(released, usize::from(has_files));

            let posts = server.posts();
            assert_eq!(posts.len(), 4);
            let outputs: Vec<&str> = posts[3]["input"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|item| item["type"] == "function_call_output")
                .map(|item| item["output"].as_str().unwrap())
                .collect();
            assert_eq!(outputs, ["one\ntwo\n", "done", "one\r\n2\n(exit code 3)"], "{kind:?}");
            assert!(posts[0]["instructions"].as_str().unwrap().contains("coding agent"));
            assert_eq!(posts[0]["tools"].as_array().unwrap().len(), 7);
        }
    }
}

#[test]
fn a_call_is_shown_before_its_arguments_are_complete() {
    let server = Server::start(Kind::OpenAi);
    let arguments = r#"{"path":"src/a.txt","content":"0123456789012345678901234567890123456789"}"#;
    server.answer(Answer::new().call("c1", "write_file", arguments).pieces(4)).answer(Answer::new().text("Done."));
    let mut client = ready(&server, Kind::OpenAi);
    client.choice = "reject-once".to_owned();
    assert_eq!(client.prompt("Write."), "end_turn");
    let titles: Vec<&str> = client
        .seen
        .iter()
        .map(|message| &message["params"]["update"])
        .filter(|update| update["toolCallId"] == "c1" && update["title"].is_string())
        .map(|update| update["title"].as_str().unwrap())
        .collect();
    assert_eq!(&titles[..2], ["write_file", "Write src/a.txt"]);
    let early = client.updates("tool_call_update")[0];
    assert_eq!(early["locations"], json!([{"path": client.project().join("src/a.txt")}]));
    assert!(early["rawInput"].is_null(), "the content is still to come");
    assert_eq!(client.states("c1"), ["pending", "failed"]);
    assert!(!client.project().join("src").exists(), "what is refused is not written");
    let outputs = server.posts()[1]["input"].to_string();
    assert!(outputs.contains("the user does not want this"), "{outputs}");
}

#[test]
fn a_plan_is_a_plan_and_no_call() {
    let server = Server::start(Kind::Ark);
    let plan = r#"{"plan":[{"step":"look","status":"completed"},{"step":"do","status":"in_progress"}]}"#;
    server.answer(Answer::new().call("c1", "update_plan", plan)).answer(Answer::new().text("On it."));
    let mut client = ready(&server, Kind::Ark);
    client.prompt("Plan.");
    let plans = client.updates("plan");
    assert_eq!(plans[0]["entries"][1]["content"], "do");
    assert_eq!(plans[0]["entries"][1]["status"], "in_progress");
    assert!(client.updates("tool_call").is_empty());
}

#[test]
fn malformed_calls_are_sent_back_with_what_is_wrong() {
    let server = Server::start(Kind::LlamaCpp);
    server
        .answer(Answer::new().call("c1", "read_file", "{\"path\":").call("c2", "nonsense", "{}").call(
            "c3",
            "edit_file",
            r#"{"path":"a.txt"}"#,
        ))
        .answer(Answer::new().call("c4", "read_file", "```json\n{\"file_path\": \"a.txt\",}\n```"))
        .answer(Answer::new().text("Ah."));
    let mut client = ready(&server, Kind::LlamaCpp);
    client.file("a.txt", "text\n");
    assert_eq!(client.prompt("Read."), "end_turn");
    for id in ["c1", "c2", "c3"] {
        assert_eq!(client.call(id)["status"], "failed", "{id}");
    }
    assert_eq!(client.call("c4")["status"], "completed", "what can be read is read");
    assert!(client.requests("session/request_permission").is_empty());
    let sent = server.posts()[1]["input"].to_string();
    for wrong in ["are not valid JSON", "there is no function", "missing field `old_text`"] {
        assert!(sent.contains(wrong), "{wrong}: {sent}");
    }
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    let server = Server::start(Kind::OpenAi);
    for number in 0..4 {
        server.answer(Answer::new().call(&format!("c{number}"), "glob", r#"{"pattern":"*.x"}"#));
    }
    let mut client = ready(&server, Kind::OpenAi);
    assert_eq!(client.prompt("Look."), "end_turn");
    assert_eq!(server.posts().len(), 3);
    assert!(client.said().contains("three times in a row"), "{}", client.said());
    server.answer(Answer::new().text("Sorry."));
    // The endpoint takes what is left: every call has an output. (The answer that nobody took is the next one.)
    assert_eq!(client.prompt("Stop."), "end_turn");
}

#[test]
fn images_files_and_links_of_a_prompt_reach_the_model() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().text("I see."));
    let mut client = ready(&server, Kind::OpenAi);
    let prompt = json!([
        {"type": "text", "text": "What is this?"},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "resource", "resource": {"uri": "file:///p/a.rs", "text": "fn main() {}"}},
        {"type": "resource_link", "uri": "file:///p/b.rs", "name": "b.rs"},
    ]);
    let params = json!({"sessionId": client.session, "prompt": prompt});
    assert_eq!(client.ask("session/prompt", params)["stopReason"], "end_turn");
    let sent = server.posts()[0]["input"][0]["content"].clone();
    assert_eq!(sent[1]["image_url"], "data:image/png;base64,aGk=");
    assert!(sent[2]["text"].as_str().unwrap().contains("<file path=\"/p/a.rs\">\nfn main() {}"), "{sent}");
    assert!(sent[3]["text"].as_str().unwrap().contains("/p/b.rs"));
}

#[test]
fn usage_is_told_and_a_full_context_is_made_shorter() {
    let server = Server::start(Kind::OpenAi);
    server
        .answer(Answer::new().text("One."))
        .answer(Answer::new().text("A summary of it."))
        .answer(Answer::new().text("Two."));
    let mut client = ready(&server, Kind::OpenAi);
    let id = client.begin_prompt("First.");
    let answer = client.end(id);
    assert_eq!(answer["usage"]["totalTokens"], 17, "{answer}");
    let usage = client.updates("usage_update")[0];
    assert_eq!((&usage["used"], &usage["size"]), (&json!(17), &json!(1000)));
    assert_eq!(client.prompt("/compact"), "end_turn");
    let states: Vec<&Value> = client.updates("compaction_update").iter().map(|update| &update["status"]).collect();
    assert_eq!(states, ["in_progress", "completed"]);
    assert_eq!(client.prompt("Second."), "end_turn");
    let sent = server.posts()[2]["input"].clone();
    assert!(sent[0]["content"][0]["text"].as_str().unwrap().contains("A summary of it."), "{sent}");
    assert_eq!(sent.as_array().unwrap().len(), 2, "what was said before is not there any more");
}

#[test]
fn a_context_that_is_too_long_is_made_shorter_and_asked_again() {
    let server = Server::start(Kind::OpenAi);
    let too_long =
        json!({"error": {"code": "context_length_exceeded", "message": "too long", "type": "invalid_request_error"}});
    server
        .answer(Answer::error(400, too_long))
        .answer(Answer::new().text("A summary."))
        .answer(Answer::new().text("Now it fits."));
    let mut client = ready(&server, Kind::OpenAi);
    assert_eq!(client.prompt("Go."), "end_turn");
    assert!(client.said().contains("Now it fits."));
}
