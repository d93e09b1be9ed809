//! Files as the user sees them: an agent reads the buffer with its unsaved text, and writes into it.
//!
//! A file that is not loaded, or whose buffer is as it was saved, is read from the disk. Every operation runs in a task of
//! its own, one at a time for each file, and gives up waiting for Neovim after [`PATIENCE`]; but not once an edit is under
//! way, for then only Neovim knows what became of it.

mod order;
mod seen;
mod takeover;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rmpv::Value;
use tokio::time::{Instant, timeout_at};

use super::channel::Nvim;
use super::hand;
use super::incoming::{array, get, integer, text};
use crate::checkpoint::Checkpoints;
use crate::core::effect::{FileJob, ReadRange};
use crate::core::event::FileOutcome;
use crate::core::ids::{ConnId, SessionId};
use crate::files::{disk, edits, paths};
use order::{Order, Place};
use seen::{Fingerprint, Seen};

/// How long an agent is kept waiting for Neovim (`:help agentchat-files`).
const PATIENCE: Duration = Duration::from_secs(10);
/// Text per answer of Neovim: larger ones cost nvim-rs more than their length.
const PIECE: u64 = 64 * 1024;
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
    /// What files were before the disk got ahead of buffers with unsaved changes.
    behind: parking_lot::Mutex<std::collections::HashMap<PathBuf, crate::checkpoint::history::Was>>,
    /// Wakes whoever waits for a buffer that the user is busy in.
    freed: tokio::sync::Notify,
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

/// A loaded buffer.
struct Loaded {
    buf: i64,
    tick: u64,
    modified: bool,
    why_not: Option<String>,
    text: BufferText,
}

/// How a buffer's lines make a text.
struct BufferText {
    eol: bool,
    /// Neovim would write an empty file, not one with an empty line.
    is_empty: bool,
    has_byte_order_mark: bool,
    line_break: &'static str,
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
    #[error(transparent)]
    Disk(#[from] disk::DiskError),
    #[error("Neovim answered with something unexpected: {0}")]
    Odd(String),
}

impl From<Trouble> for FileOutcome {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Disk(disk::DiskError::Missing(path)) => {
                Self::Missing(format!("{} does not exist", path.display()))
            }
            Trouble::Refused(_) | Trouble::Busy => Self::Refused(trouble.to_string()),
            Trouble::Disk(_) | Trouble::Hand(_) | Trouble::Odd(_) => Self::Failed(trouble.to_string()),
        }
    }
}

