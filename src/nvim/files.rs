//! Files as the user sees them: an agent reads the buffer with its unsaved text, and writes into it.
//!
//! A file that is not loaded, or whose buffer is as it was saved, is read from the disk. Every operation runs in a task of
//! its own, one at a time for each file, and gives up waiting for Neovim after [`PATIENCE`]; but not once an edit is under
//! way, for then only Neovim knows what became of it.

mod buffer;
mod committed;
mod due;
mod hunks;
mod mirror;
mod order;
mod plan;
mod restore;
mod seen;
mod takeover;
mod write;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rmpv::Value;
use tokio::time::{Instant, timeout_at};

use super::channel::Nvim;
use super::hand;
use super::incoming::get;
use crate::checkpoint::Checkpoints;
use crate::checkpoint::history::Was;
use crate::core::effect::{FileJob, ReadRange};
use crate::core::event::FileOutcome;
use crate::core::ids::{ChatId, ConnId, SessionId};
use crate::files::{disk, edits, paths};
use due::Due;
use mirror::Mirrors;
use order::{Order, Place};
use seen::Seen;

/// How long an agent is kept waiting for Neovim (`:help agentchat-files`).
const PATIENCE: Duration = Duration::from_secs(10);
/// The Lua module that has the buffers.
const MODULE: &str = "agentchat.files";

/// Serves the file requests of all sessions.
#[derive(Clone)]
pub struct Files {
    nvim: Nvim,
    checkpoints: Checkpoints,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    order: Order,
    seen: Seen,
    behind: Mutex<HashMap<PathBuf, Behind>>,
    followed: Mutex<HashMap<PathBuf, Followed>>,
    due: Due,
    mirrors: Mirrors,
    /// The files with a write that was refused, which the user was shown.
    refused: Mutex<HashSet<PathBuf>>,
    save_dirty: AtomicBool,
    /// In milliseconds.
    busy_patience: AtomicU64,
    /// Wakes whoever waits for a buffer that the user is busy in.
    freed: tokio::sync::Notify,
}

/// A file that got ahead of a buffer with unsaved changes.
#[derive(Debug)]
struct Behind {
    /// What both were before.
    base: Was,
    /// What the user was offered.
    offered: Option<Was>,
}

/// A buffer that followed its file before it was known whose doing that was: what an agent says of it may be heard later.
#[derive(Debug)]
struct Followed {
    chat: ChatId,
    turn: u64,
    /// When the file changed.
    stamp: Option<SystemTime>,
    /// What the buffer had before, as Neovim would have written it.
    before: String,
}

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// There is no such file.
    #[error("it does not exist")]
    Missing,
    /// It is not text.
    #[error("it is not text")]
    NotText,
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// Why an operation brought nothing.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("Neovim is waiting for the user and did not answer within {} s; try again later", PATIENCE.as_secs())]
    Busy,
    #[error(transparent)]
    Hand(#[from] hand::HandError),
    #[error("{0}")]
    Refused(String),
    #[error("{}: {clash}, and you have not seen that. Nothing was written. Read it again, and base your change on that", path.display())]
    Clash { path: PathBuf, clash: plan::Clash },
    #[error(transparent)]
    Disk(#[from] disk::DiskError),
    #[error("Neovim answered with something unexpected: {0}")]
    Odd(String),
}

impl Trouble {
    fn not_writable(path: &Path, why: &str) -> Self {
        Self::Refused(format!("{} cannot be written: {why}", path.display()))
    }
}

impl From<Trouble> for FileOutcome {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Disk(disk::DiskError::Missing(path)) => {
                Self::Missing(format!("{} does not exist", path.display()))
            }
            Trouble::Refused(_) | Trouble::Clash { .. } | Trouble::Busy => Self::Refused(trouble.to_string()),
            Trouble::Disk(_) | Trouble::Hand(_) | Trouble::Odd(_) => Self::Failed(trouble.to_string()),
        }
    }
}

impl Files {
    /// Serves files through this Neovim; what they were is kept in `checkpoints`.
    pub fn new(nvim: Nvim, checkpoints: Checkpoints) -> Self {
        Self { nvim, checkpoints, shared: Arc::default() }
    }

    /// Whether a write may save what the user has not saved themselves.
    pub fn set_save_dirty(&self, save_dirty: bool) {
        self.shared.save_dirty.store(save_dirty, Ordering::Relaxed);
    }

    /// How long a write waits for a user who is busy in the buffer, in milliseconds. Not longer than an agent is kept waiting
    /// for Neovim, less what its answers need.
    pub fn set_busy_patience(&self, milliseconds: u64) {
        self.shared.busy_patience.store(milliseconds, Ordering::Relaxed);
    }

    /// The user is done with whatever kept a buffer from being edited.
    pub fn freed(&self) {
        self.shared.freed.notify_waiters();
    }

    /// Nothing more will come of this connection.
    pub fn forget(&self, conn: ConnId) {
        self.shared.seen.forget(conn);
    }

    /// Nothing more will come of this session.
    pub fn forget_session(&self, conn: ConnId, session: SessionId) {
        self.shared.seen.forget_session(&(conn, session));
    }

