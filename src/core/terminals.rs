//! `terminal/*`: who may run what, which terminals there are, and who waits for their ends. An edge runs the commands.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::effect::{Effect, ShownTerminal, TerminalJob};
use super::ids::{ChatId, ConnId, OpenId, TerminalId};
use super::message::{Reply, RpcError, TerminalExit, TerminalVerb, TerminalWanted};
use super::state::State;
use super::tool_call::{TerminalReport, TerminalTail, ToolContent};

/// All terminals that an agent may still ask about, or whose commands still run.
#[derive(Debug, Default)]
pub(super) struct Terminals {
    known: BTreeMap<TerminalId, Terminal>,
    last: u64,
}

#[derive(Debug)]
struct Terminal {
    chat: ChatId,
    /// Whose it is; `None` if the user's own.
    conn: Option<ConnId>,
    /// The agent's name for it.
    name: String,
    /// The title of one that the agent runs itself and only reports on.
    reported: Option<String>,
    released: bool,
    /// The last lines on it.
    tail: TerminalTail,
    exit: Option<TerminalExit>,
    /// Requests that wait for the end.
    waiting: Vec<OpenId>,
}

impl Terminal {
    fn new(chat: ChatId, conn: Option<ConnId>, name: String) -> Self {
        let tail = TerminalTail::default();
        Self { chat, conn, name, reported: None, released: false, tail, exit: None, waiting: Vec::new() }
    }
}

