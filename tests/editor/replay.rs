//! Recorded agents in a real Neovim: one of each, doing what they do. All recordings are in `recordings`, without one.

use std::collections::BTreeMap;

use serde_json::json;

use crate::recordings::{first_session, runs};
use crate::support::recording::{Recording, play};
use crate::support::{Editor, ScriptedAgent, Setup};

fn replay_all(names: &[&str]) {
    let recordings: BTreeMap<&str, Recording> = names.iter().map(|name| (*name, Recording::load(name))).collect();
    let agents: BTreeMap<&str, ScriptedAgent> =
        recordings.iter().map(|(name, recording)| (*name, ScriptedAgent::replay(recording))).collect();
    let setup = agents.iter().fold(Setup::new(), |setup, (name, agent)| setup.agent(name, agent));
    let editor = Editor::start(setup.file("hello.py", "print('hello')\n").file("notes.txt", "notes\n"));
    for (name, recording) in &recordings {
        editor.command("tabnew");
        editor.lua("require('agentchat').open({ agent = ... })", json!([name]));
        let earlier = editor.events("AgentChatTurnEnd").len();
        play(&editor, &agents[name]);
        let prompts = agents[name].received("session/prompt").len();
        editor.wait_until(&format!("{name} has ended its turns"), |e| {
            e.events("AgentChatTurnEnd").len() == earlier + prompts && e.state() == "idle"
        });
        check(&editor, recording, &agents[name]);
        editor.command("silent tabonly | %bwipeout!");
    }
    assert_eq!(editor.events("AgentChatError"), [json!(null); 0]);
    assert!(!editor.messages().contains("rror"), "{}", editor.messages());
}

#[track_caller]
fn check(editor: &Editor, recording: &Recording, agent: &ScriptedAgent) {
    let name = recording.name();
    let mut transcript = editor.transcript_text();
    let session = first_session(recording).unwrap_or_else(|| panic!("{name} has a session"));
    let kinds = ["agent_message_chunk", "agent_thought_chunk"];
    for run in kinds.iter().flat_map(|kind| runs(recording, &session, kind)) {
        // Taken out, so that the same words a second time need a second place.
        let Some(at) = transcript.find(&run) else { editor.fail(&format!("{name}: lost {run:?}")) };
        transcript.replace_range(at..at + run.len(), "\0");
    }
    assert_eq!(agent.unanswered(), [], "{name}");
    assert_eq!(agent.stray_answers(), [json!(null); 0], "{name}");
    for answer in agent.answers("elicitation/create") {
        assert_eq!(answer["error"]["code"], -32601, "{name}");
    }
    for suspect in ["could not be read", "internal error", "it was dropped"] {
        assert!(!transcript.contains(suspect), "{name}: {transcript}");
    }
}

#[test]
fn agents_that_edit_and_ask() {
    replay_all(&[
        "claude-agent-acp-0.101.0-edit",
        "codex-acp-2.6.0-edit",
        "copilot-1.0.102-edit",
        "gemini-cli-0.61.0-edit",
        "kimi-code-2.1.0-edit",
        "opencode-1.18.33-edit",
        "zed-codex-acp-0.16.0-edit",
    ]);
}

#[test]
fn agents_that_run_commands_side_by_side() {
    replay_all(&[
        "claude-agent-acp-0.101.0-parallel",
        "codex-acp-2.6.0-shell",
        "copilot-1.0.102-parallel",
        "gemini-cli-0.61.0-parallel",
        "opencode-1.18.33-shell",
        "zed-codex-acp-0.16.0-shell",
    ]);
}

#[test]
fn agents_that_are_cancelled() {
    replay_all(&[
        "claude-agent-acp-0.101.0-cancel_perm",
        "codex-acp-2.6.0-cancel_stream",
        "copilot-1.0.102-cancel_shell",
        "gemini-cli-0.61.0-cancel_perm_silent",
        "kimi-code-2.1.0-cancel_perm",
        "opencode-1.18.33-cancel_stream",
    ]);
}

#[test]
fn agents_with_plans_thoughts_and_queues() {
    replay_all(&[
        "claude-agent-acp-0.101.0-plan",
        "claude-agent-acp-0.101.0-queue",
        "codex-acp-2.6.0-plan",
        "gemini-cli-0.61.0-text",
        "opencode-1.18.33-content",
        "opencode-1.18.33-reject",
    ]);
}
