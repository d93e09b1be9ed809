//! Puts a response together from its events, whatever a server leaves out.
//!
//! * An item is found by its id, else by its place, else it is the newest of that kind; if there is none, it is made.
//!   So streams without `item_id`, without `output_index`, without `output_item.added` all work.
//! * The final truth about an item is in `output_item.done`, and about all of them in the `output` of the terminal event,
//!   unless that is empty. What is only told there is reported as if it had been streamed.

use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::event::Event;
use super::names;
use super::response::{FunctionCall, Response, item_kind, item_text, reasoning_of};

/// What an event means. `item` is the number of an output item, from 0, in the order in which they came.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// The response has begun: [`Assembly::response`] has its id, if the endpoint gave one.
    Started,
    /// More of the answer.
    Text {
        /// The message.
        item: usize,
        /// What came.
        delta: String,
    },
    /// More of a refusal.
    Refusal {
        /// The message.
        item: usize,
        /// What came.
        delta: String,
    },
    /// More of what the model tells of its reasoning.
    Thought {
        /// The reasoning item.
        item: usize,
        /// What came.
        delta: String,
    },
    /// The model begins to call a function; its arguments follow.
    CallStarted {
        /// The call.
        item: usize,
        /// The call's id; empty if it is only told at the end.
        call_id: String,
        /// The function; empty if it is only told at the end.
        name: String,
    },
    /// More of the arguments.
    Arguments {
        /// The call.
        item: usize,
        /// What came.
        delta: String,
    },
    /// A call is complete. Comes exactly once for each.
    CallDone {
        /// The call.
        item: usize,
        /// All of it.
        call: FunctionCall,
    },
    /// A tool of the endpoint goes on.
    Tool {
        /// Its item.
        item: usize,
        /// The item's type, such as `web_search_call`.
        kind: String,
        /// `in_progress`, `searching`, `completed`, `failed`, …
        status: String,
    },
    /// A source of the answer.
    Citation {
        /// The message.
        item: usize,
        /// The annotation (`url_citation`, …) as it came.
        annotation: Value,
    },
    /// The response is complete; nothing follows.
    Finished,
}

#[derive(Debug, Default)]
struct Slot {
    id: String,
    place: Option<u64>,
    /// As it was told last.
    item: Value,
    text: String,
    refusal: String,
    thought: String,
    /// The newest part of the reasoning's summary, so that parts are told apart.
    thought_part: Option<u64>,
    arguments: String,
    done: bool,
    call_reported: bool,
}

/// A response that is being streamed.
#[derive(Debug, Default)]
pub struct Assembly {
    head: Response,
    slots: Vec<Slot>,
    started: bool,
    finished: bool,
}

impl Assembly {
    /// The response as far as it is known: all of it once [`Update::Finished`] came.
    pub fn response(&self) -> Response {
        let mut response = self.head.clone();
        if response.output().is_empty() {
            let items = self.slots.iter().map(Slot::to_item).collect();
            response.fields_mut().insert("output".to_owned(), Value::Array(items));
        }
        response
    }