impl Files {
    /// Serves files through this Neovim; what they were is kept in `checkpoints`.
    pub fn new(nvim: Nvim, checkpoints: Checkpoints) -> Self {
        Self { nvim, checkpoints, shared: Arc::default() }
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
            Ok(Ok(path)) => path,
            Ok(Err(outside)) => return FileOutcome::Outside(outside),
            Err(trouble) => return trouble.into(),
        };
        let _turn = self.shared.order.turn(&path).await;
        let deadline = Instant::now() + PATIENCE;
        let text = match self.current_text(&path, deadline).await {
            Ok(text) => text,
            Err(trouble) => return trouble.into(),
        };
        let answer = match edits::lines(&text, range) {
            Ok(part) => FileOutcome::Read(part.to_owned()),
            Err(problem) => return FileOutcome::Refused(format!("{}: {problem}", path.display())),
        };
        self.shared.seen.remember(&job.session, &path, &text);
        answer
    }

    /// The text of a file as the user sees it, for a prompt of theirs.
    ///
    /// # Errors
    /// See [`TextError`].
    pub async fn text(&self, path: &Path) -> Result<String, TextError> {
        let path = paths::resolve(path, None).unwrap_or_else(|path| path);
        let _turn = self.shared.order.turn(&path).await;
        self.current_text(&path, Instant::now() + PATIENCE).await.map_err(|trouble| match trouble {
            Trouble::Disk(disk::DiskError::Missing(_)) => TextError::Missing,
            Trouble::Disk(disk::DiskError::NotText(_) | disk::DiskError::NotAFile(_)) => TextError::NotText,
            other => TextError::Other(other.to_string()),
        })
    }

    async fn write_in_turn(&self, job: FileJob, content: &str, mut place: Place) -> FileOutcome {
        place.wait().await;
        let path = match resolve(&job).await {
            Ok(Ok(path)) => path,
            Ok(Err(outside)) => return FileOutcome::Outside(outside),
            Err(trouble) => return trouble.into(),
        };
        let _turn = self.shared.order.turn(&path).await;
        self.keep_before(&job, &path).await;
        let base = self.shared.seen.get(&job.session, &path);
        let deadline = Instant::now() + PATIENCE;
        let result = match self.stat(&path, deadline).await {
            Ok(Some(loaded)) => self.write_buffer(&path, loaded, content, base, deadline).await,
            Ok(None) => write_to_disk(&path, content).await,
            Err(trouble) => Err(trouble),
        };
        match result {
            Ok(left) => {
                self.keep_left(&job, &path).await;
                self.shared.seen.remember(&job.session, &path, &left);
                FileOutcome::Written
            }
            Err(trouble) => trouble.into(),
        }
    }

    /// What a save left in the file: what was written, or what the user's autocommands made of it, on which the agent's next
    /// write is based. What the user has typed since is no part of that.
    async fn left_by_save(&self, path: &Path, tick: u64, written: String) -> String {
        let disk = read_disk(path).await;
        if disk.as_ref().is_ok_and(|disk| *disk == written) {
            return written;
        }
        let deadline = Instant::now() + PATIENCE;
        // As long as the buffer has not changed since, nobody but the save and its autocommands has written the file.
        match self.stat(path, deadline).await {
            Ok(Some(now)) if now.tick == tick => match disk {
                Ok(disk) => disk,
                // In an encoding that only the buffer understands.
                Err(_) if !now.modified => {
                    self.buffer_text(path, &now, deadline).await.ok().flatten().unwrap_or(written)
                }
                Err(_) => written,
            },
            _ => written,
        }
    }

    /// The text of a file as the user sees it.
    async fn current_text(&self, path: &Path, deadline: Instant) -> Result<String, Trouble> {
        loop {
            let Some(loaded) = self.stat(path, deadline).await? else { return read_disk(path).await };
            if !loaded.modified {
                // The disk holds the same, byte for byte, unless it is in an encoding that only the buffer understands.
                match read_disk(path).await {
                    Err(Trouble::Disk(disk::DiskError::NotText(_))) => {}
                    result => return result,
                }
            }
            if let Some(text) = self.buffer_text(path, &loaded, deadline).await? {
                return Ok(text);
            }
        }
    }

    /// The text of a buffer, or `None` if it changed while it was read.
    async fn buffer_text(&self, path: &Path, loaded: &Loaded, deadline: Instant) -> Result<Option<String>, Trouble> {
        let mut whole = String::new();
        let mut next = 0_u64;
        loop {
            let arguments = vec![loaded.buf.into(), loaded.tick.into(), next.into(), PIECE.into()];
            let answer = self.ask("file_lines", arguments, deadline).await?;
            if is_true(&answer, "stale") {
                return Ok(None);
            }
            for line in array(&answer, "lines") {
                if !whole.is_empty() || next > 0 {
                    whole.push_str(loaded.text.line_break);
                }
                // Bytes that are no text, which a buffer can hold, must not be replaced behind the user's back.
                let line = line.as_str().ok_or_else(|| disk::DiskError::NotText(path.to_owned()))?;
                // Neovim's API gives a NUL in a line as a line break.
                whole.push_str(&line.replace('\n', "\0"));
                next += 1;
            }
            if whole.len() > disk::MAX_TEXT {
                return Err(disk::DiskError::TooLarge(path.to_owned()).into());
            }
            if is_true(&answer, "done") {
                break;
            }
            if array(&answer, "lines").is_empty() {
                return Err(Trouble::Odd(answer.to_string()));
            }
        }
        // A buffer with one empty line is an empty file.
        if loaded.text.eol && !loaded.text.is_empty {
            whole.push_str(loaded.text.line_break);
        }
        Ok(Some(whole))
    }

    async fn write_buffer(
        &self,
        path: &Path,
        mut loaded: Loaded,
        content: &str,
        base: Option<Fingerprint>,
        deadline: Instant,
    ) -> Result<String, Trouble> {
        loop {
            if let Some(why) = loaded.why_not {
                return Err(Trouble::Refused(format!("{} cannot be written: {why}", path.display())));
            }
            if let Some(current) = self.buffer_text(path, &loaded, deadline).await? {
                // A buffer without changes of the user may be older than its file; what the user has is the file.
                let users = if loaded.modified { None } else { read_disk(path).await.ok() };
                let users = loaded.text.without_mark(users.as_deref().unwrap_or(&current));
                let is_news = match base {
                    Some(base) => base != self.shared.seen.fingerprint(users),
                    None => loaded.modified,
                };
                let content = edits::in_form_of(&current, loaded.text.without_mark(content));
                if is_news && content != users {
                    return Err(Trouble::Refused(format!(
                        "{} has changes of the user that you have not seen. Read it again, and base your change on that",
                        path.display()
                    )));
                }
                let current = edits::in_buffer(&current, loaded.text.line_break);
                let lines = edits::in_buffer(&content, loaded.text.line_break);
                let edit = edits::buffer_edits(&current, &lines);
                match self.edit(&loaded, edit, &lines).await? {
                    Edited::Done { tick } => {
                        let written = loaded.text.with_mark(content.into_owned());
                        return Ok(self.left_by_save(path, tick, written).await);
                    }
                    Edited::Stale => {}
                    Edited::Busy => self.wait_until_free(deadline).await?,
                }
            }
            loaded = match self.stat(path, deadline).await? {
                Some(loaded) => loaded,
                None => return write_to_disk(path, content).await,
            };
        }
    }

    /// Edits and saves. However long that takes (a formatter of the user's runs on save), it is waited for.
    async fn edit(&self, loaded: &Loaded, edits: Vec<edits::BufferEdit>, content: &str) -> Result<Edited, Trouble> {
        let edits = edits
            .into_iter()
            .map(|edit| {
                let lines = edit.lines.into_iter().map(Value::from).collect();
                Value::Array(vec![
                    edit.row.into(),
                    edit.col.into(),
                    edit.end_row.into(),
                    edit.end_col.into(),
                    Value::Array(lines),
                ])
            })
            .collect();
        let eol = content.ends_with('\n');
        let options = super::wire::map([("save", true.into()), ("eol", eol.into())]);
        let arguments = vec![loaded.buf.into(), loaded.tick.into(), Value::Array(edits), options];
        let answer = hand::ask(&self.nvim, MODULE, "file_edit", arguments).await?;
        if is_true(&answer, "ok") {
            let tick = integer(&answer, "tick").unwrap_or_default();
            return Ok(Edited::Done { tick });
        }
        if is_true(&answer, "stale") {
            return Ok(Edited::Stale);
        }
        if get(&answer, "busy").is_some() {
            return Ok(Edited::Busy);
        }
        let why = get(&answer, "error").and_then(text).unwrap_or_else(|| answer.to_string());
        Err(Trouble::Refused(why))
    }

    async fn wait_until_free(&self, deadline: Instant) -> Result<(), Trouble> {
        // Also asked now and then, should the end of a mode go unnoticed.
        const AT_MOST: Duration = Duration::from_millis(500);
        let next = (Instant::now() + AT_MOST).min(deadline);
        if timeout_at(next, self.shared.freed.notified()).await.is_err() && Instant::now() >= deadline {
            return Err(Trouble::Refused(
                "The user is editing that file right now; nothing was written. Try again later".to_owned(),
            ));
        }
        Ok(())
    }

    async fn stat(&self, path: &Path, deadline: Instant) -> Result<Option<Loaded>, Trouble> {
        let answer = self.ask("file_stat", vec![path.to_string_lossy().into_owned().into()], deadline).await?;
        if !is_true(&answer, "loaded") {
            return Ok(None);
        }
        let (Some(buf), Some(tick)) = (get(&answer, "buf").and_then(Value::as_i64), integer(&answer, "tick")) else {
            return Err(Trouble::Odd(answer.to_string()));
        };
        let line_break = match get(&answer, "fileformat").and_then(Value::as_str) {
            Some("dos") => "\r\n",
            Some("mac") => "\r",
            _ => "\n",
        };
        Ok(Some(Loaded {
            buf,
            tick,
            modified: is_true(&answer, "modified"),
            why_not: get(&answer, "why_not").and_then(text),
            text: BufferText {
                eol: is_true(&answer, "eol"),
                is_empty: integer(&answer, "line_count") == Some(0),
                has_byte_order_mark: is_true(&answer, "bomb"),
                line_break,
            },
        }))
    }

    /// Asks Lua, but not for longer than until `deadline`. The call itself is never dropped.
    async fn ask(&self, function: &str, arguments: Vec<Value>, deadline: Instant) -> Result<Value, Trouble> {
        let answer = hand::call(&self.nvim, MODULE, function, arguments);
        match timeout_at(deadline, answer).await {
            Ok(Ok(result)) => Ok(result?),
            Ok(Err(_)) => Err(hand::HandError::Ending.into()),
            Err(_) => Err(Trouble::Busy),
        }
    }
}

