//! The built-in tour, as a newcomer with nothing configured meets it.

use serde_json::json;

use crate::chat::window;
use crate::support::{Editor, Setup};

/// A project, no agent anywhere, no waiting.
#[track_caller]
fn newcomer() -> Editor {
    let setup = Setup::new()
        .env("PATH", "/nowhere:/usr/bin:/bin")
        .env("AGENTCHAT_TOUR_PACE", "0")
        .file("notes.md", "# Notes\n\nSomething to read.\n")
        .arg("notes.md");
    let editor = Editor::start(setup);
    editor.input(":AgentChat<CR>");
    editor.wait_state("idle");
    editor
}

#[test]
fn the_tour_is_there_without_any_configuration() {
    let editor = newcomer();
    assert_eq!(editor.status()["agent"], json!("tour"));
    editor.input("ihello<C-s>");
    editor.wait_until("a permission or the end", |e| {
        window(e, "agentchat_permission").is_some() || !e.events("AgentChatTurnEnd").is_empty()
    });
    assert!(editor.transcript_has("hello"));
    assert!(editor.events("AgentChatError").is_empty());
    // All that there may be to say is what the tour proposes, if it has come that far.
    let messages = editor.messages();
    let others = messages.lines().filter(|line| line.contains("agentchat: ") && !line.contains("proposed: "));
    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
}

/// Answers every request of the running turn, until the turn ends.
#[track_caller]
fn answer_all(editor: &Editor, kind: &str) {
    editor.wait_until("the end of the turn", |e| {
        if e.status()["permissions"] != json!(0) && window(e, "agentchat_permission").is_some() {
            // It may have been answered since.
            let _ = e.try_lua("require('agentchat').respond(...)", json!([kind]));
        }
        !e.events("AgentChatTurnEnd").is_empty()
    });
}

#[test]
fn what_is_refused_is_not_done() {
    let editor = newcomer();
    editor.input("iedit<C-s>");
    answer_all(&editor, "reject_once");
    assert_eq!(editor.events("AgentChatTurnEnd")[0]["stop_reason"], json!("end_turn"));
    assert!(!editor.events("AgentChatPermission").is_empty(), "it asked");
    let names: Vec<_> = std::fs::read_dir(editor.project()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["notes.md"]);
    assert_eq!(editor.file("notes.md").unwrap(), b"# Notes\n\nSomething to read.\n");
}

#[test]
fn what_is_allowed_is_done_through_the_editor() {
    let editor = newcomer();
    editor.input("iedit<C-s>");
    answer_all(&editor, "allow_once");
    let changed = editor.events("AgentChatFileChanged");
    assert_eq!(changed.len(), 1, "{changed:?}");
    let path = changed[0]["path"].as_str().unwrap();
    assert!(std::path::Path::new(path).exists(), "{path}");
}

#[test]
fn the_long_answer_can_be_cancelled() {
    let setup = Setup::new().env("PATH", "/nowhere:/usr/bin:/bin").env("AGENTCHAT_TOUR_PACE", "1");
    let editor = Editor::start(setup);
    editor.input(":AgentChat<CR>");
    editor.wait_state("idle");
    editor.input("ilong<C-s>");
    editor.wait_until("some of the answer", |e| e.transcript().len() > 5);
    editor.command("AgentChat cancel");
    editor.wait_state("idle");
    assert_eq!(editor.events("AgentChatTurnEnd")[0]["stop_reason"], json!("cancelled"));
    editor.wait_transcript("Cancelled.");
}
