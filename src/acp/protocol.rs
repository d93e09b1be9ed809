//! The pure protocol state of one connection: lines in, messages out, and which of our calls an answer belongs to.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::alike::Alike;
use super::decode::Chunk;
use super::envelope::{self, Envelope};
use super::{decode, encode};
use crate::core::ids::{CallId, ConnId};
use crate::core::message::{AgentCall, AgentMessage, AgentRequest, Answer, RpcError};
use crate::core::requests::ReplyToken;

/// What a call of ours asked for, and so how its answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Initialize,
    NewSession,
    LoadSession,
    ResumeSession,
    ForkSession,
    ListSessions,
    CloseSession,
    DeleteSession,
    Authenticate,
    SetOption,
    SetMode,
    SetModel,
    Prompt,
}

impl Kind {
    const fn method(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::NewSession => "session/new",
            Self::LoadSession => "session/load",
            Self::ResumeSession => "session/resume",
            Self::ForkSession => "session/fork",
            Self::ListSessions => "session/list",
            Self::CloseSession => "session/close",
            Self::DeleteSession => "session/delete",
            Self::Authenticate => "authenticate",
            Self::SetOption => "session/set_config_option",
            Self::SetMode => "session/set_mode",
            Self::SetModel => "session/set_model",
            Self::Prompt => "session/prompt",
        }
    }
}

