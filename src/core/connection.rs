//! One run of an agent's process: start, handshake, routing of what it says, and its end.

use std::collections::HashMap;

use super::config::duration_text;
use super::effect::{Effect, MessageLevel, Show, UserEvent};
use super::event::{Departure, TimerKey};
use super::ids::{CallId, ChatId, ConnId, SessionId};
use super::message::{AgentCall, AgentMessage, AgentRequest, Answer, Reply, RpcError, SessionCapabilities};
use super::prompt::PromptCapabilities;
use super::quirks::Quirks;
use super::state::{Chat, Connection, PendingCall, Phase, Session, State};
use super::transcript::Severity;
use super::updates::MAX_EARLY;
use crate::agents::quirks_of;

/// The protocol version that we speak.
const PROTOCOL_VERSION: u64 = 1;

impl State {
    /// The running connection of that agent, or a new one.
    pub(super) fn connect(&mut self, agent: &str, cwd: &std::path::Path) -> Result<ConnId, String> {
        let running = self
            .connections
            .iter()
            .find(|(_, connection)| connection.agent == agent && connection.phase != Phase::Stopping);
        if let Some((conn, _)) = running {
            return Ok(*conn);
        }
        let Some(spec) = self.config.agents.get(agent).cloned() else {
            let known: Vec<&str> = self.config.agents.keys().map(String::as_str).collect();
            return Err(format!(
                "There is no agent named {agent:?}; configured or found are: {}.",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            ));
        };
        let conn = self.next_conn();
        self.connections.insert(
            conn,
            Connection {
                agent: agent.to_owned(),
                phase: Phase::Spawning,
                calls: HashMap::new(),
                sessions: HashMap::new(),
                takes: PromptCapabilities::default(),
                can: SessionCapabilities::default(),
                sign_in: Vec::new(),
                quirks: Quirks::NONE,
                failed_chats: Vec::new(),
                early: Vec::new(),
                early_room: MAX_EARLY,
            },
        );
        self.effects.push(Effect::Spawn { conn, spec, cwd: cwd.to_owned() });
        Ok(conn)
    }

