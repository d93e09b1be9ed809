//! What the functions do to the project, and what they do not.

use std::fs;

use serde_json::json;

use crate::client::{self, Client};
use crate::ready;
use crate::responses_server::{Answer, Kind, Server};

/// Lets the model make calls in one turn; what it is told of each.
#[track_caller]
pub(crate) fn outputs(client: &mut Client, server: &Server, calls: &[(&str, serde_json::Value)]) -> Vec<String> {
    let before = server.posts().len();
    for (number, (name, arguments)) in calls.iter().enumerate() {
        let id = format!("call-{before}-{number}");
        server.answer(Answer::new().call(&id, name, &arguments.to_string()));
    }
    server.answer(Answer::new().text("Done."));
    assert_eq!(client.prompt("Go."), "end_turn");
    let posts = server.posts();
    let input = posts.last().unwrap()["input"].as_array().unwrap().clone();
    let all: Vec<String> = input
        .iter()
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| item["output"].as_str().unwrap().to_owned())
        .collect();
    all[all.len() - calls.len()..].to_vec()
}

#[test]
fn a_file_is_changed_only_as_the_model_has_seen_it() {
    let server = Server::start(Kind::OpenAi);
    let mut client = ready(&server, Kind::OpenAi);
    let path = client.file("a.txt", "one\n");
    let edit = json!({"path": "a.txt", "old_text": "one", "new_text": "two"});
    let told = outputs(
        &mut client,
        &server,
        &[("edit_file", edit.clone()), ("write_file", json!({"path": "a.txt", "content": "x"}))],
    );
    assert!(told[0].starts_with("read a.txt before") && told[1].starts_with("read a.txt before"), "{told:?}");
    let read = ("read_file", json!({"path": "a.txt"}));
    outputs(&mut client, &server, std::slice::from_ref(&read));
    // What the user types after that, unsaved.
    client.unsaved.insert(path.clone(), "one, typed\n".to_owned());
    let told = outputs(&mut client, &server, &[("edit_file", edit.clone())]);
    assert!(told[0].contains("has changed since you read it"), "{told:?}");
    assert_eq!(client.text("a.txt"), "one\n");
    client.unsaved.clear();
    let told = outputs(
        &mut client,
        &server,
        &[read, ("edit_file", edit), ("edit_file", json!({"path": "a.txt", "old_text": "two", "new_text": "three"}))],
    );
    assert_eq!(told[1..], ["done", "done"], "its own edit is no news to it");
    assert_eq!(client.text("a.txt"), "three\n");
}

#[test]
fn nothing_outside_of_the_project_is_read_or_written() {
    let server = Server::start(Kind::OpenAi);
    let mut client = ready(&server, Kind::OpenAi);
    fs::write(client.home.path().join("secret"), "s").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(client.home.path(), client.project().join("link")).unwrap();
    let calls: Vec<(&str, serde_json::Value)> = ["../secret", "/etc/passwd", "link/secret", "a/../../secret"]
        .iter()
        .flat_map(|path| [("read_file", json!({"path": path})), ("write_file", json!({"path": path, "content": "x"}))])
        .collect();
    for told in outputs(&mut client, &server, &calls) {
        assert!(told.contains("outside of the project"), "{told}");
    }
    assert_eq!(fs::read_to_string(client.home.path().join("secret")).unwrap(), "s");
    assert!(client.requests("fs/read_text_file").is_empty());
}

#[test]
fn long_files_come_in_parts_with_how_to_read_on() {
    let server = Server::start(Kind::OpenAi);
    let mut client = ready(&server, Kind::OpenAi);
    let text = (1..=3000).fold(String::new(), |text, line| text + &format!("line {line}\n"));
    client.file("long.txt", &text);
    client.file("empty.txt", "");
    let told = outputs(
        &mut client,
        &server,
        &[
            ("read_file", json!({"path": "long.txt"})),
            ("read_file", json!({"path": "long.txt", "offset": 2999, "limit": "5"})),
            ("read_file", json!({"path": "long.txt", "offset": 4000})),
            ("read_file", json!({"path": "empty.txt"})),
            ("read_file", json!({"path": "."})),
        ],
    );
    assert!(told[0].starts_with("line 1\n") && told[0].ends_with("(lines 1 to 2000 of 3000; offset 2001 reads on)"));
    assert_eq!(told[1], "line 2999\nline 3000\n(lines 2999 to 3000 of 3000)");
    assert!(
        told[2].contains("only 3000 lines") && told[3].contains("empty") && told[4].contains("is a folder"),
        "{told:?}"
    );
}

