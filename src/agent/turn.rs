//! One prompt: the model is asked, what it calls is done, and it is asked again, until it is done.

use std::collections::HashMap;
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, MessageId, Plan, SessionUpdate, StopReason, Terminal, ToolCall, ToolCallContent,
    ToolCallId, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields, ToolKind, Usage as PromptUsage, UsageUpdate,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::approval::{self, Action, Verdict};
use super::arguments::{self, Partial};
use super::client::{Step, Terminals};
use super::failure::{self, Failure};
use super::instructions;
use super::model::Connected;
use super::options::Mode;
use super::session::{Setting, State};
use super::tools::{self, Job, Outcome, Prepared};
use crate::responses::{
    Error, FunctionCall, Input, Reason, Reasoning, Request, Response, Retry, Status, Tool, Update, Usage, item, part,
};

/// The most requests of one turn.
const MOST_REQUESTS: usize = 100;
/// Calls of one function with the same arguments in a row, after which the turn stops.
const MOST_ALIKE: usize = 3;
/// Items that stay whole when old outputs are cut.
const RECENT: usize = 8;

/// How a turn ends, and what it took.
pub(super) struct Ended {
    pub(super) reason: StopReason,
    pub(super) usage: Option<PromptUsage>,
}

/// One turn of a session. Everything it begins is settled by a cancel.
pub(super) struct Turn<'a> {
    pub(super) setting: &'a Setting,
    pub(super) state: &'a mut State,
    terminals: Terminals,
    open_calls: Vec<ToolCallId>,
    /// What the model has said of its current answer.
    said: String,
    usage: Usage,
    /// The last call, and how often it came in a row.
    alike: (String, usize),
}

/// An answer as far as it was shown.
#[derive(Default)]
struct Shown {
    message: HashMap<usize, MessageId>,
    calls: HashMap<usize, (ToolCallId, String, Partial)>,
}

enum Asked {
    Answer(Box<Response>),
    Failed(Error),
}

impl<'a> Turn<'a> {
    pub(super) fn new(setting: &'a Setting, state: &'a mut State) -> Self {
        Self {
            setting,
            state,
            terminals: Terminals::default(),
            open_calls: Vec::new(),
            said: String::new(),
            usage: Usage::default(),
            alike: (String::new(), 0),
        }
    }

    /// Has a prompt answered.
    pub(super) async fn answer(&mut self, content: Vec<Value>) -> Step<Ended> {
        let connected = match self.setting.finder.find().await {
            Ok(connected) => connected,
            Err(error) => return self.fail(failure::of_model(&error)).await,
        };
        self.state.history.push(item::user(content));
        let mut shortened = 0;
        for _ in 0..MOST_REQUESTS {
            let request = match self.request(&connected) {
                Ok(request) => request,
                Err(failure) => return self.fail(failure).await,
            };
            let response = match self.ask(&connected, &request).await? {
                Asked::Answer(response) => *response,
                // Old outputs first, then all of it.
                Asked::Failed(error) if is_too_long(&error) && shortened < 2 => {
                    shortened += 1;
                    if shortened > 1 || !self.state.history.shorten(RECENT) {
                        shortened = 2;
                        self.compact(&connected, 0).await?;
                    }
                    continue;
                }
                Asked::Failed(error) => {
                    self.keep_partial(&error);
                    return self.fail(failure::of_request(&error)).await;
                }
            };
            self.said.clear();
            self.state.history.answered(&response);
            self.count(&connected, &response).await?;
            let calls = response.function_calls();
            if calls.is_empty() {
                return self.end(&response).await;
            }
            for call in &calls {
                if !self.may_go_on(call) {
                    return self.stop_repeating(call).await;
                }
                self.call(call).await?;
            }
            if Self::is_full(&connected, &response) {
                self.compact(&connected, RECENT).await?;
            }
        }
        self.tell("**Stopped:** this turn has taken 100 requests. Say “go on” if it should.").await?;
        Ok(self.ended(StopReason::MaxTurnRequests))
    }

