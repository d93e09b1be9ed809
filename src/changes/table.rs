//! The hunks of one file, and what edits and verdicts make of them.

use std::ops::Range;

use super::{Author, between, changes};

/// A place where the agent changed the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Unique in its table.
    pub id: u64,
    /// The first row of its lines; of a deletion the row before which the deleted lines were.
    pub first: usize,
    /// Whose each of its lines is. Empty for a deletion.
    pub authors: Vec<Author>,
    /// The lines that the agent replaced or deleted. Empty for an insertion.
    pub old: Vec<String>,
}

/// Lines that take the place of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// The rows that are replaced.
    pub rows: Range<usize>,
    /// What is there then.
    pub lines: Vec<String>,
}

/// All pending hunks of one file, in the order of their rows. They never overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    hunks: Vec<Hunk>,
}

impl Hunk {
    /// The row after its last one.
    pub fn end(&self) -> usize {
        self.first + self.authors.len()
    }

    /// Whether the user typed into it.
    pub fn is_mixed(&self) -> bool {
        self.authors.contains(&Author::User)
    }

    /// Whether there is nothing of the agent's in it.
    fn is_void(&self) -> bool {
        self.old.is_empty() && !self.authors.contains(&Author::Agent)
    }

    /// What is in its place without the agent: the user's lines above the agent's first one, the old lines, and the
    /// user's other lines. `lines` are its own, as they are now.
    fn rejected<S: AsRef<str>>(&self, lines: &[S]) -> Vec<String> {
        let above = self.authors.iter().position(|author| *author == Author::Agent).unwrap_or_default();
        let users = |rows: Range<usize>| {
            let authors = &self.authors[rows.clone()];
            let of_user = lines[rows].iter().zip(authors).filter(|(_, author)| **author == Author::User);
            of_user.map(|(line, _)| line.as_ref().to_owned())
        };
        users(0..above).chain(self.old.iter().cloned()).chain(users(above..self.authors.len())).collect()
    }
}

impl Table {
    /// A table of these hunks, or `None` if they are not in order, overlap, or do not fit a text of `rows` rows.
    pub fn new(hunks: Vec<Hunk>, rows: usize) -> Option<Self> {
        let in_order = hunks.windows(2).all(|pair| pair[0].end() <= pair[1].first);
        let fits = hunks.last().is_none_or(|last| last.end() <= rows);
        (in_order && fits).then_some(Self { hunks })
    }

    /// The hunks, in order.
    pub fn hunks(&self) -> &[Hunk] {
        &self.hunks
    }

    /// The text without the agent's pending changes.
    pub fn base<S: AsRef<str>>(&self, now: &[S]) -> Vec<String> {
        let mut base = Vec::with_capacity(now.len());
        let mut row = 0;
        for hunk in &self.hunks {
            base.extend(now[row..hunk.first].iter().map(|line| line.as_ref().to_owned()));
            base.extend(hunk.rejected(&now[hunk.first..hunk.end()]));
            row = hunk.end();
        }
        base.extend(now[row..].iter().map(|line| line.as_ref().to_owned()));
        base
    }

    /// The agent made `new` of `now`.
    #[must_use]
    pub fn written<S: AsRef<str>, T: AsRef<str>>(&self, now: &[S], new: &[T]) -> Self {
        let first_id = self.hunks.iter().map(|hunk| hunk.id).max().unwrap_or_default() + 1;
        Self { hunks: between(&self.base(now), new, first_id) }
    }

    /// Somebody else than the agent made `new` of `now`.
    pub fn follow<S: AsRef<str>, T: AsRef<str>>(&mut self, now: &[S], new: &[T]) {
        for change in changes(now, new).into_iter().rev() {
            self.edited(change.old.start, change.old.end, change.old.start + change.new.len());
        }
        self.drop_restored(new);
    }

    /// Forgets the hunks in which nothing is the agent's any more, and the old lines are there again: rejecting them would
    /// bring those a second time. To be called after [`Self::edited`] with the text that is there then.
    pub fn drop_restored<S: AsRef<str>>(&mut self, now: &[S]) {
        self.hunks.retain(|hunk| {
            let is_restored = || now[hunk.first..hunk.end()].iter().map(AsRef::as_ref).eq(hunk.old.iter());
            hunk.authors.contains(&Author::Agent) || hunk.authors.len() != hunk.old.len() || !is_restored()
        });
    }

    /// The user replaced the rows from `first` to `last` by those from `first` to `new_last`. Whoever has the text calls
    /// [`Self::drop_restored`] as well.
    pub fn edited(&mut self, first: usize, last: usize, new_last: usize) {
        let shifted = |row: usize| row - last + new_last;
        // An edit right above or below a hunk is outside of it; one at the row of a deletion comes after what was deleted.
        let overlaps = |hunk: &Hunk| hunk.end() > first && hunk.first < last;
        let from = self.hunks.iter().position(|hunk| hunk.end() > first).unwrap_or(self.hunks.len());
        let mut to = from;
        while self.hunks.get(to).is_some_and(overlaps) {
            to += 1;
        }
        for hunk in &mut self.hunks[to..] {
            hunk.first = shifted(hunk.first);
        }
        if from == to {
            return;
        }
        let touched = &self.hunks[from..to];
        let (top, bottom) = (&touched[0], &touched[touched.len() - 1]);
        let above = first.saturating_sub(top.first).min(top.authors.len());
        let below = bottom.end().saturating_sub(last).min(bottom.authors.len());
        let mut authors = top.authors[..above].to_vec();
        authors.resize(above + new_last - first, Author::User);
        authors.extend_from_slice(&bottom.authors[bottom.authors.len() - below..]);
        let old = touched.iter().flat_map(|hunk| hunk.old.iter().cloned()).collect();
        let hunk = Hunk { id: top.id, first: top.first.min(first), authors, old };
        let kept = (!hunk.is_void()).then_some(hunk);
        self.hunks.splice(from..to, kept);
    }

    /// Takes a hunk as it is: its lines are part of the base from now on. `None` if there is no such hunk.
    pub fn accept(&mut self, index: usize) -> Option<Hunk> {
        (index < self.hunks.len()).then(|| self.hunks.remove(index))
    }

    /// Takes the agent's part of a hunk back; what has to be done to the text, which is `now`. `None` if there is no such
    /// hunk.
    pub fn reject<S: AsRef<str>>(&mut self, index: usize, now: &[S]) -> Option<Replacement> {
        let hunk = self.accept(index)?;
        let rows = hunk.first..hunk.end();
        let lines = hunk.rejected(&now[rows.clone()]);
        for below in &mut self.hunks[index..] {
            below.first = below.first - rows.len() + lines.len();
        }
        Some(Replacement { rows, lines })
    }
}
