//! The owner's part in what happens to files on disk: snapshots, looks, undos, each in a task of its own.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Finished, Owner};
use crate::core::attribution::DiskChange;
use crate::core::effect::{Effect, Lookout};
use crate::core::event::{Event, UndoReport};
use crate::core::ids::Millis;
use crate::files::git;

impl Owner {
    /// Does what the core wants done about files on disk.
    pub(super) fn carry_out_on_disk(&mut self, effect: Effect) {
        let checkpoints = self.checkpoints.clone();
        match effect {
            Effect::Survey(root) => in_background(move || checkpoints.survey(&root, None)),
            Effect::BeginTurn(chat, turn, root) => {
                checkpoints.begin(chat, turn, root.clone());
                in_background(move || checkpoints.survey(&root, Some((chat, turn))));
            }
            Effect::NameFiles(chat, paths) => in_background(move || {
                for path in paths {
                    checkpoints.name(chat, &resolved(&path));
                }
            }),
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
                    let _ = finish.send(Finished::Work(Event::DiskChanged(changes)));
                });
            }
            Effect::TakeIn(job) => {
                let (chat, finish, work) = (job.chat, self.finish.clone(), self.files.clone().take_in(job));
                tokio::spawn(async move {
                    if let Some((path, how)) = work.await {
                        // As above.
                        let _ = finish.send(Finished::Work(Event::Adopted(chat, path, how)));
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
                    let _ = finish.send(Finished::Work(Event::Undone(chat, report)));
                });
            }
            _ => {}
        }
    }

    /// The user saved a file; what it is then is theirs.
    pub(super) fn saved_by_user(&self, path: PathBuf) {
        let checkpoints = self.checkpoints.clone();
        in_background(move || checkpoints.saved_by_user(&path));
    }

    fn clock(&self) -> Clock {
        Clock { now: self.now(), wall: SystemTime::now() }
    }
}

/// Which time of the core's a time of the disk is.
#[derive(Debug, Clone, Copy)]
struct Clock {
    now: Millis,
    wall: SystemTime,
}

impl Clock {
    fn at(&self, time: SystemTime) -> Millis {
        // What is from before the helper's start is from its start; nothing is from later than now.
        let ago = self.wall.duration_since(time).map_or(0, |ago| u64::try_from(ago.as_millis()).unwrap_or(u64::MAX));
        Millis(self.now.0.saturating_sub(ago))
    }

    /// These files, with when they changed and what git did meanwhile. A file that is gone changed just now.
    fn changes(&self, root: Option<&Path>, paths: Vec<PathBuf>) -> Vec<DiskChange> {
        let (mut known, mut moves) = (None, git::Moves::default());
        let change = |path: PathBuf| {
            let folder = root.or_else(|| path.parent()).map(Path::to_owned);
            if folder != known {
                moves = folder.as_deref().map(git::moves).unwrap_or_default();
                known = folder;
            }
            let changed = std::fs::metadata(&path)
                .ok()
                .and_then(|metadata| crate::checkpoint::index::Stamp::of(&metadata).time());
            DiskChange {
                at: changed.map_or(self.now, |changed| self.at(changed)),
                path,
                head_moved: moves.head.map(|at| self.at(at)),
                index_written: moves.index.map(|at| self.at(at)),
            }
        };
        paths.into_iter().map(change).collect()
    }
}

/// Does something that waits for the disk on a thread of its own. What it brings, it sends.
fn in_background(work: impl FnOnce() + Send + 'static) {
    drop(tokio::task::spawn_blocking(work));
}

fn resolved(path: &Path) -> PathBuf {
    crate::files::paths::resolve(path, None).unwrap_or_else(|path| path)
}
