//! Notices files that change while agents work: every folder of a project that git does not ignore, and the folders of files
//! that tool calls name.
//!
//! Folders are watched one by one, found by a walk, because watching recursively would include all that is ignored. Nothing
//! is watched while no turn runs. What is missed (too many folders, a system that does not tell) is found when a call or the
//! turn ends, for then the files are looked at anyway: watching makes it sooner.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::checkpoint::index::walk;
use crate::core::ids::ChatId;

/// More folders are not watched.
const MAX_FOLDERS: usize = 4_096;
/// Of more files that change at once, only that they do is kept.
const MAX_PATHS: usize = 64;
/// How long nothing happens before changes are told: most programs write a file in several steps.
const DEBOUNCE: Duration = Duration::from_millis(60);
/// How long at most, should something happen all the time. It is time that counts, not events: whoever writes a large file
/// causes hundreds, and each batch would be a look at all of it.
const AT_MOST: Duration = Duration::from_millis(600);
/// How long is watched after a turn.
const LINGER: Duration = Duration::from_millis(1_500);

/// Watches while turns run.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    state: Arc<Mutex<State>>,
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct State {
    /// Projects in which a turn runs, or has just ended, and which turn of the chat's that is.
    running: BTreeMap<ChatId, (PathBuf, u64)>,
    named: BTreeSet<PathBuf>,
    folders: BTreeSet<PathBuf>,
    watcher: Option<RecommendedWatcher>,
    turns: u64,
}

/// What the system told.
#[derive(Debug, Default)]
struct Inbox {
    batch: Mutex<Batch>,
    /// When something happened last.
    last: Mutex<Option<Instant>>,
    news: Notify,
}

/// Paths at which something happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// Files and folders, which may be gone.
    pub paths: BTreeSet<PathBuf>,
    /// There were more than are named.
    pub overflow: bool,
}

impl Watch {
    /// A turn of this chat begins. [`Self::add_tree`] and [`Self::look_around`] follow.
    pub fn begin(&self, chat: ChatId, root: &Path) {
        let mut state = self.state.lock();
        state.turns += 1;
        let turn = state.turns;
        state.running.insert(chat, (root.to_owned(), turn));
    }

    /// Something may have happened before it was watched.
    pub fn look_around(&self) {
        self.inbox.batch.lock().overflow = true;
        self.inbox.tell();
    }

    /// The turn of this chat is over; what it did may still be on its way.
    pub fn end(&self, chat: ChatId) {
        let Some((_, turn)) = self.state.lock().running.get(&chat).cloned() else { return };
        let state = Arc::clone(&self.state);
        tokio::spawn(async move {
            tokio::time::sleep(LINGER).await;
            state.lock().leave(chat, turn);
        });
    }

    /// A call named these files. Waits for the disk.
    pub fn name(&self, paths: &[PathBuf]) {
        let mut state = self.state.lock();
        if state.running.is_empty() {
            return;
        }
        for path in paths {
            state.named.insert(path.clone());
            if let Some(folder) = path.parent() {
                state.add(folder, &self.inbox);
            }
        }
    }

    /// Watches a folder and those below it. Waits for the disk.
    pub fn add_tree(&self, folder: &Path) {
        if folder.file_name().is_some_and(|name| name == ".git") {
            return;
        }
        // What cannot be read cannot be watched.
        for entry in walk(folder).build().flatten() {
            if entry.file_type().is_some_and(|kind| kind.is_dir()) && !self.state.lock().add(entry.path(), &self.inbox)
            {
                return;
            }
        }
    }

    /// Whether a call named this file.
    pub fn is_named(&self, path: &Path) -> bool {
        self.state.lock().named.contains(path)
    }

    /// Where turns run.
    pub fn projects(&self) -> Vec<(ChatId, PathBuf)> {
        self.state.lock().running.iter().map(|(chat, (root, _))| (*chat, root.clone())).collect()
    }

    /// Waits until something happened, and until nothing more does for a moment.
    pub async fn next(&self) -> Batch {
        loop {
            self.inbox.news.notified().await;
            let latest = Instant::now() + AT_MOST;
            loop {
                let quiet = self.inbox.last.lock().map_or(latest, |last| last + DEBOUNCE).min(latest);
                if Instant::now() >= quiet {
                    break;
                }
                tokio::time::sleep_until(quiet).await;
            }
            let batch = std::mem::take(&mut *self.inbox.batch.lock());
            // What was told while we waited was taken along before.
            if batch != Batch::default() {
                return batch;
            }
        }
    }
}

impl State {
    /// Nothing more is expected of that turn. Another of the chat's may have begun.
    fn leave(&mut self, chat: ChatId, turn: u64) {
        if self.running.get(&chat).is_some_and(|(_, now)| *now == turn) {
            self.running.remove(&chat);
        }
        if self.running.is_empty() {
            *self = Self { turns: self.turns, ..Self::default() };
        }
    }

    /// Watches one folder; whether there may be more.
    fn add(&mut self, folder: &Path, inbox: &Arc<Inbox>) -> bool {
        if self.running.is_empty() || self.folders.contains(folder) {
            return true;
        }
        if self.folders.len() >= MAX_FOLDERS {
            return false;
        }
        if self.watcher.is_none() {
            let inbox = Arc::clone(inbox);
            match notify::recommended_watcher(move |event| inbox.take(event)) {
                Ok(watcher) => self.watcher = Some(watcher),
                Err(error) => {
                    tracing::warn!(%error, "files cannot be watched");
                    return false;
                }
            }
        }
        let watched = self.watcher.as_mut().map(|watcher| watcher.watch(folder, RecursiveMode::NonRecursive));
        match watched {
            Some(Err(error)) if matches!(error.kind, notify::ErrorKind::MaxFilesWatch) => {
                tracing::warn!(folders = self.folders.len(), "the system lets no more folders be watched");
                return false;
            }
            // Gone meanwhile, or not readable.
            Some(Err(error)) => tracing::debug!(%error, ?folder, "a folder cannot be watched"),
            _ => {
                self.folders.insert(folder.to_owned());
            }
        }
        true
    }
}

