//! What the known servers have of the Responses API, and what they leave out or refuse.
//!
//! Everything that depends on the server is a fact here, so that no other code asks which server it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::response::item_kind;

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Dialect {
    /// `OpenAI`.
    #[serde(rename = "openai")]
    OpenAi,
    /// Volcengine Ark.
    #[serde(rename = "ark")]
    Ark,
    /// Ollama, from 0.13.3.
    #[serde(rename = "ollama")]
    Ollama,
    /// llama.cpp's server.
    #[serde(rename = "llama.cpp", alias = "llamacpp", alias = "llama_cpp")]
    LlamaCpp,
    /// vLLM.
    #[serde(rename = "vllm")]
    Vllm,
    /// LM Studio, from 0.3.29.
    #[serde(rename = "lmstudio", alias = "lm-studio")]
    LmStudio,
    /// Anything else: what most have is taken for granted.
    #[default]
    #[serde(rename = "generic")]
    Generic,
}

/// What a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a server")]
pub struct Capabilities {
    /// It keeps responses: `previous_response_id` works, and `GET /responses/{id}`.
    pub keeps_responses: bool,
    /// `GET /responses/{id}/input_items` and `DELETE /responses/{id}`.
    pub manages_responses: bool,
    /// `tool_choice` has an effect.
    pub tool_choice: bool,
    /// `tool_choice` may name a function; else the function alone is offered, and `required`.
    pub names_tool_choice: bool,
    /// Reasoning items may be sent back.
    pub takes_reasoning_back: bool,
    /// Reasoning is only told when `reasoning.summary` asks for it.
    pub asks_for_summary: bool,
    /// It searches the web by the tool `web_search`.
    pub web_search: bool,
    /// It takes `thinking`, `caching` and `expire_at`.
    pub ark_fields: bool,
    /// It takes files by `POST /files`.
    pub uploads: bool,
    /// It reads `input_file` parts with inlined data.
    pub inlines_files: bool,
    /// What it does not keep (`store: false`) it must be given back encrypted: reasoning in clear is refused.
    pub encrypts_reasoning: bool,
    /// How long to wait before continuing a response that it has just kept.
    pub chain_pause: Duration,
}

/// The tool types that every build has.
pub const BUILT_IN_TOOLS: &[&str] = &["function", "web_search"];

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::OpenAi, Self::Ark, Self::Ollama, Self::LlamaCpp, Self::Vllm, Self::LmStudio, Self::Generic];

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Ark => "ark",
            Self::Ollama => "ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::Vllm => "vllm",
            Self::LmStudio => "lmstudio",
            Self::Generic => "generic",
        }
    }

    /// What servers of this kind have.
    pub const fn capabilities(self) -> Capabilities {
        let least = Capabilities {
            keeps_responses: false,
            manages_responses: false,
            tool_choice: true,
            names_tool_choice: true,
            takes_reasoning_back: false,
            asks_for_summary: false,
            web_search: false,
            ark_fields: false,
            uploads: false,
            inlines_files: false,
            encrypts_reasoning: false,
            chain_pause: Duration::ZERO,
        };
        match self {
            Self::OpenAi => Capabilities {
                keeps_responses: true,
                manages_responses: true,
                takes_reasoning_back: true,
                asks_for_summary: true,
                encrypts_reasoning: true,
                web_search: true,
                uploads: true,
                inlines_files: true,
                ..least
            },
            Self::Ark => Capabilities {
                keeps_responses: true,
                manages_responses: true,
                takes_reasoning_back: true,
                web_search: true,
                ark_fields: true,
                chain_pause: Duration::from_millis(100),
                uploads: true,
                inlines_files: true,
                ..least
            },
            // Drops tool_choice without an error.
            Self::Ollama => {
                Capabilities { tool_choice: false, names_tool_choice: false, takes_reasoning_back: true, ..least }
            }
            // Takes a tool_choice that names a function for `auto`; refuses previous_response_id, and reasoning items
            // without text.
            Self::LlamaCpp => Capabilities { names_tool_choice: false, ..least },
            Self::Vllm => Capabilities { takes_reasoning_back: true, ..least },
            Self::LmStudio => Capabilities { keeps_responses: true, ..least },
            Self::Generic => Capabilities { web_search: true, inlines_files: true, ..least },
        }
    }

    /// Fits a request to the server: what it is known to refuse or to take for something else is left out or said in
    /// another way with the same meaning.
    pub(super) fn fit(self, body: &mut Map<String, Value>) {
        let capabilities = self.capabilities();
        if !capabilities.takes_reasoning_back
            && let Some(Value::Array(items)) = body.get_mut("input")
        {
            items.retain(|item| item_kind(item) != "reasoning");
        }
        if capabilities.encrypts_reasoning && body.get("store") == Some(&Value::Bool(false)) {
            encrypt_reasoning(body);
        }
        if !capabilities.names_tool_choice {
            name_by_offering(body, capabilities.tool_choice);
        }
        if capabilities.asks_for_summary
            && let Some(Value::Object(reasoning)) = body.get_mut("reasoning")
            && !reasoning.contains_key("summary")
        {
            reasoning.insert("summary".to_owned(), "auto".into());
        }
    }

    /// Headers that Ark wants when a tool of its own is offered.
    pub(super) fn headers(self, body: &Map<String, Value>) -> Vec<(&'static str, &'static str)> {
        const BETA: &[(&str, &str)] = &[
            ("web_search", "ark-beta-web-search"),
            ("mcp", "ark-beta-mcp"),
            ("knowledge_search", "ark-beta-knowledge-search"),
            ("image_process", "ark-beta-image-process"),
            ("doubao_app", "ark-beta-doubao-app"),
        ];
        if self != Self::Ark {
            return Vec::new();
        }
        let tools = body.get("tools").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let has = |kind: &str| tools.iter().any(|tool| tool.get("type").and_then(Value::as_str) == Some(kind));
        BETA.iter().filter(|(kind, _)| has(kind)).map(|(_, header)| (*header, "true")).collect()
    }
}

