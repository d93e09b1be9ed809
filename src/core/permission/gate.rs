//! Our own gates: what an agent does through us without having asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::facts::{Command, Facts};
use super::judge::Verdict;
use super::rule::Action;
use super::weigh::shown_below;
use super::{Permission, Subject};
use serde_json::json;

use crate::core::effect::TerminalJob;
use crate::core::ids::{ChatId, OpenId};
use crate::core::message::{PermissionOption, Reply, RpcError};
use crate::core::state::State;
use crate::core::tool_call::{Location, ToolCall, ToolContent};
use crate::core::transcript::Severity;

/// What was answered about a call of this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::core) struct Grant {
    is_allowed: bool,
    is_look: bool,
    paths: Vec<PathBuf>,
    command: Option<Command>,
    folder: PathBuf,
}

impl Grant {
    pub(super) fn new(is_allowed: bool, facts: &Facts) -> Self {
        // A command may do anything with the paths that it names.
        let paths = if facts.runs() { &[][..] } else { &facts.places };
        Self {
            is_allowed,
            is_look: is_look(&facts.kind),
            paths: paths.iter().map(|place| place.resolved.clone()).collect(),
            // A call that is said to be something else was not allowed to run anything.
            command: facts.command.clone().filter(|_| facts.kind == "execute" || !is_allowed),
            folder: facts.resolved_folder().to_owned(),
        }
    }

    /// Whether what the agent does through us is what it was answered about.
    fn is_about(&self, facts: &Facts) -> bool {
        if facts.runs() {
            let (Some(allowed), Some(command)) = (&self.command, &facts.command) else { return false };
            return self.folder == facts.resolved_folder() && is_same_command(allowed, command, facts);
        }
        let covers =
            if self.is_allowed { !self.is_look || is_look(&facts.kind) } else { self.is_look == is_look(&facts.kind) };
        covers && !facts.places.is_empty() && facts.places.iter().all(|place| self.paths.contains(&place.resolved))
    }
}

fn is_look(kind: &str) -> bool {
    matches!(kind, "read" | "search")
}

/// Whether a command that is run is one that was shown. kimi-code goes into the folder first: `cd '/project' && …`.
fn is_same_command(shown: &Command, run: &Command, facts: &Facts) -> bool {
    let inner = run.line.strip_prefix("cd '").and_then(|rest| rest.split_once("' && "));
    let is_there = |folder: &str| {
        Path::new(folder) == facts.resolved_folder() || facts.folder.as_deref() == Some(Path::new(folder))
    };
    shown.is_same(run) || inner.is_some_and(|(folder, line)| is_there(folder) && shown.is_same(&Command::of_line(line)))
}

/// Variables that an agent may set without changing what a command does.
fn is_harmless_variable(name: &str, value: &str) -> bool {
    const HARMLESS: [&str; 14] = [
        "NO_COLOR",
        "FORCE_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "COLORTERM",
        "TERM",
        "LANG",
        "LC_ALL",
        "COLUMNS",
        "LINES",
        "CI",
        "GIT_TERMINAL_PROMPT",
        "DEBIAN_FRONTEND",
        "PYTHONUNBUFFERED",
    ];
    const SHELLS: [&str; 6] = ["/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh", "/usr/bin/fish"];
    let is_pager = matches!(name, "PAGER" | "GIT_PAGER" | "MANPAGER" | "GH_PAGER") && matches!(value, "cat" | "");
    HARMLESS.contains(&name) || is_pager || (name == "SHELL" && SHELLS.contains(&value))
}

/// The ways to answer a question of ours.
fn options() -> Vec<PermissionOption> {
    [
        ("agentchat-allow-once", "Allow once", "allow_once"),
        ("agentchat-allow-always", "Always allow", "allow_always"),
        ("agentchat-reject-once", "Reject", "reject_once"),
        ("agentchat-reject-always", "Always reject", "reject_always"),
    ]
    .map(|(id, name, kind)| PermissionOption { id: id.into(), name: name.into(), kind: kind.into() })
    .to_vec()
}

/// The error for an agent whom something is refused.
pub(super) fn refused(reason: &str) -> RpcError {
    let text = format!("{reason}. Nothing was done; go on without it, or ask the user how to");
    RpcError::new(RpcError::INVALID_PARAMS, text)
}

impl State {
    /// An agent wants to read a file through us, or write one (`content`).
    pub(in crate::core) fn gate_file(&mut self, chat: ChatId, request: OpenId, path: &Path, content: Option<Arc<str>>) {
        let mut described = ToolCall::new(String::new(), self.now);
        let (name, kind) =
            if content.is_some() { ("fs/write_text_file", "edit") } else { ("fs/read_text_file", "read") };
        described.name = Some(name.to_owned());
        described.kind = kind.into();
        described.locations = vec![Location { path: path.display().to_string(), line: None }];
        described.content = content.map(ToolContent::Text).into_iter().collect();
        self.weigh(chat, request, Subject::Gate(Box::new(described)), options());
    }

