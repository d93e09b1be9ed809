//! Which commands run without another question.

use serde_json::{Value, json};

use super::world::{World, session};
use crate::core::effect::Effect;
use crate::core::event::UserAction;
use crate::core::message::{AgentRequest, PermissionOption, TerminalWanted};
use crate::core::tool_call::ToolCallPatch;

/// A turn in which the user allowed a call with these arguments.
fn allowed(kind: &str, raw_input: Value) -> World {
    let mut world = World::running();
    let tool = ToolCallPatch {
        id: "t".into(),
        kind: Some(kind.into()),
        raw_input: Some(raw_input.into()),
        ..ToolCallPatch::default()
    };
    let yes = PermissionOption { id: "yes".into(), name: "Yes".into(), kind: "allow_once".into() };
    world.asks("1", AgentRequest::Permission { session: session(), tool, options: vec![yes] });
    let request = world.state.permissions[0].request;
    world.user(UserAction::Respond { request, option: "yes".into() });
    world.effects.clear();
    world
}

fn wanted(command: &str, args: &[&str]) -> TerminalWanted {
    TerminalWanted {
        command: command.into(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: Vec::new(),
        cwd: None,
        output_byte_limit: None,
    }
}

/// Whether it was started without a question.
fn runs(world: &mut World, wanted: TerminalWanted) -> bool {
    world.asks("2", AgentRequest::CreateTerminal { session: session(), wanted });
    let runs = world.effects.iter().any(|effect| matches!(effect, Effect::StartTerminal(_)));
    assert_ne!(runs, !world.state.permissions.is_empty(), "it runs or is asked about");
    runs
}

#[test]
fn the_very_command_that_was_allowed_runs_once() {
    let mut world = allowed("execute", json!({ "command": "git", "args": ["commit", "-m", "a b"] }));
    assert!(runs(&mut world, wanted("git", &["commit", "-m", "a b"])));
    world.effects.clear();
    assert!(!runs(&mut world, wanted("git", &["commit", "-m", "a b"])));
    let words = json!({ "command": ["sh", "-c", "a && b"] });
    assert!(runs(&mut allowed("execute", words), wanted("sh", &["-c", "a && b"])));
    assert!(runs(&mut allowed("execute", json!({ "command": "a | b" })), wanted("a | b", &[])));
}

#[test]
fn words_that_only_read_alike_are_another_command() {
    for (asked, command, args) in [
        (json!({ "command": "git", "args": ["commit", "-m", "a b"] }), "git", vec!["commit", "-m", "a", "b"]),
        (json!({ "command": "rm 'a b'" }), "rm", vec!["'a", "b'"]),
        (json!({ "command": "echo a; rm b" }), "echo", vec!["a;", "rm", "b"]),
        (json!({ "command": "echo", "args": ["a;", "rm", "b"] }), "echo a; rm b", vec![]),
        (json!({ "command": "a" }), "a ", vec![]),
        (json!({ "command": ["a", 1] }), "a", vec![]),
        (json!({ "command": "a", "args": "b" }), "a", vec![]),
    ] {
        assert!(
            !runs(&mut allowed("execute", asked.clone()), wanted(command, &args)),
            "{asked} allowed {command} {args:?}"
        );
    }
}

#[test]
fn what_was_not_asked_about_is_not_allowed_with_it() {
    let ls = || json!({ "command": "ls" });
    assert!(!runs(&mut allowed("read", ls()), wanted("ls", &[])), "a call of another kind");
    let elsewhere = TerminalWanted { cwd: Some("/elsewhere".into()), ..wanted("ls", &[]) };
    assert!(!runs(&mut allowed("execute", ls()), elsewhere.clone()), "another folder");
    let above = TerminalWanted { cwd: Some("/p/../etc".into()), ..wanted("ls", &[]) };
    assert!(!runs(&mut allowed("execute", ls()), above), "a folder that only begins alike");
    let there = json!({ "command": "ls", "cwd": "/elsewhere" });
    assert!(runs(&mut allowed("execute", there.clone()), elsewhere), "the folder that was named");
    assert!(!runs(&mut allowed("execute", there), wanted("ls", &[])), "another than the one that was named");
    let env = TerminalWanted { env: vec![("LD_PRELOAD".into(), "/evil".into())], ..wanted("ls", &[]) };
    assert!(!runs(&mut allowed("execute", ls()), env), "an environment");

    let mut later = allowed("execute", ls());
    later.ended_turn_of_running();
    later.prompt(2, "again");
    later.effects.clear();
    assert!(!runs(&mut later, wanted("ls", &[])), "a later turn");
}
