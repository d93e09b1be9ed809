//! Pieces of a transcript as JSON, and back: each is a `session/update` of the protocol, so that what is kept can be read
//! by whatever reads that, and by later versions of this program.

use serde::Serialize;
use serde_json::{Value, json};

use super::redact;
use crate::acp::decode;
use crate::core::ids::Millis;
use crate::core::message::Update;
use crate::core::plan::{Plan, PlanStatus, PlanStep};
use crate::core::tool_call::{Location, ToolCall, ToolContent, ToolStatus, plain};
use crate::core::transcript::{Entry, Severity, Speaker};

/// Longest text of a tool call, or JSON of its arguments, that is kept, in bytes.
const MAX_TEXT: usize = 256 * 1024;

/// A part of a transcript that is kept at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Text at the end of a message.
    Text(Speaker, String),
    /// An entry that is no message, whole.
    Whole(Entry),
}

impl Piece {
    /// A message's text so far becomes a piece, anything else is one.
    ///
    /// # Errors
    /// None that is known: all of it is text.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        match self {
            Self::Text(speaker, text) => chunk(*speaker, text),
            Self::Whole(Entry::User(text)) => chunk(Speaker::User, &text.to_string()),
            Self::Whole(Entry::Agent(text)) => chunk(Speaker::Agent, &text.to_string()),
            Self::Whole(Entry::Thought(text)) => chunk(Speaker::Thought, &text.to_string()),
            Self::Whole(Entry::Tool(call)) => Ok(tool(call).to_string()),
            Self::Whole(Entry::Plan(of)) => Ok(plan(of).to_string()),
            Self::Whole(Entry::Notice(severity, text)) => {
                let (severity, title) = (severity_word(*severity), redact::text(text));
                Ok(json!({"sessionUpdate": "notice", "severity": severity, "title": title}).to_string())
            }
        }
    }

    /// What [`Piece::to_json`] wrote; `None` if a later version did, and it means nothing to this one.
    pub(super) fn from_json(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        if value.get("sessionUpdate")? == "notice" {
            let severity = severity_of(value.get("severity").and_then(Value::as_str).unwrap_or_default());
            return Some(Self::Whole(Entry::Notice(severity, value.get("title")?.as_str()?.to_owned())));
        }
        match decode::any_update(&value) {
            Update::Chunk { speaker, text, .. } => Some(Self::Text(speaker, text)),
            Update::Plan(_, plan) => Some(Self::Whole(Entry::Plan(plan))),
            Update::PlanRemoved(_) => Some(Self::Whole(Entry::Plan(Plan::Removed))),
            Update::Tool { patch, .. } => {
                let mut call = ToolCall::new(patch.id.clone(), Millis(0));
                call.apply(patch, Millis(0));
                let duration = value.pointer("/_meta/durationMs").and_then(Value::as_u64);
                let status = match &call.status {
                    ToolStatus::Other(word) if word == "cancelled" => ToolStatus::Cancelled,
                    status if status.is_final() => status.clone(),
                    // Whatever it did since, nobody saw it.
                    _ => ToolStatus::Unfinished,
                };
                call.set_status(status, Millis(0));
                call.ended = Some(Millis(duration.unwrap_or_default()));
                Some(Self::Whole(Entry::Tool(Box::new(call))))
            }
            _ => None,
        }
    }
}

/// A text as a chunk of the protocol. A flood comes this way, so nothing is copied that need not be.
fn chunk(speaker: Speaker, text: &str) -> serde_json::Result<String> {
    let kind = match speaker {
        Speaker::User => "user_message_chunk",
        Speaker::Agent => "agent_message_chunk",
        Speaker::Thought => "agent_thought_chunk",
    };
    serde_json::to_string(&Chunk { kind, content: ChunkContent { kind: "text", text: &redact::text(text) } })
}

#[derive(Serialize)]
struct Chunk<'a> {
    #[serde(rename = "sessionUpdate")]
    kind: &'static str,
    content: ChunkContent<'a>,
}

#[derive(Serialize)]
struct ChunkContent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

fn tool(call: &ToolCall) -> Value {
    let mut value = json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call.id,
        "title": bounded(&call.title),
        "kind": call.kind,
        "status": call.status.as_str(),
        "content": call.content.iter().map(content).collect::<Vec<_>>(),
        "locations": call.locations.iter().map(location).collect::<Vec<_>>(),
    });
    for (name, raw) in [("rawInput", &call.raw_input), ("rawOutput", &call.raw_output)] {
        let text = raw.as_ref().map(ToString::to_string).filter(|text| text.len() <= MAX_TEXT);
        if let Some(raw) = text.and_then(|text| serde_json::from_str::<Value>(&redact::json(&text)).ok()) {
            value[name] = raw;
        }
    }
    if let Some(ended) = call.ended {
        value["_meta"] = json!({"durationMs": ended.since(call.started)});
    }
    value
}

fn content(item: &ToolContent) -> Value {
    match item {
        ToolContent::Text(text) => json!({"type": "content", "content": {"type": "text", "text": bounded(text)}}),
        ToolContent::Diff { path, old, new } => {
            let old = old.as_ref().map(|old| bounded(old));
            json!({"type": "diff", "path": path, "oldText": old, "newText": bounded(new)})
        }
        // The terminal is gone by the time that anybody reads this; what was on it is not.
        ToolContent::Terminal(_, tail) => {
            json!({"type": "content", "content": {"type": "text", "text": bounded(&plain(tail))}})
        }
        ToolContent::Other(text) => json!({"type": "content", "content": {"type": "text", "text": bounded(text)}}),
    }
}

fn location(location: &Location) -> Value {
    json!({"path": location.path, "line": location.line})
}

fn plan(plan: &Plan) -> Value {
    match plan {
        Plan::Steps(steps) => {
            json!({"sessionUpdate": "plan", "entries": steps.iter().map(step).collect::<Vec<_>>()})
        }
        Plan::Document { text, path } => {
            let document = json!({"type": "markdown", "planId": "", "content": bounded(text), "path": path});
            json!({"sessionUpdate": "plan_update", "plan": document})
        }
        Plan::Removed => json!({"sessionUpdate": "plan_removed", "planId": ""}),
    }
}

fn step(step: &PlanStep) -> Value {
    let status = match step.status {
        PlanStatus::Pending => "pending",
        PlanStatus::InProgress => "in_progress",
        PlanStatus::Completed => "completed",
    };
    json!({"content": redact::text(&step.content), "priority": "medium", "status": status})
}

/// Without secrets, and no longer than what is kept.
fn bounded(text: &str) -> String {
    let kept = text.floor_char_boundary(MAX_TEXT);
    let result = redact::text(&text[..kept]);
    match text.len() - kept {
        0 => result.into_owned(),
        cut => format!("{result}\n… ({cut} bytes were not kept)"),
    }
}

const SEVERITIES: [(Severity, &str); 5] = [
    (Severity::Info, "info"),
    (Severity::Stop, "stop"),
    (Severity::Warning, "warning"),
    (Severity::Error, "error"),
    (Severity::Summary, "summary"),
];

fn severity_word(severity: Severity) -> &'static str {
    SEVERITIES.iter().find(|(known, _)| *known == severity).map_or("info", |(_, word)| word)
}

fn severity_of(word: &str) -> Severity {
    SEVERITIES.iter().find(|(_, known)| *known == word).map_or(Severity::Info, |(severity, _)| *severity)
}
