//! Asking: one request, or with `--run-tools` as many as it takes.

use std::io;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::failure::{Failure, Kind};
use super::interrupt::Interrupt;
use super::kept;
use super::output::{self, Output};
use super::print::{self, Human};
use super::runner::{Run, Runner};
use super::schema::Schema;
use crate::responses::{Client, Error, Input, Request, Response, Status, Step, ToolChoice, Usage, item};
use crate::store::Store;

/// After how long the user is told that it takes long, and how often then.
const FIRST_PROGRESS: Duration = Duration::from_secs(5);
const NEXT_PROGRESS: Duration = Duration::from_secs(10);

/// How long the end of the text is waited for after Ctrl-C.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How the result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One JSON object at the end.
    Json,
    /// Text as it comes.
    Human,
    /// The endpoint's events as JSON lines.
    Events,
}

/// What a conversation needs beside the request.
pub(crate) struct Setting {
    pub(crate) client: Client,
    pub(crate) mode: Mode,
    /// Whether the user is told that it takes long.
    pub(crate) progress: bool,
    pub(crate) max_turns: u32,
    pub(crate) runner: Option<Runner>,
    /// What answers have to fit.
    pub(crate) schema: Option<Schema>,
    /// Where responses are kept.
    pub(crate) keeper: Keeper,
    pub(crate) interrupt: Interrupt,
}

/// Keeps responses here, unless told not to.
pub(crate) struct Keeper {
    /// Opened when it is first needed, since that takes longer than the first token may.
    store: Option<Store>,
    pub(crate) enabled: bool,
    pub(crate) endpoint: String,
    pub(crate) expire_at: Option<i64>,
}

/// A conversation.
pub(crate) struct Turns {
    setting: Setting,
    out: Output,
    human: Human,
    usage: Usage,
    runs: Vec<Run>,
}

/// What of a request is kept beside its response.
struct Asked {
    previous: Option<String>,
    /// The input beyond that of `previous`.
    items: Vec<Value>,
}

enum Failed {
    Request(Error),
    Interrupted(Response),
    Output(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Turns {
    pub(crate) fn new(setting: Setting) -> Self {
        Self { setting, out: Output::new(), human: Human::default(), usage: Usage::default(), runs: Vec::new() }
    }

    /// Asks, and prints the result. `items` are the input of `request`, beyond the response that it continues.
    pub(crate) async fn run(mut self, mut request: Request, mut items: Vec<Value>) -> Result<(), Failure> {
        let capabilities = self.setting.client.endpoint().dialect.capabilities();
        let is_kept_there = capabilities.keeps_responses && request.store != Some(false);
        let mut previous = request.previous_response_id.take();
        // What was said before, for endpoints that have to be told.
        let mut history = match &previous {
            Some(id) if !capabilities.keeps_responses => self.setting.keeper.history(id, &self.setting.client)?,
            _ => Vec::new(),
        };
        let mut is_first = true;
        for turn in 1.. {
            let continues_there = capabilities.keeps_responses && (is_first || is_kept_there);
            request.previous_response_id = previous.clone().filter(|_| continues_there);
            let input: Vec<Value> = history.iter().chain(&items).cloned().collect();
            request.input = Input::Items(if continues_there { input } else { kept::as_input(input) });
            let asked = Asked { previous: previous.clone(), items: items.clone() };
            let response = match self.receive(&request).await {
                Ok(response) => response,
                Err(failed) => return Err(self.failed(failed, &asked)),
            };
            let response = self.setting.keeper.keep(&asked, response);
            self.count(&response);
            let Some(outputs) = self.run_calls(&response).await? else { return self.finish(&response).await };
            if turn >= self.setting.max_turns {
                self.finish(&response).await?;
                return Err(Failure::general(format!(
                    "stopped after {turn} requests (--max-turns): the model still calls functions"
                )));
            }
            if !is_kept_there {
                history.append(&mut items);
                history.extend(response.output().iter().cloned());
            }
            previous = Some(response.id().to_owned());
            items = outputs;
            tokio::time::sleep(capabilities.chain_pause).await;
            is_first = false;
            // Whoever has to call a function would call one for ever.
            if matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Function(_))) {
                request.tool_choice = Some(ToolChoice::Auto);
            }
        }
        Ok(())
    }

