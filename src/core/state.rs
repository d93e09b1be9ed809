//! The core's whole state, and the small moves that everything else is made of.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;

use super::attribution::Doings;
use super::config::Config;
use super::effect::{Effect, MessageLevel, Show, TerminalJob};
use super::elicitation::Elicitations;
use super::files::FileTask;
use super::follow::Follow;
use super::ids::{CallId, ChatId, ConnId, Millis, OpenId, PromptId, QuestionId, SessionId, TurnId};
use super::listing::Listing;
use super::message::{AgentCall, Choices, Reply, SessionCapabilities, Update, Usage};
use super::permission::Permission;
use super::permission::gate::Grant;
use super::prompt::{PromptBlock, PromptCapabilities, PromptPart};
use super::quirks::Quirks;
use super::rejections::Rejections;
use super::reopen::{NewestPrompt, Origin, Replay, Unknown};
use super::requests::OpenRequests;
use super::sign_in::{SignIn, SignInMethod};
use super::status::{ChatState, Status};
use super::summary::TurnRecord;
use super::terminals::Terminals;
use super::transcript::Transcript;

/// Everything the core knows. One owner, no locks.
#[derive(Debug)]
pub struct State {
    pub(super) config: Config,
    pub(super) chats: BTreeMap<ChatId, Chat>,
    pub(super) connections: BTreeMap<ConnId, Connection>,
    pub(super) open: OpenRequests,
    /// Lists of sessions that are being made.
    pub(super) listings: BTreeMap<QuestionId, Listing>,
    pub(super) permissions: Vec<Permission>,
    /// What agents ask beside that.
    pub(super) elicitations: Elicitations,
    /// File operations that are weighed or under way.
    pub(super) file_work: BTreeMap<OpenId, FileTask>,
    /// Commands that are weighed.
    pub(super) terminal_work: BTreeMap<OpenId, TerminalJob>,
    pub(super) terminals: Terminals,
    pub(super) now: Millis,
    pub(super) effects: Vec<Effect>,
    touched: BTreeSet<ChatId>,
    next_conn: u64,
    next_call: u64,
    next_turn: u64,
}

/// One conversation.
#[derive(Debug)]
pub(super) struct Chat {
    pub(super) agent: String,
    pub(super) cwd: PathBuf,
    pub(super) session: Session,
    /// What the next session is to be.
    pub(super) origin: Origin,
    /// What becomes of the history that the agent is replaying.
    pub(super) replay: Replay,
    /// What the agent could do with sessions when it was heard of last.
    pub(super) can: SessionCapabilities,
    /// The session of which everything is kept.
    pub(super) kept_session: Option<SessionId>,
    /// The newest prompt when a session ended that is to go on.
    pub(super) newest_of_old_talk: NewestPrompt,
    /// What was said here that the agent does not know.
    pub(super) lost: Option<Unknown>,
    /// What of it goes along with the next prompt.
    pub(super) carry: Option<Unknown>,
    pub(super) transcript: Transcript,
    pub(super) queue: VecDeque<Prompt>,
    /// The newest prompt that came, whatever became of it.
    pub(super) newest: Option<PromptId>,
    /// The prompt at the head of the queue whose mentions are being looked up.
    pub(super) gathering: Option<PromptId>,
    pub(super) turn: Option<Turn>,
    pub(super) follow: Follow,
    /// Turns so far; the number of the newest.
    pub(super) turns: u64,
    /// What the newest turn tells about files.
    pub(super) doings: Doings,
    /// What the user rejected since the last prompt.
    pub(super) rejections: Rejections,
    /// Unfinished calls whose proposals are shown.
    pub(super) proposing: BTreeSet<String>,
    /// Calls of the turn that the user was asked about.
    pub(super) asked_about: BTreeSet<String>,
    pub(super) title: Option<String>,
    pub(super) choices: Choices,
    /// The agent wants the user to sign in.
    pub(super) sign_in: Option<SignIn>,
    /// What the agent refused until they have.
    pub(super) resend: Option<Vec<PromptBlock>>,
    /// The newest compaction of the context.
    pub(super) compaction: Option<String>,
    pub(super) mode: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<Usage>,
    /// Tokens of the session at the end of the last turn, as the agent counts them.
    pub(super) tokens: u64,
    shown: Option<Status>,
}