    /// Says something, without the model.
    pub(super) async fn tell(&mut self, text: &str) -> Step {
        let chunk = ContentChunk::new(ContentBlock::from(text.to_owned())).message_id(self.state.next_message());
        self.setting.client.update(SessionUpdate::AgentMessageChunk(chunk)).await
    }

    pub(super) fn ended(&self, reason: StopReason) -> Ended {
        let Usage { input, cached, output, reasoning, total } = self.usage;
        let usage = (total > 0).then(|| {
            let mut usage = PromptUsage::new(total, input, output);
            usage.cached_read_tokens = (cached > 0).then_some(cached);
            usage.thought_tokens = (reasoning > 0).then_some(reasoning);
            usage
        });
        Ended { reason, usage }
    }

    pub(super) async fn fail(&mut self, failure: Failure) -> Step<Ended> {
        self.tell(&failure.text).await?;
        self.state.history.settle();
        Ok(self.ended(failure.reason))
    }

    /// What had come before a failure was said, and the model should know.
    fn keep_partial(&mut self, error: &Error) {
        if error.partial().is_some() {
            let said = std::mem::take(&mut self.said);
            self.state.history.stopped(&said);
        }
    }

    fn request(&self, connected: &Connected) -> Result<Request, Failure> {
        let options = self.setting.options.lock().clone();
        let model = connected.model(&options).map_err(|error| failure::of_model(&error))?;
        let endpoint = connected.client.endpoint();
        let capabilities = endpoint.dialect.capabilities();
        let mut tools: Vec<Tool> =
            tools::functions(options.mode == Mode::Plan).into_iter().map(Tool::Function).collect();
        if options.mode != Mode::Plan {
            tools.extend_from_slice(self.setting.programs.offered());
            tools.extend(self.setting.servers().offered());
        }
        if options.web_search && capabilities.web_search {
            tools.push(Tool::Other(json!({"type": "web_search"})));
        }
        // Whoever has to call a function would call one for ever.
        let has_called = self.state.history.items().last().is_some_and(|item| item["type"] == "function_call_output");
        let tool_choice = options.tool_choice.to_wire().filter(|_| capabilities.tool_choice && !has_called);
        let summary = capabilities.asks_for_summary.then(|| "auto".to_owned());
        let reasoning = options.effort.map(|effort| Reasoning { effort: Some(effort.to_owned()), summary });
        Ok(Request {
            model,
            input: Input::Items(self.state.history.input(endpoint.dialect)),
            instructions: Some(instructions::text(&self.setting.client.folder, self.setting.config.as_deref())),
            tools,
            tool_choice,
            reasoning,
            store: Some(false),
            include: if capabilities.encrypts_reasoning && options.effort.is_some() {
                vec!["reasoning.encrypted_content".to_owned()]
            } else {
                Vec::new()
            },
            ..Request::default()
        })
    }

