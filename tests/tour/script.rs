//! What the user gets to see, and what is done to their files.

use std::fs;
use std::process::Command;

use agentchat::tour::Pace;
use serde_json::{Value, json};

use crate::client::{Answers, Client, Editor};
use crate::{everything, sample_project};

fn settled(calls: &[(String, String, String)]) -> Vec<(&str, &str)> {
    calls.iter().map(|(_, kind, status)| (&**kind, &**status)).collect()
}

#[tokio::test]
async fn the_tour_uses_everything_that_is_offered() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let mut editor = Editor::choosing("allow_once");
    assert_eq!(client.play(&session, "Hello there!", &mut editor).await, "end_turn");

    assert_eq!(
        client.requested(),
        [
            "fs/read_text_file",
            "session/request_permission",
            "fs/write_text_file",
            "session/request_permission",
            "terminal/create",
            "terminal/wait_for_exit",
            "terminal/output",
            "terminal/release",
        ]
    );
    assert_eq!(settled(&client.calls()), [("read", "completed"), ("edit", "completed"), ("execute", "completed")]);
    let said = client.said();
    for part in ["# Welcome", "\n- ", "|---", "```python", "**", "exit code **0**", "`two`"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    assert!(!said.contains("skip"), "nothing is to be skipped:\n{said}");
    assert!(!client.text_of("agent_thought_chunk").is_empty());
    let plans: Vec<_> = client.updates().filter(|update| update["sessionUpdate"] == "plan").collect();
    assert!(plans.len() > 1);
    let last_plan = plans[plans.len() - 1]["entries"].as_array().unwrap();
    assert!(last_plan.iter().all(|entry| entry["status"] == "completed"));

    let checks = Command::new("python3").args(["-B", "test_gravity.py"]).current_dir(folder.path()).output().unwrap();
    assert!(checks.status.success(), "the edit mends the sample project: {checks:?}");
}

#[tokio::test]
async fn the_sample_project_is_broken_before() {
    let folder = sample_project();
    let checks = Command::new("python3").args(["-B", "test_gravity.py"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(checks.status.code(), Some(1), "{checks:?}");
}

#[tokio::test]
async fn locations_lead_to_the_line_and_the_diff_comes_before_the_question() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    client.prompt(&session, "edit").await;
    let read = client.until_request("fs/read_text_file").await;
    let path = folder.path().join("gravity.py");
    let unsaved = fs::read_to_string(&path).unwrap().replace("\"\"\"How", "\n\n\"\"\"How");
    client.respond(&read, Ok(json!({"content": unsaved}))).await;
    let question = client.until_request("session/request_permission").await;

    let shown = client
        .updates()
        .find(|update| update["sessionUpdate"] == "tool_call" && update["kind"] == "edit")
        .expect("the call is shown before the question");
    let formula = unsaved.lines().position(|line| line.contains("* GRAVITY")).unwrap() + 1;
    assert_eq!(shown["locations"], json!([{"path": path, "line": formula}]));
    let diff = &shown["content"][0];
    assert_eq!((&diff["type"], &diff["path"]), (&json!("diff"), &json!(path)));
    assert_eq!(diff["oldText"], *unsaved, "the edit is made to the text that the editor has");
    let call = &question["params"]["toolCall"];
    assert_eq!(call["toolCallId"], shown["toolCallId"]);
    assert_eq!(call["content"], shown["content"]);
    let kinds: Vec<_> = question["params"]["options"].as_array().unwrap().iter().map(|o| &o["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once", "reject_always"]);
}

#[tokio::test]
async fn what_is_not_offered_is_skipped_and_said() {
    let folder = sample_project();
    let before = fs::read_to_string(folder.path().join("gravity.py")).unwrap();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, json!({}), folder.path()).await;
    let mut editor = Editor::choosing("allow_once");
    assert_eq!(client.play(&session, "hi", &mut editor).await, "end_turn");

    assert_eq!(client.requested(), [""; 0], "a client that offers nothing is asked for nothing");
    let said = client.said();
    for part in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "**skip**", "```diff"] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
    assert!(said.contains("def felt_weight"), "the file is read from the disk:\n{said}");
    assert_eq!(settled(&client.calls()), [("read", "completed")]);
    assert_eq!(fs::read_to_string(folder.path().join("gravity.py")).unwrap(), before);
}

#[tokio::test]
async fn a_no_is_a_no() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let mut editor = Editor::choosing("reject_once");
    assert_eq!(client.play(&session, "hi", &mut editor).await, "end_turn");

    assert_eq!(settled(&client.calls()), [("read", "completed"), ("edit", "failed"), ("execute", "failed")]);
    let requested = client.requested();
    assert!(!requested.contains(&"fs/write_text_file") && !requested.contains(&"terminal/create"));
    assert!(editor.written.is_empty());
}