/// Where a chat stands with its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Session {
    /// No agent: the start was cancelled.
    None,
    /// The agent's process is not ready.
    Waiting(ConnId),
    /// `session/new` was sent, and this is the call.
    Creating(ConnId, CallId),
    /// Ready.
    Ready(ConnId, SessionId),
    /// It failed, and why.
    Failed(String),
}

impl Session {
    /// The connection, while there is one.
    pub(super) const fn conn(&self) -> Option<ConnId> {
        match self {
            Self::Waiting(conn) | Self::Creating(conn, _) | Self::Ready(conn, _) => Some(*conn),
            Self::None | Self::Failed(_) => None,
        }
    }
}

/// A prompt that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) id: PromptId,
    pub(super) parts: Vec<PromptPart>,
}

/// A running turn.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    pub(super) cancelling: bool,
    /// Calls of this turn that did not come to their end yet.
    pub(super) unfinished: BTreeSet<String>,
    /// What its summary will tell.
    pub(super) record: TurnRecord,
    /// What was answered about its calls.
    pub(super) grants: Vec<Grant>,
    /// What the agent was sent.
    pub(super) sent: Vec<PromptBlock>,
    /// Whether it was sent before, and refused.
    pub(super) is_again: bool,
}

/// One run of an agent's process.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) agent: String,
    pub(super) phase: Phase,
    pub(super) calls: HashMap<CallId, PendingCall>,
    pub(super) sessions: HashMap<SessionId, ChatId>,
    /// What it takes in prompts; known once it is ready.
    pub(super) takes: PromptCapabilities,
    /// What it can do with sessions; the same.
    pub(super) can: SessionCapabilities,
    /// How the user can sign in with it.
    pub(super) sign_in: Vec<SignInMethod>,
    /// What is known to be peculiar about the agent.
    pub(super) quirks: Quirks,
    /// Chats that failed because of it; they are told its last words once it has ended.
    pub(super) failed_chats: Vec<ChatId>,
    /// Updates for sessions that the agent has not announced yet.
    pub(super) early: Vec<(SessionId, Update)>,
    /// How many bytes there is still room for in there.
    pub(super) early_room: usize,
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The process is being started.
    Spawning,
    /// `initialize` was sent.
    Initializing,
    /// Ready for sessions.
    Ready,
    /// We told it to end; whatever it does now is no news.
    Stopping,
}

/// What a call of ours is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingCall {
    Initialize,
    /// `session/new` or `session/fork`.
    NewSession(ChatId),
    /// A session from before, by this method.
    OpenSession(ChatId, &'static str),
    List(QuestionId),
    Delete,
    /// Whatever is answered is no news.
    Close,
    Authenticate(ChatId),
    Logout(ChatId),
    /// An option and the value that it is to have.
    SetOption(ChatId, String, String),
    Prompt(ChatId, TurnId),
}

