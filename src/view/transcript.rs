//! The transcript buffer, and the edits that bring it up to date.
//!
//! The view knows how many rows of each entry are in the buffer. A change marks its entry dirty; [`TranscriptView::take`]
//! turns dirty entries into edits until a budget is spent. A growing message costs what it grew by, wherever it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use super::cards;
use super::counts::Counts;
use super::diff::DiffCache;
use super::highlights::{Batch, Highlights};
use super::ops::{Op, Row};
use super::structure::{Mark, Place, Structure};
use crate::core::text::GrowingText;
use crate::core::transcript::{Change, Entry, EntryIndex, Transcript};

/// Rows at the end whose highlights are always sent. Lua knows the number, too.
const FOLLOWED: usize = 60;
/// Most rows that are highlighted for one request.
const MAX_SEEN: usize = 300;
/// Most bytes that are appended to a long line at once: a larger value takes Neovim long to unpack.
const MAX_SHARE: usize = 256 * 1024;
/// This many bytes of a message that are not in the buffer are a flood, not a trickle.
const FLOOD: usize = 32 * 1024;

/// The state of one transcript buffer.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
pub struct TranscriptView {
    cwd: PathBuf,
    heights: Counts,
    shown: Vec<Shown>,
    dirty: BTreeSet<EntryIndex>,
    structure: Structure,
    /// Diffs of the calls that have not ended.
    diffs: BTreeMap<EntryIndex, DiffCache>,
    /// Rows below all entries: what the user is asked, then the prompts that wait.
    asked: Vec<Row>,
    queued: Vec<Row>,
    /// The ones that are in the buffer.
    tail_shown: Vec<Row>,
    tail_dirty: bool,
    /// Rows at the end that are highlighted without being asked for.
    followed: usize,
    /// Rows that are to be highlighted.
    seen: Vec<Range<usize>>,
    /// No turn runs: the last message is complete.
    is_turn_over: bool,
    /// What was not in the buffer when the turn ended: the entries, and how much of their text there was. What comes
    /// later does not count.
    owed: BTreeMap<EntryIndex, usize>,
    /// A flood has come since edits were taken last.
    is_flooded: bool,
    /// The buffer's content is not what the view made it.
    lost: bool,
}

/// What of an entry is in the buffer.
#[derive(Debug, Clone)]
enum Shown {
    Nothing,
    /// The first `bytes` of a message's text, after `above` rows of ours; its last row is `last_col` bytes long.
    Text {
        bytes: usize,
        above: usize,
        last_col: usize,
        /// None if it is no Markdown.
        highlights: Option<Box<Highlights>>,
    },
    /// These rows.
    Rows(Vec<Row>),
}

impl TranscriptView {
    /// The view of an empty buffer; paths below `cwd` are shown without it.
    pub fn new(cwd: PathBuf) -> Self {
        Self {
            cwd,
            heights: Counts::default(),
            shown: Vec::new(),
            dirty: BTreeSet::new(),
            structure: Structure::default(),
            diffs: BTreeMap::new(),
            asked: Vec::new(),
            queued: Vec::new(),
            tail_shown: Vec::new(),
            tail_dirty: false,
            followed: FOLLOWED,
            seen: Vec::new(),
            is_turn_over: false,
            owed: BTreeMap::new(),
            is_flooded: false,
            lost: false,
        }
    }

    /// Takes note of a change, after which the transcript is this; costs nothing that grows.
    pub fn note(&mut self, change: Change, transcript: &Transcript) {
        match change {
            Change::Added(index) => {
                while self.shown.len() <= index {
                    self.shown.push(Shown::Nothing);
                    self.heights.push_zero();
                }
                self.dirty.insert(index);
                self.is_turn_over = false;
                // The entry before is complete.
                if let Some(before) = index.checked_sub(1) {
                    self.structure.touch(before);
                    if matches!(self.shown[before], Shown::Text { highlights: Some(_), .. }) {
                        self.dirty.insert(before);
                    }
                }
            }
            Change::Grew(index) | Change::Replaced(index) => {
                self.dirty.insert(index);
            }
        }
        if let Change::Added(index) | Change::Grew(index) = change {
            let length = transcript.entries().get(index).and_then(Entry::text).map_or(0, GrowingText::len);
            self.is_flooded |= length >= self.bytes_shown(index) + FLOOD;
        }
    }