impl TerminalId {
    /// The name by which the agent knows it, if it runs here.
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
        let terminal = TerminalId(self.terminals.last);
        let job = TerminalJob { terminal, request: Some(request), run: None, chat, wanted, cwd };
        self.gate_terminal(request, job);
    }

    /// Starts a command that may run.
    pub(super) fn start_terminal(&mut self, job: TerminalJob) {
        let conn = self.chats.get(&job.chat).and_then(|chat| chat.session.conn());
        if let (Some(request), None) = (job.request, conn) {
            self.reply(request, Reply::Error(RpcError::new(RpcError::NOT_FOUND, "The session is gone")));
            return;
        }
        let conn = conn.filter(|_| job.request.is_some());
        self.terminals.known.insert(job.terminal, Terminal::new(job.chat, conn, job.terminal.name()));
        self.effects.push(Effect::StartTerminal(Box::new(job)));
    }

    /// The user wants to run a command, which nobody but they will hear of.
    pub(super) fn run_command(&mut self, run: u64, chat: ChatId, wanted: TerminalWanted, cwd: PathBuf) {
        self.terminals.last += 1;
        let terminal = TerminalId(self.terminals.last);
        self.start_terminal(TerminalJob { terminal, request: None, run: Some(run), chat, wanted, cwd });
    }

    pub(super) fn terminal_started(&mut self, request: Option<OpenId>, id: TerminalId, result: Result<(), String>) {
        match (result, request) {
            // The agent took the request back, or is gone: nobody knows of the terminal.
            (Ok(()), Some(request)) if !self.open.contains(request) => self.release_terminal(id),
            (Ok(()), Some(request)) => self.reply(request, Reply::TerminalCreated(id.name())),
            (Ok(()), None) => {
                if let Some(terminal) = self.terminals.known.get_mut(&id) {
                    terminal.released = true;
                }
            }
            (Err(problem), request) => {
                self.terminals.known.remove(&id);
                if let Some(request) = request {
                    self.reply(request, Reply::Error(RpcError::new(RpcError::INVALID_PARAMS, problem)));
                }
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
        let Some((id, terminal)) = found.filter(|(_, terminal)| {
            let is_its_own = terminal.chat == chat && terminal.conn == Some(conn) && terminal.name == name;
            is_its_own && terminal.reported.is_none() && !terminal.released
        }) else {
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
    pub(super) fn terminal_tail(&mut self, chat_id: ChatId, name: &str, tail: &TerminalTail) {
        // It may be released by now: the card shows its last lines all the same.
        let known = self.terminals.known.values_mut().filter(|known| known.chat == chat_id && known.name == name);
        known.for_each(|terminal| terminal.tail = tail.clone());
        let Some(chat) = self.chats.get_mut(&chat_id) else { return };
        let shows = |content: &ToolContent| matches!(content, ToolContent::Terminal(known, _) if known == name);
        let card = chat.transcript.tools_of_turn().find(|call| call.content.iter().any(shows));
        let Some(tool) = card.map(|call| call.id.clone()) else { return };
        let change = chat.transcript.update_tool(&tool, |call| {
            for content in &mut call.content {
                if let ToolContent::Terminal(known, shown) = content
                    && known == name
                {
                    *shown = tail.clone();
                }
            }
        });
        self.effects.extend(change.map(|change| Effect::Transcript(chat_id, change)));
    }

    /// Fills in what is on the terminals that a call begins to show.
    pub(super) fn fill_tails(&self, chat: ChatId, content: &mut [ToolContent]) {
        for item in content {
            if let ToolContent::Terminal(name, tail) = item
                && let Some(id) = self.terminal_named(chat, name)
            {
                *tail = self.terminals.known[&id].tail.clone();
            }
        }
    }

    /// The terminal that an agent calls by this name.
    pub(super) fn terminal_named(&self, chat: ChatId, name: &str) -> Option<TerminalId> {
        let is_it = |terminal: &Terminal| terminal.chat == chat && terminal.name == name;
        self.terminals.known.iter().find(|(_, terminal)| is_it(terminal)).map(|(id, _)| *id)
    }

    /// The agent reports on terminals that it runs itself, as part of what it says of a call.
    pub(super) fn terminals_reported(&mut self, chat: ChatId, tool: &str, reports: Vec<TerminalReport>) {
        let Some(known) = self.chats.get(&chat) else { return };
        let Some(conn) = known.session.conn() else { return };
        let call = known.transcript.tool(tool);
        let title = call.map(|call| call.command().unwrap_or_else(|| call.title.clone())).unwrap_or_default();
        for report in reports {
            let id = self.terminal_named(chat, &report.name).unwrap_or_else(|| {
                self.terminals.last += 1;
                let mut terminal = Terminal::new(chat, Some(conn), report.name.clone());
                terminal.reported = Some(String::new());
                self.terminals.known.insert(TerminalId(self.terminals.last), terminal);
                TerminalId(self.terminals.last)
            });
            let Some(terminal) = self.terminals.known.get_mut(&id) else { continue };
            let Some(known) = terminal.reported.as_mut().filter(|_| terminal.exit.is_none()) else { continue };
            if *known != title {
                known.clone_from(&title);
                let (name, title) = (report.name, title.clone());
                self.effects.push(Effect::ShowTerminal(ShownTerminal { terminal: id, chat, name, title }));
            }
            self.effects.extend(report.output.map(|output| Effect::FeedTerminal(id, output)));
            if let Some(exit) = report.exit {
                terminal.exit = Some(exit.clone());
                self.effects.push(Effect::EndTerminal(id, exit));
            }
        }
    }

    /// A call is over: so are the terminals of the agent's own that it shows, whatever became of them.
    pub(super) fn end_reported_terminals(&mut self, chat: ChatId, tool: &str) {
        let Some(call) = self.chats.get(&chat).and_then(|chat| chat.transcript.tool(tool)) else { return };
        for content in &call.content {
            let ToolContent::Terminal(name, _) = content else { continue };
            let shown = |terminal: &&mut Terminal| terminal.chat == chat && terminal.name == *name;
            let running = |terminal: &Terminal| terminal.reported.is_some() && terminal.exit.is_none();
            for (id, terminal) in &mut self.terminals.known {
                if shown(&terminal) && running(terminal) {
                    let exit = TerminalExit { code: None, signal: None };
                    terminal.exit = Some(exit.clone());
                    self.effects.push(Effect::EndTerminal(*id, exit));
                }
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
        if terminal.reported.is_some() {
            if terminal.exit.is_none() {
                self.effects.push(Effect::EndTerminal(id, TerminalExit { code: None, signal: None }));
            }
            self.terminals.known.remove(&id);
            return;
        }
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
            .filter(|(_, terminal)| terminal.conn.is_some_and(|conn| is_gone(terminal.chat, conn)))
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            self.release_terminal(id);
        }
    }
}
