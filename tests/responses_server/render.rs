//! Answers in the dialects of real servers: what each sends, and what each leaves out.

use serde_json::{Map, Value, json};

use super::answer::{Answer, Ending, Part};

/// Which server it is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `OpenAI`: everything.
    OpenAi,
    /// Ark: no `sequence_number`, ends with `[DONE]`, empty body after `DELETE`.
    Ark,
    /// Ollama: arguments in one delta; drops `tool_choice`, `store`, `previous_response_id`.
    Ollama,
    /// llama.cpp: no `sequence_number`, `output_index` or `arguments.done`; the response begins with three fields.
    LlamaCpp,
    /// vLLM: reasoning as `reasoning_text`; keeps nothing.
    Vllm,
    /// A gateway that sends the names of Ark's Go SDK.
    Gateway,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::OpenAi, Self::Ark, Self::Ollama, Self::LlamaCpp, Self::Vllm, Self::Gateway];

    /// The dialect's name in a profile.
    pub fn dialect(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Ark => "ark",
            Self::Ollama => "ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::Vllm => "vllm",
            Self::Gateway => "generic",
        }
    }

    pub(super) fn keeps(self) -> bool {
        matches!(self, Self::OpenAi | Self::Ark)
    }

    /// `owned_by` in the list of models.
    pub(super) fn owner(self) -> &'static str {
        match self {
            Self::OpenAi | Self::Gateway => "system",
            Self::Ark => "doubao",
            Self::Ollama => "library",
            Self::LlamaCpp => "llamacpp",
            Self::Vllm => "vllm",
        }
    }
}

/// The head of a response: everything but its output and usage.
pub(super) fn head(kind: Kind, id: &str, body: &Value) -> Map<String, Value> {
    let mut head = json!({"id": id, "object": "response", "created_at": 1_760_000_000, "status": "in_progress",
        "model": body["model"], "error": null, "incomplete_details": null, "output": []});
    if kind != Kind::LlamaCpp && kind != Kind::Ollama {
        head["previous_response_id"] = body["previous_response_id"].clone();
        head["store"] = body.get("store").cloned().unwrap_or(true.into());
    }
    if kind == Kind::Ark {
        for field in ["thinking", "caching"] {
            head[field] = body.get(field).cloned().unwrap_or_default();
        }
        head["expire_at"] = body.get("expire_at").cloned().unwrap_or_else(|| 1_760_259_200.into());
    }
    head.as_object().cloned().unwrap()
}

/// The whole response.
pub(super) fn whole(kind: Kind, answer: &Answer, id: &str, body: &Value) -> Value {
    let mut response = head(kind, id, body);
    let output: Vec<Value> = (0..).zip(&answer.parts).map(|(n, part)| item(kind, part, &format!("{id}_{n}"))).collect();
    response.insert("output".into(), output.into());
    response.insert("status".into(), "completed".into());
    response.insert("usage".into(), usage(kind));
    match &answer.ending {
        // llama.cpp says so in any case.
        Ending::Incomplete(reason) if kind != Kind::LlamaCpp => {
            response.insert("status".into(), "incomplete".into());
            response.insert("incomplete_details".into(), json!({"reason": reason}));
        }
        Ending::Failed(code, message) => {
            response.insert("status".into(), "failed".into());
            response.insert("error".into(), json!({"code": code, "message": message}));
        }
        _ => {}
    }
    response.into()
}

fn usage(kind: Kind) -> Value {
    let mut usage = json!({"input_tokens": 10, "output_tokens": 7, "total_tokens": 17,
        "input_tokens_details": {"cached_tokens": 4}});
    if kind != Kind::LlamaCpp {
        usage["output_tokens_details"] = json!({"reasoning_tokens": 3});
    }
    if kind == Kind::Ark {
        usage["tool_usage"] = json!({"web_search": 0});
    }
    usage
}

fn item(kind: Kind, part: &Part, id: &str) -> Value {
    let item_type =
        |documented: &str, gateway: &str| if kind == Kind::Gateway { gateway } else { documented }.to_owned();
    match part {
        Part::Text(text) => {
            json!({"type": item_type("message", "output_message"), "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
        }
        Part::Refusal(text) => {
            json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{"type": "refusal", "refusal": text}]})
        }
        Part::Thought(text) if is_plain_reasoning(kind) => {
            json!({"type": "reasoning", "id": format!("rs_{id}"), "summary": [],
            "content": [{"type": "reasoning_text", "text": text}], "status": "completed"})
        }
        Part::Thought(text) => json!({"type": "reasoning", "id": format!("rs_{id}"),
            "summary": [{"type": "summary_text", "text": text}], "status": "completed"}),
        Part::Call(call_id, name, arguments) if kind == Kind::Gateway => {
            json!({"type": "function_tool_call", "id": call_id, "name": name, "arguments": arguments, "status": "completed"})
        }
        Part::Call(call_id, name, arguments) => {
            json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": call_id,
            "name": name, "arguments": arguments, "status": "completed"})
        }
        Part::Search(query) => {
            json!({"type": item_type("web_search_call", "function_web_search"), "id": format!("ws_{id}"), "status": "completed",
            "action": {"type": "search", "query": query}})
        }
    }
}

