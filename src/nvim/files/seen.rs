//! What each session has seen of each file: the text that its next write is based on.
//!
//! Texts are kept up to a bound, the newest ones; of the others only a fingerprint is known, which tells whether a text is
//! the same, but is no base for a merge.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::core::ids::{ConnId, SessionId};
use crate::files::edits::BYTE_ORDER_MARK;

/// One session of one run of an agent.
pub(super) type Session = (ConnId, SessionId);

/// As much text as is kept of all files for all sessions, in bytes.
const MOST: usize = 64 * 1024 * 1024;

/// Stands for a text; one without a byte order mark for the same with one, which buffers keep out of their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

/// What a session knows of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    pub(super) fingerprint: Fingerprint,
    /// The text itself, if it is still kept.
    pub(super) text: Option<Arc<str>>,
    /// Whether the disk had this text, not a buffer with unsaved changes alone.
    pub(super) is_of_disk: bool,
    /// The turn of the chat in which it read or wrote it.
    pub(super) turn: u64,
}

/// The texts that the next write of each session is based on.
#[derive(Debug)]
pub(super) struct Seen {
    /// Seeded anew in every process: nobody can make two texts that look the same.
    hasher: RandomState,
    most: usize,
    views: Mutex<Views>,
}

#[derive(Debug, Default)]
struct Views {
    /// Sessions that have read a file through Neovim.
    readers: HashSet<Session>,
    of: HashMap<Session, HashMap<PathBuf, (u64, View)>>,
    bytes: usize,
    /// Counts what is remembered, so that the oldest is known.
    count: u64,
}

impl Default for Seen {
    fn default() -> Self {
        Self { hasher: RandomState::new(), most: MOST, views: Mutex::default() }
    }
}

impl Views {
    fn weight(view: &View) -> usize {
        view.text.as_ref().map_or(0, |text| text.len())
    }

    fn all(&mut self) -> impl Iterator<Item = &mut (u64, View)> {
        self.of.values_mut().flat_map(HashMap::values_mut)
    }

    fn count_bytes(&mut self) {
        self.bytes = self.all().map(|(_, view)| Self::weight(view)).sum();
    }

    /// Forgets the oldest texts until no more than `most` bytes are left.
    fn shrink(&mut self, most: usize) {
        while self.bytes > most {
            let with_text = self.all().filter(|(_, view)| view.text.is_some());
            let Some((_, oldest)) = with_text.min_by_key(|(age, _)| *age) else { return };
            let freed = oldest.text.take().map_or(0, |text| text.len());
            self.bytes -= freed;
        }
    }
}

impl Seen {
    /// What stands for this text.
    pub(super) fn fingerprint(&self, text: &str) -> Fingerprint {
        Fingerprint(self.hasher.hash_one(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)))
    }

    /// What the session read or wrote last.
    pub(super) fn get(&self, session: &Session, path: &Path) -> Option<View> {
        self.views.lock().of.get(session)?.get(path).map(|(_, view)| view.clone())
    }

    /// The session read this in that turn.
    pub(super) fn remember_read(&self, session: &Session, path: &Path, text: &str, is_of_disk: bool, turn: u64) {
        self.remember(session, path, text, is_of_disk, turn);
        self.views.lock().readers.insert(session.clone());
    }

    /// Whether the session has ever read a file through Neovim. One that has not reads with its own tools, if at all.
    pub(super) fn is_reader(&self, session: &Session) -> bool {
        self.views.lock().readers.contains(session)
    }

    /// The session left this in that turn.
    pub(super) fn remember(&self, session: &Session, path: &Path, text: &str, is_of_disk: bool, turn: u64) {
        let view = View { fingerprint: self.fingerprint(text), text: Some(text.into()), is_of_disk, turn };
        let mut views = self.views.lock();
        views.count += 1;
        views.bytes += text.len();
        let age = views.count;
        let before = views.of.entry(session.clone()).or_default().insert(path.to_owned(), (age, view));
        views.bytes -= before.map_or(0, |(_, view)| Views::weight(&view));
        views.shrink(self.most);
    }

    /// Nothing more will come of this connection.
    pub(super) fn forget(&self, conn: ConnId) {
        let mut views = self.views.lock();
        views.of.retain(|(of, _), _| *of != conn);
        views.readers.retain(|(of, _)| *of != conn);
        views.count_bytes();
    }

    /// Nothing more will come of this session.
    pub(super) fn forget_session(&self, session: &Session) {
        let mut views = self.views.lock();
        views.of.remove(session);
        views.readers.remove(session);
        views.count_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(conn: u64, id: &str) -> Session {
        (ConnId(conn), SessionId::from(id))
    }

    #[test]
    fn a_session_sees_for_itself_and_is_forgotten() {
        let seen = Seen::default();
        let path = Path::new("/a");
        seen.remember(&session(1, "a"), path, "\u{feff}one", true, 1);
        seen.remember(&session(1, "b"), path, "two", false, 1);
        seen.remember(&session(2, "a"), path, "three", true, 1);
        let fingerprint = |conn, id| seen.get(&session(conn, id), path).map(|view| view.fingerprint);
        assert_eq!(fingerprint(1, "a"), Some(seen.fingerprint("one")));
        assert_ne!(fingerprint(1, "b"), Some(seen.fingerprint("one")));
        assert_eq!(seen.get(&session(1, "a"), Path::new("/b")), None);
        seen.forget_session(&session(1, "a"));
        assert_eq!(seen.get(&session(1, "a"), path), None);
        seen.forget(ConnId(1));
        assert_eq!(seen.get(&session(1, "b"), path), None);
        assert!(seen.get(&session(2, "a"), path).is_some());
        assert_eq!(seen.views.lock().bytes, "three".len());
    }

    #[test]
    fn old_texts_leave_their_fingerprint() {
        let seen = Seen { most: 10, ..Seen::default() };
        let of = session(1, "a");
        for (name, text) in [("/a", "12345"), ("/b", "12345"), ("/a", "123456"), ("/c", "12")] {
            seen.remember(&of, Path::new(name), text, true, 1);
        }
        let text = |name| seen.get(&of, Path::new(name)).and_then(|view| view.text);
        assert_eq!(text("/a").as_deref(), Some("123456"));
        assert_eq!(text("/b"), None);
        assert_eq!(text("/c").as_deref(), Some("12"));
        let kept = seen.get(&of, Path::new("/b")).map(|view| view.fingerprint);
        assert_eq!(kept, Some(seen.fingerprint("12345")));
    }
}
