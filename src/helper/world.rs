//! The owner's part in what happens to files on disk: snapshots, looks, undos, each in a task of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use super::{Finished, Owner};
use crate::checkpoint::{Checkpoints, index};
use crate::core::attribution::DiskChange;
use crate::core::effect::{Effect, Lookout};
use crate::core::event::{Event, UndoReport};
use crate::core::ids::Millis;
use crate::files::git;
use crate::files::watch::{Batch, Watch};

impl Owner {
    /// Does what the core wants done about files on disk.
    pub(super) fn carry_out_on_disk(&mut self, effect: Effect) {
        let checkpoints = self.checkpoints.clone();
        match effect {
            Effect::Survey(root) => in_background(move || checkpoints.survey(&root, None)),
            Effect::BeginTurn(chat, turn, root) => {
                checkpoints.begin(chat, turn, root.clone());
                let watch = self.watch.clone();
                watch.begin(chat, &root);
                in_background(move || {
                    checkpoints.survey(&root, Some((chat, turn)));
                    watch.add_tree(&root);
                    watch.look_around();
                });
            }
            Effect::EndTurn(chat) => self.watch.end(chat),
            Effect::NameFiles(chat, paths) => {
                let watch = self.watch.clone();
                in_background(move || {
                    watch.name(&paths);
                    for path in paths {
                        checkpoints.name(chat, &resolved(&path));
                    }
                });
            }
            Effect::Look(chat, lookout) => {
                let (finish, clock) = (self.finish.clone(), self.clock());
                in_background(move || {
                    let (root, paths) = match lookout {
                        Lookout::Files(paths) => (None, paths),
                        Lookout::Project(root) => {
                            let changed = checkpoints.changed_since(chat, &root);
                            (Some(root), changed)
                        }
                    };
                    let changes = clock.changes(root.as_deref(), paths);
                    // The owner is gone only when the helper ends.
                    let _ = finish.send(Finished::Work(Box::new(Event::DiskChanged(changes))));
                });
            }
            Effect::TakeIn(job) => {
                let (chat, finish, work) = (job.chat, self.finish.clone(), self.files.clone().take_in(job));
                tokio::spawn(async move {
                    if let Some((path, how)) = work.await {
                        // As above.
                        let _ = finish.send(Finished::Work(Box::new(Event::Adopted(chat, path, how))));
                    }
                });
            }
            Effect::Undo(job) => {
                let (chat, finish) = (job.chat, self.finish.clone());
                let work = tokio::spawn(self.files.clone().undo(job));
                tokio::spawn(async move {
                    let report = work.await.unwrap_or_else(|error| {
                        tracing::error!(%error, "an undo failed");
                        let problem = "internal error, see `:AgentChat log`".to_owned();
                        UndoReport { turn: Some(0), failed: vec![(PathBuf::new(), problem)], ..UndoReport::default() }
                    });
                    // As above.
                    let _ = finish.send(Finished::Work(Box::new(Event::Undone(chat, report))));
                });
            }
            _ => {}
        }
    }

    /// Tells the core of every change that is noticed, as long as the helper lives.
    pub(super) fn serve_watch(&self) {
        let (watch, checkpoints, finish) = (self.watch.clone(), self.checkpoints.clone(), self.finish.clone());
        let start = self.start;
        tokio::spawn(async move {
            loop {
                let batch = watch.next().await;
                let (watch, checkpoints) = (watch.clone(), checkpoints.clone());
                let sifted = tokio::task::spawn_blocking(move || {
                    let clock = Clock::since(start);
                    let mut changes = Vec::new();
                    for (root, paths) in sift(&watch, &checkpoints, batch) {
                        changes.extend(clock.changes(root.as_deref(), paths));
                    }
                    changes
                });
                match sifted.await {
                    Ok(changes) => {
                        // The owner is gone only when the helper ends.
                        let _ = finish.send(Finished::Work(Box::new(Event::DiskChanged(changes))));
                    }
                    Err(error) => tracing::error!(%error, "a change on disk is lost"),
                }
            }
        });
    }

