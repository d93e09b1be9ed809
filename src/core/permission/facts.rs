//! What a request is about, as rules and marks look at it: taken from the call once, whatever form its agent gave it.

use std::collections::BTreeSet;
use std::iter;
use std::path::{Component, Path, PathBuf};

use super::marks::{self, Mark};
use super::programs::base_name;
use super::rule::may_run;
use super::shell;
use crate::core::quirks::CommandIn;
use crate::core::tool_call::{ToolCall, ToolContent};

/// Paths of one request that are looked at. Of a call with more, not all is known, so no rule allows it.
const MOST_PATHS: usize = 256;
/// Longest text of a whole call that is remembered, in bytes.
const LONGEST_CALL: usize = 4 * 1024;

/// Names under which agents tell where a command runs.
const FOLDERS: [&str; 6] = ["cwd", "workdir", "working_directory", "directory", "dir_path", "workingDirectory"];
/// Names under which agents tell more of what is run; only looked at to refuse.
const LINES: [&str; 7] = ["command", "commands", "cmd", "script", "command_line", "commandLine", "code"];

/// A path that a request may concern, before links are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Absolute.
    pub path: PathBuf,
    /// It is a word of a command, and perhaps no path at all.
    pub is_word: bool,
}

/// A path that a request concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Absolute, as it was named.
    pub named: PathBuf,
    /// Where it leads, without links and `..`.
    pub resolved: PathBuf,
}

/// A command that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The line that a shell is given.
    pub line: String,
    /// Its words, if it is one simple command of literal words.
    pub words: Option<Vec<String>>,
    /// Its words, if it is not a shell that makes words of it, or none could take it for others.
    pub argv: Option<Vec<String>>,
}

impl Command {
    /// A line for a shell.
    pub fn of_line(line: &str) -> Self {
        let words = shell::simple(line);
        // A program's name may begin or end with a space.
        let argv = words.clone().filter(|_| line == line.trim());
        Self { line: line.to_owned(), words, argv }
    }

    /// A program that is started with arguments, of which a shell with a line is that line.
    pub fn of_words(argv: &[&str]) -> Self {
        const SHELLS: [&str; 5] = ["sh", "bash", "zsh", "dash", "ksh"];
        // As codex and kimi-code run every line: `bash -lc "…"`.
        if let [shell, "-c" | "-lc", line] = argv
            && SHELLS.contains(&base_name(shell))
        {
            return Self::of_line(line);
        }
        let is_plain = |word: &str| shell::simple(&format!("x {word}")).is_some_and(|found| found.len() == 2);
        let quoted = |word: &&str| {
            if is_plain(word) { (*word).to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
        };
        let line = argv.iter().map(quoted).collect::<Vec<_>>().join(" ");
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        Self { words: shell::simple(&line), line, argv: Some(argv) }
    }

    /// Whether both run the same.
    pub fn is_same(&self, other: &Self) -> bool {
        self.line == other.line || (self.argv.is_some() && self.argv == other.argv)
    }
}

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The agent's name in the configuration.
    pub agent: String,
    /// The kind that the agent gave it.
    pub kind: String,
    /// The tool's name, or else its title.
    pub tool: String,
    /// The title.
    pub title: String,
    /// The command, where it is certain that it is all that runs.
    pub command: Option<Command>,
    /// Every line that is to be run, or may be; to refuse it.
    pub lines: Vec<String>,
    /// Texts in which a command is told, where the agent does not say which; to refuse it.
    pub hints: Vec<String>,
    /// Whether a text that is to be written comes with it.
    pub has_diff: bool,
    /// The project's folder, without links.
    pub root: PathBuf,
    /// Further folders of the workspace, without links; none are known before they were resolved.
    pub additional: Vec<PathBuf>,
    /// The paths; none are known before they were resolved.
    pub places: Vec<Place>,
    /// Whether all paths are known.
    pub is_complete: bool,
    /// The folder that a command runs in, as it is called; `None` for the project's.
    pub folder: Option<PathBuf>,
    /// What may be paths, before anything was resolved.
    pub candidates: Vec<Candidate>,
    /// What is dangerous about it.
    pub marks: BTreeSet<Mark>,
    /// The whole call as text, to know the very same again; `None` if it is too long.
    pub call: Option<String>,
}

