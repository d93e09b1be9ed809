//! The configuration as Lua sends it. Lua has checked names and types; what is odd all the same counts as not set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rmpv::Value;

use crate::acp::lines::DEFAULT_MAX_LINE;
use crate::agents;
use crate::checkpoint::index::Limits;
use crate::core::config::{AgentSpec, Config, Timeouts};
use crate::core::mcp::{McpServer, McpTransport};
use crate::core::permission::judge::Rules;
use crate::core::permission::rule::{Action, Rule, Written};
use crate::files::paths;
use crate::nvim::incoming::{array, get, integer, named, string, text};
use crate::terminal::pty::Environment;
use crate::{process, profiles};

/// Milliseconds between two looks at where an agent is: four jumps a second.
const DEFAULT_FOLLOW_INTERVAL: u64 = 250;
/// Milliseconds for which a write waits for a user who is busy: with what Neovim's answers need, ten seconds.
const DEFAULT_BUSY_PATIENCE: u64 = 9_000;

/// What the user configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    agents: BTreeMap<String, AgentSpec>,
    mcp_servers: Vec<McpServer>,
    additional_directories: Vec<PathBuf>,
    system_prompt: Option<String>,
    default_agent: Option<String>,
    timeouts: Timeouts,
    follow_interval: u64,
    tell_rejections: bool,
    rules: Rules,
    /// Where the helper may keep things; `None` if Lua did not say.
    pub(super) state: Option<PathBuf>,
    /// How much is kept to undo turns.
    pub(super) checkpoints: Limits,
    /// Longest line of an agent that is kept, in bytes.
    pub(super) max_line_bytes: usize,
    /// How long a write waits for a user who is busy in the buffer, in milliseconds.
    pub(super) busy_patience: u64,
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
            mcp_servers: Vec::new(),
            additional_directories: Vec::new(),
            system_prompt: None,
            timeouts: Timeouts::default(),
            follow_interval: DEFAULT_FOLLOW_INTERVAL,
            tell_rejections: true,
            rules: Rules::default(),
            state: None,
            checkpoints: Limits::default(),
            max_line_bytes: DEFAULT_MAX_LINE,
            busy_patience: DEFAULT_BUSY_PATIENCE,
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
            mcp_servers: mcp_servers(config),
            additional_directories: array(config, "additional_directories")
                .iter()
                .filter_map(text)
                .map(PathBuf::from)
                .collect(),
            system_prompt: string(config, "system_prompt").filter(|text| !text.trim().is_empty()),
            timeouts: Timeouts {
                initialize: integer(times, "initialize").unwrap_or(defaults.timeouts.initialize),
                session_new: integer(times, "session_new").unwrap_or(defaults.timeouts.session_new),
                cancel_grace: integer(times, "cancel_grace").unwrap_or(defaults.timeouts.cancel_grace),
            },
            follow_interval: integer(config, "follow_interval").unwrap_or(defaults.follow_interval),
            tell_rejections: get(config, "tell_rejections")
                .and_then(Value::as_bool)
                .unwrap_or(defaults.tell_rejections),
            rules: rules(config),
            state: string(config, "state").map(PathBuf::from),
            checkpoints: limits(get(config, "checkpoints").unwrap_or(&nil)),
            max_line_bytes: integer(config, "max_line_bytes")
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(defaults.max_line_bytes),
            busy_patience: integer(times, "busy").unwrap_or(defaults.busy_patience),
            terminal_env: Environment::default().with(terminal_env(config)),
            save_dirty: get(config, "save_dirty").and_then(Value::as_bool).unwrap_or(defaults.save_dirty),
        }
    }

    /// The rules for permissions, each in a line.
    pub(super) fn rule_texts(&self) -> Vec<String> {
        let mut texts: Vec<String> = self.rules.rules.iter().map(Rule::text).collect();
        texts.dedup();
        texts
    }

    /// The core's part of it, and the names of all agents.
    pub(super) fn core_config(&self) -> (Config, Vec<String>) {
        let own = process::guard::own_executable().unwrap_or_else(|_| PathBuf::from("agentchat"));
        let (agents, default_agent) = agents::available(
            self.agents.clone(),
            self.default_agent.clone(),
            &own,
            is_on_path,
            profiles::is_any_configured(),
        );
        let names = agents.keys().cloned().collect();
        let Self { timeouts, follow_interval, tell_rejections, .. } = *self;
        let config = Config {
            agents,
            default_agent,
            mcp_servers: self.mcp_servers.clone(),
            additional_directories: self.additional_directories.clone(),
            system_prompt: self.system_prompt.clone(),
            timeouts,
            follow_interval,
            tell_rejections,
            rules: self.rules.clone(),
        };
        (config, names)
    }
}

