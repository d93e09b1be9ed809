//! Cancels, queues and ends of the connection.

use std::time::Duration;

use agentchat::tour::Pace;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Answers, Client, DEADLINE, Editor};
use crate::{everything, sample_project};

/// Plays the tour, and cancels at its `at`th message (from 1; 0 never). Gives the messages' methods or updates.
async fn cancel_at(at: usize) -> Vec<String> {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let mut editor = Editor::choosing("allow_once");
    let id = client.prompt(&session, "hi").await;
    client.seen.clear();
    let mut cancelled = false;
    let reason = loop {
        let message = client.next().await.unwrap();
        if message["id"] == id && message.get("method").is_none() {
            break message["result"]["stopReason"].clone();
        }
        if !cancelled && client.seen.len() == at {
            client.cancel(&session).await;
            cancelled = true;
        }
        let Some(method) = message["method"].as_str().filter(|_| message.get("id").is_some()) else {
            continue;
        };
        let answer = match method {
            "session/request_permission" if cancelled => Some(Ok(json!({"outcome": {"outcome": "cancelled"}}))),
            // The client has its hands full and answers nothing any more.
            _ if cancelled => None,
            _ => editor.answer(method, &message["params"]),
        };
        if let Some(answer) = answer {
            client.respond(&message, answer).await;
        }
    };
    // The end may be under way already when the cancel comes.
    let last_chunk = client.said().contains("`help`");
    assert!(
        reason == "cancelled" || (reason == "end_turn" && (!cancelled || last_chunk)),
        "cancelled at {at}: {reason}"
    );
    for (id, kind, status) in client.calls() {
        assert!(status == "completed" || status == "failed", "cancelled at {at}: {kind} {id} is {status}");
    }
    let count = |method| client.requested().iter().filter(|requested| **requested == method).count();
    assert!(count("terminal/release") <= count("terminal/create"));
    let kind = |message: &Value| {
        let update = &message["params"]["update"]["sessionUpdate"];
        update.as_str().or(message["method"].as_str()).unwrap_or("response").to_owned()
    };
    let kinds = client.seen.iter().map(kind).collect();
    // The session lives on.
    assert_eq!(client.play(&session, "help", &mut editor).await, "end_turn");
    kinds
}

#[tokio::test]
async fn a_cancel_ends_the_turn_wherever_it_is() {
    let kinds = cancel_at(0).await;
    for (at, kind) in (1..).zip(&kinds) {
        // Chunks are many and much alike.
        if !kind.ends_with("_chunk") || at % 16 == 0 {
            cancel_at(at).await;
        }
    }
}

/// Every request of the tour, left unanswered when the cancel comes.
#[tokio::test]
async fn a_cancel_ends_the_turn_while_the_client_owes_an_answer() {
    for method in [
        "fs/read_text_file",
        "session/request_permission",
        "fs/write_text_file",
        "terminal/create",
        "terminal/wait_for_exit",
        "terminal/output",
    ] {
        let folder = sample_project();
        let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
        let id = client.prompt(&session, "hi").await;
        let mut editor = Editor::choosing("allow_once");
        let open = loop {
            let message = client.next().await.unwrap();
            let Some(asked) = message["method"].as_str().filter(|_| message.get("id").is_some()) else {
                continue;
            };
            if asked == method {
                break message;
            }
            let answer = editor.answer(asked, &message["params"]).unwrap();
            client.respond(&message, answer).await;
        };
        client.cancel(&session).await;
        assert_eq!(client.finish(&id, &mut editor).await, "cancelled", "{method}");
        assert!(client.calls().iter().all(|call| call.2 == "completed" || call.2 == "failed"), "{method}");

        // The answer comes after all: a terminal that it brings is given back, anything else is let go.
        let late = editor.answer(method, &open["params"]).unwrap();
        client.respond(&open, late).await;
        if method == "terminal/create" {
            client.until_request("terminal/release").await;
        }
        assert_eq!(client.play(&session, "help", &mut editor).await, "end_turn");
        let created = client.requested().contains(&"terminal/create");
        assert_eq!(client.requested().contains(&"terminal/release"), created, "{method}");
    }
}

#[tokio::test]
async fn a_permission_answered_as_cancelled_ends_the_turn() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let id = client.prompt(&session, "run").await;
    let question = client.until_request("session/request_permission").await;
    client.respond(&question, Ok(json!({"outcome": {"outcome": "cancelled"}}))).await;
    assert_eq!(client.finish(&id, &mut Editor::choosing("allow_once")).await, "cancelled");
}

