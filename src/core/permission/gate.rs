//! Our own gates: what an agent does through us without having asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::facts::Facts;
use super::judge::Verdict;
use super::rule::Action;
use super::weigh::shown_below;
use super::{Permission, Subject};
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
    lines: Vec<String>,
}

impl Grant {
    pub(super) fn new(is_allowed: bool, facts: &Facts) -> Self {
        let paths = facts.places.iter().map(|place| place.resolved.clone()).collect();
        let lines = facts.lines.iter().chain(&facts.hints).cloned().collect();
        // A command may do anything with the paths that it names.
        Self { is_allowed, is_look: is_look(&facts.kind), paths: if facts.runs() { Vec::new() } else { paths }, lines }
    }

    /// Whether what the agent does through us is what it was answered about.
    fn is_about(&self, facts: &Facts) -> bool {
        if facts.runs() {
            return facts.lines.iter().any(|line| self.lines.iter().any(|known| is_same_line(known, line)));
        }
        let covers =
            if self.is_allowed { !self.is_look || is_look(&facts.kind) } else { self.is_look == is_look(&facts.kind) };
        covers && !facts.places.is_empty() && facts.places.iter().all(|place| self.paths.contains(&place.resolved))
    }
}

fn is_look(kind: &str) -> bool {
    matches!(kind, "read" | "search")
}

/// Whether a line that is run is one that was shown.
fn is_same_line(shown: &str, run: &str) -> bool {
    let (shown, run) = (shown.trim(), run.trim());
    // kimi-code asks with "Requesting approval to Running: …".
    let is_told = |line: &str| shown == line || shown.strip_suffix(line).is_some_and(|before| before.ends_with(": "));
    // It also goes into the project's folder first: `cd '/project' && …`.
    let without_folder = run.strip_prefix("cd '").and_then(|rest| rest.split_once("' && ")).map(|(_, line)| line);
    !run.is_empty() && (is_told(run) || without_folder.is_some_and(is_told))
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

    /// Decides about what an agent does through us. Deny rules first, then what the user said in this turn, then the others.
    pub(super) fn decide_gate(&mut self, position: usize, verdict: Verdict) {
        let permission = &self.permissions[position];
        let (chat, request) = (permission.chat, permission.request);
        if permission.is_shown {
            self.show_permissions();
            return;
        }
        let grants = self.chats.get(&chat).and_then(|chat| chat.turn.as_ref()).map(|turn| turn.grants.as_slice());
        let said = grants.unwrap_or_default().iter().rev().find(|grant| grant.is_about(&permission.facts));
        let (said, facts) = (said.map(|grant| grant.is_allowed), permission.facts.clone());
        let is_free = !facts.runs() && facts.is_inside();
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
            (_, Some(true)) => self.open_gate(position),
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
            // Nobody is asked anything about what is being cancelled.
            (Verdict::Default | Verdict::Ask, None) if self.is_cancelling(chat) => {
                self.permissions.remove(position);
                let error = RpcError::new(RpcError::CANCELLED, "The turn is being cancelled");
                self.reply(request, Reply::Error(error));
            }
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
        if let Some(place) = facts.places.first() {
            self.clear_file(request, place.resolved.clone());
        }
        self.start_file_work();
    }
}
