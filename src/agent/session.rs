//! One session: its prompts one after the other, each of which a cancel can end.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use agent_client_protocol_schema::MaybeUndefined;
use agent_client_protocol_schema::v1::{
    AvailableCommandsUpdate, ConfigOptionUpdate, ContentBlock, ContentChunk, EmbeddedResourceResource, McpServer,
    MessageId, Notice, NoticeSeverity, PromptResponse, SessionInfoUpdate, SessionUpdate, StopReason, ToolCallId,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{SetOnce, mpsc};
use tokio_util::sync::CancellationToken;

use super::approval::Approvals;
use super::client::{Client, Interrupted, Step};
use super::commands::{self, Command};
use super::history::{History, text_of};
use super::mcp::Servers;
use super::model::Finder;
use super::options::{Mode, Options};
use super::records::{Record, Records, Said};
use super::tools::{NAMES, Programs, Seen};
use super::turn::{Ended, Turn};
use crate::responses::{item, part};
use crate::serving::{Gone, Reply};

/// More prompts than these may not wait in one session.
const MOST_WAITING_PROMPTS: usize = 32;
/// The most bytes of the transcript that are kept.
const LONGEST_TRANSCRIPT: usize = 4 * 1024 * 1024;

/// What a session is about.
pub(super) struct Setting {
    pub(super) client: Client,
    pub(super) finder: Finder,
    pub(super) programs: Programs,
    /// The folder of the user's configuration.
    pub(super) config: Option<PathBuf>,
    /// Changed by the client while a turn runs.
    pub(super) options: Arc<Mutex<Options>>,
    pub(super) records: Records,
    /// The MCP servers that the client has named.
    pub(super) mcp: Vec<McpServer>,
    /// Those of them that could be reached; not set until all were tried.
    pub(super) servers: SetOnce<Servers>,
}

impl Setting {
    /// The MCP servers, once each has been tried; no prompt is answered before.
    pub(super) fn servers(&self) -> &Servers {
        static NONE: LazyLock<Servers> = LazyLock::new(Servers::default);
        self.servers.get().unwrap_or(&NONE)
    }
}

/// What the session remembers from one prompt to the next.
#[derive(Default)]
pub(super) struct State {
    pub(super) history: History,
    pub(super) seen: Seen,
    pub(super) approvals: Approvals,
    transcript: Vec<Said>,
    title: Option<String>,
    last_message: u64,
    last_call: u64,
    /// Whether the user knows which MCP servers cannot be used.
    has_told_problems: bool,
}

impl State {
    pub(super) fn next_message(&mut self) -> MessageId {
        self.last_message += 1;
        MessageId::new(format!("message-{}", self.last_message))
    }

    pub(super) fn next_call(&mut self) -> ToolCallId {
        self.last_call += 1;
        ToolCallId::new(format!("tool-{}", self.last_call))
    }

    /// Goes on from what was kept.
    pub(super) fn of_record(record: Record, title: Option<String>) -> Self {
        let Record { items, transcript, .. } = record;
        Self { history: History::from_items(items), transcript, title, ..Self::default() }
    }
}

/// A prompt that is to be answered.
struct Prompt {
    content: Vec<ContentBlock>,
    reply: Reply,
    cancelled: CancellationToken,
}

/// The way into a running session. Dropped, the session ends once its prompts are answered.
pub(super) struct Session {
    prompts: mpsc::Sender<Prompt>,
    /// The parent of the tokens of all prompts since the last cancel.
    cancel: CancellationToken,
    pub(super) options: Arc<Mutex<Options>>,
}

impl Session {
    /// A session, and the task that plays it.
    pub(super) fn new(setting: Setting, state: State) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (prompts, waiting) = mpsc::channel(MOST_WAITING_PROMPTS);
        let session = Self { prompts, cancel: CancellationToken::new(), options: Arc::clone(&setting.options) };
        (session, play(setting, state, waiting))
    }

    /// Has the prompt answered when its turn has come; gives the duty back when too many wait.
    pub(super) fn prompt(&self, content: Vec<ContentBlock>, reply: Reply) -> Result<(), Reply> {
        let prompt = Prompt { content, reply, cancelled: self.cancel.child_token() };
        self.prompts.try_send(prompt).map_err(|error| error.into_inner().reply)
    }

    /// Cancels the running turn and the prompts that wait, but none that comes later.
    pub(super) fn cancel(&mut self) {
        std::mem::take(&mut self.cancel).cancel();
    }
}