#[test]
fn lines_and_files_are_found_without_what_git_ignores() {
    let server = Server::start(Kind::OpenAi);
    let mut client = ready(&server, Kind::OpenAi);
    client.file("src/a.rs", "fn one() {}\nfn two() {}\n");
    client.file("target/b.rs", "fn two() {}\n");
    client.file(".gitignore", "target\n");
    let told = outputs(
        &mut client,
        &server,
        &[
            ("grep", json!({"pattern": "fn t.o"})),
            ("glob", json!({"pattern": "**/*.rs"})),
            ("grep", json!({"pattern": "nothing like it"})),
            ("grep", json!({"pattern": "("})),
        ],
    );
    assert_eq!(told[0], "src/a.rs:2: fn two() {}\n");
    assert_eq!(told[1], "src/a.rs\n");
    assert_eq!(told[2], "(nothing found)");
    assert!(told[3].contains("no regular expression"));
    let places = client.call("call-0-0")["locations"].clone();
    assert_eq!(places, json!([{"path": client.project().join("src/a.rs"), "line": 2}]));
}

#[test]
fn what_is_allowed_for_good_is_not_asked_again() {
    let server = Server::start(Kind::OpenAi);
    let mut client = ready(&server, Kind::OpenAi);
    client.choice = "allow-always".to_owned();
    let run = |command: &str| ("run_command", json!({"command": command}));
    outputs(&mut client, &server, &[run("echo one"), run("echo one two"), run("echo one; echo two")]);
    let asked: Vec<String> = client
        .requests("session/request_permission")
        .iter()
        .map(|request| request["toolCall"]["title"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(asked, ["echo one", "echo one; echo two"]);
    client.choice = "reject-always".to_owned();
    let told = outputs(
        &mut client,
        &server,
        &[
            ("write_file", json!({"path": "n.txt", "content": "x"})),
            ("write_file", json!({"path": "m.txt", "content": "x"})),
        ],
    );
    assert!(told[1].contains("does not want this in this session"), "{told:?}");
    assert_eq!(client.requests("session/request_permission").len(), 3);
}

#[test]
fn a_command_that_does_not_end_is_stopped_and_its_output_told() {
    let server = Server::start(Kind::OpenAi);
    let mut client = Client::start(Some((&server, Kind::OpenAi)), client::nothing());
    let told =
        outputs(&mut client, &server, &[("run_command", json!({"command": "echo begun; sleep 1000", "timeout_s": 1}))]);
    assert!(told[0].starts_with("begun\n(stopped after 1 s"), "{told:?}");
}

#[test]
fn a_picture_is_shown_to_the_model() {
    let server = Server::start(Kind::OpenAi);
    let mut client = ready(&server, Kind::OpenAi);
    fs::write(client.project().join("p.png"), [1, 2, 3]).unwrap();
    outputs(&mut client, &server, &[("read_file", json!({"path": "p.png"}))]);
    let sent = server.posts()[1]["input"].to_string();
    assert!(sent.contains("data:image/png;base64,AQID"), "{sent}");
}

#[test]
fn functions_of_the_project_are_offered_asked_about_and_run() {
    let server = Server::start(Kind::OpenAi);
    let client = ready(&server, Kind::OpenAi);
    let tools = json!([{"type": "function", "name": "shout", "description": "Shouts.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}, "run": ["tr", "a-z", "A-Z"]}]);
    client.file(".agentchat/tools.json", &tools.to_string());
    let mut client = client.restart();
    let told = outputs(&mut client, &server, &[("shout", json!({"text": "hi"}))]);
    assert_eq!(told[0], r#"{"TEXT":"HI"}"#);
    let asked = client.requests("session/request_permission");
    assert!(asked[0]["toolCall"]["content"].to_string().contains("tr a-z A-Z"), "{asked:?}");
    let offered = server.posts()[0]["tools"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(offered["name"], "shout");
    assert!(offered.get("run").is_none());
}
