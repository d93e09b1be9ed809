//! What a permission request is about, in lines.

use std::path::Path;

use super::ops::short_line;
use super::{cards, diff};
use crate::core::tool_call::{ToolCall, ToolContent};

/// Lines of text that come with a request; the transcript's card shows the call's beginning too.
const TEXT_LINES: usize = 100;

/// The whole command, the diff, the places: what the user must see to decide. Not wrapped, not cut in width.
pub fn detail(tool: &ToolCall, cwd: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(command) = tool.command() {
        lines.extend(command.lines().map(|line| format!("$ {line}")));
    }
    for content in &tool.content {
        match content {
            ToolContent::Diff { path, old, new } => {
                lines.extend(diff::preview(path, old.as_deref(), new, cwd));
            }
            ToolContent::Text(text) => {
                lines.extend(text.lines().take(TEXT_LINES).map(|line| short_line(line).into_owned()));
                let hidden = text.lines().count().saturating_sub(TEXT_LINES);
                if hidden > 0 {
                    lines.push(format!("… {hidden} more lines"));
                }
            }
            ToolContent::Terminal(_) | ToolContent::Other(_) => {}
        }
    }
    let shown = lines.join("\n");
    for location in &tool.locations {
        let path = cards::relative(&location.path, cwd);
        if !shown.contains(&path) {
            lines.push(location.line.map_or_else(|| path.clone(), |line| format!("{path}:{line}")));
        }
    }
    if lines.is_empty()
        && let Some(input) = tool.raw_input.as_ref().filter(|input| input.as_object().is_none_or(|map| !map.is_empty()))
    {
        let json = serde_json::to_string_pretty(&**input).unwrap_or_default();
        lines.extend(json.lines().map(|line| short_line(line).into_owned()));
    }
    lines
}

/// What is asked, in one line.
pub fn title(tool: &ToolCall) -> String {
    let title = cards::one_line(&tool.title);
    if title.is_empty() { format!("{} ({})", tool.id, tool.kind) } else { title }
}
