//! From a request to a decision: its paths are resolved and earlier answers looked up by an edge, then the rules decide.

use std::path::{Path, PathBuf};

use super::facts::{Candidate, Facts, Place};
use super::judge::{By, Kept, NewAnswer, Verdict, judge};
use super::rule::{Action, Remembered};
use super::{Permission, Subject, gate, meaning};
use crate::core::effect::{Effect, Show, UserEvent};
use crate::core::event::TimerKey;
use crate::core::ids::{ChatId, OpenId};
use crate::core::message::{PermissionOption, Reply};
use crate::core::state::State;
use crate::core::tool_call::ToolCall;
use crate::core::transcript::Severity;

/// The user is asked at the latest after this time, in milliseconds, although a path is still being resolved: its disk hangs.
const PATIENCE: u64 = 1_000;

/// Paths to be resolved, and answers to be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeighJob {
    /// The request that it is for.
    pub request: OpenId,
    /// The project's folder.
    pub root: PathBuf,
    /// Further folders of the workspace.
    pub additional: Vec<PathBuf>,
    /// The paths that it may concern.
    pub candidates: Vec<Candidate>,
}

/// What an edge found out about a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Weighed {
    /// The project's folder, without links.
    pub root: PathBuf,
    /// Further folders of the workspace, without links.
    pub additional: Vec<PathBuf>,
    /// The paths that it concerns: of the words of a command only those that are paths.
    pub places: Vec<Place>,
    /// Whether that are all paths.
    pub is_complete: bool,
    /// The answers with "always" that were given in this project, newest first.
    pub kept: Vec<Kept>,
}

/// Longest text of what would be remembered that stands beside an option, in characters. What is longer is in view above.
const LONGEST_TEXT: usize = 80;

/// What is remembered of an answer with "always", in words that are no longer than they must be.
pub(super) fn memory_text(action: Action, facts: &Facts) -> String {
    let Some(rule) = Remembered::of(action, facts) else {
        let why = if facts.runs() { "it is no plain command" } else { "it cannot be known again" };
        return format!("nothing here, for {why}");
    };
    let text = rule.text(action, &facts.root);
    let what = if facts.runs() { "command" } else { "call" };
    if text.chars().count() > LONGEST_TEXT { format!("{} this very {what}", action.as_str()) } else { text }
}

impl State {
    /// Begins with a request; [`State::weighed`] or [`State::weighing_is_late`] goes on.
    pub(super) fn weigh(&mut self, chat: ChatId, request: OpenId, subject: Subject, options: Vec<PermissionOption>) {
        let turn = self.turn_of(chat);
        let is_tool = matches!(subject, Subject::Tool(_));
        let call = match &subject {
            Subject::Tool(id) => self.chats.get(&chat).and_then(|chat| chat.transcript.tool(id)).cloned(),
            Subject::Gate(described) => Some((**described).clone()),
        };
        let call = call.unwrap_or_else(|| ToolCall::new(String::new(), self.now));
        let (facts, job) = self.look_into(chat, request, &call);
        self.permissions.push(Permission { request, chat, turn, subject, options, facts, is_shown: false });
        self.effects.push(Effect::Weigh(job));
        if is_tool {
            self.effects.push(Effect::SetTimer(TimerKey::Weigh(request), self.now.plus(PATIENCE)));
        }
    }

    /// What a call says by itself, and what has to be found out.
    fn look_into(&self, chat: ChatId, request: OpenId, call: &ToolCall) -> (Facts, WeighJob) {
        let chat = self.chats.get(&chat);
        let quirks = chat
            .and_then(|chat| self.connections.get(&chat.session.conn()?))
            .map(|connection| connection.quirks)
            .unwrap_or_default();
        let agent = chat.map_or("", |chat| chat.agent.as_str());
        let root = chat.map(|chat| chat.cwd.clone()).unwrap_or_default();
        let mut facts = Facts::of_call(agent, call, &root, quirks.command_in);
        if self.has_odd_environment(request) {
            facts.command = None;
        }
        let candidates = facts.candidates.clone();
        let additional = self.config.additional_directories.clone();
        (facts, WeighJob { request, root, additional, candidates })
    }

    /// A call that the user is asked about, or will be, has changed.
    pub(in crate::core) fn reconsider(&mut self, chat: ChatId, tool: &str) {
        let about: Vec<OpenId> = self
            .permissions
            .iter()
            .filter(|permission| permission.chat == chat && permission.is_about(tool))
            .map(|permission| permission.request)
            .collect();
        for request in about {
            let Some(call) = self.chats.get(&chat).and_then(|chat| chat.transcript.tool(tool)).cloned() else {
                continue;
            };
            let (facts, job) = self.look_into(chat, request, &call);
            let Some(permission) = self.permissions.iter_mut().find(|permission| permission.request == request) else {
                continue;
            };
            if !permission.facts.is_same_call(&facts) {
                permission.facts = facts;
                self.effects.push(Effect::Weigh(job));
            }
        }
        self.show_permissions();
    }

