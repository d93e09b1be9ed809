//! What the core wants done.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use super::attribution::Author;
use super::choices::SessionOption;
use super::config::AgentSpec;
use super::elicitation::ElicitationView;
use super::event::{KnownSession, TimerKey};
use super::follow::{Visit, Whereabouts};
use super::ids::{CallId, ChatId, ConnId, Millis, OpenId, PromptId, QuestionId, SessionId, SessionKey, TerminalId};
use super::message::{AgentCall, AgentCommand, AgentNotice, Reply, TerminalExit, TerminalWanted};
use super::permission::PermissionView;
use super::permission::judge::NewAnswer;
use super::permission::rule::Action;
use super::permission::weigh::WeighJob;
use super::prompt::{PromptCapabilities, Source};
use super::requests::ReplyToken;
use super::sign_in::SignInOffer;
use super::status::Status;
use super::tool_call::ToolCall;
use super::transcript::{Change, EntryIndex};

/// One thing to be done by an edge.
#[derive(Debug)]
pub enum Effect {
    /// Start an agent's process.
    Spawn {
        /// Names the connection from now on.
        conn: ConnId,
        /// How.
        spec: AgentSpec,
        /// Where, if the spec says nothing.
        cwd: PathBuf,
    },
    /// End an agent's process and everything it started. `Event::Gone` follows.
    Stop(ConnId),
    /// Send a request.
    Call(ConnId, CallId, AgentCall),
    /// Send a notification.
    Notify(ConnId, AgentNotice),
    /// Answer a request.
    Reply(ReplyToken, Reply),
    /// Resolve paths and look up earlier answers; `Event::Weighed` follows.
    Weigh(WeighJob),
    /// Keep an answer with "always".
    Remember(NewAnswer),
    /// Read a file; `Event::FileDone` follows.
    ReadFile(FileJob, ReadRange),
    /// Write a file; `Event::FileDone` follows.
    WriteFile(FileJob, Arc<str>),
    /// Start a command in a terminal; `Event::TerminalStarted` follows.
    StartTerminal(Box<TerminalJob>),
    /// Read what is on a terminal; `Event::TerminalRead` follows.
    ReadTerminal(OpenId, TerminalId),
    /// End the command of a terminal; `Event::TerminalExited` follows if it still ran.
    KillTerminal(TerminalId),
    /// The agent needs the terminal no more: once its command has ended and all of it was shown, it is forgotten.
    ReleaseTerminal(TerminalId),
    /// Show a terminal that the agent runs itself; again when its title is another.
    ShowTerminal(ShownTerminal),
    /// The agent reports what was written to its own terminal.
    FeedTerminal(TerminalId, String),
    /// The agent reports that the command in its own terminal has ended.
    EndTerminal(TerminalId, TerminalExit),
    /// Look at a project ahead of the first turn in it.
    Survey(PathBuf),
    /// A turn of this number begins: keep what the project is, and watch it.
    BeginTurn(ChatId, u64, PathBuf),
    /// The turn of this chat is over: watch no longer than changes may take to be noticed.
    EndTurn(ChatId),
    /// Calls named these files: keep what they are, and watch them.
    NameFiles(ChatId, Vec<PathBuf>),
    /// Find out whether these files, or any below the folder, changed; `Event::DiskChanged` follows if so.
    Look(ChatId, Lookout),
    /// A file changed on disk: let Neovim have it; `Event::Adopted` follows if it is the agent's and something was new.
    TakeIn(DiskJob),
    /// Restore files; `Event::Undone` follows.
    Undo(UndoJob),
    /// Look up what a prompt mentions; `Event::Gathered` follows.
    Gather(GatherJob),
    /// Look at places; `Event::Looked` follows.
    Locate(LookJob),
    /// Wake the core at that time.
    SetTimer(TimerKey, Millis),
    /// Forget that timer.
    ClearTimer(TimerKey),
    /// The transcript of a chat changed.
    Transcript(ChatId, Change),
    /// Something else to show.
    Show(Show),
    /// A session of this chat begins: what is said in it is kept from now on, until that of the next one is.
    Keep(ChatId, Keep),
    /// Look up what is kept of the session that this chat is to have; `Event::Recalled` follows.
    Recall(ChatId, String, KnownSession),
    /// Forget what is kept of a session: by the store's name for it, else the agent's.
    ForgetKept {
        /// The agent's name.
        agent: String,
        /// The agent's id for it.
        session: Option<SessionId>,
        /// The store's name for it.
        key: Option<SessionKey>,
    },
    /// The sessions that an agent has, to be shown with those that are kept.
    Listed {
        /// Who asked.
        question: QuestionId,
        /// The agent's name.
        agent: String,
        /// What it lists.
        sessions: Vec<SessionInfo>,
        /// Why that is not all.
        problem: Option<String>,
    },
    /// A session is left for good.
    ForgetSession(ConnId, SessionId),
    /// A chat is no more.
    Forget(ChatId),
}

/// A session as its agent lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The agent's id for it.
    pub id: SessionId,
    /// Its folder.
    pub cwd: PathBuf,
    /// Its title.
    pub title: Option<String>,
    /// When something happened in it last: ISO 8601, as sent.
    pub updated_at: Option<String>,
}

/// A session of which everything is kept that is said in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// The agent's name.
    pub agent: String,
    /// The agent's id for it.
    pub session: SessionId,
    /// Its title.
    pub title: Option<String>,
    /// The first entry of the transcript that belongs to it.
    pub from: EntryIndex,
    /// The kept session that it continues, and which is among these entries.
    pub replaces: Option<SessionKey>,
}

