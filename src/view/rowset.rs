//! A set of rows, a bit each.

use std::ops::Range;

/// Rows of an entry.
#[derive(Debug, Clone, Default)]
pub(super) struct RowSet {
    words: Vec<u64>,
}

const BITS: u32 = u64::BITS;

impl RowSet {
    pub(super) fn contains(&self, row: u32) -> bool {
        self.words.get((row / BITS) as usize).is_some_and(|word| word & (1 << (row % BITS)) != 0)
    }

    pub(super) fn insert(&mut self, row: u32) {
        let word = (row / BITS) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (row % BITS);
    }

    /// Takes out all rows from `row` on; returns the row after the last one that was in there, if any was.
    pub(super) fn split_off(&mut self, row: u32) -> Option<u32> {
        let at = (row / BITS) as usize;
        let last = (at..self.words.len()).rev().find_map(|word| {
            let bits = self.words[word] & if word == at { !0 << (row % BITS) } else { !0 };
            (bits != 0).then(|| u32::try_from(word).unwrap_or(u32::MAX) * BITS + BITS - bits.leading_zeros())
        });
        self.words.truncate(at + 1);
        if let Some(word) = self.words.get_mut(at) {
            *word &= !(!0 << (row % BITS));
        }
        last
    }

    /// The first run of rows of `range` that are not in the set.
    pub(super) fn first_gap(&self, range: Range<u32>) -> Option<Range<u32>> {
        let first = range.clone().find(|&row| !self.contains(row))?;
        let end = (first..range.end).find(|&row| self.contains(row)).unwrap_or(range.end);
        Some(first..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set(steps in proptest::collection::vec((any::<bool>(), 0u32..300), 0..60), from in 0u32..300) {
            let mut set = RowSet::default();
            let mut plain = BTreeSet::new();
            for (insert, row) in steps {
                if insert {
                    set.insert(row);
                    plain.insert(row);
                } else {
                    let off = plain.split_off(&row);
                    prop_assert_eq!(set.split_off(row), off.last().map(|last| last + 1));
                }
            }
            prop_assert!((0..400).all(|row| set.contains(row) == plain.contains(&row)));
            let gap = set.first_gap(from..310).map(|gap| (gap.start, gap.end));
            let first = (from..310).find(|row| !plain.contains(row));
            let end = first.and_then(|first| (first..310).find(|row| plain.contains(row))).unwrap_or(310);
            prop_assert_eq!(gap, first.map(|first| (first, end)));
        }
    }
}
