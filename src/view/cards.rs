//! Rows of the entries that are not messages: tool calls, plans, notices.

use std::path::Path;

use similar::{ChangeTag, TextDiff};

use super::ops::{Row, short_line};
use crate::core::tool_call::{Location, ToolCall, ToolContent, ToolStatus};
use crate::core::transcript::{PlanStatus, PlanStep, Severity};

/// Lines of output that a card shows.
const OUTPUT_LINES: usize = 10;
/// Lines of a diff that a card or a permission request shows.
const DIFF_LINES: usize = 12;
/// A diff that takes longer is cut coarser.
const DIFF_DEADLINE: std::time::Duration = std::time::Duration::from_millis(50);
/// Lines of a notice, such as an agent's error text.
const NOTICE_LINES: usize = 100;
/// Locations that a card shows.
const LOCATIONS: usize = 3;

/// A tool call: what, how far, where, and the beginning of what it brought.
pub(super) fn tool(call: &ToolCall, cwd: &Path) -> Vec<Row> {
    let (sign, word, group) = status(&call.status);
    let mut head = Row::default();
    head.push(sign, group);
    head.push(" ", "AgentChatDim");
    let title = one_line(&call.title);
    head.push(if title.is_empty() { &call.kind } else { &title }, "AgentChatTool");
    head.push(&format!("  {} · {word}", call.kind), "AgentChatDim");
    if let Some(seconds) = call.ended.map(|ended| ended.since(call.started)).filter(|&ms| ms >= 100) {
        head.push(&format!(" · {}.{} s", seconds / 1000, seconds % 1000 / 100), "AgentChatDim");
    }
    let mut rows = vec![head];
    rows.extend(command_rows(call, &title));
    rows.extend(locations(&call.locations, &title, cwd));
    for content in &call.content {
        content_rows(content, cwd, &mut rows);
    }
    rows
}

fn status(status: &ToolStatus) -> (&'static str, &str, &'static str) {
    match status {
        ToolStatus::Pending => ("○", "pending", "AgentChatToolPending"),
        ToolStatus::InProgress => ("◐", "running", "AgentChatToolRunning"),
        ToolStatus::Completed => ("✓", "done", "AgentChatToolDone"),
        ToolStatus::Failed => ("✗", "failed", "AgentChatToolFailed"),
        ToolStatus::Cancelled => ("⊘", "cancelled", "AgentChatToolCancelled"),
        ToolStatus::Unfinished => ("⊘", "unfinished", "AgentChatToolCancelled"),
        ToolStatus::Other(word) => ("○", word, "AgentChatToolPending"),
    }
}

/// The command, when the title does not say it.
fn command_rows(call: &ToolCall, title: &str) -> Vec<Row> {
    match call.command() {
        Some(command) if !title.contains(&one_line(&command)) => {
            command.lines().map(|line| Row::of(format!("  $ {line}"), "AgentChatDim")).take(OUTPUT_LINES).collect()
        }
        _ => Vec::new(),
    }
}

fn locations(locations: &[Location], title: &str, cwd: &Path) -> Vec<Row> {
    let shown: Vec<String> = locations
        .iter()
        .filter_map(|location| {
            let path = relative(&location.path, cwd);
            match location.line {
                Some(line) => Some(format!("{path}:{line}")),
                None if title.contains(&path) => None,
                None => Some(path),
            }
        })
        .collect();
    let mut rows: Vec<Row> =
        shown.iter().take(LOCATIONS).map(|place| Row::of(format!("  {place}"), "AgentChatDim")).collect();
    if shown.len() > LOCATIONS {
        rows.push(Row::of(format!("  … {} more places", shown.len() - LOCATIONS), "AgentChatDim"));
    }
    rows
}

