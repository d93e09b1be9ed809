//! The server itself: a thread for each connection, all state behind one lock.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::answer::Answer;
use super::http::{self, RawRequest};
use super::render::{self, Kind};
use super::rules;

const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it was received.
#[derive(Debug, Clone)]
pub struct Received {
    /// The method.
    pub method: String,
    /// The path with its query, without `/v1`.
    pub path: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body: JSON, or a string if it is none.
    pub body: Value,
}

impl Received {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Debug, Clone)]
struct Kept {
    response: Value,
    /// The input of this request alone.
    input: Vec<Value>,
    previous: Option<String>,
}

#[derive(Default)]
struct State {
    answers: VecDeque<Answer>,
    requests: Vec<Received>,
    kept: BTreeMap<String, Kept>,
    counter: u32,
    gate_open: bool,
    /// Bodies whose client was gone before their end.
    hung_up: u32,
    models: Vec<String>,
    key: Option<String>,
}

struct Shared {
    kind: Kind,
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
}

/// A server on a port of its own, until it is dropped.
pub struct Server {
    shared: Arc<Shared>,
    address: std::net::SocketAddr,
}

impl Server {
    /// Starts one that is like `kind`, with the model `m`.
    pub fn start(kind: Kind) -> Self {
        Self::start_at(kind, "127.0.0.1:0")
    }

