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
            }
        }
    }
}
