//! The client of the Responses API against servers of every dialect.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../responses_server/mod.rs"]
mod responses_server;

mod conversations;
mod failures;
mod network;
mod retries;
mod streams;

use std::time::Duration;

use agentchat::responses::{
    BaseUrl, Client, Dialect, Endpoint, Error, EventStream, Function, Input, Key, Request, Response, Timeouts, Tool,
    Update,
};
use responses_server::{Kind, Server};
use serde_json::json;

/// Short enough that a test which wants a stall gets one soon.
const SHORT: Duration = Duration::from_millis(300);

fn endpoint(server: &Server, kind: Kind) -> Endpoint {
    Endpoint {
        name: "test".to_owned(),
        base_url: BaseUrl::parse(&server.base_url()).unwrap(),
        key: None,
        dialect: serde_json::from_value::<Dialect>(kind.dialect().into()).unwrap(),
        headers: Vec::new(),
        ca_file: None,
        timeouts: Timeouts::default(),
    }
}

fn client(server: &Server, kind: Kind) -> Client {
    Client::new(endpoint(server, kind)).unwrap()
}

/// A client that loses patience soon.
fn impatient(server: &Server) -> Client {
    let timeouts = Timeouts { connect: SHORT, first_byte: SHORT, stall: SHORT };
    Client::new(Endpoint { timeouts, ..endpoint(server, Kind::OpenAi) }).unwrap()
}

fn with_key(server: &Server, key: &str) -> Client {
    Client::new(Endpoint { key: Key::new(key), ..endpoint(server, Kind::OpenAi) }).unwrap()
}

fn ask(text: &str) -> Request {
    Request { model: "m".to_owned(), input: Input::Text(text.to_owned()), ..Request::default() }
}

fn function(name: &str) -> Tool {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    Tool::Function(Function {
        name: name.to_owned(),
        description: None,
        parameters: Some(parameters),
        strict: Some(false),
    })
}

/// Everything that a stream tells, to its end or its error.
async fn all(mut stream: EventStream) -> (Vec<Update>, Result<Response, Error>) {
    let mut updates = Vec::new();
    loop {
        match stream.next().await {
            Ok(Some(step)) => updates.extend(step.updates),
            Ok(None) => return (updates, Ok(stream.into_response())),
            Err(error) => return (updates, Err(error)),
        }
    }
}

fn text(updates: &[Update]) -> String {
    let of = |update: &Update| if let Update::Text { delta, .. } = update { Some(delta.clone()) } else { None };
    updates.iter().filter_map(of).collect()
}

fn thoughts(updates: &[Update]) -> String {
    let of = |update: &Update| if let Update::Thought { delta, .. } = update { Some(delta.clone()) } else { None };
    updates.iter().filter_map(of).collect()
}
