//! What an agent says, in the core's own words: the decoder in `acp` translates the wire into these, and these into the wire.

use std::path::PathBuf;
use std::sync::Arc;

use super::choices::SessionOption;
use super::effect::SessionInfo;
use super::elicitation::form::Filled;
use super::elicitation::{Elicitation, Scope};
use super::ids::{CallId, SessionId};
use super::plan::Plan;
use super::prompt::{PromptBlock, PromptCapabilities};
use super::requests::ReplyToken;
use super::setup::SessionSetup;
use super::sign_in::SignInMethod;
use super::tool_call::ToolCallPatch;
use super::transcript::{Severity, Speaker};

/// One message from an agent.
#[derive(Debug)]
pub enum AgentMessage {
    /// A `session/update` notification.
    Update {
        /// The session it is for.
        session: SessionId,
        /// What it says.
        update: Update,
    },
    /// A request that we must answer.
    Request {
        /// To be consumed by the answer.
        token: ReplyToken,
        /// What is asked.
        request: AgentRequest,
    },
    /// The answer to one of our requests.
    Response {
        /// Which one.
        call: CallId,
        /// Its result.
        result: Result<Answer, RpcError>,
    },
    /// `$/cancel_request`: the agent no longer needs that answer.
    CancelRequest {
        /// The request's id as raw JSON.
        raw_id: Arc<str>,
    },
    /// `elicitation/complete`: what an address was opened for is done; the agent's id for it.
    ElicitationCompleted(String),
    /// A message that could not be used; worth a line for the user.
    Unusable(String),
}

/// A `session/update`.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// A piece of a message.
    Chunk {
        /// Whose.
        speaker: Speaker,
        /// The message it belongs to, if the agent says so.
        message_id: Option<String>,
        /// Its text; a block that is not text is described.
        text: String,
    },
    /// A tool call, new or changed.
    Tool {
        /// What is said of it.
        patch: ToolCallPatch,
        /// Whether it is announced (`tool_call`), or a change of one (`tool_call_update`).
        is_new: bool,
    },
    /// A whole plan, with its id if the agent names its plans.
    Plan(Option<String>, Plan),
    /// The plan of that id is taken back.
    PlanRemoved(String),
    /// The session's title, `None` clears it.
    Title(Option<String>),
    /// The current mode's id.
    Mode(String),
    /// The session's options.
    Choices(Choices),
    /// Use of the context window.
    Usage(Usage),
    /// The commands that a prompt may begin with.
    Commands(Vec<AgentCommand>),
    /// The agent remarks something: how serious it is, and what.
    Notice(Severity, String),
    /// The agent puts a summary into the place of what was said.
    Compaction(Compaction),
    /// Known, and nothing to show.
    Silent,
    /// A kind this version does not know: its name and a short form of its content.
    Unknown {
        /// The `sessionUpdate` discriminator.
        name: String,
        /// The message, shortened.
        detail: String,
    },
}

/// How a compaction of the context goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// Names it.
    pub id: String,
    /// How far it is.
    pub status: CompactionStatus,
    /// The summary, if all of it comes at once.
    pub summary: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
}

/// How far a compaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactionStatus {
    /// It has begun.
    Running,
    /// It is done.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Cancelled,
}

/// What a session can be set to, and is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choices {
    /// The mode's name.
    pub mode: Option<String>,
    /// The model's name.
    pub model: Option<String>,
    /// All options.
    pub options: Vec<SessionOption>,
}

/// A command of the agent: a prompt may begin with `/` and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// Its name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
    /// What may be typed after it.
    pub hint: Option<String>,
}

/// Use of the context window, and what the session has cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// Tokens in the context.
    pub used: u64,
    /// Tokens that fit.
    pub size: u64,
    /// Amount and currency.
    pub cost: Option<(f64, String)>,
}

