//! A response while it comes.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;

use super::client::{Client, reason};
use super::error::Error;
use super::event::{self, Content, Event};
use super::sse::{Decoder, Frame};
use super::{Assembly, Response, Update};

/// One event, and what it means.
#[derive(Debug, Clone)]
pub struct Step {
    /// As it came.
    pub event: Event,
    /// What it means; nothing for events that are of no interest.
    pub updates: Vec<Update>,
}

/// A response that is being received. Dropping it closes the connection, at which servers stop.
#[derive(Debug)]
pub struct EventStream {
    client: Client,
    source: Source,
    decoder: Decoder,
    frames: VecDeque<Frame>,
    assembly: Assembly,
    got_bytes: bool,
}

#[derive(Debug)]
enum Source {
    /// Events.
    Events(reqwest::Response),
    /// A whole response in JSON, from an endpoint that does not stream, or was not asked to.
    Whole(Option<reqwest::Response>),
    /// Nothing follows.
    Ended,
}

impl EventStream {
    pub(super) fn new(client: &Client, answer: reqwest::Response) -> Self {
        let kind = answer.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_stream =
            kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"));
        let source = if is_stream { Source::Events(answer) } else { Source::Whole(Some(answer)) };
        Self {
            client: client.clone(),
            source,
            decoder: Decoder::default(),
            frames: VecDeque::new(),
            assembly: Assembly::default(),
            got_bytes: false,
        }
    }

    /// The next event; nothing after the last one. May be dropped at any moment and called again.
    ///
    /// # Errors
    /// See [`Error`]; nothing follows after one. [`Error::partial`] is what had come.
    pub async fn next(&mut self) -> Result<Option<Step>, Error> {
        let result = self.advance().await;
        if result.is_err() {
            self.source = Source::Ended;
        }
        result
    }

    /// Whether the next event has to be waited for, so that this is the moment to show what came.
    pub fn has_to_wait(&self) -> bool {
        self.frames.is_empty()
    }

    /// The response as far as it has come.
    pub fn response(&self) -> Response {
        self.assembly.response()
    }

    /// The response, after the last event.
    pub fn into_response(self) -> Response {
        self.assembly.response()
    }

    async fn advance(&mut self) -> Result<Option<Step>, Error> {
        loop {
            while let Some(frame) = self.frames.pop_front() {
                if let Some(step) = self.take(frame)? {
                    return Ok(Some(step));
                }
            }
            match &mut self.source {
                Source::Ended => return Ok(None),
                Source::Whole(_) => return self.whole().await.map(Some),
                Source::Events(_) => self.read().await?,
            }
        }
    }

    /// What a frame means. After the last one nothing is read any more: some servers keep the connection open.
    fn take(&mut self, frame: Frame) -> Result<Option<Step>, Error> {
        if matches!(self.source, Source::Ended) {
            return Ok(None);
        }
        let mut updates = Vec::new();
        let event = match event::read(frame) {
            Content::Event(event) => event,
            Content::Done => {
                self.assembly.done_without_end(&mut updates);
                self.source = Source::Ended;
                let event = Event { kind: "done".to_owned(), data: json!({"type": "done"}), raw: String::new() };
                return Ok(Some(Step { event, updates }));
            }
            Content::Garbage(beginning) => {
                tracing::warn!(beginning, "an event that is no JSON object");
                return Ok(None);
            }
        };
        self.assembly.apply(&event, &mut updates).map_err(|mut error| {
            error.message = self.client.scrubber.clean(&error.message);
            error.body = None;
            Error::Api(error)
        })?;
        if self.assembly.is_finished() {
            self.source = Source::Ended;
        }
        Ok(Some(Step { event, updates }))
    }

    /// Reads the next piece, and puts what is complete into `frames`.
    async fn read(&mut self) -> Result<(), Error> {
        let limit = self.patience();
        let Source::Events(answer) = &mut self.source else { return Ok(()) };
        let mut frames = Vec::new();
        match tokio::time::timeout(limit, answer.chunk()).await {
            Err(_) => {
                let partial = self.got_bytes.then(|| Box::new(self.response()));
                return Err(Error::Stalled { host: self.client.host(), waited: limit, partial });
            }
            Ok(Ok(Some(piece))) => {
                self.got_bytes = true;
                let pushed = self.decoder.push(&piece, &mut frames);
                pushed.map_err(|error| self.client.protocol(&error.to_string()))?;
            }
            Ok(Ok(None)) => {
                self.decoder.finish(&mut frames);
                if frames.is_empty() {
                    return Err(self.cut("it was closed"));
                }
            }
            Ok(Err(error)) => {
                // What is complete was said, even if the connection broke after it.
                self.decoder.finish(&mut frames);
                if frames.is_empty() {
                    return Err(self.cut(&reason(&error)));
                }
            }
        }
        self.frames.extend(frames);
        Ok(())
    }

    fn cut(&self, reason: &str) -> Error {
        let reason = self.client.scrubber.clean(reason);
        Error::Cut { host: self.client.host(), reason, partial: Box::new(self.response()) }
    }

    fn patience(&self) -> Duration {
        let timeouts = self.client.endpoint.timeouts;
        if self.got_bytes { timeouts.stall } else { timeouts.first_byte }
    }

    async fn whole(&mut self) -> Result<Step, Error> {
        let Source::Whole(answer) = &mut self.source else {
            return Err(self.client.protocol("an answer was read twice"));
        };
        let Some(answer) = answer.take() else {
            return Err(self.client.protocol("reading its answer was given up"));
        };
        let body = self.client.read_body(answer).await?;
        let (response, updates) = self.client.read_whole(&body, &mut self.assembly)?;
        self.source = Source::Ended;
        let data = json!({"type": "response.completed", "response": response});
        let event = Event { kind: "response.completed".to_owned(), data, raw: String::new() };
        Ok(Step { event, updates })
    }
}