    /// How much of a message's text is in the buffer.
    fn bytes_shown(&self, index: EntryIndex) -> usize {
        match self.shown.get(index) {
            Some(Shown::Text { bytes, .. }) => *bytes,
            Some(Shown::Nothing | Shown::Rows(_)) | None => 0,
        }
    }

    /// Sets the prompts that wait, which stand below all else.
    pub fn set_queued(&mut self, prompts: &[String]) {
        self.queued = prompts.iter().map(|prompt| Row::of(format!("⏳ queued: {prompt}"), "AgentChatQueued")).collect();
        self.tail_dirty = true;
    }

    /// Sets what the user is asked, which stands below all entries.
    pub fn set_asked(&mut self, rows: Vec<Row>) {
        self.asked = rows;
        self.tail_dirty = true;
    }

    /// The rows below all entries, each part of them set off by a blank one.
    fn tail(&self) -> Vec<Row> {
        let parts = [&self.asked, &self.queued];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.flat_map(|part| std::iter::once(Row::default()).chain(part.iter().cloned())).collect()
    }

    /// A turn is over: what the agent said last is complete. `transcript` is how it is now.
    pub fn end_turn(&mut self, transcript: &Transcript) {
        self.is_turn_over = true;
        self.dirty.extend(self.shown.len().checked_sub(1));
        for &index in &self.dirty {
            let Some(entry) = transcript.entries().get(index) else { continue };
            self.owed.insert(index, entry.text().map_or(0, GrowingText::len));
        }
    }

    /// Whether all that there was when the last turn ended is in the buffer.
    pub fn has_turn(&self) -> bool {
        self.owed.is_empty()
    }

    /// These rows of the buffer are looked at: highlights of them, and of as many above and below, come with the next
    /// edits.
    pub fn see(&mut self, rows: Range<usize>) {
        let height = rows.len().min(MAX_SEEN);
        self.followed = self.followed.max(height);
        self.seen.push(rows.start.saturating_sub(height)..rows.start + 2 * height);
    }

    /// Whether the next edits are worth a frame of their own as soon as there can be one: much has come, or a turn waits
    /// for the rest of its text.
    pub fn is_pressing(&self) -> bool {
        self.is_flooded || !self.owed.is_empty()
    }

    /// Whether somebody looks at rows whose highlights may be missing.
    pub fn is_seen(&self) -> bool {
        !self.seen.is_empty()
    }

    /// The buffer is not what it should be: everything is sent anew.
    pub fn resync(&mut self) {
        self.lost = true;
        self.structure.reset();
        self.heights = Counts::default();
        for (index, shown) in self.shown.iter_mut().enumerate() {
            *shown = Shown::Nothing;
            self.heights.push_zero();
            self.dirty.insert(index);
        }
        self.seen.clear();
        self.tail_shown.clear();
        self.tail_dirty = true;
    }

    /// Whether the buffer is up to date.
    pub fn is_clean(&self) -> bool {
        self.dirty.is_empty() && !self.tail_dirty && !self.lost && self.seen.is_empty()
    }

