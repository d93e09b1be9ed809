//! Being an agent of the Agent Client Protocol: JSON-RPC on a pair of streams, below what each agent of ours does with it.
//!
//! ```text
//! stdin ─► lines ─► Server ─► Service (the tour, the built-in agent)
//!                     └── answers to our requests ──► Peer ─► stdout
//! ```

mod lines;
mod peer;

use std::io;
use std::pin::pin;
use std::time::Duration;

use agent_client_protocol_schema::v1::Error;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use self::lines::{Line, next_line};
pub(crate) use self::peer::{Answer, Gone, Peer, Reply, RequestError};

/// The longest line taken from the client, in bytes.
const LONGEST_LINE: usize = 64 * 1024 * 1024;
/// Lines that may wait for the client to read them.
const OUTBOUND_LINES: usize = 1024;
/// How long the last lines may take after the client has closed its end.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What an agent does with the client's messages.
pub(crate) trait Service {
    /// Answers a request, at once or later by `reply`.
    fn on_request(&mut self, method: &str, params: Value, reply: Reply) -> impl Future<Output = Result<(), Gone>>;

    /// Takes in a notification.
    fn on_notification(&mut self, method: &str, params: Value);

    /// Ends every turn: the client is gone.
    fn end(self) -> impl Future<Output = ()>;
}

/// Why an agent could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The client's messages cannot be read.
    #[error("the agent cannot read from its editor: {0}. Restart it with :AgentChat restart.")]
    Read(#[source] io::Error),
    /// Messages cannot be sent to the client, for another reason than that it is gone.
    #[error("the agent cannot write to its editor: {0}. Restart it with :AgentChat restart.")]
    Write(#[source] io::Error),
}

/// Serves one client until `input` ends, with what `service` makes of the way to that client. Must run inside a Tokio runtime
/// with time enabled.
///
/// # Errors
/// When reading or writing fails. A client that is gone is not an error.
pub(crate) async fn serve<I, O, S>(input: I, output: O, service: impl FnOnce(Peer) -> S) -> Result<(), ServeError>
where
    I: AsyncRead + Unpin,
    O: AsyncWrite + Unpin,
    S: Service,
{
    let (out, lines) = mpsc::channel(OUTBOUND_LINES);
    let peer = Peer::new(out);
    let mut server = Server { service: service(peer.clone()), peer };
    let mut writer = pin!(write_lines(lines, output));
    let outcome = tokio::select! {
        read = server.read(input) => read,
        written = &mut writer => return written,
    };
    // The turns are ended before the writer is waited for: it ends when nobody can send any more.
    let last_words = async {
        server.end().await;
        writer.await
    };
    match tokio::time::timeout(LAST_WORDS, last_words).await {
        Ok(written) => outcome.and(written),
        Err(_) => outcome,
    }
}

/// Parameters as a type of the protocol.
pub(crate) fn decode<T: DeserializeOwned>(params: Value) -> Result<T, Error> {
    serde_json::from_value(params).map_err(|error| Error::invalid_params().data(json!(error.to_string())))
}

/// The client's error, or one that says that it sent something else.
fn readable_error(error: Value) -> Error {
    let text = error.to_string();
    serde_json::from_value(error).unwrap_or_else(|_| Error::internal_error().data(json!(text)))
}

struct Server<S> {
    service: S,
    peer: Peer,
}

impl<S: Service> Server<S> {
    async fn read<I: AsyncRead + Unpin>(&mut self, input: I) -> Result<(), ServeError> {
        let mut input = BufReader::new(input);
        loop {
            let sent = match next_line(&mut input, LONGEST_LINE).await.map_err(ServeError::Read)? {
                Line::Whole(line) => self.on_line(&line).await,
                Line::TooLong => self.on_too_long(LONGEST_LINE).await,
                Line::End => return Ok(()),
            };
            // The writer has ended, and says why.
            if sent.is_err() {
                return Ok(());
            }
        }
    }

    /// Ends every turn and every wait for an answer.
    async fn end(self) {
        self.service.end().await;
        self.peer.close();
    }

    /// Takes in one line. What is wrong with it is told to the client and costs nothing else.
    async fn on_line(&mut self, line: &[u8]) -> Result<(), Gone> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice(line) {
            Ok(Value::Object(message)) => self.on_message(message).await,
            Ok(_) => self.reject(Error::invalid_request(), "a message is a JSON object").await,
            Err(error) => self.reject(Error::parse_error(), &error.to_string()).await,
        }
    }

    /// Tells the client of a line that is longer than `limit` bytes.
    async fn on_too_long(&mut self, limit: usize) -> Result<(), Gone> {
        let reason = format!("the line is longer than {limit} bytes and was dropped");
        self.reject(Error::invalid_request(), &reason).await
    }

    /// Answers what cannot be told to be a request.
    async fn reject(&self, error: Error, reason: &str) -> Result<(), Gone> {
        let answer: Result<Value, _> = Err(error.data(json!(reason)));
        self.peer.reply_to(Value::Null).send(answer).await
    }

    async fn on_message(&mut self, mut message: Map<String, Value>) -> Result<(), Gone> {
        let id = message.remove("id");
        let params = message.remove("params").unwrap_or(Value::Null);
        match (message.remove("method"), id) {
            (Some(Value::String(method)), Some(id)) => {
                let reply = self.peer.reply_to(id);
                self.service.on_request(&method, params, reply).await
            }
            (Some(Value::String(method)), None) => {
                self.service.on_notification(&method, params);
                Ok(())
            }
            (None, Some(id)) if message.contains_key("result") || message.contains_key("error") => {
                let answer = match message.remove("error") {
                    None | Some(Value::Null) => Ok(message.remove("result").unwrap_or(Value::Null)),
                    Some(error) => Err(readable_error(error)),
                };
                self.peer.answered(&id, answer);
                Ok(())
            }
            (_, id) => {
                let error = Error::invalid_request().data(json!("neither a request, a notification nor a response"));
                let reply = self.peer.reply_to(id.unwrap_or(Value::Null));
                reply.send::<Value>(Err(error)).await
            }
        }
    }
}

async fn write_lines<O: AsyncWrite + Unpin>(
    mut lines: mpsc::Receiver<String>,
    mut output: O,
) -> Result<(), ServeError> {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = async {
            output.write_all(line.as_bytes()).await?;
            output.flush().await
        };
        match written.await {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            Err(error) => return Err(ServeError::Write(error)),
        }
    }
    Ok(())
}
