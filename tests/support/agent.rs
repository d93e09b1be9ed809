//! A process that plays an agent, and the log of what it saw.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::Value as Json;
use tempfile::TempDir;

use super::deadline::{PATIENCE, poll};
use super::recording::Recording;
use super::scenario::Scenario;

/// How many entries of the log a failure shows, and how much of each.
const REPORTED_ENTRIES: usize = 40;
const REPORTED_CHARACTERS: usize = 300;

/// One line of an agent's log; `tests/scripted_agent/wire.py` says which there are.
#[derive(Debug, Clone)]
pub struct Entry(Json);

impl Entry {
    /// Its kind: `started`, `received`, `asked`, `answered`, `stray_answer`, `spawned`, `eof`, …
    pub fn what(&self) -> &str {
        self.0["what"].as_str().unwrap_or_default()
    }

    /// Which process of this agent wrote it: 1 for the first, 2 for the one after a restart.
    pub fn run(&self) -> u64 {
        self.0["run"].as_u64().unwrap_or(0)
    }

    /// Seconds on the machine's monotonic clock: only differences mean something.
    pub fn seconds(&self) -> f64 {
        self.0["t"].as_f64().unwrap_or(0.0)
    }

    /// One of its details, `Null` when it has none of that name.
    pub fn get(&self, name: &str) -> &Json {
        &self.0[name]
    }

    /// The method of the message that this entry is about.
    pub fn method(&self) -> &str {
        self.0["method"].as_str().or_else(|| self.0["message"]["method"].as_str()).unwrap_or_default()
    }
}

/// An agent for [`super::Setup::agent`]; clones are the same agent. One value may become several processes (a restart,
/// two chats), which share the log.
#[derive(Clone)]
pub struct ScriptedAgent(Arc<Inner>);

struct Inner {
    folder: TempDir,
    script: PathBuf,
    input: PathBuf,
}

impl ScriptedAgent {
    /// An agent that plays `scenario`.
    pub fn new(scenario: &Scenario) -> Self {
        let folder = TempDir::with_prefix("agentchat-agent-").expect("a temporary folder");
        let input = folder.path().join("scenario.json");
        fs::write(&input, scenario.to_json().to_string()).expect("the scenario's file");
        Self(Arc::new(Inner { folder, script: program("agent.py"), input }))
    }

    /// An agent that says again what the recorded one said.
    pub fn replay(recording: &Recording) -> Self {
        let folder = TempDir::with_prefix("agentchat-agent-").expect("a temporary folder");
        Self(Arc::new(Inner { folder, script: program("replay.py"), input: recording.path().to_owned() }))
    }

    /// The command line that starts it.
    pub fn command(&self) -> Vec<String> {
        let Inner { script, input, .. } = &*self.0;
        let paths = [python(), script, input, &self.log_path()].map(|path| path.to_string_lossy().into_owned());
        paths.into()
    }

    fn log_path(&self) -> PathBuf {
        self.0.folder.path().join("log.jsonl")
    }

    /// Lets the step `gate(name)` go on, now and whenever it is reached later.
    pub fn open_gate(&self, name: &str) {
        fs::write(self.0.folder.path().join(format!("gate-{name}")), "").expect("the gate's file");
    }

    // -- what it saw