fn is_plain_reasoning(kind: Kind) -> bool {
    matches!(kind, Kind::LlamaCpp | Kind::Vllm)
}

/// The response as a stream of bytes.
pub(super) fn stream(kind: Kind, answer: &Answer, id: &str, body: &Value) -> Vec<u8> {
    let mut events = Events { kind, bytes: Vec::new(), sequence: 0 };
    let mut created = head(kind, id, body);
    if kind == Kind::LlamaCpp {
        created.retain(|name, _| ["id", "object", "status"].contains(&name.as_str()));
    }
    events.push("response.created", json!({"response": created}));
    events.push("response.in_progress", json!({"response": created}));
    for (place, part) in answer.parts.iter().enumerate() {
        events.item(part, &format!("{id}_{place}"), place, answer.piece);
    }
    let mut response = whole(kind, answer, id, body);
    match &answer.ending {
        Ending::Completed => events.push("response.completed", json!({"response": response})),
        Ending::Incomplete(_) => {
            let name = if kind == Kind::LlamaCpp { "response.completed" } else { "response.incomplete" };
            events.push(name, json!({"response": response}));
        }
        Ending::Failed(..) => {
            response["output"] = json!([]);
            events.push("response.failed", json!({"response": response}));
        }
        Ending::ErrorEvent(code, message) => {
            events.push("error", json!({"code": code, "message": message, "param": null}));
        }
        Ending::BareError(code, message) => {
            let error = json!({"error": {"code": code, "message": message, "type": "server_error"}});
            events.bytes.extend(format!("data: {error}\n\n").into_bytes());
        }
    }
    if kind == Kind::Ark || answer.done_line {
        events.bytes.extend(b"data: [DONE]\n\n");
    }
    events.bytes
}

struct Events {
    kind: Kind,
    bytes: Vec<u8>,
    sequence: u64,
}

impl Events {
    fn push(&mut self, name: &str, mut data: Value) {
        let name = if self.kind == Kind::Gateway { name.replace('.', "_") } else { name.to_owned() };
        let mut fields = Map::new();
        fields.insert("type".into(), name.clone().into());
        fields.append(data.as_object_mut().unwrap());
        if !matches!(self.kind, Kind::LlamaCpp | Kind::Ark) {
            fields.insert("sequence_number".into(), self.sequence.into());
        }
        if self.kind == Kind::LlamaCpp {
            fields.remove("output_index");
        }
        self.sequence += 1;
        self.bytes.extend(format!("event: {name}\ndata: {}\n\n", Value::Object(fields)).into_bytes());
    }

    fn item(&mut self, part: &Part, id: &str, place: usize, piece: usize) {
        let done = item(self.kind, part, id);
        let mut added = done.clone();
        added["status"] = "in_progress".into();
        for (field, empty) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
            if added.get(field).is_some() {
                added[field] = empty;
            }
        }
        self.push("response.output_item.added", json!({"output_index": place, "item": added}));
        let at = |more: Value| {
            let mut fields = json!({"item_id": done["id"], "output_index": place});
            fields.as_object_mut().unwrap().append(&mut more.as_object().cloned().unwrap());
            fields
        };
        match part {
            Part::Text(text) => {
                let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
                self.push("response.content_part.added", at(json!({"content_index": 0, "part": part("")})));
                for delta in pieces(text, piece) {
                    self.push("response.output_text.delta", at(json!({"content_index": 0, "delta": delta})));
                }
                self.push("response.output_text.done", at(json!({"content_index": 0, "text": text})));
                self.push("response.content_part.done", at(json!({"content_index": 0, "part": part(text)})));
            }
            Part::Refusal(text) => {
                for delta in pieces(text, piece) {
                    self.push("response.refusal.delta", at(json!({"content_index": 0, "delta": delta})));
                }
                self.push("response.refusal.done", at(json!({"content_index": 0, "refusal": text})));
            }
            Part::Thought(text) => {
                let (name, index) = if is_plain_reasoning(self.kind) {
                    ("reasoning_text", "content_index")
                } else {
                    ("reasoning_summary_text", "summary_index")
                };
                for delta in pieces(text, piece) {
                    self.push(&format!("response.{name}.delta"), at(json!({index: 0, "delta": delta})));
                }
                self.push(&format!("response.{name}.done"), at(json!({index: 0, "text": text})));
            }
            Part::Call(_, _, arguments) => {
                let piece = if self.kind == Kind::Ollama { usize::MAX } else { piece };
                for delta in pieces(arguments, piece) {
                    self.push("response.function_call_arguments.delta", at(json!({"delta": delta})));
                }
                if self.kind != Kind::LlamaCpp {
                    self.push("response.function_call_arguments.done", at(json!({"arguments": arguments})));
                }
            }
            Part::Search(_) => {
                for status in ["in_progress", "searching", "completed"] {
                    self.push(&format!("response.web_search_call.{status}"), at(json!({})));
                }
            }
        }
        self.push("response.output_item.done", json!({"output_index": place, "item": done}));
    }
}

fn pieces(text: &str, size: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size.max(1)).map(|piece| piece.iter().collect()).collect()
}
