//! Markdown of a message that grows: what of it is a heading, code, a link.
//!
//! The text comes in pieces. [`Markdown`] reads each complete line once ([`blocks`]), and remembers only which blocks are
//! open. Paragraphs, headings and cells are given to pulldown-cmark ([`inline`]); of a paragraph that is still open at
//! most two times [`LIMIT`] bytes are read again when the text grows, so a piece costs the same wherever in the message
//! it comes.
//!
//! How the text was cut into pieces makes no difference. Against the whole text given to pulldown-cmark at once, there
//! are these exceptions:
//!
//! * links by reference are not links, since what they refer to may come later, and definitions are text;
//! * blocks of HTML are paragraphs;
//! * in a paragraph of more than [`LIMIT`] bytes, emphasis, code and links do not reach across the places where it is cut:
//!   the next line break after so many bytes, and in a longer line the last blank before them;
//! * what a line is, is decided by its first [`LIMIT`] bytes; the rest of a longer heading, quote or row of a table is not
//!   marked as such;
//! * a line is marked up to its byte [`MAX_COL`] only;
//! * a line of dashes makes a table only if it has a `|`.

mod blocks;
mod cursor;
mod inline;
mod mark;
mod starts;
mod table;

use blocks::{Blocks, Found};
use inline::Later;
pub use mark::{CodeBlock, Group, Mark, Pad, Place};
use table::TableRow;

use crate::core::text::GrowingText;

/// Bytes of an open paragraph, or of a line, that are looked at as one.
pub const LIMIT: usize = 4 * 1024;
/// From this byte on a line is not marked: Neovim looks at all marks of a line whenever it draws a part of it.
const MAX_COL: usize = 8 * LIMIT;

/// The marks of a message so far.
#[derive(Debug, Clone, Default)]
pub struct Markdown {
    /// After all complete lines and the complete parts of a long one.
    blocks: Blocks,
    /// The last line, or its last part, as far as it came.
    partial: String,
    /// Where `partial` begins in its line; not 0 only in a line longer than [`LIMIT`].
    partial_col: usize,
    /// Where `partial` begins in the message.
    partial_at: usize,
    /// The row that was the last one when the marks were brought up to date.
    last_row: u32,
    is_finished: bool,
    /// Rows of the open table.
    table: Vec<TableRow>,
    /// Those of blocks, and those inside of blocks except for `later`.
    marks: Settled<Mark>,
    later: Later,
    pads: Settled<Pad>,
    code: Settled<CodeBlock>,
    changed: Option<Changed>,
}

/// Where marks are not what they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// From here on.
    pub from: Place,
    /// Whether there were any; else there are only new ones.
    pub had_marks: bool,
}

impl Changed {
    fn join(self, other: Self) -> Self {
        Self { from: self.from.min(other.from), had_marks: self.had_marks || other.had_marks }
    }
}

/// A list whose end may still change.
#[derive(Debug, Clone)]
struct Settled<T> {
    items: Vec<T>,
    final_len: usize,
}

impl<T> Default for Settled<T> {
    fn default() -> Self {
        Self { items: Vec::new(), final_len: 0 }
    }
}

impl<T: PartialEq> Settled<T> {
    /// Replaces what is not final by `finals`, which are, and `open`, which are not. Returns where the list differs
    /// from what it was.
    fn update(&mut self, finals: Vec<T>, open: Vec<T>, place: impl Fn(&T) -> Place) -> Option<Place> {
        let from = self.final_len;
        self.final_len += finals.len();
        let same =
            self.items[from..].iter().zip(finals.iter().chain(&open)).take_while(|(old, new)| old == new).count();
        let first_old = self.items.get(from + same).map(&place);
        let first_new = finals.iter().chain(&open).nth(same).map(&place);
        self.items.truncate(from + same);
        self.items.extend(finals.into_iter().chain(open).skip(same));
        first_old.into_iter().chain(first_new).min()
    }
}

impl Markdown {
    /// Takes in what came next. Costs the length of `text`, and at most a few [`LIMIT`].
    pub fn push(&mut self, text: &str) {
        self.is_finished = false;
        let mut from = 0;
        for line_break in memchr::memchr_iter(b'\n', text.as_bytes()) {
            self.push_in_line(&text[from..line_break]);
            self.end_line();
            from = line_break + 1;
        }
        self.push_in_line(&text[from..]);
        self.show();
    }

    /// The message is complete, until more is pushed.
    pub fn finish(&mut self) {
        if !self.is_finished {
            self.is_finished = true;
            self.show();
        }
    }