async fn play(setting: Setting, mut state: State, mut prompts: mpsc::Receiver<Prompt>) {
    let connect = async {
        let servers = Servers::connect(setting.mcp.clone(), &setting.client.folder).await;
        // Nobody else sets them.
        let _ = setting.servers.set(servers);
        std::future::pending::<()>().await;
    };
    let answer = async {
        if begin(&setting).await.is_err() {
            return;
        }
        while let Some(prompt) = prompts.recv().await {
            if let Err(Gone) = turn(&setting, &mut state, prompt).await {
                return;
            }
        }
    };
    tokio::select! {
        () = answer => {}
        () = connect => {}
    }
}

/// Tells the client what the session has, as far as that takes time to find out.
async fn begin(setting: &Setting) -> Step {
    let commands = AvailableCommandsUpdate::new(commands::all());
    setting.client.update(SessionUpdate::AvailableCommandsUpdate(commands)).await?;
    if let Ok(connected) = setting.finder.find().await {
        let options = setting.options.lock().config(&connected.possible());
        setting.client.update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options))).await?;
    }
    Ok(())
}

async fn turn(setting: &Setting, state: &mut State, prompt: Prompt) -> Result<(), Gone> {
    let content = content_of(&prompt.content);
    let said = text_of(&item::user(content.clone()));
    let before = state.history.items().len();
    let mut turn = Turn::new(setting, state);
    let played = tokio::select! {
        biased;
        () = prompt.cancelled.cancelled() => Err(Interrupted::Cancelled),
        played = answer(setting, &mut turn, &said, content) => played,
    };
    let ended = match played {
        Ok(ended) => ended,
        Err(Interrupted::Cancelled) => {
            let ended = turn.ended(StopReason::Cancelled);
            // Nothing interrupts the settling but the client's end.
            turn.settle().await.map_err(|_| Gone)?;
            ended
        }
        Err(Interrupted::Gone(gone)) => return Err(gone),
    };
    keep(setting, state, said, before).await?;
    let mut response = PromptResponse::new(ended.reason);
    response.usage = ended.usage;
    prompt.reply.send(Ok(response)).await
}

async fn answer(setting: &Setting, turn: &mut Turn<'_>, said: &str, content: Vec<Value>) -> Step<Ended> {
    ready(setting, turn).await?;
    match commands::parse(said) {
        None => turn.answer(content).await,
        Some(Command::Prompt(text)) => turn.answer(vec![part::text(text)]).await,
        Some(Command::Compact) => turn.compact_now().await,
        Some(Command::Model(model)) => {
            let text = choose_model(setting, model).await?;
            turn.tell(&text).await?;
            Ok(turn.ended(StopReason::EndTurn))
        }
        Some(Command::Tools) => {
            turn.tell(&tools_in_words(setting)).await?;
            Ok(turn.ended(StopReason::EndTurn))
        }
        Some(Command::Status) => {
            let text = status_in_words(setting).await;
            turn.tell(&text).await?;
            Ok(turn.ended(StopReason::EndTurn))
        }
    }
}

/// Waits for the MCP servers, and says once what cannot be had of them.
async fn ready(setting: &Setting, turn: &mut Turn<'_>) -> Step {
    let servers = setting.servers.wait().await;
    if std::mem::replace(&mut turn.state.has_told_problems, true) {
        servers.refresh().await;
        return Ok(());
    }
    let takes_notices = setting.client.capabilities.session.as_ref().is_some_and(|has| has.notices.is_some());
    for problem in servers.problems() {
        if takes_notices {
            let notice = Notice::new(NoticeSeverity::Warning, format!("{problem}."));
            setting.client.update(SessionUpdate::Notice(notice)).await?;
        } else {
            turn.tell(&format!("**Note:** {problem}.\n\n")).await?;
        }
    }
    Ok(())
}

/// Sets the model, or tells which there are.
async fn choose_model(setting: &Setting, model: Option<String>) -> Step<String> {
    let connected = match setting.finder.find().await {
        Ok(connected) => connected,
        Err(error) => return Ok(super::failure::of_model(&error).text),
    };
    let Some(model) = model else {
        let now = connected.model(&setting.options.lock()).unwrap_or_else(|_| "none is chosen".to_owned());
        let others: Vec<String> =
            connected.possible().models.iter().take(50).map(|model| format!("- `{model}`")).collect();
        return Ok(format!("The model is `{now}`.\n\n{}", others.join("\n")));
    };
    let options = {
        let mut options = setting.options.lock();
        options.model = Some(model.clone());
        options.config(&connected.possible())
    };
    setting.client.update(SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options))).await?;
    let is_known = connected.models.is_empty() || connected.models.contains(&model);
    let note = if is_known { "" } else { " The endpoint does not list it." };
    Ok(format!("The model is `{model}` from now on.{note}"))
}

