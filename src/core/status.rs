//! The state of a chat as the user, their statusline and their scripts see it.

use super::ids::SessionId;
use super::message::Usage;
use super::plan::PlanProgress;
use super::prompt::PromptCapabilities;

/// What a chat is doing. The words are those of `status().state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatState {
    /// No agent runs.
    Stopped,
    /// The agent or the session is not ready yet.
    Starting,
    /// Ready for a prompt.
    Idle,
    /// A turn runs.
    Running,
    /// A turn was told to stop.
    Cancelling,
    /// Something failed; see `error`.
    Failed,
}

impl ChatState {
    /// The word in `status().state`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Cancelling => "cancelling",
            Self::Failed => "failed",
        }
    }
}

/// A snapshot of a chat's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// What it is doing.
    pub state: ChatState,
    /// What exactly, while starting.
    pub phase: Option<&'static str>,
    /// The agent's name in the configuration.
    pub agent: String,
    /// The session, once there is one.
    pub session: Option<SessionId>,
    /// The session's title.
    pub title: Option<String>,
    /// The current mode.
    pub mode: Option<String>,
    /// The current model.
    pub model: Option<String>,
    /// Use of the context window.
    pub usage: Option<Usage>,
    /// How far the plan of the running turn is.
    pub plan: Option<PlanProgress>,
    /// What the agent takes in prompts, once that is known.
    pub takes: Option<PromptCapabilities>,
    /// Open permission requests.
    pub permissions: usize,
    /// Open questions beside those.
    pub elicitations: usize,
    /// The number of the newest turn; 0 before the first.
    pub turn: u64,
    /// Whether something was said here that the agent does not know any more.
    pub lost: bool,
    /// Prompts that wait.
    pub queued: usize,
    /// Why it failed.
    pub error: Option<String>,
}