    /// The highlights of rows `first` up to, without, `end`, in order. `message` is all text that was pushed, or more.
    pub fn marks(&self, first: u32, end: u32, message: &GrowingText) -> Vec<Mark> {
        let mut marks = Vec::new();
        self.later.read(first, end, message, &mut marks);
        marks.retain(|mark| (first..end).contains(&mark.row));
        marks.extend_from_slice(between(&self.marks.items, first, end, |mark| mark.row));
        marks.sort_unstable();
        marks
    }

    /// The paddings in those rows.
    pub fn pads(&self, first: u32, end: u32) -> &[Pad] {
        between(&self.pads.items, first, end, |pad| pad.row)
    }

    /// Complete code blocks with a row in there.
    pub fn code_blocks(&self, first: u32, end: u32) -> &[CodeBlock] {
        let items = &self.code.items;
        let from = items.partition_point(|code| code.end <= first);
        &items[from..from + items[from..].partition_point(|code| code.first < end)]
    }

    /// From where on highlights or paddings are not what they were at the last call.
    pub fn take_changed(&mut self) -> Option<Changed> {
        self.changed.take()
    }

    fn push_in_line(&mut self, text: &str) {
        let mut text = text;
        while self.partial.len() + text.len() > LIMIT {
            let (fits, rest) = text.split_at(text.floor_char_boundary(LIMIT - self.partial.len()));
            self.partial.push_str(fits);
            text = rest;
            self.part_of_line(false);
        }
        self.partial.push_str(text);
    }

    fn part_of_line(&mut self, is_end: bool) {
        if self.partial_col == 0 {
            self.blocks.line(&self.partial, self.partial_at, is_end);
        } else {
            self.blocks.more(&self.partial, self.partial_col);
        }
        self.partial_col += self.partial.len();
        self.partial_at += self.partial.len();
        self.partial.clear();
    }

    fn end_line(&mut self) {
        self.part_of_line(true);
        self.blocks.end_line();
        self.partial_col = 0;
        self.partial_at += 1;
    }

    /// Brings the marks up to date.
    fn show(&mut self) {
        let mut pads = Vec::new();
        let mut code = Vec::new();
        // What nobody can have seen may be read when somebody does.
        self.later.extend(self.blocks.unread.split_off(self.last_row + 1));
        self.last_row = self.blocks.row();
        let marks = read(&mut self.blocks);
        for found in std::mem::take(&mut self.blocks.found) {
            match found {
                Found::Row(row) => self.table.push(row),
                Found::EndOfTable(alignments) => {
                    pads.extend(table::pads(self.table.iter(), &alignments));
                    self.table.clear();
                }
                Found::Code(block) => code.push(block),
            }
        }
        let mut open = self.blocks.clone();
        if !self.partial.is_empty() {
            if self.partial_col == 0 {
                open.line(&self.partial, self.partial_at, true);
            } else {
                open.more(&self.partial, self.partial_col);
            }
            if self.is_finished {
                open.end_line();
            }
        }
        if self.is_finished {
            open.finish();
        }
        open.show_open();
        let open_marks = read(&mut open);
        let mut open_pads = Vec::new();
        let mut open_code = Vec::new();
        let mut rows = Vec::new();
        for found in open.found {
            match found {
                Found::Row(row) => rows.push(row),
                Found::EndOfTable(alignments) => {
                    open_pads = table::pads(self.table.iter().chain(&rows), &alignments);
                }
                Found::Code(block) => open_code.push(block),
            }
        }
        let of_mark = |mark: &Mark| Place { row: mark.row, col: mark.col };
        let of_pad = |pad: &Pad| Place { row: pad.row, col: pad.col };
        let last = self.marks.items.last().map(of_mark).max(self.pads.items.last().map(of_pad));
        let from = [self.marks.update(marks, open_marks, of_mark), self.pads.update(pads, open_pads, of_pad)];
        self.code.update(code, open_code, |code| Place { row: code.first, col: 0 });
        let new = from.into_iter().flatten().min().map(|from| Changed { from, had_marks: last >= Some(from) });
        self.changed = self.changed.into_iter().chain(new).reduce(Changed::join);
    }
}

/// Takes the marks that are final, those inside of blocks included.
fn read(blocks: &mut Blocks) -> Vec<Mark> {
    let mut marks = std::mem::take(&mut blocks.marks);
    blocks.unread.read(&mut marks);
    marks.sort_unstable();
    marks
}

/// The items of those rows in a list that is ordered by row.
fn between<T>(items: &[T], first: u32, end: u32, row: impl Fn(&T) -> u32) -> &[T] {
    let from = items.partition_point(|item| row(item) < first);
    &items[from..from + items[from..].partition_point(|item| row(item) < end)]
}

#[cfg(test)]
mod tests;
