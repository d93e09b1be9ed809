//! What the server is told to answer.

use std::time::Duration;

/// One item of an answer.
#[derive(Debug, Clone)]
pub enum Part {
    /// Reasoning.
    Thought(String),
    /// A message.
    Text(String),
    /// A refusal.
    Refusal(String),
    /// A function call: call id, name, arguments.
    Call(String, String, String),
    /// A web search.
    Search(String),
}

/// How the answer ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// `response.completed`.
    Completed,
    /// `response.incomplete`, for this reason.
    Incomplete(String),
    /// `response.failed`, with this code and message.
    Failed(String, String),
    /// `event: error`, with this code and message.
    ErrorEvent(String, String),
    /// A bare `data: {"error": …}`, with this code and message.
    BareError(String, String),
}

/// What becomes of one request.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) parts: Vec<Part>,
    pub(super) ending: Ending,
    /// How many characters a delta has.
    pub(super) piece: usize,
    pub(super) raw: Option<Vec<Vec<u8>>>,
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    /// The connection is closed after this many bytes of the body, without the end that HTTP wants.
    pub(super) cut_after: Option<usize>,
    /// Nothing more is sent after this many bytes of the body, but the connection stays.
    pub(super) stall_after: Option<usize>,
    /// The body waits, at this byte, for the test to open the gate.
    pub(super) gate_at: Option<usize>,
    /// How the body is cut into writes.
    pub(super) write_size: Option<usize>,
    pub(super) pause: Option<Duration>,
    pub(super) done_line: bool,
}

impl Default for Answer {
    fn default() -> Self {
        Self::new()
    }
}

impl Answer {
    /// An empty answer, which is completed.
    pub fn new() -> Self {
        Self {
            parts: Vec::new(),
            ending: Ending::Completed,
            piece: 7,
            raw: None,
            status: 200,
            headers: Vec::new(),
            cut_after: None,
            stall_after: None,
            gate_at: None,
            write_size: None,
            pause: None,
            done_line: false,
        }
    }

    /// Says this.
    pub fn text(self, text: &str) -> Self {
        self.part(Part::Text(text.to_owned()))
    }

    /// Thinks this.
    pub fn thought(self, text: &str) -> Self {
        self.part(Part::Thought(text.to_owned()))
    }

    /// Calls a function.
    pub fn call(self, call_id: &str, name: &str, arguments: &str) -> Self {
        self.part(Part::Call(call_id.to_owned(), name.to_owned(), arguments.to_owned()))
    }

    /// Searches the web.
    pub fn search(self, query: &str) -> Self {
        self.part(Part::Search(query.to_owned()))
    }

    /// Any item.
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Ends so.
    pub fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// Deltas of this many characters.
    pub fn pieces(self, piece: usize) -> Self {
        Self { piece, ..self }
    }

    /// This status with this JSON.
    pub fn error(status: u16, body: serde_json::Value) -> Self {
        Self { status, raw: Some(vec![body.to_string().into_bytes()]), ..Self::new() }
            .header("content-type", "application/json")
    }

    /// This status.
    pub fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// A header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// These bytes as the body of a stream, each piece in a write of its own.
    pub fn raw<Piece: Into<Vec<u8>>>(pieces: impl IntoIterator<Item = Piece>) -> Self {
        Self { raw: Some(pieces.into_iter().map(Into::into).collect()), ..Self::new() }
    }

    /// Closes the connection after this many bytes of the body.
    pub fn cut_after(self, bytes: usize) -> Self {
        Self { cut_after: Some(bytes), ..self }
    }

    /// Sends nothing more after this many bytes of the body.
    pub fn stall_after(self, bytes: usize) -> Self {
        Self { stall_after: Some(bytes), ..self }
    }

    /// Waits at this byte of the body until [`Server::open_gate`](super::Server::open_gate).
    pub fn gate_at(self, bytes: usize) -> Self {
        Self { gate_at: Some(bytes), ..self }
    }

    /// Writes of this many bytes.
    pub fn writes_of(self, bytes: usize) -> Self {
        Self { write_size: Some(bytes), ..self }
    }

    /// A pause after each write, for looking at a stream as a person sees it.
    pub fn paced(self, pause: Duration) -> Self {
        Self { pause: Some(pause), ..self }
    }
}