impl Inbox {
    fn take(&self, event: notify::Result<notify::Event>) {
        let mut batch = self.batch.lock();
        match event {
            Ok(event) if is_change(event.kind) => {
                for path in event.paths {
                    if batch.paths.len() < MAX_PATHS || batch.paths.contains(&path) {
                        batch.paths.insert(path);
                    } else {
                        batch.overflow = true;
                    }
                }
            }
            // The system lost some.
            Ok(event) if event.need_rescan() => batch.overflow = true,
            Ok(_) => return,
            Err(error) => {
                tracing::debug!(%error, "an event of the file system is lost");
                batch.overflow = true;
            }
        }
        drop(batch);
        self.tell();
    }

    fn tell(&self) {
        *self.last.lock() = Some(Instant::now());
        self.news.notify_one();
    }
}

/// Whether a file may have got another content, name or end by it. Reading one is no news, our own least of all.
const fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => matches!(access, AccessKind::Close(AccessMode::Write)),
        EventKind::Modify(change) => !matches!(change, ModifyKind::Metadata(_)),
        EventKind::Create(_) | EventKind::Remove(_) => true,
        EventKind::Any | EventKind::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    async fn noticed(watch: &Watch, path: &Path) -> bool {
        let look = async { while !watch.next().await.paths.contains(path) {} };
        tokio::time::timeout(Duration::from_secs(10), look).await.is_ok()
    }

    #[tokio::test]
    async fn what_is_written_created_and_deleted_is_noticed() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        fs::create_dir_all(root.join("sub"))?;
        fs::create_dir_all(root.join("target"))?;
        fs::write(root.join(".gitignore"), "/target\n")?;
        fs::write(root.join("sub/a"), "1")?;
        let watch = Watch::default();
        watch.begin(ChatId(1), root);
        watch.add_tree(root);
        assert_eq!(watch.state.lock().folders, BTreeSet::from([root.to_owned(), root.join("sub")]));
        fs::write(root.join("sub/a"), "2")?;
        assert!(noticed(&watch, &root.join("sub/a")).await);
        fs::write(root.join("b"), "new")?;
        assert!(noticed(&watch, &root.join("b")).await);
        fs::remove_file(root.join("sub/a"))?;
        assert!(noticed(&watch, &root.join("sub/a")).await);
        let outside = tempfile::tempdir()?;
        let named = outside.path().join("named");
        watch.name(std::slice::from_ref(&named));
        fs::write(&named, "x")?;
        assert!(noticed(&watch, &named).await && watch.is_named(&named));
        Ok(())
    }

    #[test]
    fn nothing_is_watched_once_the_last_turn_is_over() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let watch = Watch::default();
        let is_watching = || watch.state.lock().watcher.is_some();
        watch.name(&[folder.path().join("x")]);
        assert!(!is_watching(), "not before a turn");
        watch.begin(ChatId(1), folder.path());
        watch.add_tree(folder.path());
        watch.begin(ChatId(2), folder.path());
        watch.state.lock().leave(ChatId(1), 1);
        assert!(is_watching());
        watch.begin(ChatId(2), folder.path());
        watch.state.lock().leave(ChatId(2), 2);
        assert!(is_watching(), "another turn began meanwhile");
        watch.state.lock().leave(ChatId(2), 3);
        assert!(!is_watching());
        Ok(())
    }

    /// Several events, each told to whoever waits before the next one.
    async fn happens(inbox: &Inbox, times: usize) {
        for _ in 0..times {
            let event = notify::Event::new(EventKind::Modify(ModifyKind::Any));
            inbox.take(Ok(event.add_path("large".into())));
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_large_file_that_is_written_in_pieces_is_told_once() {
        let watch = Watch::default();
        let (inbox, start) = (Arc::clone(&watch.inbox), Instant::now());
        let writer = tokio::spawn(async move {
            happens(&inbox, 500).await;
            start.elapsed()
        });
        let mut told = 0;
        while let Ok(batch) = tokio::time::timeout(2 * AT_MOST, watch.next()).await {
            assert!(batch.paths.contains(Path::new("large")), "{batch:?}");
            told += 1;
        }
        // Once, unless the machine was so slow that nothing happened for a while in between.
        let pauses = writer.await.map_or(0, |taken| taken.as_millis() / DEBOUNCE.as_millis());
        assert!((1..=1 + pauses).contains(&told), "told {told} times, with room for {pauses} pauses");
    }

    #[tokio::test]
    async fn what_happens_all_the_time_is_told_all_the_same() {
        let watch = Watch::default();
        let inbox = Arc::clone(&watch.inbox);
        let writer = tokio::spawn(async move {
            loop {
                happens(&inbox, 1).await;
                tokio::time::sleep(DEBOUNCE / 4).await;
            }
        });
        let told = tokio::time::timeout(Duration::from_secs(10), watch.next()).await;
        writer.abort();
        assert!(told.is_ok_and(|batch| !batch.paths.is_empty()));
    }

    #[test]
    fn a_flood_is_only_counted() {
        let inbox = Inbox::default();
        for number in 0..=MAX_PATHS {
            let event = notify::Event::new(EventKind::Modify(ModifyKind::Any));
            inbox.take(Ok(event.add_path(number.to_string().into())));
        }
        let batch = inbox.batch.lock();
        assert!(batch.overflow && batch.paths.len() == MAX_PATHS);
    }
}