impl Facts {
    /// What a call in this project tells by itself. Nothing is resolved: paths are what they are called.
    pub fn of_call(agent: &str, call: &ToolCall, root: &Path, command_in: CommandIn) -> Self {
        let command = command_of(call, command_in);
        let mut lines: Vec<String> = command.iter().map(|command| command.line.clone()).collect();
        if let Some(input) = &call.raw_input {
            lines.extend(LINES.iter().filter_map(|name| input.get(name)).flat_map(texts));
        }
        let mut hints = Vec::new();
        if call.kind == "execute" && lines.is_empty() {
            hints.push(call.title.clone());
            hints.extend(call.content.iter().filter_map(|content| match content {
                ToolContent::Text(text) => Some(text.to_string()),
                _ => None,
            }));
        }
        lines.dedup();
        if let (Some(command), true) = (&command, lines.is_empty()) {
            lines.push(command.line.clone());
        }
        let mut facts = Self {
            agent: agent.to_owned(),
            kind: call.kind.clone(),
            tool: call.name.clone().unwrap_or_else(|| call.title.clone()),
            title: call.title.clone(),
            has_diff: call.content.iter().any(|content| matches!(content, ToolContent::Diff { .. })),
            root: PathBuf::new(),
            additional: Vec::new(),
            places: Vec::new(),
            is_complete: false,
            folder: folder_of(call).map(|folder| root.join(folder)),
            candidates: Vec::new(),
            marks: BTreeSet::new(),
            call: whole(call),
            command,
            lines,
            hints,
        };
        if call.kind == "delete" {
            facts.marks.insert(Mark::Deletes);
        }
        for line in facts.lines.iter().chain(&facts.hints).map(|line| marks::of_command(line)).collect::<Vec<_>>() {
            facts.marks.extend(line);
        }
        facts.candidates = facts.candidates_of(call, root);
        // Before anything is resolved the names have to do, at least to refuse.
        let named = facts.candidates.iter().filter(|candidate| !candidate.is_word);
        let places =
            named.map(|candidate| Place { named: candidate.path.clone(), resolved: normalized(&candidate.path) });
        facts.resolve(root.to_owned(), places.collect(), false);
        facts
    }

    /// The paths to be resolved: those that the call names, and words of its command that may be some.
    fn candidates_of(&self, call: &ToolCall, root: &Path) -> Vec<Candidate> {
        let named = |path: &Path| Candidate { path: root.join(path), is_word: false };
        let mut found: Vec<Candidate> = call.files().iter().map(|path| named(path)).collect();
        found.extend(self.folder.as_deref().map(named));
        let folder = self.folder.as_deref().unwrap_or(root);
        let line = self.command.as_ref().map_or("", |command| command.line.as_str());
        for fragment in shell::fragments(line).unwrap_or_default() {
            for word in fragment.words.iter().skip(1).filter(|word| word.is_literal) {
                // `of=/dev/x` names a path in a part of the word, `/etc/x=` in another.
                let parts = word.text.split('=').chain(word.text.contains('=').then_some(word.text.as_str()));
                for value in parts.filter(|value| !value.is_empty() && !value.starts_with('-') && !is_device(value)) {
                    found.push(Candidate { path: folder.join(value), is_word: true });
                }
            }
        }
        found
    }

    /// Whether another look at the call brings nothing new.
    pub fn is_same_call(&self, other: &Self) -> bool {
        let bare = |facts: &Self| Self {
            root: PathBuf::new(),
            additional: Vec::new(),
            places: Vec::new(),
            is_complete: false,
            marks: BTreeSet::new(),
            ..facts.clone()
        };
        bare(self) == bare(other)
    }

    /// Takes over where the paths lead.
    pub fn resolve(&mut self, root: PathBuf, mut places: Vec<Place>, is_complete: bool) {
        // That a command runs in the project's folder says nothing about where it goes.
        places.retain(|place| !(self.runs() && Some(&place.named) == self.folder.as_ref() && place.resolved == root));
        let is_written = !matches!(self.kind.as_str(), "read" | "search" | "execute");
        for place in &places {
            if !self.workspace(&root).any(|folder| place.resolved.starts_with(folder)) {
                self.marks.insert(Mark::Outside);
            }
            self.marks.extend(marks::of_path(&place.resolved, is_written));
        }
        self.root = root;
        self.places = places;
        self.is_complete = is_complete && self.candidates.len() <= MOST_PATHS;
    }