impl BufferText {
    /// A file's text without the byte order mark that this buffer keeps out of its lines.
    fn without_mark<'a>(&self, text: &'a str) -> &'a str {
        if self.has_byte_order_mark { text.strip_prefix(edits::BYTE_ORDER_MARK).unwrap_or(text) } else { text }
    }

    /// A buffer's text as Neovim writes it.
    fn with_mark(&self, mut text: String) -> String {
        if self.has_byte_order_mark {
            text.insert(0, edits::BYTE_ORDER_MARK);
        }
        text
    }
}

/// Writes a file that is not loaded, in the form that it has; what it holds then.
async fn write_to_disk(path: &Path, content: &str) -> Result<String, Trouble> {
    let (path, content) = (path.to_owned(), content.to_owned());
    blocking(move || {
        let content = match disk::read(&path) {
            Ok(old) => edits::in_form_of(&old, &content).into_owned(),
            // There is no form to keep, or writing says what is wrong.
            Err(_) => content,
        };
        disk::write(&path, &content)?;
        Ok(content)
    })
    .await?
    .map_err(|error: disk::DiskError| error.into())
}

async fn read_disk(path: &Path) -> Result<String, Trouble> {
    let path = path.to_owned();
    blocking(move || disk::read(&path)).await?.map_err(Trouble::from)
}

/// Where the path of a request leads; the inner error is a path outside of where it may. What the user allowed is one path
/// without links: should it lead elsewhere by now, that is another file, about which they have not been asked.
async fn resolve(job: &FileJob) -> Result<Result<PathBuf, PathBuf>, Trouble> {
    let (path, confined_to) = (job.path.clone(), job.confined_to.clone());
    let resolved = blocking(move || paths::resolve(&path, confined_to.as_deref())).await?;
    match resolved {
        Ok(path) if job.confined_to.is_none() && path != job.path => Err(Trouble::Refused(format!(
            "{} leads to another file since the user allowed it; nothing was done. Ask again",
            job.path.display()
        ))),
        resolved => Ok(resolved),
    }
}

/// Runs something that waits for the disk on a thread of its own: nothing else of the helper waits with it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Trouble> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Trouble::Odd(error.to_string()))
}

/// What became of an edit.
enum Edited {
    /// `changedtick` after the save.
    Done {
        tick: u64,
    },
    Stale,
    Busy,
}

fn is_true(answer: &Value, key: &str) -> bool {
    get(answer, key).and_then(Value::as_bool).unwrap_or_default()
}
