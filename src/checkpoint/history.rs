//! What became of one file in the turns that are to be undone, and what it should hold then. Pure.

use std::sync::Arc;

/// What a file was at some moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Was {
    /// It was not there.
    Missing,
    /// It held these bytes.
    Bytes {
        /// Byte for byte.
        bytes: Arc<[u8]>,
        /// Its mode; 0 where that is not known.
        mode: u32,
    },
    /// Nobody knows, and why.
    Unknown(String),
}

impl Was {
    /// Whether both hold the same; their modes do not count.
    pub fn holds_what(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Missing, Self::Missing) => true,
            (Self::Bytes { bytes, .. }, Self::Bytes { bytes: others, .. }) => bytes == others,
            _ => false,
        }
    }
}

/// What an agent did to a file in one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chapter {
    /// Before its first change.
    pub before: Was,
    /// After its last one.
    pub left: Was,
}

/// What undoing comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// The file should be this.
    To(Was),
    /// The user changed what the agent had changed, and has to decide; without their changes it would be this.
    Conflict(Was),
    /// It cannot be restored, and why.
    Impossible(String),
}

/// Merges three texts: the base, and two that were made from it. `None` where both changed the same.
pub type Merge<'a> = &'a dyn Fn(&str, &str, &str) -> Option<String>;

/// What the file should hold without what the agent did in `chapters`, newest first, but with everything that the user did
/// meanwhile. `now` is what it holds.
pub fn undo(now: &Was, chapters: &[Chapter], merge: Merge) -> Restored {
    let mut current = now.clone();
    let mut is_conflict = false;
    for chapter in chapters {
        if let Was::Unknown(why) = &chapter.before {
            return Restored::Impossible(why.clone());
        }
        current = without(&current, chapter, merge).unwrap_or_else(|| {
            is_conflict = true;
            chapter.before.clone()
        });
    }
    if is_conflict { Restored::Conflict(current) } else { Restored::To(current) }
}

/// One chapter taken back; `None` if that would cost something of the user's.
fn without(now: &Was, Chapter { before, left }: &Chapter, merge: Merge) -> Option<Was> {
    if now.holds_what(left) {
        return Some(before.clone());
    }
    // Whoever did that: nothing of the agent's is left.
    if now.holds_what(before) {
        return Some(now.clone());
    }
    let (Was::Bytes { bytes: base, .. }, Was::Bytes { bytes: ours, .. }, Was::Bytes { bytes: theirs, mode }) =
        (left, now, before)
    else {
        return None;
    };
    let text = |bytes: &Arc<[u8]>| std::str::from_utf8(bytes).ok().map(str::to_owned);
    let merged = merge(&text(base)?, &text(ours)?, &text(theirs)?)?;
    Some(Was::Bytes { bytes: merged.into_bytes().into(), mode: *mode })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Was {
        Was::Bytes { bytes: text.as_bytes().into(), mode: 0o644 }
    }

    fn chapter(before: Was, left: Was) -> Chapter {
        Chapter { before, left }
    }

    /// Merges by whole words, each of which may be changed by one side.
    fn by_words(base: &str, ours: &str, theirs: &str) -> Option<String> {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let (base, ours, theirs) = (words(base), words(ours), words(theirs));
        let merged: Option<Vec<String>> = (0..base.len())
            .map(|at| match (ours[at] == base[at], theirs[at] == base[at]) {
                (true, _) => Some(theirs[at].clone()),
                (false, true) => Some(ours[at].clone()),
                (false, false) => None,
            })
            .collect();
        merged.map(|words| words.join(" "))
    }

    #[test]
    fn what_nobody_touched_since_is_as_it_was() {
        let done = [chapter(text("b"), text("c")), chapter(text("a"), text("b"))];
        assert_eq!(undo(&text("c"), &done, &by_words), Restored::To(text("a")));
        assert_eq!(undo(&text("c"), &done[..1], &by_words), Restored::To(text("b")));
        let created = [chapter(Was::Missing, text("new"))];
        assert_eq!(undo(&text("new"), &created, &by_words), Restored::To(Was::Missing));
        let deleted = [chapter(text("old"), Was::Missing)];
        assert_eq!(undo(&Was::Missing, &deleted, &by_words), Restored::To(text("old")));
        let both = [chapter(text("b"), Was::Missing), chapter(Was::Missing, text("b"))];
        assert_eq!(undo(&Was::Missing, &both, &by_words), Restored::To(Was::Missing));
    }

    #[test]
    fn what_the_user_did_meanwhile_stays() {
        let done = [
            chapter(text("one TWO three"), text("one TWO THREE")),
            chapter(text("one two three"), text("one TWO three")),
        ];
        assert_eq!(undo(&text("user TWO THREE"), &done, &by_words), Restored::To(text("user two three")));
        // Between the turns.
        let done = [chapter(text("user TWO"), text("user TWICE")), chapter(text("one two"), text("one TWO"))];
        assert_eq!(undo(&text("user TWICE"), &done, &by_words), Restored::To(text("user two")));
        // The user took it back by hand.
        assert_eq!(undo(&text("a"), &[chapter(text("a"), text("b"))], &by_words), Restored::To(text("a")));
    }

    #[test]
    fn what_both_changed_is_for_the_user_to_decide() {
        let done = [chapter(text("one"), text("ONE"))];
        assert_eq!(undo(&text("user"), &done, &by_words), Restored::Conflict(text("one")));
        // A new file that the user wrote into, and a file that they deleted.
        assert_eq!(
            undo(&text("user"), &[chapter(Was::Missing, text("new"))], &by_words),
            Restored::Conflict(Was::Missing)
        );
        assert_eq!(undo(&Was::Missing, &done, &by_words), Restored::Conflict(text("one")));
        let binary = Was::Bytes { bytes: [0xff, 1].as_slice().into(), mode: 0 };
        assert_eq!(undo(&binary, &done, &by_words), Restored::Conflict(text("one")));
    }

    #[test]
    fn what_is_not_known_is_not_invented() {
        let done = [chapter(Was::Unknown("too large".into()), text("b"))];
        assert_eq!(undo(&text("b"), &done, &by_words), Restored::Impossible("too large".into()));
    }
}