    /// Edits of about `budget` bytes of text that bring the buffer nearer to the transcript.
    pub fn take(&mut self, transcript: &Transcript, budget: usize) -> Vec<Op> {
        let mut ops = Vec::new();
        if std::mem::take(&mut self.lost) {
            ops.push(Op::SetLines { first: 0, last: -1, lines: Vec::new() });
            ops.push(Op::Unmark { first: 0, last: 1, col: 0 });
        }
        self.is_flooded = false;
        let mut batch = Batch::default();
        let mut left = budget;
        while left > 0
            && let Some(index) = self.dirty.pop_first()
        {
            let Some(entry) = transcript.entries().get(index) else { continue };
            let spent = match entry.text() {
                Some(text) => self.grow(transcript, index, text, left, &mut ops, &mut batch),
                None => self.replace(transcript, index, &mut ops, &mut batch),
            };
            left = left.saturating_sub(spent);
            let shown = match self.shown[index] {
                Shown::Text { bytes, .. } => bytes,
                Shown::Nothing | Shown::Rows(_) => usize::MAX,
            };
            if self.owed.get(&index).is_some_and(|&owed| owed <= shown) {
                self.owed.remove(&index);
            }
        }
        if self.tail_dirty && self.dirty.is_empty() {
            self.tail_dirty = false;
            let rows = self.tail();
            let old = self.tail_shown.clone();
            self.exchange(self.heights.total(), &old, &rows, &mut ops, &mut batch);
            self.tail_shown = rows;
        }
        self.show_highlights(transcript, &mut batch);
        ops.extend(batch.into_ops());
        ops
    }

    /// Adds the highlights of all rows that can be seen and are not there yet.
    fn show_highlights(&mut self, transcript: &Transcript, batch: &mut Batch) {
        let total = self.heights.total();
        let mut seen = std::mem::take(&mut self.seen);
        // While there is a backlog the rows at the end are gone before anybody has read them.
        if self.dirty.is_empty() {
            seen.push(total.saturating_sub(self.followed)..total);
        }
        for rows in seen {
            let Some((mut index, _)) = self.heights.find(rows.start) else { continue };
            let mut start = self.heights.before(index);
            while start < rows.end.min(total)
                && let Some(shown) = self.shown.get_mut(index)
            {
                let end = self.heights.before(index + 1);
                if let Shown::Text { above, highlights: Some(highlights), .. } = shown
                    && let Some(message) = transcript.entries().get(index).and_then(Entry::text)
                {
                    let first = start + *above;
                    let row = |row: usize| u32::try_from(row.saturating_sub(first)).unwrap_or(u32::MAX);
                    highlights.show(first, row(rows.start)..row(rows.end.min(end)), message, batch);
                }
                (index, start) = (index + 1, end);
            }
        }
    }

    /// Bytes to append at least, now that appending costs what it does: Neovim lays out a wrapped line anew as a whole
    /// for every change of it, so a very long one must not grow in small steps.
    fn fair_share(&self, index: EntryIndex) -> usize {
        match self.shown[index] {
            Shown::Text { last_col, .. } => (last_col / 4).min(MAX_SHARE),
            Shown::Nothing | Shown::Rows(_) => 0,
        }
    }

    /// What is new about the rows that the edits taken so far have made; to be told after these.
    pub fn take_marks(&mut self, transcript: &Transcript) -> Vec<Mark> {
        let entries = transcript.entries();
        self.structure.take(|index| {
            let entry = entries.get(index)?;
            let rows = self.heights.before(index)..self.heights.before(index + 1);
            let is_whole = match (&self.shown[index], entry.text()) {
                (Shown::Text { bytes, .. }, Some(text)) => *bytes == text.len(),
                (Shown::Rows(_), _) => true,
                _ => return None,
            };
            let blank = usize::from(needs_blank(transcript, index));
            Some((entry, Place { rows, blank, is_settled: is_whole && index + 1 < entries.len() }))
        })
    }