#[tokio::test]
async fn always_and_never_hold_for_the_session_and_for_their_kind() {
    for (choice, writes) in [("allow_always", 2), ("reject_always", 0)] {
        let folder = sample_project();
        let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
        let mut editor = Editor::choosing(choice);
        client.play(&session, "edit", &mut editor).await;
        client.play(&session, "edit", &mut editor).await;
        let questions = |client: &Client| {
            let requested = client.requested();
            requested.iter().filter(|method| **method == "session/request_permission").count()
        };
        assert_eq!(questions(&client), 1, "{choice}: the second edit is decided already");
        assert_eq!(editor.written.len(), writes, "{choice}");

        client.play(&session, "run", &mut editor).await;
        assert_eq!(questions(&client), 2, "{choice}: a command is another question");
        let other = client.new_session(folder.path()).await;
        client.play(&other, "edit", &mut editor).await;
        assert_eq!(questions(&client), 3, "{choice}: another session starts afresh");
    }
}

/// An editor in which one method fails.
struct Failing {
    editor: Editor,
    method: &'static str,
}

impl Answers for Failing {
    fn answer(&mut self, method: &str, params: &Value) -> Option<Result<Value, Value>> {
        if method == self.method {
            return Some(Err(json!({"code": -32000, "message": "the disk is on fire.", "data": "call for help."})));
        }
        self.editor.answer(method, params)
    }
}

#[tokio::test]
async fn an_error_of_the_client_is_told_and_the_tour_goes_on() {
    for (method, kind) in [
        ("fs/read_text_file", "read"),
        ("session/request_permission", "edit"),
        ("fs/write_text_file", "edit"),
        ("terminal/create", "execute"),
        ("terminal/wait_for_exit", "execute"),
        ("terminal/output", "execute"),
    ] {
        let folder = sample_project();
        let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
        let editor = Editor::choosing("allow_once");
        let mut failing = Failing { editor, method };
        assert_eq!(client.play(&session, "hi", &mut failing).await, "end_turn", "{method}");
        let calls = client.calls();
        let failed = calls.iter().find(|call| call.1 == kind).unwrap();
        assert_eq!(failed.2, "failed", "{method}");
        assert!(client.said().contains("the disk is on fire (call for help)"), "{method}: {}", client.said());
        assert!(client.said().contains("That was the tour"), "{method}");
    }
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_a_no() {
    for answer in [
        json!({"outcome": {"outcome": "selected", "optionId": "what?"}}),
        json!({"outcome": {"outcome": "perhaps"}}),
        json!(null),
    ] {
        let folder = sample_project();
        let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
        let id = client.prompt(&session, "run").await;
        let question = client.until_request("session/request_permission").await;
        client.respond(&question, Ok(answer.clone())).await;
        let mut editor = Editor::choosing("allow_once");
        assert_eq!(client.finish(&id, &mut editor).await, "end_turn");
        assert_eq!(settled(&client.calls()), [("execute", "failed")], "{answer}");
        assert!(!client.requested().contains(&"terminal/create"));
    }
}

#[tokio::test]
async fn in_an_empty_folder_it_asks_to_create_a_file_and_then_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let mut editor = Editor::choosing("allow_once");
    assert_eq!(client.play(&session, "hi", &mut editor).await, "end_turn");
    let notes = folder.path().join("agentchat-tour.md");
    assert_eq!(editor.written, std::slice::from_ref(&notes));
    let ticked = || fs::read_to_string(&notes).unwrap().matches("- [x]").count();
    let before = ticked();
    client.play(&session, "edit", &mut editor).await;
    assert_eq!(ticked(), before + 1);
}

#[tokio::test]
async fn in_another_project_it_reads_what_is_there_and_changes_none_of_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("README.rst"), "Jupitter\n========\n").unwrap();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let mut editor = Editor::choosing("allow_once");
    client.play(&session, "hi", &mut editor).await;
    assert!(client.said().contains("Jupitter"), "{}", client.said());
    assert_eq!(editor.written, [folder.path().join("agentchat-tour.md")]);
}

#[tokio::test]
async fn chapters_are_called_by_word_or_slash_command() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let mut editor = Editor::choosing("allow_once");
    client.play(&session, "Long.", &mut editor).await;
    assert!(client.said().starts_with("# A long answer"), "a word is understood at once, without a greeting");
    client.play(&session, "what is the time", &mut editor).await;
    assert!(client.said().contains("# Welcome"), "the first thing not understood is a hello");

    let announced = client.updates().find(|update| update["sessionUpdate"] == "available_commands_update").unwrap();
    let names: Vec<String> = announced["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|command| command["name"].as_str().unwrap().to_owned())
        .collect();
    for name in &names {
        client.seen.clear();
        client.play(&session, &format!("/{name} please"), &mut editor).await;
        assert!(!client.said().contains("beyond me"), "/{name}");
    }
    client.seen.clear();
    client.play(&session, "And `now`?", &mut editor).await;
    let said = client.said();
    assert!(said.contains("``And `now`?``"), "{said}");
    for name in names {
        assert!(said.contains(&format!("`{name}`")), "{name} is not explained in:\n{said}");
    }
}

#[tokio::test]
async fn asking_tells_what_each_answer_means() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    for (choice, part, status) in [
        ("allow_once", "**once**", "completed"),
        ("allow_always", "**always**", "completed"),
        ("reject_once", "**no**", "failed"),
        ("reject_always", "**never**", "failed"),
    ] {
        client.seen.clear();
        let mut editor = Editor::choosing(choice);
        client.play(&session, "ask", &mut editor).await;
        assert!(client.said().contains(part), "{choice}: {}", client.said());
        assert_eq!(settled(&client.calls()), [("other", status)]);
    }
}
