//! What each session has seen of each file: a fingerprint of the text, for the text itself may be long.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::core::ids::{ConnId, SessionId};
use crate::files::edits::BYTE_ORDER_MARK;

/// One session of one run of an agent.
pub(super) type Session = (ConnId, SessionId);

/// Stands for a text; one without a byte order mark for the same with one, which buffers keep out of their text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

/// The texts that the next write of each session is based on.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Seeded anew in every process: nobody can make two texts that look the same.
    hasher: RandomState,
    texts: Mutex<HashMap<Session, HashMap<PathBuf, Fingerprint>>>,
}

impl Seen {
    /// What stands for this text.
    pub(super) fn fingerprint(&self, text: &str) -> Fingerprint {
        Fingerprint(self.hasher.hash_one(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text)))
    }

    /// What the session read or wrote last.
    pub(super) fn get(&self, session: &Session, path: &Path) -> Option<Fingerprint> {
        self.texts.lock().get(session)?.get(path).copied()
    }

    /// The session read or wrote this.
    pub(super) fn remember(&self, session: &Session, path: &Path, text: &str) {
        let fingerprint = self.fingerprint(text);
        self.texts.lock().entry(session.clone()).or_default().insert(path.to_owned(), fingerprint);
    }

    /// Nothing more will come of this connection.
    pub(super) fn forget(&self, conn: ConnId) {
        self.texts.lock().retain(|(of, _), _| *of != conn);
    }

    /// Nothing more will come of this session.
    pub(super) fn forget_session(&self, session: &Session) {
        self.texts.lock().remove(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_sees_for_itself_and_is_forgotten() {
        let seen = Seen::default();
        let session = |conn, id: &str| (ConnId(conn), SessionId::from(id));
        let path = Path::new("/a");
        seen.remember(&session(1, "a"), path, "\u{feff}one");
        seen.remember(&session(1, "b"), path, "two");
        seen.remember(&session(2, "a"), path, "three");
        assert_eq!(seen.get(&session(1, "a"), path), Some(seen.fingerprint("one")));
        assert_ne!(seen.get(&session(1, "b"), path), Some(seen.fingerprint("one")));
        assert_eq!(seen.get(&session(1, "a"), Path::new("/b")), None);
        seen.forget_session(&session(1, "a"));
        assert_eq!(seen.get(&session(1, "a"), path), None);
        seen.forget(ConnId(1));
        assert_eq!(seen.get(&session(1, "b"), path), None);
        assert!(seen.get(&session(2, "a"), path).is_some());
    }
}
