//! Sessions, and what was said in them.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::kept::Piece;
use super::{Store, StoreError, now_ms, path_from_sql, path_to_sql, redact};
use crate::core::ids::SessionKey;
use crate::core::text::GrowingText;
use crate::core::transcript::{Entry, Speaker};

/// What is known of a session besides what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The agent's name.
    pub agent: String,
    /// The agent's id for it.
    pub id: String,
    /// Absolute directory.
    pub cwd: PathBuf,
    /// The title that the agent gave it.
    pub title: Option<String>,
}

/// Something that was said, or changed.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEvent {
    /// Which entry of the session, from 0.
    pub entry: usize,
    /// Which part of it, from 0: a message may come in several. What was there is replaced.
    pub part: usize,
    /// What.
    pub piece: Piece,
}

/// What is to be kept of a session at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The session.
    pub key: SessionKey,
    /// What it is.
    pub about: About,
    /// The kept session that this one continues: all of that is in this one, and it goes.
    pub replaces: Option<SessionKey>,
    /// What was said, in order.
    pub events: Vec<SessionEvent>,
}

/// A kept session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its name.
    pub key: SessionKey,
    /// What it is.
    pub about: About,
    /// The first line of the first prompt.
    pub opening: Option<String>,
    /// The first line of what the agent said last.
    pub last: Option<String>,
    /// When it began, in milliseconds since 1970.
    pub created_at_ms: i64,
    /// When something was said last.
    pub updated_at_ms: i64,
}

/// A kept session.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptSession {
    /// What it is.
    pub row: SessionRow,
    /// What was said, in order.
    pub entries: Vec<Entry>,
}

/// Which kept sessions are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// That one.
    Key(SessionKey),
    /// The newest that the agent names so.
    Named {
        /// The agent's name.
        agent: String,
        /// The agent's id for it.
        id: String,
    },
}

/// Longest line that stands for a text in a list, in bytes.
const LINE: usize = 200;

const COLUMNS: &str = "key, agent, id, cwd, title, opening, last, created_at, updated_at";

fn from_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let key: i64 = row.get(0)?;
    Ok(SessionRow {
        key: SessionKey(key.unsigned_abs()),
        about: About { agent: row.get(1)?, id: row.get(2)?, cwd: path_from_sql(row.get(3)?), title: row.get(4)? },
        opening: row.get(5)?,
        last: row.get(6)?,
        created_at_ms: row.get(7)?,
        updated_at_ms: row.get(8)?,
    })
}

