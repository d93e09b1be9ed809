//! Agents that want the user to sign in.

use serde_json::{Value as Json, json};

use crate::chat;
use crate::support::scenario::{Scenario, Step, chunk, end_turn, new_session, reply, reply_error};
use crate::support::{Editor, ScriptedAgent, Setup};

const AUTH_REQUIRED: i64 = -32000;

/// An agent with these ways to sign in.
fn with_methods(methods: &Json) -> Scenario {
    let answer = json!({
        "protocolVersion": 1,
        "agentCapabilities": {},
        "agentInfo": { "name": "scripted", "version": "1" },
        "authMethods": methods,
    });
    Scenario::new().on_initialize([reply(answer)])
}

fn refused() -> [Step; 1] {
    [reply_error(AUTH_REQUIRED, "Authentication required")]
}

/// A picker of the user's, which takes the item of this number (1-based), or none.
fn picking(editor: &Editor, number: usize) {
    let code = "local number = ...
    vim.ui.select = function(items, opts, done)
      _G.shown = { opts.prompt, vim.tbl_map(opts.format_item, items) }
      done(items[number])
    end";
    editor.lua(code, json!([number]));
}

#[track_caller]
fn opened(scenario: &Scenario) -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::start(scenario, Setup::new());
    editor.command("AgentChat open");
    editor.wait_until("what the agent wants", |e| e.messages().contains("wants you to sign in"));
    (agent, editor)
}

#[test]
fn a_session_that_was_refused_is_opened_once_the_user_has_signed_in() {
    let methods = json!([
        { "id": "browser", "name": "Browser", "description": "opens one" },
        { "id": "odd", "name": "Odd", "type": "passkey_v9" },
        { "id": "key", "name": "API key", "type": "agent" },
    ]);
    // The prompt is another try to open it.
    let scenario = with_methods(&methods)
        .on_new_session(refused())
        .on_new_session(refused())
        .on_new_session([new_session()])
        .on("authenticate", [reply_error(-32603, "no such key")])
        .on("authenticate", [reply(json!({}))]);
    let (agent, editor) = opened(&scenario);
    assert!(agent.received("authenticate").is_empty(), "nobody is asked before they want it");
    editor.prompt("waits");
    agent.wait_received("session/new", 2);
    editor.wait_state("failed");
    picking(&editor, 9);
    editor.command("AgentChat signin");
    let shown = editor.lua("return _G.shown", json!([]));
    assert_eq!(shown, json!(["scripted wants you to sign in:", ["Browser — opens one", "API key"]]));
    picking(&editor, 2);
    editor.command("AgentChat signin");
    assert_eq!(agent.wait_received("authenticate", 1)["params"]["methodId"], json!("key"));
    editor.wait_until("the failure", |e| e.messages().contains("Signing in did not work: no such key"));
    editor.command("AgentChat signin");
    agent.wait_received("authenticate", 2);
    editor.wait_state("idle");
    let sent = agent.wait_received("session/prompt", 1);
    assert_eq!(sent["params"]["prompt"][0]["text"], json!("waits"));
    assert_eq!(agent.pids().len(), 1, "in the same process");
}

