//! What the user configured, as the core needs it. Lua has checked names and types before.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::mcp::McpServer;
use super::permission::judge::Rules;

/// How one agent is started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSpec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables set over Neovim's environment.
    pub env: Vec<(String, String)>,
    /// Where it runs; the chat's directory if not set.
    pub cwd: Option<PathBuf>,
    /// What its sessions are set to at their beginning: options by id or category, and their values.
    pub options: BTreeMap<String, String>,
}

/// All settings of the core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Agents by name: the built-in ones that were found, and the user's.
    pub agents: BTreeMap<String, AgentSpec>,
    /// The agent of a chat that names none.
    pub default_agent: String,
    /// MCP servers, by name.
    pub mcp_servers: Vec<McpServer>,
    /// Further folders of every session's workspace, absolute.
    pub additional_directories: Vec<PathBuf>,
    /// What every session's model is told.
    pub system_prompt: Option<String>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Milliseconds between two looks at where an agent is.
    pub follow_interval: u64,
    /// Whether the agent hears with the next prompt what the user rejected.
    pub tell_rejections: bool,
    /// What is allowed and denied without the user.
    pub rules: Rules,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until `initialize` is answered.
    pub initialize: u64,
    /// Until `session/new` is answered.
    pub session_new: u64,
    /// Until a cancelled turn that does not end is ended by us.
    pub cancel_grace: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        // The slowest agent seen took 22 s for `initialize` and 12 s for `session/new` on a busy machine.
        Self { initialize: 60_000, session_new: 60_000, cancel_grace: 10_000 }
    }
}

/// A time of so many milliseconds as the user reads it: `30 s`, `1.5 s`.
pub(super) fn duration_text(milliseconds: u64) -> String {
    let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
    if rest == 0 {
        return format!("{seconds} s");
    }
    let fraction = format!("{rest:03}");
    format!("{seconds}.{} s", fraction.trim_end_matches('0'))
}
