//! What a chapter can do: talk, plan, read, ask, write, run. Everything it begins is settled by a cancel.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, ClientCapabilities, Content, ContentChunk, Diff, MessageId, PermissionOptionKind, Plan,
    PlanEntry, PlanEntryPriority, PlanEntryStatus, ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, SessionNotification, SessionUpdate, ToolCall,
    ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
    WriteTextFileRequest,
};
use serde_json::{Value, json};

use super::disk;
use super::pace::Pace;
use super::permission::{self, Action, Decision, Habit, Options};
use super::project::{Command, Mend};
use super::terminal::Terminals;
use super::text;
use crate::serving::{Gone, Peer, RequestError};

/// Why a chapter does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Interrupted {
    #[error("the user cancelled the turn")]
    Cancelled,
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// The result of a step that something may interrupt.
pub(super) type Played<T = ()> = Result<T, Interrupted>;

/// What a session is about; it does not change.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) peer: Peer,
    pub(super) session: SessionId,
    pub(super) folder: PathBuf,
    pub(super) client: ClientCapabilities,
    pub(super) pace: Pace,
}

/// What the session remembers from one prompt to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Whether the user has seen the tour begin.
    pub(super) greeted: bool,
    edits: Habit,
    commands: Habit,
    last_call: u64,
    last_message: u64,
}

impl Memory {
    /// What the user wants for this kind of action.
    pub(super) fn habit(&self, action: Action) -> Habit {
        match action {
            Action::Edit => self.edits,
            Action::Command => self.commands,
        }
    }

    /// Keeps an answer that holds for the session.
    pub(super) fn remember(&mut self, action: Action, decision: &Decision) {
        let habit = match decision {
            Decision::Option(PermissionOptionKind::AllowAlways) => Habit::Allow,
            Decision::Option(PermissionOptionKind::RejectAlways) => Habit::Refuse,
            _ => return,
        };
        match action {
            Action::Edit => self.edits = habit,
            Action::Command => self.commands = habit,
        }
    }
}

/// One turn on a session: the verbs that chapters are made of.
pub(super) struct Stage<'a> {
    pub(super) setting: &'a Setting,
    pub(super) memory: &'a mut Memory,
    plan: Vec<PlanEntry>,
    open_calls: Vec<ToolCallId>,
    pub(super) terminals: Terminals,
}

