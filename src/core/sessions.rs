//! Chats and their sessions: opened, created, failed, restarted, closed.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::config::duration_text;
use super::effect::{Effect, MessageLevel, Show, UserEvent};
use super::event::{KnownSession, TimerKey};
use super::ids::{CallId, ChatId, ConnId, SessionId};
use super::message::{AgentCall, AgentNotice, Choices, Reply, RpcError, Update};
use super::reopen::{Known, NewestPrompt, Origin, Replay};
use super::state::{Chat, PendingCall, Phase, Session, State};
use super::transcript::Severity;
use super::updates::MAX_EARLY;

impl State {
    pub(super) fn open_chat(&mut self, id: ChatId, agent: Option<String>, cwd: PathBuf, known: Option<KnownSession>) {
        if self.chats.contains_key(&id) {
            return;
        }
        let agent = agent.unwrap_or_else(|| self.config.default_agent.clone());
        let mut chat = Chat::new(agent.clone(), cwd);
        if let Some(known) = known {
            chat.title.clone_from(&known.title);
            chat.origin = Origin::Known(Box::new(Known::wanted(known.session.clone(), known.is_fork)));
            self.effects.push(Effect::Recall(id, agent, known));
        }
        self.chats.insert(id, chat);
        self.start_session(id);
    }

    /// Connects the chat and asks for a session as soon as that is possible.
    pub(super) fn start_session(&mut self, id: ChatId) {
        self.touch(id);
        let Some(chat) = self.chats.get(&id) else { return };
        let (agent, cwd) = (chat.agent.clone(), chat.cwd.clone());
        let conn = match self.connect(&agent, &cwd) {
            Ok(conn) => conn,
            Err(problem) => {
                self.fail_chat(id, problem);
                return;
            }
        };
        if let Some(chat) = self.chats.get_mut(&id) {
            chat.session = Session::Waiting(conn);
        }
        // While the agent starts: the first turn should find it done.
        self.effects.push(Effect::Survey(cwd));
        if self.connections.get(&conn).is_some_and(|connection| connection.phase == Phase::Ready) {
            self.create_session(id, conn);
        }
    }

    pub(super) fn create_session(&mut self, id: ChatId, conn: ConnId) {
        self.touch(id);
        if self.reopen(id, conn) {
            return;
        }
        let setup = self.setup(id, conn);
        self.await_session(id, conn, PendingCall::NewSession(id), AgentCall::NewSession(setup));
    }

    /// Asks for a session in one way or another.
    pub(super) fn await_session(&mut self, id: ChatId, conn: ConnId, purpose: PendingCall, call: AgentCall) {
        let call = self.call(conn, purpose, call);
        if let Some(chat) = self.chats.get_mut(&id) {
            chat.session = Session::Creating(conn, call);
        }
        let due = self.now.plus(self.config.timeouts.session_new);
        self.effects.push(Effect::SetTimer(TimerKey::NewSession(id), due));
    }

    pub(super) fn session_created(
        &mut self,
        (conn, call): (ConnId, CallId),
        id: ChatId,
        session: &SessionId,
        chosen: Choices,
    ) {
        // The start was cancelled, or the chat closed, while the agent worked on it.
        let wanted = self.chats.get(&id).is_some_and(|chat| chat.session == Session::Creating(conn, call));
        let Some(connection) = self.connections.get_mut(&conn) else { return };
        let (early, other): (Vec<(SessionId, Update)>, Vec<_>) =
            std::mem::take(&mut connection.early).into_iter().partition(|(of, _)| of == session);
        connection.early = other;
        if connection.early.is_empty() {
            connection.early_room = MAX_EARLY;
        }
        if !wanted {
            return;
        }
        let can = connection.can;
        connection.sessions.insert(session.clone(), id);
        self.effects.push(Effect::ClearTimer(TimerKey::NewSession(id)));
        if let Some(chat) = self.chats.get_mut(&id) {
            chat.session = Session::Ready(conn, session.clone());
            chat.can = can;
            (chat.mode, chat.model) = (None, None);
            chat.sign_in = None;
            chat.transcript.begin_session();
            chat.tokens = 0;
            // Only a copy of a session has an origin left.
            if let Origin::Known(known) = std::mem::take(&mut chat.origin) {
                self.restore(id, *known);
            }
        }
        self.keep(id, session, None);
        self.emit(Show::Commands(id, Vec::new()));
        self.take_choices(id, chosen);
        self.session_is_ready(id, session);
        for (session, update) in early {
            self.update(conn, session, update);
        }
        self.tell_what_was_dropped(id, conn);
        self.set_defaults(conn, id);
        self.send_again(id);
        self.send_next_prompt(id);
    }

