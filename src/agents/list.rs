//! `agentchat agents`: which agents there are, for people, and as JSON lines for the plugin's list and `:checkhealth`.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt as _;

use super::probe::{self, Checked};
use super::{KNOWN, available, built_in, known};
use crate::core::config::AgentSpec;
use crate::{process, profiles};

/// What `agentchat agents` takes.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Start each agent that is there and tell whether it answers and starts a session
    #[arg(long)]
    check: bool,
    /// Print JSON lines: one for each agent, and another one when more is known of it
    #[arg(long)]
    json: bool,
    /// Read agents and default as they are configured in Neovim, one JSON object, from standard input
    #[arg(long, hide = true)]
    configured: bool,
}

/// What Neovim has configured.
#[derive(Debug, Default, Deserialize)]
struct Configured {
    #[serde(default)]
    agents: BTreeMap<String, ConfiguredAgent>,
    default_agent: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ConfiguredAgent {
    command: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
}

/// Where an agent is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Source {
    /// The user's configuration.
    Configured,
    /// The table of known agents.
    Known,
    /// It is part of this program.
    BuiltIn,
}

/// All that is known of one agent.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    source: Source,
    command: Vec<String>,
    is_default: bool,
    /// Where its program is; else `problem` says why not.
    path: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    install: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sign_in: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<Checked>,
    #[serde(skip)]
    spec: AgentSpec,
}

/// Runs the command.
///
/// # Errors
/// When standard output cannot be written, or standard input is not what [`ListArgs::configured`] promises.
pub async fn run(args: ListArgs) -> io::Result<()> {
    let configured = if args.configured { read_configured().await? } else { Configured::default() };
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    let agents = list(configured, &cwd);
    if args.json {
        for agent in &agents {
            print_json(agent)?;
        }
    }
    // The look starts a session, which should have nothing to read.
    let empty = tempfile::tempdir()?;
    let (there, mut missing): (Vec<Listed>, Vec<Listed>) = agents.into_iter().partition(|agent| agent.path.is_some());
    let mut looks: FuturesUnordered<_> =
        there.into_iter().map(|agent| look(agent, args.check, &cwd, empty.path())).collect();
    let mut known_now = Vec::new();
    while let Some(agent) = looks.next().await {
        if args.json {
            print_json(&agent)?;
        }
        known_now.push(agent);
    }
    if !args.json {
        known_now.sort_by(|one, other| (!one.is_default, &one.name).cmp(&(!other.is_default, &other.name)));
        known_now.append(&mut missing);
        print(&table(&known_now))?;
    }
    Ok(())
}

async fn read_configured() -> io::Result<Configured> {
    let mut text = Vec::new();
    tokio::io::stdin().read_to_end(&mut text).await?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// The user's agents, those that are part of this program and those that are known, there or not.
fn list(configured: Configured, cwd: &Path) -> Vec<Listed> {
    let own = process::guard::own_executable().unwrap_or_else(|_| PathBuf::from("agentchat"));
    let specs: BTreeMap<String, AgentSpec> = configured
        .agents
        .into_iter()
        .map(|(name, agent)| {
            let env = agent.env.into_iter().collect();
            (name, AgentSpec { command: agent.command, env, cwd: agent.cwd, ..AgentSpec::default() })
        })
        .collect();
    let names: Vec<String> = specs.keys().cloned().collect();
    let is_there = |program: &str| {
        let spec = AgentSpec { command: vec![program.to_owned()], ..AgentSpec::default() };
        probe::find(&spec, cwd).is_ok()
    };
    let (mut offered, default) =
        available(specs, configured.default_agent, &own, is_there, profiles::is_any_configured());
    for known in KNOWN {
        offered.entry(known.name.to_owned()).or_insert_with(|| known.spec());
    }
    let own_names = built_in(&own).map(|(name, _)| name);
    let mut agents: Vec<Listed> = offered
        .into_iter()
        .map(|(name, spec)| {
            let source = if names.contains(&name) {
                Source::Configured
            } else if own_names.contains(&name.as_str()) {
                Source::BuiltIn
            } else {
                Source::Known
            };
            let found = probe::find(&spec, cwd);
            let hints = known(&name).filter(|_| source == Source::Known);
            Listed {
                source,
                command: spec.command.clone(),
                is_default: name == default,
                problem: found.as_ref().err().cloned(),
                path: found.ok(),
                install: hints.map(|known| known.install),
                sign_in: hints.map(|known| known.sign_in),
                version: (source == Source::BuiltIn).then(|| env!("CARGO_PKG_VERSION").to_owned()),
                checked: None,
                name,
                spec,
            }
        })
        .collect();
    // The default first, also if it is missing, then what can be started, then what was meant to.
    agents.sort_by_key(|agent| (!agent.is_default, agent.path.is_none(), agent.source == Source::Known));
    agents
}

/// Finds out more of an agent that is there.
async fn look(mut agent: Listed, check: bool, cwd: &Path, empty: &Path) -> Listed {
    // Of a command like `ssh host agent`, the version would be that of ssh.
    if agent.source == Source::Known {
        agent.version = probe::version(&agent.spec, cwd).await;
    }
    if check {
        let checked = probe::check(&agent.spec, empty).await;
        agent.version = checked.version.clone().or(agent.version);
        agent.checked = Some(checked);
    }
    agent
}

/// The table that people read.
fn table(agents: &[Listed]) -> String {
    let width = agents.iter().map(|agent| agent.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for agent in agents {
        let mut notes = Vec::new();
        if agent.is_default {
            notes.push("default".to_owned());
        }
        match (&agent.path, &agent.problem) {
            (Some(_), _) => notes.push(agent.version.clone().unwrap_or_else(|| "version unknown".to_owned())),
            (None, Some(problem)) if agent.source == Source::Configured => notes.push(problem.clone()),
            (None, _) => notes.push(format!("not installed ({})", agent.install.unwrap_or("see its documentation"))),
        }
        if let Some(checked) = &agent.checked {
            notes.push(match (&checked.problem, checked.starts_session) {
                (Some(problem), _) => problem.clone(),
                (None, Some(false)) => format!("not signed in ({})", agent.sign_in.unwrap_or("see its documentation")),
                (None, _) => "starts a session".to_owned(),
            });
        }
        let line = format!("{:width$}  {}  [{}]\n", agent.name, notes.join(", "), agent.command.join(" "));
        text.push_str(&line);
    }
    text
}

fn print_json(agent: &Listed) -> io::Result<()> {
    let mut line = serde_json::to_string(agent).map_err(io::Error::other)?;
    line.push('\n');
    print(&line)
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
