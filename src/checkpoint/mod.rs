//! What files were before an agent touched them, so that a whole turn can be taken back.
//!
//! * [`index`]: the project at the beginning of a turn, from a walk that reads only what is new to it;
//! * [`packs`]: where the bytes are;
//! * `journal`: what is left of it for the next helper of the same Neovim;
//! * [`history`]: what a file should hold after an undo, keeping what the user did meanwhile.
//!
//! For each turn: what a file was before its first change, and what the agent left. *Before* is the earliest thing known: what
//! is on disk when a call names the file or a write is asked for, unless that is younger than the turn, and then what the
//! index has. Nothing here knows of git beyond its ignore rules, so its index, stashes and branches are never touched.
//!
//! Bytes are in files without a name, gone with this helper, and for the next one also in those of the journal.
//!
//! Everything here waits for the disk; it is called on threads of its own. No lock is held while a file is read.

pub mod history;
pub mod index;
mod journal;
pub mod packs;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::core::ids::ChatId;
use history::{Chapter, Was};
use index::{Index, Indexed, Limits, Stamp};
use journal::{Change, Journal};
use packs::{Blob, PackError, Packs};

/// The longest file that is kept when a call names it or a write is asked for, in bytes.
const MAX_NAMED: u64 = 64 * 1024 * 1024;
/// Turns that can be undone; older ones are forgotten.
const MAX_TURNS: usize = 100;

/// Why it is not known what a file was.
const CHANGED_BEFORE: &str = "it had changed before it could be kept";
/// How far the clock that files are stamped with may lag behind.
const COARSE: Duration = Duration::from_millis(20);
/// How long before a turn the user may have saved what is kept for it.
const RECENT: Duration = Duration::from_secs(2);

/// The checkpoints of all chats.
#[derive(Debug, Clone, Default)]
pub struct Checkpoints {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    packs: Option<Packs>,
    journal: Option<Journal>,
    limits: Limits,
    projects: HashMap<PathBuf, Arc<Index>>,
    /// What agents left since the indexes were made; they get it before the next turn.
    news: BTreeMap<PathBuf, Option<Indexed>>,
    turns: BTreeMap<(ChatId, u64), Turn>,
    /// Files that Neovim saved or an undo restored, as they were then; `None` for those that it removed.
    own: HashMap<PathBuf, Option<Stamp>>,
}

#[derive(Debug)]
struct Turn {
    started: SystemTime,
    root: PathBuf,
    index: Arc<Index>,
    files: BTreeMap<PathBuf, Touched>,
}

#[derive(Debug)]
struct Touched {
    before: Kept,
    /// `None` as long as the file was only named.
    left: Option<Kept>,
    /// What it was before that.
    last: Option<Kept>,
}

#[derive(Debug, Clone)]
enum Kept {
    Missing,
    Bytes(Blob, u32),
    /// What an earlier helper kept, in a file.
    Named(PathBuf, u32),
    Unknown(String),
}

/// A file that a turn, or later ones of the same chat, changed; the newest change first.
pub type Story = (PathBuf, Vec<Chapter>);

impl Checkpoints {
    /// Keeps bytes below `folder`. What an earlier helper of the same Neovim, called `instance`, noted of turns is known
    /// again; what a Neovim kept that has ended is gone with it.
    pub fn configure(&self, folder: PathBuf, instance: Option<&str>, limits: Limits) {
        let opened = instance.map(|instance| Journal::open(&folder, instance, limits.bytes));
        let mut inner = self.inner.lock();
        match opened {
            Some(Ok((journal, changes))) => {
                inner.journal = Some(journal);
                for ((chat, turn, path), Change { root, started, before, left }) in changes {
                    let new = || Turn { started, root, index: Arc::default(), files: BTreeMap::new() };
                    let turn = inner.turns.entry((chat, turn)).or_insert_with(new);
                    turn.files.insert(path, Touched { before, left: Some(left), last: None });
                }
            }
            Some(Err(error)) => tracing::warn!(%error, "turns cannot be undone any more once the helper has ended"),
            None => {}
        }
        inner.packs = Some(Packs::new(folder, limits.bytes));
        inner.limits = limits;
    }

    /// The last turn of a chat that is known, 0 if there is none.
    pub fn last_turn(&self, chat: ChatId) -> u64 {
        self.inner.lock().turns.range((chat, 0)..=(chat, u64::MAX)).next_back().map_or(0, |((_, turn), _)| *turn)
    }

