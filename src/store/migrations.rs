//! The formats of the file, each a step from the one before it. A step that was released is never changed.

use rusqlite::Connection;

/// From format `n` to `n + 1`, at index `n`.
const STEPS: [&str; NEWEST as usize] = [ANSWERS_AND_RESPONSES];

const ANSWERS_AND_RESPONSES: &str = "
    CREATE TABLE answers (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,
        made_at INTEGER NOT NULL,
        project BLOB NOT NULL,
        agent   TEXT NOT NULL,
        action  TEXT NOT NULL,
        rule    TEXT NOT NULL,
        shown   TEXT NOT NULL
    ) STRICT;
    CREATE INDEX answers_of_project ON answers (project, id);
    CREATE TABLE responses (
        number      INTEGER PRIMARY KEY AUTOINCREMENT,
        id          TEXT NOT NULL UNIQUE,
        endpoint    TEXT NOT NULL,
        previous_id TEXT,
        created_at  INTEGER NOT NULL,
        expires_at  INTEGER,
        input       TEXT NOT NULL,
        output      TEXT NOT NULL,
        bytes       INTEGER NOT NULL
    ) STRICT;
";

/// The newest format, which this build writes.
pub(super) const NEWEST: u32 = 1;

/// The file's format; 0 for a new file.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.query_row("PRAGMA user_version", (), |row| row.get(0))
}

/// Brings a file of format `from` forward. All of it happens, or nothing.
pub(super) fn migrate(connection: &mut Connection, from: u32) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    for step in STEPS.iter().skip(from as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", NEWEST)?;
    transaction.commit()
}