    /// `fs/read_text_file`. Operations on one path are done in the order in which this was called.
    pub fn read(&self, job: FileJob, range: ReadRange) -> impl Future<Output = FileOutcome> + Send + use<> {
        let (files, place) = (self.clone(), self.shared.order.place(&job.path));
        async move { files.read_in_turn(job, range, place).await }
    }

    /// `fs/write_text_file`, in order as above.
    pub fn write(&self, job: FileJob, content: Arc<str>) -> impl Future<Output = FileOutcome> + Send + use<> {
        let (files, place) = (self.clone(), self.shared.order.place(&job.path));
        async move { files.write_in_turn(job, &content, place).await }
    }

    async fn read_in_turn(&self, job: FileJob, range: ReadRange, mut place: Place) -> FileOutcome {
        place.wait().await;
        let path = match resolve(&job).await {
            Ok(path) => path,
            Err(trouble) => return trouble.into(),
        };
        let _turn = self.shared.order.turn(&path).await;
        let deadline = Instant::now() + PATIENCE;
        let current = match self.current_text(&path, deadline).await {
            Ok(current) => current,
            Err(trouble) => return trouble.into(),
        };
        let answer = match edits::lines(&current.text, range) {
            Ok(part) => FileOutcome::Read(part.to_owned()),
            Err(problem) => return FileOutcome::Refused(format!("{}: {problem}", path.display())),
        };
        let turn = self.checkpoints.last_turn(job.chat);
        self.shared.seen.remember_read(&job.session, &path, &current.text, current.is_of_disk, turn);
        self.mirror_ahead(path);
        answer
    }

    /// The text of a file as the user sees it, for a prompt of theirs.
    ///
    /// # Errors
    /// See [`TextError`].
    pub async fn text(&self, path: &Path) -> Result<String, TextError> {
        let path = paths::resolve(path, None).unwrap_or_else(|path| path);
        let _turn = self.shared.order.turn(&path).await;
        let current = self.current_text(&path, Instant::now() + PATIENCE).await;
        current.map(|current| current.text).map_err(|trouble| match trouble {
            Trouble::Disk(disk::DiskError::Missing(_)) => TextError::Missing,
            Trouble::Disk(disk::DiskError::NotText(_) | disk::DiskError::NotAFile(_)) => TextError::NotText,
            other => TextError::Other(other.to_string()),
        })
    }

    async fn write_in_turn(&self, job: FileJob, content: &str, mut place: Place) -> FileOutcome {
        place.wait().await;
        let path = match resolve(&job).await {
            Ok(path) => path,
            Err(trouble) => return trouble.into(),
        };
        let _turn = self.shared.order.turn(&path).await;
        match self.take_in_same(&job, &path, content).await {
            Ok(true) => return FileOutcome::Written,
            Ok(false) => {}
            // Whatever it is, the write will meet it, too.
            Err(trouble) => tracing::debug!(%trouble, ?path, "what is on disk already is not in its buffer"),
        }
        self.keep_before(&job, &path).await;
        let deadline = Instant::now() + PATIENCE;
        let result = match self.stat_to_write(&path, deadline).await {
            Ok(Some(loaded)) => self.write_buffer(&job, &path, loaded, content, deadline).await,
            Ok(None) => self.write_unloaded(&job, &path, content).await,
            Err(trouble) => Err(trouble),
        };
        match result {
            Ok(left) => {
                self.keep_left(&job, &path).await;
                let turn = self.checkpoints.last_turn(job.chat);
                self.shared.seen.remember(&job.session, &path, &left, true, turn);
                FileOutcome::Written
            }
            Err(trouble) => trouble.into(),
        }
    }

    /// Asks Lua, but not for longer than until `deadline`. The call itself is never dropped.
    async fn ask(&self, function: &str, arguments: Vec<Value>, deadline: Instant) -> Result<Value, Trouble> {
        self.ask_module(MODULE, function, arguments, deadline).await
    }

    async fn ask_module(
        &self,
        module: &str,
        function: &str,
        arguments: Vec<Value>,
        deadline: Instant,
    ) -> Result<Value, Trouble> {
        let answer = hand::call(&self.nvim, module, function, arguments);
        match timeout_at(deadline, answer).await {
            Ok(Ok(result)) => Ok(result?),
            Ok(Err(_)) => Err(hand::HandError::Ending.into()),
            Err(_) => Err(Trouble::Busy),
        }
    }
}

async fn read_disk(path: &Path) -> Result<String, Trouble> {
    let path = path.to_owned();
    blocking(move || disk::read(&path)).await?.map_err(Trouble::from)
}

/// Where the path of a request leads. What was allowed is one path without links: should it lead elsewhere by now, that is
/// another file, about which nothing was decided.
async fn resolve(job: &FileJob) -> Result<PathBuf, Trouble> {
    let path = job.path.clone();
    let resolved = blocking(move || paths::resolve(&path, None).unwrap_or_else(|path| path)).await?;
    if resolved == job.path {
        return Ok(resolved);
    }
    Err(Trouble::Refused(format!(
        "{} leads to another file since it was allowed; nothing was done. Ask again",
        job.path.display()
    )))
}

/// Runs something that waits for the disk on a thread of its own: nothing else of the helper waits with it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Trouble::Odd(error.to_string()))
}

fn is_true(answer: &Value, key: &str) -> bool {
    get(answer, key).and_then(Value::as_bool).unwrap_or_default()
}