fn sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Store {
    /// Keeps what was said. The session begins with its first batch.
    ///
    /// # Errors
    /// As any write.
    pub fn record(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let title = batch.about.title.as_deref().map(redact::text);
        let limits = self.limits;
        self.write(|connection| {
            let (key, now) = (sql(batch.key.0), now_ms());
            begin(connection, batch, title.as_deref(), now)?;
            let mut grown = 0;
            for event in &batch.events {
                grown += put(connection, key, event)?;
            }
            let (opening, last) = (first_line(batch, Speaker::User), last_line(batch));
            let update = "UPDATE sessions SET title = ?2, opening = coalesce(opening, ?3), last = coalesce(?4, last),
                          updated_at = ?5, bytes = bytes + ?6 WHERE key = ?1";
            connection.prepare_cached(update)?.execute(params![key, title, opening, last, now, grown])?;
            trim_session(connection, key, limits.session_bytes)?;
            trim_all(connection, key, limits.sessions_bytes)
        })
    }

    /// The kept sessions, the one in which something was said last first; with `cwd`, those of that folder.
    ///
    /// # Errors
    /// As any read.
    pub fn sessions(&self, cwd: Option<&Path>, limit: u32) -> Result<Vec<SessionRow>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM sessions WHERE ?1 IS NULL OR cwd = ?1 ORDER BY updated_at DESC, key LIMIT ?2"
        );
        let cwd = cwd.map(path_to_sql);
        self.read(|connection| connection.prepare_cached(&query)?.query_map(params![cwd, limit], from_row)?.collect())
    }

    /// A kept session with all that was said in it.
    ///
    /// # Errors
    /// As any read.
    pub fn session(&self, which: &Which) -> Result<Option<KeptSession>, StoreError> {
        self.read(|connection| {
            let Some(row) = row_of(connection, which)? else { return Ok(None) };
            let query = "SELECT entry, body FROM events WHERE session = ? ORDER BY entry, part";
            let mut statement = connection.prepare_cached(query)?;
            let mut events = statement.query(params![sql(row.key.0)])?;
            let mut entries: Vec<(i64, Entry)> = Vec::new();
            while let Some(event) = events.next()? {
                let (number, body): (i64, String) = (event.get(0)?, event.get(1)?);
                if let Some(piece) = Piece::from_json(&body) {
                    add(&mut entries, number, piece);
                }
            }
            Ok(Some(KeptSession { row, entries: entries.into_iter().map(|(_, entry)| entry).collect() }))
        })
    }

    /// What was said in a session as lines of JSON, each a `session/update` of the protocol, oldest first.
    ///
    /// # Errors
    /// As any read.
    pub fn session_lines(&self, key: SessionKey) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let query = "SELECT body FROM events WHERE session = ? ORDER BY entry, part";
            connection.prepare_cached(query)?.query_map(params![sql(key.0)], |row| row.get(0))?.collect()
        })
    }

    /// Forgets the sessions that the agent names so, and all that was said in them; whether there were any.
    ///
    /// # Errors
    /// As any write.
    pub fn delete_session(&mut self, which: &Which) -> Result<bool, StoreError> {
        self.write(|connection| {
            let deleted = match which {
                Which::Key(key) => connection.execute("DELETE FROM sessions WHERE key = ?", params![sql(key.0)])?,
                Which::Named { agent, id } => {
                    connection.execute("DELETE FROM sessions WHERE agent = ? AND id = ?", params![agent, id])?
                }
            };
            Ok(deleted > 0)
        })
    }
}

fn row_of(connection: &Connection, which: &Which) -> rusqlite::Result<Option<SessionRow>> {
    match which {
        Which::Key(key) => {
            let query = format!("SELECT {COLUMNS} FROM sessions WHERE key = ?");
            connection.prepare_cached(&query)?.query_row(params![sql(key.0)], from_row).optional()
        }
        Which::Named { agent, id } => {
            let query =
                format!("SELECT {COLUMNS} FROM sessions WHERE agent = ? AND id = ? ORDER BY updated_at DESC LIMIT 1");
            connection.prepare_cached(&query)?.query_row(params![agent, id], from_row).optional()
        }
    }
}

fn begin(connection: &Connection, batch: &Batch, title: Option<&str>, now: i64) -> rusqlite::Result<()> {
    let About { agent, id, cwd, .. } = &batch.about;
    let replaced = batch.replaces.filter(|replaced| *replaced != batch.key).map(|replaced| sql(replaced.0));
    let begin = "INSERT INTO sessions (key, agent, id, cwd, title, created_at, updated_at, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5, coalesce((SELECT created_at FROM sessions WHERE key = ?6), ?7), ?7, 0)
                 ON CONFLICT (key) DO NOTHING";
    let cwd = path_to_sql(cwd);
    connection.prepare_cached(begin)?.execute(params![sql(batch.key.0), agent, id, cwd, title, replaced, now])?;
    if replaced.is_some() {
        connection.execute("DELETE FROM sessions WHERE key = ?", params![replaced])?;
    }
    Ok(())
}

