//! Modes, configuration options and slash commands.

use serde_json::{Value, json};

use crate::ready;
use crate::responses_server::{Answer, Kind, Server};

fn offered(post: &Value) -> Vec<&str> {
    post["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap_or("web_search")).collect()
}

#[test]
fn modes_decide_what_is_asked_and_what_is_offered() {
    let server = Server::start(Kind::OpenAi);
    let mut client = ready(&server, Kind::OpenAi);
    let session = client.session.clone();
    let write = |number: usize| {
        server
            .answer(Answer::new().call(
                &format!("w{number}"),
                "write_file",
                &json!({"path": format!("{number}.txt"), "content": "x"}).to_string(),
            ))
            .answer(Answer::new().call(&format!("r{number}"), "run_command", r#"{"command":"true"}"#))
            .answer(Answer::new().text("Done."));
    };
    for (number, (mode, asked)) in [("ask", 2), ("accept-edits", 1), ("full", 0), ("plan", 0)].into_iter().enumerate() {
        let answer = client.ask("session/set_mode", json!({"sessionId": session, "modeId": mode}));
        assert!(answer.get("code").is_none(), "{answer}");
        let before = client.requests("session/request_permission").len();
        write(number);
        assert_eq!(client.prompt("Go."), "end_turn");
        assert_eq!(client.requests("session/request_permission").len() - before, asked, "{mode}");
        assert_eq!(client.project().join(format!("{number}.txt")).exists(), mode != "plan", "{mode}");
    }
    let posts = server.posts();
    assert_eq!(offered(posts.last().unwrap()), ["read_file", "grep", "glob", "update_plan"]);
    let wrong = client.ask("session/set_mode", json!({"sessionId": session, "modeId": "x"}));
    assert_eq!(wrong["code"], -32602);
}

#[test]
fn options_reach_the_request() {
    let server = Server::start(Kind::OpenAi);
    server.models(&["m", "other"]);
    let mut client = ready(&server, Kind::OpenAi);
    client.serve_until(|message| message["params"]["update"]["sessionUpdate"] == "config_option_update");
    let options = client.updates("config_option_update")[0]["configOptions"].clone();
    let ids: Vec<&str> = options.as_array().unwrap().iter().map(|option| option["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["mode", "model", "effort", "web_search", "tool_choice"]);
    let session = client.session.clone();
    for (id, value) in [("model", "other"), ("effort", "high"), ("web_search", "on"), ("tool_choice", "required")] {
        let answer =
            client.ask("session/set_config_option", json!({"sessionId": session, "configId": id, "value": value}));
        let set = answer["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == id).unwrap();
        assert_eq!(set["currentValue"], value);
    }
    server
        .answer(Answer::new().call("c1", "glob", r#"{"pattern":"*"}"#))
        .answer(Answer::new().search("x").text("Done."));
    assert_eq!(client.prompt("Go."), "end_turn");
    let posts = server.posts();
    assert_eq!((&posts[0]["model"], &posts[0]["reasoning"]["effort"]), (&json!("other"), &json!("high")));
    assert_eq!(posts[0]["tool_choice"], "required");
    assert!(posts[1]["tool_choice"].is_null(), "or it would call for ever");
    assert!(offered(&posts[0]).contains(&"web_search"));
    let search = client.updates("tool_call").into_iter().find(|call| call["title"] == "Search the web").unwrap();
    assert_eq!(client.call(search["toolCallId"].as_str().unwrap())["status"], "completed");
}

#[test]
fn slash_commands_are_told_and_answered() {
    let server = Server::start(Kind::OpenAi);
    server.models(&["m", "other"]);
    let mut client = ready(&server, Kind::OpenAi);
    assert_eq!(client.prompt("/status"), "end_turn");
    assert!(
        client.said().contains("model: `m`") && client.said().contains("context: 1000 tokens"),
        "{}",
        client.said()
    );
    client.prompt("/model other");
    client.prompt("/tools");
    assert!(client.said().contains("`other` from now on") && client.said().contains("`edit_file`"));
    client.prompt("/compact");
    assert!(client.said().contains("nothing to make shorter"));
    assert!(server.posts().is_empty());
    server.answer(Answer::new().text("Looks good."));
    assert_eq!(client.prompt("/review the tests"), "end_turn");
    let post = server.posts()[0].clone();
    assert_eq!(post["model"], "other");
    let sent = post["input"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(sent.contains("git diff HEAD") && sent.ends_with("the tests"), "{sent}");
    let commands = client.updates("available_commands_update")[0]["availableCommands"].clone();
    assert_eq!(commands.as_array().unwrap().len(), 6);
}

#[test]
fn what_the_project_wants_agents_to_know_is_told() {
    let server = Server::start(Kind::Ollama);
    server.answer(Answer::new().text("Yes."));
    let mut client = ready(&server, Kind::Ollama);
    client.file("AGENTS.md", "Use tabs.\n");
    client.prompt("Go.");
    assert!(server.posts()[0]["instructions"].as_str().unwrap().contains("Use tabs."));
}
