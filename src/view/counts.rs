//! Sums over a growing list of counts, each in logarithmic time (a Fenwick tree).

/// How many rows each entry has in the buffer.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    /// `tree[i]` is the sum of the `lowbit(i + 1)` counts that end at `i`.
    tree: Vec<usize>,
}

const fn lowbit(n: usize) -> usize {
    n & n.wrapping_neg()
}

impl Counts {
    /// Adds an entry without rows at the end.
    pub(super) fn push_zero(&mut self) {
        let n = self.tree.len() + 1;
        let sum = self.before(n - 1) - self.before(n - lowbit(n));
        self.tree.push(sum);
    }

    /// The sum of the first `n` counts.
    pub(super) fn before(&self, mut n: usize) -> usize {
        let mut sum = 0;
        while n > 0 {
            sum += self.tree[n - 1];
            n -= lowbit(n);
        }
        sum
    }

    /// The sum of all counts.
    pub(super) fn total(&self) -> usize {
        self.before(self.tree.len())
    }

    /// The entry in whose count the `n`th (0-based) falls, and how many of the entry's come before it; none if the sum of
    /// all counts is not that large.
    pub(super) fn find(&self, n: usize) -> Option<(usize, usize)> {
        let (mut index, mut left) = (0, n);
        let mut step = self.tree.len().checked_ilog2().map_or(0, |bits| 1 << bits);
        while step > 0 {
            if let Some(&sum) = self.tree.get(index + step - 1)
                && sum <= left
            {
                index += step;
                left -= sum;
            }
            step /= 2;
        }
        (index < self.tree.len()).then_some((index, left))
    }

    /// Changes the count of entry `index` by `more - less`.
    pub(super) fn change(&mut self, index: usize, more: usize, less: usize) {
        let mut n = index + 1;
        while n <= self.tree.len() {
            self.tree[n - 1] = self.tree[n - 1] + more - less;
            n += lowbit(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sums_are_those_of_a_plain_list(steps in proptest::collection::vec((0usize..40, 0usize..9), 0..80)) {
            let mut counts = Counts::default();
            let mut plain: Vec<usize> = Vec::new();
            for (at, value) in steps {
                if at >= plain.len() {
                    counts.push_zero();
                    plain.push(0);
                } else {
                    counts.change(at, value, plain[at]);
                    plain[at] = value;
                }
                for n in 0..=plain.len() {
                    prop_assert_eq!(counts.before(n), plain[..n].iter().sum::<usize>());
                }
                prop_assert_eq!(counts.total(), plain.iter().sum::<usize>());
                let places = plain.iter().enumerate().flat_map(|(at, &count)| (0..count).map(move |left| (at, left)));
                for (n, place) in places.enumerate() {
                    prop_assert_eq!(counts.find(n), Some(place));
                }
                prop_assert_eq!(counts.find(counts.total()), None);
            }
        }
    }
}
