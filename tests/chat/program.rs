//! The program around it.

use crate::User;
use crate::responses_server::{Answer, Kind, Server};

#[test]
fn plus_chat_takes_every_word_for_a_prompt() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().text("Hello"));
    let user = User::of(&server, Kind::OpenAi);
    assert_eq!(user.run(&["+chat", "get"]).json()["content"], "Hello");
    assert_eq!(server.posts()[0]["input"][0]["content"][0]["text"], "get");
}

#[test]
fn help_has_examples_and_every_option() {
    let user = User::new();
    let help = user.chat(&["--help"]);
    for option in [
        "--model",
        "--input",
        "--instructions",
        "--temperature",
        "--top-p",
        "--max-output-tokens",
        "--reasoning-effort",
        "--thinking",
        "--caching",
        "--cache-prefix",
        "--store",
        "--expire-at",
        "--previous-response-id",
        "--tools",
        "--tools-file",
        "--tool-choice",
        "--max-tool-calls",
        "--text-format",
        "--text-schema",
        "--text-schema-name",
        "--text-strict",
        "--stream",
        "--include-events",
        "--no-progress",
        "--dry-run",
        "--profile",
        "--api-key",
        "--base-url",
        "--debug",
        "--run-tools",
        "--yes",
        "--max-turns",
    ] {
        assert!(help.text().contains(option), "{option}");
    }
    assert!(help.stdout.contains("Examples:\n  agentchat chat "), "{}", help.stdout);
    assert!(user.run(&["profile", "add", "--help"]).text().contains("--key-env"));
}

#[test]
fn completions_and_manual_pages_are_made() {
    let user = User::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(user.run(&["completions", shell]).text().contains("tools-file"), "{shell}");
    }
    assert!(user.run(&["man"]).text().contains(".TH agentchat"));
    let folder = user.home.path().join("man1");
    std::fs::create_dir(&folder).unwrap();
    user.run(&["man", folder.to_str().unwrap()]).text();
    assert!(folder.join("agentchat-chat.1").exists() && folder.join("agentchat-profile-add.1").exists());
}

#[test]
fn mistakes_outside_of_chat_are_told_as_ever() {
    let outcome = User::new().run(&["nonsense"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.starts_with("error: "), "{outcome:#?}");
    assert!(User::new().run(&["--version"]).text().starts_with("agentchat 0."));
}