    pub(super) fn session_refused(&mut self, conn: ConnId, call: CallId, id: ChatId, error: &RpcError) {
        let wanted = self.chats.get(&id).is_some_and(|chat| chat.session == Session::Creating(conn, call));
        if wanted && !self.session_wants_sign_in(id, conn, error) {
            let hint = sign_in_hint(error);
            self.fail_session(id, &format!("could not create a session: {error}.{hint}"));
        }
    }

    pub(super) fn new_session_is_late(&mut self, id: ChatId) {
        let Some(Session::Creating(conn, call)) = self.chats.get(&id).map(|chat| chat.session.clone()) else { return };
        let purpose = self.connections.get(&conn).and_then(|connection| connection.calls.get(&call));
        let method = match purpose {
            Some(PendingCall::OpenSession(_, method)) => method,
            _ => "session/new",
        };
        let limit = duration_text(self.config.timeouts.session_new);
        self.fail_session(id, &format!("did not answer `{method}` within {limit}."));
    }

    pub(super) fn fail_session(&mut self, id: ChatId, problem: &str) {
        if let Some(chat) = self.chats.get(&id) {
            let reason = format!("{} {problem} `:AgentChat restart` tries again.", chat.agent);
            let conn = chat.session.conn();
            self.fail_chat(id, reason);
            // A process that serves nobody else is of no use any more, and the next try needs a new one.
            if let Some(conn) = conn
                && self.chats_of(conn).is_empty()
            {
                if let Some(connection) = self.connections.get_mut(&conn) {
                    connection.failed_chats.push(id);
                }
                self.stop_connection(conn);
            }
        }
    }

    /// The chat cannot go on: say so in the chat, in the messages, to scripts.
    pub(super) fn fail_chat(&mut self, id: ChatId, reason: String) {
        self.end_turn(id, "failed");
        self.show_kept(id);
        self.note(id, Severity::Error, reason.clone());
        self.emit(Show::UserEvent(UserEvent::Error(id, reason.clone())));
        self.emit(Show::Message(MessageLevel::Error, reason.clone()));
        self.set_failed(id, reason);
    }

    pub(super) fn set_failed(&mut self, id: ChatId, reason: String) {
        self.effects.push(Effect::ClearTimer(TimerKey::NewSession(id)));
        self.leave_session(id);
        if let Some(chat) = self.chats.get_mut(&id) {
            chat.session = Session::Failed(reason);
        }
        self.touch(id);
    }

    /// Answers what the session's agent waits for, and forgets that the chat had this session.
    pub(super) fn leave_session(&mut self, id: ChatId) {
        self.cancel_permissions(id);
        self.cancel_elicitations(id);
        for request in self.open.of_chat(id) {
            let error = RpcError::new(RpcError::CANCELLED, "The session was closed");
            self.reply(request, Reply::Error(error));
        }
        let Some(chat) = self.chats.get_mut(&id) else { return };
        chat.replay = Replay::None;
        let (conn, session) = match std::mem::replace(&mut chat.session, Session::None) {
            Session::Ready(conn, session) => (conn, session),
            Session::Creating(conn, call) => {
                self.give_up(conn, |at, _| at == call);
                // One that was being opened has a name already.
                if let Some(connection) = self.connections.get_mut(&conn) {
                    connection.sessions.retain(|_, of| *of != id);
                }
                return;
            }
            _ => return,
        };
        chat.continue_later(&session);
        // An agent that knows only one session gives every chat the same id; it is the newest chat's.
        if let Some(connection) = self.connections.get_mut(&conn)
            && connection.sessions.get(&session) == Some(&id)
        {
            connection.sessions.remove(&session);
            self.effects.push(Effect::ForgetSession(conn, session));
        }
        self.release_terminals(|of, _| of == id);
    }

