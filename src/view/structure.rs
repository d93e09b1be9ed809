//! What lies where in the transcript buffer: where each entry begins, and what is folded.
//!
//! Lua keeps both as extmarks, which move with the text. So an entry is told again only when its own rows changed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::cards::CardFold;
use crate::core::transcript::{Entry, EntryIndex};

/// Folds that one entry may have; an entry's folds are numbered below the next entry's.
const FOLDS: usize = 1_000;

/// One thing to know about the rows of the buffer. Rows are 0-based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// An entry begins.
    Entry {
        /// Which one.
        entry: EntryIndex,
        /// Its first row that is not blank.
        row: usize,
        /// `user`, `agent`, `thought`, `tool`, `plan` or `notice`.
        kind: &'static str,
    },
    /// Rows are to be folded, closed unless the user opened that fold.
    Fold {
        /// The same for the same fold, however it moves.
        id: usize,
        /// First row.
        first: usize,
        /// Last row.
        last: usize,
        /// What is shown in their place.
        label: String,
    },
    /// A fold is no more.
    Unfold {
        /// Which one.
        id: usize,
    },
}

/// What Lua was told.
#[derive(Debug, Default)]
pub(super) struct Structure {
    told: BTreeMap<EntryIndex, Told>,
    /// The folds of the cards in the buffer, by entry; rows count from the entry's first.
    cards: BTreeMap<EntryIndex, Vec<CardFold>>,
    touched: BTreeSet<EntryIndex>,
}

/// Rows count from the entry's first one.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    row: usize,
    folds: Vec<CardFold>,
}

/// Where an entry is in the buffer.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// All its rows.
    pub(super) rows: Range<usize>,
    /// How many of them are blank, at its beginning.
    pub(super) blank: usize,
    /// Whether its text is there as far as it goes, and no more is expected.
    pub(super) is_settled: bool,
}

impl Structure {
    /// The rows of an entry have changed, or it may be settled now.
    pub(super) fn touch(&mut self, entry: EntryIndex) {
        self.touched.insert(entry);
    }

    /// The rows of a card were replaced: what was marked in them may be elsewhere.
    pub(super) fn replaced(&mut self, entry: EntryIndex, folds: Vec<CardFold>) {
        if let Some(told) = self.told.get_mut(&entry) {
            told.row = usize::MAX;
        }
        if folds.is_empty() {
            self.cards.remove(&entry);
        } else {
            self.cards.insert(entry, folds);
        }
        self.touch(entry);
    }

    /// The buffer is empty again.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// What is new about the entries that were touched. `place` tells where one is; `None` if it has no rows yet.
    pub(super) fn take<'a>(&mut self, place: impl Fn(EntryIndex) -> Option<(&'a Entry, Place)>) -> Vec<Mark> {
        let mut marks = Vec::new();
        for index in std::mem::take(&mut self.touched) {
            let Some((entry, place)) = place(index) else { continue };
            let now = Told { row: place.blank, folds: self.folds(index, entry, &place) };
            let before = self.told.get(&index);
            if before == Some(&now) {
                continue;
            }
            let start = place.rows.start;
            if before.is_none_or(|before| before.row != now.row) {
                marks.push(Mark::Entry { entry: index, row: start + now.row, kind: kind(entry) });
            }
            for (nth, fold) in now.folds.iter().take(FOLDS).enumerate() {
                let (first, last) = (start + fold.first, start + fold.end - 1);
                marks.push(Mark::Fold { id: id(index, nth), first, last, label: fold.label.clone() });
            }
            let gone = now.folds.len()..before.map_or(0, |before| before.folds.len());
            marks.extend(gone.map(|nth| Mark::Unfold { id: id(index, nth) }));
            self.told.insert(index, now);
        }
        marks
    }

    fn folds(&self, index: EntryIndex, entry: &Entry, place: &Place) -> Vec<CardFold> {
        match entry {
            Entry::Thought(text) if place.is_settled && place.rows.len() > place.blank => {
                let lines = place.rows.len() - place.blank - 1;
                let plural = if lines == 1 { "" } else { "s" };
                let label = format!("… thought · {lines} line{plural}, {}", size_text(text.len()));
                vec![CardFold { first: place.blank, end: place.rows.len(), label }]
            }
            _ => self.cards.get(&index).cloned().unwrap_or_default(),
        }
    }
}

const fn id(entry: EntryIndex, nth: usize) -> usize {
    entry * FOLDS + nth + 1
}

const fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::User(_) => "user",
        Entry::Agent(_) => "agent",
        Entry::Thought(_) => "thought",
        Entry::Tool(_) => "tool",
        Entry::Plan(_) => "plan",
        Entry::Notice(..) => "notice",
    }
}

/// A number of bytes as people read it.
fn size_text(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{}.{} kB", bytes / 1_000, bytes % 1_000 / 100),
        _ => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::text::GrowingText;

    fn thought(text: &str) -> Entry {
        let mut grown = GrowingText::default();
        grown.push_str(text);
        Entry::Thought(grown)
    }

    #[test]
    fn a_thought_is_folded_once_it_is_settled_and_told_again_only_when_it_changed() {
        let mut structure = Structure::default();
        let entry = thought("one\ntwo");
        let place = |is_settled, rows| Some((&entry, Place { rows, blank: 1, is_settled }));
        structure.touch(3);
        assert_eq!(structure.take(|_| place(false, 10..14)), [Mark::Entry { entry: 3, row: 11, kind: "thought" }]);
        structure.touch(3);
        let label = "… thought · 2 lines, 7 bytes".to_owned();
        let fold = Mark::Fold { id: 3_001, first: 11, last: 13, label };
        assert_eq!(structure.take(|_| place(true, 10..14)), [fold.clone()]);
        structure.touch(3);
        assert_eq!(structure.take(|_| place(true, 20..24)), [], "extmarks move by themselves");
        structure.reset();
        structure.touch(3);
        assert_eq!(structure.take(|_| place(true, 10..14))[1], fold);
    }

    #[test]
    fn a_card_that_was_replaced_is_told_again_and_its_lost_folds_go() {
        let mut structure = Structure::default();
        let entry =
            Entry::Tool(Box::new(crate::core::tool_call::ToolCall::new("t".into(), crate::core::ids::Millis(0))));
        let place = |_| Some((&entry, Place { rows: 5..40, blank: 0, is_settled: true }));
        let fold = |first| CardFold { first, end: first + 4, label: "more".into() };
        structure.replaced(0, vec![fold(13), fold(20)]);
        let marks = structure.take(place);
        assert_eq!(marks[2], Mark::Fold { id: 2, first: 25, last: 28, label: "more".into() });
        structure.replaced(0, vec![fold(14)]);
        assert_eq!(
            structure.take(place),
            [
                Mark::Entry { entry: 0, row: 5, kind: "tool" },
                Mark::Fold { id: 1, first: 19, last: 22, label: "more".into() },
                Mark::Unfold { id: 2 },
            ]
        );
    }
}
