//! Which highlights of an agent's message are in the buffer.
//!
//! A message has more of them than are ever looked at, so only those of rows that can be seen are sent, each once. What was
//! sent stays in the buffer until the text that comes changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::markdown::{Mark, Markdown, Pad, Place};
use super::ops::Op;
use super::rowset::RowSet;
use crate::core::text::GrowingText;

/// An agent's message.
#[derive(Debug, Clone, Default)]
pub(super) struct Highlights {
    markdown: Markdown,
    /// Rows whose highlights are in the buffer.
    sent: RowSet,
    /// First rows of the code blocks that were told.
    told: BTreeSet<u32>,
}

impl Highlights {
    pub(super) fn push(&mut self, text: &str) {
        self.markdown.push(text);
    }

    /// No more text is expected.
    pub(super) fn finish(&mut self) {
        self.markdown.finish();
    }

    /// Brings what was sent up to date. The message begins in row `start` of the buffer.
    pub(super) fn refresh(&mut self, start: usize, message: &GrowingText, ops: &mut Vec<Op>, batch: &mut Batch) {
        let Some(changed) = self.markdown.take_changed() else { return };
        let Place { row, col } = changed.from;
        let is_sent = self.sent.contains(row);
        let end = self.sent.split_off(row + 1);
        if !is_sent && end.is_none() {
            return;
        }
        if changed.had_marks {
            let last = start + end.unwrap_or(row + 1) as usize;
            ops.push(Op::Unmark { first: start + row as usize, last, col: col as usize });
        }
        if is_sent {
            let is_new = |at: u32| at >= col;
            batch.marks(start, self.markdown.marks(row, row + 1, message).iter().filter(|mark| is_new(mark.col)));
            batch.pads(start, self.markdown.pads(row, row + 1).iter().filter(|pad| is_new(pad.col)));
        }
        if let Some(end) = end {
            self.show(start, row + 1..end, message, batch);
        }
    }

    /// Sends what is not yet there in these rows.
    pub(super) fn show(&mut self, start: usize, rows: Range<u32>, message: &GrowingText, batch: &mut Batch) {
        let mut from = rows.start;
        while let Some(gap) = self.sent.first_gap(from..rows.end) {
            batch.marks(start, self.markdown.marks(gap.start, gap.end, message).iter());
            batch.pads(start, self.markdown.pads(gap.start, gap.end).iter());
            gap.clone().for_each(|row| self.sent.insert(row));
            from = gap.end;
        }
        for block in self.markdown.code_blocks(rows.start, rows.end) {
            if !block.language.is_empty() && self.told.insert(block.first) {
                let (first, end) = (start + block.first as usize, start + block.end as usize);
                batch.codes.push(Op::Code { first, end, language: block.language.clone() });
            }
        }
    }
}

/// Highlights of a frame, in few operations.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// By whether they are for whole lines, and by group.
    marks: BTreeMap<(bool, &'static str), Vec<[usize; 3]>>,
    pads: BTreeMap<&'static str, Vec<[usize; 3]>>,
    codes: Vec<Op>,
}

impl Batch {
    fn marks<'a>(&mut self, start: usize, marks: impl Iterator<Item = &'a Mark>) {
        for mark in marks {
            let ranges = self.marks.entry((mark.group.is_block(), mark.group.name())).or_default();
            ranges.push([start + mark.row as usize, mark.col as usize, mark.end_col as usize]);
        }
    }

    fn pads<'a>(&mut self, start: usize, pads: impl Iterator<Item = &'a Pad>) {
        for pad in pads {
            let places = self.pads.entry(if pad.is_dashes { "-" } else { " " }).or_default();
            places.push([start + pad.row as usize, pad.col as usize, pad.width.into()]);
        }
    }

    /// One highlight.
    pub(super) fn mark(&mut self, row: usize, col: usize, end_col: usize, group: &'static str) {
        self.marks.entry((false, group)).or_default().push([row, col, end_col]);
    }

    /// As edits, for after those of the text.
    pub(super) fn into_ops(self) -> impl Iterator<Item = Op> {
        let highlight = |((is_block, group), ranges)| Op::Highlight { group, is_block, ranges };
        let pad = |(fill, places)| Op::Pad { fill, places };
        self.marks.into_iter().map(highlight).chain(self.pads.into_iter().map(pad)).chain(self.codes)
    }
}
