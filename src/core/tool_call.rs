//! A tool call as the core keeps it, and how an update changes it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::ids::Millis;
use super::message::TerminalExit;

/// What is known of one tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The agent's id.
    pub id: String,
    /// The tool's name, if the agent tells it.
    pub name: Option<String>,
    /// What the agent calls it; empty until known.
    pub title: String,
    /// The category, as the agent sent it (`read`, `edit`, …); unknown words are kept.
    pub kind: String,
    /// How far it is.
    pub status: ToolStatus,
    /// What it produced or proposes.
    pub content: Vec<ToolContent>,
    /// The places it concerns.
    pub locations: Vec<Location>,
    /// The tool's arguments, as sent.
    pub raw_input: Option<Arc<Value>>,
    /// The tool's result, as sent.
    pub raw_output: Option<Arc<Value>>,
    /// When it was first heard of.
    pub started: Millis,
    /// When it came to its end.
    pub ended: Option<Millis>,
}

/// How far a tool call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolStatus {
    /// Not begun: its input still streams, or it waits for permission.
    Pending,
    /// Runs.
    InProgress,
    /// Done.
    Completed,
    /// Failed.
    Failed,
    /// Its turn was cancelled before it came to its end.
    Cancelled,
    /// Its turn ended before it did.
    Unfinished,
    /// A word this version does not know.
    Other(String),
}

impl ToolStatus {
    /// Whether nothing more is expected of the call.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Unfinished)
    }

    /// The word for it: the protocol's, or ours where it has none.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unfinished => "unfinished",
            Self::Other(word) => word,
        }
    }
}

/// Lines of a terminal, each in pieces of one colour; colours are numbered from 0 to 15, as terminals do.
pub type TerminalTail = Arc<[Vec<(String, Option<u8>)>]>;

/// The text of such lines.
pub fn plain(tail: &TerminalTail) -> String {
    let line = |pieces: &Vec<(String, Option<u8>)>| pieces.iter().map(|(text, _)| text.as_str()).collect::<String>();
    tail.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What is said of a terminal that the agent runs itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalReport {
    /// The agent's name for it.
    pub name: String,
    /// What was written to it.
    pub output: Option<String>,
    /// How its command has ended.
    pub exit: Option<TerminalExit>,
}

/// One item of a tool call's content.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolContent {
    /// Text, or what stands for a block that is not text.
    Text(Arc<str>),
    /// A change to a file; `old` is `None` for a new one. Often only a fragment of the file.
    Diff {
        /// Absolute path.
        path: String,
        /// Text before.
        old: Option<Arc<str>>,
        /// Text after.
        new: Arc<str>,
    },
    /// A terminal: the agent's name for it, and the last lines on it as far as they are known.
    Terminal(String, TerminalTail),
    /// A kind this version does not know.
    Other(String),
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Absolute path.
    pub path: String,
    /// 1-based line.
    pub line: Option<u64>,
}

/// Fields of a `tool_call` or `tool_call_update`; `None` leaves what is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCallPatch {
    /// The agent's id.
    pub id: String,
    /// The tool's name.
    pub name: Option<String>,
    /// New title.
    pub title: Option<String>,
    /// New kind.
    pub kind: Option<String>,
    /// New status.
    pub status: Option<ToolStatus>,
    /// New content, replacing all of it.
    pub content: Option<Vec<ToolContent>>,
    /// New locations, replacing all of them.
    pub locations: Option<Vec<Location>>,
    /// New arguments.
    pub raw_input: Option<Arc<Value>>,
    /// New result.
    pub raw_output: Option<Arc<Value>>,
    /// News of terminals that the agent runs itself.
    pub terminals: Vec<TerminalReport>,
}

impl ToolCall {
    /// A call of which only the id is known.
    pub fn new(id: String, now: Millis) -> Self {
        Self {
            id,
            name: None,
            title: String::new(),
            kind: "other".into(),
            status: ToolStatus::Pending,
            content: Vec::new(),
            locations: Vec::new(),
            raw_input: None,
            raw_output: None,
            started: now,
            ended: None,
        }
    }