/// A file operation on behalf of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileJob {
    /// The chat that it belongs to.
    pub chat: ChatId,
    /// The request it serves.
    pub request: OpenId,
    /// For which session.
    pub session: (ConnId, SessionId),
    /// Absolute path without links, which is what was allowed; should it lead elsewhere by now, nothing is done.
    pub path: PathBuf,
}

/// A terminal that an agent runs itself, and reports on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownTerminal {
    /// The terminal.
    pub terminal: TerminalId,
    /// The chat that it belongs to.
    pub chat: ChatId,
    /// The agent's name for it.
    pub name: String,
    /// Its command, as far as that is known.
    pub title: String,
}

/// A command to be run in a terminal, for an agent or the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalJob {
    /// The terminal.
    pub terminal: TerminalId,
    /// The agent's request that it serves.
    pub request: Option<OpenId>,
    /// The number that Lua gave to a command of the user.
    pub run: Option<u64>,
    /// The chat that it belongs to.
    pub chat: ChatId,
    /// What to run.
    pub wanted: TerminalWanted,
    /// Absolute folder.
    pub cwd: PathBuf,
}

/// Where to look for changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookout {
    /// These files.
    Files(Vec<PathBuf>),
    /// All of this project.
    Project(PathBuf),
}

/// A file that changed on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskJob {
    /// The chat whose agent may have done it.
    pub chat: ChatId,
    /// Its session, if it has one.
    pub session: Option<(ConnId, SessionId)>,
    /// Absolute path.
    pub path: PathBuf,
    /// Who changed it.
    pub author: Author,
    /// When it changed, as the file itself has it; `None` if that does not matter.
    pub stamp: Option<SystemTime>,
}

/// An undo.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoJob {
    /// The chat.
    pub chat: ChatId,
    /// See [`super::event::UserAction::Undo`].
    pub turn: Option<u64>,
    /// The same.
    pub replace: Vec<PathBuf>,
}

/// What a prompt mentions, to be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherJob {
    /// The chat.
    pub chat: ChatId,
    /// The prompt.
    pub prompt: PromptId,
    /// The chat's folder.
    pub cwd: PathBuf,
    /// What to look up, in order.
    pub sources: Vec<Source>,
    /// What the agent takes: nothing else need be read.
    pub takes: PromptCapabilities,
}

/// Places to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookJob {
    /// The chat whose agent is there.
    pub chat: ChatId,
    /// The places, oldest first.
    pub visits: Vec<Visit>,
}

/// Which lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReadRange {
    /// 1-based first line.
    pub line: Option<u64>,
    /// Number of lines.
    pub limit: Option<u64>,
}

/// What is shown outside of the transcript.
#[derive(Debug, Clone, PartialEq)]
pub enum Show {
    /// The state of a chat.
    Status(ChatId, Box<Status>),
    /// All open permission requests, oldest first.
    Permissions(Vec<PermissionView>),
    /// All open questions beside those, oldest first.
    Elicitations(Vec<ElicitationView>),
    /// What is wrong in a form that was filled in: the names of fields, and what is wrong with them.
    ElicitationProblems(OpenId, Vec<(String, String)>),
    /// All unfinished calls of a chat that may say what they would do to files, and about which nobody is asked.
    Proposals(ChatId, Vec<ToolCall>),
    /// The prompts that wait: id and first line, oldest first; and the newest prompt that the chat was given at all.
    Queued(ChatId, Vec<(PromptId, String)>, Option<PromptId>),
    /// A prompt is no longer queued and was not sent: its text goes back to the user.
    TakenBack(ChatId, PromptId, String),
    /// Files of an undone turn in which the user has changed the same: they decide. The turn, and absolute paths.
    UndoConflicts(ChatId, u64, Vec<PathBuf>),
    /// The agent wants the user to sign in.
    SignIn(ChatId, SignInOffer),
    /// The agent's commands in this chat.
    Commands(ChatId, Vec<AgentCommand>),
    /// What the session can be set to.
    Options(ChatId, Vec<SessionOption>),
    /// Where the agent is.
    Follow(ChatId, Whereabouts),
    /// A `User` autocommand.
    UserEvent(UserEvent),
    /// One message for the user.
    Message(MessageLevel, String),
}

/// How loud a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageLevel {
    /// To know.
    Info,
    /// May need the user.
    Warn,
    /// Something failed.
    Error,
}

/// Events for scripts; the names are those of the `User` autocommands without the prefix `AgentChat`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserEvent {
    /// A session is ready.
    SessionStart(ChatId, SessionId),
    /// A prompt was sent; the turn's number.
    TurnStart(ChatId, u64),
    /// A turn is over; the stop reason.
    TurnEnd(ChatId, String),
    /// A tool call is new, or its status another one: id, status.
    ToolCall(ChatId, String, String),
    /// A permission request is open.
    Permission(ChatId, OpenId),
    /// A permission request is closed; the option's id unless it was cancelled.
    PermissionResolved(ChatId, OpenId, Option<String>),
    /// A question beside those is open.
    Elicitation(ChatId, OpenId),
    /// A permission request was answered by a rule.
    PermissionDecided {
        /// The chat that it belongs to.
        chat: ChatId,
        /// Which request.
        request: OpenId,
        /// The option that was chosen, if the agent gave some.
        option: Option<String>,
        /// What was decided.
        action: Action,
        /// What it was about.
        title: String,
        /// The rule in one line.
        rule: String,
    },
    /// A file was written for the agent.
    FileChanged(ChatId, PathBuf),
    /// Something failed.
    Error(ChatId, String),
}
