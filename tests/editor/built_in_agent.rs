//! The built-in agent, as somebody meets it who has a key and nothing else.

use serde_json::json;

use crate::chat::{self, window};
use crate::files::{lines_of, on_disk};
use crate::responses_server::{Answer, Kind, Server};
use crate::support::{Editor, Setup};

/// A project, a key, and no agent anywhere.
#[track_caller]
fn with_key(server: &Server) -> Editor {
    let setup = Setup::new()
        .env("PATH", "/nowhere:/usr/bin:/bin")
        .env("OPENAI_API_KEY", "k-very-secret")
        .env("OPENAI_BASE_URL", &server.base_url())
        .env("AGENTCHAT_MODEL", "m")
        .env("AGENTCHAT_CONTEXT", "1000")
        .file("a.txt", "one\ntwo\nthree\n")
        .arg("a.txt");
    let editor = Editor::start(setup);
    chat::enter_code(&editor);
    editor.command("AgentChat");
    editor.wait_state("idle");
    editor
}

#[test]
fn a_key_makes_it_the_default_and_its_edit_is_seen_judged_and_undone() {
    let server = Server::start(Kind::OpenAi);
    server
        .answer(Answer::new().text("I **look** first.").call("c1", "read_file", r#"{"path":"a.txt"}"#))
        .answer(Answer::new().call("c2", "edit_file", r#"{"path":"a.txt","old_text":"two","new_text":"2"}"#))
        .answer(Answer::new().call("c3", "run_command", r#"{"command":"cat a.txt"}"#))
        .answer(Answer::new().text("Done."));
    let editor = with_key(&server);
    assert_eq!(editor.status()["agent"], json!("agentchat"));
    // What the user has typed, and not saved, is what the model reads.
    editor.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.txt'), 0, 1, true, { 'typed' })", json!([]));
    editor.prompt("Two is 2.");
    editor.wait_until("the question about the edit", |e| window(e, "agentchat_permission").is_some());
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    editor.wait_until("the edit", |e| lines_of(e, "a.txt") == ["typed", "2", "three"]);
    editor.wait_until("the question about the command", |e| {
        e.status()["permissions"] == json!(1) && window(e, "agentchat_permission").is_some()
    });
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    editor.wait_state("idle");
    editor.wait_transcript("Done.");
    for card in ["Read a.txt", "Edit a.txt", "cat a.txt"] {
        assert!(editor.transcript_has(card), "{card}");
    }
    let sent = server.posts()[1]["input"].to_string();
    assert!(sent.contains(r"typed\ntwo\nthree"), "{sent}");
    assert_eq!(
        on_disk(&editor, "a.txt"),
        "typed\n2\nthree\n",
        "the file is as the agent, which has read that, meant it"
    );
    editor.command("AgentChat reject all");
    assert_eq!(lines_of(&editor, "a.txt"), ["typed", "two", "three"]);
    let usage = editor.status()["usage"].clone();
    assert_eq!(usage["size"], json!(1000), "{usage}");
}

#[test]
fn a_wrong_key_is_told_in_the_chat() {
    let server = Server::start(Kind::OpenAi);
    server.key("another");
    let editor = with_key(&server);
    editor.prompt("Hello?");
    editor.wait_transcript("What to do: check the key");
    editor.wait_state("idle");
    assert!(!editor.transcript_has("k-very-secret"));
}
