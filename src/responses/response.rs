//! What an endpoint answered, read leniently: every field but `type` may be missing.

use serde_json::{Map, Value, json};

use super::names;

/// A function that the model wants to have called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCall {
    /// What its output is linked by. Servers that send none get the item's id.
    pub call_id: String,
    /// The function.
    pub name: String,
    /// The arguments as the model wrote them: JSON, or what a model takes for it.
    pub arguments: String,
}

impl FunctionCall {
    /// Reads an item; nothing if it is none, or has no name.
    pub fn from_item(item: &Value) -> Option<Self> {
        let field = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        if names::item_type(field("type")?) != "function_call" {
            return None;
        }
        Some(Self {
            call_id: field("call_id").or_else(|| field("id"))?.to_owned(),
            name: field("name")?.to_owned(),
            // Some servers send an object where the API has its text.
            arguments: match item.get("arguments") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            },
        })
    }

    /// The item that repeats this call in the input of the next request.
    pub fn to_item(&self) -> Value {
        json!({"type": "function_call", "call_id": self.call_id, "name": self.name, "arguments": self.arguments})
    }
}

/// Tokens of one response; those that the endpoint did not tell are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the input, with those that were cached.
    pub input: u64,
    /// Of these, the cached ones.
    pub cached: u64,
    /// Tokens of the output, with those of reasoning.
    pub output: u64,
    /// Of these, reasoning.
    pub reasoning: u64,
    /// All of them, as the endpoint counts.
    pub total: u64,
}

/// How a response ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// Everything is there.
    Completed,
    /// It stopped early, for this reason (`max_output_tokens`, `content_filter`, …; empty if not told).
    Incomplete(String),
    /// The endpoint failed.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// It is not ready, or the endpoint did not say.
    Unfinished,
}

/// A response object. Its items are in the documented form, whichever the endpoint used; all else is as it came.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Response(Map<String, Value>);

impl Response {
    /// Takes a response object; nothing if it is no object.
    pub fn from_json(mut value: Value) -> Option<Self> {
        names::normalize_response(&mut value);
        match value {
            Value::Object(fields) => Some(Self(fields)),
            _ => None,
        }
    }

    /// The object.
    pub fn as_map(&self) -> &Map<String, Value> {
        &self.0
    }

