//! Keeps what is said: notes what changed in the transcripts, and hands it to the store a batch at a time.
//!
//! Nothing here waits, and a flood costs a copy of its text: making JSON of it, taking secrets out and writing is the
//! work of the store's thread.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

use crate::core::effect::Keep;
use crate::core::ids::{ChatId, Millis, SessionKey};
use crate::core::transcript::{Change, Entry, EntryIndex, Speaker, Transcript};
use crate::store::{About, Batch, Piece, SessionEvent};

/// How long something that was said may be lost by a crash, in milliseconds.
const INTERVAL: u64 = 1_000;
/// A line that is not complete is kept with the next batch, unless it has grown to so many bytes: half of a secret would
/// not be known for one.
const LONG_LINE: usize = 64 * 1024;
/// From this length on, in bytes, a part is complete. Memory for pieces of this size is used again and again; for each larger
/// one, the system would have to give fresh pages.
const PART: usize = 48 * 1024;

/// What is being kept.
#[derive(Debug, Default)]
pub(super) struct Records {
    chats: BTreeMap<ChatId, Record>,
    due: Option<Millis>,
}

/// A session that is being kept.
#[derive(Debug)]
struct Record {
    key: SessionKey,
    about: About,
    replaces: Option<SessionKey>,
    /// Where the session begins in the chat's transcript.
    from: EntryIndex,
    /// Entries in which something is not kept yet.
    dirty: BTreeSet<EntryIndex>,
    /// Of each message: how much of it is kept, in bytes, and in how many parts.
    kept: BTreeMap<EntryIndex, (usize, usize)>,
    /// How long the last message was when it was looked at last.
    seen: Option<(EntryIndex, usize)>,
    /// Whether there is anything but notices: only then it is worth being kept.
    is_worth_it: bool,
}

impl Records {
    /// A session begins, or a kept one goes on: all of the transcript from there on is kept.
    pub(super) fn begin(&mut self, chat: ChatId, keep: Keep, cwd: PathBuf, transcript: &Transcript, now: Millis) {
        let Keep { agent, session, title, from, replaces } = keep;
        let record = Record {
            key: SessionKey(RandomState::new().hash_one(chat) >> 11),
            about: About { agent, id: session.to_string(), cwd, title },
            replaces,
            from,
            dirty: (from..transcript.entries().len()).collect(),
            kept: BTreeMap::new(),
            seen: None,
            is_worth_it: false,
        };
        if !record.dirty.is_empty() {
            self.due.get_or_insert(now.plus(INTERVAL));
        }
        self.chats.insert(chat, record);
    }

    /// The session of that chat is over.
    pub(super) fn end(&mut self, chat: ChatId) {
        self.chats.remove(&chat);
    }

    /// The agent gave the session a title.
    pub(super) fn rename(&mut self, chat: ChatId, title: Option<&str>, now: Millis) {
        if let Some(record) = self.chats.get_mut(&chat)
            && title.is_some()
            && record.about.title.as_deref() != title
        {
            record.about.title = title.map(str::to_owned);
            self.due.get_or_insert(now.plus(INTERVAL));
        }
    }

    /// The kept session of a chat.
    pub(super) fn key(&self, chat: ChatId) -> Option<SessionKey> {
        self.chats.get(&chat).map(|record| record.key)
    }

    /// Something changed in a transcript.
    pub(super) fn note(&mut self, chat: ChatId, change: Change, now: Millis) {
        let (Change::Added(entry) | Change::Grew(entry) | Change::Replaced(entry)) = change;
        let Some(record) = self.chats.get_mut(&chat) else { return };
        if entry >= record.from && record.dirty.insert(entry) {
            self.due.get_or_insert(now.plus(INTERVAL));
        }
    }

    /// When the next batch is due.
    pub(super) const fn due(&self) -> Option<Millis> {
        self.due
    }

    /// All that is to be kept now; `is_last` if nothing more is expected for a while.
    pub(super) fn take<'a>(
        &mut self,
        transcript: impl Fn(ChatId) -> Option<&'a Transcript>,
        is_last: bool,
        now: Millis,
    ) -> Vec<Batch> {
        let mut batches = Vec::new();
        let mut is_left = false;
        for (&chat, record) in &mut self.chats {
            if let Some(transcript) = transcript(chat) {
                batches.extend(record.batch(transcript, is_last));
            }
            is_left |= record.is_worth_it && !record.dirty.is_empty();
        }
        self.due = is_left.then(|| now.plus(INTERVAL));
        batches
    }
}

impl Record {
    fn batch(&mut self, transcript: &Transcript, is_last: bool) -> Option<Batch> {
        let entries = transcript.entries();
        let is_talk = |entry: &EntryIndex| !matches!(entries.get(*entry), None | Some(Entry::Notice(..)));
        self.is_worth_it = self.is_worth_it || self.dirty.iter().any(is_talk);
        if !self.is_worth_it {
            return None;
        }
        let mut events = Vec::new();
        for index in std::mem::take(&mut self.dirty) {
            let Some(entry) = entries.get(index) else { continue };
            let may_grow = index + 1 == entries.len() && !is_last;
            let (speaker, text) = match entry {
                Entry::User(text) => (Speaker::User, text),
                Entry::Agent(text) => (Speaker::Agent, text),
                Entry::Thought(text) => (Speaker::Thought, text),
                Entry::Tool(_) | Entry::Plan(_) | Entry::Notice(..) => {
                    events.push(self.event(index, 0, Piece::Whole(entry.clone())));
                    continue;
                }
            };
            let (mut kept, mut parts) = self.kept.get(&index).copied().unwrap_or_default();
            // One that has not grown since is not waited for any longer.
            let is_open = may_grow && self.seen.replace((index, text.len())) != Some((index, text.len()));
            for part in in_parts(text.slices(kept, usize::MAX), is_open) {
                kept += part.len();
                events.push(self.event(index, parts, Piece::Text(speaker, part)));
                parts += 1;
            }
            if kept < text.len() {
                self.dirty.insert(index);
            }
            self.kept.insert(index, (kept, parts));
        }
        Some(Batch { key: self.key, about: self.about.clone(), replaces: self.replaces.take(), events })
    }

