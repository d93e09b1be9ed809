//! Sessions in the product's store. What cannot be kept is told once, and costs nothing else.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::blocking;
use crate::chat::open_store;
use crate::store::{AgentSession, Store};

/// What is kept of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) items: Vec<Value>,
    /// What the client is told again when it opens the session: who spoke, and what.
    pub(super) transcript: Vec<Said>,
    pub(super) mode: Option<String>,
    pub(super) model: Option<String>,
}

/// A message for the client's transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said {
    pub(super) by_user: bool,
    pub(super) text: String,
}

/// The store, opened when it is first needed.
#[derive(Clone, Default)]
pub(super) struct Records(Arc<Mutex<Option<Store>>>);

impl Records {
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, crate::store::StoreError> + Send + 'static,
    ) -> Result<T, String> {
        let store = Arc::clone(&self.0);
        blocking(move || {
            let mut store = store.lock();
            if store.is_none() {
                *store = Some(open_store().map_err(|error| error.to_string())?);
            }
            let store = store.as_mut().ok_or_else(|| "there is no store".to_owned())?;
            work(store).map_err(|error| error.to_string())
        })
        .await
    }

    pub(super) async fn keep(
        &self,
        id: String,
        cwd: PathBuf,
        title: Option<String>,
        record: &Record,
    ) -> Result<(), String> {
        let body = serde_json::to_string(record).map_err(|error| error.to_string())?;
        let session = AgentSession { id, cwd, title, body, updated_at: String::new() };
        self.with(move |store| store.keep_agent_session(&session)).await
    }

    /// A session that is kept; `None` if there is no such session.
    pub(super) async fn find(&self, id: String) -> Result<Option<(AgentSession, Record)>, String> {
        let found = self.with(move |store| store.agent_session(&id)).await?;
        Ok(found.map(|session| {
            // Of a body that another version wrote, nothing is known.
            let record = serde_json::from_str(&session.body).unwrap_or_default();
            (session, record)
        }))
    }

    pub(super) async fn list(
        &self,
        cwd: Option<PathBuf>,
        offset: u32,
        limit: u32,
    ) -> Result<Vec<AgentSession>, String> {
        self.with(move |store| store.agent_sessions(cwd.as_deref(), offset, limit)).await
    }

    pub(super) async fn delete(&self, id: String) -> Result<bool, String> {
        self.with(move |store| store.delete_agent_session(&id)).await
    }
}