    /// The helper ends. If Neovim does as well, as it has said or as can be seen, nothing can be undone any more; else the next
    /// helper goes on from what is kept.
    pub fn leave(&self, has_neovim_said_so: bool) {
        if let Some(journal) = self.inner.lock().journal.take()
            && (has_neovim_said_so || !journal.is_neovim_alive())
        {
            journal.remove();
        }
    }

    /// A turn begins now. To be called before the agent hears of it; [`Self::survey`] follows.
    pub fn begin(&self, chat: ChatId, turn: u64, root: PathBuf) {
        let mut inner = self.inner.lock();
        inner.renew_indexes();
        let index = inner.projects.get(&root).cloned().unwrap_or_default();
        let started = SystemTime::now();
        inner.turns.insert((chat, turn), Turn { started, root, index, files: BTreeMap::new() });
        inner
            .own
            .retain(|_, stamp| stamp.and_then(|stamp| stamp.time()).is_some_and(|changed| changed + RECENT >= started));
        inner.make_room();
    }

    /// Looks at the project, for a turn of this chat that has just begun, or ahead of the first one.
    pub fn survey(&self, root: &Path, turn: Option<(ChatId, u64)>) {
        let (old, limits) = {
            let inner = self.inner.lock();
            (inner.projects.get(root).cloned().unwrap_or_default(), inner.limits)
        };
        // A turn may begin while this is still going on ahead of it.
        let since = || match turn {
            Some(turn) => self.inner.lock().turns.get(&turn).map(|turn| turn.started),
            None => self.inner.lock().turns.values().filter(|turn| turn.root == root).map(|turn| turn.started).max(),
        };
        let is_late = |path: &Path, stamp: &Stamp| since().is_some_and(|since| self.is_late(since, path, *stamp));
        let was_there = |metadata: &fs::Metadata| {
            metadata.created().is_ok_and(|made| since().is_some_and(|since| made + COARSE < since))
        };
        // A folder changes when a file in it is deleted.
        let is_lost = |path: &Path| {
            let folder = path.ancestors().skip(1).find_map(|folder| fs::metadata(folder).ok());
            let changed = folder.and_then(|folder| folder.modified().ok());
            let is_late = changed.is_some_and(|changed| since().is_some_and(|since| changed + COARSE >= since));
            is_late && fs::symlink_metadata(path).is_err()
        };
        let keep = |path: &Path, stamp: Stamp| {
            let bytes = index::read(path, stamp)?;
            self.inner.lock().packs.as_mut()?.keep(&bytes).ok()
        };
        let index = Arc::new(Index::take(root, &old, is_late, was_there, is_lost, limits, keep));
        let mut inner = self.inner.lock();
        inner.projects.insert(root.to_owned(), Arc::clone(&index));
        if let Some(turn) = turn.and_then(|turn| inner.turns.get_mut(&turn)) {
            turn.index = index;
        }
    }

    /// The agent is about to touch this file, or just has: what it was before is kept, unless that is known. `path` has no
    /// links in it.
    pub fn name(&self, chat: ChatId, path: &Path) {
        if let Some((root, index, started)) = self.unknown_to(chat, path) {
            let before = self.before(&root, &index, started, path);
            self.note_before(chat, path, before);
        }
    }

    /// The same for a file of which the user sees this text, saved or not.
    pub fn name_with(&self, chat: ChatId, path: &Path, seen: &str) {
        if self.unknown_to(chat, path).is_some() {
            let mode = fs::metadata(path).map_or(0, |metadata| index::mode(&metadata));
            let before = self.keep(seen.as_bytes(), mode);
            self.note_before(chat, path, before);
        }
    }

    /// What the agent has made of the file.
    pub fn left(&self, chat: ChatId, path: &Path, was: &Was) {
        let left = self.keep_was(was);
        self.note_news(path, &left);
        self.inner.lock().note_left(chat, path, left);
    }

    /// An undo has made this of the file.
    pub fn restored(&self, path: &Path, was: &Was) {
        self.note_news(path, &self.keep_was(was));
        self.mark_own(path);
    }

    fn keep_was(&self, was: &Was) -> Kept {
        match was {
            Was::Missing => Kept::Missing,
            Was::Bytes { bytes, mode } => self.keep(bytes, *mode),
            Was::Unknown(why) => Kept::Unknown(why.clone()),
        }
    }

    fn note_news(&self, path: &Path, kept: &Kept) {
        let entry = match kept {
            Kept::Bytes(blob, mode) => fs::metadata(path).ok().map(|metadata| Indexed {
                stamp: Stamp::of(&metadata),
                mode: *mode,
                bytes: Some(blob.clone()),
            }),
            Kept::Missing | Kept::Named(..) | Kept::Unknown(_) => None,
        };
        self.inner.lock().news.insert(path.to_owned(), entry);
    }

