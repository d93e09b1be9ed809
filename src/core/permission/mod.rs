//! Permission requests: the agent's own, and ours for what an agent does without asking.
//!
//! A request is weighed before it is shown: an edge resolves its paths and looks up what was answered before (`weigh`), then
//! rules decide (`judge`), by what the request is about (`facts`). What no rule decides is the user's.

pub mod facts;
pub(super) mod gate;
pub mod judge;
pub mod marks;
mod programs;
pub mod rule;
mod shell;
#[cfg(test)]
mod tests;
pub mod weigh;

use super::effect::{Effect, Show, UserEvent};
use super::ids::{ChatId, OpenId, TurnId};
use super::message::{PermissionOption, Reply, RpcError};
use super::state::State;
use super::tool_call::{ToolCall, ToolCallPatch};
use super::transcript::{Entry, Severity};
use facts::Facts;
use gate::Grant;
use marks::Mark;
use rule::Action;

/// A request that is weighed, or waits for the user.
#[derive(Debug)]
pub(super) struct Permission {
    pub(super) request: OpenId,
    pub(super) chat: ChatId,
    /// The turn that it came in; an agent may ask outside of one, too.
    turn: Option<TurnId>,
    subject: Subject,
    options: Vec<PermissionOption>,
    /// What is known of it so far.
    facts: Facts,
    /// Whether the user sees it.
    is_shown: bool,
}

/// What is asked about.
#[derive(Debug)]
enum Subject {
    /// A tool call of the agent; its id in the transcript.
    Tool(String),
    /// Something that the agent does through us without having asked; a call that describes it.
    Gate(Box<ToolCall>),
}

/// An open permission request as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionView {
    /// How to name it in an answer.
    pub request: OpenId,
    /// The chat that it belongs to.
    pub chat: ChatId,
    /// Who asks.
    pub agent: String,
    /// What about.
    pub tool: ToolCall,
    /// The ways to answer.
    pub choices: Vec<Choice>,
    /// What is dangerous about it.
    pub marks: Vec<Mark>,
}

/// One way to answer, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The option.
    pub option: PermissionOption,
    /// What will be remembered if it is chosen, for one that says "always"; one sentence.
    pub rule: Option<String>,
}

/// What an option means by its kind, and whether it is for always; `None` for kinds that this version does not know.
fn meaning(kind: &str) -> Option<(Action, bool)> {
    Some(match kind {
        "allow_once" => (Action::Allow, false),
        "allow_always" => (Action::Allow, true),
        "reject_once" => (Action::Deny, false),
        "reject_always" => (Action::Deny, true),
        _ => return None,
    })
}

impl Permission {
    fn is_about(&self, tool: &str) -> bool {
        matches!(&self.subject, Subject::Tool(id) if id == tool)
    }

    fn choices(&self) -> Vec<Choice> {
        let choice = |option: &PermissionOption| {
            let rule = match meaning(&option.kind) {
                Some((action, true)) => Some(weigh::memory_text(action, &self.facts)),
                _ => None,
            };
            Choice { option: option.clone(), rule }
        };
        self.options.iter().map(choice).collect()
    }
}

impl State {
    /// The agent asks the user.
    pub(super) fn ask_permission(
        &mut self,
        chat: ChatId,
        request: OpenId,
        tool: ToolCallPatch,
        options: Vec<PermissionOption>,
    ) {
        let id = tool.id.clone();
        self.update_tool(chat, tool, false);
        self.weigh(chat, request, Subject::Tool(id), options);
    }

    fn turn_of(&self, chat: ChatId) -> Option<TurnId> {
        Some(self.chats.get(&chat)?.turn.as_ref()?.id)
    }

    /// The user chose an option.
    pub(super) fn respond(&mut self, request: OpenId, option: &str) {
        let shown = |permission: &Permission| permission.request == request && permission.is_shown;
        let Some(position) = self.permissions.iter().position(shown) else {
            self.warn("That permission request is not open any more; nothing was answered.");
            return;
        };
        let Some(chosen) = self.permissions[position].options.iter().find(|known| known.id == option).cloned() else {
            self.warn(format!("The request has no option {option:?}; `:AgentChat permissions` lists them."));
            return;
        };
        let permission = self.permissions.remove(position);
        let chat = permission.chat;
        self.emit(Show::UserEvent(UserEvent::PermissionResolved(chat, request, Some(chosen.id.clone()))));
        let title = self.subject_title(&permission);
        self.note(chat, Severity::Info, format!("{}: {title}", chosen.name));
        if let Some((action, true)) = meaning(&chosen.kind) {
            self.remember(&permission, action);
        }
        self.settle(permission, &chosen);
        self.touch(chat);
        self.show_permissions();
    }