    /// Nobody waits for the answers to these calls any more: the agent need not work on them. An answer that comes all the
    /// same is still understood.
    pub(super) fn give_up(&mut self, conn: ConnId, is_meant: impl Fn(CallId, &PendingCall) -> bool) {
        let Some(connection) = self.connections.get(&conn).filter(|connection| connection.phase == Phase::Ready) else {
            return;
        };
        let meant = connection.calls.iter().filter(|(call, purpose)| is_meant(**call, purpose));
        for call in meant.map(|(call, _)| *call).collect::<Vec<_>>() {
            self.effects.push(Effect::Notify(conn, AgentNotice::CancelRequest { call }));
        }
    }

    /// Ends the agent's process and starts it anew, for every chat that it served.
    pub(super) fn restart(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get(&id) else {
            self.warn("There is no chat to restart; `:AgentChat open` opens one.");
            return;
        };
        let chats = match chat.session.conn() {
            Some(conn) => {
                let chats = self.chats_of(conn);
                self.stop_connection(conn);
                chats
            }
            None => vec![id],
        };
        for id in chats {
            self.end_turn(id, "cancelled");
            self.leave_session(id);
            self.effects.push(Effect::ClearTimer(TimerKey::NewSession(id)));
            if self.chats.get(&id).is_some_and(|chat| !chat.continues()) {
                self.forget_talk(id, None);
            }
            self.start_session(id);
        }
    }

    /// The talk of a session is over: the next one begins without knowing of it. What waits to be sent was written for an
    /// agent that does, so the user gets it back.
    /// With `newest`, what was written after that prompt was written since, and is sent.
    pub(super) fn forget_talk(&mut self, id: ChatId, newest: NewestPrompt) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let talked = chat.transcript.has_talk();
        chat.transcript.begin_session();
        if !talked {
            return;
        }
        chat.lost = Some(0..chat.transcript.session_start());
        let since = match newest {
            Some(newest) => chat.queue.iter().filter(|prompt| prompt.id > newest).cloned().collect(),
            None => VecDeque::new(),
        };
        chat.queue.retain(|prompt| !since.contains(prompt));
        let text = "The agent is started anew: it does not know what was said above this line. `:AgentChat resume` takes \
                    it along with the next prompt, as text.";
        let text = if chat.queue.is_empty() {
            text.to_owned()
        } else {
            format!("{text} What was queued is back in the prompt.")
        };
        self.take_back_all(id);
        if let Some(chat) = self.chats.get_mut(&id) {
            chat.queue = since;
        }
        self.note(id, Severity::Info, text);
    }

    /// The chat's buffers are gone: so is its session, and with the last one the agent's process.
    pub(super) fn close_chat(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get(&id) else { return };
        let conn = chat.session.conn().or(chat.sign_in.as_ref().map(|sign_in| sign_in.conn));
        if let Session::Ready(conn, session) = chat.session.clone() {
            if chat.turn.is_some() {
                self.effects.push(Effect::Notify(conn, AgentNotice::Cancel { session: session.clone() }));
            }
            if self.connections.get(&conn).is_some_and(|connection| connection.can.close) {
                self.call(conn, PendingCall::Close, AgentCall::CloseSession { session });
            }
        }
        self.end_turn(id, "cancelled");
        self.leave_session(id);
        self.chats.remove(&id);
        for key in [TimerKey::NewSession(id), TimerKey::CancelGrace(id), TimerKey::Follow(id)] {
            self.effects.push(Effect::ClearTimer(key));
        }
        self.effects.push(Effect::Forget(id));
        if let Some(conn) = conn
            && self.chats_of(conn).is_empty()
        {
            self.stop_connection(conn);
        }
    }

    /// The user does not want to wait for the agent's start any more.
    pub(super) fn cancel_start(&mut self, id: ChatId) {
        let Some(conn) = self.chats.get(&id).and_then(|chat| chat.session.conn()) else { return };
        self.leave_session(id);
        self.effects.push(Effect::ClearTimer(TimerKey::NewSession(id)));
        if self.chats_of(conn).is_empty() {
            self.stop_connection(conn);
        }
        self.note(id, Severity::Info, "The start was cancelled. `:AgentChat restart`, or a prompt, starts it again.");
        self.touch(id);
    }
}

/// What to say when the agent wants the user to sign in.
pub(super) fn sign_in_hint(error: &RpcError) -> &'static str {
    if error.code == Some(RpcError::AUTH_REQUIRED) {
        " Sign in with the agent's own program in a terminal first."
    } else {
        ""
    }
}