    /// An agent wants to run a command through us.
    pub(in crate::core) fn gate_terminal(&mut self, request: OpenId, job: TerminalJob) {
        let own = self.chats.get(&job.chat).map(|chat| chat.cwd.clone()).unwrap_or_default();
        let TerminalJob { chat, ref wanted, ref cwd, .. } = job;
        let mut described = ToolCall::new(String::new(), self.now);
        described.name = Some("terminal/create".to_owned());
        described.title = format!("Run a command: {}", wanted.line());
        described.kind = "execute".into();
        let odd = wanted.env.iter().filter(|(name, value)| !is_harmless_variable(name, value));
        let odd = odd.map(|(name, value)| format!("with {name}={value}"));
        let folder = (*cwd != own).then(|| format!("in {}", cwd.display()));
        let details: Vec<String> = folder.into_iter().chain(odd).collect();
        if !details.is_empty() {
            described.content.push(ToolContent::Text(details.join("\n").into()));
        }
        let folder = cwd.display().to_string();
        described.raw_input = Some(Arc::new(json!({ "command": wanted.command, "args": wanted.args, "cwd": folder })));
        self.terminal_work.insert(request, job);
        self.weigh(chat, request, Subject::Gate(Box::new(described)), options());
    }

    /// Whether a request is to run a command with variables of the agent's own: it is another command than it seems.
    pub(super) fn has_odd_environment(&self, request: OpenId) -> bool {
        let job = self.terminal_work.get(&request);
        job.is_some_and(|job| job.wanted.env.iter().any(|(name, value)| !is_harmless_variable(name, value)))
    }

    /// Decides about what an agent does through us. Deny rules first, then what the user said in this turn, then the others.
    pub(super) fn decide_gate(&mut self, position: usize, verdict: Verdict) {
        let permission = &self.permissions[position];
        let (chat, request) = (permission.chat, permission.request);
        if permission.is_shown {
            self.show_permissions();
            return;
        }
        let grants = self.chats.get(&chat).and_then(|chat| chat.turn.as_ref()).map(|turn| turn.grants.as_slice());
        let found = grants.unwrap_or_default().iter().rposition(|grant| grant.is_about(&permission.facts));
        let said = found.and_then(|at| Some(grants?.get(at)?.is_allowed));
        let facts = permission.facts.clone();
        let is_free = !facts.runs() && facts.is_inside();
        // Nobody is asked anything about what is being cancelled, and no command is started.
        let is_too_late = self.is_cancelling(chat) && (facts.runs() || !is_free);
        match (verdict, said) {
            (Verdict::Deny(by), _) => {
                let permission = self.take_described(position);
                self.tell_answer(&permission, Action::Deny, &by, None);
                self.refuse_by(request, &by);
            }
            (_, Some(false)) => {
                let permission = self.take_described(position);
                let text = format!("Refused, since you rejected it in this turn: {}", self.subject_title(&permission));
                self.note(chat, Severity::Warning, text);
                self.reply(request, Reply::Error(refused("The user rejected this in this turn")));
            }
            _ if is_too_late => {
                self.permissions.remove(position);
                let error = RpcError::new(RpcError::CANCELLED, "The turn is being cancelled");
                self.reply(request, Reply::Error(error));
            }
            (_, Some(true)) => {
                // A command that was allowed once runs once.
                if let (true, Some(at), Some(turn)) =
                    (facts.runs(), found, self.chats.get_mut(&chat).and_then(|chat| chat.turn.as_mut()))
                {
                    turn.grants.remove(at);
                }
                self.open_gate(position);
            }
            (Verdict::Allow(by), None) => {
                // Of what is free anyway there is nothing to tell.
                if !is_free {
                    let permission = self.take_described(position);
                    self.tell_answer(&permission, Action::Allow, &by, None);
                    self.permissions.insert(position, permission);
                }
                self.open_gate(position);
            }
            (Verdict::Default, None) if is_free => self.open_gate(position),
            (Verdict::Default | Verdict::Ask, None) => {
                let permission = self.take_described(position);
                self.permissions.insert(position, permission);
                self.file_is_asked(request);
                self.show_permission(position);
            }
        }
        self.start_file_work();
    }

    /// Takes a request out of the list, with a title that says what is wanted.
    fn take_described(&mut self, position: usize) -> Permission {
        let mut permission = self.permissions.remove(position);
        let Permission { subject, facts, .. } = &mut permission;
        if let (Subject::Gate(described), Some(place)) = (subject, facts.places.first())
            && described.title.is_empty()
        {
            let verb = if described.kind == "read" { "Read" } else { "Write" };
            let whereabouts = if facts.is_inside() { "" } else { " outside of the project" };
            described.title = format!("{verb}{whereabouts}: {}", shown_below(&place.resolved, &facts.root));
        }
        permission
    }

    fn open_gate(&mut self, position: usize) {
        let permission = self.permissions.remove(position);
        self.pass_gate(permission.request, &permission.facts);
    }

    /// What waited at a gate may go on.
    pub(super) fn pass_gate(&mut self, request: OpenId, facts: &Facts) {
        if let Some(job) = self.terminal_work.remove(&request) {
            self.start_terminal(job);
        } else if let Some(place) = facts.places.first() {
            self.clear_file(request, place.resolved.clone());
        }
        self.start_file_work();
    }
}
