//! What may happen to the core.

use std::path::PathBuf;
use std::sync::Arc;

use super::attribution::DiskChange;
use super::follow::{Look, Visit};
use super::ids::{ChatId, ConnId, OpenId, PromptId, TerminalId};
use super::message::{AgentMessage, TerminalExit};
use super::prompt::{Found, PromptPart};

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
    /// A file operation that an effect asked for is done.
    FileDone(OpenId, FileOutcome),
    /// A command that an effect asked for runs in its terminal, or could not be started and why.
    TerminalStarted(OpenId, TerminalId, Result<(), String>),
    /// What is on a terminal, for a request: the text, and whether its beginning is missing.
    TerminalRead(OpenId, TerminalId, String, bool),
    /// The command of a terminal has ended, and all that it wrote was read.
    TerminalExited(TerminalId, TerminalExit),
    /// The last lines on a terminal are these now.
    TerminalTail(TerminalId, Arc<str>),
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
    },
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
    /// A permission request is answered with one of its options.
    Respond {
        /// Which request.
        request: OpenId,
        /// The option's id.
        option: String,
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
    /// The agent's process is to be started anew.
    Restart(ChatId),
    /// Neovim goes away.
    Shutdown,
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
    /// The path, with links resolved, lies outside of the session's directory; nothing was done.
    Outside(PathBuf),
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
    /// A file operation takes so long that the user should know what the agent waits for.
    FileWait(OpenId),
    /// The next look at where this chat's agent is.
    Follow(ChatId),
}