    /// Whether a terminal event came.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Whether anything of an answer came.
    pub fn has_output(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Takes an event, and appends what it means to `updates`. Unknown events mean nothing.
    ///
    /// # Errors
    /// What the endpoint says, if the event is a failure.
    pub fn apply(&mut self, event: &Event, updates: &mut Vec<Update>) -> Result<(), Box<ApiError>> {
        if event.is("error") || (event.kind.is_empty() && event.data.get("error").is_some_and(|error| !error.is_null()))
        {
            return Err(self.failure(ApiError::from_json(&event.data)));
        }
        match event.kind.replace('_', ".").as_str() {
            "response.created" | "response.queued" | "response.in.progress" => self.begin(event, updates),
            "response.completed" | "response.incomplete" => self.terminal(event.data.get("response"), updates),
            "response.failed" | "response.cancelled" => return Err(self.failed(event)),
            "response.output.item.added" => self.added(event, updates),
            "response.output.item.done" => self.done(event, updates),
            "response.output.text.delta" => self.delta(event, "message", updates),
            "response.refusal.delta" => self.delta(event, "refusal", updates),
            "response.reasoning.summary.text.delta" | "response.reasoning.text.delta" => {
                self.delta(event, "reasoning", updates);
            }
            "response.function.call.arguments.delta" => self.delta(event, "function_call", updates),
            "response.function.call.arguments.done" => self.arguments_done(event, updates),
            "response.output.text.annotation.added" => {
                let item = self.slot(event, "message");
                let annotation = event.data.get("annotation").cloned().unwrap_or_default();
                updates.push(Update::Citation { item, annotation });
            }
            "" if event.text("object") == Some("response") => self.terminal(Some(&event.data), updates),
            other => self.tool_progress(event, other, updates),
        }
        Ok(())
    }

    /// Takes a whole response, as an endpoint that does not stream sends it.
    pub fn whole(&mut self, response: &Value, updates: &mut Vec<Update>) {
        self.terminal(Some(response), updates);
    }

    /// The stream said that nothing follows (`[DONE]`) without a terminal event: what came is all.
    pub fn done_without_end(&mut self, updates: &mut Vec<Update>) {
        if !self.finished {
            let fields = self.head.fields_mut();
            fields.insert("status".to_owned(), "completed".into());
            self.finish(updates);
        }
    }

    fn begin(&mut self, event: &Event, updates: &mut Vec<Update>) {
        self.take_head(event.data.get("response"));
        if !std::mem::replace(&mut self.started, true) {
            updates.push(Update::Started);
        }
    }

    /// Later heads have more fields, or fewer: what was told before stays.
    fn take_head(&mut self, response: Option<&Value>) {
        if let Some(response) = response.cloned().and_then(Response::from_json) {
            for (name, value) in response.as_map() {
                self.head.fields_mut().insert(name.clone(), value.clone());
            }
        }
    }

    fn added(&mut self, event: &Event, updates: &mut Vec<Update>) {
        let Some(mut item) = event.data.get("item").cloned().filter(Value::is_object) else { return };
        names::normalize_item(&mut item);
        let place = event.data.get("output_index").and_then(Value::as_u64);
        let id = item.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let slot = Slot { id, place, item, ..Slot::default() };
        let number = self.slots.len();
        let (kind, field) = (item_kind(&slot.item), |name: &str| string(&slot.item, name));
        if kind == "function_call" {
            updates.push(Update::CallStarted { item: number, call_id: field("call_id"), name: field("name") });
        } else if is_tool(kind) {
            let status = field("status");
            updates.push(Update::Tool { item: number, kind: kind.to_owned(), status });
        }
        // Some servers send the whole item at once.
        let whole = slot.item.clone();
        self.slots.push(slot);
        self.catch_up(number, &whole, updates);
    }

    fn done(&mut self, event: &Event, updates: &mut Vec<Update>) {
        let Some(mut item) = event.data.get("item").cloned().filter(Value::is_object) else { return };
        names::normalize_item(&mut item);
        let place = event.data.get("output_index").and_then(Value::as_u64);
        let number = self.of_item(&item, place);
        self.settle(number, item, updates);
    }

    /// The item is complete, and this is what it is.
    fn settle(&mut self, number: usize, mut item: Value, updates: &mut Vec<Update>) {
        self.catch_up(number, &item, updates);
        let slot = &mut self.slots[number];
        let kind = item_kind(&item).to_owned();
        if kind == "function_call" && string(&item, "arguments").is_empty() && !slot.arguments.is_empty() {
            item["arguments"] = slot.arguments.clone().into();
        }
        if is_tool(&kind) && !slot.done {
            let status = Some(string(&item, "status")).filter(|status| !status.is_empty());
            let status = status.unwrap_or_else(|| "completed".to_owned());
            updates.push(Update::Tool { item: number, kind, status });
        }
        slot.item = item;
        slot.done = true;
        self.report_call(number, updates);
    }

    fn report_call(&mut self, number: usize, updates: &mut Vec<Update>) {
        let slot = &mut self.slots[number];
        if !slot.call_reported
            && let Some(call) = FunctionCall::from_item(&slot.to_item())
        {
            slot.call_reported = true;
            updates.push(Update::CallDone { item: number, call });
        }
    }

    /// Reports what of an item was not streamed before.
    fn catch_up(&mut self, number: usize, item: &Value, updates: &mut Vec<Update>) {
        let slot = &mut self.slots[number];
        if let Some(delta) = rest(&mut slot.thought, &reasoning_of(item)) {
            updates.push(Update::Thought { item: number, delta });
        }
        if let Some(delta) = rest(&mut slot.text, &item_text(item)) {
            updates.push(Update::Text { item: number, delta });
        }
        if item_kind(item) == "function_call"
            && let Some(delta) = rest(&mut slot.arguments, &arguments_of(item))
        {
            updates.push(Update::Arguments { item: number, delta });
        }
    }

    fn delta(&mut self, event: &Event, what: &str, updates: &mut Vec<Update>) {
        let Some(delta) = event.text("delta").filter(|delta| !delta.is_empty()) else { return };
        let item = self.slot(event, if what == "refusal" { "message" } else { what });
        let slot = &mut self.slots[item];
        let mut delta = delta.to_owned();
        updates.push(match what {
            "reasoning" => {
                let part = event.data.get("summary_index").and_then(Value::as_u64);
                if part.is_some() && slot.thought_part.is_some_and(|before| Some(before) != part) {
                    delta.insert_str(0, "\n\n");
                }
                slot.thought_part = part.or(slot.thought_part);
                slot.thought.push_str(&delta);
                Update::Thought { item, delta }
            }
            "function_call" => {
                slot.arguments.push_str(&delta);
                Update::Arguments { item, delta }
            }
            "refusal" => {
                slot.refusal.push_str(&delta);
                Update::Refusal { item, delta }
            }
            _ => {
                slot.text.push_str(&delta);
                Update::Text { item, delta }
            }
        });
    }

    fn arguments_done(&mut self, event: &Event, updates: &mut Vec<Update>) {
        let item = self.slot(event, "function_call");
        let slot = &mut self.slots[item];
        if let Some(name) = event.text("name").filter(|_| string(&slot.item, "name").is_empty()) {
            slot.item["name"] = name.into();
        }
        if let Some(delta) = rest(&mut slot.arguments, event.text("arguments").unwrap_or_default()) {
            updates.push(Update::Arguments { item, delta });
        }
    }

    /// `response.web_search_call.searching` and the like.
    fn tool_progress(&mut self, event: &Event, dotted: &str, updates: &mut Vec<Update>) {
        let Some((kind, status)) = event.kind.strip_prefix("response").and_then(|rest| {
            let rest = rest.strip_prefix(['.', '_'])?;
            let status = ["in_progress", "searching", "completed", "failed", "interpreting", "generating"]
                .into_iter()
                .find(|status| rest.ends_with(status))?;
            Some((rest[..rest.len() - status.len()].trim_end_matches(['.', '_']), status))
        }) else {
            tracing::trace!(event = dotted, "an event that is not used");
            return;
        };
        if is_tool(kind) {
            let item = self.slot(event, kind);
            updates.push(Update::Tool { item, kind: kind.to_owned(), status: status.to_owned() });
        }
    }

    fn terminal(&mut self, response: Option<&Value>, updates: &mut Vec<Update>) {
        self.take_head(response);
        if !std::mem::replace(&mut self.started, true) {
            updates.push(Update::Started);
        }
        let output = self.head.output().to_vec();
        let mut final_items = Vec::with_capacity(output.len());
        for (place, item) in output.into_iter().enumerate() {
            let number = self.of_item(&item, Some(place as u64));
            if self.slots[number].done {
                // Told twice: the arguments of a call are never taken from a copy without them.
                let kept = &self.slots[number].item;
                let lost = item_kind(&item) == "function_call" && arguments_of(&item).is_empty();
                final_items.push(if lost { kept.clone() } else { item });
            } else {
                self.settle(number, item, updates);
                final_items.push(self.slots[number].to_item());
            }
        }
        if !final_items.is_empty() {
            self.head.fields_mut().insert("output".to_owned(), Value::Array(final_items));
        }
        self.finish(updates);
    }

    fn finish(&mut self, updates: &mut Vec<Update>) {
        for number in 0..self.slots.len() {
            self.report_call(number, updates);
        }
        self.finished = true;
        updates.push(Update::Finished);
    }

    fn failed(&mut self, event: &Event) -> Box<ApiError> {
        self.take_head(event.data.get("response"));
        let error = self.head.as_map().get("error").filter(|error| error.is_object()).cloned();
        let mut error = match error {
            Some(error) => ApiError::from_json(&json!({"error": error})),
            None => ApiError::from_json(&json!({"message": format!("the endpoint says {} and no reason", event.kind)})),
        };
        error.body = None;
        self.failure(error)
    }

    fn failure(&self, mut error: ApiError) -> Box<ApiError> {
        error.partial = (self.started || self.has_output()).then(|| Box::new(self.response()));
        Box::new(error)
    }

    /// The item that an event belongs to.
    fn slot(&mut self, event: &Event, kind: &str) -> usize {
        let id = event.text("item_id").unwrap_or_default();
        let place = event.data.get("output_index").and_then(Value::as_u64);
        if let Some(number) = self.find(id, place, kind) {
            return number;
        }
        let item = json!({"type": kind, "id": id});
        self.slots.push(Slot { id: id.to_owned(), place, item, ..Slot::default() });
        self.slots.len() - 1
    }

    /// The slot of a whole item, a new one if there is none.
    fn of_item(&mut self, item: &Value, place: Option<u64>) -> usize {
        let id = item.get("id").and_then(Value::as_str).unwrap_or_default();
        let kind = item_kind(item);
        let call_id = string(item, "call_id");
        let same_call = |slot: &Slot| string(&slot.item, "call_id") == call_id;
        if kind == "function_call"
            && !call_id.is_empty()
            && let Some(number) = self.slots.iter().position(|slot| item_kind(&slot.item) == kind && same_call(slot))
        {
            return number;
        }
        let found = self.find(id, place, kind).filter(|&number| {
            // The newest of a kind is not this one if both are known to be somebody.
            let slot = &self.slots[number];
            let other_id = !id.is_empty() && !slot.id.is_empty() && slot.id != id;
            !(other_id && (slot.done || slot.place.is_some() && slot.place != place))
        });
        found.unwrap_or_else(|| {
            self.slots.push(Slot { id: id.to_owned(), place, item: item.clone(), ..Slot::default() });
            self.slots.len() - 1
        })
    }

    fn find(&self, id: &str, place: Option<u64>, kind: &str) -> Option<usize> {
        let of_kind = |slot: &Slot| item_kind(&slot.item) == kind;
        let newest = |wanted: &dyn Fn(&Slot) -> bool| self.slots.iter().rposition(|slot| of_kind(slot) && wanted(slot));
        let by_id = if id.is_empty() { None } else { newest(&|slot| slot.id == id) };
        by_id
            .or_else(|| newest(&|slot| place.is_some() && slot.place == place))
            .or_else(|| newest(&|slot| !slot.done && (place.is_none() || slot.place.is_none())))
    }
}

impl Slot {
    /// The item with what was streamed of it, if it was not told as a whole.
    fn to_item(&self) -> Value {
        if self.done {
            return self.item.clone();
        }
        let mut fields: Map<String, Value> = self.item.as_object().cloned().unwrap_or_default();
        match item_kind(&self.item) {
            "message" => {
                let mut content = Vec::new();
                if !self.text.is_empty() {
                    content.push(json!({"type": "output_text", "text": self.text, "annotations": []}));
                }
                if !self.refusal.is_empty() {
                    content.push(json!({"type": "refusal", "refusal": self.refusal}));
                }
                fields.entry("role").or_insert_with(|| "assistant".into());
                fields.insert("content".to_owned(), content.into());
            }
            "reasoning" => {
                fields.insert("summary".to_owned(), json!([{"type": "summary_text", "text": self.thought}]));
            }
            "function_call" => {
                fields.insert("arguments".to_owned(), self.arguments.clone().into());
            }
            _ => {}
        }
        Value::Object(fields)
    }
}

/// Whether an item is a call of a tool that the endpoint runs.
fn is_tool(kind: &str) -> bool {
    kind.ends_with("_call") && kind != "function_call" || kind == "mcp_list_tools"
}

/// What `whole` has beyond `streamed`, which becomes `whole`. If it does not begin like that, what was streamed was
/// seen, and nothing is to be added to it.
fn rest(streamed: &mut String, whole: &str) -> Option<String> {
    let rest = whole.strip_prefix(streamed.as_str()).filter(|rest| !rest.is_empty()).map(str::to_owned);
    if !whole.is_empty() {
        whole.clone_into(streamed);
    }
    rest
}

fn arguments_of(item: &Value) -> String {
    match item.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        Some(object @ Value::Object(_)) => object.to_string(),
        _ => String::new(),
    }
}

fn string(item: &Value, name: &str) -> String {
    item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
#[path = "assembly/tests.rs"]
mod tests;