    fn failed(&mut self, failed: Failed, asked: &Asked) -> Failure {
        let (failure, partial) = match failed {
            Failed::Output(error) => return Failure::of_output(&error),
            Failed::Request(error) => (Failure::of_request("create_responses", &error), error.partial().cloned()),
            Failed::Interrupted(response) => (Failure::cancelled(), Some(response)),
        };
        let interrupted = failure.kind == Kind::Cancelled;
        match partial.filter(|response| !response.output().is_empty()) {
            Some(response) if self.setting.keeper.enabled => {
                let ended = if interrupted { "cancelled" } else { "incomplete" };
                let kept = self.setting.keeper.keep(asked, response.with_field("status", ended.into()));
                failure.with_kept(&kept)
            }
            _ if interrupted => failure.hint("nothing of this answer is stored"),
            _ => failure,
        }
    }

    /// Sends a request and prints what comes, as far as the mode prints before the end.
    async fn receive(&mut self, request: &Request) -> Result<Response, Failed> {
        // Whoever wants a checked answer must not see one that is not.
        let streams = match self.setting.mode {
            Mode::Json => false,
            Mode::Human => self.setting.schema.is_none(),
            Mode::Events => true,
        };
        let client = self.setting.client.clone();
        let mut progress = Progress::new(self.setting.progress);
        let interrupt = self.setting.interrupt.clone();
        if !streams {
            let create = client.create(request);
            tokio::pin!(create);
            loop {
                tokio::select! {
                    response = &mut create => return response.map_err(Failed::Request),
                    () = progress.due() => progress.tell(),
                    () = interrupt.wait() => return Err(Failed::Interrupted(Response::default())),
                }
            }
        }
        let begin = client.stream(request);
        tokio::pin!(begin);
        let mut events = loop {
            tokio::select! {
                events = &mut begin => break events.map_err(Failed::Request)?,
                () = progress.due() => progress.tell(),
                () = interrupt.wait() => return Err(Failed::Interrupted(Response::default())),
            }
        };
        let interrupted = interrupt.wait();
        tokio::pin!(interrupted);
        loop {
            let step = tokio::select! {
                biased;
                step = events.next() => step,
                () = &mut interrupted => {
                    self.end_text();
                    // Nobody may be reading.
                    let _ = tokio::time::timeout(LAST_WORDS, self.out.flush()).await;
                    return Err(Failed::Interrupted(events.response()));
                }
                () = progress.due() => {
                    progress.tell();
                    continue;
                }
            };
            match step {
                Ok(Some(step)) => {
                    progress.on &= step.updates.is_empty();
                    self.show(&step);
                    if events.has_to_wait() && !self.flush().await? {
                        return Err(Failed::Interrupted(events.response()));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    self.end_text();
                    self.flush().await?;
                    return Err(Failed::Request(error));
                }
            }
        }
        self.flush().await?;
        Ok(events.into_response())
    }

    /// Writes out what was printed; false if the user stopped it, since nobody reads.
    async fn flush(&mut self) -> io::Result<bool> {
        tokio::select! {
            biased;
            written = self.out.flush() => written.map(|()| true),
            () = self.setting.interrupt.wait() => Ok(false),
        }
    }

    fn show(&mut self, step: &Step) {
        match self.setting.mode {
            Mode::Json => {}
            Mode::Human => step.updates.iter().for_each(|update| self.out.push(&self.human.show(update))),
            Mode::Events if step.event.raw.is_empty() => {}
            Mode::Events => {
                self.out.push(step.event.raw.trim());
                self.out.push("\n");
            }
        }
    }

    fn end_text(&mut self) {
        self.out.push(self.human.end());
    }

    fn count(&mut self, response: &Response) {
        let usage = response.usage().unwrap_or_default();
        self.usage.input += usage.input;
        self.usage.output += usage.output;
        self.usage.total += usage.total;
    }

    /// Runs the functions that the response calls, if all of them can be run: their outputs. Nothing if there is nothing to run.
    async fn run_calls(&mut self, response: &Response) -> Result<Option<Vec<Value>>, Failure> {
        let calls = response.function_calls();
        let Some(runner) = self.setting.runner.as_mut().filter(|_| !calls.is_empty()) else { return Ok(None) };
        if let Some(unknown) = calls.iter().find(|call| !runner.knows(&call.name)) {
            output::warn(&format!("the function \"{}\" has no \"run\": its call is only shown", unknown.name));
            return Ok(None);
        }
        let mut outputs = Vec::with_capacity(calls.len());
        for call in &calls {
            let run = tokio::select! {
                run = runner.run(call) => run?,
                () = self.setting.interrupt.wait() => {
                    if runner.is_asking() {
                        output::say("");
                    }
                    return Err(Failure::cancelled().hint(format!("the call of {} was stopped; the response before it is {}", call.name, response.id())));
                }
            };
            outputs.push(item::function_call_output(&run.call_id, &run.output));
            if self.setting.mode == Mode::Human {
                self.out.push(&self.human.run(&run));
            }
            self.runs.push(run);
        }
        Ok(Some(outputs))
    }

    async fn finish(&mut self, response: &Response) -> Result<(), Failure> {
        if let Some(schema) = &self.setting.schema
            && response.function_calls().is_empty()
        {
            check_answer(schema, response)?;
        }
        match self.setting.mode {
            Mode::Json => {
                let flat = print::flat(response, self.usage, &self.runs);
                let text = serde_json::to_string_pretty(&flat).map_err(|error| Failure::general(error.to_string()))?;
                self.out.push(&text);
                self.out.push("\n");
            }
            Mode::Human if self.setting.schema.is_some() => {
                self.out.push(&response.output_text());
                self.out.push("\n");
            }
            Mode::Human => self.end_text(),
            Mode::Events => {}
        }
        if !self.flush().await.map_err(|error| Failure::of_output(&error))? {
            return Err(Failure::cancelled());
        }
        if let Some(note) = print::note_on_end(response) {
            output::warn(&note);
        }
        Ok(())
    }
}

/// What `--text-strict` demands.
fn check_answer(schema: &Schema, response: &Response) -> Result<(), Failure> {
    let invalid = |message: String| Failure { kind: Kind::InvalidResponse, message, hint: None };
    if !matches!(response.status(), Status::Completed) {
        let why = print::note_on_end(response).unwrap_or_default();
        return Err(invalid(format!("the answer is not completed: {why}")));
    }
    let text = response.output_text();
    let value: Value = serde_json::from_str(&text).map_err(|error| {
        invalid(format!("the answer is not a direct JSON value: {error}"))
            .hint("the model may not do structured output")
    })?;
    schema.validate(&value).map_err(|reason| invalid(format!("the answer did not match --text-schema: {reason}")))
}

impl Keeper {
    pub(crate) fn new(endpoint: String, enabled: bool, expire_at: Option<i64>) -> Self {
        Self { store: None, enabled, endpoint, expire_at }
    }