fn content_rows(content: &ToolContent, cwd: &Path, rows: &mut Vec<Row>) {
    match content {
        ToolContent::Text(text) => {
            let text = text.trim_end();
            if text.is_empty() {
                return;
            }
            rows.extend(text.lines().take(OUTPUT_LINES).map(|line| Row::of(format!("  │ {line}"), "AgentChatDim")));
            let hidden = text.lines().count().saturating_sub(OUTPUT_LINES);
            if hidden > 0 {
                rows.push(Row::of(format!("  │ … {hidden} more lines"), "AgentChatDim"));
            }
        }
        ToolContent::Diff { path, old, new } => {
            rows.extend(
                diff(path, old.as_deref(), new, cwd)
                    .into_iter()
                    .map(|(text, group)| Row::of(format!("  {text}"), group)),
            );
        }
        ToolContent::Terminal(id) => rows.push(Row::of(format!("  │ terminal {id}"), "AgentChatDim")),
        ToolContent::Other(json) => rows.push(Row::of(format!("  │ {}", one_line(json)), "AgentChatDim")),
    }
}

/// A diff as lines: a heading with the counts, then the first changed lines.
pub(super) fn diff(path: &str, old: Option<&str>, new: &str, cwd: &Path) -> Vec<(String, &'static str)> {
    let path = relative(path, cwd);
    let before = old.unwrap_or_default();
    let changes = TextDiff::configure().deadline(std::time::Instant::now() + DIFF_DEADLINE).diff_lines(before, new);
    let (mut added, mut removed, mut lines) = (0, 0, Vec::new());
    for change in changes.iter_all_changes() {
        let (sign, group) = match change.tag() {
            ChangeTag::Equal => continue,
            ChangeTag::Insert => {
                added += 1;
                ('+', "Added")
            }
            ChangeTag::Delete => {
                removed += 1;
                ('-', "Removed")
            }
        };
        if lines.len() < DIFF_LINES {
            lines.push((format!("{sign} {}", short_line(change.value().trim_end_matches(['\n', '\r']))), group));
        }
    }
    let new_file = if old.is_none() { " (new file)" } else { "" };
    let mut shown = vec![(format!("± {path}{new_file}  +{added} −{removed}"), "AgentChatTool")];
    let hidden = (added + removed) - lines.len();
    shown.append(&mut lines);
    if hidden > 0 {
        shown.push((format!("… {hidden} more changed lines"), "AgentChatDim"));
    }
    shown
}

/// The plan, whole.
pub(super) fn plan(steps: &[PlanStep]) -> Vec<Row> {
    let done = steps.iter().filter(|step| step.status == PlanStatus::Completed).count();
    let mut rows = vec![Row::of(format!("Plan  {done}/{}", steps.len()), "AgentChatPlan")];
    rows.extend(steps.iter().map(|step| {
        let (sign, group) = match step.status {
            PlanStatus::Pending => ("○", "AgentChatPlan"),
            PlanStatus::InProgress => ("▸", "AgentChatToolRunning"),
            PlanStatus::Completed => ("✓", "AgentChatPlanDone"),
        };
        Row::of(format!("  {sign} {}", one_line(&step.content)), group)
    }));
    rows
}

/// A line of ours, or several.
pub(super) fn notice(severity: Severity, text: &str) -> Vec<Row> {
    let (sign, group) = match severity {
        Severity::Info => ("·", "AgentChatNotice"),
        Severity::Stop => ("■", "AgentChatStop"),
        Severity::Warning => ("!", "AgentChatNotice"),
        Severity::Error => ("✗", "AgentChatError"),
    };
    let lines = text.lines().take(NOTICE_LINES).enumerate();
    let mut rows: Vec<Row> =
        lines.map(|(at, line)| Row::of(format!("{} {line}", if at == 0 { sign } else { " " }), group)).collect();
    let hidden = text.lines().count() - rows.len();
    if hidden > 0 {
        rows.push(Row::of(format!("  … {hidden} more lines"), group));
    }
    rows
}

/// `text` without line breaks.
pub(super) fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ⏎ ")
}

/// `path` as seen from the project, if it lies in there.
pub(super) fn relative(path: &str, cwd: &Path) -> String {
    match Path::new(path).strip_prefix(cwd) {
        Ok(inside) if !inside.as_os_str().is_empty() => inside.display().to_string(),
        _ => path.to_owned(),
    }
}