/// A request from the agent.
#[derive(Debug)]
pub enum AgentRequest {
    /// `session/request_permission`.
    Permission {
        /// The session.
        session: SessionId,
        /// The call that it is about.
        tool: ToolCallPatch,
        /// The agent's options, in its order.
        options: Vec<PermissionOption>,
    },
    /// `elicitation/create`.
    Elicit(Elicitation),
    /// `fs/read_text_file`.
    ReadFile {
        /// The session.
        session: SessionId,
        /// As sent; checked by the core.
        path: PathBuf,
        /// 1-based first line.
        line: Option<u64>,
        /// Number of lines.
        limit: Option<u64>,
    },
    /// `fs/write_text_file`.
    WriteFile {
        /// The session.
        session: SessionId,
        /// As sent; checked by the core.
        path: PathBuf,
        /// The whole new text.
        content: Arc<str>,
    },
    /// `terminal/create`.
    CreateTerminal {
        /// The session.
        session: SessionId,
        /// What to run.
        wanted: TerminalWanted,
    },
    /// Another request about a terminal.
    Terminal {
        /// The session.
        session: SessionId,
        /// The agent's name for it.
        id: String,
        /// What is wanted of it.
        verb: TerminalVerb,
    },
    /// A method that is not served.
    Unknown {
        /// Its name.
        method: String,
    },
    /// A served method with parameters that could not be used.
    Invalid {
        /// What is wrong with them.
        problem: String,
    },
    /// A request over the limit for a message, which was dropped.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// A request in an array of messages, which JSON-RPC calls a batch and ACP does not have.
    Batched,
}

impl AgentRequest {
    /// The session that the request names, if it is of a kind that does.
    pub const fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Permission { session, .. }
            | Self::ReadFile { session, .. }
            | Self::WriteFile { session, .. }
            | Self::CreateTerminal { session, .. }
            | Self::Terminal { session, .. }
            | Self::Elicit(Elicitation { scope: Scope::Session(session), .. }) => Some(session),
            Self::Elicit(_) | Self::Unknown { .. } | Self::Invalid { .. } | Self::TooLong { .. } | Self::Batched => {
                None
            }
        }
    }
}

/// A command that an agent wants to run in a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalWanted {
    /// A program, or, without arguments, a whole line for a shell.
    pub command: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Added to the environment.
    pub env: Vec<(String, String)>,
    /// As sent; checked by the core.
    pub cwd: Option<PathBuf>,
    /// Most bytes of output that the agent wants.
    pub output_byte_limit: Option<u64>,
}

/// What an agent may want of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalVerb {
    /// `terminal/output`.
    Output,
    /// `terminal/wait_for_exit`.
    WaitForExit,
    /// `terminal/kill`.
    Kill,
    /// `terminal/release`.
    Release,
}

/// How the command of a terminal ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalExit {
    /// The exit code, unless a signal ended it.
    pub code: Option<u32>,
    /// The signal's name (`SIGTERM`).
    pub signal: Option<String>,
}

/// One way to answer a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// The agent's id for it.
    pub id: String,
    /// What the user reads.
    pub name: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or a word this version does not know.
    pub kind: String,
}

/// A request of ours.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentCall {
    /// `initialize`.
    Initialize,
    /// `session/new`.
    NewSession(SessionSetup),
    /// `session/load`: its history comes before the answer.
    LoadSession {
        /// The session.
        session: SessionId,
        /// What it is set up with.
        setup: SessionSetup,
    },
    /// `session/resume`: the same without its history.
    ResumeSession {
        /// The session.
        session: SessionId,
        /// What it is set up with.
        setup: SessionSetup,
    },
    /// `session/fork`.
    ForkSession {
        /// The session that is copied.
        session: SessionId,
        /// What it is set up with.
        setup: SessionSetup,
    },
    /// `session/list`.
    ListSessions {
        /// Only those of this folder.
        cwd: Option<PathBuf>,
        /// Where to go on; opaque.
        cursor: Option<String>,
    },
    /// `session/close`.
    CloseSession {
        /// The session.
        session: SessionId,
    },
    /// `session/delete`.
    DeleteSession {
        /// The session.
        session: SessionId,
    },
    /// `logout`.
    Logout,
    /// `authenticate`.
    Authenticate {
        /// The id of the way.
        method: String,
    },
    /// `session/set_config_option`.
    SetOption {
        /// The session.
        session: SessionId,
        /// The option's id.
        option: String,
        /// The value's id; `true` or `false` of one that is on or off.
        value: String,
        /// Whether it is on or off.
        is_switch: bool,
    },
    /// `session/set_mode`.
    SetMode {
        /// The session.
        session: SessionId,
        /// The mode's id.
        mode: String,
    },
    /// `session/set_model`, which only agents have that announce `models`.
    SetModel {
        /// The session.
        session: SessionId,
        /// The model's id.
        model: String,
    },
    /// `session/prompt`.
    Prompt {
        /// The session.
        session: SessionId,
        /// Its content.
        blocks: Vec<PromptBlock>,
    },
}