    /// Accepts what is committed, as long as the helper lives.
    pub(super) fn serve_heads(&self) {
        let (heads, files) = (self.heads.clone(), self.files.clone());
        tokio::spawn(async move {
            loop {
                for path in heads.moved().await {
                    files.accept_committed(&path).await;
                }
            }
        });
    }

    /// Something is pending in a file, or nothing is any more.
    pub(super) fn changes_pending(&self, path: PathBuf, is_pending: bool) {
        let heads = self.heads.clone();
        in_background(move || heads.note(&path, is_pending));
    }

    /// The user saved a file; what it is then is theirs.
    pub(super) fn saved_by_user(&self, path: &Path) {
        self.files.saved(path);
        // At once: the change is on its way to those who ask whose it is. Neovim has just asked the disk for the same.
        self.checkpoints.mark_own(path);
    }

    fn clock(&self) -> Clock {
        Clock::since(self.start)
    }
}

/// Which time of the core's a time of the disk is.
#[derive(Debug, Clone, Copy)]
struct Clock {
    now: Millis,
    wall: SystemTime,
}

impl Clock {
    /// Now, in the time of a core that started then.
    fn since(start: Instant) -> Self {
        let now = Millis(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
        Self { now, wall: SystemTime::now() }
    }

    fn at(&self, time: SystemTime) -> Millis {
        // What is from before the helper's start is from its start; nothing is from later than now.
        let ago = self.wall.duration_since(time).map_or(0, |ago| u64::try_from(ago.as_millis()).unwrap_or(u64::MAX));
        Millis(self.now.0.saturating_sub(ago))
    }

    /// These files, with when they changed and what git did meanwhile.
    fn changes(&self, root: Option<&Path>, paths: Vec<PathBuf>) -> Vec<DiskChange> {
        let (mut known, mut moves) = (None, git::Moves::default());
        let change = |path: PathBuf| {
            let folder = root.or_else(|| path.parent()).map(Path::to_owned);
            if folder != known {
                moves = folder.as_deref().map(git::moves).unwrap_or_default();
                known = folder;
            }
            let stamp = index::changed_at(&path);
            DiskChange {
                at: stamp.or_else(|| gone_at(&path)).map_or(self.now, |changed| self.at(changed)),
                stamp,
                path,
                head_moved: moves.head.map(|at| self.at(at)),
                index_written: moves.index.map(|at| self.at(at)),
            }
        };
        paths.into_iter().map(change).collect()
    }
}

/// The files of a batch that are those of a project, by project, and those that calls named. New folders are watched.
fn sift(watch: &Watch, checkpoints: &Checkpoints, batch: Batch) -> Vec<(Option<PathBuf>, Vec<PathBuf>)> {
    let projects = watch.projects();
    let mut named = Vec::new();
    let mut found: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    let mut is_flood = batch.overflow;
    for path in batch.paths {
        if path.is_dir() {
            watch.add_tree(&path);
            // What was in there before it was watched.
            is_flood = true;
        } else if watch.is_named(&path) {
            named.push(path);
        } else if let Some((_, root)) = projects.iter().find(|(_, root)| path.starts_with(root)) {
            let known = checkpoints.known_below(&path);
            let files = found.entry(root.clone()).or_default();
            if known.is_empty() && index::is_listed(root, &path) {
                files.insert(path);
            } else {
                files.extend(known);
            }
        }
    }
    if is_flood {
        for (chat, root) in projects {
            let changed = checkpoints.changed_since(chat, &root);
            found.entry(root).or_default().extend(changed);
        }
    }
    let found = found.into_iter().map(|(root, files)| (Some(root), files.into_iter().collect()));
    found.chain([(None, named)]).collect()
}

/// When a file that is gone may have gone: when its folder changed last.
fn gone_at(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path.parent()?).ok()?.modified().ok()
}

/// Does something that waits for the disk on a thread of its own. What it brings, it sends.
fn in_background(work: impl FnOnce() + Send + 'static) {
    drop(tokio::task::spawn_blocking(work));
}

fn resolved(path: &Path) -> PathBuf {
    crate::files::paths::resolve(path, None).unwrap_or_else(|path| path)
}
