//! What may happen to the core.

use std::path::PathBuf;

use super::attribution::DiskChange;
use super::elicitation::ElicitationAnswer;
use super::follow::{Look, Visit};
use super::ids::{ChatId, ConnId, OpenId, PromptId, QuestionId, SessionId, SessionKey, TerminalId};
use super::message::{AgentMessage, TerminalExit, TerminalWanted};
use super::permission::weigh::Weighed;
use super::prompt::{Found, PromptPart};
use super::rejections::Rejection;
use super::tool_call::TerminalTail;
use super::transcript::Entry;

/// Everything that reaches [`super::step`].
#[derive(Debug)]
pub enum Event {
    /// The user did something.
    User(UserAction),
    /// An agent said something.
    Agent(ConnId, AgentMessage),
    /// An agent's process runs.
    Spawned(ConnId),
    /// An agent's process could not be started, or has ended; nothing follows of this connection.
    Gone(ConnId, Departure),
    /// What a request is about was found out.
    Weighed(OpenId, Weighed),
    /// A file operation that an effect asked for is done.
    FileDone(OpenId, FileOutcome),
    /// A command that an effect asked for runs in its terminal, or could not be started and why.
    TerminalStarted(Option<OpenId>, TerminalId, Result<(), String>),
    /// What is on a terminal, for a request: the text, and whether its beginning is missing.
    TerminalRead(OpenId, TerminalId, String, bool),
    /// The command of a terminal has ended, and all that it wrote was read.
    TerminalExited(TerminalId, TerminalExit),
    /// The last lines on a terminal of a chat, by the agent's name for it, are these now.
    TerminalTail(ChatId, String, TerminalTail),
    /// Files on disk changed, and not through us.
    DiskChanged(Vec<DiskChange>),
    /// What the agent did to a file on disk was taken over.
    Adopted(ChatId, PathBuf, Adopted),
    /// An earlier helper of the same Neovim has kept that many turns of this chat, which has just been opened: they can be
    /// undone, and are counted on from.
    TurnsBefore(ChatId, u64),
    /// An undo that an effect asked for is done.
    Undone(ChatId, UndoReport),
    /// What the mentions of a prompt stand for was looked up.
    Gathered(ChatId, PromptId, Vec<Found>),
    /// Places that an effect asked for were looked at.
    Looked(ChatId, Vec<(Visit, Look)>),
    /// What the store has of the session that this chat is to have.
    Recalled(ChatId, Option<Recalled>),
    /// A timer that an effect set has run out.
    Timer(TimerKey),
}

/// What the user, or a script of theirs, asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAction {
    /// A chat is opened.
    Open {
        /// Its id, new.
        chat: ChatId,
        /// The agent's name; the default one if `None`.
        agent: Option<String>,
        /// Absolute directory of the project.
        cwd: PathBuf,
        /// The session that it is to have; a new one if `None`.
        known: Option<KnownSession>,
    },
    /// The sessions of an agent are wanted.
    ListSessions {
        /// Names the question.
        question: QuestionId,
        /// The agent's name; the default one if `None`.
        agent: Option<String>,
        /// Only those of this folder.
        cwd: Option<PathBuf>,
        /// Where an agent that does not run is started.
        at: PathBuf,
    },
    /// A session is to be deleted.
    DeleteSession {
        /// The agent's name.
        agent: String,
        /// The agent's id for it; `None` if only what is kept of it is meant.
        session: Option<SessionId>,
        /// What the store calls it, if it is kept.
        key: Option<SessionKey>,
    },
    /// What the agent of this chat forgot is to go along with the next prompt.
    TakeAlong(ChatId),
    /// A chat's buffers are gone.
    Close(ChatId),
    /// A prompt is sent.
    Prompt {
        /// In which chat.
        chat: ChatId,
        /// Its id, new.
        id: PromptId,
        /// What it is made of.
        parts: Vec<PromptPart>,
    },
    /// A queued prompt is taken back.
    TakeBack(ChatId, PromptId),
    /// What runs is to stop.
    Cancel(ChatId),
    /// They sign in by this way of the agent's.
    Authenticate(ChatId, String),
    /// They sign out of this chat's agent.
    SignOut(ChatId),
    /// They have signed in in a terminal.
    SignedIn(ChatId),
    /// An option of a session is set.
    SetOption {
        /// In which chat.
        chat: ChatId,
        /// Its id.
        option: String,
        /// A value, by its id or its name.
        value: String,
    },
    /// A permission request is answered with one of its options.
    Respond {
        /// Which request.
        request: OpenId,
        /// The option's id.
        option: String,
    },
    /// A question of an agent's is answered.
    Elicitation(OpenId, ElicitationAnswer),
    /// A command is to be run in a terminal for the user.
    RunCommand {
        /// The number by which Lua knows it.
        run: u64,
        /// The chat that it is about; 0 if none.
        chat: ChatId,
        /// The program and its arguments.
        wanted: Box<TerminalWanted>,
        /// Absolute folder.
        cwd: PathBuf,
    },
    /// The command of a terminal is to be ended.
    KillTerminal(TerminalId),
    /// The files that the agent changed are to be as they were before a turn; the newest with changes if `None`.
    Undo {
        /// In which chat.
        chat: ChatId,
        /// The number of the turn, from 1.
        turn: Option<u64>,
        /// If not empty: only these files, and even if that costs what the user did in them.
        replace: Vec<PathBuf>,
    },
    /// The user decided about changes of the agent's in a file.
    Decided {
        /// Whose agent's they were.
        chat: ChatId,
        /// Absolute path.
        path: PathBuf,
        /// What was rejected.
        rejected: Vec<Rejection>,
        /// Hunks of which the rejection was undone.
        pending: Vec<u64>,
    },
    /// The agent's process is to be started anew.
    Restart(ChatId),
    /// Neovim goes away.
    Shutdown,
}

