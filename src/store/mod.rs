//! Everything that outlives the helper, in one SQLite file of the state directory: remembered answers, kept responses,
//! sessions and what was said in them.
//!
//! * **Private**: mode 0600 in a folder of mode 0700; [`redact`] runs over every text before it is written.
//! * **Shared**: several Neovims have the same file open (WAL, and a busy timeout). What one writes, the others read.
//! * **Versioned**: `user_version` is the format. An older file is brought forward when it is opened, a newer one is left
//!   alone and the product works without. A file that is damaged is set aside, never deleted.
//! * **Bounded**: see [`Limits`]. The oldest goes first.
//!
//! All calls of [`Store`] wait for the disk. The helper makes them through a [`Handle`], on a thread that has the
//! connection.

mod agent_sessions;
mod answers;
mod handle;
mod kept;
mod migrations;
mod open;
mod redact;
mod responses;
mod sessions;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode};

pub use agent_sessions::AgentSession;
pub use answers::{Action, Answer, AnswerId, NewAnswer};
pub use handle::Handle;
pub use kept::Piece;
pub use responses::{KeptResponse, NewResponse};
pub use sessions::{About, Batch, KeptSession, SessionEvent, SessionRow, Which};

/// The file's name in the state directory.
pub const FILE_NAME: &str = "store.db";

/// The plugin's state directory, `stdpath("state")/agentchat`, for the parts of the program that run without Neovim.
/// `variable` reads the environment.
pub fn state_folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let app = set("NVIM_APPNAME").unwrap_or_else(|| "nvim".into());
    let folder = if cfg!(windows) {
        // See |standard-path|: there it is the folder of the data.
        let data = set("XDG_STATE_HOME").or_else(|| set("LOCALAPPDATA")).map(PathBuf::from)?;
        let mut name = app;
        name.push("-data");
        data.join(name)
    } else {
        let home = || Some(PathBuf::from(set("HOME")?).join(".local/state"));
        set("XDG_STATE_HOME").map(PathBuf::from).or_else(home)?.join(app)
    };
    Some(folder.join("agentchat"))
}

/// How much is kept, of each kind. What is older than that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Remembered answers, of all projects together.
    pub answers: u32,
    /// Bytes of kept responses, with what was asked.
    pub response_bytes: u64,
    /// Bytes of what was said in one session.
    pub session_bytes: u64,
    /// The same of all sessions together.
    pub sessions_bytes: u64,
    /// Bytes of the built-in agent's sessions, all together.
    pub agent_session_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            answers: 10_000,
            response_bytes: 64 * MIB,
            session_bytes: 32 * MIB,
            sessions_bytes: 256 * MIB,
            agent_session_bytes: 128 * MIB,
        }
    }
}

/// Why something could not be kept or read. The product works without the store, and says what it does without.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder, or the file in it, cannot be made or opened.
    #[error("nothing is remembered, since the store cannot be opened ({reason}): check {}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system, or SQLite, says about it.
        reason: String,
    },
    /// A newer version of the plugin has been here.
    #[error("update agentchat: its store is of a newer version ({found}, not {known}); nothing is remembered")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this build knows.
        known: u32,
    },
    /// There is no room on the disk.
    #[error("nothing is remembered, since the disk is full: free some space")]
    Full,
    /// Another Neovim was writing for longer than we wait.
    #[error("the store was busy for too long: try again")]
    Busy,
    /// What is to be remembered has a secret in it, without which it would mean something else.
    #[error("this is not remembered, since it contains what looks like a secret")]
    Secret,
    /// The file is damaged; the next time that it is opened, it is set aside.
    #[error("the store is damaged: start Neovim again, then it is set aside and begins anew ({})", .0.display())]
    Damaged(PathBuf),
    /// The store could not be opened, and why, or its thread has ended.
    #[error("{0}")]
    Unavailable(String),
    /// Anything else that SQLite says.
    #[error("the store failed ({0}): `:AgentChat log` may tell more")]
    Sqlite(#[source] rusqlite::Error),
}

/// The open store. See the [module](self).
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    limits: Limits,
    set_aside: Option<PathBuf>,
}

impl Store {
    /// Opens the file at `path`, or makes it, with its folder.
    ///
    /// # Errors
    /// [`StoreError::Open`] if it cannot be opened or made, [`StoreError::Newer`] if it is not ours to touch.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, Limits::default())
    }

    /// The same, with other bounds.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(path: &Path, limits: Limits) -> Result<Self, StoreError> {
        let open::Opened { connection, set_aside } = open::open(path)?;
        Ok(Self { connection, path: path.to_owned(), limits, set_aside })
    }

    /// What the user should know about how the file was opened: that a damaged one was set aside, and where it is.
    pub fn notice(&self) -> Option<String> {
        let aside = self.set_aside.as_ref()?;
        Some(format!("The store was damaged and begins anew; the damaged one is kept as {}.", aside.display()))
    }

    /// What became of an operation, in terms of what the user can do about it.
    fn error(&self, error: rusqlite::Error) -> StoreError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Damaged(self.path.clone()),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                StoreError::Open { path: self.path.clone(), reason: error.to_string() }
            }
            _ => StoreError::Sqlite(error),
        }
    }

    /// Runs `work` as one transaction: all of it happens, or nothing.
    fn write<T>(&mut self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let done = (|| {
            // At once, so that waiting for another Neovim is up to the busy timeout: later, SQLite would not wait.
            let transaction = self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })();
        done.map_err(|error| self.error(error))
    }

    /// Reads, without a change.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        work(&self.connection).map_err(|error| self.error(error))
    }
}

/// Milliseconds since 1970.
fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A path as it is written down: its bytes, where paths are bytes.
fn path_to_sql(path: &Path) -> Vec<u8> {
    path.as_os_str().as_encoded_bytes().to_vec()
}

#[cfg(unix)]
fn path_from_sql(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn path_from_sql(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}