    pub(super) fn fields_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// The response with another value of a field.
    #[must_use]
    pub fn with_field(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// A field that is a text and not empty.
    pub fn text_field(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// The response's id; empty if the endpoint gave none.
    pub fn id(&self) -> &str {
        self.text_field("id").unwrap_or_default()
    }

    /// The model that answered; empty if the endpoint did not say.
    pub fn model(&self) -> &str {
        self.text_field("model").unwrap_or_default()
    }

    /// How it ended.
    pub fn status(&self) -> Status {
        match self.text_field("status") {
            Some("completed") => Status::Completed,
            Some("incomplete") => {
                let reason = self.0.get("incomplete_details").and_then(|details| details.get("reason"));
                Status::Incomplete(reason.and_then(Value::as_str).unwrap_or_default().to_owned())
            }
            Some("failed") => Status::Failed,
            Some("cancelled" | "canceled") => Status::Cancelled,
            _ => Status::Unfinished,
        }
    }

    /// The output items, in order.
    pub fn output(&self) -> &[Value] {
        self.0.get("output").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// All text of the answer.
    pub fn output_text(&self) -> String {
        self.output().iter().map(item_text).collect()
    }

    /// All refusals of the answer.
    pub fn refusal(&self) -> Option<String> {
        let all: String = self.output().iter().flat_map(|item| parts(item, "content", "refusal", "refusal")).collect();
        Some(all).filter(|text| !text.is_empty())
    }

    /// All that the model told of its reasoning: the summaries, or the reasoning itself where there are none.
    pub fn reasoning_text(&self) -> String {
        self.output().iter().map(reasoning_of).collect()
    }

    /// The functions that the model wants to have called, in order.
    pub fn function_calls(&self) -> Vec<FunctionCall> {
        self.output().iter().filter_map(FunctionCall::from_item).collect()
    }

    /// Every call of the answer, of functions and of the endpoint's own tools, as it came.
    pub fn calls(&self) -> Vec<&Value> {
        self.output().iter().filter(|item| item_kind(item).ends_with("_call")).collect()
    }

    /// The tokens, if the endpoint told them.
    pub fn usage(&self) -> Option<Usage> {
        let usage = self.0.get("usage").filter(|usage| usage.is_object())?;
        let count = |value: Option<&Value>| value.and_then(Value::as_u64);
        let either =
            |first: &str, second: &str| count(usage.get(first)).or_else(|| count(usage.get(second))).unwrap_or(0);
        let detail =
            |object: &str, name: &str| count(usage.get(object).and_then(|details| details.get(name))).unwrap_or(0);
        let (input, output) = (either("input_tokens", "prompt_tokens"), either("output_tokens", "completion_tokens"));
        Some(Usage {
            input,
            cached: detail("input_tokens_details", "cached_tokens"),
            output,
            reasoning: detail("output_tokens_details", "reasoning_tokens"),
            total: count(usage.get("total_tokens")).unwrap_or(input + output),
        })
    }
}

/// An item's type, in the documented form; empty if it has none. An item with a role and no type is a message.
pub(super) fn item_kind(item: &Value) -> &str {
    match item.get("type").and_then(Value::as_str) {
        Some(kind) => names::item_type(kind),
        None if item.get("role").is_some() => "message",
        None => "",
    }
}

/// The output text of a message; empty for any other item.
pub(super) fn item_text(item: &Value) -> String {
    if item_kind(item) != "message" {
        return String::new();
    }
    match item.get("content") {
        Some(Value::String(text)) => text.clone(),
        _ => parts(item, "content", "output_text", "text").collect(),
    }
}

/// What a reasoning item tells; empty for any other item.
pub(super) fn reasoning_of(item: &Value) -> String {
    if item_kind(item) != "reasoning" {
        return String::new();
    }
    let summary: String = parts(item, "summary", "summary_text", "text").collect();
    if summary.is_empty() { parts(item, "content", "reasoning_text", "text").collect() } else { summary }
}

/// The texts of those parts in `list` that are of type `kind`.
fn parts<'item>(
    item: &'item Value,
    list: &str,
    kind: &'static str,
    field: &'static str,
) -> impl Iterator<Item = &'item str> + use<'item> {
    let parts = item.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    parts
        .iter()
        .filter(move |part| part.get("type").and_then(Value::as_str) == Some(kind))
        .filter_map(move |part| part.get(field)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(value: Value) -> Response {
        Response::from_json(value).unwrap()
    }

    #[test]
    fn the_answer_is_taken_from_its_items() {
        let response = response(json!({"id": "resp_1", "status": "completed", "model": "m", "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "think"}], "content": [{"type": "reasoning_text", "text": "long"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hel"}, {"type": "output_text", "text": "lo"}]},
            {"type": "function_tool_call", "id": "call_1", "name": "f", "arguments": "{}"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "novelty"}],
            "usage": {"input_tokens": 10, "output_tokens": 7}}));
        assert_eq!((response.output_text().as_str(), response.reasoning_text().as_str()), ("Hello", "think"));
        let call = FunctionCall { call_id: "call_1".into(), name: "f".into(), arguments: "{}".into() };
        assert_eq!(response.function_calls(), [call]);
        assert_eq!(response.calls().len(), 2);
        assert_eq!(response.usage(), Some(Usage { input: 10, output: 7, total: 17, ..Usage::default() }));
        assert_eq!(response.status(), Status::Completed);
    }

    #[test]
    fn what_is_missing_or_wrong_is_empty() {
        let response =
            response(json!({"output": [{}, 5, {"type": "message"}, {"type": "function_call"}], "usage": null}));
        assert_eq!((response.id(), response.output_text().as_str(), response.usage()), ("", "", None));
        assert_eq!((response.function_calls(), response.status()), (vec![], Status::Unfinished));
        assert!(Response::from_json(json!([])).is_none());
    }

    #[test]
    fn arguments_that_came_as_an_object_are_its_text() {
        let item = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}});
        assert_eq!(FunctionCall::from_item(&item).unwrap().arguments, "{\"a\":1}");
    }
}
