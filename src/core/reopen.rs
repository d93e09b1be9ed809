//! Sessions that are known from before: loaded, resumed, forked, or, where the agent can do none of that, begun anew with
//! what is kept of the old one.

use std::ops::Range;

use super::effect::{Effect, Keep, Show, UserEvent};
use super::event::{Recalled, TimerKey};
use super::ids::{CallId, ChatId, ConnId, PromptId, SessionId, SessionKey};
use super::message::{AgentCall, Choices, RpcError};
use super::sessions::sign_in_hint;
use super::state::{Chat, PendingCall, Phase, Session, State};
use super::tool_call::ToolStatus;
use super::transcript::{Change, Entry, EntryIndex, Severity};

/// What a chat's session is to be.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum Origin {
    /// A new one.
    #[default]
    New,
    /// One that the agent had before.
    Known(Box<Known>),
}

/// A session that the agent had before.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Known {
    pub(super) session: SessionId,
    pub(super) how: How,
    pub(super) kept: Kept,
}

/// What is to be done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// It is opened in a chat that is empty.
    Open,
    /// The same, as a copy.
    Fork,
    /// It goes on in a chat that shows what was said.
    Continue,
}

/// What our own store has of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kept {
    /// The store was not heard of yet.
    Awaited,
    /// This; nothing if it was not kept, or is shown already.
    There(Option<Recalled>),
}

/// What becomes of the history that an agent replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Replay {
    /// There is none.
    #[default]
    None,
    /// It is shown.
    Shown,
    /// It is there already.
    Ignored,
}

/// How an agent gets at a session that it had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Load(Replay),
    Resume,
    Fork,
}

