//! A client of the tour, over pipes in memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol_schema::v1::{AgentNotification, AgentRequest, InitializeResponse, NewSessionResponse};
use agentchat::tour::{Pace, ServeError, run_at};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The longest that anything may take before a test fails.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// How a test answers the agent's requests.
pub(crate) trait Answers {
    /// The result or the error for a request; `None` leaves it unanswered.
    fn answer(&mut self, method: &str, params: &Value) -> Option<Result<Value, Value>>;
}

pub(crate) struct Client {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    pub(crate) agent: JoinHandle<Result<(), ServeError>>,
    /// Every message of the agent, in order.
    pub(crate) seen: Vec<Value>,
    last_id: u64,
}

impl Client {
    pub(crate) fn start(pace: Pace) -> Self {
        let (input, agent_input) = tokio::io::duplex(1 << 20);
        let (agent_output, output) = tokio::io::duplex(1 << 10);
        Self {
            input: Some(input),
            output: BufReader::new(output).lines(),
            agent: tokio::spawn(run_at(pace, agent_input, agent_output)),
            seen: Vec::new(),
            last_id: 0,
        }
    }

    /// A client with these capabilities, and one session in `folder`.
    pub(crate) async fn ready(pace: Pace, capabilities: Value, folder: &Path) -> (Self, String) {
        let mut client = Self::start(pace);
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        let answer = client.ask("initialize", params).await;
        let initialized: InitializeResponse = serde_json::from_value(answer).unwrap();
        assert_eq!(initialized.protocol_version.as_u16(), 1);
        let session = client.new_session(folder).await;
        (client, session)
    }

    pub(crate) async fn new_session(&mut self, folder: &Path) -> String {
        let answer = self.ask("session/new", json!({"cwd": folder, "mcpServers": []})).await;
        let created: NewSessionResponse = serde_json::from_value(answer).unwrap();
        created.session_id.to_string()
    }

    pub(crate) async fn send_raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_raw(format!("{message}\n").as_bytes()).await;
    }

    /// Sends a request; gives its id.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(format!("client-{}", self.last_id));
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// Sends a request and gives its result. Fails on an error.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let response = self.until(|message| message.get("method").is_none() && message["id"] == id).await;
        assert_eq!(response.get("error"), None, "{method}");
        response["result"].clone()
    }

    pub(crate) async fn prompt(&mut self, session: &str, text: &str) -> Value {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.request("session/prompt", params).await
    }

    pub(crate) async fn cancel(&mut self, session: &str) {
        self.send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}})).await;
    }

    pub(crate) async fn respond(&mut self, request: &Value, answer: Result<Value, Value>) {
        let id = &request["id"];
        let response = match answer {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        self.send(response).await;
    }

    /// The next message of the agent; `None` when its output has ended.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = timeout(DEADLINE, self.output.next_line())
            .await
            .unwrap_or_else(|_| panic!("the agent says nothing after {:?}", self.seen.last()))
            .unwrap()?;
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_valid(&message);
        self.seen.push(message.clone());
        Some(message)
    }

    /// Reads on until a message fits, and gives it.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("the agent's output has ended");
            if fits(&message) {
                return message;
            }
        }
    }

    /// Reads on until the agent asks for `method`.
    pub(crate) async fn until_request(&mut self, method: &str) -> Value {
        self.until(|message| message["method"] == method && message.get("id").is_some()).await
    }

    /// Answers requests until the response to `id` is there; gives the stop reason.
    pub(crate) async fn finish(&mut self, id: &Value, answers: &mut impl Answers) -> String {
        let response = |message: &&Value| message.get("method").is_none() && message["id"] == *id;
        loop {
            if let Some(response) = self.seen.iter().find(response) {
                return response["result"]["stopReason"].as_str().unwrap().to_owned();
            }
            let message = self.next().await.expect("the agent's output has ended");
            let request = message["method"].as_str().filter(|_| message.get("id").is_some());
            if let Some(answer) = request.and_then(|method| answers.answer(method, &message["params"])) {
                self.respond(&message, answer).await;
            }
        }
    }

    /// Sends a prompt and plays it to its end.
    pub(crate) async fn play(&mut self, session: &str, text: &str, answers: &mut impl Answers) -> String {
        let id = self.prompt(session, text).await;
        self.finish(&id, answers).await
    }

    /// Closes the agent's input.
    pub(crate) fn hang_up(&mut self) {
        self.input = None;
    }

    /// Everything that the agent has said in messages.
    pub(crate) fn said(&self) -> String {
        self.text_of("agent_message_chunk")
    }

    pub(crate) fn text_of(&self, kind: &str) -> String {
        let chunks = self.updates().filter(|update| update["sessionUpdate"] == kind);
        chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    pub(crate) fn updates(&self) -> impl Iterator<Item = &Value> {
        let updates = self.seen.iter().filter(|message| message["method"] == "session/update");
        updates.map(|message| &message["params"]["update"])
    }

    /// The methods that the agent has requested, in order.
    pub(crate) fn requested(&self) -> Vec<&str> {
        let requests = self.seen.iter().filter(|message| message.get("id").is_some());
        requests.filter_map(|message| message["method"].as_str()).collect()
    }

    /// The tool calls: id, kind and last status.
    pub(crate) fn calls(&self) -> Vec<(String, String, String)> {
        let mut calls: Vec<(String, String, String)> = Vec::new();
        for update in self.updates() {
            let text = |key: &str, default: &str| update[key].as_str().unwrap_or(default).to_owned();
            match update["sessionUpdate"].as_str() {
                Some("tool_call") => {
                    calls.push((text("toolCallId", ""), text("kind", "other"), text("status", "pending")));
                }
                Some("tool_call_update") => {
                    let id = text("toolCallId", "");
                    let call = calls.iter_mut().find(|call| call.0 == id).expect("an update of an unknown call");
                    call.2 = text("status", &call.2);
                }
                _ => {}
            }
        }
        calls
    }
}

