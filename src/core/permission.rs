//! Permission requests: the agent's own, and ours for what an agent does without asking.

use super::effect::{Effect, FileJob, ReadRange, Show, TerminalJob, UserEvent};
use super::ids::{ChatId, OpenId, TurnId};
use super::message::{PermissionOption, Reply, RpcError};
use super::state::State;
use super::tool_call::{ToolCall, ToolCallPatch, ToolContent};
use super::transcript::{Entry, Severity};
use std::path::Path;
use std::sync::Arc;

/// A request that waits for the user.
#[derive(Debug)]
pub(super) struct Permission {
    pub(super) request: OpenId,
    pub(super) chat: ChatId,
    /// The turn that it came in; an agent may ask outside of one, too.
    turn: Option<TurnId>,
    subject: Subject,
    options: Vec<PermissionOption>,
}

/// What is asked about.
#[derive(Debug)]
enum Subject {
    /// A tool call of the agent; its id in the transcript.
    Tool(String),
    /// A file outside of the project, asked by us. The call describes it; the job is what happens if it is allowed.
    Gate { described: Box<ToolCall>, job: FileJob },
    /// A command that the agent did not ask about, or not about this one.
    Command { described: Box<ToolCall>, job: Box<TerminalJob> },
}

/// A file operation and what it needs.
#[derive(Debug, Clone)]
pub(super) enum FileWork {
    Read(ReadRange),
    Write(Arc<str>),
}

impl FileWork {
    pub(super) fn effect(&self, job: FileJob) -> Effect {
        match self {
            Self::Read(range) => Effect::ReadFile(job, *range),
            Self::Write(content) => Effect::WriteFile(job, content.clone()),
        }
    }
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
    pub options: Vec<PermissionOption>,
}

const GATE_ALLOW: &str = "agentchat-allow-once";
const GATE_REJECT: &str = "agentchat-reject-once";

impl State {
    /// The agent asks the user.
    pub(super) fn ask_permission(
        &mut self,
        chat_id: ChatId,
        request: OpenId,
        tool: ToolCallPatch,
        options: Vec<PermissionOption>,
    ) {
        let id = tool.id.clone();
        self.update_tool(chat_id, tool, false);
        let turn = self.turn_of(chat_id);
        self.show_permission(Permission { request, chat: chat_id, turn, subject: Subject::Tool(id), options });
    }

    /// We ask the user: the agent wants a file outside of the project.
    pub(super) fn ask_gate(&mut self, chat: ChatId, job: FileJob, work: &FileWork, resolved: &Path) {
        let (verb, kind) = match work {
            FileWork::Read(_) => ("Read", "read"),
            FileWork::Write(_) => ("Write", "edit"),
        };
        let mut described = ToolCall::new(String::new(), self.now);
        described.title = format!("{verb} outside of the project: {}", resolved.display());
        described.kind = kind.into();
        if let FileWork::Write(content) = work {
            described.content.push(ToolContent::Text(content.clone()));
        }
        let option =
            |id: &str, name: &str, kind: &str| PermissionOption { id: id.into(), name: name.into(), kind: kind.into() };
        let options =
            vec![option(GATE_ALLOW, "Allow once", "allow_once"), option(GATE_REJECT, "Reject", "reject_once")];
        let request = job.request;
        let job = FileJob { path: resolved.to_owned(), confined_to: None, ..job };
        let subject = Subject::Gate { described: Box::new(described), job };
        let turn = self.turn_of(chat);
        self.show_permission(Permission { request, chat, turn, subject, options });
    }

    /// We ask the user: the agent wants to run a command.
    pub(super) fn ask_command(&mut self, described: ToolCall, job: TerminalJob) {
        let option =
            |id: &str, name: &str, kind: &str| PermissionOption { id: id.into(), name: name.into(), kind: kind.into() };
        let options =
            vec![option(GATE_ALLOW, "Allow once", "allow_once"), option(GATE_REJECT, "Reject", "reject_once")];
        let Some(request) = job.request else { return };
        let chat = job.chat;
        let turn = self.turn_of(chat);
        let subject = Subject::Command { described: Box::new(described), job: Box::new(job) };
        self.show_permission(Permission { request, chat, turn, subject, options });
    }

