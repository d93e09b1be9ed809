//! What a permission request is about, in lines.

use std::io;
use std::path::Path;

use super::ops::{fit, short_line};
use super::{cards, diff};
use crate::core::tool_call::{ToolCall, ToolContent};

/// Lines of text that come with a request; the transcript's card shows the call's beginning too.
const TEXT_LINES: usize = 100;
/// Items of a call's content that are shown.
const ITEMS: usize = 20;
/// Places that are shown.
const PLACES: usize = 20;
/// Lines of a request, and bytes of them besides its command. Nobody reads more before an answer.
const LINES: usize = 500;
const BYTES: usize = 128 * 1024;

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
    let mut rest = Vec::new();
    for content in tool.content.iter().take(ITEMS) {
        match content {
            ToolContent::Diff { path, old, new } => {
                rest.extend(diff::preview(path, old.as_deref(), new, cwd));
            }
            ToolContent::Text(text) => {
                rest.extend(text.lines().take(TEXT_LINES).map(|line| short_line(line).into_owned()));
                let hidden = text.lines().count().saturating_sub(TEXT_LINES);
                if hidden > 0 {
                    rest.push(format!("… {hidden} more lines"));
                }
            }
            ToolContent::Terminal(..) | ToolContent::Other(_) => {}
        }
    }
    if tool.content.len() > ITEMS {
        rest.push(format!("… {} more changes or texts", tool.content.len() - ITEMS));
    }
    rest.extend(places(tool, cwd, &[lines.join("\n"), rest.join("\n")]));
    if lines.is_empty()
        && rest.is_empty()
        && let Some(input) = tool.raw_input.as_ref().filter(|input| input.as_object().is_none_or(|map| !map.is_empty()))
    {
        rest = json_lines(input);
    }
    lines.extend(bounded(rest, LINES.saturating_sub(lines.len())));
    lines
}

/// The first places of a call that `shown` does not tell of.
fn places(tool: &ToolCall, cwd: &Path, shown: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for location in tool.locations.iter().take(PLACES) {
        let path = cards::relative(&location.path, cwd);
        if !shown.iter().any(|shown| shown.contains(&path)) {
            let place = location.line.map_or_else(|| path.clone(), |line| format!("{path}:{line}"));
            lines.push(short_line(&place).into_owned());
        }
    }
    if tool.locations.len() > PLACES {
        lines.push(format!("… {} more places", tool.locations.len() - PLACES));
    }
    lines
}

/// The beginning of these lines, and how many more there are.
fn bounded(mut lines: Vec<String>, most: usize) -> Vec<String> {
    let mut left = BYTES;
    let fitting = lines.iter().take(most).take_while(|line| {
        let fits = line.len() < left;
        left = left.saturating_sub(line.len() + 1);
        fits
    });
    let fitting = fitting.count();
    let hidden = lines.len() - fitting;
    lines.truncate(fitting);
    if hidden > 0 {
        lines.push(format!("… {hidden} more lines are not shown"));
    }
    lines
}

/// The arguments of a call, as far as they can be shown.
fn json_lines(input: &serde_json::Value) -> Vec<String> {
    let mut room = Room { bytes: Vec::new() };
    // It fails only when there is no more room.
    let is_whole = serde_json::to_writer_pretty(&mut room, input).is_ok();
    let json = String::from_utf8_lossy(&room.bytes);
    let mut lines: Vec<String> = json.lines().map(|line| short_line(line).into_owned()).collect();
    if !is_whole {
        lines.truncate(LINES - 1);
        lines.push("… and more, which is not shown".to_owned());
    }
    lines
}

/// Takes [`BYTES`] bytes and no more, so that arguments of many megabytes are not written out.
struct Room {
    bytes: Vec<u8>,
}

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() >= BYTES {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = bytes.len().min(BYTES - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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

    #[test]
    fn places_and_raw_input_of_a_request_are_bounded() {
        use crate::core::tool_call::Location;
        let mut tool = ToolCall::new("t".into(), Millis(0));
        tool.raw_input = Some(Arc::new(json!((0..5_000).collect::<Vec<_>>())));
        assert!(detail(&tool, Path::new("/p")).len() < 1_000);
        assert_eq!(detail(&tool, Path::new("/p")).last().map(String::as_str), Some("… 4502 more lines are not shown"));
        tool.raw_input = Some(Arc::new(json!(vec!["x".repeat(100); 50_000])));
        let lines = detail(&tool, Path::new("/p"));
        assert_eq!(lines.last().map(String::as_str), Some("… and more, which is not shown"));
        assert!(lines.len() <= LINES && lines.iter().map(String::len).sum::<usize>() <= 2 * BYTES);
        tool.locations = (0..5_000).map(|n| Location { path: format!("/q/{n}"), line: Some(1) }).collect();
        assert_eq!(detail(&tool, Path::new("/p")).last().map(String::as_str), Some("… 4980 more places"));
        tool.content = vec![ToolContent::Text("line\n".repeat(90).into()); 500];
        let lines = detail(&tool, Path::new("/p"));
        assert_eq!(lines.len(), LINES + 1);
    }
}
