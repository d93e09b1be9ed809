//! What a scripted agent does. `tests/scripted_agent/agent.py` describes the format and plays it.
//!
//! ```ignore
//! Scenario::new()
//!     .on_prompt([tool_call("t1", "Run tests", "execute"), gate("tests"), end_turn()])   // the first prompt
//!     .on_prompt([chunk("again"), end_turn()])                                           // all later ones
//!     .on_cancel([tool_update("t1", json!({"status": "failed"})), reply_to_prompt…])
//! ```
//!
//! What a scenario does not name has a well-behaved default: `initialize` and `session/new` are answered, a prompt ends
//! its turn at once, and `session/cancel` stops the steps of the session's prompt and answers it `cancelled`.
//! `Scenario::new().on_prompt([])` never answers a prompt (but a cancel does); `.on_cancel([])` ignores cancels.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

/// What an agent does, in answer to what.
#[derive(Debug, Clone, Default)]
pub struct Scenario {
    on_start: Vec<Json>,
    on: Map<String, Json>,
    ignores_eof: bool,
    ignored_signals: Vec<i32>,
}

impl Scenario {
    /// A well-behaved agent with nothing to say.
    pub fn new() -> Self {
        Self::default()
    }

    /// Steps before anything is read: banners, noise, an early exit.
    #[must_use]
    pub fn on_start(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.on_start.extend(steps.into_iter().map(|Step(step)| step));
        self
    }

    /// Steps for a message of `method`: the first call is for the first message, the second for the second, the last one
    /// for all that follow.
    #[must_use]
    pub fn on(mut self, method: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Json = steps.into_iter().map(|Step(step)| step).collect();
        if let Some(lists) = self.on.entry(method).or_insert_with(|| json!([])).as_array_mut() {
            lists.push(steps);
        }
        self
    }

    /// Steps for `initialize`; they have to answer it (or not to).
    #[must_use]
    pub fn on_initialize(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.on("initialize", steps)
    }

    /// Steps for `session/new`; [`new_session`] answers it as the default would.
    #[must_use]
    pub fn on_new_session(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.on("session/new", steps)
    }

    /// Steps for a prompt; [`end_turn`] or [`stop`] ends the turn.
    #[must_use]
    pub fn on_prompt(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.on("session/prompt", steps)
    }

    /// Steps for `session/cancel`, in place of the default: the prompt's steps then go on and have to end the turn.
    #[must_use]
    pub fn on_cancel(self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.on("session/cancel", steps)
    }

    /// The process lives on when its stdin ends.
    #[must_use]
    pub fn ignoring_eof(mut self) -> Self {
        self.ignores_eof = true;
        self
    }

    /// The process ignores these signals, by their numbers.
    #[must_use]
    pub fn ignoring_signals(mut self, numbers: &[i32]) -> Self {
        self.ignored_signals.extend_from_slice(numbers);
        self
    }

    /// The scenario's file.
    pub(super) fn to_json(&self) -> Json {
        json!({
            "on_start": self.on_start,
            "on": self.on,
            "on_eof": if self.ignores_eof { "ignore" } else { "exit" },
            "ignore_signals": self.ignored_signals,
        })
    }
}

/// One thing that an agent does.
#[derive(Debug, Clone)]
pub struct Step(Json);

impl Step {
    /// Gives a request of the agent an id of the test's choice: a string, a number, `null`, one that is in use.
    #[must_use]
    pub fn with_id(mut self, id: Json) -> Self {
        self.0["request"]["id"] = id;
        self
    }

    /// The steps after a request go on before its answer is there.
    #[must_use]
    pub fn without_waiting(mut self) -> Self {
        self.0["request"]["wait"] = json!(false);
        self
    }
}

// -- what is said

/// Any message as it is.
pub fn send(message: Json) -> Step {
    Step(json!({ "send": message }))
}

/// The answer to the message that the steps are for; sent once, later ones are dropped.
pub fn reply(result: Json) -> Step {
    Step(json!({ "reply": result }))
}

/// An error as that answer.
pub fn reply_error(code: i64, message: &str) -> Step {
    Step(json!({ "reply_error": { "code": code, "message": message } }))
}

/// The answer to `initialize` with these `agentCapabilities`.
pub fn initialized(capabilities: Json) -> Step {
    reply(json!({ "protocolVersion": 1, "agentCapabilities": capabilities, "authMethods": [] }))
}

/// The answer to `session/new` with the id that the agent chose.
pub fn new_session() -> Step {
    reply(json!({ "sessionId": "$session" }))
}

/// Ends the turn as agents do when they have finished.
pub fn end_turn() -> Step {
    stop("end_turn")
}

/// Ends the turn with this stop reason.
pub fn stop(reason: &str) -> Step {
    reply(json!({ "stopReason": reason }))
}

/// A `session/update` with this `update`.
pub fn update(update: Json) -> Step {
    Step(json!({ "update": update }))
}

/// A piece of the agent's message; in [`repeat`] `$i` is the number of the round.
pub fn chunk(text: &str) -> Step {
    text_update("agent_message_chunk", text)
}

/// A piece of its thoughts.
pub fn thought(text: &str) -> Step {
    text_update("agent_thought_chunk", text)
}

fn text_update(kind: &str, text: &str) -> Step {
    update(json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
}

/// A new tool call, `pending`.
pub fn tool_call(id: &str, title: &str, kind: &str) -> Step {
    update(json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "pending" }))
}

/// Changes of a tool call: the members of `changes`.
pub fn tool_update(id: &str, changes: Json) -> Step {
    let mut content = json!({ "sessionUpdate": "tool_call_update", "toolCallId": id });
    if let (Some(content), Json::Object(changes)) = (content.as_object_mut(), changes) {
        content.extend(changes);
    }
    update(content)
}

