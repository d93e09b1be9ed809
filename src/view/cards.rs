//! Rows of the entries that are not messages: tool calls, plans, notices.

use std::iter;
use std::path::Path;

use super::ansi;
use super::diff::{DiffCache, DiffLines};
use super::ops::Row;
use crate::core::plan::{Plan, PlanStatus, PlanStep};
use crate::core::tool_call::{Location, ToolCall, ToolContent, ToolStatus};
use crate::core::transcript::Severity;

/// Lines of each item of a call's content that are always in view; the others are folded once the call has ended.
const OPEN_LINES: usize = 12;
/// Rows of a card. A call may bring millions of lines, which nobody reads in a chat.
const CARD_ROWS: usize = 2_000;
/// Steps of a plan that are shown.
const PLAN_STEPS: usize = 200;
/// Lines of a plan that is a document.
const PLAN_LINES: usize = 200;
/// Lines of a command that a card shows.
const COMMAND_LINES: usize = 12;
/// Lines of a notice, such as an agent's error text.
const NOTICE_LINES: usize = 100;
/// Locations that a card shows.
const LOCATIONS: usize = 3;
/// Bytes of the last line of an output that still grows.
const LAST_LINE: usize = 80;

/// The rows of a tool call, and which of them are to be folded.
#[derive(Debug, Default)]
pub(super) struct Card {
    /// All rows.
    pub(super) rows: Vec<Row>,
    /// The ranges to fold.
    pub(super) folds: Vec<CardFold>,
}

/// A range of rows of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CardFold {
    /// First row, 0-based within the card.
    pub(super) first: usize,
    /// Row after the last.
    pub(super) end: usize,
    /// What is shown in its place.
    pub(super) label: String,
}

impl CardFold {
    /// The same range `rows` further down.
    pub(super) fn below(self, rows: usize) -> Self {
        Self { first: self.first + rows, end: self.end + rows, ..self }
    }
}

/// A tool call: what, how far, where, and what it brought. Until it has ended, the card shows the beginning of that only,
/// so that output which grows costs a row and not itself.
pub(super) fn tool(call: &ToolCall, cwd: &Path, diffs: &mut DiffCache) -> Card {
    let (sign, word, group) = status(&call.status);
    let mut head = Row::default();
    head.push(sign, group);
    head.push(" ", "AgentChatDim");
    let title = one_line(&call.title);
    head.push(if title.is_empty() { &call.kind } else { &title }, "AgentChatTool");
    head.push(&format!("  {} {} · {word}", icon(&call.kind), call.kind), "AgentChatDim");
    if let Some(millis) = call.ended.map(|ended| ended.since(call.started)).filter(|&millis| millis >= 100) {
        head.push(&format!(" · {}.{} s", millis / 1000, millis % 1000 / 100), "AgentChatDim");
    }
    let mut card = Card { rows: vec![head], folds: Vec::new() };
    card.rows.extend(command_rows(call, &title));
    card.rows.extend(locations(&call.locations, &title, cwd));
    let is_final = call.status.is_final();
    for (nth, content) in call.content.iter().enumerate() {
        if card.rows.len() >= CARD_ROWS {
            let left = call.content.len() - nth;
            card.rows.push(Row::of(format!("  │ … {left} more results, K shows them"), "AgentChatDim"));
            break;
        }
        card.add(content, is_final, || match content {
            ToolContent::Diff { path, old, new } => Some(diffs.lines(nth, path, old.as_ref(), new, cwd)),
            _ => None,
        });
    }
    card
}

/// The sign of a kind of tool calls.
fn icon(kind: &str) -> &'static str {
    match kind {
        "read" => "≡",
        "edit" => "✎",
        "delete" => "✕",
        "move" => "→",
        "search" => "⌕",
        "execute" => "$",
        "think" => "…",
        "fetch" => "↓",
        "switch_mode" => "⇄",
        _ => "•",
    }
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
            command.lines().map(|line| Row::of(format!("  $ {line}"), "AgentChatDim")).take(COMMAND_LINES).collect()
        }
        _ => Vec::new(),
    }
}