fn tools_in_words(setting: &Setting) -> String {
    let options = setting.options.lock().clone();
    let mut lines: Vec<String> = NAMES.iter().map(|name| format!("- `{name}`")).collect();
    lines.extend(
        setting.programs.names().map(|name| format!("- `{name}`, which runs `{}`", setting.programs.line(name))),
    );
    if options.web_search {
        lines.push("- `web_search`, at the endpoint".to_owned());
    }
    let servers = setting.servers();
    for name in servers.names() {
        lines.push(format!("- `{name}`, of an MCP server: {}", servers.title(&name).unwrap_or_default()));
    }
    for problem in setting.programs.problems.iter().chain(servers.problems()) {
        lines.push(format!("- not usable: {problem}"));
    }
    let note = if options.mode == Mode::Plan { "\n\nIn plan mode only those that read." } else { "" };
    format!("{}{note}", lines.join("\n"))
}

async fn status_in_words(setting: &Setting) -> String {
    let options = setting.options.lock().clone();
    match setting.finder.find().await {
        Ok(connected) => {
            let endpoint = connected.client.endpoint();
            let model = connected.model(&options).unwrap_or_else(|_| "none is chosen".to_owned());
            let context = connected.context.map_or_else(|| "not known".to_owned(), |size| format!("{size} tokens"));
            format!(
                "- endpoint: {} ({}, {})\n- model: `{model}`\n- mode: {}\n- context: {context}",
                endpoint.name,
                endpoint.base_url.host(),
                endpoint.dialect.name(),
                options.mode.id(),
            )
        }
        Err(error) => super::failure::of_model(&error).text,
    }
}

/// Keeps the session, and tells the client its title.
async fn keep(setting: &Setting, state: &mut State, said: String, before: usize) -> Result<(), Gone> {
    let answer: Vec<String> =
        state.history.items().iter().skip(before).filter(|item| item["role"] == "assistant").map(text_of).collect();
    state.transcript.push(Said { by_user: true, text: said });
    if !answer.is_empty() {
        state.transcript.push(Said { by_user: false, text: answer.join("\n\n") });
    }
    let mut bytes: usize = state.transcript.iter().map(|said| said.text.len()).sum();
    while bytes > LONGEST_TRANSCRIPT && state.transcript.len() > 1 {
        bytes -= state.transcript.remove(0).text.len();
    }
    if state.history.is_empty() {
        return Ok(());
    }
    if state.title.is_none() {
        state.title = state.history.opening();
        let mut info = SessionInfoUpdate::new();
        info.title = MaybeUndefined::from(Some(state.title.clone()));
        let told = setting.client.update(SessionUpdate::SessionInfoUpdate(info)).await;
        told.map_err(|_| Gone)?;
    }
    let options = setting.options.lock().clone();
    let record = Record {
        items: state.history.items().to_vec(),
        transcript: state.transcript.clone(),
        mode: Some(options.mode.id().to_owned()),
        model: options.model,
    };
    let (id, cwd) = (setting.client.session.to_string(), setting.client.folder.clone());
    if let Err(reason) = setting.records.keep(id, cwd, state.title.clone(), &record).await {
        tracing::warn!(reason, "the session is not kept");
    }
    Ok(())
}

/// Tells the client what was said before, as its transcript shows it.
pub(super) async fn replay(client: &Client, record: &Record) -> Step {
    for (number, said) in record.transcript.iter().enumerate() {
        let chunk = ContentChunk::new(ContentBlock::from(said.text.clone()))
            .message_id(MessageId::new(format!("earlier-{number}")));
        let update =
            if said.by_user { SessionUpdate::UserMessageChunk(chunk) } else { SessionUpdate::AgentMessageChunk(chunk) };
        client.update(update).await?;
    }
    Ok(())
}

/// A prompt as the model gets it.
fn content_of(blocks: &[ContentBlock]) -> Vec<Value> {
    let mut parts = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => parts.push(part::text(text.text.clone())),
            ContentBlock::Image(image) => {
                parts.push(part::image_url(format!("data:{};base64,{}", image.mime_type, image.data)));
            }
            ContentBlock::ResourceLink(link) => {
                parts.push(part::text(format!("\n[{}: {}]\n", link.name, path_of(&link.uri))));
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    parts.push(part::text(format!(
                        "\n<file path=\"{}\">\n{}\n</file>\n",
                        path_of(&text.uri),
                        text.text
                    )));
                }
                _ => parts.push(part::text("\n[an attachment that is no text]\n")),
            },
            _ => parts.push(part::text("\n[content that this agent does not understand]\n")),
        }
    }
    parts
}

fn path_of(uri: &str) -> &str {
    uri.strip_prefix("file://").unwrap_or(uri)
}
