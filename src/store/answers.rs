//! Answers to permission requests that the user wants remembered.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension as _, Row, params};

use super::{Store, StoreError, now_ms, path_from_sql, path_to_sql, redact};

/// Names an answer. Never used again for another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnswerId(pub i64);

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It may be done.
    Allow,
    /// It may not.
    Deny,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }

    /// A word that this version does not know allows nothing.
    fn of(word: &str) -> Self {
        if word == "allow" { Self::Allow } else { Self::Deny }
    }
}

/// An answer to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAnswer {
    /// The session's root, with links resolved.
    pub project: PathBuf,
    /// The agent's name.
    pub agent: String,
    /// What was answered.
    pub action: Action,
    /// What is remembered of the request, as JSON. The store does not look into it.
    pub rule: String,
    /// How it is listed.
    pub shown: String,
}

/// An answer that is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its name.
    pub id: AnswerId,
    /// When it was made, in milliseconds since 1970.
    pub made_at_ms: i64,
    /// See [`NewAnswer::project`].
    pub project: PathBuf,
    /// See [`NewAnswer::agent`].
    pub agent: String,
    /// See [`NewAnswer::action`].
    pub action: Action,
    /// See [`NewAnswer::rule`].
    pub rule: String,
    /// See [`NewAnswer::shown`].
    pub shown: String,
}

impl Answer {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: AnswerId(row.get(0)?),
            made_at_ms: row.get(1)?,
            project: path_from_sql(row.get(2)?),
            agent: row.get(3)?,
            action: Action::of(&row.get::<_, String>(4)?),
            rule: row.get(5)?,
            shown: row.get(6)?,
        })
    }
}

impl Store {
    /// Remembers an answer. One of the same project, agent and rule is replaced.
    ///
    /// # Errors
    /// [`StoreError::Secret`] if the rule contains what must not be written down; else as any write.
    pub fn remember(&mut self, answer: &NewAnswer) -> Result<AnswerId, StoreError> {
        if redact::json(&answer.rule) != answer.rule {
            return Err(StoreError::Secret);
        }
        let NewAnswer { project, agent, action, rule, shown } = answer;
        let (project, shown, most) = (path_to_sql(project), redact::text(shown), self.limits.answers);
        self.write(|connection| {
            let same = "DELETE FROM answers WHERE project = ?1 AND agent = ?2 AND rule = ?3";
            connection.execute(same, params![project, agent, rule])?;
            let new = "INSERT INTO answers (made_at, project, agent, action, rule, shown) VALUES (?, ?, ?, ?, ?, ?)";
            connection.execute(new, params![now_ms(), project, agent, action.as_str(), rule, shown])?;
            let id = connection.last_insert_rowid();
            let surplus = "DELETE FROM answers WHERE id <= (SELECT id FROM answers ORDER BY id DESC LIMIT 1 OFFSET ?)";
            connection.execute(surplus, params![most])?;
            Ok(AnswerId(id))
        })
    }

    /// The answers of a project, or all of them; the newest first.
    ///
    /// # Errors
    /// As any read.
    pub fn answers(&self, project: Option<&Path>) -> Result<Vec<Answer>, StoreError> {
        let project = project.map(path_to_sql);
        self.read(|connection| {
            let query = "SELECT id, made_at, project, agent, action, rule, shown FROM answers
                         WHERE ?1 IS NULL OR project = ?1 ORDER BY id DESC";
            connection.prepare_cached(query)?.query_map(params![project], Answer::from_row)?.collect()
        })
    }

    /// Forgets an answer; whether there was one.
    ///
    /// # Errors
    /// As any write.
    pub fn revoke(&mut self, id: AnswerId) -> Result<bool, StoreError> {
        self.write(|connection| {
            let query = "DELETE FROM answers WHERE id = ? RETURNING id";
            Ok(connection.query_row(query, params![id.0], |row| row.get::<_, i64>(0)).optional()?.is_some())
        })
    }
}