    /// Does what an option says, whoever chose it.
    fn settle(&mut self, permission: Permission, chosen: &PermissionOption) {
        let Permission { request, chat, subject, facts, .. } = permission;
        let action = meaning(&chosen.kind).map(|(action, _)| action);
        // An answer to a question of ours is about what waits for it, and nothing else.
        if let Subject::Tool(_) = subject
            && let (Some(action), Some(turn)) = (action, self.chats.get_mut(&chat).and_then(|chat| chat.turn.as_mut()))
        {
            turn.grants.push(Grant::new(action == Action::Allow, &facts));
        }
        match subject {
            Subject::Tool(_) => self.reply(request, Reply::Selected(chosen.id.clone())),
            Subject::Gate(_) if action == Some(Action::Allow) => self.pass_gate(request, &facts),
            Subject::Gate(_) => self.reply(request, Reply::Error(gate::refused("The user did not allow this"))),
        }
    }

    fn subject_title(&self, permission: &Permission) -> String {
        let described = self.described(permission);
        described.map(|tool| tool.title.clone()).filter(|title| !title.is_empty()).unwrap_or_else(|| match &permission
            .subject
        {
            Subject::Tool(id) => id.clone(),
            Subject::Gate(described) => described.title.clone(),
        })
    }

    fn described<'a>(&'a self, permission: &'a Permission) -> Option<&'a ToolCall> {
        match &permission.subject {
            Subject::Tool(id) => self.chats.get(&permission.chat)?.transcript.tool(id),
            Subject::Gate(described) => Some(described),
        }
    }

    /// Answers every open permission request of a chat with `cancelled`, as the protocol demands of a cancel.
    pub(super) fn cancel_permissions(&mut self, chat: ChatId) {
        self.drop_permissions(|permission| permission.chat == chat, true);
    }

    /// Answers what was asked in a turn, which is over.
    pub(super) fn cancel_permissions_of_turn(&mut self, turn: TurnId) {
        self.drop_permissions(|permission| permission.turn == Some(turn), true);
    }

    /// A call came to its end while the user was still asked about it.
    pub(super) fn settle_permissions_of_tool(&mut self, chat: ChatId, tool: &str) {
        self.drop_permissions(|permission| permission.chat == chat && permission.is_about(tool), true);
    }

    /// The agent does not need this answer any more; whoever calls this sends what is due instead.
    pub(super) fn withdraw_permission(&mut self, request: OpenId) {
        self.drop_permissions(|permission| permission.request == request, false);
    }

    fn drop_permissions(&mut self, matching: impl Fn(&Permission) -> bool, answer: bool) {
        // What an agent does through us is no question before the user is asked about it.
        let is_dropped = |permission: &Permission| {
            matching(permission) && (permission.is_shown || !answer || matches!(permission.subject, Subject::Tool(_)))
        };
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.permissions).into_iter().partition(|permission| is_dropped(permission));
        self.permissions = kept;
        if gone.is_empty() {
            return;
        }
        for permission in gone {
            let Permission { request, chat, .. } = permission;
            if permission.is_shown {
                self.emit(Show::UserEvent(UserEvent::PermissionResolved(chat, request, None)));
                self.touch(chat);
            }
            if answer {
                let cancelled = RpcError::new(RpcError::CANCELLED, "The user is not asked about that any more");
                self.reply(
                    request,
                    match permission.subject {
                        Subject::Tool(_) => Reply::Cancelled,
                        Subject::Gate(_) => Reply::Error(cancelled),
                    },
                );
            }
        }
        self.show_permissions();
    }

    /// Whether the user is asked about anything in this chat.
    pub(super) fn is_asked(&self, chat: ChatId) -> bool {
        self.permissions.iter().any(|permission| permission.chat == chat)
    }

    /// Whether the user is asked about this call.
    pub(super) fn is_asked_about(&self, chat: ChatId, tool: &str) -> bool {
        self.permissions.iter().any(|permission| permission.chat == chat && permission.is_about(tool))
    }

    /// How many requests of a chat wait for the user.
    pub(super) fn waiting_permissions(&self, chat: ChatId) -> usize {
        self.permissions.iter().filter(|permission| permission.chat == chat && permission.is_shown).count()
    }

    /// Shows the queue as it is now.
    pub(super) fn show_permissions(&mut self) {
        let views = self
            .permissions
            .iter()
            .filter(|permission| permission.is_shown)
            .filter_map(|permission| {
                Some(PermissionView {
                    request: permission.request,
                    chat: permission.chat,
                    agent: self.chats.get(&permission.chat)?.agent.clone(),
                    tool: self.described(permission).cloned().unwrap_or_else(|| ToolCall::new(String::new(), self.now)),
                    choices: permission.choices(),
                    marks: permission.facts.marks.iter().copied().collect(),
                })
            })
            .collect();
        self.emit(Show::Permissions(views));
    }

    /// A line of ours in the transcript.
    pub(super) fn note(&mut self, chat_id: ChatId, severity: Severity, text: impl Into<String>) {
        if let Some(chat) = self.chats.get_mut(&chat_id) {
            let change = chat.transcript.add(Entry::Notice(severity, text.into()));
            self.effects.push(Effect::Transcript(chat_id, change));
        }
    }
}
