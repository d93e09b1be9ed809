//! Three-way merge, line by line.
//!
//! Stricter than git: edits that touch each other without a line between them are a conflict, for what stands beside a line
//! is part of what it means. Where both sides made the same change, it is made once.
//!
//! A crate would give a text with markers (diffy) or take a minute for a long one (merge3); who asks here needs the rows of
//! a conflict and never a marker.

use std::ops::Range;

use super::diff::{Change, changes};
use super::lines;

/// Rows that both sides changed, and not to the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// In the text that both started from.
    pub base: Range<usize>,
    /// What one side made of it, as rows of its text.
    pub ours: Range<usize>,
    /// What the other side made of it.
    pub theirs: Range<usize>,
}

/// The sides cannot be merged: every place where that is so, in order. There is one at least.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("both sides changed the same lines in {} places", .0.len())]
pub struct Conflicts(pub Vec<Conflict>);

/// Two texts merged as lines, and the newline at their end for itself. All have `\n` for line breaks.
///
/// # Errors
/// See [`Conflicts`].
pub fn merge_texts(base: &str, ours: &str, theirs: &str) -> Result<String, Conflicts> {
    if ours == base || ours == theirs {
        return Ok(theirs.to_owned());
    }
    if theirs == base {
        return Ok(ours.to_owned());
    }
    let ((base, base_eol), (ours, our_eol), (theirs, their_eol)) = (lines(base), lines(ours), lines(theirs));
    let mut merged = merge(&base, &ours, &theirs)?.join("\n");
    if if their_eol == base_eol { our_eol } else { their_eol } {
        merged.push('\n');
    }
    Ok(merged)
}

/// A side of a merge.
struct Side<'a, 'b> {
    lines: &'b [&'a str],
    changes: std::iter::Peekable<std::vec::IntoIter<Change>>,
    /// How many rows further down its text is than the base, so far.
    shift: isize,
}

impl<'a, 'b> Side<'a, 'b> {
    fn new(base: &[&str], lines: &'b [&'a str]) -> Self {
        Self { lines, changes: changes(base, lines).into_iter().peekable(), shift: 0 }
    }

    /// Where its next change begins in the base.
    fn next(&mut self) -> Option<usize> {
        self.changes.peek().map(|change| change.old.start)
    }

    /// Takes the changes that touch these rows of the base, which grow by them. Whether there were any.
    fn take(&mut self, rows: &mut Range<usize>) -> bool {
        let mut took = false;
        while let Some(change) = self.changes.next_if(|change| change.old.start <= rows.end) {
            rows.end = rows.end.max(change.old.end);
            self.shift = change.new.end.cast_signed() - change.old.end.cast_signed();
            took = true;
        }
        took
    }
}

/// A row moved by as many rows.
fn moved(row: usize, by: isize) -> usize {
    row.saturating_add_signed(by)
}

/// The text with what `ours` and `theirs` changed in `base`.
///
/// # Errors
/// See [`Conflicts`].
pub fn merge<'a>(base: &[&'a str], ours: &[&'a str], theirs: &[&'a str]) -> Result<Vec<&'a str>, Conflicts> {
    let (mut one, mut other) = (Side::new(base, ours), Side::new(base, theirs));
    let mut merged = Vec::with_capacity(ours.len().max(theirs.len()));
    let mut conflicts = Vec::new();
    let mut row = 0;
    while let Some(start) = one.next().into_iter().chain(other.next()).min() {
        let mut rows = start..start;
        let begins = (moved(start, one.shift), moved(start, other.shift));
        let (mut by_one, mut by_other) = (false, false);
        // One side's change may lead to more of the other's.
        loop {
            let (more, even_more) = (one.take(&mut rows), other.take(&mut rows));
            by_one |= more;
            by_other |= even_more;
            if !more && !even_more {
                break;
            }
        }
        let of_one = begins.0..moved(rows.end, one.shift);
        let of_other = begins.1..moved(rows.end, other.shift);
        merged.extend_from_slice(&base[row..start]);
        if !by_other || one.lines[of_one.clone()] == other.lines[of_other.clone()] {
            merged.extend_from_slice(&one.lines[of_one]);
        } else if !by_one {
            merged.extend_from_slice(&other.lines[of_other]);
        } else {
            conflicts.push(Conflict { base: rows.clone(), ours: of_one, theirs: of_other });
        }
        row = rows.end;
    }
    merged.extend_from_slice(&base[row..]);
    if conflicts.is_empty() { Ok(merged) } else { Err(Conflicts(conflicts)) }
}
