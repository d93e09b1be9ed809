//! From one text to another: which lines changed.
//!
//! Every line becomes a number first, so that all that follows compares numbers. Lines that are in each text exactly once and
//! in the same order stay; with the equal lines around them they leave gaps, mostly of a few lines, and only these go through
//! `similar`. That is patience diff, with its outermost step done where hashing a line once is enough.

use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::{Author, Hunk};

/// A diff that takes longer is cut coarser. Nobody waits for it but the agent.
const DEADLINE: Duration = Duration::from_millis(200);
/// Lines of both texts up to which a diff takes as long as it takes.
const ALWAYS_EXACT: usize = 2_000;

/// Pairs of lines up to which comparing each with each is cheaper than setting up anything better.
const FEW_PAIRS: usize = 64;

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
    let is_same = |(old, new): &(&S, &T)| old.as_ref() == new.as_ref();
    let above = old.iter().zip(new).take_while(is_same).count();
    let (old, new) = (&old[above..], &new[above..]);
    let below = old.iter().rev().zip(new.iter().rev()).take_while(is_same).count();
    let numbers = Numbers::of(&old[..old.len() - below], &new[..new.len() - below]);
    // A short one is always the same, also where the machine is busy with something else: both sides of a merge rely on it.
    let patience = if old.len() + new.len() > ALWAYS_EXACT { DEADLINE } else { DEADLINE * 100 };
    let mut gaps = Gaps { numbers: &numbers, above, deadline: Instant::now() + patience, changes: Vec::new() };
    gaps.between(&numbers.anchors());
    gaps.changes
}

/// Two texts with a number for each line, the same for equal lines.
struct Numbers {
    old: Vec<usize>,
    new: Vec<usize>,
    /// How many different lines there are.
    count: usize,
}

impl Numbers {
    fn of<S: AsRef<str>, T: AsRef<str>>(old: &[S], new: &[T]) -> Self {
        let mut known: HashMap<&str, usize> = HashMap::with_capacity(old.len());
        let mut number = |line| {
            let next = known.len();
            *known.entry(line).or_insert(next)
        };
        let old = old.iter().map(|line| number(line.as_ref())).collect();
        let new = new.iter().map(|line| number(line.as_ref())).collect();
        Self { old, new, count: known.len() }
    }

    /// Where each line is that is in a text exactly once, by its number.
    fn unique(&self, text: &[usize]) -> Vec<Place> {
        let mut places = vec![Place::Nowhere; self.count];
        for (row, &line) in text.iter().enumerate() {
            places[line] = match places[line] {
                Place::Nowhere => Place::Once(row),
                Place::Once(_) | Place::Often => Place::Often,
            };
        }
        places
    }

    /// The most lines that are in both texts exactly once and have the same order in both, as rows of old and new.
    fn anchors(&self) -> Vec<(usize, usize)> {
        let (in_old, in_new) = (self.unique(&self.old), self.unique(&self.new));
        let pairs: Vec<(usize, usize)> = self
            .old
            .iter()
            .enumerate()
            .filter_map(|(row, &line)| match (in_old[line], in_new[line]) {
                (Place::Once(_), Place::Once(other)) => Some((row, other)),
                _ => None,
            })
            .collect();
        longest_increasing(&pairs)
    }
}

#[derive(Clone, Copy)]
enum Place {
    Nowhere,
    Once(usize),
    Often,
}

/// The longest selection of these pairs whose second numbers increase as the first ones do; all numbers are different.
fn longest_increasing(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // By the length of a selection: the pair at whose end that length is reached with the smallest number.
    let mut ends: Vec<usize> = Vec::with_capacity(pairs.len());
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, &(_, row)) in pairs.iter().enumerate() {
        let length = match ends.last() {
            Some(&last) if pairs[last].1 > row => ends.partition_point(|&end| pairs[end].1 < row),
            _ => ends.len(),
        };
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut longest = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(index) = next {
        longest.push(pairs[index]);
        next = before[index];
    }
    longest.reverse();
    longest
}

/// What changed between lines that stayed.
struct Gaps<'a> {
    numbers: &'a Numbers,
    /// Rows before the first one that has a number.
    above: usize,
    deadline: Instant,
    changes: Vec<Change>,
}

