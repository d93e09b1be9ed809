//! A client of the agent, which has files and terminals, and answers permission requests as a test says.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{AgentNotification, AgentRequest};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::responses_server::{Kind, Server};

/// The longest that anything may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(30);

/// All that a client can offer.
pub(crate) fn everything() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true, "session": {"compaction": {}}})
}

/// A client that has nothing but a user.
pub(crate) fn nothing() -> Value {
    json!({})
}

pub(crate) struct Client {
    pub(crate) home: TempDir,
    pub(crate) session: String,
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Value>,
    /// Every message of the agent, in order.
    pub(crate) seen: Vec<Value>,
    capabilities: Value,
    last_id: u64,
    /// The option that is chosen, by the words in the call's title; `cancelled` answers so.
    pub(crate) choice: String,
    /// What the user has not saved, by path.
    pub(crate) unsaved: HashMap<PathBuf, String>,
    terminals: HashMap<String, (Option<Child>, String)>,
    /// Whether a terminal's end is answered.
    pub(crate) lets_commands_end: bool,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for (child, _) in self.terminals.values_mut() {
            child.as_mut().into_iter().for_each(end_group);
        }
    }
}

impl Client {
    pub(crate) fn start(server: Option<(&Server, Kind)>, capabilities: Value) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("project")).unwrap();
        if let Some((server, kind)) = server {
            let folder = home.path().join(".config/agentchat");
            fs::create_dir_all(&folder).unwrap();
            let text = format!(
                "[profiles.test]\ndialect = \"{}\"\nbase_url = \"{}\"\nmodel = \"m\"\ncontext = 1000\nstall_timeout = 5\n",
                kind.dialect(),
                server.base_url()
            );
            fs::write(folder.join("config.toml"), text).unwrap();
        }
        let mut client = Self::spawn(home, capabilities);
        client.initialize();
        client
    }

    fn spawn(home: TempDir, capabilities: Value) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentchat"));
        command.arg("agent").env_clear().env("HOME", home.path()).current_dir(home.path());
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        // Nothing that listens on this machine by chance is a model.
        command.env("OLLAMA_HOST", "127.0.0.1:9");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            home,
            session: String::new(),
            stdin: child.stdin.take().unwrap(),
            child,
            lines,
            seen: Vec::new(),
            capabilities,
            last_id: 0,
            choice: "allow-once".to_owned(),
            unsaved: HashMap::new(),
            terminals: HashMap::new(),
            lets_commands_end: true,
        }
    }

    fn initialize(&mut self) {
        let params = json!({"protocolVersion": 1, "clientCapabilities": self.capabilities});
        let answer = self.ask("initialize", params);
        assert_eq!(answer["protocolVersion"], 1);
        self.new_session()["sessionId"].as_str().unwrap().clone_into(&mut self.session);
    }

    /// Ends the agent and starts another for the same user.
    pub(crate) fn restart(mut self) -> Self {
        let home = std::mem::replace(&mut self.home, tempfile::tempdir().unwrap());
        let capabilities = self.capabilities.clone();
        drop(self);
        let mut client = Self::spawn(home, capabilities);
        client.initialize();
        client
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("project")
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap_or_else(|error| format!("{name}: {error}"))
    }

    pub(crate) fn new_session(&mut self) -> Value {
        let params = json!({"cwd": self.project(), "mcpServers": []});
        self.ask("session/new", params)
    }

    /// Begins another session, with these MCP servers.
    pub(crate) fn open_with(&mut self, servers: Value) {
        let params = json!({"cwd": self.project(), "mcpServers": servers});
        self.ask("session/new", params)["sessionId"].as_str().unwrap().clone_into(&mut self.session);
    }

    /// Waits for something beside the agent's messages.
    #[track_caller]
    pub(crate) fn wait_until(&self, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + DEADLINE;
        while !is_so() {
            assert!(Instant::now() < deadline, "not within {DEADLINE:?} after\n{}", self.told());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
        self.stdin.flush().unwrap();
    }

    pub(crate) fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its number.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Serves the agent until the answer to a request comes: its result, or its error.
    #[track_caller]
    pub(crate) fn end(&mut self, id: u64) -> Value {
        let at = self.serve_until(|message| message.get("method").is_none() && message["id"] == id);
        let answer = &self.seen[at];
        answer.get("result").or_else(|| answer.get("error")).cloned().unwrap_or_else(|| panic!("{answer}"))
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.end(id)
    }

    pub(crate) fn begin_prompt(&mut self, text: &str) -> u64 {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.begin("session/prompt", params)
    }

    /// Has a prompt answered; the stop reason.
    #[track_caller]
    pub(crate) fn prompt(&mut self, text: &str) -> String {
        let id = self.begin_prompt(text);
        let answer = self.end(id);
        answer["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Serves the agent until a message fits; its number.
    #[track_caller]
    pub(crate) fn serve_until(&mut self, fits: impl Fn(&Value) -> bool) -> usize {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(message) = self.lines.recv_timeout(left) else {
                panic!("nothing more within {DEADLINE:?} after\n{}", self.told());
            };
            check(&message);
            self.seen.push(message.clone());
            let is_it = fits(&message);
            if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id"))
                && let Some(answer) = self.answer(method, &message["params"])
            {
                let (name, value) = match answer {
                    Ok(result) => ("result", result),
                    Err(reason) => ("error", json!({"code": -32603, "message": reason})),
                };
                self.send(&json!({"jsonrpc": "2.0", "id": id, name: value}));
            }
            if is_it {
                return self.seen.len() - 1;
            }
        }
    }

    fn told(&self) -> String {
        self.seen.iter().map(|message| format!("{message}\n")).collect()
    }

    /// What a client does with a request; `None` leaves it unanswered.
    fn answer(&mut self, method: &str, params: &Value) -> Option<Result<Value, String>> {
        let path = || Path::new(params["path"].as_str().unwrap()).to_owned();
        let terminal = || params["terminalId"].as_str().unwrap().to_owned();
        Some(match method {
            "fs/read_text_file" => {
                let unsaved = self.unsaved.get(&path()).cloned();
                let text = unsaved.map_or_else(|| fs::read_to_string(path()).map_err(|error| error.to_string()), Ok);
                text.map(|content| json!({"content": content}))
            }
            "fs/write_text_file" => {
                fs::create_dir_all(path().parent().unwrap()).unwrap();
                fs::write(path(), params["content"].as_str().unwrap()).map(|()| json!({})).map_err(|e| e.to_string())
            }
            "session/request_permission" => match self.choice.as_str() {
                "nobody" => return None,
                "cancelled" => Ok(json!({"outcome": {"outcome": "cancelled"}})),
                option => Ok(json!({"outcome": {"outcome": "selected", "optionId": option}})),
            },
            "terminal/create" => {
                let id = format!("terminal-{}", self.terminals.len() + 1);
                let args: Vec<String> = serde_json::from_value(params["args"].clone()).unwrap();
                let child = in_group(&mut Command::new(params["command"].as_str().unwrap()))
                    .args(args)
                    .current_dir(params["cwd"].as_str().unwrap())
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap();
                self.terminals.insert(id.clone(), (Some(child), String::new()));
                Ok(json!({"terminalId": id}))
            }
            "terminal/wait_for_exit" if !self.lets_commands_end => return None,
            "terminal/wait_for_exit" => {
                let (child, output) = self.terminals.get_mut(&terminal()).unwrap();
                let ended = child.take().unwrap().wait_with_output().unwrap();
                *output = String::from_utf8_lossy(&ended.stdout).into_owned();
                Ok(json!({"exitCode": ended.status.code(), "signal": null}))
            }
            "terminal/output" => {
                Ok(json!({"output": self.terminals[&terminal()].1, "truncated": false, "exitStatus": null}))
            }
            "terminal/kill" | "terminal/release" => {
                if let Some((Some(child), _)) = self.terminals.get_mut(&terminal()) {
                    end_group(child);
                }
                Ok(json!({}))
            }
            _ => Err(format!("no method {method}")),
        })
    }

    /// The updates of a kind, in order.
    pub(crate) fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().filter(|message| message["method"] == "session/update");
        updates.map(|message| &message["params"]["update"]).filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// All that the agent has said.
    pub(crate) fn said(&self) -> String {
        let chunks = self.updates("agent_message_chunk");
        chunks.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// The requests of a method.
    pub(crate) fn requests(&self, method: &str) -> Vec<&Value> {
        let requests = self.seen.iter().filter(|message| message["method"] == method && message.get("id").is_some());
        requests.map(|message| &message["params"]).collect()
    }

    /// A tool call with all its updates merged, as a client shows it.
    #[track_caller]
    pub(crate) fn call(&self, id: &str) -> Value {
        let mut call = json!({});
        for kind in ["tool_call", "tool_call_update"] {
            for update in self.updates(kind).into_iter().filter(|update| update["toolCallId"] == id) {
                for (name, value) in update.as_object().unwrap() {
                    call[name] = value.clone();
                }
            }
        }
        assert!(call["title"].is_string(), "no call {id}:\n{}", self.told());
        call
    }

    /// Every state that a call was in, in order.
    pub(crate) fn states(&self, id: &str) -> Vec<String> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        let mut states: Vec<String> = updates
            .filter(|update| update["toolCallId"] == id)
            .filter_map(|update| {
                let default = (update["sessionUpdate"] == "tool_call").then_some("pending");
                update["status"].as_str().or(default).map(str::to_owned)
            })
            .collect();
        states.dedup();
        states
    }
}

/// A command that is the first of a group, so that it ends with all that it has started.
fn in_group(command: &mut Command) -> &mut Command {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    command
}

fn end_group(child: &mut Child) {
    #[cfg(unix)]
    let _ = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status();
    let _ = child.kill();
    let _ = child.wait();
}

/// Every message of the agent has the form of the protocol.
#[track_caller]
fn check(message: &Value) {
    let Some(method) = message["method"].as_str() else { return };
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    let params = message["params"].clone();
    let as_said = json!({"method": method, "params": params});
    if message.get("id").is_some() {
        let is_known = matches!(
            method,
            "fs/read_text_file"
                | "fs/write_text_file"
                | "session/request_permission"
                | "terminal/create"
                | "terminal/output"
                | "terminal/wait_for_exit"
                | "terminal/kill"
                | "terminal/release"
        );
        assert!(is_known, "{as_said}");
        serde_json::from_value::<AgentRequest>(params).unwrap_or_else(|error| panic!("{error}: {as_said}"));
    } else {
        assert_eq!(method, "session/update");
        serde_json::from_value::<AgentNotification>(params).unwrap_or_else(|error| panic!("{error}: {as_said}"));
    }
}