    /// What the file was when the agent, or this chat, last had to do with it: what it left, else what was before.
    pub fn last_known(&self, chat: ChatId, path: &Path) -> Option<Was> {
        let kept = {
            let mut inner = self.inner.lock();
            let touched = inner.newest(chat)?.files.get(path)?;
            touched.left.clone().unwrap_or_else(|| touched.before.clone())
        };
        Some(kept.read())
    }

    /// The other name of a file that the agent has moved in this turn: where it went if it is gone, else where it came from.
    /// A file that is empty is like any other, and never taken for another.
    pub fn moved(&self, chat: ChatId, path: &Path, is_gone: bool) -> Option<PathBuf> {
        let mut inner = self.inner.lock();
        let turn = inner.newest(chat)?;
        let content = |kept: &Kept| match kept {
            Kept::Bytes(blob, _) if !blob.is_empty() => Some(blob.clone()),
            _ => None,
        };
        let vanished = |touched: &Touched| matches!(touched.left, Some(Kept::Missing));
        let last = |touched: &Touched| content(touched.last.as_ref().unwrap_or(&touched.before));
        let appeared = |touched: &Touched| matches!(touched.before, Kept::Missing);
        let this = turn.files.get(path)?;
        let bytes = if is_gone { last(this)? } else { content(this.left.as_ref()?)? };
        let is_other = |other: &Touched| {
            let theirs = if is_gone { other.left.as_ref().and_then(content) } else { last(other) };
            let fits = if is_gone { appeared(other) } else { vanished(other) };
            fits && theirs.is_some_and(|theirs| theirs.is(&bytes))
        };
        let fits = if is_gone { vanished(this) } else { appeared(this) };
        let other = turn.files.iter().find(|(other, touched)| *other != path && is_other(touched));
        other.filter(|_| fits).map(|(other, _)| other.clone())
    }

    /// What this file held when the turn began, if it is one whose bytes are kept.
    pub fn at_start(&self, chat: ChatId, path: &Path) -> Option<Vec<u8>> {
        let blob = self.inner.lock().newest(chat)?.index.get(path)?.bytes.clone()?;
        blob.read().ok()
    }

