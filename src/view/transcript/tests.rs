use super::*;
use crate::core::ids::Millis;
use crate::core::plan::{Plan, PlanStatus, PlanStep};
use crate::core::tool_call::{ToolCall, ToolContent, ToolStatus};
use crate::core::transcript::{Severity, Speaker};
use proptest::prelude::*;

/// What Neovim would hold after these edits.
#[derive(Debug)]
struct Buffer {
    lines: Vec<String>,
    /// Line, first byte, byte after the last (or width), group (or what a padding is made of).
    marks: Vec<(usize, usize, usize, String)>,
    /// Where entries begin, and the folds, as they were told last.
    entries: BTreeMap<usize, (usize, &'static str)>,
    folds: BTreeMap<usize, (usize, usize, String)>,
}

impl Buffer {
    fn new() -> Self {
        Self { lines: vec![String::new()], marks: Vec::new(), entries: BTreeMap::new(), folds: BTreeMap::new() }
    }

    /// Everything that is highlighted.
    fn sorted_marks(&self) -> Vec<(usize, usize, usize, String)> {
        let mut marks = self.marks.clone();
        marks.sort();
        marks
    }

    /// Where extmarks are after lines were inserted at `at`.
    fn moved(&mut self, at: usize, by: usize) {
        let place = |row: &mut usize| *row += if *row >= at { by } else { 0 };
        self.marks.iter_mut().for_each(|mark| place(&mut mark.0));
        self.entries.values_mut().for_each(|(row, _)| place(row));
        self.folds.values_mut().for_each(|(first, last, _)| [first, last].into_iter().for_each(place));
    }

    fn frame(&mut self, view: &mut TranscriptView, transcript: &Transcript, budget: usize) {
        self.apply(view.take(transcript, budget));
        for mark in view.take_marks(transcript) {
            match mark {
                Mark::Entry { entry, row, kind } => {
                    assert!(row < self.lines.len());
                    self.entries.insert(entry, (row, kind));
                }
                Mark::Fold { id, first, last, label } => {
                    assert!(first <= last && last < self.lines.len());
                    self.folds.insert(id, (first, last, label));
                }
                Mark::Unfold { id } => assert!(self.folds.remove(&id).is_some()),
            }
        }
    }

