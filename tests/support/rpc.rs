//! The msgpack-RPC channel to an embedded Neovim: blocking calls from any thread, redraw events to the screen.

use std::collections::HashMap;
use std::io::{BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rmpv::Value;
use serde_json::Value as Json;

use super::screen::Grid;

const REQUEST: u64 = 0;
const RESPONSE: u64 = 1;
const NOTIFICATION: u64 = 2;

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// Neovim answered with this error.
    Refused(String),
    /// There was no answer in time.
    TimedOut,
    /// Neovim's end of the channel is closed.
    Closed,
}

type Answer = Result<Json, CallError>;

#[derive(Default)]
struct Pending {
    last_id: u64,
    /// `None` once the channel is closed.
    waiting: Option<HashMap<u64, Sender<Answer>>>,
}

/// A channel to one Neovim.
pub struct Channel {
    writer: Mutex<ChildStdin>,
    pending: Arc<Mutex<Pending>>,
}

impl Channel {
    /// Starts to read; redraw events go to `grid`.
    pub fn new(stdin: ChildStdin, stdout: ChildStdout, grid: Arc<Mutex<Grid>>) -> Self {
        let pending = Arc::new(Mutex::new(Pending { last_id: 0, waiting: Some(HashMap::new()) }));
        let shared = Arc::clone(&pending);
        thread::spawn(move || {
            let mut input = BufReader::with_capacity(1 << 16, stdout);
            while let Ok(message) = rmpv::decode::read_value(&mut input) {
                dispatch(message, &shared, &grid);
            }
            // Dropping the senders tells everyone who waits.
            shared.lock().unwrap().waiting = None;
        });
        Self { writer: Mutex::new(stdin), pending }
    }

    /// Calls an API function and waits for its answer.
    pub fn call(&self, method: &str, arguments: &Json, patience: Duration) -> Answer {
        let (sender, receiver) = mpsc::channel();
        let id = {
            let mut pending = self.pending.lock().unwrap();
            pending.last_id += 1;
            let id = pending.last_id;
            pending.waiting.as_mut().ok_or(CallError::Closed)?.insert(id, sender);
            id
        };
        self.write(&Value::Array(vec![REQUEST.into(), id.into(), method.into(), from_json(arguments)]))?;
        match receiver.recv_timeout(patience) {
            Ok(answer) => answer,
            Err(mpsc::RecvTimeoutError::Timeout) => Err(CallError::TimedOut),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(CallError::Closed),
        }
    }

    fn write(&self, message: &Value) -> Result<(), CallError> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, message).expect("writing to memory does not fail");
        let mut writer = self.writer.lock().unwrap();
        writer.write_all(&bytes).and_then(|()| writer.flush()).map_err(|_| CallError::Closed)
    }
}

fn dispatch(message: Value, pending: &Mutex<Pending>, grid: &Mutex<Grid>) {
    let Value::Array(parts) = message else { return };
    match (parts.first().and_then(Value::as_u64), parts.as_slice()) {
        (Some(RESPONSE), [_, id, error, result]) => {
            let answer = if error.is_nil() { Ok(to_json(result)) } else { Err(CallError::Refused(error_text(error))) };
            let mut pending = pending.lock().unwrap();
            let waiting = id.as_u64().and_then(|id| pending.waiting.as_mut()?.remove(&id));
            if let Some(sender) = waiting {
                // The caller may have given up waiting.
                let _ = sender.send(answer);
            }
        }
        (Some(NOTIFICATION), [_, name, Value::Array(batches)]) if name.as_str() == Some("redraw") => {
            let mut grid = grid.lock().unwrap();
            for batch in batches {
                grid.apply(batch);
            }
        }
        _ => {}
    }
}

fn error_text(error: &Value) -> String {
    // Neovim's errors are `[type, text]`.
    error.as_array().and_then(|parts| parts.get(1)).map_or_else(|| error.to_string(), text)
}

/// A string value's text, with bytes that are no UTF-8 replaced.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(string) => String::from_utf8_lossy(string.as_bytes()).into_owned(),
        other => other.to_string(),
    }
}

/// The JSON that reads like `value`; buffer, window and tabpage handles become their numbers.
fn to_json(value: &Value) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Boolean(flag) => Json::from(*flag),
        Value::Integer(number) => number.as_i64().map_or_else(|| Json::from(number.as_u64()), Json::from),
        Value::F32(number) => Json::from(*number),
        Value::F64(number) => Json::from(*number),
        Value::String(_) => Json::from(text(value)),
        Value::Binary(bytes) => Json::from(String::from_utf8_lossy(bytes)),
        Value::Array(items) => items.iter().map(to_json).collect(),
        Value::Map(pairs) => pairs.iter().map(|(key, item)| (text(key), to_json(item))).collect(),
        Value::Ext(_, bytes) => rmpv::decode::read_value(&mut bytes.as_slice()).map_or(Json::Null, |id| to_json(&id)),
    }
}

fn from_json(json: &Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::from(*flag),
        Json::Number(number) => number
            .as_i64()
            .map(Value::from)
            .or_else(|| number.as_u64().map(Value::from))
            .or_else(|| number.as_f64().map(Value::from))
            .unwrap_or(Value::Nil),
        Json::String(string) => Value::from(string.as_str()),
        Json::Array(items) => Value::Array(items.iter().map(from_json).collect()),
        Json::Object(entries) => {
            Value::Map(entries.iter().map(|(key, item)| (Value::from(key.as_str()), from_json(item))).collect())
        }
    }
}