/// A new call that edits this file of the project, `in_progress`.
pub fn edit_call(id: &str, path: &str) -> Step {
    update(json!({
        "sessionUpdate": "tool_call", "toolCallId": id, "title": format!("Edit {path}"), "kind": "edit",
        "status": "in_progress", "locations": [{ "path": format!("$cwd/{path}") }],
    }))
}

/// Sets the status of a tool call.
pub fn tool_status(id: &str, status: &str) -> Step {
    tool_update(id, json!({ "status": status }))
}

/// A plan; each entry is its text and its status.
pub fn plan(entries: &[(&str, &str)]) -> Step {
    let entry =
        |(content, status): &(&str, &str)| json!({ "content": content, "status": status, "priority": "medium" });
    update(json!({ "sessionUpdate": "plan", "entries": entries.iter().map(entry).collect::<Json>() }))
}

// -- what is asked; the steps go on when the answer is there, unless the request is `.without_waiting()`

/// A request to the client.
pub fn request(method: &str, params: Json) -> Step {
    Step(json!({ "request": { "method": method, "params": params } }))
}

/// Asks to read a file, by its path in the project.
pub fn read_file(path: &str) -> Step {
    request("fs/read_text_file", json!({ "sessionId": "$session", "path": format!("$cwd/{path}") }))
}

/// Asks to write a file, by its path in the project.
pub fn write_file(path: &str, content: &str) -> Step {
    request(
        "fs/write_text_file",
        json!({ "sessionId": "$session", "path": format!("$cwd/{path}"), "content": content }),
    )
}

/// Asks for permission for a tool call, with the usual four options, whose ids are their kinds.
pub fn ask_permission(tool_call_id: &str, title: &str) -> Step {
    let option = |(kind, name): (&str, &str)| json!({ "optionId": kind, "kind": kind, "name": name });
    let options = [
        ("allow_once", "Allow"),
        ("allow_always", "Always allow"),
        ("reject_once", "Reject"),
        ("reject_always", "Always reject"),
    ];
    ask_permission_with(
        json!({ "toolCallId": tool_call_id, "title": title }),
        options.into_iter().map(option).collect(),
    )
}

/// Asks for permission with a tool call and options of the test's own.
pub fn ask_permission_with(tool_call: Json, options: Json) -> Step {
    request("session/request_permission", json!({ "sessionId": "$session", "toolCall": tool_call, "options": options }))
}

// -- bytes

/// These characters as they are, without a newline.
pub fn raw(text: &str) -> Step {
    Step(json!({ "raw": text }))
}

/// Bytes that need not be text.
pub fn bytes(bytes: &[u8]) -> Step {
    Step(json!({ "bytes": bytes }))
}

/// A whole line that is no message.
pub fn noise(line: &str) -> Step {
    raw(&format!("{line}\n"))
}

/// `text` over and over, without a newline: `fill("x", 1 << 30)` is a GiB in one line.
pub fn fill(text: &str, times: u64) -> Step {
    Step(json!({ "fill": { "text": text, "times": times } }))
}

/// A line on stderr.
pub fn stderr(line: &str) -> Step {
    Step(json!({ "stderr": line }))
}

// -- time and order

/// Holds the agent until the test opens the gate (`ScriptedAgent::open_gate`).
pub fn gate(name: &str) -> Step {
    Step(json!({ "gate": name }))
}

/// Holds the agent until the client has sent `count` messages of that method.
pub fn wait_for(method: &str, count: u32) -> Step {
    Step(json!({ "wait": { "method": method, "count": count } }))
}

/// An agent that takes its time. Not for making an order: that is what gates are for.
pub fn delay(time: Duration) -> Step {
    Step(json!({ "delay": time.as_secs_f64() }))
}

/// The steps over and over; `$i` in their strings is 0, 1, 2, …
pub fn repeat(times: u32, steps: impl IntoIterator<Item = Step>) -> Step {
    let steps: Json = steps.into_iter().map(|Step(step)| step).collect();
    Step(json!({ "repeat": { "times": times, "steps": steps } }))
}

// -- processes and ends

/// Writes a file of the project itself, without asking the client.
pub fn write_disk(path: &str, text: &str) -> Step {
    Step(json!({ "disk": { "path": format!("$cwd/{path}"), "text": text } }))
}

/// Runs a shell command in the session's folder, and waits for its end.
pub fn run(command: &str) -> Step {
    Step(json!({ "run": command }))
}

/// Starts a child that ignores SIGHUP and SIGTERM, in a session of its own if `own_session`.
pub fn spawn_stubborn_child(own_session: bool) -> Step {
    const SIGHUP: i32 = 1;
    const SIGTERM: i32 = 15;
    Step(json!({ "spawn": { "ignore": [SIGHUP, SIGTERM], "session": own_session } }))
}

/// Starts a child that holds the agent's pipes open after the agent's end.
pub fn spawn_child_with_pipes() -> Step {
    Step(json!({ "spawn": { "keep_pipes": true } }))
}

/// Closes stdout and lives on.
pub fn close_stdout() -> Step {
    Step(json!({ "close_stdout": true }))
}

/// Ends the process with this code.
pub fn exit(code: i32) -> Step {
    Step(json!({ "exit": code }))
}

/// Ends the process by this signal.
pub fn die(signal: i32) -> Step {
    Step(json!({ "die": signal }))
}

/// A text of lines that have numbers: `name 0`, `name 1`, …
pub fn numbered(name: &str, numbers: std::ops::Range<usize>) -> String {
    numbers.flat_map(|number| [name, " ", &number.to_string(), "\n"].map(str::to_owned)).collect()
}