impl State {
    /// What the store has of a session that is to be opened.
    pub(super) fn recalled(&mut self, id: ChatId, recalled: Option<Recalled>) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Origin::Known(known) = &mut chat.origin else { return };
        if known.kept != Kept::Awaited {
            return;
        }
        if let Some(recalled) = &recalled {
            chat.title = chat.title.take().or_else(|| recalled.title.clone());
        }
        known.kept = Kept::There(recalled);
        match chat.session.clone() {
            Session::Waiting(conn) if self.is_ready(conn) => self.create_session(id, conn),
            Session::Failed(_) => self.show_kept(id),
            _ => self.touch(id),
        }
    }

    fn is_ready(&self, conn: ConnId) -> bool {
        self.connections.get(&conn).is_some_and(|connection| connection.phase == Phase::Ready)
    }

    /// Opens the known session of a chat in the best way that its agent can; `false` if a new one is to begin.
    pub(super) fn reopen(&mut self, id: ChatId, conn: ConnId) -> bool {
        let setup = self.setup(id, conn);
        let Some((chat, connection)) = self.chats.get_mut(&id).zip(self.connections.get_mut(&conn)) else {
            return true;
        };
        let Origin::Known(known) = &chat.origin else { return false };
        if known.kept == Kept::Awaited {
            return true;
        }
        let can = connection.can;
        let way = match known.how {
            How::Fork if can.fork => Way::Fork,
            How::Open if can.load => Way::Load(Replay::Shown),
            How::Continue | How::Open if can.resume => Way::Resume,
            How::Continue if can.load => Way::Load(Replay::Ignored),
            _ => {
                let agent = chat.agent.clone();
                self.begin_anew(id, &format!("{agent} cannot open earlier sessions"));
                return false;
            }
        };
        let session = known.session.clone();
        if way != Way::Fork {
            if connection.sessions.get(&session).is_some_and(|other| *other != id) {
                self.fail_chat(id, "That session is open in another chat of this Neovim; go there.".to_owned());
                return true;
            }
            // Its history, and whatever else it has to say, comes before the answer.
            connection.sessions.insert(session.clone(), id);
        }
        let (purpose, call) = match way {
            Way::Load(replay) => {
                chat.replay = replay;
                if replay == Replay::Shown {
                    chat.transcript.begin_session();
                }
                (PendingCall::OpenSession(id, "session/load"), AgentCall::LoadSession { session, setup })
            }
            Way::Resume => {
                (PendingCall::OpenSession(id, "session/resume"), AgentCall::ResumeSession { session, setup })
            }
            Way::Fork => (PendingCall::NewSession(id), AgentCall::ForkSession { session, setup }),
        };
        self.emit(Show::Commands(id, Vec::new()));
        self.await_session(id, conn, purpose, call);
        true
    }

    /// The agent has opened a session that it had before.
    pub(super) fn session_opened(&mut self, (conn, call): (ConnId, CallId), id: ChatId, chosen: Choices) {
        let Some(chat) = self.chats.get_mut(&id).filter(|chat| chat.session == Session::Creating(conn, call)) else {
            return;
        };
        let Origin::Known(known) = std::mem::take(&mut chat.origin) else { return };
        let replay = std::mem::take(&mut chat.replay);
        let session = known.session.clone();
        let key = known.key();
        chat.session = Session::Ready(conn, session.clone());
        chat.sign_in = None;
        self.take_choices(id, chosen);
        self.effects.push(Effect::ClearTimer(TimerKey::NewSession(id)));
        if replay == Replay::Shown {
            self.end_history(id);
        } else if known.how != How::Continue {
            self.restore(id, *known);
        } else if self.chats.get(&id).is_some_and(|chat| chat.transcript.has_talk()) {
            self.note(id, Severity::Info, "The agent was started anew, and goes on with this session.");
        }
        self.keep(id, &session, key);
        self.session_is_ready(id, &session);
        self.send_again(id);
        self.send_next_prompt(id);
    }

    /// The agent does not open a session that it had before.
    pub(super) fn reopen_refused(
        &mut self,
        (conn, call): (ConnId, CallId),
        id: ChatId,
        method: &str,
        error: &RpcError,
    ) {
        let Some(chat) = self.chats.get_mut(&id).filter(|chat| chat.session == Session::Creating(conn, call)) else {
            return;
        };
        chat.replay = Replay::None;
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.sessions.retain(|_, of| *of != id);
        }
        if self.session_wants_sign_in(id, conn, error) {
            return;
        }
        if error.code == Some(RpcError::AUTH_REQUIRED) {
            self.fail_session(id, &format!("could not open the session: {error}.{}", sign_in_hint(error)));
            return;
        }
        let agent = self.chats.get(&id).map(|chat| chat.agent.clone()).unwrap_or_default();
        self.begin_anew(id, &format!("{agent} could not open that session (`{method}`: {error})"));
        self.create_session(id, conn);
    }

    /// The chat's session will be a new one; what is kept of the old one is shown, and goes along with the next prompt.
    fn begin_anew(&mut self, id: ChatId, why: &str) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Origin::Known(known) = std::mem::take(&mut chat.origin) else { return };
        if known.how == How::Continue {
            let newest = chat.newest_of_old_talk.take();
            self.note(id, Severity::Warning, format!("{why}."));
            self.forget_talk(id, newest);
            return;
        }
        // A part of its history may have come before the agent gave up.
        if !chat.transcript.has_talk() {
            self.restore(id, *known);
        }
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if chat.transcript.has_talk() {
            chat.carry = Some(chat.transcript.session_start()..chat.transcript.entries().len());
            let text = "A new session begins here; what is above goes along with your next prompt, as text.";
            self.note(id, Severity::Warning, format!("{why}. {text}"));
        } else {
            let text = "Nothing of it is kept here either: a new session begins.";
            self.note(id, Severity::Warning, format!("{why}. {text}"));
        }
    }

    /// The chat cannot have its session now: what is kept of it can be read all the same.
    pub(super) fn show_kept(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Origin::Known(known) = &mut chat.origin else { return };
        let is_there = matches!(&known.kept, Kept::There(Some(recalled)) if !recalled.entries.is_empty());
        if known.how == How::Continue || !is_there || chat.transcript.has_talk() {
            return;
        }
        let shown = known.clone();
        if known.how == How::Open {
            // Once it can be opened, its text need not be shown again.
            known.how = How::Continue;
        }
        self.restore(id, *shown);
    }

    /// Shows what is kept of a session as the beginning of the chat's.
    pub(super) fn restore(&mut self, id: ChatId, known: Known) {
        let Kept::There(Some(recalled)) = known.kept else { return };
        let Some(chat) = self.chats.get_mut(&id) else { return };
        chat.transcript.begin_session();
        let first = chat.transcript.entries().len();
        chat.transcript.restore(recalled.entries);
        let added = first..chat.transcript.entries().len();
        self.effects.extend(added.map(|entry| Effect::Transcript(id, Change::Added(entry))));
    }

    /// The history that the agent replayed is complete.
    fn end_history(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let open: Vec<String> = chat.transcript.unfinished_tools().map(str::to_owned).collect();
        chat.transcript.end_history();
        for tool in open {
            self.settle_tool(id, &tool, ToolStatus::Unfinished);
        }
    }

    /// What is said in the chat's session is kept, from its beginning.
    pub(super) fn keep(&mut self, id: ChatId, session: &SessionId, replaces: Option<SessionKey>) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        if chat.kept_session.as_ref() == Some(session) {
            return;
        }
        chat.kept_session = Some(session.clone());
        let keep = Keep {
            agent: chat.agent.clone(),
            session: session.clone(),
            title: chat.title.clone(),
            from: chat.transcript.session_start(),
            replaces,
        };
        self.effects.push(Effect::Keep(id, keep));
    }

    /// A session is there: everybody hears of it.
    pub(super) fn session_is_ready(&mut self, id: ChatId, session: &SessionId) {
        let Some(root) = self.chats.get(&id).map(|chat| chat.cwd.clone()) else { return };
        self.effects.push(Effect::Survey(root));
        self.touch(id);
        self.emit(Show::UserEvent(UserEvent::SessionStart(id, session.clone())));
    }

    /// What the agent forgot goes along with the next prompt.
    pub(super) fn take_along(&mut self, id: ChatId) {
        let Some(chat) = self.chats.get_mut(&id) else { return };
        let Some(lost) = chat.lost.clone() else {
            self.warn("The agent knows all that was said here.");
            return;
        };
        chat.carry = Some(lost);
        self.note(id, Severity::Info, "What the agent does not know goes along with your next prompt, as text.");
    }
}