/// Writes one event, and tells by how many bytes the session has grown.
fn put(connection: &Connection, key: i64, event: &SessionEvent) -> rusqlite::Result<i64> {
    let body = event.piece.to_json().map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
    let (entry, part) = (sql(event.entry as u64), sql(event.part as u64));
    let old = "SELECT octet_length(body) FROM events WHERE session = ? AND entry = ? AND part = ?";
    let old: Option<i64> =
        connection.prepare_cached(old)?.query_row(params![key, entry, part], |row| row.get(0)).optional()?;
    let put = "INSERT OR REPLACE INTO events (session, entry, part, body) VALUES (?, ?, ?, ?)";
    connection.prepare_cached(put)?.execute(params![key, entry, part, body])?;
    Ok(sql(body.len() as u64) - old.unwrap_or_default())
}

/// The first line of the first text of that speaker.
fn first_line(batch: &Batch, wanted: Speaker) -> Option<String> {
    batch.events.iter().find_map(|event| line_of(event, wanted))
}

fn last_line(batch: &Batch) -> Option<String> {
    batch.events.iter().rev().find_map(|event| line_of(event, Speaker::Agent))
}

fn line_of(event: &SessionEvent, wanted: Speaker) -> Option<String> {
    let Piece::Text(speaker, text) = &event.piece else { return None };
    let line = text.lines().find(|line| !line.trim().is_empty()).filter(|_| *speaker == wanted && event.part == 0)?;
    Some(redact::text(&line[..line.floor_char_boundary(LINE)]).into_owned())
}

fn add(entries: &mut Vec<(i64, Entry)>, number: i64, piece: Piece) {
    match piece {
        Piece::Whole(entry) => entries.push((number, entry)),
        Piece::Text(speaker, text) => {
            if let Some((last, Entry::User(grown) | Entry::Agent(grown) | Entry::Thought(grown))) = entries.last_mut()
                && *last == number
            {
                grown.push_str(&text);
                return;
            }
            let mut first = GrowingText::default();
            first.push_str(&text);
            entries.push((number, speaker.entry(first)));
        }
    }
}

/// Takes the oldest entries out of a session that is too long, and a quarter more, so that it is not done every time.
fn trim_session(connection: &Connection, key: i64, most: u64) -> rusqlite::Result<()> {
    let bytes: i64 =
        connection
            .query_row("SELECT coalesce(max(bytes), 0) FROM sessions WHERE key = ?", params![key], |row| row.get(0))?;
    if bytes <= sql(most) {
        return Ok(());
    }
    let surplus = "DELETE FROM events WHERE session = ?1 AND entry < (SELECT max(entry) FROM events WHERE session = ?1)
        AND entry IN (
            SELECT entry FROM (
                SELECT entry, sum(octet_length(body)) OVER (ORDER BY entry DESC, part DESC) AS total
                FROM events WHERE session = ?1
            ) WHERE total > ?2
        )";
    connection.execute(surplus, params![key, sql(most - most / 4)])?;
    let recount =
        "UPDATE sessions SET bytes = (SELECT coalesce(sum(octet_length(body)), 0) FROM events WHERE session = ?1)
                   WHERE key = ?1";
    connection.execute(recount, params![key])?;
    Ok(())
}

/// Forgets the sessions in which nothing was said for longest, when all of them together are too much.
fn trim_all(connection: &Connection, key: i64, most: u64) -> rusqlite::Result<()> {
    let total: i64 = connection.query_row("SELECT coalesce(sum(bytes), 0) FROM sessions", (), |row| row.get(0))?;
    if total <= sql(most) {
        return Ok(());
    }
    let surplus = "DELETE FROM sessions WHERE key <> ?1 AND key IN (
        SELECT key FROM (SELECT key, sum(bytes) OVER (ORDER BY updated_at DESC, key) AS total FROM sessions)
        WHERE total > ?2)";
    connection.execute(surplus, params![key, sql(most)])?;
    // What was deleted is free for what comes; the file itself becomes smaller a little at a time.
    connection.execute_batch("PRAGMA incremental_vacuum(1000)")
}
