//! Opening the file: privately, in its newest format, and with a damaged one out of the way.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{StoreError, migrations, now_ms};
use crate::logging;

/// How long a write waits for that of another Neovim.
const BUSY: Duration = Duration::from_secs(5);

/// The size to which the write-ahead log is cut back once it is worked in, in bytes.
const LOG_BYTES: u32 = 4 * 1024 * 1024;
/// Size of a page of a new file.
const PAGE_BYTES: u32 = 16 * 1024;

/// How often a damaged file is set aside before we give up.
const TRIES: u32 = 2;

pub(super) struct Opened {
    pub(super) connection: Connection,
    /// Where the damaged file is that was found in its place.
    pub(super) set_aside: Option<PathBuf>,
}

/// Opens `path`, or makes it.
pub(super) fn open(path: &Path) -> Result<Opened, StoreError> {
    let cannot =
        |reason: &dyn std::error::Error| StoreError::Open { path: path.to_owned(), reason: reason.to_string() };
    if let Some(folder) = path.parent() {
        logging::create_private_folder(folder).map_err(|error| cannot(&error))?;
    }
    // Only one process looks at a file, brings it forward or sets it aside at a time: another one could take the new file
    // for the damaged one that it saw.
    let lock = open_private(&beside(path, ".lock")).map_err(|error| cannot(&error))?;
    lock.lock().map_err(|error| cannot(&error))?;
    let mut set_aside = None;
    for _ in 0..TRIES {
        match prepare(path) {
            Ok(connection) => return Ok(Opened { connection, set_aside }),
            Err(Problem::Newer(found)) => {
                return Err(StoreError::Newer { path: path.to_owned(), found, known: migrations::NEWEST });
            }
            Err(Problem::Io(error)) => return Err(cannot(&error)),
            Err(Problem::Sqlite(error)) => match error.sqlite_error_code() {
                Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                    tracing::error!(path = %path.display(), %error, "the store is damaged");
                    set_aside = Some(put_aside(path).map_err(|error| cannot(&error))?);
                }
                Some(ErrorCode::DiskFull) => return Err(StoreError::Full),
                _ => return Err(cannot(&error)),
            },
        }
    }
    let reason = io::Error::other("a new file is damaged, too");
    Err(cannot(&reason))
}

enum Problem {
    Newer(u32),
    Io(io::Error),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Problem {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn prepare(path: &Path) -> Result<Connection, Problem> {
    // SQLite gives its companion files the mode of this one.
    drop(open_private(path).map_err(Problem::Io)?);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    let found = migrations::version(&connection)?;
    if found > migrations::NEWEST {
        return Err(Problem::Newer(found));
    }
    if found == 0 {
        // Only possible before there is anything in the file. Most of what is kept is text in large pieces: it takes a
        // quarter of the writes that it would take in pages of the usual size.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // Where the file system cannot share memory, SQLite stays with its rollback journal, which serves as well.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", LOG_BYTES / PAGE_BYTES, |_| Ok(()))?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if found < migrations::NEWEST {
        migrations::migrate(&mut connection, found)?;
    }
    is_whole(&connection)?;
    Ok(connection)
}

/// Fails if a table or an index cannot be walked. Only the tables whose loss the user would notice most, since what was
/// said can be hundreds of megabytes.
fn is_whole(connection: &Connection) -> rusqlite::Result<()> {
    let damage: String = connection.query_row("PRAGMA quick_check('answers')", (), |row| row.get(0))?;
    if damage == "ok" {
        return Ok(());
    }
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    Err(rusqlite::Error::SqliteFailure(code, Some(damage)))
}

/// Renames a damaged file and its companions, and says what the file is called now.
fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let name = format!(".damaged-{}", now_ms());
    for companion in ["-wal", "-shm"] {
        match std::fs::rename(beside(path, companion), beside(path, &format!("{name}{companion}"))) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    let aside = beside(path, &name);
    std::fs::rename(path, &aside)?;
    Ok(aside)
}

/// The path with something after its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

#[cfg(unix)]
fn open_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let file = File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open_private(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path)
}