    /// Whether every path lies in the workspace: the project's folder, and what the user added to it.
    pub fn is_inside(&self) -> bool {
        let is_inside = |place: &Place| self.workspace(&self.root).any(|folder| place.resolved.starts_with(folder));
        self.is_complete && self.places.iter().all(is_inside)
    }

    fn workspace<'a>(&'a self, root: &'a Path) -> impl Iterator<Item = &'a Path> {
        iter::once(root).chain(self.additional.iter().map(PathBuf::as_path))
    }

    /// The folder that a command runs in, without links.
    pub fn resolved_folder(&self) -> &Path {
        let folder = self.places.iter().find(|place| Some(&place.named) == self.folder.as_ref());
        folder.map_or(&self.root, |place| &place.resolved)
    }

    /// Whether something is to be run, as far as can be seen.
    pub fn runs(&self) -> bool {
        self.kind == "execute" || !self.lines.is_empty()
    }

    /// Whether it may run a command that begins with these words.
    pub fn may_run(&self, start: &[String]) -> bool {
        self.lines.iter().any(|line| may_run(line, start, false))
            || self.hints.iter().any(|line| may_run(line, start, true))
    }
}

/// The device files that are no files.
fn is_device(path: &str) -> bool {
    ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"].contains(&path)
}

/// The strings of a string or a list of strings.
fn texts(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(text) => vec![text.clone()],
        serde_json::Value::Array(items) => {
            let words: Vec<String> = items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect();
            // A list may be the words of one command, or several commands.
            let line = words.join(" ");
            words.into_iter().chain([line]).collect()
        }
        _ => Vec::new(),
    }
}

/// Where a call says that its command runs.
fn folder_of(call: &ToolCall) -> Option<&str> {
    let input = call.raw_input.as_ref()?;
    FOLDERS.iter().find_map(|name| input.get(name)?.as_str())
}

fn command_of(call: &ToolCall, command_in: CommandIn) -> Option<Command> {
    let Some(input) = call.raw_input.as_deref() else {
        return match (command_in, call.content.as_slice()) {
            _ if call.kind != "execute" => None,
            (CommandIn::Title, _) => Some(Command::of_line(&call.title)),
            (CommandIn::TextAfter(before), [ToolContent::Text(text)]) => {
                text.strip_prefix(before).map(Command::of_line)
            }
            _ => None,
        };
    };
    let list = |value: &serde_json::Value| match value {
        serde_json::Value::Null => Some(Vec::new()),
        value => value.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
    };
    let arguments: Vec<String> = list(input.get("args").unwrap_or(&serde_json::Value::Null))?;
    match input.get("command")? {
        serde_json::Value::String(line) if arguments.is_empty() => Some(Command::of_line(line)),
        serde_json::Value::String(program) => {
            let words = std::iter::once(program).chain(&arguments);
            Some(Command::of_words(&words.map(String::as_str).collect::<Vec<_>>()))
        }
        value => {
            let words = [list(value)?, arguments].concat();
            Some(Command::of_words(&words.iter().map(String::as_str).collect::<Vec<_>>()))
        }
    }
}

/// Everything of a call that says what it would do.
fn whole(call: &ToolCall) -> Option<String> {
    let texts: Vec<&str> = call
        .content
        .iter()
        .filter_map(|content| match content {
            ToolContent::Text(text) => Some(&**text),
            _ => None,
        })
        .collect();
    // Measured before it is written out: arguments may be many megabytes.
    let size = texts.iter().map(|text| text.len()).sum::<usize>() + call.title.len();
    if size > LONGEST_CALL || call.content.len() > texts.len() {
        return None;
    }
    let value = serde_json::json!({
        "kind": call.kind, "title": call.title, "name": call.name, "text": texts, "input": call.raw_input.as_deref(),
    });
    let mut room = Room { bytes: Vec::new() };
    // It fails only when there is no more room.
    serde_json::to_writer(&mut room, &value).ok()?;
    String::from_utf8(room.bytes).ok()
}

/// Takes [`LONGEST_CALL`] bytes and no more.
struct Room {
    bytes: Vec<u8>,
}

impl std::io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > LONGEST_CALL {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The path with `.` and `..` taken away by their names alone.
pub fn normalized(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}
