//! Tool calls and permission options: field by field, so that a field that cannot be used costs only itself.
//!
//! The crate's types would turn an unknown status into "unchanged" and lose a permission request for one unknown option kind.

use std::sync::Arc;

use serde_json::Value;

use crate::core::message::{PermissionOption, TerminalExit};
use crate::core::tool_call::{Location, TerminalReport, TerminalTail, ToolCallPatch, ToolContent, ToolStatus};

/// The fields of a `tool_call`, a `tool_call_update`, or the `toolCall` of a permission request.
/// `None` if there is no id to know it by.
pub(super) fn patch(value: &Value) -> Option<ToolCallPatch> {
    Some(ToolCallPatch {
        id: text(value, "toolCallId")?,
        name: name(value),
        title: text(value, "title"),
        kind: text(value, "kind"),
        status: text(value, "status").map(status),
        content: array(value, "content").map(|items| items.iter().map(content).collect()),
        locations: array(value, "locations").map(|items| items.iter().filter_map(location).collect()),
        raw_input: raw(value, "rawInput"),
        raw_output: raw(value, "rawOutput"),
        terminals: terminals(value),
    })
}

/// The tool's name: the protocol has no field for it, but agents tell it all the same.
fn name(value: &Value) -> Option<String> {
    text(value, "name").or_else(|| text(value.get("_meta")?.get("claudeCode")?, "toolName"))
}

/// The agent's options, in its order. One without an id could not be answered and is left out.
pub(super) fn options(value: &Value) -> Vec<PermissionOption> {
    let items = array(value, "options").map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter_map(|item| {
            let id = text(item, "optionId")?;
            Some(PermissionOption {
                name: cut(text(item, "name").unwrap_or_else(|| id.clone()), LABEL),
                kind: text(item, "kind").unwrap_or_default(),
                id,
            })
        })
        .collect()
}

/// A content block as text: what is not text is described.
pub(super) fn block(value: &Value) -> String {
    match value.get("type").and_then(Value::as_str) {
        Some("text") => text(value, "text").unwrap_or_default(),
        Some("resource_link") => {
            let uri = text(value, "uri").unwrap_or_default();
            format!("[{}]({uri})", text(value, "name").unwrap_or_else(|| uri.clone()))
        }
        Some("resource") => {
            let resource = value.get("resource").unwrap_or(&Value::Null);
            let uri = text(resource, "uri").unwrap_or_default();
            text(resource, "text").unwrap_or_else(|| format!("[resource {uri}]"))
        }
        Some(media @ ("image" | "audio")) => {
            let size = value.get("data").and_then(Value::as_str).map_or(0, |data| data.len() / 4 * 3);
            format!("[{media} {}, {size} bytes]", text(value, "mimeType").unwrap_or_default())
        }
        // The specification's own page on session modes shows a bare `{"text": …}`.
        _ => text(value, "text").unwrap_or_else(|| short(value)),
    }
}

fn content(item: &Value) -> ToolContent {
    match item.get("type").and_then(Value::as_str) {
        Some("content") => ToolContent::Text(block(item.get("content").unwrap_or(&Value::Null)).into()),
        Some("text") => ToolContent::Text(block(item).into()),
        Some("diff") => match (text(item, "path"), text(item, "newText")) {
            (Some(path), Some(new)) => {
                ToolContent::Diff { path, old: text(item, "oldText").map(Into::into), new: new.into() }
            }
            _ => ToolContent::Other(short(item)),
        },
        Some("terminal") => text(item, "terminalId")
            .map_or_else(|| ToolContent::Other(short(item)), |id| ToolContent::Terminal(id, TerminalTail::default())),
        _ => ToolContent::Other(short(item)),
    }
}

/// What `_meta` says of terminals that the agent runs itself. No part of the protocol; claude-agent-acp and codex-acp do it, as
/// the recordings in `tests/recordings` show.
fn terminals(value: &Value) -> Vec<TerminalReport> {
    let Some(meta) = value.get("_meta") else { return Vec::new() };
    let report = |key: &str| {
        let said = meta.get(key)?;
        Some((said, TerminalReport { name: text(said, "terminal_id")?, ..TerminalReport::default() }))
    };
    let info = report("terminal_info").map(|(_, report)| report);
    let output = report("terminal_output").map(|(said, report)| {
        let data = text(said, "data").unwrap_or_default();
        TerminalReport { output: Some(data), ..report }
    });
    let exit = report("terminal_exit").map(|(said, report)| {
        let code = said.get("exit_code").and_then(Value::as_u64).and_then(|code| u32::try_from(code).ok());
        TerminalReport { exit: Some(TerminalExit { code, signal: text(said, "signal") }), ..report }
    });
    [info, output, exit].into_iter().flatten().collect()
}

fn location(item: &Value) -> Option<Location> {
    Some(Location { path: text(item, "path")?, line: item.get("line").and_then(Value::as_u64) })
}

fn status(word: String) -> ToolStatus {
    match word.as_str() {
        "pending" => ToolStatus::Pending,
        "in_progress" => ToolStatus::InProgress,
        "completed" => ToolStatus::Completed,
        "failed" => ToolStatus::Failed,
        _ => ToolStatus::Other(word),
    }
}

pub(super) fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

pub(super) fn array<'a>(value: &'a Value, key: &str) -> Option<&'a Vec<Value>> {
    value.get(key)?.as_array()
}

fn raw(value: &Value, key: &str) -> Option<Arc<Value>> {
    value.get(key).filter(|value| !value.is_null()).cloned().map(Arc::new)
}

/// The JSON of a value, cut to what fits a line.
pub(super) fn short(value: &Value) -> String {
    const LIMIT: usize = 200;
    cut(value.to_string(), LIMIT)
}

/// Longest name of a thing that is always on the screen, in bytes.
pub(super) const LABEL: usize = 500;

/// At most `limit` bytes of `text`, and a sign where something is missing.
pub(super) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push('…');
    }
    text
}
