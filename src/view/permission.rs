//! What a permission request is about, in lines.

use std::path::Path;

use super::ops::{fit, short_line};
use super::{cards, diff};
use crate::core::tool_call::{ToolCall, ToolContent};

/// Lines of text that come with a request; the transcript's card shows the call's beginning too.
const TEXT_LINES: usize = 100;

/// Longest command and title that are shown whole, in bytes: several screens. Of a longer one it is said how much is missing.
const WHOLE_BYTES: usize = 16 * 1024;

/// The whole command, the diff, the places: what the user must see to decide. Not wrapped, not cut in width.
pub fn detail(tool: &ToolCall, cwd: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(command) = tool.command() {
        let shown = fit(&command, WHOLE_BYTES);
        lines.extend(shown.lines().map(|line| format!("$ {line}")));
        if command.len() > WHOLE_BYTES {
            let missing = command.len() - command.floor_char_boundary(WHOLE_BYTES);
            lines.push(format!("… {missing} more bytes of the command are not shown"));
        }
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
    if title.is_empty() { format!("{} ({})", tool.id, tool.kind) } else { fit(&title, WHOLE_BYTES).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::Millis;
    use serde_json::json;
    use std::sync::Arc;

    fn about(command: &str) -> Vec<String> {
        let mut tool = ToolCall::new("t".into(), Millis(0));
        tool.raw_input = Some(Arc::new(json!({ "command": command })));
        detail(&tool, Path::new("/p"))
    }

    #[test]
    fn a_command_is_shown_whole_or_it_is_said_what_is_missing() {
        let long = "x".repeat(WHOLE_BYTES);
        assert_eq!(about(&long), [format!("$ {long}")]);
        let shown = about(&format!("{long}\nrm -rf /"));
        assert_eq!(shown.last().map(String::as_str), Some("… 9 more bytes of the command are not shown"));
    }

    #[test]
    fn text_and_title_of_a_request_are_bounded() {
        let mut tool = ToolCall::new("t".into(), Millis(0));
        tool.title = "y".repeat(1_000_000);
        tool.content =
            vec![ToolContent::Text("line\n".repeat(500).into()), ToolContent::Text("z".repeat(9_000).into())];
        let lines = detail(&tool, Path::new("/p"));
        assert_eq!(lines[TEXT_LINES], "… 400 more lines");
        assert!(lines.iter().all(|line| line.len() < 3_000));
        assert!(title(&tool).len() < WHOLE_BYTES + 10);
    }
}
