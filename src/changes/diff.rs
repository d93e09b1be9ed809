//! From one text to another: which lines changed, and which words in them.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::{Author, Hunk};

/// A diff that takes longer is cut coarser. Nobody waits for it but the agent.
const DEADLINE: Duration = Duration::from_millis(200);
/// Words are compared while somebody looks at the line.
const WORDS_DEADLINE: Duration = Duration::from_millis(20);

/// Rows that differ: `old` of the one text became `new` of the other. One of the two may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Rows of the old text.
    pub old: Range<usize>,
    /// Rows of the new text.
    pub new: Range<usize>,
}

/// The changes that lead from `old` to `new`, in order; between two of them is at least one line that stayed.
pub fn changes<S: AsRef<str>, T: AsRef<str>>(old: &[S], new: &[T]) -> Vec<Change> {
    let old: Vec<&str> = old.iter().map(AsRef::as_ref).collect();
    let new: Vec<&str> = new.iter().map(AsRef::as_ref).collect();
    let deadline = Some(Instant::now() + DEADLINE);
    joined(&capture_diff_slices_deadline(Algorithm::Patience, &old, &new, deadline))
}

/// The operations that change something, where they touch as one.
fn joined(ops: &[DiffOp]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let (old, new) = (op.old_range(), op.new_range());
        match changes.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => changes.push(Change { old, new }),
        }
    }
    changes
}

/// The hunks of an agent that made `now` of `base`, numbered from `first_id` on.
pub fn between<S: AsRef<str>, T: AsRef<str>>(base: &[S], now: &[T], first_id: u64) -> Vec<Hunk> {
    (first_id..)
        .zip(changes(base, now))
        .map(|(id, change)| Hunk {
            id,
            first: change.new.start,
            authors: vec![Author::Agent; change.new.len()],
            old: base[change.old].iter().map(|line| line.as_ref().to_owned()).collect(),
        })
        .collect()
}

/// The bytes that differ between two lines, in whole words: ranges of the old line and of the new one.
pub fn words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (old_words, new_words) = (split_words(old), split_words(new));
    let deadline = Some(Instant::now() + WORDS_DEADLINE);
    let changes = joined(&capture_diff_slices_deadline(Algorithm::Patience, &old_words, &new_words, deadline));
    let (old_ends, new_ends) = (ends(&old_words), ends(&new_words));
    let of_side = |ends: &[usize], side: fn(&Change) -> &Range<usize>| {
        changes
            .iter()
            .map(side)
            .filter(|range| !range.is_empty())
            .map(|range| ends[range.start]..ends[range.end])
            .collect()
    };
    (of_side(&old_ends, |change| &change.old), of_side(&new_ends, |change| &change.new))
}

/// A line in runs of letters and digits, runs of blanks, and single other characters.
fn split_words(line: &str) -> Vec<&str> {
    #[derive(PartialEq)]
    enum Kind {
        Word,
        Blank,
        Other,
    }
    let kind = |letter: char| {
        if letter.is_alphanumeric() || letter == '_' {
            Kind::Word
        } else if letter.is_whitespace() {
            Kind::Blank
        } else {
            Kind::Other
        }
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (index, letter) in line.char_indices() {
        let now = kind(letter);
        if index > 0 && (now == Kind::Other || before.as_ref() != Some(&now)) {
            words.push(&line[start..index]);
            start = index;
        }
        before = Some(now);
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

/// Where the word of each number begins, and where the last one ends.
fn ends(words: &[&str]) -> Vec<usize> {
    let ends = words.iter().scan(0, |end, word| {
        *end += word.len();
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}
