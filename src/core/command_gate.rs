//! Whether a command that an agent sends without asking may run.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::ids::{ChatId, TurnId};
use super::message::TerminalWanted;
use super::state::State;
use super::tool_call::ToolCall;

/// Commands that were allowed and not run yet; when there are more, the oldest are forgotten, and asked about again.
const MAX_ALLOWED: usize = 100;

/// A command, so that only the very same one is equal: `git "a b"` is not `git a b`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandText {
    /// A program and its arguments, at least one.
    Words(Vec<String>),
    /// A program alone, or a whole line for a shell.
    Line(String),
}

/// What becomes of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// The user is asked.
    Ask,
}

/// Commands that the user allowed when the agent asked about a call, each for once.
#[derive(Debug, Default)]
pub(super) struct AllowedCommands(VecDeque<Allowed>);

#[derive(Debug, PartialEq, Eq)]
struct Allowed {
    turn: TurnId,
    command: CommandText,
    cwd: PathBuf,
}

impl CommandText {
    /// What a request for a terminal would run.
    pub fn of_terminal(wanted: &TerminalWanted) -> Self {
        Self::new(&wanted.command, &wanted.args)
    }

    /// The command that the raw arguments of a call name; `None` if any part of it is not plain text.
    pub fn of_call(call: &ToolCall) -> Option<Self> {
        let input = call.raw_input.as_ref()?;
        let command = input.get("command")?;
        let args = match input.get("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(args) => words(args)?,
        };
        match command {
            Value::String(command) => Some(Self::new(command, &args)),
            Value::Array(_) => {
                let mut words = words(command)?;
                words.extend(args);
                let (program, args) = words.split_first()?;
                Some(Self::new(program, args))
            }
            _ => None,
        }
    }

    fn new(command: &str, args: &[String]) -> Self {
        if args.is_empty() {
            return Self::Line(command.to_owned());
        }
        Self::Words(std::iter::once(command).chain(args.iter().map(String::as_str)).map(str::to_owned).collect())
    }
}

fn words(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Where a call says that its command runs: `None` if that is no text.
fn folder(call: &ToolCall, own: &Path) -> Option<PathBuf> {
    let input = call.raw_input.as_ref()?;
    let named = ["cwd", "workdir", "working_directory", "directory"].iter().find_map(|name| input.get(name));
    match named {
        None | Some(Value::Null) => Some(own.to_owned()),
        Some(folder) => Some(own.join(folder.as_str()?)),
    }
}

impl State {
    /// Whether this command may run in this folder without the user being asked: only if they allowed the very same one in
    /// this turn, which counts once.
    pub(super) fn gate_command(&mut self, chat: ChatId, command: &CommandText, cwd: &Path) -> Verdict {
        let Some(turn) = self.turn_of(chat) else { return Verdict::Ask };
        let allowed = &mut self.allowed_commands.0;
        let found = allowed.iter().position(|one| one.turn == turn && one.command == *command && one.cwd == cwd);
        if found.is_some_and(|at| allowed.remove(at).is_some()) { Verdict::Allow } else { Verdict::Ask }
    }

    /// The user allowed a call: the command that it names may run in this turn, once.
    pub(super) fn allow_command_of(&mut self, chat: ChatId, tool: &str) {
        let Some(turn) = self.turn_of(chat) else { return };
        let Some(known) = self.chats.get(&chat) else { return };
        let Some(call) = known.transcript.tool(tool).filter(|call| call.kind == "execute") else { return };
        let (Some(command), Some(cwd)) = (CommandText::of_call(call), folder(call, &known.cwd)) else { return };
        let allowed = &mut self.allowed_commands.0;
        allowed.push_back(Allowed { turn, command, cwd });
        if allowed.len() > MAX_ALLOWED {
            allowed.pop_front();
        }
    }
}