impl Gaps<'_> {
    /// Goes through the gaps between anchors, with the equal lines around each anchor.
    fn between(&mut self, anchors: &[(usize, usize)]) {
        let Numbers { old, new, .. } = self.numbers;
        let (mut row, mut other) = (0, 0);
        for &(mut end, mut other_end) in anchors.iter().chain([&(old.len(), new.len())]) {
            // Within the equal lines after the anchor before.
            if end < row {
                continue;
            }
            let (anchor, other_anchor) = (end, other_end);
            while end > row && other_end > other && old[end - 1] == new[other_end - 1] {
                (end, other_end) = (end - 1, other_end - 1);
            }
            self.gap(row..end, other..other_end);
            (row, other) = (anchor, other_anchor);
            while row < old.len() && other < new.len() && old[row] == new[other] {
                (row, other) = (row + 1, other + 1);
            }
        }
    }

    /// One gap, whose first and last lines differ.
    fn gap(&mut self, old: Range<usize>, new: Range<usize>) {
        let (lines, others) = (&self.numbers.old[old.clone()], &self.numbers.new[new.clone()]);
        let is_small = lines.len() * others.len() <= FEW_PAIRS;
        if is_small && !lines.iter().any(|line| others.contains(line)) {
            self.add(old, new);
            return;
        }
        for op in capture_diff_slices_deadline(Algorithm::Patience, lines, others, Some(self.deadline)) {
            if !matches!(op, DiffOp::Equal { .. }) {
                let (from, to) = (op.old_range(), op.new_range());
                self.add(old.start + from.start..old.start + from.end, new.start + to.start..new.start + to.end);
            }
        }
    }

    /// Adds a change, to the one before where they touch.
    fn add(&mut self, old: Range<usize>, new: Range<usize>) {
        if old.is_empty() && new.is_empty() {
            return;
        }
        let moved = |rows: Range<usize>| rows.start + self.above..rows.end + self.above;
        let (old, new) = (moved(old), moved(new));
        match self.changes.last_mut() {
            Some(last) if last.old.end == old.start && last.new.end == new.start => {
                last.old.end = old.end;
                last.new.end = new.end;
            }
            _ => self.changes.push(Change { old, new }),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(old: &str, new: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        changes(&lines(old), &lines(new)).into_iter().map(|change| (change.old, change.new)).collect()
    }

    #[test]
    fn lines_that_stayed_are_no_change() {
        assert_eq!(shown("a b c d", "a b c d"), []);
        assert_eq!(shown("a b c d", "a B c d"), [(1..2, 1..2)]);
        assert_eq!(shown("a b c d", "a b x y c d"), [(2..2, 2..4)]);
        assert_eq!(shown("a b c d", "b c"), [(0..1, 0..0), (3..4, 2..2)]);
        assert_eq!(shown("a b c d e", "A b c D e"), [(0..1, 0..1), (3..4, 3..4)]);
        assert_eq!(shown("", "a b"), [(0..0, 0..2)]);
    }

    #[test]
    fn what_is_there_once_outweighs_what_is_there_often() {
        // A function that is put before another one does not begin in the middle of it.
        assert_eq!(shown("f { x }", "g { y } f { x }"), [(0..0, 0..4)]);
        // Of two blocks that change places, one has moved.
        assert_eq!(shown("1 2 3 4 5 6 7", "1 5 6 2 3 4 7"), [(1..1, 1..3), (4..6, 6..6)]);
    }

    proptest! {
        #[test]
        fn changes_lead_from_old_to_new(
            old in prop::collection::vec("[abcdef]", 0..30),
            new in prop::collection::vec("[abcdefg]", 0..30),
        ) {
            let (mut made, mut row): (Vec<&String>, _) = (Vec::new(), 0);
            let mut last_end = None;
            for change in changes(&old, &new) {
                prop_assert!(last_end.is_none_or(|end| change.old.start > end), "changes touch");
                made.extend(&old[row..change.old.start]);
                prop_assert_eq!(made.len(), change.new.start);
                made.extend(&new[change.new]);
                row = change.old.end;
                last_end = Some(row);
            }
            made.extend(&old[row..]);
            prop_assert_eq!(made, new.iter().collect::<Vec<_>>());
        }
    }
}