    /// Takes over every field that `patch` carries.
    pub fn apply(&mut self, patch: ToolCallPatch, now: Millis) {
        let ToolCallPatch { id: _, name, title, kind, status, content, locations, raw_input, raw_output, terminals: _ } =
            patch;
        // Some agents begin with the tool's name as title, and find a better title later.
        let is_name =
            |title: &&String| !title.is_empty() && title.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        self.name = name.or(self.name.take()).or_else(|| title.as_ref().filter(is_name).cloned());
        self.title = title.unwrap_or(std::mem::take(&mut self.title));
        self.kind = kind.unwrap_or(std::mem::take(&mut self.kind));
        if let Some(mut content) = content {
            for item in &mut content {
                if let ToolContent::Terminal(name, tail) = item
                    && let Some(known) = self.tail_of(name)
                {
                    *tail = known;
                }
            }
            self.content = content;
        }
        self.locations = locations.unwrap_or(std::mem::take(&mut self.locations));
        self.raw_input = raw_input.or(self.raw_input.take());
        self.raw_output = raw_output.or(self.raw_output.take());
        if let Some(status) = status {
            // A late `in_progress` does not bring a call back that was settled when its turn was cancelled or over.
            let settled = matches!(self.status, ToolStatus::Cancelled | ToolStatus::Unfinished);
            if status.is_final() || !settled {
                self.set_status(status, now);
            }
        }
    }

    /// The last lines of a terminal that it shows.
    fn tail_of(&self, wanted: &str) -> Option<TerminalTail> {
        self.content.iter().find_map(|content| match content {
            ToolContent::Terminal(name, tail) if name == wanted => Some(tail.clone()),
            _ => None,
        })
    }

    /// Sets the status, and with a final one the end of the call.
    pub fn set_status(&mut self, status: ToolStatus, now: Millis) {
        self.ended = if status.is_final() { self.ended.or(Some(now)) } else { None };
        self.status = status;
    }

    /// Whether the call says that it is about this file.
    pub fn concerns(&self, path: &Path) -> bool {
        let is_changed = |content: &ToolContent| match content {
            ToolContent::Diff { path: changed, .. } => Path::new(changed) == path,
            _ => false,
        };
        self.locations.iter().any(|location| Path::new(&location.path) == path) || self.content.iter().any(is_changed)
    }

    /// The files that the call names: where it says it works, what its diffs change, and what its arguments say under the
    /// names that agents are known to use for a path.
    pub fn files(&self) -> Vec<PathBuf> {
        const NAMES: [&str; 8] =
            ["file_path", "filePath", "filepath", "path", "fileName", "absolute_path", "notebook_path", "target_file"];
        let mut files: Vec<PathBuf> = self.locations.iter().map(|location| location.path.as_str().into()).collect();
        files.extend(self.content.iter().filter_map(|content| match content {
            ToolContent::Diff { path, .. } => Some(path.as_str().into()),
            _ => None,
        }));
        if let Some(input) = &self.raw_input {
            files.extend(NAMES.iter().filter_map(|name| Some(input.get(name)?.as_str()?.into())));
            // A map from path to change, as codex-acp has it.
            files.extend(
                input
                    .get("changes")
                    .and_then(|changes| changes.as_object())
                    .into_iter()
                    .flatten()
                    .map(|(path, _)| path.into()),
            );
        }
        files
    }

    /// The command line of an `execute` call, when the agent sent it only among the raw arguments. Words are quoted as a
    /// shell would want them, so that what is read is what would run.
    pub fn command(&self) -> Option<String> {
        let input = self.raw_input.as_ref()?;
        let mut words = match input.get("command")? {
            Value::String(line) => vec![line.clone()],
            Value::Array(words) => words.iter().map(shell_word).collect(),
            _ => return None,
        };
        match input.get("args") {
            Some(Value::Array(arguments)) => words.extend(arguments.iter().map(shell_word)),
            Some(Value::String(arguments)) => words.push(arguments.clone()),
            _ => {}
        }
        Some(words.join(" "))
    }
}

/// A word of a command as it is written in a shell.
fn shell_word(word: &Value) -> String {
    let Value::String(word) = word else { return word.to_string() };
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.clone()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_is_told_with_its_arguments_and_where_each_word_ends() {
        let told = |input: Value| {
            let mut call = ToolCall::new("t".into(), Millis(0));
            call.raw_input = Some(Arc::new(input));
            call.command()
        };
        assert_eq!(told(json!({ "command": "ls -la | wc" })).as_deref(), Some("ls -la | wc"));
        assert_eq!(told(json!({ "command": "rm", "args": ["-rf", "a b", ""] })).as_deref(), Some("rm -rf 'a b' ''"));
        assert_eq!(told(json!({ "command": ["sh", "-c", "echo 'x"] })).as_deref(), Some(r"sh -c 'echo '\''x'"));
        assert_eq!(told(json!({ "command": "head", "args": ["-n", 3] })).as_deref(), Some("head -n 3"));
        assert_eq!(told(json!({ "command": "make", "args": "all" })).as_deref(), Some("make all"));
        assert_eq!(told(json!({ "command": 3 })), None);
        assert_eq!(told(json!({ "cmd": "ls" })), None);
    }
}
