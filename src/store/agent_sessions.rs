//! Sessions of the built-in agent: what its model was told and said, so that they can be taken up again.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Store, StoreError, now_ms, path_from_sql, path_to_sql, redact};

/// A session to be kept, or one that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSession {
    /// Its id, unique among all that are kept.
    pub id: String,
    /// The folder that it is in.
    pub cwd: PathBuf,
    /// What it is about.
    pub title: Option<String>,
    /// All of it, as JSON.
    pub body: String,
    /// When it was kept: ISO 8601, in UTC. Empty for one that is to be kept.
    pub updated_at: String,
}

const COLUMNS: &str = "id, cwd, title, body, strftime('%Y-%m-%dT%H:%M:%SZ', updated_at / 1000, 'unixepoch')";

fn from_row(row: &Row<'_>) -> rusqlite::Result<AgentSession> {
    Ok(AgentSession {
        id: row.get(0)?,
        cwd: path_from_sql(row.get(1)?),
        title: row.get(2)?,
        body: row.get(3)?,
        updated_at: row.get(4)?,
    })
}

impl Store {
    /// Keeps a session; one of the same id is replaced. The oldest ones beyond the bound go.
    ///
    /// # Errors
    /// As any write.
    pub fn keep_agent_session(&mut self, session: &AgentSession) -> Result<(), StoreError> {
        let (body, most) = (redact::json(&session.body), self.limits.agent_session_bytes);
        let title = session.title.as_deref().map(redact::text);
        self.write(|connection| {
            let new = "INSERT OR REPLACE INTO agent_sessions (id, cwd, title, body, updated_at, bytes)
                       VALUES (?, ?, ?, ?, ?, ?)";
            let bytes = i64::try_from(body.len()).unwrap_or(i64::MAX);
            connection.execute(new, params![session.id, path_to_sql(&session.cwd), title, body, now_ms(), bytes])?;
            // The newest stays, however large it is.
            let surplus = "DELETE FROM agent_sessions WHERE id <> ?1 AND id IN (
                SELECT id FROM (SELECT id, sum(bytes) OVER (ORDER BY updated_at DESC, id) AS total FROM agent_sessions)
                WHERE total > ?2)";
            connection.execute(surplus, params![session.id, i64::try_from(most).unwrap_or(i64::MAX)])?;
            Ok(())
        })
    }

    /// The session of that id, if it is kept.
    ///
    /// # Errors
    /// As any read.
    pub fn agent_session(&self, id: &str) -> Result<Option<AgentSession>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM agent_sessions WHERE id = ?");
        self.read(|connection| connection.prepare_cached(&query)?.query_row(params![id], from_row).optional())
    }

    /// At most `limit` sessions from number `offset` on, the newest first; with `cwd`, those of that folder. Without their bodies.
    ///
    /// # Errors
    /// As any read.
    pub fn agent_sessions(&self, cwd: Option<&Path>, offset: u32, limit: u32) -> Result<Vec<AgentSession>, StoreError> {
        let columns = COLUMNS.replace("body", "''");
        let query = format!(
            "SELECT {columns} FROM agent_sessions WHERE ?1 IS NULL OR cwd = ?1
             ORDER BY updated_at DESC, id LIMIT ?2 OFFSET ?3"
        );
        self.read(|connection| {
            let row = params![cwd.map(path_to_sql), limit, offset];
            connection.prepare_cached(&query)?.query_map(row, from_row)?.collect()
        })
    }

    /// Forgets a session; whether there was one.
    ///
    /// # Errors
    /// As any write.
    pub fn delete_agent_session(&mut self, id: &str) -> Result<bool, StoreError> {
        self.write(|connection| Ok(connection.execute("DELETE FROM agent_sessions WHERE id = ?", params![id])? > 0))
    }
}
