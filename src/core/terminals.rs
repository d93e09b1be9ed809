//! `terminal/*`: who may run what, which terminals there are, and who waits for their ends. An edge runs the commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::effect::{Effect, TerminalJob};
use super::ids::{ChatId, ConnId, OpenId, TerminalId};
use super::message::{Reply, RpcError, TerminalExit, TerminalVerb, TerminalWanted};
use super::state::State;
use super::tool_call::ToolContent;

/// All terminals that an agent may still ask about, or whose commands still run.
#[derive(Debug, Default)]
pub(super) struct Terminals {
    known: BTreeMap<TerminalId, Terminal>,
    last: u64,
}

#[derive(Debug)]
struct Terminal {
    chat: ChatId,
    conn: ConnId,
    released: bool,
    /// The last lines on it.
    tail: Arc<str>,
    exit: Option<TerminalExit>,
    /// Requests that wait for the end.
    waiting: Vec<OpenId>,
}

impl TerminalId {
    /// The name by which the agent knows it.
    pub fn name(self) -> String {
        format!("terminal-{self}")
    }

    fn of_name(name: &str) -> Option<Self> {
        name.strip_prefix("terminal-")?.parse().ok().map(Self)
    }
}

impl TerminalWanted {
    /// The command and its arguments as one line, to be read.
    pub fn line(&self) -> String {
        std::iter::once(&self.command).chain(&self.args).map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

impl State {
    pub(super) fn create_terminal(&mut self, chat: ChatId, request: OpenId, wanted: TerminalWanted) {
        let refused = |code, text: &str| Reply::Error(RpcError::new(code, text));
        let own = self.chats.get(&chat).map(|chat| chat.cwd.clone()).unwrap_or_default();
        let cwd = wanted.cwd.clone().unwrap_or_else(|| own.clone());
        if !cwd.is_absolute() {
            self.reply(request, refused(RpcError::INVALID_PARAMS, "cwd must be an absolute path"));
            return;
        }
        if self.is_cancelling(chat) {
            self.reply(request, refused(RpcError::CANCELLED, "The turn is being cancelled"));
            return;
        }
        self.terminals.last += 1;
        let job = TerminalJob { terminal: TerminalId(self.terminals.last), request, chat, wanted, cwd };
        self.gate_terminal(job);
    }

    /// Starts a command that may run.
    pub(super) fn start_terminal(&mut self, job: TerminalJob) {
        let Some(conn) = self.chats.get(&job.chat).and_then(|chat| chat.session.conn()) else {
            self.reply(job.request, Reply::Error(RpcError::new(RpcError::NOT_FOUND, "The session is gone")));
            return;
        };
        let terminal =
            Terminal { chat: job.chat, conn, released: false, tail: "".into(), exit: None, waiting: Vec::new() };
        self.terminals.known.insert(job.terminal, terminal);
        self.effects.push(Effect::StartTerminal(Box::new(job)));
    }

    pub(super) fn terminal_started(&mut self, request: OpenId, id: TerminalId, result: Result<(), String>) {
        match result {
            // The agent took the request back, or is gone: nobody knows of the terminal.
            Ok(()) if !self.open.contains(request) => self.release_terminal(id),
            Ok(()) => self.reply(request, Reply::TerminalCreated(id.name())),
            Err(problem) => {
                self.terminals.known.remove(&id);
                self.reply(request, Reply::Error(RpcError::new(RpcError::INVALID_PARAMS, problem)));
            }
        }
    }

    /// The agent wants something of a terminal.
    pub(super) fn about_terminal(
        &mut self,
        chat: ChatId,
        conn: ConnId,
        request: OpenId,
        name: &str,
        verb: TerminalVerb,
    ) {
        let found = TerminalId::of_name(name).and_then(|id| Some((id, self.terminals.known.get_mut(&id)?)));
        let Some((id, terminal)) =
            found.filter(|(_, terminal)| terminal.chat == chat && terminal.conn == conn && !terminal.released)
        else {
            let error = RpcError::new(RpcError::NOT_FOUND, format!("There is no terminal {name}"));
            self.reply(request, Reply::Error(error));
            return;
        };
        match (verb, terminal.exit.clone()) {
            (TerminalVerb::Output, _) => self.effects.push(Effect::ReadTerminal(request, id)),
            (TerminalVerb::WaitForExit, Some(exit)) => self.reply(request, Reply::TerminalExited(exit)),
            (TerminalVerb::WaitForExit, None) => terminal.waiting.push(request),
            (TerminalVerb::Kill, _) => {
                self.effects.push(Effect::KillTerminal(id));
                self.reply(request, Reply::Done);
            }
            (TerminalVerb::Release, _) => {
                self.release_terminal(id);
                self.reply(request, Reply::Done);
            }
        }
    }

    pub(super) fn terminal_read(&mut self, request: OpenId, id: TerminalId, text: String, truncated: bool) {
        let exit = self.terminals.known.get(&id).and_then(|terminal| terminal.exit.clone());
        self.reply(request, Reply::TerminalOutput(text, truncated, exit));
    }

    pub(super) fn terminal_exited(&mut self, id: TerminalId, exit: &TerminalExit) {
        let Some(terminal) = self.terminals.known.get_mut(&id) else { return };
        terminal.exit = Some(exit.clone());
        let is_over = terminal.released;
        for request in std::mem::take(&mut terminal.waiting) {
            self.reply(request, Reply::TerminalExited(exit.clone()));
        }
        if is_over {
            self.terminals.known.remove(&id);
        }
    }

    /// The cards that show a terminal show its last lines.
    pub(super) fn terminal_tail(&mut self, id: TerminalId, tail: &Arc<str>) {
        if let Some(terminal) = self.terminals.known.get_mut(&id) {
            terminal.tail = tail.clone();
        }
        // It may be released by now: the card shows its last lines all the same.
        let name = id.name();
        let shows = |content: &ToolContent| matches!(content, ToolContent::Terminal(known, _) if *known == name);
        let card = self.chats.iter_mut().find_map(|(&chat_id, chat)| {
            let tool = chat.transcript.tools_of_turn().find(|call| call.content.iter().any(shows))?.id.clone();
            Some((chat_id, chat, tool))
        });
        let Some((chat_id, chat, tool)) = card else { return };
        let change = chat.transcript.update_tool(&tool, |call| {
            for content in &mut call.content {
                if let ToolContent::Terminal(known, shown) = content
                    && *known == name
                {
                    *shown = tail.clone();
                }
            }
        });
        self.effects.extend(change.map(|change| Effect::Transcript(chat_id, change)));
    }

    /// Fills in what is on the terminals that a call begins to show.
    pub(super) fn fill_tails(&self, content: &mut [ToolContent]) {
        for item in content {
            if let ToolContent::Terminal(name, tail) = item
                && let Some(terminal) = TerminalId::of_name(name).and_then(|id| self.terminals.known.get(&id))
            {
                *tail = terminal.tail.clone();
            }
        }
    }

    /// The user wants a command to end.
    pub(super) fn kill_terminal(&mut self, id: TerminalId) {
        self.effects.push(Effect::KillTerminal(id));
    }

    fn release_terminal(&mut self, id: TerminalId) {
        let Some(terminal) = self.terminals.known.get_mut(&id) else { return };
        terminal.released = true;
        if terminal.exit.is_some() {
            self.terminals.known.remove(&id);
        }
        self.effects.push(Effect::KillTerminal(id));
        self.effects.push(Effect::ReleaseTerminal(id));
    }

    /// Nobody will ask about these terminals any more.
    pub(super) fn release_terminals(&mut self, is_gone: impl Fn(ChatId, ConnId) -> bool) {
        let gone: Vec<TerminalId> = self
            .terminals
            .known
            .iter()
            .filter(|(_, terminal)| is_gone(terminal.chat, terminal.conn))
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.release_terminal(id);
        }
    }
}
