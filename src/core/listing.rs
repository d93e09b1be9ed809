//! Lists of the sessions that an agent has, and the end of one that it has.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::effect::{Effect, MessageLevel, SessionInfo, Show};
use super::event::TimerKey;
use super::ids::{ConnId, QuestionId, SessionId, SessionKey};
use super::message::{AgentCall, RpcError};
use super::state::{PendingCall, Phase, Session, State};

/// How long an agent may take, its start included, in milliseconds. What came until then is listed.
const PATIENCE: u64 = 15_000;
/// Sessions after which no further page is asked for.
const MAX_SESSIONS: usize = 2_000;
/// Pages after which no further one is asked for, however little is on them.
const MAX_PAGES: usize = 100;
/// How long an agent that was only started for a list is kept, in milliseconds: the user may choose one of its sessions.
const UNUSED: u64 = 120_000;

/// A list that is being made.
#[derive(Debug)]
pub(super) struct Listing {
    conn: ConnId,
    agent: String,
    cwd: Option<PathBuf>,
    sessions: Vec<SessionInfo>,
    cursors: HashSet<String>,
}

impl State {
    /// Asks an agent for its sessions; with `cwd`, those of that folder. `Effect::Listed` follows in any case.
    pub(super) fn list_sessions(
        &mut self,
        question: QuestionId,
        agent: Option<String>,
        cwd: Option<PathBuf>,
        at: &Path,
    ) {
        let agent = agent.unwrap_or_else(|| self.config.default_agent.clone());
        let conn = match self.connect(&agent, at) {
            Ok(conn) => conn,
            Err(problem) => {
                self.effects.push(Effect::Listed { question, agent, sessions: Vec::new(), problem: Some(problem) });
                return;
            }
        };
        let listing = Listing { conn, agent, cwd, sessions: Vec::new(), cursors: HashSet::new() };
        self.listings.insert(question, listing);
        self.effects.push(Effect::SetTimer(TimerKey::List(question), self.now.plus(PATIENCE)));
        if self.connections.get(&conn).is_some_and(|connection| connection.phase == Phase::Ready) {
            self.ask_for_page(question, None);
        }
    }

    /// A connection is ready: asks for what waited for it.
    pub(super) fn begin_lists(&mut self, conn: ConnId) {
        for question in self.lists_of(conn) {
            self.ask_for_page(question, None);
        }
    }

    /// A connection is no more: its lists are what they are.
    pub(super) fn end_lists(&mut self, conn: ConnId, problem: &str) {
        for question in self.lists_of(conn) {
            self.list_is_complete(question, Some(problem.to_owned()));
        }
    }

    pub(super) fn lists_of(&self, conn: ConnId) -> Vec<QuestionId> {
        self.listings.iter().filter(|(_, listing)| listing.conn == conn).map(|(question, _)| *question).collect()
    }

    fn ask_for_page(&mut self, question: QuestionId, cursor: Option<String>) {
        let Some(listing) = self.listings.get(&question) else { return };
        let (conn, cwd) = (listing.conn, listing.cwd.clone());
        if self.connections.get(&conn).is_some_and(|connection| connection.can.list) {
            self.call(conn, PendingCall::List(question), AgentCall::ListSessions { cwd, cursor });
        } else {
            // What our own store has is all there is.
            self.list_is_complete(question, None);
        }
    }

    /// A page came, and with it the cursor of the next one. A cursor that was there before would go round in circles.
    pub(super) fn listed(&mut self, question: QuestionId, sessions: Vec<SessionInfo>, next: Option<String>) {
        let Some(listing) = self.listings.get_mut(&question) else { return };
        listing.sessions.extend(sessions);
        let room = listing.sessions.len() < MAX_SESSIONS && listing.cursors.len() < MAX_PAGES;
        match next {
            Some(cursor) if room && listing.cursors.insert(cursor.clone()) => {
                self.ask_for_page(question, Some(cursor));
            }
            _ => self.list_is_complete(question, None),
        }
    }

    pub(super) fn list_refused(&mut self, question: QuestionId, error: &RpcError) {
        let Some(listing) = self.listings.get(&question) else { return };
        let (conn, agent) = (listing.conn, listing.agent.clone());
        self.give_up(conn, |_, purpose| *purpose == PendingCall::List(question));
        self.list_is_complete(question, Some(format!("{agent} did not list its sessions: {error}.")));
    }

    pub(super) fn list_is_late(&mut self, question: QuestionId) {
        let agent = self.listings.get(&question).map(|listing| listing.agent.clone()).unwrap_or_default();
        self.list_is_complete(question, Some(format!("{agent} took too long to list all of its sessions.")));
    }

    fn list_is_complete(&mut self, question: QuestionId, problem: Option<String>) {
        let Some(Listing { conn, agent, mut sessions, .. }) = self.listings.remove(&question) else { return };
        let mut known = HashSet::new();
        sessions.retain(|session| known.insert(session.id.clone()));
        self.effects.push(Effect::ClearTimer(TimerKey::List(question)));
        self.effects.push(Effect::Listed { question, agent, sessions, problem });
        if self.chats_of(conn).is_empty() {
            self.effects.push(Effect::SetTimer(TimerKey::Unused(conn), self.now.plus(UNUSED)));
        }
    }

    /// Nobody may have chosen a session of an agent that was started for a list.
    pub(super) fn stop_unused(&mut self, conn: ConnId) {
        if self.chats_of(conn).is_empty() && self.lists_of(conn).is_empty() {
            self.stop_connection(conn);
        }
    }

    /// Deletes a session, in our store and where the agent can.
    pub(super) fn delete_session(&mut self, agent: &str, session: Option<SessionId>, key: Option<SessionKey>) {
        let is_open = self.chats.values().any(|chat| {
            chat.agent == agent && matches!(&chat.session, Session::Ready(_, open) if Some(open) == session.as_ref())
        });
        if is_open {
            self.warn("That session is open in a chat: close the chat (`:bwipeout` its buffers) before you delete it.");
            return;
        }
        self.effects.push(Effect::ForgetKept { agent: agent.to_owned(), session: session.clone(), key });
        let running = self.connections.iter().find(|(_, connection)| {
            connection.agent == agent && connection.phase == Phase::Ready && connection.can.delete
        });
        if let Some((conn, session)) = running.map(|(conn, _)| *conn).zip(session) {
            self.call(conn, PendingCall::Delete, AgentCall::DeleteSession { session });
        } else {
            let text = format!("The session is deleted here; {agent} may still have it.");
            self.emit(Show::Message(MessageLevel::Info, text));
        }
    }

    pub(super) fn deleted(&mut self, result: Result<(), RpcError>) {
        match result {
            Ok(()) => self.emit(Show::Message(MessageLevel::Info, "The session is deleted.".to_owned())),
            Err(error) => self.warn(format!("The session is deleted here, but the agent still has it: {error}.")),
        }
    }
}