    /// Brings more of a message's text into the buffer; returns how many bytes.
    fn grow(
        &mut self,
        transcript: &Transcript,
        index: EntryIndex,
        text: &GrowingText,
        budget: usize,
        ops: &mut Vec<Op>,
        batch: &mut Batch,
    ) -> usize {
        let from = self.bytes_shown(index);
        let budget = budget.max(self.fair_share(index));
        let mut lines = vec![String::new()];
        let mut taken = 0;
        for slice in text.slices(from, budget) {
            taken += slice.len();
            split_onto(&mut lines, slice);
        }
        if taken > 0 {
            self.put_text(transcript, index, taken, lines, ops, batch);
            self.structure.touch(index);
        }
        let is_whole = from + taken >= text.len();
        if !is_whole {
            self.dirty.insert(index);
        }
        if let Shown::Text { above, highlights: Some(highlights), .. } = &mut self.shown[index] {
            text.slices(from, budget).for_each(|slice| highlights.push(slice));
            if is_whole && (self.is_turn_over || index + 1 < transcript.entries().len()) {
                highlights.finish();
            }
            highlights.refresh(self.heights.before(index) + *above, text, ops, batch);
        }
        taken
    }

    /// Puts the next lines of a message into the buffer, `taken` bytes of its text.
    fn put_text(
        &mut self,
        transcript: &Transcript,
        index: EntryIndex,
        taken: usize,
        lines: Vec<String>,
        ops: &mut Vec<Op>,
        batch: &mut Batch,
    ) {
        let start = self.heights.before(index);
        let breaks = lines.len() - 1;
        let tail_len = lines.last().map_or(0, String::len);
        if let Shown::Text { bytes, last_col, .. } = &mut self.shown[index] {
            let row = self.heights.before(index + 1) - 1;
            ops.push(Op::InsertText { row, col: *last_col, lines });
            *bytes += taken;
            *last_col = if breaks == 0 { *last_col + tail_len } else { tail_len };
            self.heights.change(index, breaks, 0);
            return;
        }
        let (prelude, group) = prelude(transcript, index);
        let above = prelude.len();
        let first_text = start + above;
        let last = first_text + breaks;
        self.open_rows(start, prelude.iter().map(|row| row.text.clone()).chain(lines).collect(), ops);
        mark_rows(start, &prelude, batch);
        if let Some(group) = group {
            ops.push(Op::Mark { row: first_text, col: 0, end_row: last, end_col: tail_len, group, grows: true });
        }
        let is_markdown = matches!(transcript.entries()[index], Entry::Agent(_));
        let highlights = is_markdown.then(Box::default);
        self.shown[index] = Shown::Text { bytes: taken, above, last_col: tail_len, highlights };
        self.heights.change(index, above + breaks + 1, 0);
    }

    /// Brings the rows of an entry that is not a message up to date; returns how many bytes that took.
    fn replace(&mut self, transcript: &Transcript, index: EntryIndex, ops: &mut Vec<Op>, batch: &mut Batch) -> usize {
        let mut rows = Vec::new();
        if needs_blank(transcript, index) {
            rows.push(Row::default());
        }
        let mut folds = Vec::new();
        rows.extend(match &transcript.entries()[index] {
            Entry::Tool(call) => {
                let card = cards::tool(call, &self.cwd, self.diffs.entry(index).or_default());
                if call.status.is_final() {
                    self.diffs.remove(&index);
                }
                let first = rows.len();
                folds = card.folds.into_iter().map(|fold| fold.below(first)).collect();
                card.rows
            }
            Entry::Plan(plan) => cards::plan(plan, &self.cwd),
            Entry::Notice(severity, text) => cards::notice(*severity, text),
            Entry::User(_) | Entry::Agent(_) | Entry::Thought(_) => Vec::new(),
        });
        let start = self.heights.before(index);
        let old = match std::mem::replace(&mut self.shown[index], Shown::Nothing) {
            Shown::Rows(rows) => rows,
            Shown::Nothing | Shown::Text { .. } => Vec::new(),
        };
        let cost = self.exchange(start, &old, &rows, ops, batch);
        if cost.is_some() {
            self.structure.replaced(index, folds);
        }
        self.heights.change(index, rows.len(), old.len());
        self.shown[index] = Shown::Rows(rows);
        cost.unwrap_or(0)
    }