impl<'a> Stage<'a> {
    pub(super) fn new(setting: &'a Setting, memory: &'a mut Memory) -> Self {
        Self { setting, memory, plan: Vec::new(), open_calls: Vec::new(), terminals: Terminals::default() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.setting.folder
    }

    pub(super) fn client(&self) -> &ClientCapabilities {
        &self.setting.client
    }

    /// Streams a message in Markdown.
    pub(super) async fn say(&mut self, markdown: &str) -> Played {
        self.stream(markdown, SessionUpdate::AgentMessageChunk).await
    }

    /// Streams a thought.
    pub(super) async fn think(&mut self, thought: &str) -> Played {
        self.stream(thought, SessionUpdate::AgentThoughtChunk).await
    }

    /// Sends one update of the session.
    pub(super) async fn update(&self, update: SessionUpdate) -> Played {
        let notification = SessionNotification::new(self.setting.session.clone(), update);
        let method = CLIENT_METHOD_NAMES.session_update;
        Ok(self.setting.peer.notify(method, &notification).await?)
    }

    async fn stream(&mut self, markdown: &str, kind: fn(ContentChunk) -> SessionUpdate) -> Played {
        self.memory.last_message += 1;
        let id = MessageId::new(format!("message-{}", self.memory.last_message));
        // A message that ends in a line break would leave an empty line behind it.
        for chunk in text::chunks(markdown.trim_end()) {
            self.update(kind(ContentChunk::new(chunk.into()).message_id(id.clone()))).await?;
            self.setting.pace.chunk().await;
        }
        Ok(())
    }

    /// Shows a plan, its first step under way.
    pub(super) async fn plan(&mut self, steps: &[String]) -> Played {
        let entry = |step: &String| PlanEntry::new(step, PlanEntryPriority::Medium, PlanEntryStatus::Pending);
        self.plan = steps.iter().map(entry).collect();
        self.begin_step(0).await
    }

    /// Marks the steps before `step` (0-based) as done and this one as under way.
    pub(super) async fn begin_step(&mut self, step: usize) -> Played {
        for (at, entry) in self.plan.iter_mut().enumerate() {
            entry.status = match at.cmp(&step) {
                std::cmp::Ordering::Less => PlanEntryStatus::Completed,
                std::cmp::Ordering::Equal => PlanEntryStatus::InProgress,
                std::cmp::Ordering::Greater => PlanEntryStatus::Pending,
            };
        }
        self.show_plan().await?;
        self.setting.pace.breath().await;
        Ok(())
    }

    async fn show_plan(&self) -> Played {
        self.update(SessionUpdate::Plan(Plan::new(self.plan.clone()))).await
    }

    /// Reads a file, through the client when it offers that. `Err` holds the reason for the user.
    /// `point` finds the line (1-based) of its text that matters.
    pub(super) async fn read(
        &mut self,
        path: &Path,
        name: &str,
        point: impl FnOnce(&str) -> u32,
    ) -> Played<Result<String, String>> {
        let call = self.next_call();
        let mut shown = ToolCall::new(call.clone(), format!("Read {name}"));
        shown.kind = ToolKind::Read;
        shown.status = ToolCallStatus::InProgress;
        shown.locations = vec![location(path, 1)];
        shown.raw_input = Some(json!({"path": path}));
        self.begin_call(shown).await?;
        self.setting.pace.breath().await;
        let text = if self.client().fs.read_text_file {
            let params = ReadTextFileRequest::new(self.setting.session.clone(), path);
            let answer = self.request(CLIENT_METHOD_NAMES.fs_read_text_file, &params).await?;
            answer.map(|response: ReadTextFileResponse| response.content)
        } else {
            disk::read_text(path).await
        };
        let fields = ToolCallUpdateFields::new();
        match &text {
            Ok(text) => {
                let lines = format!("{} lines", text.lines().count());
                let fields = fields.content(vec![text_content(lines)]).locations(vec![location(path, point(text))]);
                self.end_call(&call, ToolCallStatus::Completed, fields).await?;
            }
            Err(reason) => {
                let fields = fields.content(vec![text_content(reason.clone())]);
                self.end_call(&call, ToolCallStatus::Failed, fields).await?;
            }
        }
        Ok(text)
    }

    /// Shows the tool call of an edit, with its diff, before anything is done.
    pub(super) async fn propose(&mut self, mend: &Mend) -> Played<ToolCallUpdate> {
        let id = self.next_call();
        let mut call = ToolCall::new(id.clone(), mend.title.clone());
        call.kind = ToolKind::Edit;
        call.locations = vec![location(&mend.path, mend.line)];
        let diff = Diff::new(mend.path.clone(), mend.new.clone()).old_text(mend.old.clone());
        call.content = vec![ToolCallContent::Diff(diff)];
        call.raw_input = Some(json!({"path": mend.path}));
        self.show_proposal(call).await
    }

    /// Shows the tool call of a command before it is started.
    pub(super) async fn propose_command(&mut self, command: &Command) -> Played<ToolCallUpdate> {
        let id = self.next_call();
        let mut call = ToolCall::new(id.clone(), command.line());
        call.kind = ToolKind::Execute;
        call.raw_input = Some(json!({"command": command.program, "args": command.args, "cwd": self.folder()}));
        self.show_proposal(call).await
    }

    /// Shows a tool call that only exists to be asked about.
    pub(super) async fn propose_nothing(&mut self, title: &str, about: &str) -> Played<ToolCallUpdate> {
        let id = self.next_call();
        let mut call = ToolCall::new(id.clone(), title);
        call.kind = ToolKind::Other;
        call.content = vec![text_content(about)];
        self.show_proposal(call).await
    }

    async fn show_proposal(&mut self, call: ToolCall) -> Played<ToolCallUpdate> {
        // A permission request carries the call whole: a client may show it alone.
        let fields = ToolCallUpdateFields::new()
            .kind(call.kind)
            .status(call.status)
            .title(call.title.clone())
            .content(call.content.clone())
            .locations(call.locations.clone())
            .raw_input(call.raw_input.clone());
        let proposal = ToolCallUpdate::new(call.tool_call_id.clone(), fields);
        self.begin_call(call).await?;
        self.setting.pace.breath().await;
        Ok(proposal)
    }

    /// Asks the user about a proposal.
    pub(super) async fn ask(&mut self, proposal: ToolCallUpdate, options: &Options) -> Played<Decision> {
        let session = self.setting.session.clone();
        let params = RequestPermissionRequest::new(session, proposal, permission::encode(options));
        let method = CLIENT_METHOD_NAMES.session_request_permission;
        let chosen = match self.request(method, &params).await? {
            Ok(RequestPermissionResponse { outcome: RequestPermissionOutcome::Selected(selected), .. }) => {
                selected.option_id
            }
            // Whoever answers so has cancelled the turn, even when their session/cancel comes later or not at all.
            Ok(_) => return Err(Interrupted::Cancelled),
            Err(reason) => return Ok(Decision::Unusable(reason)),
        };
        Ok(Decision::of_answer(options, &chosen))
    }

    /// Writes the edit through the client and ends its call. `Err` holds the reason for the user.
    pub(super) async fn apply(&mut self, call: &ToolCallId, mend: &Mend) -> Played<Result<(), String>> {
        self.progress(call).await?;
        let params = WriteTextFileRequest::new(self.setting.session.clone(), mend.path.clone(), mend.new.clone());
        let answer = self.request(CLIENT_METHOD_NAMES.fs_write_text_file, &params).await?;
        // The result is {} or null, depending on the client.
        let written = answer.map(|_: Value| ());
        match &written {
            Ok(()) => self.complete(call).await?,
            Err(reason) => self.fail(call, reason).await?,
        }
        Ok(written)
    }

    /// Ends the call because it is not done, with the reason.
    pub(super) async fn fail(&mut self, call: &ToolCallId, reason: &str) -> Played {
        // As rawOutput, because content would replace a diff that is already shown.
        let fields = ToolCallUpdateFields::new().raw_output(json!({"reason": reason}));
        self.end_call(call, ToolCallStatus::Failed, fields).await
    }

    /// Ends the call as done.
    pub(super) async fn complete(&mut self, call: &ToolCallId) -> Played {
        self.end_call(call, ToolCallStatus::Completed, ToolCallUpdateFields::new()).await
    }

    pub(super) async fn progress(&mut self, call: &ToolCallId) -> Played {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.update_call(call, fields).await
    }

    fn next_call(&mut self) -> ToolCallId {
        self.memory.last_call += 1;
        ToolCallId::new(format!("call-{}", self.memory.last_call))
    }

    async fn begin_call(&mut self, call: ToolCall) -> Played {
        let id = call.tool_call_id.clone();
        self.update(SessionUpdate::ToolCall(call)).await?;
        self.open_calls.push(id);
        Ok(())
    }

    pub(super) async fn update_call(&self, call: &ToolCallId, fields: ToolCallUpdateFields) -> Played {
        let update = ToolCallUpdate::new(call.clone(), fields);
        self.update(SessionUpdate::ToolCallUpdate(update)).await
    }

    pub(super) async fn end_call(
        &mut self,
        call: &ToolCallId,
        status: ToolCallStatus,
        fields: ToolCallUpdateFields,
    ) -> Played {
        // Forgotten only once it is sent: a cancel in between must still settle it.
        self.update_call(call, fields.status(status)).await?;
        self.open_calls.retain(|open| open != call);
        Ok(())
    }

    /// A request whose refusal is a reason for the user.
    pub(super) async fn request<P, R>(&self, method: &str, params: &P) -> Played<Result<R, String>>
    where
        P: serde::Serialize,
        R: serde::de::DeserializeOwned,
    {
        usable(self.setting.peer.request(method, params).await)
    }

    /// Closes what a cancelled chapter left open: calls, terminals, the plan's step under way.
    pub(super) async fn settle(mut self) -> Played {
        for call in std::mem::take(&mut self.open_calls) {
            self.fail(&call, "cancelled").await?;
        }
        let under_way = |entry: &&mut PlanEntry| entry.status == PlanEntryStatus::InProgress;
        if let Some(entry) = self.plan.iter_mut().find(under_way) {
            entry.status = PlanEntryStatus::Pending;
            self.show_plan().await?;
        }
        self.settle_terminals().await
    }
}

pub(super) fn usable<R>(answer: Result<R, RequestError>) -> Played<Result<R, String>> {
    match answer {
        Ok(result) => Ok(Ok(result)),
        Err(RequestError::Gone(gone)) => Err(gone.into()),
        Err(error) => Ok(Err(error.to_string())),
    }
}

fn location(path: &Path, line: u32) -> ToolCallLocation {
    ToolCallLocation::new(path).line(line)
}

fn text_content(text: impl Into<String>) -> ToolCallContent {
    ToolCallContent::Content(Content::new(text.into()))
}