#[tokio::test]
async fn a_prompt_sent_while_a_turn_runs_waits_for_it() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let first = client.prompt(&session, "ask").await;
    let second = client.prompt(&session, "help").await;
    let mut editor = Editor::choosing("reject_once");
    assert_eq!(client.finish(&first, &mut editor).await, "end_turn");
    assert!(!client.said().contains("Send me one of these"));
    assert_eq!(client.finish(&second, &mut editor).await, "end_turn");
    assert!(client.said().contains("Send me one of these"));
}

#[tokio::test]
async fn a_cancel_takes_the_waiting_prompts_along_but_not_the_next() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let asked = client.prompt(&session, "ask").await;
    client.until_request("session/request_permission").await;
    let waiting = client.prompt(&session, "long").await;
    client.cancel(&session).await;
    let next = client.prompt(&session, "help").await;
    let mut editor = Editor::choosing("allow_once");
    assert_eq!(client.finish(&asked, &mut editor).await, "cancelled");
    assert_eq!(client.finish(&waiting, &mut editor).await, "cancelled");
    assert_eq!(client.finish(&next, &mut editor).await, "end_turn");
    assert!(!client.said().contains("# A long answer"));
}

#[tokio::test]
async fn more_prompts_than_can_wait_are_refused_and_all_are_answered() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    client.prompt(&session, "ask").await;
    client.until_request("session/request_permission").await;
    let mut unanswered = vec![json!("client-3")];
    for _ in 0..50 {
        unanswered.push(client.prompt(&session, "help").await);
    }
    client.cancel(&session).await;
    let mut refused = 0;
    while !unanswered.is_empty() {
        let message = client.until(|message| message.get("method").is_none()).await;
        let at = unanswered.iter().position(|id| *id == message["id"]).expect("answered once");
        unanswered.swap_remove(at);
        refused += usize::from(message.get("error").is_some());
    }
    assert!((1..50).contains(&refused), "{refused} refused");
}

#[tokio::test]
async fn sessions_do_not_wait_for_each_other() {
    let folder = sample_project();
    let (mut client, first) = Client::ready(Pace::AT_ONCE, everything(), folder.path()).await;
    let second = client.new_session(folder.path()).await;
    assert_ne!(first, second);
    let asked = client.prompt(&first, "ask").await;
    client.until_request("session/request_permission").await;
    let mut editor = Editor::choosing("allow_once");
    assert_eq!(client.play(&second, "edit", &mut editor).await, "end_turn");
    client.cancel(&second).await;
    client.ask("session/close", json!({"sessionId": first})).await;
    assert_eq!(client.finish(&asked, &mut editor).await, "cancelled");
}

async fn ends_soon(client: &mut Client) {
    let ended = timeout(Duration::from_secs(2), &mut client.agent).await;
    assert!(ended.expect("it goes on without its client").unwrap().is_ok());
}

#[tokio::test]
async fn the_end_of_the_input_ends_the_agent_at_once() {
    for (prompt, stage) in [("long", "agent_message_chunk"), ("ask", "tool_call"), ("hi", "agent_thought_chunk")] {
        let folder = sample_project();
        let (mut client, session) = Client::ready(Pace::NATURAL, everything(), folder.path()).await;
        client.prompt(&session, prompt).await;
        client.until(|message| message["params"]["update"]["sessionUpdate"] == stage).await;
        client.hang_up();
        ends_soon(&mut client).await;
    }
}

#[tokio::test]
async fn an_output_that_nobody_reads_does_not_keep_the_agent() {
    let mut client = Client::start(Pace::NATURAL);
    for _ in 0..100 {
        client.request("no/such", json!({})).await;
    }
    client.hang_up();
    ends_soon(&mut client).await;
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_the_input_is_answered() {
    let folder = sample_project();
    let (mut client, session) = Client::ready(Pace::NATURAL, everything(), folder.path()).await;
    let running = client.prompt(&session, "long").await;
    let unknown = client.request("no/such", json!({})).await;
    client.hang_up();
    let mut answered = Vec::new();
    while let Some(message) = client.next().await {
        if message.get("method").is_none() {
            answered.push(message["id"].clone());
        }
    }
    answered.sort_by_key(Value::to_string);
    assert_eq!(answered, [running, unknown]);
    assert!(timeout(DEADLINE, client.agent).await.unwrap().unwrap().is_ok());
}
