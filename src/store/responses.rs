//! Responses of language models that `agentchat chat` keeps where the endpoint does not.

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Store, StoreError, now_ms, redact};

/// A response to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewResponse {
    /// Its id, unique among all that are kept.
    pub id: String,
    /// The endpoint's base address.
    pub endpoint: String,
    /// The response that it continues.
    pub previous_id: Option<String>,
    /// Seconds since 1970.
    pub created_at: i64,
    /// The input items, as JSON.
    pub input: String,
    /// The response, as JSON.
    pub output: String,
    /// Seconds since 1970 after which it is gone; never if `None`.
    pub expires_at: Option<i64>,
}

/// A response that is kept.
pub type KeptResponse = NewResponse;

const COLUMNS: &str = "id, endpoint, previous_id, created_at, input, output, expires_at";

fn from_row(row: &Row<'_>) -> rusqlite::Result<KeptResponse> {
    Ok(NewResponse {
        id: row.get(0)?,
        endpoint: row.get(1)?,
        previous_id: row.get(2)?,
        created_at: row.get(3)?,
        input: row.get(4)?,
        output: row.get(5)?,
        expires_at: row.get(6)?,
    })
}

impl Store {
    /// Keeps a response; one of the same id is replaced. Those that have expired go, and the oldest ones beyond the bound.
    ///
    /// # Errors
    /// As any write.
    pub fn keep_response(&mut self, response: &NewResponse) -> Result<(), StoreError> {
        let NewResponse { id, endpoint, previous_id, created_at, input, output, expires_at } = response;
        let (input, output, most) = (redact::json(input), redact::json(output), self.limits.response_bytes);
        let bytes = input.len() + output.len();
        self.write(|connection| {
            connection
                .execute("DELETE FROM responses WHERE id = ? OR expires_at <= ?", params![id, now_ms() / 1000])?;
            let new = "INSERT INTO responses (id, endpoint, previous_id, created_at, input, output, expires_at, bytes)
                       VALUES (?, ?, ?, ?, ?, ?, ?, ?)";
            let row =
                params![id, endpoint, previous_id, created_at, input, output, expires_at, i64::try_from(bytes).ok()];
            connection.execute(new, row)?;
            // The newest stays, however large it is.
            let surplus = "DELETE FROM responses WHERE number < (SELECT max(number) FROM responses) AND number IN (
                SELECT number FROM (SELECT number, sum(bytes) OVER (ORDER BY number DESC) AS total FROM responses)
                WHERE total > ?)";
            connection.execute(surplus, params![i64::try_from(most).unwrap_or(i64::MAX)])?;
            Ok(())
        })
    }

    /// The response of that id, if it is kept and has not expired.
    ///
    /// # Errors
    /// As any read.
    pub fn response(&self, id: &str) -> Result<Option<KeptResponse>, StoreError> {
        let query = format!("SELECT {COLUMNS} FROM responses WHERE id = ? AND (expires_at IS NULL OR expires_at > ?)");
        self.read(|connection| {
            connection.prepare_cached(&query)?.query_row(params![id, now_ms() / 1000], from_row).optional()
        })
    }

    /// At most `limit` responses, the newest first; with `before`, those that were kept before that one.
    ///
    /// # Errors
    /// As any read.
    pub fn responses(&self, limit: u32, before: Option<&str>) -> Result<Vec<KeptResponse>, StoreError> {
        let query = format!(
            "SELECT {COLUMNS} FROM responses WHERE (expires_at IS NULL OR expires_at > ?1)
             AND (?2 IS NULL OR number < (SELECT number FROM responses WHERE id = ?2)) ORDER BY number DESC LIMIT ?3"
        );
        self.read(|connection| {
            let row = params![now_ms() / 1000, before, limit];
            connection.prepare_cached(&query)?.query_map(row, from_row)?.collect()
        })
    }

    /// Forgets a response; whether there was one.
    ///
    /// # Errors
    /// As any write.
    pub fn delete_response(&mut self, id: &str) -> Result<bool, StoreError> {
        self.write(|connection| Ok(connection.execute("DELETE FROM responses WHERE id = ?", params![id])? > 0))
    }
}
