//! What was said in a session, as input items. The agent owns it: every server understands the whole list, and few keep
//! one.

use serde_json::{Value, json};

use crate::responses::{Dialect, FunctionCall, Response, item};

/// What a call brings that was stopped.
const CANCELLED: &str = "cancelled by the user";
/// The longest output of a call that is kept once it is old, in bytes.
const OLD_OUTPUT: usize = 2 * 1024;

/// The items. Each call has an output before the next request, or the endpoint refuses it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct History {
    items: Vec<Value>,
}

impl History {
    /// From what was stored.
    pub(super) fn from_items(items: Vec<Value>) -> Self {
        let mut history = Self { items };
        history.settle();
        history
    }

    pub(super) fn items(&self) -> &[Value] {
        &self.items
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn push(&mut self, item: Value) {
        self.items.push(item);
    }

    /// Takes in what the model answered.
    pub(super) fn answered(&mut self, response: &Response) {
        for item in response.output() {
            match item.get("type").and_then(Value::as_str) {
                Some("message") => {
                    let text = text_of(item);
                    if !text.is_empty() {
                        self.items.push(self::item::assistant(&text));
                    }
                }
                Some("function_call") => {
                    if let Some(call) = FunctionCall::from_item(item) {
                        self.items.push(call.to_item());
                    }
                }
                // Only what is encrypted can be given back to an endpoint that keeps nothing.
                Some("reasoning") if item.get("encrypted_content").is_some_and(Value::is_string) => {
                    let mut item = item.clone();
                    if let Some(fields) = item.as_object_mut() {
                        fields
                            .retain(|name, _| matches!(name.as_str(), "type" | "id" | "summary" | "encrypted_content"));
                    }
                    self.items.push(item);
                }
                _ => {}
            }
        }
    }

    /// What came of a call.
    pub(super) fn output(&mut self, call_id: &str, output: &str) {
        self.items.push(item::function_call_output(call_id, output));
    }

    /// What the model had said when it was stopped.
    pub(super) fn stopped(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.items.push(item::assistant(text));
        }
        self.settle();
    }

    /// Gives an output to each call that has none.
    pub(super) fn settle(&mut self) {
        let id = |item: &Value| item.get("call_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let of_kind =
            |kind: &str| -> Vec<String> { self.items.iter().filter(|item| item["type"] == kind).map(id).collect() };
        let answered = of_kind("function_call_output");
        for call in of_kind("function_call") {
            if !answered.contains(&call) {
                self.output(&call, CANCELLED);
            }
        }
    }

    /// The items for a request to a server of this kind.
    pub(super) fn input(&self, dialect: Dialect) -> Vec<Value> {
        let keeps_reasoning = dialect == Dialect::OpenAi;
        let fits = |item: &&Value| keeps_reasoning || item["type"] != "reasoning";
        self.items.iter().filter(fits).cloned().collect()
    }

    /// Puts a summary in the place of everything.
    pub(super) fn compact(&mut self, summary: &str) {
        let text = format!("Summary of the conversation so far, which is not here any more:\n\n{summary}");
        self.items =
            vec![json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})];
    }

    /// The last items, at most so many, that make sense without those before them: an output without its call is refused by
    /// every server.
    pub(super) fn recent(&self, count: usize) -> Vec<Value> {
        let last = &self.items[self.items.len().saturating_sub(count)..];
        let calls: Vec<&Value> =
            last.iter().filter(|item| item["type"] == "function_call").map(|item| &item["call_id"]).collect();
        let fits = |item: &&Value| item["type"] != "function_call_output" || calls.contains(&&item["call_id"]);
        last.iter().filter(fits).cloned().collect()
    }

    /// Cuts the outputs of old calls, those before the last `kept` items. Whether that made it shorter.
    pub(super) fn shorten(&mut self, kept: usize) -> bool {
        let end = self.items.len().saturating_sub(kept);
        let mut is_shorter = false;
        for item in &mut self.items[..end] {
            if let Some(output) = item.get("output").and_then(Value::as_str)
                && output.len() > OLD_OUTPUT
            {
                let cut = output.floor_char_boundary(OLD_OUTPUT / 2);
                item["output"] = format!("{}\n(the rest of this old output was left out)", &output[..cut]).into();
                is_shorter = true;
            }
        }
        is_shorter
    }

    /// The first thing that the user said, for a title.
    pub(super) fn opening(&self) -> Option<String> {
        let first = self.items.iter().find(|item| item["role"] == "user")?;
        let text = text_of(first);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
        Some(line.chars().take(80).collect())
    }
}

/// All text of a message.
pub(super) fn text_of(item: &Value) -> String {
    let parts = item.get("content").and_then(Value::as_array).into_iter().flatten();
    parts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn response(output: &Value) -> Response {
        Response::from_json(json!({"id": "r", "output": output})).unwrap()
    }

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "id": "fc", "call_id": id, "name": "f", "arguments": "{}", "status": "completed"})
    }

    #[test]
    fn an_answer_goes_back_as_every_server_takes_it() {
        let mut history = History::default();
        history.answered(&response(&json!([
            {"type": "reasoning", "id": "rs_1", "summary": [], "status": "completed"},
            {"type": "reasoning", "id": "rs_2", "summary": [], "status": "completed", "encrypted_content": "x"},
            {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "hi", "annotations": []}]},
            call("c1"),
        ])));
        assert_eq!(
            history.items(),
            &[
                json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "x"}),
                item::assistant("hi"),
                json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}),
            ]
        );
        assert_eq!(history.input(Dialect::OpenAi).len(), 3);
        assert_eq!(history.input(Dialect::LlamaCpp).len(), 2, "no reasoning");
    }

    #[test]
    fn old_outputs_are_cut_and_a_summary_stands_for_all() {
        let mut history = History::default();
        history.output("c1", &"é".repeat(4000));
        history.output("c2", &"y".repeat(4000));
        assert!(history.shorten(1) && !history.shorten(1));
        assert!(history.items()[0]["output"].as_str().unwrap().len() < 1200);
        assert_eq!(history.items()[1]["output"].as_str().unwrap().len(), 4000);
        history.compact("we did this");
        assert!(history.items().len() == 1 && text_of(&history.items()[0]).ends_with("we did this"));
    }

    #[test]
    fn what_is_kept_of_the_end_has_no_output_without_its_call() {
        let mut history = History::default();
        history.answered(&response(&json!([call("a"), call("b")])));
        history.output("a", "1");
        history.output("b", "2");
        let kinds = |count| {
            history.recent(count).iter().map(|item| item["call_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(kinds(3), ["b", "b"]);
        assert_eq!(kinds(2), Vec::<String>::new());
        assert_eq!(kinds(9).len(), 4);
    }

    proptest! {
        #[test]
        fn every_call_has_one_output_wherever_it_was_stopped(
            calls in prop::collection::vec(any::<bool>(), 0..8), text in "[a-z ]{0,9}",
        ) {
            let mut history = History::default();
            for (number, is_done) in calls.iter().enumerate() {
                let id = format!("c{number}");
                history.answered(&response(&json!([call(&id)])));
                if *is_done {
                    history.output(&id, "out");
                }
            }
            history.stopped(&text);
            history.settle();
            for number in 0..calls.len() {
                let id = format!("c{number}");
                let of = |kind: &str| history.items().iter().filter(|item| item["type"] == kind && item["call_id"] == id.as_str()).count();
                prop_assert_eq!((of("function_call"), of("function_call_output")), (1, 1));
            }
        }
    }
}