/// What a line was.
#[derive(Debug)]
pub enum Incoming<'a> {
    /// A piece of a message, which almost every line is.
    Chunk(Chunk<'a>),
    /// Something for the core.
    Message(AgentMessage),
    /// An array of messages: what of it somebody waits for, which may be nothing.
    Array(Vec<AgentMessage>),
    /// Not a message of the protocol: log text, a banner, an answer that nobody waits for. For the log.
    Noise(&'static str),
}

/// One connection's protocol state.
#[derive(Debug)]
pub struct Protocol {
    conn: ConnId,
    calls: HashMap<u64, Kind>,
    /// What the last chunk was like.
    alike: Alike,
}

impl Protocol {
    /// The state of a fresh connection.
    pub fn new(conn: ConnId) -> Self {
        Self { conn, calls: HashMap::new(), alike: Alike::default() }
    }

    /// A request of ours as a line; its answer will be recognised.
    pub fn call(&mut self, id: CallId, call: &AgentCall) -> Vec<u8> {
        let kind = match call {
            AgentCall::Initialize => Kind::Initialize,
            AgentCall::NewSession { .. } => Kind::NewSession,
            AgentCall::LoadSession { .. } => Kind::LoadSession,
            AgentCall::ResumeSession { .. } => Kind::ResumeSession,
            AgentCall::ForkSession { .. } => Kind::ForkSession,
            AgentCall::ListSessions { .. } => Kind::ListSessions,
            AgentCall::CloseSession { .. } => Kind::CloseSession,
            AgentCall::DeleteSession { .. } => Kind::DeleteSession,
            AgentCall::Logout | AgentCall::Authenticate { .. } => Kind::Authenticate,
            AgentCall::SetOption { .. } => Kind::SetOption,
            AgentCall::SetMode { .. } => Kind::SetMode,
            AgentCall::SetModel { .. } => Kind::SetModel,
            AgentCall::Prompt { .. } => Kind::Prompt,
        };
        self.calls.insert(id.0, kind);
        encode::call(id, call)
    }

    /// Reads one line.
    pub fn line<'a>(&'a mut self, line: &'a [u8]) -> Incoming<'a> {
        if let Some(text) = self.alike.text(line) {
            return Incoming::Chunk(self.alike.chunk(text));
        }
        // UTF-8 once for the whole line, and not again for every string in it.
        let chunk = simdutf8::basic::from_utf8(line).ok().and_then(|line| Some((line, decode::chunk_line(line)?)));
        if let Some((line, chunk)) = chunk {
            if let Some(alike) = Alike::of(line, &chunk) {
                self.alike = alike;
            }
            return Incoming::Chunk(chunk);
        }
        let text = envelope::text_of(line);
        if let Some(messages) = envelope::parse_array(&text) {
            return Incoming::Array(self.array(messages));
        }
        match envelope::parse(&text) {
            None => Incoming::Noise("not JSON-RPC"),
            Some(Envelope::Neither) => Incoming::Noise("neither request nor answer"),
            Some(Envelope::Notification { method, params }) => notification(&method, params),
            Some(Envelope::Request { id, method, .. }) if self.is_echo(id.get(), &method) => {
                Incoming::Noise("an echo of our own call")
            }
            Some(Envelope::Request { id, method, params }) => Incoming::Message(AgentMessage::Request {
                token: ReplyToken::new(self.conn, id.get()),
                request: decode::request(&method, params),
            }),
            Some(Envelope::Response { id, result }) => self.response(id, result),
        }
    }

    /// What is in an array of messages. ACP has none: its requests are refused, each by its id, so that no agent waits for
    /// ever; answers to us are taken for what they are. The rest is skipped.
    fn array(&mut self, messages: Vec<Envelope<'_>>) -> Vec<AgentMessage> {
        let mut found = Vec::new();
        for message in messages {
            match message {
                Envelope::Request { id, method, .. } if !self.is_echo(id.get(), &method) => {
                    let token = ReplyToken::new(self.conn, id.get());
                    found.push(AgentMessage::Request { token, request: AgentRequest::Batched });
                }
                Envelope::Response { id, result } => {
                    if let Incoming::Message(message) = self.response(id, result) {
                        found.push(message);
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// A terminal between the agent and us, or a prompt that reads a line, gives back what we sent. An answer to it would
    /// come back too, and be taken for the agent's.
    fn is_echo(&self, id: &str, method: &str) -> bool {
        id.parse().is_ok_and(|id: u64| self.calls.get(&id).is_some_and(|kind| kind.method() == method))
    }

    fn response(&mut self, id: &RawValue, result: Result<&RawValue, &RawValue>) -> Incoming<'static> {
        let Some((call, kind)) = self.answered(id.get()) else {
            return Incoming::Noise("an answer that nobody waits for");
        };
        let result = match result {
            Err(error) => Err(decode::error(error)),
            Ok(result) => match kind {
                Kind::Initialize => decode::initialized(result),
                Kind::NewSession | Kind::ForkSession => decode::session_created(result),
                Kind::LoadSession | Kind::ResumeSession => decode::session_opened(result),
                Kind::ListSessions => decode::sessions(result),
                Kind::CloseSession | Kind::DeleteSession | Kind::Authenticate | Kind::SetMode | Kind::SetModel => {
                    Ok(Answer::Done)
                }
                Kind::SetOption => decode::option_set(result),
                Kind::Prompt => decode::turn_ended(result),
            },
        };
        Incoming::Message(AgentMessage::Response { call, result })
    }

    /// Our call with this id, which has its answer now.
    fn answered(&mut self, id: &str) -> Option<(CallId, Kind)> {
        // Some libraries send the number back as a string.
        let number = id.trim_matches('"').parse::<u64>().ok()?;
        Some((CallId(number), self.calls.remove(&number)?))
    }

    /// A line over the limit was dropped, which began with `head`: the user hears of it, and so does whoever waits for an
    /// answer to it, or for what was the answer.
    pub fn too_long(&mut self, head: &[u8], length: usize, limit: usize) -> Vec<AgentMessage> {
        let mut messages = vec![AgentMessage::Unusable(format!(
            "The agent sent a message of more than {limit} bytes ({length} so far); it was dropped. \
             `max_line_bytes` sets the limit."
        ))];
        let envelope::Head { id: Some(id), method } = envelope::head(head) else { return messages };
        if let Some(method) = method {
            if !self.is_echo(&id, &method) {
                messages.push(AgentMessage::Request {
                    token: ReplyToken::new(self.conn, &*id),
                    request: AgentRequest::TooLong { limit },
                });
            }
        } else if let Some((call, _)) = self.answered(&id) {
            let message = format!("its answer had more than {limit} bytes, which is what `max_line_bytes` allows");
            messages.push(AgentMessage::Response { call, result: Err(RpcError { code: None, message }) });
        }
        messages
    }
}

fn notification(method: &str, params: Option<&RawValue>) -> Incoming<'static> {
    let message = match (method, params) {
        ("session/update", Some(params)) => match decode::update(params) {
            Ok((session, update)) => AgentMessage::Update { session, update },
            Err(problem) => AgentMessage::Unusable(format!("An update of the agent could not be read: {problem}")),
        },
        ("$/cancel_request", Some(params)) => {
            #[derive(serde::Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct Cancel<'a> {
                #[serde(borrow)]
                request_id: &'a RawValue,
            }
            match serde_json::from_str::<Cancel<'_>>(params.get()) {
                Ok(cancel) => AgentMessage::CancelRequest { raw_id: cancel.request_id.get().into() },
                Err(_) => return Incoming::Noise("a $/cancel_request without a requestId"),
            }
        }
        ("elicitation/complete", Some(params)) => match decode::elicitation_completed(params) {
            Some(id) => AgentMessage::ElicitationCompleted(id),
            None => return Incoming::Noise("an elicitation/complete without an elicitationId"),
        },
        // Extensions, and what a later protocol may bring: ignored, as the specification asks.
        _ => return Incoming::Noise("an unknown notification"),
    };
    Incoming::Message(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_calls_come_back_as_noise_and_other_requests_with_their_ids_do_not() {
        let mut protocol = Protocol::new(ConnId(1));
        let line = protocol.call(CallId(1), &AgentCall::Initialize);
        let echo = [b"\x1b[1Gcode: ".as_slice(), &line].concat();
        assert!(matches!(protocol.line(&echo), Incoming::Noise("an echo of our own call")));
        let request = protocol.line(br#"{"jsonrpc":"2.0","id":1,"method":"terminal/create"}"#);
        assert!(matches!(request, Incoming::Message(AgentMessage::Request { .. })));
        let answer = protocol.line(br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#);
        assert!(matches!(answer, Incoming::Message(AgentMessage::Response { call: CallId(1), result: Ok(_) })));
    }

    #[test]
    fn whoever_waits_for_something_in_an_array_hears_of_it() {
        let mut protocol = Protocol::new(ConnId(1));
        let echo = protocol.call(CallId(1), &AgentCall::Initialize);
        let mut array = |line: &str| match protocol.line(line.as_bytes()) {
            Incoming::Array(messages) => messages,
            other => panic!("{other:?}"),
        };
        let echo = String::from_utf8(echo).unwrap();
        let messages = array(&format!(
            r#"[{{"id":"a","method":"fs/read_text_file"}}, 7, {{"method":"session/update"}}, {echo}, {{"id":null,"method":"x"}},
                {{"id":1,"result":{{"protocolVersion":1}}}}, {{"id":9,"result":null}}]"#,
        ));
        let ids: Vec<_> = messages
            .iter()
            .map(|message| match message {
                AgentMessage::Request { token, request: AgentRequest::Batched } => token.raw_id().to_owned(),
                AgentMessage::Response { call: CallId(1), result: Ok(_) } => "the answer".into(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(ids, ["\"a\"", "null", "the answer"]);
        assert!(array("[]").is_empty());
        assert!(matches!(protocol.line(b"[info] {\"id\":1}"), Incoming::Noise(_)));
    }

    #[test]
    fn whoever_waits_for_a_message_that_was_too_long_hears_of_it() {
        let mut protocol = Protocol::new(ConnId(1));
        let echo = protocol.call(CallId(1), &AgentCall::Initialize);
        assert_eq!(protocol.too_long(&echo, 9_000, 4_000).len(), 1, "an echo is not answered");
        let request = protocol.too_long(br#"{"id":"a","method":"fs/write_text_file","params":{"#, 9_000, 4_000);
        let [AgentMessage::Unusable(_), AgentMessage::Request { token, request }] = &request[..] else {
            panic!("{request:?}")
        };
        assert_eq!(token.raw_id(), "\"a\"");
        assert!(matches!(request, AgentRequest::TooLong { limit: 4_000 }));
        let answer = br#"{"id":1,"result":{"agentInfo":"xx"#;
        let response = protocol.too_long(answer, 9_000, 4_000);
        assert!(matches!(response[..], [_, AgentMessage::Response { call: CallId(1), result: Err(_) }]));
        assert_eq!(protocol.too_long(answer, 9_000, 4_000).len(), 1, "nobody waits any more");
        assert_eq!(protocol.too_long(br#"{"method":"session/update","params":{"#, 9_000, 4_000).len(), 1);
    }
}