/// A line must be what the schema says, under the method it has.
fn assert_valid(message: &Value) {
    assert_eq!(message["jsonrpc"], "2.0");
    let Some(method) = message["method"].as_str() else {
        assert!(message.get("result").is_some() ^ message.get("error").is_some(), "{message}");
        return;
    };
    let params = &message["params"];
    let decoded = if message.get("id").is_some() {
        AgentRequest::from_method_and_params(method, params).map(|request| serde_json::to_value(request).unwrap())
    } else {
        AgentNotification::from_method_and_params(method, params).map(|update| serde_json::to_value(update).unwrap())
    };
    // The schema's types drop what they cannot read: nothing may get lost.
    assert_eq!(decoded.unwrap_or_else(|error| panic!("{error}: {message}")), *params);
}

/// What a well-behaved editor does, with a user who always gives the same answer.
pub(crate) struct Editor {
    /// The option kind that the user chooses.
    pub(crate) choice: &'static str,
    pub(crate) exit_code: u32,
    /// Files written, in order.
    pub(crate) written: Vec<PathBuf>,
}

impl Editor {
    pub(crate) fn choosing(choice: &'static str) -> Self {
        Self { choice, exit_code: 0, written: Vec::new() }
    }
}

impl Answers for Editor {
    fn answer(&mut self, method: &str, params: &Value) -> Option<Result<Value, Value>> {
        let path = || PathBuf::from(params["path"].as_str().unwrap());
        Some(Ok(match method {
            "fs/read_text_file" => json!({"content": std::fs::read_to_string(path()).unwrap()}),
            "fs/write_text_file" => {
                std::fs::write(path(), params["content"].as_str().unwrap()).unwrap();
                self.written.push(path());
                Value::Null
            }
            "session/request_permission" => {
                let options = params["options"].as_array().unwrap();
                let chosen = options.iter().find(|option| option["kind"] == self.choice).unwrap();
                json!({"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}})
            }
            "terminal/create" => json!({"terminalId": "terminal-1"}),
            "terminal/wait_for_exit" => json!({"exitCode": self.exit_code}),
            "terminal/output" => json!({"output": "one\ntwo\n\n", "truncated": false}),
            _ => json!({}),
        }))
    }
}