    /// The same at an address of the test's choice.
    pub fn start_at(kind: Kind, address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Mutex::new(State { models: vec!["m".to_owned()], ..State::default() });
        let shared = Arc::new(Shared { kind, state, changed: Condvar::new(), stopping: AtomicBool::new(false) });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.stopping.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&serving)) else { continue };
                thread::spawn(move || {
                    // A client that hangs up is what some tests are about.
                    let _ = shared.serve(stream);
                });
            }
        });
        Self { shared, address }
    }

    /// What a profile has as `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> std::net::SocketAddr {
        self.address
    }

    /// Answers the next request that has none so.
    pub fn answer(&self, answer: Answer) -> &Self {
        self.state().answers.push_back(answer);
        self
    }

    /// From now on, the models are these.
    pub fn models(&self, models: &[&str]) -> &Self {
        self.state().models = models.iter().map(|model| (*model).to_owned()).collect();
        self
    }

    /// From now on, only this key is let in.
    pub fn key(&self, key: &str) -> &Self {
        self.state().key = Some(key.to_owned());
        self
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Received> {
        self.state().requests.clone()
    }

    /// The bodies of all requests for a response so far.
    pub fn posts(&self) -> Vec<Value> {
        let posts =
            self.requests().into_iter().filter(|request| request.method == "POST" && request.path == "/responses");
        posts.map(|request| request.body).collect()
    }

    /// Waits for that many requests in all.
    #[track_caller]
    pub fn wait_requests(&self, count: usize) {
        self.wait(&format!("{count} requests"), |state| state.requests.len() >= count);
    }

    /// Waits until that many clients have hung up in the middle of an answer.
    #[track_caller]
    pub fn wait_hung_up(&self, count: u32) {
        self.wait(&format!("{count} clients to hang up"), |state| state.hung_up >= count);
    }

    /// Lets bodies that wait at a gate go on.
    pub fn open_gate(&self) {
        self.state().gate_open = true;
        self.shared.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock()
    }

    #[track_caller]
    fn wait(&self, what: &str, condition: impl Fn(&State) -> bool) {
        let state = self.shared.lock();
        let (state, timeout) =
            self.shared.changed.wait_timeout_while(state, PATIENCE, |state| !condition(state)).unwrap();
        assert!(!timeout.timed_out(), "still waiting for {what}; requests so far: {:#?}", state.requests);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.changed.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let Some(request) = http::read(&stream)? else { return Ok(()) };
        let received = received(&request);
        self.lock().requests.push(received.clone());
        self.changed.notify_all();
        let (path, _) = received.path.split_once('?').unwrap_or((&received.path, ""));
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        if let Some(key) = self.lock().key.clone()
            && received.header("authorization") != Some(&format!("Bearer {key}"))
        {
            let message =
                format!("Incorrect API key provided: {}.", received.header("authorization").unwrap_or("none"));
            return json(
                &mut stream,
                401,
                &json!({"error": {"code": "invalid_api_key", "message": message, "type": "authentication_error"}}),
            );
        }
        match (received.method.as_str(), segments.as_slice()) {
            ("POST", ["responses"]) => self.create(&mut stream, &received.body),
            ("GET", ["models"]) => {
                let models = self.lock().models.clone();
                let model = |name: &String| json!({"id": name, "object": "model", "owned_by": self.kind.owner()});
                json(&mut stream, 200, &json!({"object": "list", "data": models.iter().map(model).collect::<Vec<_>>()}))
            }
            ("POST", ["files"]) => {
                json(&mut stream, 200, &json!({"id": "file-1", "object": "file", "status": "processing"}))
            }
            ("GET", ["files", id]) => json(&mut stream, 200, &json!({"id": id, "object": "file", "status": "active"})),
            (_, ["responses", id, ..]) if !self.kind.keeps() => {
                let _ = id;
                json(
                    &mut stream,
                    404,
                    &json!({"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}),
                )
            }
            ("GET", ["responses", id]) => match self.kept(id) {
                Some(kept) => json(&mut stream, 200, &kept.response),
                None => refuse(&mut stream, rules::not_found(self.kind, id, false)),
            },
            ("GET", ["responses", id, "input_items"]) => self.input_items(&mut stream, id, &received.path),
            ("DELETE", ["responses", id]) => match self.lock().kept.remove(*id) {
                None => refuse(&mut stream, rules::not_found(self.kind, id, false)),
                Some(_) if self.kind == Kind::Ark => {
                    http::write_head(&mut stream, 200, &[])?;
                    http::write_end(&mut stream)
                }
                Some(_) => json(&mut stream, 200, &json!({"id": id, "object": "response", "deleted": true})),
            },
            _ => json(
                &mut stream,
                404,
                &json!({"error": {"code": null, "message": "not found", "type": "invalid_request_error"}}),
            ),
        }
    }

    fn kept(&self, id: &str) -> Option<Kept> {
        self.lock().kept.get(id).cloned()
    }

    /// Input and output of a response and of all that it continues.
    fn history(&self, id: &str) -> Vec<Value> {
        let Some(kept) = self.kept(id) else { return Vec::new() };
        let mut items = kept.previous.as_deref().map_or_else(Vec::new, |previous| self.history(previous));
        items.extend(kept.input);
        items.extend(kept.response["output"].as_array().cloned().unwrap_or_default());
        items
    }

    fn create(&self, stream: &mut TcpStream, body: &Value) -> io::Result<()> {
        let previous = body["previous_response_id"].as_str().filter(|_| self.kind.keeps()).map(str::to_owned);
        if let Some(id) = previous.as_deref().filter(|id| self.kept(id).is_none()) {
            return refuse(stream, rules::not_found(self.kind, id, true));
        }
        let history = previous.as_deref().map_or_else(Vec::new, |id| self.history(id));
        if let Err(refusal) = rules::check(self.kind, body, &history) {
            return refuse(stream, refusal);
        }
        let (answer, id) = {
            let mut state = self.lock();
            state.counter += 1;
            (state.answers.pop_front(), format!("resp_{}", state.counter))
        };
        let Some(answer) = answer else {
            return json(stream, 418, &json!({"error": {"message": "the test has no answer for this request"}}));
        };
        let is_stream = body["stream"] == true;
        let bytes = match &answer.raw {
            Some(pieces) => pieces.concat(),
            None if is_stream => render::stream(self.kind, &answer, &id, body),
            None => render::whole(self.kind, &answer, &id, body).to_string().into_bytes(),
        };
        if answer.raw.is_none() && self.kind.keeps() && body["store"] != false {
            let input = (1..).zip(items_of(&body["input"])).map(|(n, mut item)| {
                item["id"] = format!("in_{id}_{n}").into();
                item
            });
            let kept =
                Kept { response: render::whole(self.kind, &answer, &id, body), input: input.collect(), previous };
            self.lock().kept.insert(id, kept);
        }
        let mut headers = answer.headers.clone();
        if !headers.iter().any(|(name, _)| name == "content-type") {
            let kind = if is_stream { "text/event-stream" } else { "application/json" };
            headers.push(("content-type".to_owned(), kind.to_owned()));
        }
        http::write_head(stream, answer.status, &headers)?;
        self.body(stream, &answer, &bytes).inspect_err(|_| self.hang_up())
    }

    fn hang_up(&self) {
        self.lock().hung_up += 1;
        self.changed.notify_all();
    }

    fn body(&self, stream: &mut TcpStream, answer: &Answer, bytes: &[u8]) -> io::Result<()> {
        let mut stops: Vec<usize> =
            [answer.gate_at, answer.cut_after, answer.stall_after].into_iter().flatten().collect();
        if let Some(pieces) = &answer.raw {
            stops.extend(pieces.iter().scan(0, |end, piece| {
                *end += piece.len();
                Some(*end)
            }));
        }
        if let Some(size) = answer.write_size {
            stops.extend((1..).map(|n| n * size).take_while(|end| *end < bytes.len()));
        }
        stops.push(bytes.len());
        stops.sort_unstable();
        let mut at = 0;
        for stop in stops {
            let stop = stop.min(bytes.len());
            http::write_chunk(stream, &bytes[at..stop])?;
            at = stop;
            if let Some(pause) = answer.pause {
                thread::sleep(pause);
            }
            if answer.gate_at == Some(stop) {
                self.wait_gate(stream)?;
            }
            if answer.cut_after == Some(stop) {
                return Ok(());
            }
            if answer.stall_after == Some(stop) {
                return until_closed(stream);
            }
        }
        http::write_end(stream)
    }

    /// Waits for the gate, or for the client to hang up, which is an error.
    fn wait_gate(&self, stream: &mut TcpStream) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        stream.set_read_timeout(Some(Duration::from_millis(5)))?;
        while !self.lock().gate_open && Instant::now() < deadline && !self.stopping.load(Ordering::SeqCst) {
            match stream.read(&mut [0; 16]) {
                Ok(0) => return Err(io::ErrorKind::ConnectionAborted.into()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn input_items(&self, stream: &mut TcpStream, id: &str, path: &str) -> io::Result<()> {
        let Some(kept) = self.kept(id) else { return refuse(stream, rules::not_found(self.kind, id, false)) };
        let mut items = kept.previous.as_deref().map_or_else(Vec::new, |previous| self.history(previous));
        items.extend(kept.input);
        let query: BTreeMap<&str, &str> = path
            .split_once('?')
            .map_or("", |(_, query)| query)
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .collect();
        if query.get("order") != Some(&"asc") {
            items.reverse();
        }
        if let Some(after) = query.get("after") {
            let at = items.iter().position(|item| item["id"] == *after).map_or(0, |at| at + 1);
            items.drain(..at);
        }
        let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(20);
        let has_more = items.len() > limit;
        items.truncate(limit);
        let id_of = |item: Option<&Value>| item.map_or(Value::Null, |item| item["id"].clone());
        let (first, last) = (id_of(items.first()), id_of(items.last()));
        json(
            stream,
            200,
            &json!({"object": "list", "data": items, "first_id": first, "last_id": last, "has_more": has_more}),
        )
    }
}

/// Until the client closes; then it has hung up.
fn until_closed(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    while stream.read(&mut [0; 16])? > 0 {}
    Err(io::ErrorKind::ConnectionAborted.into())
}

fn items_of(input: &Value) -> Vec<Value> {
    match input {
        Value::Array(items) => items.clone(),
        text => vec![json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})],
    }
}

fn received(request: &RawRequest) -> Received {
    let text = String::from_utf8_lossy(&request.body).into_owned();
    Received {
        method: request.method.clone(),
        path: request.target.strip_prefix("/v1").unwrap_or(&request.target).to_owned(),
        headers: request.headers.clone(),
        body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
    }
}

fn refuse(stream: &mut TcpStream, (status, body): rules::Refusal) -> io::Result<()> {
    json(stream, status, &body)
}

fn json(stream: &mut TcpStream, status: u16, body: &Value) -> io::Result<()> {
    http::write_head(stream, status, &[("content-type".to_owned(), "application/json".to_owned())])?;
    http::write_chunk(stream, body.to_string().as_bytes())?;
    http::write_end(stream)
}