impl Chat {
    /// The session ends without the user having wanted that: the next one is to be the same, if anything was said in it
    /// and the agent can open it again.
    pub(super) fn continue_later(&mut self, session: &SessionId) {
        if self.transcript.has_talk() && (self.can.load || self.can.resume) {
            let (session, how) = (session.clone(), How::Continue);
            self.origin = Origin::Known(Box::new(Known { session, how, kept: Kept::There(None) }));
            self.newest_of_old_talk = self.newest;
        }
    }

    /// Whether the next session is to be one that this chat has had.
    pub(super) fn continues(&self) -> bool {
        matches!(&self.origin, Origin::Known(known) if known.how == How::Continue)
    }
}

impl Known {
    /// A session that is to be opened, once the store has said what it has of it.
    pub(super) fn wanted(session: SessionId, is_fork: bool) -> Self {
        Self { session, how: if is_fork { How::Fork } else { How::Open }, kept: Kept::Awaited }
    }

    fn key(&self) -> Option<SessionKey> {
        match &self.kept {
            Kept::There(Some(recalled)) => Some(recalled.key),
            _ => None,
        }
    }
}

/// Entries of a transcript that an agent does not know.
pub(super) type Unknown = Range<EntryIndex>;

/// The newest prompt of a talk.
pub(super) type NewestPrompt = Option<PromptId>;

/// Most of a conversation that is told again, in bytes.
const MAX_RETOLD: usize = 100_000;

/// A conversation as text, for an agent that does not know it. Of a long one, the end.
pub(super) fn retell(entries: &[Entry]) -> String {
    let mut parts = Vec::new();
    let mut left = MAX_RETOLD;
    for entry in entries.iter().rev() {
        let part = match entry {
            Entry::User(text) => format!("## User\n\n{text}"),
            Entry::Agent(text) => format!("## Agent\n\n{text}"),
            Entry::Tool(call) => format!("(Tool call: {}, {})", call.title, call.status.as_str()),
            Entry::Thought(_) | Entry::Plan(_) | Entry::Notice(..) => continue,
        };
        let start = part.ceil_char_boundary(part.len().saturating_sub(left));
        left -= part.len() - start;
        parts.push(part[start..].to_owned());
        if left == 0 {
            break;
        }
    }
    parts.push("# What was said in an earlier session, for context".to_owned());
    parts.reverse();
    parts.join("\n\n")
}