/// Groups of the colours of terminals, as those number them.
const COLOURS: [&str; 16] = [
    "AgentChatTermBlack",
    "AgentChatTermRed",
    "AgentChatTermGreen",
    "AgentChatTermYellow",
    "AgentChatTermBlue",
    "AgentChatTermMagenta",
    "AgentChatTermCyan",
    "AgentChatTermWhite",
    "AgentChatTermBrightBlack",
    "AgentChatTermBrightRed",
    "AgentChatTermBrightGreen",
    "AgentChatTermBrightYellow",
    "AgentChatTermBrightBlue",
    "AgentChatTermBrightMagenta",
    "AgentChatTermBrightCyan",
    "AgentChatTermBrightWhite",
];

/// A line of a terminal.
fn tail_row(line: &[(String, Option<u8>)]) -> Row {
    let mut row = Row::of("  │ ", "AgentChatDim");
    for (text, colour) in line {
        let group = colour.and_then(|colour| COLOURS.get(usize::from(colour)).copied());
        row.push(text, group.unwrap_or("AgentChatDim"));
    }
    row
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

impl Card {
    fn add<'a>(&mut self, content: &ToolContent, is_final: bool, diff: impl FnOnce() -> Option<&'a DiffLines>) {
        match content {
            ToolContent::Text(text) => {
                let text = text.trim_end();
                let count = if text.is_empty() { 0 } else { text.lines().count() };
                let mut colour = None;
                let rows = text.lines().map(|line| {
                    if line.contains('\x1b') || colour.is_some() {
                        tail_row(&ansi::pieces(line, &mut colour))
                    } else {
                        Row::of(format!("  │ {line}"), "AgentChatDim")
                    }
                });
                self.add_lines(rows, count, "lines", is_final, || text.lines().next_back().unwrap_or_default());
            }
            ToolContent::Diff { .. } => {
                let Some(diff) = diff() else { return };
                self.rows.push(Row::of(format!("  {}", diff.heading), "AgentChatTool"));
                let rows = diff.lines.iter().map(|(line, group)| Row::of(format!("  {line}"), group));
                self.add_lines(rows, diff.lines.len() + diff.hidden, "lines of the change", is_final, || "");
            }
            ToolContent::Terminal(id, tail) => {
                self.rows.push(Row::of(format!("  │ terminal {}", one_line(id)), "AgentChatDim"));
                self.rows.extend(tail.iter().map(|line| tail_row(line)));
            }
            ToolContent::Other(json) => self.rows.push(Row::of(format!("  │ {}", one_line(json)), "AgentChatDim")),
        }
    }

    /// The first lines of a content and, once the call has ended, the others below a fold.
    fn add_lines<'a>(
        &mut self,
        mut lines: impl Iterator<Item = Row>,
        count: usize,
        what: &str,
        is_final: bool,
        last: impl FnOnce() -> &'a str,
    ) {
        self.rows.extend(lines.by_ref().take(OPEN_LINES));
        let hidden = count.saturating_sub(OPEN_LINES);
        if hidden == 0 {
            return;
        }
        if !is_final {
            let last = last();
            let shown = &last[..last.floor_char_boundary(LAST_LINE)];
            let mut row = Row::of(format!("  │ … {hidden} more {what}"), "AgentChatDim");
            if !shown.trim().is_empty() {
                row.push(&format!(" · {}", shown.trim()), "AgentChatDim");
            }
            self.rows.push(row);
            return;
        }
        let first = self.rows.len();
        self.rows.extend(lines.take(CARD_ROWS.saturating_sub(first)));
        let left = hidden - (self.rows.len() - first);
        if left > 0 {
            self.rows.push(Row::of(format!("  │ … {left} more {what}, K shows them"), "AgentChatDim"));
        }
        let end = self.rows.len();
        if end - first > 1 {
            self.folds.push(CardFold { first, end, label: format!("  │ … {hidden} more {what}") });
        }
    }
}

/// A plan.
pub(super) fn plan(plan: &Plan, cwd: &Path) -> Vec<Row> {
    match plan {
        Plan::Steps(steps) => plan_steps(steps),
        Plan::Document { text, path } => plan_document(text, path.as_deref(), cwd),
        Plan::Removed => vec![Row::of("Plan  (dropped by the agent)", "AgentChatDim")],
    }
}