#[test]
fn a_prompt_that_was_refused_is_sent_again_once() {
    let scenario = with_methods(&json!([{ "id": "browser", "name": "Browser" }]))
        .on_prompt(refused())
        .on_prompt([chunk("Here I am."), end_turn()])
        .on_prompt(refused())
        .on_prompt(refused())
        .on_prompt([end_turn()])
        .on("authenticate", [reply(json!({}))]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    picking(&editor, 1);
    editor.prompt("hello");
    editor.wait_until("what the agent wants", |e| e.messages().contains("wants you to sign in"));
    editor.command("AgentChat signin");
    editor.wait_transcript("Here I am.");
    editor.wait_state("idle");
    let texts = |count| agent.wait_received("session/prompt", count)["params"]["prompt"][0]["text"].clone();
    assert_eq!((texts(1), texts(2)), (json!("hello"), json!("hello")));
    assert_eq!(editor.transcript_text().matches("hello").count(), 1, "{}", editor.transcript_text());
    // One that is refused again is not sent a third time.
    let wanted = |count: usize| {
        editor.wait_until("what the agent wants again", |e| {
            e.transcript_text().matches("wants you to sign in (").count() == count
        });
    };
    editor.prompt("again");
    wanted(2);
    editor.command("AgentChat signin");
    agent.wait_received("session/prompt", 4);
    wanted(3);
    editor.command("AgentChat signin");
    agent.wait_received("authenticate", 3);
    editor.wait_transcript("You are signed in.");
    editor.prompt("other");
    assert_eq!(texts(5), json!("other"));
}

#[test]
fn a_way_in_a_terminal_starts_the_program_there_and_then_the_agent_anew() {
    let methods = json!([{ "id": "login", "name": "Log in", "type": "terminal", "args": ["--scripted-login"], "env": { "HOW": "here" } }]);
    let scenario = with_methods(&methods).on_new_session(refused()).on_new_session([new_session()]);
    let agent = ScriptedAgent::new(&scenario);
    // The program that is started once more: it asks for a word before it is content.
    let code = r#"case "$*" in
      *--scripted-login*) printf 'word for %s? ' "$HOW"; read -r word; test "$word" = please && touch "$MARK" ;;
      *) exec "$@" ;;
    esac"#;
    let mut command = vec!["sh".to_owned(), "-c".to_owned(), code.to_owned(), "sh".to_owned()];
    command.extend(agent.command());
    let mark = tempfile::tempdir().unwrap();
    let mark = mark.path().join("signed-in");
    let agents = json!({ "scripted": { "command": command, "env": { "MARK": mark } } });
    let editor = Editor::start(Setup::new().config("agents", agents).config("default_agent", json!("scripted")));
    editor.command("AgentChat open");
    editor.wait_until("what the agent wants", |e| e.messages().contains("wants you to sign in"));
    picking(&editor, 1);
    editor.command("AgentChat signin");
    editor.wait_screen("word for here?");
    editor.input("no<CR>");
    editor.wait_until("the failure", |e| e.messages().contains("signing in did not work: scripted ended with code 1"));
    editor.input("<C-\\><C-n>");
    editor.command("AgentChat signin");
    editor.wait_screen("word for here?");
    editor.input("please<CR>");
    editor.wait_until("the mark", |_| mark.exists());
    agent.wait_received("session/new", 2);
    assert_eq!(agent.pids().len(), 2, "only a new process knows of it");
    assert!(agent.received("authenticate").is_empty());
}

#[test]
fn without_a_way_the_user_hears_what_to_do() {
    let scenario =
        with_methods(&json!([{ "id": "odd", "name": "Odd", "type": "passkey_v9" }])).on_new_session(refused());
    let (agent, editor) = chat::start(&scenario, Setup::new());
    editor.command("AgentChat open");
    editor.wait_state("failed");
    editor.wait_transcript("Sign in with the agent's own program");
    editor.command("AgentChat signin");
    assert!(editor.messages().contains("no agent wants you to sign in"));
    assert!(agent.received("authenticate").is_empty());
}

#[test]
fn who_signs_out_signs_in_again_with_the_next_prompt() {
    let answer = json!({
        "protocolVersion": 1,
        "agentCapabilities": { "auth": { "logout": {} } },
        "authMethods": [{ "id": "key", "name": "API key" }],
    });
    let scenario = Scenario::new()
        .on_initialize([reply(answer)])
        .on("logout", [reply_error(-32603, "busy")])
        .on("logout", [reply(json!({}))])
        .on_prompt(refused())
        .on_prompt([chunk("here"), end_turn()])
        .on("authenticate", [reply(json!({}))]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    picking(&editor, 1);
    editor.command("AgentChat signout");
    editor.wait_transcript("Signing out did not work: busy");
    editor.command("AgentChat signout");
    editor.wait_transcript("You are signed out");
    editor.prompt("hello");
    editor.wait_transcript("wants you to sign in");
    editor.command("AgentChat signin");
    editor.wait_transcript("here");
    assert_eq!(agent.received("logout").len(), 2);

    let (agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.command("AgentChat signout");
    editor.wait_until("that there is no way", |e| e.messages().contains("no way to sign out"));
    assert!(agent.received("logout").is_empty());
}