    /// Replaces what differs between the `old` rows from `start` and the `new` ones; returns how many bytes that took, `None`
    /// if nothing differs.
    fn exchange(&self, start: usize, old: &[Row], new: &[Row], ops: &mut Vec<Op>, batch: &mut Batch) -> Option<usize> {
        let same_first = new.iter().zip(old).take_while(|(new, old)| new == old).count();
        let most = new.len().min(old.len()) - same_first;
        let same_last = new.iter().rev().zip(old.iter().rev()).take(most).take_while(|(new, old)| new == old).count();
        let changed = &new[same_first..new.len() - same_last];
        let gone = old.len() - same_first - same_last;
        if gone == 0 && changed.is_empty() {
            return None;
        }
        self.set_rows(start + same_first, gone, changed, ops, batch);
        Some(changed.iter().map(|row| row.text.len() + 1).sum())
    }

    /// Replaces `gone` rows from `first` by these.
    fn set_rows(&self, first: usize, gone: usize, rows: &[Row], ops: &mut Vec<Op>, batch: &mut Batch) {
        if gone == 0 && rows.is_empty() {
            return;
        }
        let lines = rows.iter().map(|row| row.text.clone()).collect();
        if gone == 0 {
            self.open_rows(first, lines, ops);
        } else {
            ops.push(Op::Unmark { first, last: first + gone, col: 0 });
            ops.push(Op::SetLines { first, last: to_i64(first + gone), lines });
        }
        mark_rows(first, rows, batch);
    }

    /// Inserts lines. Neovim's empty buffer has one line, which the first insertion replaces.
    fn open_rows(&self, first: usize, lines: Vec<String>, ops: &mut Vec<Op>) {
        let is_empty = self.heights.total() + self.tail_shown.len() == 0;
        ops.push(Op::SetLines { first, last: to_i64(first + usize::from(is_empty)), lines });
    }
}

fn mark_rows(first: usize, rows: &[Row], batch: &mut Batch) {
    for (row, content) in (first..).zip(rows) {
        content.marks.iter().for_each(|&(col, end_col, group)| batch.mark(row, col, end_col, group));
    }
}

/// The rows of ours above a message's text, and the group of that text.
fn prelude(transcript: &Transcript, index: EntryIndex) -> (Vec<Row>, Option<&'static str>) {
    let blank = needs_blank(transcript, index).then(Row::default);
    let (header, group) = match transcript.entries()[index] {
        Entry::User(_) => (Some(Row::of("❯ You", "AgentChatUserHeader")), Some("AgentChatUser")),
        Entry::Thought(_) => (Some(Row::of("… thinking", "AgentChatDim")), Some("AgentChatThought")),
        _ => (None, None),
    };
    (blank.into_iter().chain(header).collect(), group)
}

/// Whether a blank row stands above the entry: tool calls and notices in a row stand close together.
fn needs_blank(transcript: &Transcript, index: EntryIndex) -> bool {
    let is_small = |entry: &Entry| matches!(entry, Entry::Tool(_) | Entry::Notice(..));
    match index.checked_sub(1).map(|before| &transcript.entries()[before]) {
        None => false,
        Some(before) => !(is_small(before) && is_small(&transcript.entries()[index])),
    }
}

/// Puts a text at the end of the last line, and what follows its line breaks into new ones.
fn split_onto(lines: &mut Vec<String>, text: &str) {
    let mut from = 0;
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    for (place, end) in ends.enumerate() {
        let line = &text[from..end];
        match lines.last_mut().filter(|_| place == 0) {
            Some(last) => last.push_str(line),
            None => lines.push(line.to_owned()),
        }
        from = end + 1;
    }
}

/// A row number as Neovim takes it.
fn to_i64(row: usize) -> i64 {
    i64::try_from(row).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
