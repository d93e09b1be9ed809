//! From one text to another: which lines changed.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::{Author, Hunk};

/// A diff that takes longer is cut coarser. Nobody waits for it but the agent.
const DEADLINE: Duration = Duration::from_millis(200);
/// Lines of both texts up to which a diff takes as long as it takes.
const ALWAYS_EXACT: usize = 2_000;

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
    // A short one is always the same, also where the machine is busy with something else: both sides of a merge rely on it.
    let deadline = (old.len() + new.len() > ALWAYS_EXACT).then(|| Instant::now() + DEADLINE);
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