/// A session from before that a chat is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSession {
    /// The agent's id for it.
    pub session: SessionId,
    /// What the store calls it, if that is known.
    pub key: Option<SessionKey>,
    /// Its title.
    pub title: Option<String>,
    /// Whether the chat gets a copy of it.
    pub is_fork: bool,
}

/// What the store has of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// What it calls it.
    pub key: SessionKey,
    /// Its title.
    pub title: Option<String>,
    /// What was said in it.
    pub entries: Vec<Entry>,
}

/// Why an agent's process is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Departure {
    /// It could not be started.
    NotStarted(String),
    /// It ended, or closed its output: how, and the last lines of its standard error.
    Ended {
        /// `exit code 3`, `signal 9 (SIGKILL)`, …
        how: String,
        /// Last lines of standard error, oldest first.
        stderr: Vec<String>,
    },
}

/// Where the user finds what an agent did to a file on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adopted {
    /// In the buffer, or in the file that is not loaded.
    There,
    /// In the buffer, beside their own unsaved changes.
    Merged,
    /// Only on disk, and pending as a whole: they have unsaved changes of the same lines.
    OnDisk,
    /// Only on disk, since the buffer cannot follow.
    Stuck,
    /// The file is gone; the buffer has its text.
    Gone,
}

/// What became of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UndoReport {
    /// Which turn was the first to be undone; `None` if there was nothing to undo.
    pub turn: Option<u64>,
    /// Files that are as they were, but for what the user did.
    pub restored: Vec<PathBuf>,
    /// Files that were left alone, since the user has changed the same in them.
    pub conflicts: Vec<PathBuf>,
    /// Files that could not be restored, and why.
    pub failed: Vec<(PathBuf, String)>,
}

/// What became of a file operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileOutcome {
    /// The text that was asked for.
    Read(String),
    /// Written.
    Written,
    /// The file does not exist.
    Missing(String),
    /// Nothing was done, and why, in words for the agent.
    Refused(String),
    /// It failed.
    Failed(String),
}

/// Names a timer; setting one of the same key again replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKey {
    /// `initialize` is due.
    Initialize(ConnId),
    /// `session/new` of this chat is due.
    NewSession(ChatId),
    /// The cancelled turn of this chat is due to end.
    CancelGrace(ChatId),
    /// A request has been weighed for so long that the user is asked as things are.
    Weigh(OpenId),
    /// A file operation takes so long that the user should know what the agent waits for.
    FileWait(OpenId),
    /// The next look at where this chat's agent is.
    Follow(ChatId),
    /// A list of sessions is due.
    List(QuestionId),
    /// An agent that was started for a list may not be needed.
    Unused(ConnId),
}