    /// An edge found out about a request.
    pub(in crate::core) fn weighed(&mut self, request: OpenId, weighed: Weighed) {
        let Some(permission) = self.permissions.iter_mut().find(|permission| permission.request == request) else {
            return;
        };
        let Weighed { root, additional, places, is_complete, kept } = weighed;
        if is_complete {
            permission.facts.additional = additional;
            permission.facts.resolve(root, places, true);
        }
        self.effects.push(Effect::ClearTimer(TimerKey::Weigh(request)));
        self.decide(request, &kept);
    }

    /// The paths are not resolved in time: only the user can decide, unless a rule denies it by its name.
    pub(in crate::core) fn weighing_is_late(&mut self, request: OpenId) {
        self.decide(request, &[]);
    }

    fn decide(&mut self, request: OpenId, kept: &[Kept]) {
        let Some(position) = self.permissions.iter().position(|permission| permission.request == request) else {
            return;
        };
        let permission = &self.permissions[position];
        let verdict = judge(&permission.facts, &self.config.rules, kept);
        match (&permission.subject, verdict) {
            (Subject::Gate(_), verdict) => self.decide_gate(position, verdict),
            (Subject::Tool(_), Verdict::Deny(by)) => self.answer_by(position, Action::Deny, &by),
            // What was shown already is the user's: the call may not be complete, and they may be about to answer.
            (Subject::Tool(_), Verdict::Allow(by)) if !permission.is_shown => {
                self.answer_by(position, Action::Allow, &by);
            }
            (Subject::Tool(_), _) => self.show_permission(position),
        }
    }

    /// Answers for the user, if the agent offers an option of the kind that is needed.
    fn answer_by(&mut self, position: usize, action: Action, by: &By) {
        let permission = &self.permissions[position];
        let of_kind = |wanted: bool| {
            permission.options.iter().find(|option| meaning(&option.kind) == Some((action, wanted))).cloned()
        };
        // "Always" only where the user said it themselves, or where it is the only way to say no.
        let may_last = action == Action::Deny || matches!(by, By::Answer(_));
        let Some(chosen) = of_kind(false).or_else(|| of_kind(true).filter(|_| may_last)) else {
            if !permission.is_shown {
                let (chat, verb) = (permission.chat, action.as_str());
                let text = format!(
                    "The agent offers no way to {verb} this once, which {} would do: you are asked.",
                    by.describe()
                );
                self.note(chat, Severity::Info, text);
            }
            self.show_permission(position);
            return;
        };
        let permission = self.permissions.remove(position);
        self.tell_answer(&permission, action, by, Some(chosen.id.clone()));
        let was_shown = permission.is_shown;
        self.settle(permission, &chosen);
        if was_shown {
            self.show_permissions();
        }
    }

    /// Leaves a trace of an answer that nobody gave by hand.
    pub(super) fn tell_answer(&mut self, permission: &Permission, action: Action, by: &By, option: Option<String>) {
        let chat = permission.chat;
        let title = self.subject_title(permission);
        let (verb, severity) = match action {
            Action::Allow => ("Allowed", Severity::Info),
            Action::Deny | Action::Ask => ("Denied", Severity::Warning),
        };
        self.note(chat, severity, format!("{verb} by {}: {title}", by.describe()));
        self.emit(Show::UserEvent(UserEvent::PermissionDecided {
            chat,
            request: permission.request,
            option,
            action,
            title,
            rule: by.text().to_owned(),
        }));
        self.touch(chat);
    }

    /// The user is to decide.
    pub(super) fn show_permission(&mut self, position: usize) {
        let permission = &mut self.permissions[position];
        if !permission.is_shown {
            permission.is_shown = true;
            let (chat, request) = (permission.chat, permission.request);
            self.emit(Show::UserEvent(UserEvent::Permission(chat, request)));
            self.touch(chat);
            if let Subject::Tool(tool) = &self.permissions[position].subject {
                let tool = tool.clone();
                self.propose(chat, &tool, false);
            }
        }
        self.show_permissions();
    }

    /// Keeps an answer with "always".
    pub(super) fn remember(&mut self, permission: &Permission, action: Action) {
        let facts = &permission.facts;
        let Some(rule) = Remembered::of(action, facts) else {
            let text = format!("Remembered: {}; the agent may remember it by itself.", memory_text(action, facts));
            self.note(permission.chat, Severity::Info, text);
            return;
        };
        let shown = rule.text(action, &facts.root);
        // A rule is made of texts, lists and switches, which JSON always has a form for.
        let Ok(json) = serde_json::to_string(&rule) else { return };
        self.note(
            permission.chat,
            Severity::Info,
            format!("Remembered for this project: {shown}. `:AgentChat permissions` lists and revokes it."),
        );
        let (project, agent) = (facts.root.clone(), facts.agent.clone());
        self.effects.push(Effect::Remember(NewAnswer { project, agent, action, rule: json, shown }));
    }

    /// The error for an agent whom a rule refuses something.
    pub(super) fn refuse_by(&mut self, request: OpenId, by: &By) {
        let reason = format!("{} denies this", by.describe());
        self.reply(request, Reply::Error(gate::refused(&reason)));
    }
}

/// A path as the user sees it from their project.
pub(super) fn shown_below(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