/// Without a store, reasoning is asked for in its encrypted form, and only that form is sent back. It is only asked for
/// where the request says that the model reasons: models that do not refuse the question.
fn encrypt_reasoning(body: &mut Map<String, Value>) {
    const ENCRYPTED: &str = "reasoning.encrypted_content";
    if let Some(Value::Array(items)) = body.get_mut("input") {
        let is_encrypted = |item: &Value| item.get("encrypted_content").is_some_and(Value::is_string);
        items.retain(|item| item_kind(item) != "reasoning" || is_encrypted(item));
    }
    if body.contains_key("reasoning")
        && let Value::Array(include) = body.entry("include").or_insert_with(|| Value::Array(Vec::new()))
        && !include.iter().any(|name| name == ENCRYPTED)
    {
        include.push(ENCRYPTED.into());
    }
}

/// A choice that names a function, for servers that do not understand it: only this function is offered, and it is
/// required if the server knows that word.
fn name_by_offering(body: &mut Map<String, Value>, knows_required: bool) {
    let Some(name) = body.get("tool_choice").and_then(|choice| choice.get("name")).and_then(Value::as_str) else {
        return;
    };
    let name = name.to_owned();
    if let Some(Value::Array(tools)) = body.get_mut("tools") {
        tools.retain(|tool| tool.get("name").and_then(Value::as_str) == Some(name.as_str()));
    }
    if knows_required {
        body.insert("tool_choice".to_owned(), "required".into());
    } else {
        body.remove("tool_choice");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fitted(dialect: Dialect, body: &Value) -> Value {
        let mut body = body.as_object().cloned().unwrap();
        dialect.fit(&mut body);
        Value::Object(body)
    }

    #[test]
    fn a_choice_that_names_a_function_has_its_effect_everywhere() {
        let body = json!({"tools": [{"type": "function", "name": "a"}, {"type": "function", "name": "b"}],
            "tool_choice": {"type": "function", "name": "b"}});
        assert_eq!(fitted(Dialect::OpenAi, &body), body);
        assert_eq!(
            fitted(Dialect::LlamaCpp, &body),
            json!({"tools": [{"type": "function", "name": "b"}], "tool_choice": "required"})
        );
        assert_eq!(fitted(Dialect::Ollama, &body), json!({"tools": [{"type": "function", "name": "b"}]}));
    }

    #[test]
    fn reasoning_is_sent_back_only_where_it_is_taken() {
        let body = json!({"input": [{"type": "reasoning", "summary": []}, {"role": "user", "content": "hi"}]});
        assert_eq!(fitted(Dialect::LlamaCpp, &body), json!({"input": [{"role": "user", "content": "hi"}]}));
        assert_eq!(fitted(Dialect::Ark, &body), body);
    }

    #[test]
    fn reasoning_that_is_not_kept_goes_back_encrypted_or_not_at_all() {
        let clear = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        let encrypted = json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAA"});
        let body =
            json!({"store": false, "input": [clear, encrypted], "reasoning": {"effort": "low", "summary": "auto"}});
        let fit = fitted(Dialect::OpenAi, &body);
        assert_eq!(fit["input"], json!([encrypted]));
        assert_eq!(fit["include"], json!(["reasoning.encrypted_content"]));
        assert!(fitted(Dialect::OpenAi, &json!({"store": false, "input": "hi"})).get("include").is_none());
        assert_eq!(fitted(Dialect::OpenAi, &json!({"input": [clear]}))["input"], json!([clear]));
    }

    #[test]
    fn ark_is_told_which_of_its_tools_are_used() {
        let body = json!({"tools": [{"type": "web_search"}, {"type": "function", "name": "f"}]});
        assert_eq!(Dialect::Ark.headers(body.as_object().unwrap()), [("ark-beta-web-search", "true")]);
        assert_eq!(Dialect::OpenAi.headers(body.as_object().unwrap()), []);
    }

    #[test]
    fn names_are_those_of_the_configuration() {
        for dialect in Dialect::ALL {
            assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.name());
        }
    }
}
