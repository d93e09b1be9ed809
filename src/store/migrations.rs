//! The formats of the file, each a step from the one before it. A step that was released is never changed.

use rusqlite::Connection;

/// From format `n` to `n + 1`, at index `n`.
const STEPS: [&str; NEWEST as usize] = [ANSWERS_AND_RESPONSES, SESSIONS, AGENT_SESSIONS];

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

const SESSIONS: &str = "
    CREATE TABLE sessions (
        key        INTEGER PRIMARY KEY,
        agent      TEXT NOT NULL,
        id         TEXT NOT NULL,
        cwd        BLOB NOT NULL,
        title      TEXT,
        opening    TEXT,
        last       TEXT,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        bytes      INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX sessions_by_age ON sessions (updated_at);
    CREATE INDEX sessions_by_name ON sessions (agent, id);
    CREATE TABLE events (
        session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
        entry   INTEGER NOT NULL,
        part    INTEGER NOT NULL,
        body    TEXT NOT NULL,
        PRIMARY KEY (session, entry, part)
    ) STRICT;
";

const AGENT_SESSIONS: &str = "
    CREATE TABLE agent_sessions (
        id         TEXT PRIMARY KEY,
        cwd        BLOB NOT NULL,
        title      TEXT,
        body       TEXT NOT NULL,
        updated_at INTEGER NOT NULL,
        bytes      INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX agent_sessions_by_age ON agent_sessions (updated_at);
";

/// The newest format, which this build writes.
pub(super) const NEWEST: u32 = 3;

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