    fn open(&mut self) -> Result<&mut Store, String> {
        if self.store.is_none() {
            self.store = Some(kept::open().map_err(|error| error.to_string())?);
        }
        self.store.as_mut().ok_or_else(|| "there is no store".to_owned())
    }

    /// What was said up to a response that is kept here.
    fn history(&mut self, id: &str, client: &Client) -> Result<Vec<Value>, Failure> {
        let store = self.open().map_err(Failure::general)?;
        let items = kept::conversation(store, id).map_err(|error| Failure::general(error.to_string()))?;
        items.ok_or_else(|| {
            let name = client.endpoint().dialect.name();
            Failure {
                kind: Kind::Api,
                message: format!("InvalidParameter.PreviousResponseNotFound: there is no response \"{id}\""),
                hint: Some(format!(
                    "{name} keeps no responses, so they are kept here: `agentchat chat list` shows them"
                )),
            }
        })
    }

    /// Keeps a response, if that is wanted, and gives it back with what the endpoint left out: an id, and what it continues.
    fn keep(&mut self, asked: &Asked, mut response: Response) -> Response {
        if response.id().is_empty() {
            response = response.with_field("id", kept::new_id().into());
        }
        if let Some(id) = asked.previous.as_deref().filter(|_| response.text_field("previous_response_id").is_none()) {
            response = response.with_field("previous_response_id", id.into());
        }
        if !self.enabled {
            return response;
        }
        let (endpoint, expire_at) = (self.endpoint.clone(), self.expire_at);
        let kept = self.open().and_then(|store| {
            kept::keep(store, &endpoint, asked.previous.as_deref(), &asked.items, &response, expire_at)
                .map_err(|error| error.to_string())
        });
        if let Err(reason) = kept {
            output::warn(&format!("the response is not stored: {reason}"));
            self.enabled = false;
        }
        response
    }
}

/// Tells the user that it takes long.
struct Progress {
    on: bool,
    started: Instant,
    next: Instant,
}

impl Progress {
    fn new(on: bool) -> Self {
        let started = Instant::now();
        Self { on, started, next: started + FIRST_PROGRESS }
    }

    async fn due(&self) {
        if self.on {
            tokio::time::sleep_until(self.next).await;
        } else {
            std::future::pending::<()>().await;
        }
    }

    fn tell(&mut self) {
        output::say(&format!("agentchat chat: still running… elapsed {}s", self.started.elapsed().as_secs()));
        self.next += NEXT_PROGRESS;
    }
}
