//! Results as people and as scripts read them.

use serde::Serialize;
use serde_json::Value;

use super::runner::Run;
use crate::responses::{Response, Status, Update, Usage};

/// The one JSON object of a response.
#[derive(Debug, Serialize)]
pub(crate) struct Flat<'response> {
    id: &'response str,
    object: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'response str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<&'response Value>,
    model: &'response str,
    content: String,
    reasoning_content: String,
    usage: FlatUsage,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    function_calls: Vec<&'response Value>,
    #[serde(skip_serializing_if = "<[Run]>::is_empty")]
    tool_runs: &'response [Run],
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete_details: Option<&'response Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<&'response Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expire_at: Option<&'response Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_response_id: Option<&'response Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    caching: Option<&'response Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'response Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'response Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text_format: Option<&'response Value>,
}

#[expect(clippy::struct_field_names, reason = "the names are those of the result")]
#[derive(Debug, Serialize)]
struct FlatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
}

/// Flattens a response. `usage` is that of all requests that led to it, `runs` what was run on the way.
pub(crate) fn flat<'response>(response: &'response Response, usage: Usage, runs: &'response [Run]) -> Flat<'response> {
    let field = |name: &str| response.as_map().get(name).filter(|value| !value.is_null());
    Flat {
        id: response.id(),
        object: "response",
        status: response.text_field("status"),
        created_at: field("created_at"),
        model: response.model(),
        content: response.output_text(),
        reasoning_content: response.reasoning_text(),
        usage: FlatUsage { prompt_tokens: usage.input, completion_tokens: usage.output, total_tokens: usage.total },
        function_calls: response.calls(),
        tool_runs: runs,
        refusal: response.refusal(),
        incomplete_details: field("incomplete_details"),
        store: field("store"),
        expire_at: field("expire_at"),
        previous_response_id: field("previous_response_id"),
        caching: field("caching"),
        thinking: field("thinking"),
        reasoning: field("reasoning").filter(|reasoning| has_content(reasoning)),
        text_format: field("text").and_then(|text| text.get("format")),
    }
}

/// Some servers send `{"effort": null, "summary": null}`.
fn has_content(value: &Value) -> bool {
    value.as_object().is_none_or(|fields| fields.values().any(|value| !value.is_null()))
}

/// What the user should know about how a response ended.
pub(crate) fn note_on_end(response: &Response) -> Option<String> {
    match response.status() {
        Status::Incomplete(reason) if reason.is_empty() => Some("the answer is incomplete".to_owned()),
        Status::Incomplete(reason) => Some(format!("the answer is incomplete: {reason}")),
        Status::Cancelled => Some("the answer was cancelled at the endpoint".to_owned()),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    None,
    Thinking,
    Response,
}

/// Text for people, made of updates as they come.
#[derive(Debug, Default)]
pub(crate) struct Human {
    section: Section,
    /// Something was printed.
    begun: bool,
    at_line_start: bool,
}

impl Human {
    /// What to print for an update.
    pub(crate) fn show(&mut self, update: &Update) -> String {
        match update {
            Update::Thought { delta, .. } => self.text(Section::Thinking, delta),
            Update::Text { delta, .. } | Update::Refusal { delta, .. } => self.text(Section::Response, delta),
            Update::CallDone { call, .. } => self.line(&format!("[Tool args] {}", in_one_line(&call.arguments))),
            _ => String::new(),
        }
    }

    /// What a function gave, in short.
    pub(crate) fn run(&mut self, run: &Run) -> String {
        let line = in_one_line(&run.output);
        let mut shown: String = line.chars().take(200).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        self.line(&format!("[Tool output] {shown}"))
    }

    /// What ends the text: exactly one line end.
    pub(crate) fn end(&mut self) -> &'static str {
        let end = if self.begun && !self.at_line_start { "\n" } else { "" };
        *self = Self::default();
        end
    }

    fn text(&mut self, section: Section, delta: &str) -> String {
        let mut shown = String::new();
        if self.section != section {
            shown.push_str(self.gap());
            shown.push_str(if section == Section::Thinking { "Thinking:\n" } else { "Response:\n" });
            self.section = section;
        }
        shown.push_str(delta);
        self.begun = true;
        self.at_line_start = shown.ends_with('\n');
        shown
    }

    fn line(&mut self, line: &str) -> String {
        let before = if self.begun && !self.at_line_start { "\n" } else { "" };
        (self.section, self.begun, self.at_line_start) = (Section::None, true, true);
        format!("{before}{line}\n")
    }

    fn gap(&self) -> &'static str {
        match (self.begun, self.section, self.at_line_start) {
            // A line of a tool stands close to what follows.
            (false, ..) | (true, Section::None, _) => "",
            (true, _, true) => "\n",
            (true, _, false) => "\n\n",
        }
    }
}

/// A JSON text without line breaks; any other text with its line breaks as spaces.
fn in_one_line(text: &str) -> String {
    if !text.contains(['\n', '\r']) {
        return text.to_owned();
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) => value.to_string(),
        Err(_) => text.lines().map(str::trim).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::responses::FunctionCall;

    fn shown(updates: &[Update]) -> String {
        let mut human = Human::default();
        let mut text: String = updates.iter().map(|update| human.show(update)).collect();
        text.push_str(human.end());
        text
    }

    fn thought(delta: &str) -> Update {
        Update::Thought { item: 0, delta: delta.to_owned() }
    }

    fn text(delta: &str) -> Update {
        Update::Text { item: 1, delta: delta.to_owned() }
    }

    fn call(arguments: &str) -> Update {
        let call = FunctionCall { call_id: "c".into(), name: "f".into(), arguments: arguments.into() };
        Update::CallDone { item: 2, call }
    }

    #[test]
    fn sections_and_lines_fall_where_the_events_do() {
        assert_eq!(shown(&[thought("a"), thought("b"), text("c"), text("d")]), "Thinking:\nab\n\nResponse:\ncd\n");
        assert_eq!(shown(&[text("c\n"), call("{}")]), "Response:\nc\n[Tool args] {}\n");
        assert_eq!(
            shown(&[text("c"), call("{\n \"a\": 1}"), text("d")]),
            "Response:\nc\n[Tool args] {\"a\":1}\nResponse:\nd\n"
        );
        assert_eq!(shown(&[call("{}"), text("c")]), "[Tool args] {}\nResponse:\nc\n");
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn the_object_has_its_fields_in_order_and_no_empty_ones() {
        let response = Response::from_json(json!({"id": "r", "model": "m", "status": "completed", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}], "store": true, "previous_response_id": null,
            "reasoning": {"effort": null}})).unwrap();
        let usage = Usage { input: 1, output: 2, total: 3, ..Usage::default() };
        assert_eq!(
            serde_json::to_string(&flat(&response, usage, &[])).unwrap(),
            "{\"id\":\"r\",\"object\":\"response\",\"status\":\"completed\",\"model\":\"m\",\"content\":\"hi\",\"reasoning_content\":\"\",\
             \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":3},\"store\":true}"
        );
    }
}