/// The beginning of a plan that is a document, and where all of it is.
fn plan_document(text: &str, path: Option<&str>, cwd: &Path) -> Vec<Row> {
    let heading = path.map_or_else(|| "Plan".to_owned(), |path| format!("Plan  {}", relative(path, cwd)));
    let lines = text.lines().take(PLAN_LINES).map(|line| Row::of(format!("  {}", one_line(line)), "AgentChatPlan"));
    let mut rows: Vec<Row> = iter::once(Row::of(heading, "AgentChatPlan")).chain(lines).collect();
    let left = text.lines().count().saturating_sub(PLAN_LINES);
    rows.extend((left > 0).then(|| Row::of(format!("  … {left} more lines"), "AgentChatDim")));
    rows
}

/// The steps of a plan; of a very long one the beginning, or what is around the step that is being worked on.
fn plan_steps(steps: &[PlanStep]) -> Vec<Row> {
    let done = steps.iter().filter(|step| step.status == PlanStatus::Completed).count();
    let mut rows = vec![Row::of(format!("Plan  {done}/{}", steps.len()), "AgentChatPlan")];
    let current = steps.iter().position(|step| step.status == PlanStatus::InProgress).unwrap_or_default();
    let last_first = steps.len().saturating_sub(PLAN_STEPS);
    let first = if current < PLAN_STEPS { 0 } else { (current - PLAN_STEPS / 2).min(last_first) };
    let more = |count: usize, what| Row::of(format!("  … {count} {what} steps"), "AgentChatDim");
    rows.extend((first > 0).then(|| more(first, "earlier")));
    rows.extend(steps.iter().skip(first).take(PLAN_STEPS).map(|step| {
        let (sign, group) = match step.status {
            PlanStatus::Pending => ("○", "AgentChatPlan"),
            PlanStatus::InProgress => ("▸", "AgentChatToolRunning"),
            PlanStatus::Completed => ("✓", "AgentChatPlanDone"),
        };
        Row::of(format!("  {sign} {}", one_line(&step.content)), group)
    }));
    let left = steps.len().saturating_sub(first + PLAN_STEPS);
    rows.extend((left > 0).then(|| more(left, "more")));
    rows
}

/// A line of ours, or several.
pub(super) fn notice(severity: Severity, text: &str) -> Vec<Row> {
    let (sign, group) = match severity {
        Severity::Info => ("·", "AgentChatNotice"),
        Severity::Stop => ("■", "AgentChatStop"),
        Severity::Warning => ("!", "AgentChatNotice"),
        Severity::Error => ("✗", "AgentChatError"),
        Severity::Summary => ("─", "AgentChatSummary"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::Millis;

    fn texts(rows: &[Row]) -> Vec<&str> {
        rows.iter().map(|row| row.text.as_str()).collect()
    }

    #[test]
    fn a_plan_without_end_is_shown_around_the_step_that_is_being_worked_on() {
        let step = |content: String| PlanStep { content, status: PlanStatus::Pending };
        let mut steps: Vec<PlanStep> = (0..200_000).map(|n| step(format!("s{n}"))).collect();
        let rows = plan_steps(&steps);
        assert_eq!(rows.len(), PLAN_STEPS + 2);
        assert_eq!(texts(&rows)[PLAN_STEPS..], ["  ○ s199", "  … 199800 more steps"]);
        steps[100_000].status = PlanStatus::InProgress;
        let rows = plan_steps(&steps);
        assert_eq!(texts(&rows)[1..3], ["  … 99900 earlier steps", "  ○ s99900"]);
        assert_eq!(rows[PLAN_STEPS + 2].text, "  … 99900 more steps");
        assert!(texts(&rows).contains(&"  ▸ s100000"));
    }

    #[test]
    fn a_call_with_results_without_end_has_a_bounded_card() {
        let mut call = ToolCall::new("t".into(), Millis(0));
        call.content = vec![ToolContent::Text("a\nb\n".into()); 50_000];
        let card = tool(&call, Path::new("/p"), &mut DiffCache::default());
        assert!(card.rows.len() <= CARD_ROWS + OPEN_LINES + 1);
        assert_eq!(card.rows.last().map(|row| row.text.as_str()), Some("  │ … 49000 more results, K shows them"));
    }
}
