//! One event of a streamed response.

use serde_json::Value;

use super::names;
use super::sse::Frame;

/// An event as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The type: the `type` within the JSON, else the frame's `event` field; empty if there is neither.
    pub kind: String,
    /// The JSON.
    pub data: Value,
    /// The JSON as it was written, in one line; empty if no server wrote it.
    pub raw: String,
}

/// What a frame holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Event(Event),
    /// `[DONE]`: nothing follows.
    Done,
    /// Nothing that means anything: no JSON object. With its beginning, for the log.
    Garbage(String),
}

/// Reads a frame. Numbers, texts and the like in the place of an object are garbage, which costs itself only.
pub(super) fn read(frame: Frame) -> Content {
    let text = frame.data.trim();
    if text == "[DONE]" {
        return Content::Done;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(data @ Value::Object(_)) => {
            let kind = data.get("type").and_then(Value::as_str).map(str::to_owned).or(frame.event).unwrap_or_default();
            let raw = if text.contains('\n') { data.to_string() } else { frame.data };
            Content::Event(Event { kind, data, raw })
        }
        _ => Content::Garbage(text.chars().take(200).collect()),
    }
}

impl Event {
    /// Whether this is the event that the API calls `documented`, in either form of its name.
    pub fn is(&self, documented: &str) -> bool {
        names::is_event(&self.kind, documented)
    }

    pub(super) fn text(&self, field: &str) -> Option<&str> {
        self.data.get(field)?.as_str()
    }
}