    const fn event(&self, index: EntryIndex, part: usize, piece: Piece) -> SessionEvent {
        SessionEvent { entry: index - self.from, part, piece }
    }
}

/// A text in parts of whole lines, each of about [`PART`] or of a single line that is longer. If the text `is_open`, its last
/// line is left out, unless it is a [`LONG_LINE`].
fn in_parts<'a>(slices: impl Iterator<Item = &'a str>, is_open: bool) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    for slice in slices.flat_map(pieces) {
        part.push_str(slice);
        if part.len() >= PART
            && let Some(end) = memchr::memrchr(b'\n', part.as_bytes())
        {
            let rest = part.split_off(end + 1);
            parts.push(std::mem::replace(&mut part, rest));
        }
    }
    if is_open && part.len() < LONG_LINE {
        part.truncate(memchr::memrchr(b'\n', part.as_bytes()).map_or(0, |line_break| line_break + 1));
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// A text in pieces of at most [`PART`].
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (piece, left) = rest.split_at(rest.floor_char_boundary(PART));
        rest = left;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::transcript::Severity;

    fn begun(transcript: &Transcript) -> Records {
        let mut records = Records::default();
        let keep = Keep { agent: "a".into(), session: "s".into(), title: None, from: 0, replaces: None };
        records.begin(ChatId(1), keep, "/p".into(), transcript, Millis(0));
        records
    }

    fn texts(batches: &[Batch]) -> Vec<(usize, usize, String)> {
        let events = batches.iter().flat_map(|batch| &batch.events);
        events
            .map(|event| match &event.piece {
                Piece::Text(_, text) => (event.entry, event.part, text.clone()),
                Piece::Whole(entry) => (event.entry, event.part, format!("{entry:?}")),
            })
            .collect()
    }

    #[test]
    fn a_message_is_kept_in_parts_of_whole_lines_and_the_rest_at_the_end() {
        let mut transcript = Transcript::default();
        let mut records = begun(&transcript);
        let mut say = |records: &mut Records, text: &str, is_last| {
            let change = transcript.chunk(Speaker::Agent, None, text).expect("a change");
            records.note(ChatId(1), change, Millis(5));
            texts(&records.take(|_| Some(&transcript), is_last, Millis(9)))
        };
        assert_eq!(say(&mut records, "one\ntw", false), [(0, 0, "one\n".to_owned())]);
        assert!(records.due().is_some(), "half a line is left");
        assert_eq!(say(&mut records, "o", false), []);
        assert_eq!(say(&mut records, "é\nthree", true), [(0, 1, "twoé\nthree".to_owned())]);
        assert_eq!(records.due(), None);
        assert_eq!(say(&mut records, "!", true), [(0, 2, "!".to_owned())]);
    }

    #[test]
    fn a_long_message_is_kept_in_parts_that_are_its_text_together() {
        let line = format!("{}\n", "é".repeat(500));
        let mut transcript = Transcript::default();
        let mut records = begun(&transcript);
        let text = line.repeat(300) + &"x".repeat(3 * LONG_LINE) + "\n" + &line + "the end";
        let change = transcript.chunk(Speaker::Agent, None, &text).expect("a change");
        records.note(ChatId(1), change, Millis(5));
        let mut parts = texts(&records.take(|_| Some(&transcript), false, Millis(9)));
        assert!(parts.iter().all(|(_, _, part)| part.ends_with('\n')), "the last line may grow");
        parts.extend(texts(&records.take(|_| Some(&transcript), true, Millis(10))));
        assert!(parts.len() > 4, "{}", parts.len());
        assert!(parts.iter().enumerate().all(|(number, (entry, part, _))| (*entry, *part) == (0, number)));
        assert_eq!(parts.into_iter().map(|(_, _, part)| part).collect::<String>(), text);
    }

    #[test]
    fn a_session_in_which_nothing_was_said_is_not_kept_and_its_notices_are_once_something_is() {
        let mut transcript = Transcript::default();
        let mut records = begun(&transcript);
        let change = transcript.add(Entry::Notice(Severity::Info, "hello".into()));
        records.note(ChatId(1), change, Millis(0));
        assert!(records.take(|_| Some(&transcript), true, Millis(1)).is_empty());
        let change = transcript.add_prompt("do it");
        records.note(ChatId(1), change, Millis(2));
        let kept = texts(&records.take(|_| Some(&transcript), true, Millis(3)));
        assert_eq!(kept.iter().map(|(entry, ..)| *entry).collect::<Vec<_>>(), [0, 1]);
    }
}