    /// What this file is now is the user's doing, or ours.
    pub fn mark_own(&self, path: &Path) {
        let stamp = fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata));
        self.inner.lock().own.insert(path.to_owned(), stamp);
    }

    /// Whether the file is still what the user or we have made of it.
    pub fn is_own(&self, path: &Path) -> bool {
        let stamp = fs::metadata(path).ok().map(|metadata| Stamp::of(&metadata));
        self.inner.lock().own.get(path) == Some(&stamp)
    }

    /// The files that are known at this path or below it.
    pub fn known_below(&self, path: &Path) -> Vec<PathBuf> {
        let indexes: Vec<Arc<Index>> = self.inner.lock().projects.values().cloned().collect();
        indexes.iter().flat_map(|index| index.below(path)).map(Path::to_owned).collect()
    }

    /// The files of the project that are not as they were when the turn began.
    pub fn changed_since(&self, chat: ChatId, root: &Path) -> Vec<PathBuf> {
        let (index, limits) = {
            let mut inner = self.inner.lock();
            let limits = inner.limits;
            let Some(turn) = inner.newest(chat) else { return Vec::new() };
            (Arc::clone(&turn.index), limits)
        };
        index.changed(root, limits)
    }

    /// The turn that an undo without a number is about, the newest with changes, and what was changed since it began.
    pub fn stories(&self, chat: ChatId, from: Option<u64>) -> Option<(u64, Vec<Story>)> {
        let (from, kept) = {
            let inner = self.inner.lock();
            let of_chat = || inner.turns.range((chat, 0)..=(chat, u64::MAX)).rev();
            let has_changes = |turn: &Turn| turn.files.values().any(|touched| touched.left.is_some());
            let from = from.or_else(|| of_chat().find(|(_, turn)| has_changes(turn)).map(|((_, turn), _)| *turn))?;
            let mut kept: BTreeMap<PathBuf, Vec<(Kept, Kept)>> = BTreeMap::new();
            for (_, turn) in of_chat().take_while(|((_, turn), _)| *turn >= from) {
                for (path, touched) in &turn.files {
                    if let Some(left) = &touched.left {
                        kept.entry(path.clone()).or_default().push((touched.before.clone(), left.clone()));
                    }
                }
            }
            (from, kept)
        };
        let chapters = |kept: Vec<(Kept, Kept)>| {
            kept.into_iter().map(|(before, left)| Chapter { before: before.read(), left: left.read() }).collect()
        };
        Some((from, kept.into_iter().map(|(path, kept)| (path, chapters(kept))).collect()))
    }

    /// These files are as they were before that turn: nothing of it, or of later ones, is left to undo in them.
    pub fn undone(&self, chat: ChatId, from: u64, paths: &BTreeSet<PathBuf>) {
        let mut inner = self.inner.lock();
        let mut gone = Vec::new();
        for ((_, number), turn) in inner.turns.range_mut((chat, from)..=(chat, u64::MAX)) {
            turn.files.retain(|path, _| !paths.contains(path));
            gone.extend(paths.iter().map(|path| (chat, *number, path.clone())));
        }
        inner.note_gone(gone);
        inner.tidy();
    }

    /// The chat is no more, and its turns cannot be undone.
    pub fn forget(&self, chat: ChatId) {
        let mut inner = self.inner.lock();
        let of_chat: Vec<_> = inner.turns.range((chat, 0)..=(chat, u64::MAX)).map(|(key, _)| *key).collect();
        for turn in of_chat {
            inner.forget_turn(turn);
        }
        inner.tidy();
    }

    /// Whether a file is younger than a turn that began then, and not by the user's doing.
    fn is_late(&self, started: SystemTime, path: &Path, stamp: Stamp) -> bool {
        let is_young = stamp.time().is_some_and(|changed| changed + COARSE >= started);
        if self.inner.lock().own.get(path) == Some(&Some(stamp)) {
            return false;
        }
        if !is_young && stamp.size() == 0 {
            // Most programs empty a file and then write it; some systems tell of its new size before its new time.
            std::thread::sleep(COARSE);
            return fs::metadata(path).is_ok_and(|now| Stamp::of(&now) != stamp);
        }
        is_young
    }

    /// What is needed to find out what a file was; `None` if it is known.
    fn unknown_to(&self, chat: ChatId, path: &Path) -> Option<(PathBuf, Arc<Index>, SystemTime)> {
        let mut inner = self.inner.lock();
        let turn = inner.newest(chat)?;
        let is_known = turn.files.contains_key(path);
        (!is_known).then(|| (turn.root.clone(), Arc::clone(&turn.index), turn.started))
    }

    fn before(&self, root: &Path, index: &Index, started: SystemTime, path: &Path) -> Kept {
        let indexed = index.get(path);
        let from_index = |why: &str| match indexed.map(|file| (&file.bytes, file.mode)) {
            Some((Some(bytes), mode)) => Kept::Bytes(bytes.clone(), mode),
            Some((None, _)) if indexed.is_some_and(|file| file.stamp != Stamp::default()) => {
                Kept::Unknown("it is larger than what is kept of every file".to_owned())
            }
            _ => Kept::Unknown(why.to_owned()),
        };
        let metadata = match fs::symlink_metadata(path) {
            Ok(metadata) => metadata,
            Err(_) if indexed.is_some() => return from_index(CHANGED_BEFORE),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Kept::Missing,
            Err(error) => return Kept::Unknown(error.to_string()),
        };
        if !metadata.is_file() {
            return Kept::Unknown("it is not a regular file".to_owned());
        }
        let stamp = Stamp::of(&metadata);
        let is_old = !self.is_late(started, path, stamp);
        let is_as_indexed = indexed.is_some_and(|file| file.stamp == stamp);
        if is_as_indexed && indexed.is_some_and(|file| file.bytes.is_some()) {
            return from_index("");
        }
        if (is_old || is_as_indexed)
            && let Some(kept) = self.keep_file(path, &metadata)
        {
            return kept;
        }
        if indexed.is_none() && index.is_complete() && index::is_listed(root, path) {
            return Kept::Missing;
        }
        from_index(CHANGED_BEFORE)
    }

    /// Keeps a file as these facts tell of it; `None` if it has changed since they were asked.
    fn keep_file(&self, path: &Path, metadata: &fs::Metadata) -> Option<Kept> {
        if metadata.len() > MAX_NAMED {
            return Some(Kept::Unknown(format!("it has more than {MAX_NAMED} bytes")));
        }
        index::read(path, Stamp::of(metadata)).map(|bytes| self.keep(&bytes, index::mode(metadata)))
    }

    fn keep(&self, bytes: &[u8], mode: u32) -> Kept {
        let mut inner = self.inner.lock();
        let Some(packs) = inner.packs.as_mut() else {
            return Kept::Unknown("there is no folder for checkpoints".to_owned());
        };
        let kept = packs.keep(bytes).or_else(|error| match error {
            // What is older is worth less.
            PackError::Full if inner.forget_oldest() => {
                inner.packs.as_mut().map_or(Err(PackError::Full), |packs| packs.keep(bytes))
            }
            other => Err(other),
        });
        match kept {
            Ok(blob) => Kept::Bytes(blob, mode),
            Err(error) => {
                tracing::warn!(%error, "a file could not be kept");
                Kept::Unknown(error.to_string())
            }
        }
    }

    fn note_before(&self, chat: ChatId, path: &Path, before: Kept) {
        if let Some(turn) = self.inner.lock().newest(chat) {
            // Somebody may have been faster; what was seen first counts.
            turn.files.entry(path.to_owned()).or_insert(Touched { before, left: None, last: None });
        }
    }
}

