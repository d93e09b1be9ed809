//! What a chapter can do: talk, plan, read, ask, write, run. Everything it begins is settled by a cancel.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, ClientCapabilities, Content, ContentChunk, CreateTerminalRequest,
    CreateTerminalResponse, Diff, MessageId, PermissionOptionKind, Plan, PlanEntry,
    PlanEntryPriority, PlanEntryStatus, ReadTextFileRequest, ReadTextFileResponse,
    ReleaseTerminalRequest, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionId, SessionNotification, SessionUpdate, Terminal, TerminalId,
    TerminalOutputRequest, TerminalOutputResponse, ToolCall, ToolCallContent, ToolCallId,
    ToolCallLocation, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind,
    WaitForTerminalExitRequest, WaitForTerminalExitResponse, WriteTextFileRequest,
};
use serde_json::{Value, json};

use super::disk;
use super::pace::Pace;
use super::peer::{Answer, Gone, Peer, RequestError};
use super::permission::{self, Action, Decision, Habit, Options};
use super::project::{Command, Mend};
use super::text;

/// The most output of a command that the guide asks for, in bytes; it reads only the last line.
const OUTPUT_LIMIT: u64 = 64 * 1024;

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

/// How a command has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ran {
    /// `None` when a signal ended it.
    pub(super) code: Option<u32>,
    /// The last line of its output that is not blank.
    pub(super) last_line: String,
}

