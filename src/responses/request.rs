//! A request, as its callers write it.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// A request for a response. What is `None` or empty is not sent, so that the endpoint's default holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Request {
    /// The model's name at the endpoint.
    pub model: String,
    /// What is asked.
    pub input: Input,
    /// The system text. It is not inherited through [`previous_response_id`](Self::previous_response_id).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What the model may use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Whether it has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The most calls of the endpoint's own tools; never together with functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tool_calls: Option<u32>,
    /// Whether several functions may be called at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The most tokens of the answer, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How much to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The form of the answer, as `{"format": {…}}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Value>,
    /// Whether the endpoint keeps the response; most do unless told not to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<bool>,
    /// Goes on after that response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_response_id: Option<String>,
    /// More that the response shall have, such as `reasoning.encrypted_content`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// Fields that only some endpoints have (`thinking`, `caching`, `expire_at`, …), sent as they are.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// The input: a text, or items.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Input {
    /// One message of the user.
    Text(String),
    /// Items in order; the functions of [`item`] make them.
    Items(Vec<Value>),
}

impl Default for Input {
    fn default() -> Self {
        Self::Items(Vec::new())
    }
}

impl Input {
    /// The same as items.
    pub fn into_items(self) -> Vec<Value> {
        match self {
            Self::Text(text) => vec![item::user(vec![part::text(text)])],
            Self::Items(items) => items,
        }
    }
}

/// How much a model thinks, and whether it tells.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reasoning {
    /// `minimal`, `low`, `medium`, `high`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// `auto`, `concise` or `detailed`: `OpenAI` only tells of its reasoning when it is asked to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
}

/// A tool that is offered to the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Tool {
    /// A function of ours.
    Function(Function),
    /// A tool as a whole object: one of the endpoint (`web_search`, …), or a function as a user wrote it.
    Other(Value),
}

/// A function of ours.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename = "function")]
pub struct Function {
    /// What the model calls it.
    pub name: String,
    /// What the model is told about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments, an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Whether the endpoint has to make the arguments fit the schema. Most take `true` when nothing is sent, and then
    /// refuse schemas with optional fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}

impl Tool {
    /// The tool's type.
    pub fn kind(&self) -> &str {
        match self {
            Self::Function(_) => "function",
            Self::Other(tool) => tool.get("type").and_then(Value::as_str).unwrap_or_default(),
        }
    }
}

/// Whether the model has to use a tool, and which.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice {
    /// As the model likes.
    Auto,
    /// At least one.
    Required,
    /// None at all.
    None,
    /// This function.
    Function(String),
    /// What else an endpoint has, as it is.
    Other(Value),
}

impl Serialize for ToolChoice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Required => serializer.serialize_str("required"),
            Self::None => serializer.serialize_str("none"),
            Self::Function(name) => json!({"type": "function", "name": name}).serialize(serializer),
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

impl Request {
    /// The request as JSON, as every endpoint understands it.
    pub fn to_json(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            // Every field is JSON already; maps have text keys only.
            _ => Map::new(),
        }
    }

    /// Whether the endpoint may run tools for this request, so that sending it again may run them twice.
    pub fn runs_tools_at_endpoint(&self) -> bool {
        self.tools.iter().any(|tool| tool.kind() != "function")
    }
}

/// Input items.
pub mod item {
    use serde_json::{Value, json};

    /// What the user says, in parts.
    pub fn user(parts: impl Into<Value>) -> Value {
        json!({"type": "message", "role": "user", "content": parts.into()})
    }

    /// What the model said in an earlier turn.
    pub fn assistant(text: &str) -> Value {
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
    }

    /// What came of a call. `call_id` is that of the call, never an item's id.
    pub fn function_call_output(call_id: &str, output: &str) -> Value {
        json!({"type": "function_call_output", "call_id": call_id, "output": output})
    }
}

/// Parts of a user's message.
pub mod part {
    use serde_json::{Value, json};

    /// Text.
    pub fn text(text: impl Into<String>) -> Value {
        json!({"type": "input_text", "text": text.into()})
    }

    /// A picture: `https://…`, or `data:image/png;base64,…`.
    pub fn image_url(url: impl Into<String>) -> Value {
        json!({"type": "input_image", "detail": "auto", "image_url": url.into()})
    }

    /// A document: its name, and `data:application/pdf;base64,…`.
    pub fn file_data(name: impl Into<String>, data_url: impl Into<String>) -> Value {
        json!({"type": "input_file", "filename": name.into(), "file_data": data_url.into()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_sent() {
        let request = Request { model: "m".into(), input: Input::Text("hi".into()), ..Request::default() };
        assert_eq!(Value::Object(request.to_json()), json!({"model": "m", "input": "hi"}));
    }

    #[test]
    fn everything_has_its_place_on_the_wire() {
        let function =
            Function { name: "f".into(), description: None, parameters: Some(json!({})), strict: Some(false) };
        let request = Request {
            model: "m".into(),
            input: Input::Items(vec![item::function_call_output("call_1", "42")]),
            tools: vec![Tool::Other(json!({"type": "web_search", "limit": 3})), Tool::Function(function)],
            tool_choice: Some(ToolChoice::Function("f".into())),
            temperature: Some(0.0),
            reasoning: Some(Reasoning { effort: Some("low".into()), summary: None }),
            more: json!({"thinking": {"type": "auto"}}).as_object().cloned().unwrap(),
            ..Request::default()
        };
        assert_eq!(
            Value::Object(request.to_json()),
            json!({"model": "m", "input": [{"type": "function_call_output", "call_id": "call_1", "output": "42"}],
                "tools": [{"type": "web_search", "limit": 3}, {"type": "function", "name": "f", "parameters": {}, "strict": false}],
                "tool_choice": {"type": "function", "name": "f"}, "temperature": 0.0,
                "reasoning": {"effort": "low"}, "thinking": {"type": "auto"}})
        );
        assert!(request.runs_tools_at_endpoint());
    }
}