/// The MCP servers, as `lua/agentchat/config_mcp.lua` has checked them.
fn mcp_servers(config: &Value) -> Vec<McpServer> {
    let pairs = |value: &Value, key: &str| -> Vec<(String, String)> {
        named(value, key).into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect()
    };
    let server = |value: &Value| {
        let url = string(value, "url").unwrap_or_default();
        let transport = match string(value, "type")?.as_str() {
            "stdio" => McpTransport::Stdio {
                command: array(value, "command").iter().filter_map(text).collect(),
                env: pairs(value, "env"),
            },
            "sse" => McpTransport::Sse { url, headers: pairs(value, "headers") },
            _ => McpTransport::Http { url, headers: pairs(value, "headers") },
        };
        Some(McpServer { name: string(value, "name")?, transport })
    };
    array(config, "mcp_servers").iter().filter_map(server).collect()
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

/// The rules for permissions. Whatever cannot be used makes the rest careful.
fn rules(config: &Value) -> Rules {
    let home = std::env::home_dir();
    let mut found = Vec::new();
    let mut is_broken = get(config, "permissions_broken").and_then(Value::as_bool).unwrap_or(false);
    for value in array(config, "permissions") {
        let action = match string(value, "action").as_deref() {
            Some("allow") => Action::Allow,
            Some("deny") => Action::Deny,
            Some("ask") => Action::Ask,
            _ => {
                is_broken = true;
                continue;
            }
        };
        let path = string(value, "path").map(|path| expanded(&path, home.as_deref()));
        let written = |path| Written {
            action,
            kind: string(value, "kind"),
            tool: string(value, "tool"),
            agent: string(value, "agent"),
            path,
            command: string(value, "command"),
        };
        // A folder that is a link is both: what it is called, and what it is.
        let variants = [path.as_deref().and_then(without_links), path.clone()];
        let variants = variants.into_iter().flatten().map(Some);
        let variants: Vec<_> = if path.is_none() { vec![None] } else { variants.collect() };
        for path in variants {
            match Rule::new(written(path)) {
                Ok(rule) => found.push(rule),
                Err(error) => {
                    tracing::error!(%error, "a rule for permissions cannot be used");
                    is_broken = true;
                }
            }
        }
    }
    Rules { rules: found, is_broken }
}

/// A path of a rule with `~` replaced.
fn expanded(path: &str, home: Option<&Path>) -> String {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ => path.to_owned(),
    }
}

/// A glob whose folders that are links are replaced by what they lead to; `None` if there are none.
fn without_links(glob: &str) -> Option<String> {
    let is_pattern = |part: &str| part.contains(['*', '?', '[', '{', '\\']);
    let fixed: Vec<&str> = glob.split('/').take_while(|part| !is_pattern(part)).collect();
    let (fixed, rest) = glob.split_at(fixed.join("/").len());
    if !Path::new(fixed).is_absolute() {
        return None;
    }
    let resolved = paths::resolve(Path::new(fixed), None).unwrap_or_else(|path| path).display().to_string();
    let resolved = resolved.trim_end_matches('/');
    (resolved != fixed.trim_end_matches('/')).then(|| format!("{resolved}{rest}"))
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
    let options = named(spec, "options").into_iter().filter_map(|(name, value)| Some((name, text(value)?))).collect();
    let command = [words("command"), words("args")].concat();
    AgentSpec { command, env, cwd: string(spec, "cwd").map(PathBuf::from), options }
}