    /// All that happened so far.
    pub fn log(&self) -> Vec<Entry> {
        let Ok(file) = fs::File::open(self.log_path()) else {
            return Vec::new();
        };
        // A line that is being written ends without a newline and is no JSON yet.
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_slice(&line).ok().map(Entry)).collect()
    }

    /// The whole messages of that method that came from the client, oldest first.
    pub fn received(&self, method: &str) -> Vec<Json> {
        self.messages("received", method)
    }

    /// The client's answers (whole messages) to this agent's requests of that method, in the order of their coming.
    pub fn answers(&self, method: &str) -> Vec<Json> {
        self.messages("answered", method)
    }

    fn messages(&self, what: &str, method: &str) -> Vec<Json> {
        let log = self.log();
        let entries = log.iter().filter(|entry| entry.what() == what && entry.method() == method);
        entries.map(|entry| entry.get("message").clone()).collect()
    }

    /// Method and id of this agent's requests that the client has not answered; each process on its own.
    pub fn unanswered(&self) -> Vec<(String, Json)> {
        let mut open: Vec<(u64, String, Json)> = Vec::new();
        for entry in self.log() {
            let key = (entry.run(), entry.method().to_owned(), entry.get("id").clone());
            match entry.what() {
                "asked" => open.push(key),
                "answered" => open.retain(|other| *other != key),
                _ => {}
            }
        }
        open.into_iter().map(|(_, method, id)| (method, id)).collect()
    }

    /// Answers of the client that belong to no open request: wrong ids, and second answers.
    pub fn stray_answers(&self) -> Vec<Json> {
        let log = self.log();
        let entries = log.iter().filter(|entry| entry.what() == "stray_answer");
        entries.map(|entry| entry.get("message").clone()).collect()
    }

    /// The ids of the processes that this agent was, oldest first.
    pub fn pids(&self) -> Vec<i32> {
        self.ids("started")
    }

    /// The ids of the children that it started.
    pub fn spawned(&self) -> Vec<i32> {
        self.ids("spawned")
    }

    fn ids(&self, what: &str) -> Vec<i32> {
        let log = self.log();
        let entries = log.iter().filter(|entry| entry.what() == what);
        entries.filter_map(|entry| i32::try_from(entry.get("pid").as_i64()?).ok()).collect()
    }

    // -- waiting

    /// Asks `probe` about the log until it has an answer.
    #[track_caller]
    pub fn wait<T>(&self, what: &str, mut probe: impl FnMut(&[Entry]) -> Option<T>) -> T {
        self.wait_within(PATIENCE, what, &mut probe)
    }

    #[track_caller]
    fn wait_within<T>(&self, patience: Duration, what: &str, probe: &mut dyn FnMut(&[Entry]) -> Option<T>) -> T {
        let answer = poll(patience, || probe(&self.log()));
        answer.unwrap_or_else(|| panic!("the agent did not see within {patience:?}: {what}\n{}", self.report()))
    }

    /// Waits until the client has sent `count` messages of that method; gives the last of them.
    #[track_caller]
    pub fn wait_received(&self, method: &str, count: usize) -> Json {
        let nth = |log: &[Entry]| {
            let mut entries = log.iter().filter(|entry| entry.what() == "received" && entry.method() == method);
            entries.nth(count - 1).map(|entry| entry.get("message").clone())
        };
        self.wait(&format!("{method}, {count} times"), nth)
    }

    /// Waits until the client has answered `count` of this agent's requests of that method; gives the last answer.
    #[track_caller]
    pub fn wait_answer(&self, method: &str, count: usize) -> Json {
        let nth = |log: &[Entry]| {
            let mut entries = log.iter().filter(|entry| entry.what() == "answered" && entry.method() == method);
            entries.nth(count - 1).map(|entry| entry.get("message").clone())
        };
        self.wait(&format!("an answer to {method}, {count} times"), nth)
    }

    /// Waits until the agent stands at a gate.
    #[track_caller]
    pub fn wait_gate(&self, name: &str) {
        let at_gate = |entry: &Entry| entry.what() == "at_gate" && entry.get("name") == name;
        self.wait(&format!("the gate {name}"), |log| log.iter().any(at_gate).then_some(()));
    }

    /// The end of the log, for a failure's message.
    pub fn report(&self) -> String {
        let log = self.log();
        let recent = log.iter().skip(log.len().saturating_sub(REPORTED_ENTRIES));
        let lines = recent.map(|Entry(json)| {
            let mut json = json.clone();
            // The whole environment of the process says little.
            if let Some(entry) = json.as_object_mut() {
                entry.remove("env");
            }
            json.to_string().chars().take(REPORTED_CHARACTERS).collect::<String>()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripted_agent").join(name)
}

/// The Python behind `python3`, which may be a slow script of a version manager.
fn python() -> &'static PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let output = output.expect("python3 is on $PATH: the scripted agent is written in Python");
        PathBuf::from(String::from_utf8(output.stdout).expect("a path in UTF-8").trim())
    })
}
