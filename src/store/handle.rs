//! The store on a thread of its own, for code that must not wait for the disk.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use super::{Answer, AnswerId, KeptResponse, NewAnswer, NewResponse, Store, StoreError};

/// Something to be done on the thread.
type Job = Box<dyn FnOnce(&mut Result<Store, StoreError>) + Send>;

/// Reaches the thread that has the store open. Cheap to clone; the thread ends with the last one, once all is written.
///
/// What is asked for is done in order, also when nobody waits for the answer any more.
#[derive(Debug, Clone)]
pub struct Handle {
    jobs: mpsc::Sender<Job>,
}

impl Handle {
    /// Starts the thread, which opens the file at `path`. That it could not be opened is told by every call, and by
    /// [`Handle::notice`].
    pub fn new(path: PathBuf) -> Self {
        let (jobs, work) = mpsc::channel::<Job>();
        let started = thread::Builder::new().name("store".to_owned()).spawn(move || {
            let mut store = Store::open(&path);
            while let Ok(job) = work.recv() {
                job(&mut store);
            }
        });
        if let Err(error) = started {
            // The receiver is gone with the thread: every call says so.
            tracing::error!(%error, "the store has no thread");
        }
        Self { jobs }
    }

    /// Does something with the store, after everything that was asked for before.
    ///
    /// # Errors
    /// What `work` says, or [`StoreError::Unavailable`] if there is no store.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.send(move |store| {
            // Nobody may be waiting any more.
            let _ = answer.send(match store {
                Ok(store) => work(store),
                Err(error) => Err(StoreError::Unavailable(error.to_string())),
            });
        });
        answered.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the store is closed".to_owned())))
    }

    /// The same, for what nobody waits for; a failure is logged.
    pub fn post(&self, work: impl FnOnce(&mut Store) -> Result<(), StoreError> + Send + 'static) {
        self.send(move |store| {
            if let Ok(store) = store
                && let Err(error) = work(store)
            {
                tracing::warn!(%error, "something was not kept");
            }
        });
    }

    fn send(&self, job: impl FnOnce(&mut Result<Store, StoreError>) + Send + 'static) {
        // Without a thread the job is dropped, and whoever waits for it is told.
        let _ = self.jobs.send(Box::new(job));
    }

    /// What the user should know about the store, once: that it could not be opened, or that a damaged one was set aside.
    pub async fn notice(&self) -> Option<String> {
        match self.with(|store| Ok(store.notice())).await {
            Ok(notice) => notice,
            Err(error) => Some(error.to_string()),
        }
    }

    /// Waits until everything that was asked for before is done.
    pub async fn flush(&self) {
        // An answer comes in any case, and says nothing.
        let _ = self.with(|_| Ok(())).await;
    }

    /// See [`Store::remember`].
    ///
    /// # Errors
    /// As there.
    pub async fn remember(&self, answer: NewAnswer) -> Result<AnswerId, StoreError> {
        self.with(move |store| store.remember(&answer)).await
    }

    /// See [`Store::answers`].
    ///
    /// # Errors
    /// As there.
    pub async fn answers(&self, project: Option<&Path>) -> Result<Vec<Answer>, StoreError> {
        let project = project.map(Path::to_owned);
        self.with(move |store| store.answers(project.as_deref())).await
    }

    /// See [`Store::revoke`].
    ///
    /// # Errors
    /// As there.
    pub async fn revoke(&self, id: AnswerId) -> Result<bool, StoreError> {
        self.with(move |store| store.revoke(id)).await
    }

    /// See [`Store::keep_response`].
    ///
    /// # Errors
    /// As there.
    pub async fn keep_response(&self, response: NewResponse) -> Result<(), StoreError> {
        self.with(move |store| store.keep_response(&response)).await
    }

    /// See [`Store::response`].
    ///
    /// # Errors
    /// As there.
    pub async fn response(&self, id: &str) -> Result<Option<KeptResponse>, StoreError> {
        let id = id.to_owned();
        self.with(move |store| store.response(&id)).await
    }
}