    /// Asks the model, and shows its answer as it comes.
    async fn ask(&mut self, connected: &Connected, request: &Request) -> Step<Asked> {
        let (told, mut retries) = mpsc::unbounded_channel();
        let client = connected.telling(move |retry: &Retry| drop(told.send((retry.wait, retry.error.message.clone()))));
        let answer = client.stream(request);
        tokio::pin!(answer);
        let begun = loop {
            tokio::select! {
                events = &mut answer => break events,
                Some((wait, why)) = retries.recv() => self.tell_of_retry(wait, &why).await?,
            }
        };
        let mut events = match begun {
            Ok(events) => events,
            Err(error) => return Ok(Asked::Failed(error)),
        };
        let mut shown = Shown::default();
        loop {
            match events.next().await {
                Ok(Some(step)) => {
                    for update in step.updates {
                        self.show(&mut shown, update).await?;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.close_calls("the answer was cut off").await?;
                    return Ok(Asked::Failed(error));
                }
            }
        }
        Ok(Asked::Answer(Box::new(events.into_response())))
    }

    async fn tell_of_retry(&mut self, wait: Duration, why: &str) -> Step {
        let text = format!("{}; asking again in {} s", why.trim_end_matches('.'), wait.as_secs().max(1));
        let chunk = ContentChunk::new(ContentBlock::from(text)).message_id(self.state.next_message());
        self.setting.client.update(SessionUpdate::AgentThoughtChunk(chunk)).await
    }

    async fn show(&mut self, shown: &mut Shown, update: Update) -> Step {
        let setting = self.setting;
        let client = &setting.client;
        match update {
            Update::Text { item, delta } | Update::Refusal { item, delta } => {
                self.said.push_str(&delta);
                let chunk = ContentChunk::new(ContentBlock::from(delta)).message_id(self.message(shown, item));
                client.update(SessionUpdate::AgentMessageChunk(chunk)).await
            }
            Update::Thought { item, delta } => {
                let chunk = ContentChunk::new(ContentBlock::from(delta)).message_id(self.message(shown, item));
                client.update(SessionUpdate::AgentThoughtChunk(chunk)).await
            }
            Update::CallStarted { item, call_id, name } => {
                if !call_id.is_empty() && !name.is_empty() && name != "update_plan" {
                    let id = self.begin(&call_id, &name).await?;
                    shown.calls.insert(item, (id, name, Partial::default()));
                }
                Ok(())
            }
            Update::Arguments { item, delta } => {
                if let Some((id, name, partial)) = shown.calls.get_mut(&item)
                    && let Some(known) = partial.push(&delta)
                {
                    let early = tools::early(client, name, &known);
                    let fields = ToolCallUpdateFields::new().title(early.title).locations(early.locations);
                    let update = ToolCallUpdate::new(id.clone(), fields);
                    return client.update(SessionUpdate::ToolCallUpdate(update)).await;
                }
                Ok(())
            }
            Update::Tool { item, kind, status } => self.show_search(shown, item, &kind, &status).await,
            Update::CallDone { .. } | Update::Started | Update::Citation { .. } | Update::Finished => Ok(()),
        }
    }

    fn message(&mut self, shown: &mut Shown, item: usize) -> MessageId {
        shown.message.entry(item).or_insert_with(|| self.state.next_message()).clone()
    }

    /// A tool that the endpoint runs itself.
    async fn show_search(&mut self, shown: &mut Shown, item: usize, kind: &str, status: &str) -> Step {
        let known = shown.calls.get(&item).map(|(id, ..)| id.clone());
        let title = if kind == "web_search_call" { "Search the web" } else { kind };
        let id = if let Some(id) = known {
            id
        } else {
            let id = self.state.next_call();
            let mut call = ToolCall::new(id.clone(), title);
            call.kind = if kind == "web_search_call" { ToolKind::Fetch } else { ToolKind::Other };
            call.status = ToolCallStatus::InProgress;
            self.setting.client.update(SessionUpdate::ToolCall(call)).await?;
            self.open_calls.push(id.clone());
            shown.calls.insert(item, (id.clone(), kind.to_owned(), Partial::default()));
            id
        };
        match status {
            "completed" => self.close(&id, ToolCallStatus::Completed, ToolCallUpdateFields::new()).await,
            "failed" => self.close(&id, ToolCallStatus::Failed, ToolCallUpdateFields::new()).await,
            _ => Ok(()),
        }
    }

    async fn begin(&mut self, call_id: &str, name: &str) -> Step<ToolCallId> {
        let early = tools::early(&self.setting.client, name, &serde_json::Map::new());
        let id = ToolCallId::new(call_id);
        let mut call = ToolCall::new(id.clone(), early.title);
        call.kind = early.kind;
        call.status = ToolCallStatus::Pending;
        self.setting.client.update(SessionUpdate::ToolCall(call)).await?;
        self.open_calls.push(id.clone());
        Ok(id)
    }

    async fn update_call(&self, id: &ToolCallId, fields: ToolCallUpdateFields) -> Step {
        let update = ToolCallUpdate::new(id.clone(), fields);
        self.setting.client.update(SessionUpdate::ToolCallUpdate(update)).await
    }

    async fn close(&mut self, id: &ToolCallId, status: ToolCallStatus, fields: ToolCallUpdateFields) -> Step {
        // Forgotten only once it is sent: a cancel in between must still settle it.
        self.update_call(id, fields.status(status)).await?;
        self.open_calls.retain(|open| open != id);
        Ok(())
    }

    async fn close_calls(&mut self, reason: &str) -> Step {
        for id in self.open_calls.clone() {
            let fields = ToolCallUpdateFields::new().raw_output(json!({"reason": reason}));
            self.close(&id, ToolCallStatus::Failed, fields).await?;
        }
        Ok(())
    }

    /// Does what the model called for, and keeps what came of it.
    async fn call(&mut self, call: &FunctionCall) -> Step {
        let id = ToolCallId::new(call.call_id.as_str());
        // Some servers only tell of a call at its end.
        if call.name != "update_plan" && !self.open_calls.contains(&id) {
            self.begin(&call.call_id, &call.name).await?;
        }
        let prepared = match arguments::parse(&call.arguments) {
            Ok(arguments) => {
                let raw = ToolCallUpdateFields::new().raw_input(Value::Object(arguments.clone()));
                if call.name != "update_plan" {
                    self.update_call(&id, raw).await?;
                }
                let Setting { client, programs, .. } = self.setting;
                tools::prepare(client, &self.state.seen, programs, self.setting.servers(), &call.name, &arguments)
                    .await?
            }
            Err(problem) => Err(format!("{problem}. Call {} again with valid JSON", call.name)),
        };
        let outcome = match prepared {
            Ok(prepared) => self.carry_out(&id, prepared).await?,
            Err(problem) => {
                let content = Some(vec![tools::text_content(&problem)]);
                Outcome { text: problem, is_failure: true, content, ..Outcome::default() }
            }
        };
        if self.open_calls.contains(&id) {
            let mut fields = ToolCallUpdateFields::new().raw_output(json!({"output": outcome.text}));
            fields.content = outcome.content;
            fields.locations = outcome.locations;
            let status = if outcome.is_failure { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
            self.close(&id, status, fields).await?;
        }
        self.state.history.output(&call.call_id, &outcome.text);
        if let Some(picture) = outcome.picture {
            self.state.history.push(item::user(vec![part::image_url(picture)]));
        }
        Ok(())
    }

    /// Asks if that has to be, and does it.
    async fn carry_out(&mut self, id: &ToolCallId, prepared: Prepared) -> Step<Outcome> {
        let Prepared { shown, content, action, job } = prepared;
        let fields = ToolCallUpdateFields::new().title(shown.title).kind(shown.kind).locations(shown.locations);
        let fields = if content.is_empty() { fields } else { fields.content(content) };
        if !matches!(job, Job::Plan(_)) {
            self.update_call(id, fields.clone()).await?;
        }
        let mode = self.setting.options.lock().mode;
        match self.state.approvals.judge(&action, mode) {
            Verdict::Allow => {}
            Verdict::Refuse(reason) => return Ok(refused(reason)),
            Verdict::Ask => {
                // A permission request carries the call whole: a client may show it alone.
                let call = ToolCallUpdate::new(id.clone(), fields.status(ToolCallStatus::Pending));
                match self.setting.client.ask(call, approval::options(&action)).await? {
                    Ok(kind) => {
                        self.state.approvals.remember(&action, kind);
                        if !is_yes(kind) {
                            return Ok(refused("the user does not want this: ask what they want instead"));
                        }
                    }
                    Err(reason) => return Ok(refused(&format!("the user could not be asked: {reason}"))),
                }
            }
        }
        if action != Action::Look {
            self.update_call(id, ToolCallUpdateFields::new().status(ToolCallStatus::InProgress)).await?;
        }
        self.perform(id, job).await
    }

    async fn perform(&mut self, id: &ToolCallId, job: Job) -> Step<Outcome> {
        let setting = self.setting;
        let client = &setting.client;
        match job {
            Job::Read { path, offset, limit } => tools::read(client, &mut self.state.seen, &path, offset, limit).await,
            Job::Write { path, text } => tools::write(client, &mut self.state.seen, &path, &text).await,
            Job::Grep { root, wanted } => Ok(tools::grep(client, root, wanted).await),
            Job::Glob { root, pattern, limit } => Ok(tools::glob(client, root, pattern, limit).await),
            Job::Program { name, arguments } => Ok(self.setting.programs.run(&name, &arguments, &client.folder).await),
            Job::Remote { name, arguments } => Ok(setting.servers().call(&name, arguments).await),
            Job::Plan(entries) => {
                client.update(SessionUpdate::Plan(Plan::new(entries))).await?;
                Ok(Outcome { text: "shown to the user".to_owned(), ..Outcome::default() })
            }
            Job::Run { command, cwd, limit } if client.has_terminals() => {
                let started = self.terminals.start(client, &command, &cwd, tools::OUTPUT as u64).await?;
                let terminal = match started {
                    Ok(terminal) => terminal,
                    Err(reason) => return Ok(refused(&reason)),
                };
                let shown = ToolCallContent::Terminal(Terminal::new(terminal.clone()));
                self.update_call(id, ToolCallUpdateFields::new().content(vec![shown])).await?;
                let ran = self.terminals.wait(client, &terminal, limit).await?;
                self.terminals.release(client, &terminal).await?;
                Ok(ran.map_or_else(|reason| refused(&reason), |ran| tools::ran(&ran)))
            }
            Job::Run { command, cwd, limit } => {
                Ok(match tools::shell::run(&command, &cwd, limit, tools::OUTPUT).await {
                    Ok(ran) => {
                        let outcome = tools::ran(&ran);
                        Outcome { content: Some(vec![tools::text_content(&outcome.text)]), ..outcome }
                    }
                    Err(reason) => refused(&reason),
                })
            }
        }
    }

    fn may_go_on(&mut self, call: &FunctionCall) -> bool {
        let key = format!("{} {}", call.name, call.arguments);
        self.alike = if self.alike.0 == key { (key, self.alike.1 + 1) } else { (key, 1) };
        self.alike.1 < MOST_ALIKE
    }

    async fn stop_repeating(&mut self, call: &FunctionCall) -> Step<Ended> {
        self.close_calls("called three times with the same arguments").await?;
        self.state.history.settle();
        let text = format!(
            "**Stopped:** `{}` was called three times in a row with the same arguments. Tell me what to do differently.",
            call.name
        );
        self.tell(&text).await?;
        Ok(self.ended(StopReason::EndTurn))
    }

    async fn end(&mut self, response: &Response) -> Step<Ended> {
        let reason = match response.status() {
            Status::Incomplete(why) if why == "content_filter" => StopReason::Refusal,
            Status::Incomplete(_) => StopReason::MaxTokens,
            _ if response.refusal().is_some() => StopReason::Refusal,
            _ => StopReason::EndTurn,
        };
        if reason == StopReason::EndTurn && response.output_text().trim().is_empty() {
            self.tell("*The model ended its turn without an answer.*").await?;
        }
        Ok(self.ended(reason))
    }

    async fn count(&mut self, connected: &Connected, response: &Response) -> Step {
        let Some(usage) = response.usage() else { return Ok(()) };
        self.usage.input += usage.input;
        self.usage.cached += usage.cached;
        self.usage.output += usage.output;
        self.usage.reasoning += usage.reasoning;
        self.usage.total += usage.total;
        if let Some(size) = connected.context {
            let update = UsageUpdate::new(usage.total, size);
            self.setting.client.update(SessionUpdate::UsageUpdate(update)).await?;
        }
        Ok(())
    }

    /// Closes what a cancelled turn left open: calls, terminals, and what the model would wait for.
    pub(super) async fn settle(mut self) -> Step {
        self.state.history.stopped(&self.said);
        self.close_calls("cancelled").await?;
        self.terminals.settle(&self.setting.client).await
    }
}

fn refused(reason: &str) -> Outcome {
    // Without content: what the user saw, a diff, stays.
    Outcome { text: reason.to_owned(), is_failure: true, ..Outcome::default() }
}

fn is_yes(kind: agent_client_protocol_schema::v1::PermissionOptionKind) -> bool {
    use agent_client_protocol_schema::v1::PermissionOptionKind::{AllowAlways, AllowOnce};
    matches!(kind, AllowOnce | AllowAlways)
}

fn is_too_long(error: &Error) -> bool {
    matches!(error, Error::Api(api) if api.reason() == Reason::ContextTooLong)
}