impl Inner {
    fn newest(&mut self, chat: ChatId) -> Option<&mut Turn> {
        self.turns.range_mut((chat, 0)..=(chat, u64::MAX)).next_back().map(|(_, turn)| turn)
    }

    fn note_left(&mut self, chat: ChatId, path: &Path, left: Kept) {
        let Some((key, turn)) = self.turns.range_mut((chat, 0)..=(chat, u64::MAX)).next_back() else { return };
        let Some(touched) = turn.files.get_mut(path) else { return };
        touched.last = touched.left.replace(left.clone());
        if let Some(journal) = &self.journal {
            let (root, started, before) = (turn.root.clone(), turn.started, touched.before.clone());
            journal.changed((key.0, key.1, path.to_owned()), Change { root, started, before, left });
        }
    }

    fn note_gone(&self, keys: Vec<journal::Key>) {
        if let Some(journal) = &self.journal {
            journal.gone(keys);
        }
    }

    fn forget_turn(&mut self, key: (ChatId, u64)) {
        if let Some(turn) = self.turns.remove(&key) {
            self.note_gone(turn.files.into_keys().map(|path| (key.0, key.1, path)).collect());
        }
    }

    /// Lets the indexes know what agents left.
    fn renew_indexes(&mut self) {
        for (path, file) in std::mem::take(&mut self.news) {
            let concerned = self.projects.iter_mut().filter(|(root, _)| path.starts_with(root));
            for (_, index) in concerned {
                Arc::make_mut(index).renew(&path, file.as_ref());
            }
        }
    }

    /// Leaves room for a turn: a quarter of all.
    fn make_room(&mut self) {
        while self.turns.len() > MAX_TURNS {
            self.forget_oldest();
        }
        let limit = self.limits.bytes / 4 * 3;
        while self.packs.as_mut().is_some_and(|packs| packs.used() > limit) && self.forget_oldest() {}
    }

    /// Forgets the turn that began first; never the only one.
    fn forget_oldest(&mut self) -> bool {
        let oldest = self.turns.iter().min_by_key(|(_, turn)| turn.started).map(|(key, _)| *key);
        let forgets = self.turns.len() > 1;
        if let Some(oldest) = oldest.filter(|_| forgets) {
            self.forget_turn(oldest);
        }
        self.tidy();
        forgets
    }

    fn tidy(&mut self) {
        if let Some(packs) = &mut self.packs {
            packs.tidy();
        }
    }
}

impl Kept {
    fn read(&self) -> Was {
        match self {
            Self::Missing => Was::Missing,
            Self::Bytes(blob, mode) => match blob.read() {
                Ok(bytes) => Was::Bytes { bytes: bytes.into(), mode: *mode },
                Err(error) => Was::Unknown(error.to_string()),
            },
            Self::Named(path, mode) => match fs::read(path) {
                Ok(bytes) => Was::Bytes { bytes: bytes.into(), mode: *mode },
                Err(error) => Was::Unknown(error.to_string()),
            },
            Self::Unknown(why) => Was::Unknown(why.clone()),
        }
    }
}

/// What a file is now. `path` has no links in it.
pub fn look(path: &Path) -> Was {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.is_file() => Was::Unknown("it is not a regular file".to_owned()),
        Ok(metadata) if metadata.len() > MAX_NAMED => Was::Unknown(format!("it has more than {MAX_NAMED} bytes")),
        Ok(metadata) => match fs::read(path) {
            Ok(bytes) => Was::Bytes { bytes: bytes.into(), mode: index::mode(&metadata) },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Was::Missing,
            Err(error) => Was::Unknown(error.to_string()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Was::Missing,
        Err(error) => Was::Unknown(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