impl State {
    /// A state without chats.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            chats: BTreeMap::new(),
            connections: BTreeMap::new(),
            open: OpenRequests::default(),
            listings: BTreeMap::new(),
            permissions: Vec::new(),
            elicitations: Elicitations::default(),
            file_work: BTreeMap::new(),
            terminals: Terminals::default(),
            terminal_work: BTreeMap::new(),
            now: Millis::default(),
            effects: Vec::new(),
            touched: BTreeSet::new(),
            next_conn: 0,
            next_call: 0,
            next_turn: 0,
        }
    }

    /// The transcript of a chat.
    pub fn transcript(&self, chat: ChatId) -> Option<&Transcript> {
        self.chats.get(&chat).map(|chat| &chat.transcript)
    }

    /// The directory of a chat's project.
    pub fn cwd(&self, chat: ChatId) -> Option<&std::path::Path> {
        self.chats.get(&chat).map(|chat| chat.cwd.as_path())
    }

    /// Whether no agent waits for an answer.
    pub fn nobody_waits(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn next_conn(&mut self) -> ConnId {
        self.next_conn += 1;
        ConnId(self.next_conn)
    }

    pub(super) fn next_turn(&mut self) -> TurnId {
        self.next_turn += 1;
        TurnId(self.next_turn)
    }

    /// Sends a request, and remembers what it is for.
    pub(super) fn call(&mut self, conn: ConnId, purpose: PendingCall, call: AgentCall) -> CallId {
        self.next_call += 1;
        let id = CallId(self.next_call);
        if let Some(connection) = self.connections.get_mut(&conn) {
            connection.calls.insert(id, purpose);
            self.effects.push(Effect::Call(conn, id, call));
        }
        id
    }

    /// Answers an open request. A second answer is impossible: the token is gone then.
    pub(super) fn reply(&mut self, request: OpenId, reply: Reply) {
        self.forget_file_work(request);
        // What was still weighed is of no interest any more.
        self.terminal_work.remove(&request);
        self.permissions.retain(|permission| permission.request != request);
        self.forget_elicitation(request);
        if let Some(token) = self.open.close(request) {
            self.effects.push(Effect::Reply(token, reply));
        }
    }

    pub(super) fn emit(&mut self, show: Show) {
        self.effects.push(Effect::Show(show));
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.emit(Show::Message(MessageLevel::Warn, text.into()));
    }

    /// The status of this chat may have changed; it is compared and shown at the end of the step.
    pub(super) fn touch(&mut self, chat: ChatId) {
        self.touched.insert(chat);
    }

    /// Shows the status of every touched chat where it differs from what was shown last.
    pub(super) fn show_touched(&mut self) {
        for id in std::mem::take(&mut self.touched) {
            let Some(status) = self.status(id) else { continue };
            let Some(chat) = self.chats.get_mut(&id) else { continue };
            if chat.shown.as_ref() != Some(&status) {
                chat.shown = Some(status.clone());
                self.emit(Show::Status(id, Box::new(status)));
            }
        }
    }

    fn status(&self, id: ChatId) -> Option<Status> {
        let chat = self.chats.get(&id)?;
        let (state, phase, error) = match (&chat.session, &chat.turn) {
            (Session::Failed(error), _) => (ChatState::Failed, None, Some(error.clone())),
            (Session::None, _) => (ChatState::Stopped, None, None),
            (Session::Waiting(conn), _) => (ChatState::Starting, Some(self.start_phase(*conn)), None),
            (Session::Creating(..), _) => (ChatState::Starting, Some("session"), None),
            (Session::Ready(..), None) => (ChatState::Idle, None, None),
            (Session::Ready(..), Some(Turn { cancelling: true, .. })) => (ChatState::Cancelling, None, None),
            (Session::Ready(..), Some(_)) => (ChatState::Running, None, None),
        };
        let session = match &chat.session {
            Session::Ready(_, session) => Some(session.clone()),
            _ => None,
        };
        let mode = chat.mode.clone();
        Some(Status {
            state,
            phase,
            agent: chat.agent.clone(),
            session,
            title: chat.title.clone(),
            mode,
            model: chat.model.clone(),
            usage: chat.usage.clone(),
            plan: chat.transcript.plan_progress(),
            takes: self.takes(chat),
            permissions: self.waiting_permissions(id),
            elicitations: self.waiting_elicitations(id),
            queued: chat.queue.len(),
            turn: chat.turns,
            lost: chat.lost.is_some(),
            error,
        })
    }

    /// What the chat's agent takes in prompts, once that is known.
    fn takes(&self, chat: &Chat) -> Option<PromptCapabilities> {
        let connection = self.connections.get(&chat.session.conn()?)?;
        (connection.phase == Phase::Ready).then_some(connection.takes)
    }

    fn start_phase(&self, conn: ConnId) -> &'static str {
        match self.connections.get(&conn).map(|connection| connection.phase) {
            Some(Phase::Initializing) => "initialize",
            _ => "process",
        }
    }
}

impl Chat {
    pub(super) fn new(agent: String, cwd: PathBuf) -> Self {
        Self {
            agent,
            cwd,
            session: Session::None,
            origin: Origin::New,
            replay: Replay::None,
            can: SessionCapabilities::default(),
            kept_session: None,
            newest_of_old_talk: None,
            lost: None,
            carry: None,
            transcript: Transcript::default(),
            queue: VecDeque::new(),
            newest: None,
            gathering: None,
            turn: None,
            follow: Follow::default(),
            turns: 0,
            doings: Doings::default(),
            rejections: Rejections::default(),
            proposing: BTreeSet::new(),
            asked_about: BTreeSet::new(),
            title: None,
            choices: Choices::default(),
            sign_in: None,
            resend: None,
            compaction: None,
            mode: None,
            model: None,
            usage: None,
            tokens: 0,
            shown: None,
        }
    }
}
