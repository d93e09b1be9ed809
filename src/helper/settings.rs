//! The configuration as Lua sends it. Lua has checked names and types; what is odd all the same counts as not set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rmpv::Value;

use crate::acp::lines::DEFAULT_MAX_LINE;
use crate::agents;
use crate::checkpoint::index::Limits;
use crate::core::config::{AgentSpec, Config, Timeouts};
use crate::nvim::incoming::{array, get, integer, named, string, text};
use crate::process;
use crate::terminal::pty::Environment;

/// Milliseconds between two looks at where an agent is: four jumps a second.
const DEFAULT_FOLLOW_INTERVAL: u64 = 250;

/// What the user configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    agents: BTreeMap<String, AgentSpec>,
    default_agent: Option<String>,
    timeouts: Timeouts,
    follow_interval: u64,
    tell_rejections: bool,
    /// Where the helper may keep things; `None` if Lua did not say.
    pub(super) state: Option<PathBuf>,
    /// How much is kept to undo turns.
    pub(super) checkpoints: Limits,
    /// Longest line of an agent that is kept, in bytes.
    pub(super) max_line_bytes: usize,
    /// The variables of commands in terminals.
    pub(super) terminal_env: Environment,
    /// Whether a write of an agent may save what the user has not saved themselves.
    pub(super) save_dirty: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            agents: BTreeMap::new(),
            default_agent: None,
            timeouts: Timeouts::default(),
            follow_interval: DEFAULT_FOLLOW_INTERVAL,
            tell_rejections: true,
            state: None,
            checkpoints: Limits::default(),
            max_line_bytes: DEFAULT_MAX_LINE,
            terminal_env: Environment::default(),
            save_dirty: false,
        }
    }
}

impl Settings {
    pub(super) fn from_lua(config: &Value) -> Self {
        let defaults = Self::default();
        let nil = Value::Nil;
        let times = get(config, "timeouts").unwrap_or(&nil);
        Self {
            agents: named(config, "agents").into_iter().map(|(name, spec)| (name, agent(spec))).collect(),
            default_agent: string(config, "default_agent"),
            timeouts: Timeouts {
                initialize: integer(times, "initialize").unwrap_or(defaults.timeouts.initialize),
                session_new: integer(times, "session_new").unwrap_or(defaults.timeouts.session_new),
                cancel_grace: integer(times, "cancel_grace").unwrap_or(defaults.timeouts.cancel_grace),
            },
            follow_interval: integer(config, "follow_interval").unwrap_or(defaults.follow_interval),
            tell_rejections: get(config, "tell_rejections")
                .and_then(Value::as_bool)
                .unwrap_or(defaults.tell_rejections),
            state: string(config, "state").map(PathBuf::from),
            checkpoints: limits(get(config, "checkpoints").unwrap_or(&nil)),
            max_line_bytes: integer(config, "max_line_bytes")
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(defaults.max_line_bytes),
            terminal_env: Environment::default().with(terminal_env(config)),
            save_dirty: get(config, "save_dirty").and_then(Value::as_bool).unwrap_or(defaults.save_dirty),
        }
    }

    /// The core's part of it, and the names of all agents.
    pub(super) fn core_config(&self) -> (Config, Vec<String>) {
        let own = process::guard::own_executable().unwrap_or_else(|_| PathBuf::from("agentchat"));
        let (agents, default_agent) =
            agents::available(self.agents.clone(), self.default_agent.clone(), &own, is_on_path);
        let names = agents.keys().cloned().collect();
        let Self { timeouts, follow_interval, tell_rejections, .. } = *self;
        (Config { agents, default_agent, timeouts, follow_interval, tell_rejections }, names)
    }
}

fn is_on_path(program: &str) -> bool {
    process::find_program(program, Path::new("/"), std::env::var_os("PATH").as_deref()).is_ok()
}

/// The variables that the user sets for commands in terminals, or removes with `false`.
fn terminal_env(config: &Value) -> Vec<(String, Option<String>)> {
    let nil = Value::Nil;
    let env = named(get(config, "terminal").unwrap_or(&nil), "env").into_iter();
    env.filter(|(name, _)| !name.is_empty() && !name.contains(['=', '\0']))
        .map(|(name, value)| (name, text(value)))
        .collect()
}

fn limits(config: &Value) -> Limits {
    let defaults = Limits::default();
    Limits {
        files: integer(config, "max_files").and_then(|files| usize::try_from(files).ok()).unwrap_or(defaults.files),
        file_bytes: integer(config, "max_file_bytes").unwrap_or(defaults.file_bytes),
        bytes: integer(config, "max_bytes").unwrap_or(defaults.bytes),
    }
}

fn agent(spec: &Value) -> AgentSpec {
    let env = named(spec, "env").into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect();
    let words = |key: &str| array(spec, key).iter().filter_map(text).collect::<Vec<_>>();
    AgentSpec { command: [words("command"), words("args")].concat(), env, cwd: string(spec, "cwd").map(PathBuf::from) }
}