    pub(super) fn turn_of(&self, chat: ChatId) -> Option<TurnId> {
        Some(self.chats.get(&chat)?.turn.as_ref()?.id)
    }

    fn show_permission(&mut self, permission: Permission) {
        self.emit(Show::UserEvent(UserEvent::Permission(permission.chat, permission.request)));
        self.touch(permission.chat);
        let chat = permission.chat;
        let tool = if let Subject::Tool(id) = &permission.subject { Some(id.clone()) } else { None };
        self.permissions.push(permission);
        if let Some(tool) = tool {
            self.propose(chat, &tool, false);
        }
        self.show_permissions();
    }

    /// The user chose an option.
    pub(super) fn respond(&mut self, request: OpenId, option: &str) {
        let Some(position) = self.permissions.iter().position(|permission| permission.request == request) else {
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
        match permission.subject {
            Subject::Tool(id) => {
                if chosen.kind.starts_with("allow") {
                    self.allow_command_of(chat, &id);
                }
                self.reply(request, Reply::Selected(chosen.id));
            }
            Subject::Command { job, .. } if chosen.id == GATE_ALLOW => self.start_terminal(*job),
            Subject::Command { .. } => {
                let error = RpcError::new(RpcError::INVALID_PARAMS, "The user did not allow this command");
                self.reply(request, Reply::Error(error));
            }
            Subject::Gate { job, .. } if chosen.id == GATE_ALLOW => self.start_file_work(job),
            Subject::Gate { .. } => self.reply(request, Reply::Error(refused())),
        }
        self.touch(chat);
        self.show_permissions();
    }

    fn subject_title(&self, permission: &Permission) -> String {
        self.described(permission).map(|tool| tool.title.clone()).filter(|title| !title.is_empty()).unwrap_or_else(
            || match &permission.subject {
                Subject::Tool(id) => id.clone(),
                Subject::Gate { described, .. } | Subject::Command { described, .. } => described.title.clone(),
            },
        )
    }

    fn described<'a>(&'a self, permission: &'a Permission) -> Option<&'a ToolCall> {
        match &permission.subject {
            Subject::Tool(id) => self.chats.get(&permission.chat)?.transcript.tool(id),
            Subject::Gate { described, .. } | Subject::Command { described, .. } => Some(described),
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
        self.drop_permissions(
            |permission| permission.chat == chat && matches!(&permission.subject, Subject::Tool(id) if id == tool),
            true,
        );
    }

    /// The agent does not need this answer any more; whoever calls this sends what is due instead.
    pub(super) fn withdraw_permission(&mut self, request: OpenId) {
        self.drop_permissions(|permission| permission.request == request, false);
    }

    fn drop_permissions(&mut self, matching: impl Fn(&Permission) -> bool, answer: bool) {
        let (gone, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.permissions).into_iter().partition(|permission| matching(permission));
        self.permissions = kept;
        if gone.is_empty() {
            return;
        }
        for permission in gone {
            self.emit(Show::UserEvent(UserEvent::PermissionResolved(permission.chat, permission.request, None)));
            self.touch(permission.chat);
            if answer {
                self.reply(
                    permission.request,
                    match permission.subject {
                        Subject::Tool(_) => Reply::Cancelled,
                        Subject::Gate { .. } => Reply::Error(RpcError::new(
                            RpcError::CANCELLED,
                            "The user is not asked about that file any more",
                        )),
                        Subject::Command { .. } => Reply::Error(RpcError::new(
                            RpcError::CANCELLED,
                            "The user is not asked about that command any more",
                        )),
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
        self.permissions
            .iter()
            .any(|permission| permission.chat == chat && matches!(&permission.subject, Subject::Tool(id) if id == tool))
    }

    /// Shows the queue as it is now.
    pub(super) fn show_permissions(&mut self) {
        let views = self
            .permissions
            .iter()
            .filter_map(|permission| {
                Some(PermissionView {
                    request: permission.request,
                    chat: permission.chat,
                    agent: self.chats.get(&permission.chat)?.agent.clone(),
                    tool: self.described(permission).cloned().unwrap_or_else(|| ToolCall::new(String::new(), self.now)),
                    options: permission.options.clone(),
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

fn refused() -> RpcError {
    RpcError::new(RpcError::INVALID_PARAMS, "The user did not allow access to a file outside of the project")
}