/// One turn on a session: the verbs that chapters are made of.
pub(super) struct Stage<'a> {
    setting: &'a Setting,
    pub(super) memory: &'a mut Memory,
    plan: Vec<PlanEntry>,
    open_calls: Vec<ToolCallId>,
    terminals: Vec<TerminalId>,
    /// A terminal that the client has been asked for. Kept here, and not in the step that waits for it, so that a
    /// cancel in between does not leave the terminal behind.
    terminal_to_come: Option<Answer<CreateTerminalResponse>>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(setting: &'a Setting, memory: &'a mut Memory) -> Self {
        Self {
            setting,
            memory,
            plan: Vec::new(),
            open_calls: Vec::new(),
            terminals: Vec::new(),
            terminal_to_come: None,
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.setting.folder
    }

    pub(super) fn client(&self) -> &ClientCapabilities {
        &self.setting.client
    }

    /// Streams a message in Markdown.
    pub(super) async fn say(&mut self, markdown: &str) -> Played {
        self.stream(markdown, SessionUpdate::AgentMessageChunk)
            .await
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
        for chunk in text::chunks(markdown) {
            self.update(kind(ContentChunk::new(chunk.into()).message_id(id.clone())))
                .await?;
            self.setting.pace.chunk().await;
        }
        Ok(())
    }

    /// Shows a plan, its first step under way.
    pub(super) async fn plan(&mut self, steps: &[String]) -> Played {
        let entry = |step: &String| {
            PlanEntry::new(step, PlanEntryPriority::Medium, PlanEntryStatus::Pending)
        };
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
        self.update(SessionUpdate::Plan(Plan::new(self.plan.clone())))
            .await
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
            let answer = self
                .request(CLIENT_METHOD_NAMES.fs_read_text_file, &params)
                .await?;
            answer.map(|response: ReadTextFileResponse| response.content)
        } else {
            disk::read_text(path).await
        };
        let fields = ToolCallUpdateFields::new();
        match &text {
            Ok(text) => {
                let lines = format!("{} lines", text.lines().count());
                let fields = fields
                    .content(vec![text_content(lines)])
                    .locations(vec![location(path, point(text))]);
                self.end_call(&call, ToolCallStatus::Completed, fields)
                    .await?;
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
        call.raw_input =
            Some(json!({"command": command.program, "args": command.args, "cwd": self.folder()}));
        self.show_proposal(call).await
    }

    /// Shows a tool call that only exists to be asked about.
    pub(super) async fn propose_nothing(
        &mut self,
        title: &str,
        about: &str,
    ) -> Played<ToolCallUpdate> {
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
    pub(super) async fn ask(
        &mut self,
        proposal: ToolCallUpdate,
        options: &Options,
    ) -> Played<Decision> {
        let session = self.setting.session.clone();
        let params = RequestPermissionRequest::new(session, proposal, permission::encode(options));
        let method = CLIENT_METHOD_NAMES.session_request_permission;
        let chosen = match self.request(method, &params).await? {
            Ok(RequestPermissionResponse {
                outcome: RequestPermissionOutcome::Selected(selected),
                ..
            }) => selected.option_id,
            // Whoever answers so has cancelled the turn, even when their session/cancel comes later or not at all.
            Ok(_) => return Err(Interrupted::Cancelled),
            Err(reason) => return Ok(Decision::Unusable(reason)),
        };
        Ok(Decision::of_answer(options, &chosen))
    }

    /// Writes the edit through the client and ends its call. `Err` holds the reason for the user.
    pub(super) async fn apply(
        &mut self,
        call: &ToolCallId,
        mend: &Mend,
    ) -> Played<Result<(), String>> {
        self.progress(call).await?;
        let params = WriteTextFileRequest::new(
            self.setting.session.clone(),
            mend.path.clone(),
            mend.new.clone(),
        );
        let answer = self
            .request(CLIENT_METHOD_NAMES.fs_write_text_file, &params)
            .await?;
        // The result is {} or null, depending on the client.
        let written = answer.map(|_: Value| ());
        match &written {
            Ok(()) => self.complete(call).await?,
            Err(reason) => self.fail(call, reason).await?,
        }
        Ok(written)
    }

    /// Runs the command in a terminal of the client, shows it in the call, and ends the call.
    /// `Err` holds the reason for the user.
    pub(super) async fn run(
        &mut self,
        call: &ToolCallId,
        command: &Command,
    ) -> Played<Result<Ran, String>> {
        self.progress(call).await?;
        let ended = self.run_in_terminal(call, command).await?;
        match &ended {
            Ok(ran) => {
                let status = if ran.code == Some(0) {
                    ToolCallStatus::Completed
                } else {
                    ToolCallStatus::Failed
                };
                self.end_call(call, status, ToolCallUpdateFields::new())
                    .await?;
            }
            Err(reason) => self.fail(call, reason).await?,
        }
        Ok(ended)
    }

    async fn run_in_terminal(
        &mut self,
        call: &ToolCallId,
        command: &Command,
    ) -> Played<Result<Ran, String>> {
        let id = match self.create_terminal(command).await? {
            Ok(id) => id,
            Err(reason) => return Ok(Err(reason)),
        };
        let shown = ToolCallContent::Terminal(Terminal::new(id.clone()));
        self.update_call(call, ToolCallUpdateFields::new().content(vec![shown]))
            .await?;
        let session = self.setting.session.clone();
        let params = WaitForTerminalExitRequest::new(session.clone(), id.clone());
        let exit = self
            .request(CLIENT_METHOD_NAMES.terminal_wait_for_exit, &params)
            .await?;
        let params = TerminalOutputRequest::new(session, id.clone());
        let output = self
            .request(CLIENT_METHOD_NAMES.terminal_output, &params)
            .await?;
        self.release(&id).await?;
        Ok(exit.and_then(|exit: WaitForTerminalExitResponse| {
            let output: TerminalOutputResponse = output?;
            let last_line = output
                .output
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty());
            Ok(Ran {
                code: exit.exit_status.exit_code,
                last_line: last_line.unwrap_or_default().trim().to_owned(),
            })
        }))
    }

    async fn create_terminal(&mut self, command: &Command) -> Played<Result<TerminalId, String>> {
        let args = command.args.iter().map(ToString::to_string).collect();
        let params = CreateTerminalRequest::new(self.setting.session.clone(), command.program)
            .args(args)
            .cwd(self.setting.folder.clone())
            .output_byte_limit(OUTPUT_LIMIT);
        let method = CLIENT_METHOD_NAMES.terminal_create;
        let answer = self.setting.peer.start_request(method, &params).await?;
        let created = self.terminal_to_come.insert(answer).wait().await;
        self.terminal_to_come = None;
        Ok(usable(created)?.map(|response| {
            self.terminals.push(response.terminal_id.clone());
            response.terminal_id
        }))
    }

    async fn release(&mut self, id: &TerminalId) -> Played {
        self.terminals.retain(|open| open != id);
        Ok(release_terminal(&self.setting.peer, &self.setting.session, id).await?)
    }

    /// Ends the call because it is not done, with the reason.
    pub(super) async fn fail(&mut self, call: &ToolCallId, reason: &str) -> Played {
        // As rawOutput, because content would replace a diff that is already shown.
        let fields = ToolCallUpdateFields::new().raw_output(json!({"reason": reason}));
        self.end_call(call, ToolCallStatus::Failed, fields).await
    }

    /// Ends the call as done.
    pub(super) async fn complete(&mut self, call: &ToolCallId) -> Played {
        self.end_call(call, ToolCallStatus::Completed, ToolCallUpdateFields::new())
            .await
    }

    async fn progress(&mut self, call: &ToolCallId) -> Played {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
        self.update_call(call, fields).await
    }

    fn next_call(&mut self) -> ToolCallId {
        self.memory.last_call += 1;
        ToolCallId::new(format!("call-{}", self.memory.last_call))
    }

    async fn begin_call(&mut self, call: ToolCall) -> Played {
        self.open_calls.push(call.tool_call_id.clone());
        self.update(SessionUpdate::ToolCall(call)).await
    }

    async fn update_call(&self, call: &ToolCallId, fields: ToolCallUpdateFields) -> Played {
        let update = ToolCallUpdate::new(call.clone(), fields);
        self.update(SessionUpdate::ToolCallUpdate(update)).await
    }

    async fn end_call(
        &mut self,
        call: &ToolCallId,
        status: ToolCallStatus,
        fields: ToolCallUpdateFields,
    ) -> Played {
        self.open_calls.retain(|open| open != call);
        self.update_call(call, fields.status(status)).await
    }

    /// A request whose refusal is a reason for the user.
    async fn request<P, R>(&self, method: &str, params: &P) -> Played<Result<R, String>>
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
        for id in std::mem::take(&mut self.terminals) {
            self.release(&id).await?;
        }
        if let Some(answer) = self.terminal_to_come.take() {
            release_when_created(self.setting.clone(), answer);
        }
        Ok(())
    }
}

/// The turn's end does not wait for a client that is still creating a terminal; the terminal's end does.
fn release_when_created(setting: Setting, mut answer: Answer<CreateTerminalResponse>) {
    tokio::spawn(async move {
        if let Ok(created) = answer.wait().await
            && let Err(error) =
                release_terminal(&setting.peer, &setting.session, &created.terminal_id).await
        {
            tracing::debug!(%error, "a terminal could not be released");
        }
    });
}

async fn release_terminal(peer: &Peer, session: &SessionId, id: &TerminalId) -> Result<(), Gone> {
    let params = ReleaseTerminalRequest::new(session.clone(), id.clone());
    // The answer says nothing that the guide could act on.
    peer.start_request::<_, Value>(CLIENT_METHOD_NAMES.terminal_release, &params)
        .await
        .map(drop)
}

fn usable<R>(answer: Result<R, RequestError>) -> Played<Result<R, String>> {
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