    fn apply(&mut self, ops: Vec<Op>) {
        for op in ops {
            match op {
                Op::SetLines { first, last, lines } => {
                    let last = usize::try_from(last).unwrap_or(self.lines.len());
                    assert!(first <= last && last <= self.lines.len(), "{first}..{last} of {}", self.lines.len());
                    assert!(lines.iter().all(|line| !line.contains('\n')));
                    assert!(last == self.lines.len() || self.marks.iter().all(|mark| !(first..last).contains(&mark.0)));
                    self.marks.retain(|mark| !(first..last).contains(&mark.0));
                    if first == 0 && lines.is_empty() && last == self.lines.len() {
                        (self.entries, self.folds) = (BTreeMap::new(), BTreeMap::new());
                    }
                    // Marks in replaced lines may be anywhere; those below move.
                    let (more, less) =
                        (lines.len().saturating_sub(last - first), (last - first).saturating_sub(lines.len()));
                    self.moved(last, more);
                    let back = |row: &mut usize| *row -= if *row >= last { less } else { 0 };
                    self.marks.iter_mut().for_each(|mark| back(&mut mark.0));
                    self.entries.values_mut().for_each(|(row, _)| back(row));
                    self.folds.values_mut().for_each(|(first, last, _)| [first, last].into_iter().for_each(back));
                    self.lines.splice(first..last, lines);
                    if self.lines.is_empty() {
                        self.lines.push(String::new());
                    }
                }
                Op::InsertText { row, col, lines } => {
                    assert_eq!(col, self.lines[row].len(), "a message only grows at its end");
                    let rest = self.lines[row].split_off(col);
                    self.moved(row + 1, lines.len() - 1);
                    let mut lines = lines.into_iter();
                    self.lines[row].push_str(&lines.next().expect("a first line"));
                    let mut at = row;
                    for line in lines {
                        at += 1;
                        self.lines.insert(at, line);
                    }
                    self.lines[at].push_str(&rest);
                }
                Op::Mark { row, col, end_row, end_col, .. } => {
                    assert!(col <= self.lines[row].len());
                    assert!(end_col <= self.lines[end_row].len());
                }
                Op::Highlight { group, ranges, .. } => {
                    for [row, col, end_col] in ranges {
                        assert!(col < end_col && end_col <= self.lines[row].len(), "{row} {col} {end_col} {group}");
                        self.marks.push((row, col, end_col, group.to_owned()));
                    }
                }
                Op::Pad { places, fill } => {
                    for [row, col, width] in places {
                        assert!(col <= self.lines[row].len());
                        self.marks.push((row, col, width, fill.to_owned()));
                    }
                }
                Op::Code { first, end, .. } => assert!(first <= end && end <= self.lines.len()),
                Op::Unmark { first, last, col } => {
                    assert!(first < last && last <= self.lines.len());
                    self.marks.retain(|mark| (mark.0, mark.1) < (first, col) || mark.0 >= last);
                }
            }
        }
    }
}

fn view() -> TranscriptView {
    TranscriptView::new("/p".into())
}

/// All rows, built in one go.
fn whole(transcript: &Transcript, queued: &[String]) -> Vec<String> {
    whole_buffer(transcript, queued, Vec::new()).lines
}

fn whole_buffer(transcript: &Transcript, queued: &[String], asked: Vec<Row>) -> Buffer {
    let mut view = view();
    (0..transcript.entries().len()).for_each(|index| view.note(Change::Added(index), transcript));
    view.set_queued(queued);
    view.set_asked(asked);
    let mut buffer = Buffer::new();
    buffer.frame(&mut view, transcript, usize::MAX);
    see_all(&mut view, transcript, &mut buffer);
    buffer
}

fn see_all(view: &mut TranscriptView, transcript: &Transcript, buffer: &mut Buffer) {
    for first in (0..buffer.lines.len()).step_by(10) {
        view.see(first..first + 10);
    }
    buffer.apply(view.take(transcript, 16));
}

fn step(content: &str, status: PlanStatus) -> PlanStep {
    PlanStep { content: content.into(), status }
}

#[test]
fn a_conversation_reads_like_one() {
    let mut transcript = Transcript::default();
    transcript.chunk(Speaker::User, None, "fix it\nplease");
    transcript.chunk(Speaker::Thought, None, "hm");
    transcript.chunk(Speaker::Agent, None, "I will.\n\n- now");
    let mut call = ToolCall::new("1".into(), Millis(0));
    call.title = "Edit a.py".into();
    call.kind = "edit".into();
    call.set_status(ToolStatus::Completed, Millis(1500));
    call.content = vec![ToolContent::Diff { path: "/p/a.py".into(), old: Some("a\nb\n".into()), new: "a\nc\n".into() }];
    transcript.add_tool(call);
    transcript.add(Entry::Notice(Severity::Stop, "Cancelled.".into()));
    transcript
        .put_plan(None, Plan::Steps(vec![step("one", PlanStatus::Completed), step("two", PlanStatus::InProgress)]));
    let rows = whole(&transcript, &["next".into()]);
    let expected = "❯ You
fix it
please

… thinking
hm

I will.

- now

✓ Edit a.py  ✎ edit · done · 1.5 s
  ± a.py  +1 −1
    a
  - b
  + c
■ Cancelled.

Plan  1/2
  ✓ one
  ▸ two

⏳ queued: next";
    assert_eq!(rows.join("\n"), expected);
}

#[test]
fn a_chunk_costs_its_own_length_however_long_the_message_is() {
    let mut transcript = Transcript::default();
    let mut view = view();
    let change = transcript.chunk(Speaker::Agent, None, &"long\n".repeat(50_000)).expect("a change");
    view.note(change, &transcript);
    while !view.is_clean() {
        view.take(&transcript, 32 * 1024);
    }
    let change = transcript.chunk(Speaker::Agent, None, "x").expect("a change");
    view.note(change, &transcript);
    assert_eq!(view.take(&transcript, 32 * 1024), [Op::InsertText { row: 50_000, col: 0, lines: vec!["x".into()] }]);
}

#[test]
fn only_the_changed_rows_of_a_card_are_sent() {
    let mut transcript = Transcript::default();
    let mut view = view();
    let mut call = ToolCall::new("1".into(), Millis(0));
    call.content = vec![ToolContent::Text("a\nb\nc".into())];
    let change = transcript.add_tool(call);
    view.note(change, &transcript);
    view.take(&transcript, 1000);
    let change = transcript.update_tool("1", |call| call.content = vec![ToolContent::Text("a\nX\nc".into())]);
    view.note(change.expect("a change"), &transcript);
    let ops = view.take(&transcript, 1000);
    assert_eq!(ops[1], Op::SetLines { first: 2, last: 3, lines: vec!["  │ X".into()] });
}

/// Something that may happen to a transcript.
#[derive(Debug, Clone)]
enum Happening {
    Chunk(Speaker, Option<String>, String),
    Tool(u8, String),
    Plan(u8),
    Notice(String),
    Queue(Vec<String>),
    Ask(Vec<String>),
    Frame(usize),
    See(usize, usize),
    Lost,
}

/// Pieces of text with much Markdown in them.
const MARKDOWN: &str = "([a-zäé \n]{1,8}|\\*\\*b\\*\\*|`c`|\n# h\n|\n```lua\nx = 1\n```\n|\n\n\\|a\\|b\\|\n\\|-\\|-\\|\n|\\|bb\\|\n|- \\[ \\] )";

fn happening() -> impl Strategy<Value = Happening> {
    let speaker = prop_oneof![Just(Speaker::User), Just(Speaker::Agent), Just(Speaker::Thought)];
    prop_oneof![
        4 => (speaker, proptest::option::of("[ab]"), MARKDOWN).prop_map(|(s, id, text)| Happening::Chunk(s, id, text)),
        2 => (0u8..4, "([a-z]?\n?){0,30}").prop_map(|(id, text)| Happening::Tool(id, text)),
        1 => (0u8..4).prop_map(Happening::Plan),
        1 => "[a-z]{1,5}(\n[a-z]{1,5})?".prop_map(Happening::Notice),
        1 => proptest::collection::vec("[a-z]{1,4}", 0..3).prop_map(Happening::Queue),
        1 => proptest::collection::vec("[a-z]{0,2}", 0..4).prop_map(Happening::Ask),
        4 => (1usize..20).prop_map(Happening::Frame),
        1 => (0usize..20, 0usize..5).prop_map(|(first, rows)| Happening::See(first, rows)),
        1 => Just(Happening::Lost),
    ]
}

fn happen(transcript: &mut Transcript, happening: &Happening) -> Option<Change> {
    match happening {
        Happening::Chunk(speaker, id, text) => transcript.chunk(*speaker, id.as_deref(), text),
        Happening::Tool(id, text) => {
            let id = id.to_string();
            let content = vec![ToolContent::Text(text.as_str().into())];
            if transcript.tool(&id).is_some() {
                return transcript.update_tool(&id, |call| {
                    call.content = content;
                    call.set_status(
                        if text.len() > 4 { ToolStatus::Completed } else { ToolStatus::Pending },
                        Millis(0),
                    );
                });
            }
            let mut call = ToolCall::new(id, Millis(0));
            call.content = content;
            Some(transcript.add_tool(call))
        }
        Happening::Plan(count) => {
            Some(transcript.put_plan(None, Plan::Steps((0..*count).map(|_| step("s", PlanStatus::Pending)).collect())))
        }
        Happening::Notice(text) => Some(transcript.add(Entry::Notice(Severity::Info, text.clone()))),
        Happening::Queue(_) | Happening::Ask(_) | Happening::Frame(_) | Happening::See(..) | Happening::Lost => None,
    }
}

proptest! {
    /// However changes, frames of any size, looks and lost buffers fall, the buffer ends as if it had been built in one
    /// go, and so do its highlights.
    #[test]
    fn frames_add_up(happenings in proptest::collection::vec(happening(), 0..60)) {
        let mut transcript = Transcript::default();
        let mut view = view();
        let mut buffer = Buffer::new();
        let mut queued = Vec::new();
        let mut asked = Vec::new();
        for happening in &happenings {
            match happening {
                Happening::Frame(budget) => buffer.frame(&mut view, &transcript, *budget),
                Happening::Queue(prompts) => {
                    queued.clone_from(prompts);
                    view.set_queued(prompts);
                }
                Happening::Ask(lines) => {
                    asked = lines.iter().map(|line| Row::of(line, "AgentChatPermissionKey")).collect();
                    view.set_asked(asked.clone());
                }
                Happening::See(first, rows) => view.see(*first..first + rows),
                Happening::Lost => {
                    buffer.marks.clear();
                    buffer.lines = vec!["somebody".into(), "was here".into()];
                    view.resync();
                }
                other => {
                    if let Some(change) = happen(&mut transcript, other) {
                        view.note(change, &transcript);
                    }
                }
            }
        }
        let mut frames = 0;
        while !view.is_clean() {
            buffer.frame(&mut view, &transcript, 16);
            frames += 1;
            prop_assert!(frames < 10_000);
        }
        see_all(&mut view, &transcript, &mut buffer);
        let expected = whole_buffer(&transcript, &queued, asked);
        prop_assert_eq!(&buffer.lines, &expected.lines);
        prop_assert_eq!(buffer.sorted_marks(), expected.sorted_marks());
        prop_assert_eq!(buffer.entries, expected.entries);
        prop_assert_eq!(buffer.folds, expected.folds);
        prop_assert!(view.take(&transcript, 16).is_empty());
    }
}

#[test]
fn a_very_long_line_grows_in_few_steps() {
    let mut transcript = Transcript::default();
    let mut view = view();
    let text = "0123456789".repeat(200_000);
    let change = transcript.chunk(Speaker::Agent, None, &text).expect("a change");
    view.note(change, &transcript);
    let mut buffer = Buffer::new();
    let mut frames = 0;
    while !view.is_clean() {
        buffer.apply(view.take(&transcript, 4 * 1024));
        frames += 1;
    }
    assert_eq!(buffer.lines, [text]);
    assert!(frames < 50, "{frames} frames");
}
