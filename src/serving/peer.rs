//! The client as an agent of ours sees it: notifications and requests to it, answers from it.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use agent_client_protocol_schema::v1::Error;
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// The connection has ended: nothing more can be sent or will be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client is gone")]
pub(crate) struct Gone;

/// A request to the client that brought no usable result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("{}", told(.0))]
    Refused(Error),
    #[error("the editor's answer makes no sense ({0})")]
    Malformed(serde_json::Error),
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// The client's words, fit for the middle of a sentence.
fn told(error: &Error) -> String {
    let message = error.message.trim_end_matches('.');
    match error.data.as_ref().and_then(Value::as_str) {
        Some(detail) => format!("{message} ({})", detail.trim_end_matches('.')),
        None => message.to_owned(),
    }
}

type AnswerResult = Result<Value, Error>;

#[derive(Default)]
struct Waiting {
    last_id: i64,
    answers: HashMap<i64, oneshot::Sender<AnswerResult>>,
}

/// A handle on the connection; clones share it. Everything sent keeps its order.
#[derive(Clone)]
pub(crate) struct Peer {
    out: mpsc::Sender<String>,
    waiting: Arc<Mutex<Waiting>>,
}

impl Peer {
    /// A peer whose lines (JSON, without `\n`) go into `out`.
    pub(crate) fn new(out: mpsc::Sender<String>) -> Self {
        Self { out, waiting: Arc::default() }
    }

    /// Sends a notification.
    pub(crate) async fn notify<P: Serialize>(&self, method: &str, params: &P) -> Result<(), Gone> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// Sends a request; its answer can be waited for, or dropped when nobody cares.
    pub(crate) async fn start_request<P: Serialize, R>(&self, method: &str, params: &P) -> Result<Answer<R>, Gone> {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut waiting = self.waiting.lock();
            waiting.last_id += 1;
            let id = waiting.last_id;
            waiting.answers.insert(id, sender);
            id
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        Ok(Answer { receiver, result: PhantomData })
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn request<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &str,
        params: &P,
    ) -> Result<R, RequestError> {
        self.start_request(method, params).await?.wait().await
    }

    /// Takes in the client's answer to one of our requests. One that nobody waits for is not an error.
    pub(crate) fn answered(&self, id: &Value, answer: AnswerResult) {
        let sender = id.as_i64().and_then(|id| self.waiting.lock().answers.remove(&id));
        if let Some(sender) = sender {
            if sender.send(answer).is_err() {
                tracing::debug!(%id, "an answer came after the turn that had asked");
            }
        } else {
            tracing::warn!(%id, "an answer to a request that was never made");
        }
    }

    /// The means to answer the client's request `id` exactly once.
    pub(crate) fn reply_to(&self, id: Value) -> Reply {
        Reply { out: self.out.clone(), id: Some(id) }
    }

    /// Ends all waiting for answers with [`Gone`].
    pub(crate) fn close(&self) {
        self.waiting.lock().answers.clear();
    }

    async fn send(&self, message: &Value) -> Result<(), Gone> {
        self.out.send(message.to_string()).await.map_err(|_| Gone)
    }
}

/// The answer to a request that is under way.
pub(crate) struct Answer<R> {
    receiver: oneshot::Receiver<AnswerResult>,
    result: PhantomData<fn() -> R>,
}

impl<R: DeserializeOwned> Answer<R> {
    /// Waits for it. Nothing is lost when the waiting is given up: it can be waited for again.
    pub(crate) async fn wait(&mut self) -> Result<R, RequestError> {
        let answer = (&mut self.receiver).await.map_err(|_| Gone)?;
        serde_json::from_value(answer.map_err(RequestError::Refused)?).map_err(RequestError::Malformed)
    }
}

/// The duty to answer one request of the client. Dropped without an answer, it answers with an error.
#[derive(Debug)]
pub(crate) struct Reply {
    out: mpsc::Sender<String>,
    /// Echoed as it came, whatever its type. `None` once answered.
    id: Option<Value>,
}

impl Reply {
    /// Answers with a result or an error.
    pub(crate) async fn send<R: Serialize>(mut self, answer: Result<R, Error>) -> Result<(), Gone> {
        let Some(id) = self.id.take() else {
            return Ok(());
        };
        self.out.send(response(&id, answer)).await.map_err(|_| Gone)
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let error = Error::internal_error().data(json!("the agent stopped before it could answer"));
            // A queue that is full belongs to a client that has not read for long, and now is being left.
            if self.out.try_send(response::<()>(&id, Err(error))).is_err() {
                tracing::debug!(%id, "no way left to answer");
            }
        }
    }
}

fn response<R: Serialize>(id: &Value, answer: Result<R, Error>) -> String {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
    .to_string()
}
