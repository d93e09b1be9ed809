//! A transcript as a Markdown document.

use std::fmt::Write;
use std::path::Path;

use super::cards::{one_line, relative};
use crate::core::plan::{Plan, PlanStatus, PlanStep};
use crate::core::tool_call::{ToolCall, ToolContent};
use crate::core::transcript::{Entry, Transcript};

/// The whole conversation. What the agent and the user said is as they said it; what surrounds it is ours.
pub fn markdown(title: &str, transcript: &Transcript, cwd: &Path) -> String {
    let mut out = format!("# {}\n", one_line(title));
    for entry in transcript.entries() {
        out.push('\n');
        // Writing to a string cannot fail.
        let _ = match entry {
            Entry::User(text) => writeln!(out, "## You\n\n{text}"),
            Entry::Agent(text) => writeln!(out, "{text}"),
            Entry::Thought(text) => writeln!(out, "{}", quoted("Thought:", &text.to_string())),
            Entry::Tool(call) => writeln!(out, "{}", tool(call, cwd)),
            Entry::Plan(of) => writeln!(out, "{}", plan(of)),
            Entry::Notice(_, text) => writeln!(out, "*{}*", one_line(text)),
        };
    }
    out
}

fn plan(plan: &Plan) -> String {
    match plan {
        Plan::Steps(steps) => {
            let step = |step: &PlanStep| {
                let sign = if step.status == PlanStatus::Completed { "x" } else { " " };
                format!("- [{sign}] {}", one_line(&step.content))
            };
            ["**Plan**\n".to_owned()].into_iter().chain(steps.iter().map(step)).collect::<Vec<_>>().join("\n")
        }
        Plan::Document { text, .. } => quoted("**Plan**", text),
        Plan::Removed => "*The agent dropped its plan.*".to_owned(),
    }
}

fn quoted(heading: &str, text: &str) -> String {
    let lines = text.lines().map(|line| format!("> {line}").trim_end().to_owned());
    [format!("> {heading}"), ">".to_owned()].into_iter().chain(lines).collect::<Vec<_>>().join("\n")
}

fn tool(call: &ToolCall, cwd: &Path) -> String {
    let title = one_line(&call.title);
    let title = if title.is_empty() { &call.kind } else { &title };
    let mut parts = vec![format!("### {title} ({}, {})", call.kind, call.status.as_str())];
    if let Some(command) = call.command() {
        parts.push(fenced("sh", &command));
    }
    let places = call.locations.iter().map(|place| {
        let path = relative(&place.path, cwd);
        place.line.map_or_else(|| format!("- `{path}`"), |line| format!("- `{path}:{line}`"))
    });
    let places: Vec<String> = places.collect();
    if !places.is_empty() {
        parts.push(places.join("\n"));
    }
    parts.extend(call.content.iter().map(|content| match content {
        ToolContent::Text(text) => fenced("", text),
        ToolContent::Diff { path, old, new } => fenced("diff", &patch(&relative(path, cwd), old.as_deref(), new)),
        ToolContent::Terminal(id, _) => format!("Terminal `{id}`"),
        ToolContent::Other(json) => fenced("json", json),
    }));
    parts.join("\n\n")
}

fn patch(path: &str, old: Option<&str>, new: &str) -> String {
    let changes = similar::TextDiff::from_lines(old.unwrap_or_default(), new);
    let old_name = if old.is_some() { format!("a/{path}") } else { "/dev/null".to_owned() };
    changes.unified_diff().header(&old_name, &format!("b/{path}")).to_string()
}

/// A fenced block that nothing in `text` can end.
fn fenced(language: &str, text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| {
            let line = line.trim_start();
            line.len() - line.trim_start_matches('`').len()
        })
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::Millis;
    use crate::core::tool_call::{Location, ToolStatus};
    use crate::core::transcript::{Severity, Speaker};

    #[test]
    fn a_conversation_becomes_a_document() {
        let mut transcript = Transcript::default();
        transcript.chunk(Speaker::User, None, "fix it");
        transcript.chunk(Speaker::Thought, None, "hm\n\nso");
        transcript.chunk(Speaker::Agent, None, "I *will*.");
        let mut call = ToolCall::new("1".into(), Millis(0));
        (call.title, call.kind) = ("Edit a.py".into(), "edit".into());
        call.set_status(ToolStatus::Completed, Millis(1));
        call.locations = vec![Location { path: "/p/a.py".into(), line: Some(3) }];
        call.content = vec![
            ToolContent::Diff { path: "/p/a.py".into(), old: Some("a\n".into()), new: "b\n".into() },
            ToolContent::Text("```\nx\n```".into()),
        ];
        transcript.add_tool(call);
        let steps = vec![PlanStep { content: "one".into(), status: PlanStatus::Completed }];
        transcript.put_plan(None, Plan::Steps(steps));
        transcript.add(Entry::Notice(Severity::Stop, "Cancelled.".into()));
        let expected = "# Title

## You

fix it

> Thought:
>
> hm
>
> so

I *will*.

### Edit a.py (edit, completed)

- `a.py:3`

```diff
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-a
+b
```

````
```
x
```
````

**Plan**

- [x] one

*Cancelled.*
";
        assert_eq!(markdown("Title", &transcript, Path::new("/p")), expected);
    }
}