    /// The process runs: shake hands.
    pub(super) fn spawned(&mut self, conn: ConnId) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        if connection.phase != Phase::Spawning {
            return;
        }
        connection.phase = Phase::Initializing;
        self.call(conn, PendingCall::Initialize, AgentCall::Initialize);
        let due = self.now.plus(self.config.timeouts.initialize);
        self.effects.push(Effect::SetTimer(TimerKey::Initialize(conn), due));
        self.touch_chats_of(conn);
    }

    /// Something came over a connection.
    pub(super) fn agent(&mut self, conn: ConnId, message: AgentMessage) {
        match message {
            AgentMessage::Update { session, update } => self.update(conn, session, update),
            AgentMessage::Request { token, request } => self.request(conn, token, request),
            AgentMessage::Response { call, result } => self.response(conn, call, result),
            AgentMessage::CancelRequest { raw_id } => {
                if let Some(request) = self.open.find(conn, &raw_id) {
                    self.withdraw_permission(request);
                    let error = RpcError::new(RpcError::CANCELLED, "Cancelled on request");
                    self.reply(request, Reply::Error(error));
                    self.start_file_work();
                }
            }
            AgentMessage::ElicitationCompleted(id) => self.elicitation_completed(conn, id),
            AgentMessage::Unusable(problem) => {
                for chat in self.chats_of(conn) {
                    self.note(chat, Severity::Warning, problem.clone());
                }
            }
        }
    }

    fn request(&mut self, conn: ConnId, token: super::requests::ReplyToken, request: AgentRequest) {
        let session = request.session().cloned();
        let chat = session.as_ref().and_then(|session| self.chat_asking(conn, session));
        let id = self.open.open(token, chat);
        match (request, chat) {
            (AgentRequest::Unknown { method }, _) => {
                let error = RpcError::new(RpcError::METHOD_NOT_FOUND, format!("Method not found: {method}"));
                self.reply(id, Reply::Error(error));
            }
            (AgentRequest::Invalid { problem }, _) => {
                self.reply(id, Reply::Error(RpcError::new(RpcError::INVALID_PARAMS, problem)));
            }
            (AgentRequest::TooLong { limit }, _) => {
                let problem = format!("The message is longer than {limit} bytes, the most that is read");
                self.reply(id, Reply::Error(RpcError::new(RpcError::INVALID_REQUEST, problem)));
            }
            (AgentRequest::Batched, _) => {
                let problem = "Arrays of messages are no part of ACP: send each message as a line of its own";
                self.reply(id, Reply::Error(RpcError::new(RpcError::INVALID_REQUEST, problem)));
            }
            (AgentRequest::Permission { .. }, None) => self.reply(id, Reply::Cancelled),
            (AgentRequest::Elicit(asked), chat) => self.elicit(conn, id, chat, asked),
            (
                AgentRequest::ReadFile { session, .. }
                | AgentRequest::WriteFile { session, .. }
                | AgentRequest::CreateTerminal { session, .. }
                | AgentRequest::Terminal { session, .. },
                None,
            ) => {
                let error = RpcError::new(RpcError::NOT_FOUND, format!("There is no session {session}"));
                self.reply(id, Reply::Error(error));
            }
            (AgentRequest::Permission { tool, options, .. }, Some(chat)) => {
                if self.is_cancelling(chat) {
                    self.update_tool(chat, tool, false);
                    self.reply(id, Reply::Cancelled);
                } else {
                    self.ask_permission(chat, id, tool, options);
                }
            }
            (AgentRequest::ReadFile { session, path, line, limit }, Some(chat)) => {
                self.read_file(chat, id, (conn, session), path, line, limit);
            }
            (AgentRequest::WriteFile { session, path, content }, Some(chat)) => {
                self.write_file(chat, id, (conn, session), path, content);
            }
            (AgentRequest::CreateTerminal { wanted, .. }, Some(chat)) => self.create_terminal(chat, id, wanted),
            (AgentRequest::Terminal { id: terminal, verb, .. }, Some(chat)) => {
                self.about_terminal(chat, conn, id, &terminal, verb);
            }
        }
    }

    fn response(&mut self, conn: ConnId, call: CallId, result: Result<Answer, RpcError>) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        // An answer that nobody waits for any more: to a call of a turn that was ended by force, or a second one.
        let Some(purpose) = connection.calls.remove(&call) else { return };
        match (purpose, result) {
            (
                PendingCall::Initialize,
                Ok(Answer::Initialized { protocol_version, agent_name, takes, can, sign_in }),
            ) => {
                connection.sign_in = sign_in;
                connection.takes = takes;
                connection.can = can;
                connection.quirks = agent_name.as_deref().map(quirks_of).unwrap_or_default();
                self.initialized(conn, protocol_version);
            }
            (PendingCall::NewSession(chat), Ok(Answer::SessionCreated { session, chosen })) => {
                self.session_created((conn, call), chat, &session, chosen);
            }
            (PendingCall::OpenSession(chat, _), Ok(Answer::SessionOpened { chosen })) => {
                self.session_opened((conn, call), chat, chosen);
            }
            (PendingCall::List(question), Ok(Answer::Sessions { sessions, next })) => {
                self.listed(question, sessions, next);
            }
            (PendingCall::Delete, result) => self.deleted(result.map(drop)),
            (PendingCall::Close, _) => {}
            (PendingCall::Authenticate(chat), result) => self.authenticated(chat, result.map(drop)),
            (PendingCall::Logout(chat), result) => self.signed_out(chat, result.map(drop)),
            (PendingCall::SetOption(chat, option, value), Ok(Answer::OptionSet(all))) => {
                self.option_is_set(chat, &option, &value, all);
            }
            (PendingCall::SetOption(chat, option, value), Ok(_)) => self.option_is_set(chat, &option, &value, None),
            (PendingCall::SetOption(chat, option, _), Err(error)) => self.option_is_not_set(chat, &option, &error),
            (PendingCall::Prompt(chat, turn), Ok(Answer::TurnEnded { stop_reason, tokens })) => {
                self.turn_ended(chat, turn, &stop_reason, tokens);
            }
            (PendingCall::Initialize, result) => {
                let problem = unexpected(result);
                self.fail_connection(conn, &format!("refused `initialize`: {problem}"));
            }
            (PendingCall::NewSession(chat), result) => self.session_refused(conn, call, chat, &unexpected(result)),
            (PendingCall::OpenSession(chat, method), result) => {
                self.reopen_refused((conn, call), chat, method, &unexpected(result));
            }
            (PendingCall::List(question), result) => self.list_refused(question, &unexpected(result)),
            (PendingCall::Prompt(chat, turn), result) => self.prompt_failed(chat, turn, &unexpected(result)),
        }
    }

    fn initialized(&mut self, conn: ConnId, protocol_version: u64) {
        self.effects.push(Effect::ClearTimer(TimerKey::Initialize(conn)));
        if protocol_version != PROTOCOL_VERSION {
            self.fail_connection(
                conn,
                &format!(
                    "speaks version {protocol_version} of the Agent Client Protocol and this plugin speaks version \
                     {PROTOCOL_VERSION}; update the older of the two"
                ),
            );
            return;
        }
        if let Some(connection) = self.connections.get_mut(&conn)
            && connection.phase == Phase::Initializing
        {
            connection.phase = Phase::Ready;
            for chat in self.chats_of(conn) {
                self.create_session(chat, conn);
            }
            self.begin_lists(conn);
        }
    }

    pub(super) fn initialize_is_late(&mut self, conn: ConnId) {
        let waiting = self.connections.get(&conn).is_some_and(|connection| connection.phase == Phase::Initializing);
        if waiting {
            let limit = duration_text(self.config.timeouts.initialize);
            self.fail_connection(conn, &format!("did not answer `initialize` within {limit}"));
        }
    }

    /// Gives a connection up: its chats fail with this reason, its process is ended.
    fn fail_connection(&mut self, conn: ConnId, problem: &str) {
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let reason = format!("{} {problem}. `:AgentChat restart` tries again.", connection.agent);
        self.stop_connection(conn);
        self.end_lists(conn, &reason);
        let chats = self.chats_of(conn);
        for &chat in &chats {
            self.fail_chat(chat, reason.clone());
        }
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.failed_chats = chats;
        }
    }

    /// Ends a connection on purpose; its end is no news then.
    pub(super) fn stop_connection(&mut self, conn: ConnId) {
        if let Some(connection) = self.connections.get_mut(&conn)
            && connection.phase != Phase::Stopping
        {
            connection.phase = Phase::Stopping;
            self.effects.push(Effect::ClearTimer(TimerKey::Initialize(conn)));
            self.effects.push(Effect::Stop(conn));
        }
    }

    /// The process is no more.
    pub(super) fn gone(&mut self, conn: ConnId, departure: &Departure) {
        let Some(connection) = self.connections.remove(&conn) else { return };
        self.effects.push(Effect::ClearTimer(TimerKey::Initialize(conn)));
        self.release_terminals(|_, of| of == conn);
        for request in self.open.drop_connection(conn) {
            self.forget_file_work(request);
            self.terminal_work.remove(&request);
            self.withdraw_permission(request);
            self.forget_elicitation(request);
        }
        let agent = connection.agent;
        self.effects.push(Effect::ClearTimer(TimerKey::Unused(conn)));
        if connection.phase == Phase::Stopping {
            self.end_lists(conn, &format!("{agent} was stopped."));
            if let Departure::Ended { stderr, .. } = departure
                && !stderr.is_empty()
            {
                for chat in connection.failed_chats {
                    let text = format!("Last words of that {agent} on standard error:\n{}", stderr.join("\n"));
                    self.note(chat, Severity::Error, text);
                }
            }
            return;
        }
        let (reason, stderr) = match departure {
            Departure::NotStarted(problem) => {
                (format!("{agent} could not be started: {problem} `:AgentChat restart` tries again."), &[][..])
            }
            Departure::Ended { how, stderr } => {
                (format!("{agent} ended: {how}. `:AgentChat restart` starts it again."), stderr.as_slice())
            }
        };
        let shown = if stderr.is_empty() {
            reason.clone()
        } else {
            format!("{reason}\nIts last words on standard error:\n{}", stderr.join("\n"))
        };
        let is_list_alone = self.chats_of(conn).is_empty() && !self.lists_of(conn).is_empty();
        self.end_lists(conn, &reason);
        for chat in self.chats_of(conn) {
            self.end_turn(chat, "agent_gone");
            self.show_kept(chat);
            self.note(chat, Severity::Error, shown.clone());
            self.emit(Show::UserEvent(UserEvent::Error(chat, reason.clone())));
            self.set_failed(chat, reason.clone());
        }
        if !is_list_alone {
            self.emit(Show::Message(MessageLevel::Error, reason));
        }
    }

    /// The chats whose session is, or will be, on this connection.
    pub(super) fn chats_of(&self, conn: ConnId) -> Vec<ChatId> {
        let is_of = |chat: &Chat| {
            let waits = chat.sign_in.as_ref().is_some_and(|sign_in| sign_in.conn == conn);
            waits || chat.session.conn() == Some(conn)
        };
        self.chats.iter().filter(|(_, chat)| is_of(chat)).map(|(id, _)| *id).collect()
    }

    pub(super) fn touch_chats_of(&mut self, conn: ConnId) {
        for chat in self.chats_of(conn) {
            self.touch(chat);
        }
    }

    pub(super) fn chat_of(&self, conn: ConnId, session: &SessionId) -> Option<ChatId> {
        self.connections.get(&conn)?.sessions.get(session).copied()
    }

    /// The chat that a request comes from. Some agents ask before they have announced the session by answering
    /// `session/new`; where only one chat waits for that answer, it is the one.
    fn chat_asking(&self, conn: ConnId, session: &SessionId) -> Option<ChatId> {
        self.chat_of(conn, session).or_else(|| {
            let is_waiting = |chat: &Chat| matches!(chat.session, Session::Creating(of, _) if of == conn);
            let mut waiting = self.chats.iter().filter(|(_, chat)| is_waiting(chat));
            match (waiting.next(), waiting.next()) {
                (Some((chat, _)), None) => Some(*chat),
                _ => None,
            }
        })
    }

    pub(super) fn is_cancelling(&self, chat: ChatId) -> bool {
        self.chats.get(&chat).and_then(|chat| chat.turn.as_ref()).is_some_and(|turn| turn.cancelling)
    }

    /// Neovim goes away: nobody stays without an answer.
    pub(super) fn shut_down(&mut self) {
        let chats: Vec<ChatId> = self.chats.keys().copied().collect();
        for chat in chats {
            self.cancel_permissions(chat);
            self.cancel_elicitations(chat);
        }
        for request in self.open.all() {
            let error = RpcError::new(RpcError::CANCELLED, "Neovim is being closed");
            self.reply(request, Reply::Error(error));
        }
        let connections: Vec<ConnId> = self.connections.keys().copied().collect();
        for conn in connections {
            self.stop_connection(conn);
        }
    }
}

fn unexpected(result: Result<Answer, RpcError>) -> RpcError {
    match result {
        Err(error) => error,
        Ok(answer) => RpcError { code: None, message: format!("an answer of another kind came: {answer:?}") },
    }
}
