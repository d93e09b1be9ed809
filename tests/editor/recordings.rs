//! What real agents were recorded to say: every request of theirs is answered once, and no text is lost.

use crate::support::recording::{Recording, play};
use crate::support::{Editor, ScriptedAgent, Setup};

/// The project's folder in the recordings, which the replay replaces.
const RECORDED_PROJECT: &str = "/home/user/project";

/// Replays all recordings of one agent.
fn replay_all(agent_name: &str) {
    let recordings: Vec<_> =
        Recording::all().into_iter().filter(|recording| recording.name().starts_with(agent_name)).collect();
    assert!(!recordings.is_empty(), "there are recordings of {agent_name}");
    for recording in recordings {
        replay(&recording);
    }
}

#[expect(clippy::print_stderr, reason = "a failure has to say which recording it was")]
fn replay(recording: &Recording) {
    let name = recording.name();
    eprintln!("replaying {name}");
    let agent = ScriptedAgent::replay(recording);
    let editor = Editor::start(Setup::new().agent("recorded", &agent));
    editor.command("AgentChat open");
    if recording.protocol_version() != 1 {
        // Recorded with a client that asked for that version: the user is told, and nothing more is said.
        editor.wait_state("failed");
        let error = editor.status()["error"].to_string();
        assert!(error.contains(&format!("version {}", recording.protocol_version())), "{name}: {error}");
        return;
    }
    play(&editor, &agent);
    editor.wait_until(&format!("{name}: all its text"), |e| text_lacking(e, recording).is_none());
    editor.wait_until(&format!("{name}: every request is answered"), |_| agent.unanswered().is_empty());
    // A login on a terminal echoes what the client sent: to answer such a line is as right as to skip it.
    if !recording.noise().any(|line| line.contains("\"method\"")) {
        assert!(agent.stray_answers().is_empty(), "{name}: {:?}", agent.stray_answers());
    }
}

/// The first text of the chat's session that is not in the transcript, in the recorded order; blanks are not compared.
fn text_lacking(editor: &Editor, recording: &Recording) -> Option<String> {
    let transcript = without_blanks(&editor.transcript_text());
    let project = editor.project().display().to_string();
    let session_id = editor.status()["session_id"].clone();
    let mut rest = transcript.as_str();
    let chunks = recording.message_chunks().into_iter().filter(|(session, _)| session_id == session.as_str());
    chunks.map(|(_, text)| text.replace(RECORDED_PROJECT, &project)).find(|text| {
        let wanted = without_blanks(text);
        let Some(at) = rest.find(&wanted) else { return true };
        rest = &rest[at + wanted.len()..];
        false
    })
}

fn without_blanks(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn claude_agent_acp() {
    replay_all("claude-agent-acp");
}

#[test]
fn codex_acp() {
    replay_all("codex-acp");
}

#[test]
fn gemini_cli() {
    replay_all("gemini-cli");
}

#[test]
fn opencode() {
    replay_all("opencode");
}

#[test]
fn copilot() {
    replay_all("copilot");
}

#[test]
fn kimi_code() {
    replay_all("kimi-code");
}

#[test]
fn zed_codex_acp() {
    replay_all("zed-codex-acp");
}