/// What an agent can do with sessions, besides beginning them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol's capabilities are independent of each other")]
pub struct SessionCapabilities {
    /// `session/load`.
    pub load: bool,
    /// `session/resume`.
    pub resume: bool,
    /// `session/fork`.
    pub fork: bool,
    /// `session/list`.
    pub list: bool,
    /// `session/close`.
    pub close: bool,
    /// `session/delete`.
    pub delete: bool,
    /// MCP servers over HTTP.
    pub mcp_http: bool,
    /// MCP servers over server-sent events.
    pub mcp_sse: bool,
    /// Further folders of a session's workspace.
    pub additional_directories: bool,
    /// A text of the user's for the model, behind the agent's own.
    pub system_prompt: bool,
    /// `logout`.
    pub logout: bool,
}

/// What a request of ours was answered with.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// To `initialize`.
    Initialized {
        /// The version that the agent speaks.
        protocol_version: u64,
        /// The agent's own name for itself (`agentInfo.name`).
        agent_name: Option<String>,
        /// What it takes in prompts.
        takes: PromptCapabilities,
        /// What it can do with sessions.
        can: SessionCapabilities,
        /// How the user can sign in.
        sign_in: Vec<SignInMethod>,
    },
    /// To `session/new` and `session/fork`.
    SessionCreated {
        /// Its id.
        session: SessionId,
        /// What it can be set to.
        chosen: Choices,
    },
    /// To `session/load` and `session/resume`.
    SessionOpened {
        /// What it can be set to.
        chosen: Choices,
    },
    /// To `session/list`: a page.
    Sessions {
        /// What is on it.
        sessions: Vec<SessionInfo>,
        /// Where the next one begins.
        next: Option<String>,
    },
    /// To `session/set_config_option`: all options then, if the agent tells them.
    OptionSet(Option<Choices>),
    /// To what has no result.
    Done,
    /// To `session/prompt`.
    TurnEnded {
        /// The stop reason as sent.
        stop_reason: String,
        /// Tokens that the session has used up so far, if the agent counts them.
        tokens: Option<u64>,
    },
}

/// A notification of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentNotice {
    /// `session/cancel`.
    Cancel {
        /// The session.
        session: SessionId,
    },
    /// `$/cancel_request`: we do not need the answer to that call any more.
    CancelRequest {
        /// The call.
        call: CallId,
    },
}

/// Our answer to an agent's request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A permission: the option's id.
    Selected(String),
    /// A permission that nobody will answer any more.
    Cancelled,
    /// What the user filled in; nothing where an address was to be opened.
    ElicitationAccepted(Filled),
    /// The user does not want to answer a question.
    ElicitationDeclined,
    /// Nobody will answer a question any more.
    ElicitationCancelled,
    /// The text of a file.
    Content(String),
    /// A terminal was created: our name for it.
    TerminalCreated(String),
    /// What is on a terminal, whether its beginning is missing, and how its command ended if it did.
    TerminalOutput(String, bool, Option<TerminalExit>),
    /// How the command of a terminal ended.
    TerminalExited(TerminalExit),
    /// Done, nothing to tell.
    Done,
    /// Refused or failed.
    Error(RpcError),
}

/// A JSON-RPC error, ours or the agent's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .code.map(|code| format!(" (error {code})")).unwrap_or_default())]
pub struct RpcError {
    /// The code; an agent may leave it out.
    pub code: Option<i64>,
    /// One sentence.
    pub message: String,
}

impl RpcError {
    /// The message cannot be used (JSON-RPC 2.0).
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method is not served (JSON-RPC 2.0).
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters cannot be used (JSON-RPC 2.0).
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something went wrong on our side (JSON-RPC 2.0).
    pub const INTERNAL: i64 = -32603;
    /// The user must sign in first (ACP).
    pub const AUTH_REQUIRED: i64 = -32000;
    /// The file or session does not exist (ACP).
    pub const NOT_FOUND: i64 = -32002;
    /// The request was cancelled (ACP).
    pub const CANCELLED: i64 = -32800;

    /// An error of ours.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code: Some(code), message: message.into() }
    }
}
