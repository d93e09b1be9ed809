//! The traffic of real agents, and doing again what the recorded user did.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::agent::{Entry, ScriptedAgent};
use super::editor::Editor;

const PERMISSION: &str = "session/request_permission";

/// One recording (its first process, if it holds several) of `tests/recordings/`: a JSON object a line, as `tests/scripted_agent/replay.py` reads them.
#[derive(Debug, Clone)]
pub struct Recording {
    path: PathBuf,
    entries: Vec<Json>,
}

impl Recording {
    /// The recording of that name, without `.jsonl`.
    pub fn load(name: &str) -> Self {
        Self::read(&folder().join(format!("{name}.jsonl")))
    }

    /// All recordings, by name.
    pub fn all() -> Vec<Self> {
        let files = fs::read_dir(folder()).expect("tests/recordings exists");
        let mut paths: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        paths.sort();
        assert!(!paths.is_empty(), "tests/recordings holds recordings");
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let entries = text.lines().map(|line| serde_json::from_str(line).expect("each line of a recording is JSON"));
        let mut entries: Vec<Json> = entries.collect();
        // As in the replay: a recording may hold several processes, each of which begins with such a note.
        let mut starts = entries.iter().enumerate().filter(|(_, entry)| entry.get("spawn").is_some());
        if let Some((second, _)) = starts.nth(1) {
            entries.truncate(second);
        }
        Self { path: path.to_owned(), entries }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's name without `.jsonl`.
    pub fn name(&self) -> String {
        self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// All that was recorded, in order: `dir` is `c2a`, `a2c`, `stderr` or `note`.
    pub fn entries(&self) -> &[Json] {
        &self.entries
    }

    /// Every message of the agent, in order.
    pub fn agent_messages(&self) -> impl Iterator<Item = &Json> {
        self.entries
            .iter()
            .filter(|entry| entry["dir"] == "a2c")
            .map(|entry| &entry["msg"])
            .filter(|msg| msg.is_object())
    }

    /// The version that the agent answered `initialize` with.
    pub fn protocol_version(&self) -> u64 {
        let version = self.agent_messages().find_map(|message| message["result"]["protocolVersion"].as_u64());
        version.unwrap_or_else(|| panic!("{}: no answer to initialize", self.name()))
    }

    /// The lines of the agent's stdout that are no messages, in order.
    pub fn noise(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(|entry| entry["dir"] == "a2c").filter_map(|entry| entry["raw"].as_str())
    }

    /// The text of every `agent_message_chunk`, in order, with the session that it belongs to.
    pub fn message_chunks(&self) -> Vec<(String, String)> {
        let chunks = self.agent_messages().filter(|message| {
            message["method"] == "session/update"
                && message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
        });
        let text = |message: &Json| {
            let session = message["params"]["sessionId"].as_str()?;
            let text = message["params"]["update"]["content"]["text"].as_str()?;
            Some((session.to_owned(), text.to_owned()))
        };
        chunks.filter_map(text).collect()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

/// Does in `editor`, whose chat is open with `agent`, what the recorded user did, until the agent has said everything:
/// prompts, cancels, and answers to permission requests. Prompts are not held back while a turn runs; the plugin queues
/// them.
#[track_caller]
pub fn play(editor: &Editor, agent: &ScriptedAgent) {
    let mut done = 0;
    loop {
        let next = editor.wait("the recorded agent goes on", |_| {
            let log = agent.log();
            let mut new = log.into_iter().enumerate().skip(done);
            new.find(|(_, entry)| ["expects", "replayed", "cannot_send"].contains(&entry.what()))
        });
        done = next.0 + 1;
        match next.1.what() {
            "expects" => act(editor, agent, &next.1),
            "replayed" => return,
            _ => editor.fail("the client closed the agent's pipe before the agent had said everything"),
        }
    }
}

#[track_caller]
fn act(editor: &Editor, agent: &ScriptedAgent, expected: &Entry) {
    match expected.get("act").as_str() {
        Some("prompt") => editor.prompt(expected.get("text").as_str().unwrap_or_default()),
        Some("cancel") => editor.command("AgentChat cancel"),
        Some("answer") => answer(editor, agent, expected),
        other => editor.fail(&format!("the replay expects {other:?}, which no user can do")),
    }
}

/// Sees to it that the agent's request is answered: a permission request as the recorded user did, another by the
/// plugin itself. The plugin may also answer a permission request by itself (after a cancel, or when it is for no session
/// of its own), and may ask the user about another request: those are files outside the project, which no test touches.
#[track_caller]
fn answer(editor: &Editor, agent: &ScriptedAgent, expected: &Entry) {
    let answer = &expected.get("answer")["result"]["outcome"]["optionId"];
    let option = answer.as_str().unwrap_or("reject_once");
    let is_answered = |entry: &Entry| entry.what() == "answered" && entry.get("id") == expected.get("id");
    editor.wait_until("the agent's request is answered", |e| {
        let log = agent.log();
        // With no request for permission in the agent's hands, what is displayed is the plugin's own question.
        let is_due = answer.is_string() || !agent.unanswered().iter().any(|(method, _)| method == PERMISSION);
        log.iter().any(is_answered)
            || (is_due && e.try_lua("require('agentchat').respond(...)", json!([option])).is_ok() && answer.is_string())
    });
}
