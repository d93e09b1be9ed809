//! A tool call with all that the agent sent: for the user who wants to see the whole of it.

use super::cards::one_line;
use crate::core::tool_call::{ToolCall, ToolContent};

/// Longest line, in bytes; a longer one goes on in the next. Neovim draws long lines slowly.
const MAX_LINE: usize = 2_000;
/// Lines that are shown; more would not be read by anybody, and cost memory in Neovim.
const MAX_LINES: usize = 100_000;

/// The title, and everything that is known of a call, in lines.
pub fn lines(call: &ToolCall) -> (String, Vec<String>) {
    let mut out = Lines::default();
    out.heading("Call");
    out.text(&format!("id      {}", call.id));
    out.text(&format!("kind    {}", call.kind));
    out.text(&format!("status  {}", call.status.as_str()));
    for place in &call.locations {
        out.text(&place.line.map_or_else(|| place.path.clone(), |line| format!("{}:{line}", place.path)));
    }
    for (name, raw) in [("Input", &call.raw_input), ("Output", &call.raw_output)] {
        if let Some(raw) = raw {
            out.heading(name);
            match raw.as_str() {
                Some(text) => out.text(text),
                None => out.text(&serde_json::to_string_pretty(raw.as_ref()).unwrap_or_default()),
            }
        }
    }
    for content in &call.content {
        match content {
            ToolContent::Text(text) => {
                out.heading("Content");
                out.text(text);
            }
            ToolContent::Diff { path, old, new } => {
                if let Some(old) = old {
                    out.heading(&format!("{path}, before"));
                    out.text(old);
                }
                out.heading(&format!("{path}, after"));
                out.text(new);
            }
            ToolContent::Terminal(id, _) => out.heading(&format!("Terminal {id}")),
            ToolContent::Other(json) => out.text(json),
        }
    }
    let title = one_line(&call.title);
    (if title.is_empty() { call.kind.clone() } else { title }, out.finish())
}

#[derive(Debug, Default)]
struct Lines {
    lines: Vec<String>,
    hidden: usize,
}

impl Lines {
    fn heading(&mut self, name: &str) {
        if !self.lines.is_empty() {
            self.push("");
        }
        self.push(&format!("── {name}"));
    }

    fn text(&mut self, text: &str) {
        for line in text.lines() {
            let mut rest = line;
            while rest.len() > MAX_LINE {
                let (shown, left) = rest.split_at(rest.floor_char_boundary(MAX_LINE));
                self.push(shown);
                rest = left;
            }
            self.push(rest);
        }
    }

    fn push(&mut self, line: &str) {
        if self.lines.len() < MAX_LINES {
            // A carriage return alone does not end a line here.
            self.lines.push(line.to_owned());
        } else {
            self.hidden += 1;
        }
    }

    fn finish(mut self) -> Vec<String> {
        if self.hidden > 0 {
            self.lines.push(format!("… {} more lines", self.hidden));
        }
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::Millis;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn everything_is_shown_and_no_line_is_endless() {
        let mut call = ToolCall::new("1".into(), Millis(0));
        call.title = "Run".into();
        call.raw_input = Some(Arc::new(json!({ "command": "ls" })));
        call.raw_output = Some(Arc::new(json!("a\nb")));
        call.content = vec![ToolContent::Text("ä".repeat(MAX_LINE).into())];
        let (title, lines) = lines(&call);
        assert_eq!(title, "Run");
        let expected = [
            "── Call",
            "id      1",
            "kind    other",
            "status  pending",
            "",
            "── Input",
            "{",
            "  \"command\": \"ls\"",
            "}",
            "",
            "── Output",
            "a",
            "b",
            "",
            "── Content",
        ];
        assert_eq!(lines[..15], expected);
        assert_eq!(lines[15..], ["ä".repeat(MAX_LINE / 2), "ä".repeat(MAX_LINE / 2)]);
    }
}
