//! The scripted agent itself, driven by a client of a few lines: a fault of it must not look like one of the plugin.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::support::recording::Recording;
use crate::support::scenario::{
    Scenario, ask_permission, chunk, close_stdout, delay, die, end_turn, exit, fill, gate, initialized, new_session,
    noise, plan, raw, read_file, repeat, reply_error, request, send, spawn_child_with_pipes, spawn_stubborn_child,
    stderr, stop, thought, tool_call, tool_status, update, wait_for, write_file,
};
use crate::support::{PATIENCE, ScriptedAgent, poll, processes};

struct Client {
    /// Kept, since its scenario's file goes with it.
    _agent: ScriptedAgent,
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    session: String,
    last_id: u64,
}

impl Client {
    fn start(agent: &ScriptedAgent) -> Self {
        let command = agent.command();
        let mut process = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = process.stdin.take();
        Self { _agent: agent.clone(), process, stdin, lines, session: String::new(), last_id: 0 }
    }

    fn send(&mut self, message: &Json) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Json) -> u64 {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        self.last_id
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("the agent sends a line")
    }

    fn message(&self) -> Json {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// `initialize` and `session/new`, whose answers come next.
    fn open_session(&mut self) {
        self.ask("initialize", &json!({ "protocolVersion": 1 }));
        assert_eq!(self.message()["result"]["protocolVersion"], 1);
        self.ask("session/new", &json!({ "cwd": "/project", "mcpServers": [] }));
        let answer = self.message();
        self.session = String::from(answer["result"]["sessionId"].as_str().unwrap());
    }

    fn prompt(&mut self) -> u64 {
        self.ask("session/prompt", &json!({ "sessionId": self.session, "prompt": [{ "type": "text", "text": "go" }] }))
    }

    fn cancel(&mut self) {
        let params = json!({ "sessionId": self.session });
        self.send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params }));
    }

    fn text(&self) -> String {
        let message = self.message();
        message["params"]["update"]["content"]["text"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned()
    }

    fn exit_status(&mut self) -> std::process::ExitStatus {
        poll(PATIENCE, || self.process.try_wait().unwrap()).expect("the agent exits")
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn without_a_scenario_it_behaves_well() {
    let agent = ScriptedAgent::new(&Scenario::new());
    let mut client = Client::start(&agent);
    client.open_session();
    let id = client.prompt();
    assert_eq!(client.message(), json!({ "jsonrpc": "2.0", "id": id, "result": { "stopReason": "end_turn" } }));
    client.ask("session/unheard_of", &json!({}));
    assert_eq!(client.message()["error"]["code"], -32601);
    client.stdin = None;
    assert!(client.exit_status().success());
    assert_eq!(agent.received("session/prompt").len(), 1);
    assert_eq!(agent.pids().len(), 1);
}

#[test]
fn prompts_are_played_in_turn_and_the_last_list_is_repeated() {
    let scenario = Scenario::new()
        .on_prompt([chunk("first"), thought("why"), plan(&[("a", "pending")]), end_turn()])
        .on_prompt([repeat(2, [chunk("later $i")]), stop("refusal")]);
    let mut client = Client::start(&ScriptedAgent::new(&scenario));
    client.open_session();
    client.prompt();
    assert_eq!(client.text(), "first");
    assert_eq!(client.text(), "why");
    assert_eq!(client.message()["params"]["update"]["entries"][0]["content"], "a");
    assert_eq!(client.message()["result"]["stopReason"], "end_turn");
    for _ in 0..2 {
        client.prompt();
        assert_eq!([client.text(), client.text()], ["later 0", "later 1"]);
        assert_eq!(client.message()["result"]["stopReason"], "refusal");
    }
}

#[test]
fn what_is_repeated_streams_where_it_takes_its_time() {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt([repeat(2, [chunk("part $i"), gate("gate-$i")])]));
    let mut client = Client::start(&agent);
    client.open_session();
    client.prompt();
    assert_eq!(client.text(), "part 0");
    agent.open_gate("gate-0");
    assert_eq!(client.text(), "part 1");
}

#[test]
fn its_requests_wait_for_answers_and_say_who_has_none() {
    let scenario = Scenario::new().on_prompt([
        read_file("a.txt").with_id(json!("one")),
        ask_permission("t", "Run").with_id(json!(null)).without_waiting(),
        write_file("a.txt", "text").with_id(json!(1)).without_waiting(),
        end_turn(),
    ]);
    let agent = ScriptedAgent::new(&scenario);
    let mut client = Client::start(&agent);
    client.open_session();
    client.prompt();
    let asked = client.message();
    assert_eq!((&asked["id"], &asked["params"]["path"]), (&json!("one"), &json!("/project/a.txt")));
    assert!(client.lines.try_recv().is_err(), "the steps wait for the answer");
    client.send(&json!({ "jsonrpc": "2.0", "id": "one", "result": { "content": "x" } }));
    assert_eq!(client.message()["params"]["options"][0]["kind"], "allow_once");
    assert_eq!(client.message()["method"], "fs/write_text_file");
    assert_eq!(client.message()["result"]["stopReason"], "end_turn");
    client.send(&json!({ "jsonrpc": "2.0", "id": "1", "result": {} }));
    client.send(&json!({ "jsonrpc": "2.0", "id": null, "result": {} }));
    agent.wait_answer("session/request_permission", 1);
    assert_eq!(agent.answers("fs/read_text_file")[0]["result"]["content"], "x");
    assert_eq!(agent.unanswered(), [("fs/write_text_file".to_owned(), json!(1))], "\"1\" is another id than 1");
    assert_eq!(agent.stray_answers().len(), 1);
}

#[test]
fn a_cancel_ends_the_prompt_unless_the_scenario_has_other_plans() {
    let scenario = Scenario::new().on_prompt([chunk("a"), gate("never"), chunk("not sent"), end_turn()]);
    let agent = ScriptedAgent::new(&scenario);
    let mut client = Client::start(&agent);
    client.open_session();
    client.prompt();
    assert_eq!(client.text(), "a");
    agent.wait_gate("never");
    client.cancel();
    assert_eq!(client.message()["result"]["stopReason"], "cancelled");

    let scenario = Scenario::new()
        .on_prompt([tool_call("t", "Work", "edit"), wait_for("session/cancel", 1), gate("slow"), stop("cancelled")])
        .on_cancel([tool_status("t", "failed")]);
    let agent = ScriptedAgent::new(&scenario);
    let mut client = Client::start(&agent);
    client.open_session();
    client.prompt();
    assert_eq!(client.message()["params"]["update"]["sessionUpdate"], "tool_call");
    client.cancel();
    assert_eq!(client.message()["params"]["update"]["status"], "failed");
    agent.wait_gate("slow");
    agent.open_gate("slow");
    assert_eq!(client.message()["result"]["stopReason"], "cancelled");
}

#[test]
fn answers_may_come_late_and_out_of_order() {
    let early = update(json!({ "sessionUpdate": "available_commands_update", "availableCommands": [] }));
    let scenario = Scenario::new()
        .on_initialize([delay(Duration::from_millis(20)), initialized(json!({ "loadSession": true }))])
        .on_new_session([early, wait_for("session/new", 2), gate("second answered"), new_session()])
        .on_new_session([reply_error(-32000, "Authentication required")]);
    let agent = ScriptedAgent::new(&scenario);
    let mut client = Client::start(&agent);
    client.ask("initialize", &json!({}));
    assert_eq!(client.message()["result"]["agentCapabilities"]["loadSession"], true);
    let first = client.ask("session/new", &json!({ "cwd": "/a" }));
    let session = client.message()["params"]["sessionId"].clone();
    let second = client.ask("session/new", &json!({ "cwd": "/b" }));
    assert_eq!(client.message()["id"], second);
    agent.open_gate("second answered");
    let answer = client.message();
    assert_eq!((&answer["id"], &answer["result"]["sessionId"]), (&json!(first), &session));
}

#[test]
fn it_writes_any_bytes() {
    let scenario =
        Scenario::new().on_start([noise("\u{feff}hello"), noise(""), raw("{\"half"), raw("\n"), stderr("why")]);
    let scenario =
        scenario.on_initialize([fill("xy", 3 << 20), noise(""), send(json!({ "id": "$id", "result": "$$" }))]);
    let agent = ScriptedAgent::new(&scenario);
    let mut client = Client::start(&agent);
    assert_eq!([client.line(), client.line(), client.line()], ["\u{feff}hello", "", "{\"half"]);
    let id = client.ask("initialize", &json!({}));
    assert_eq!(client.line().len(), 6 << 20);
    assert_eq!(client.message()["id"], id);
    writeln!(client.stdin.as_mut().unwrap(), "no message").unwrap();
    agent.wait("the garbage", |log| log.iter().any(|entry| entry.what() == "received_garbage").then_some(()));
}

#[test]
fn it_ends_in_every_way() {
    let client = |scenario: Scenario| Client::start(&ScriptedAgent::new(&scenario));
    assert_eq!(client(Scenario::new().on_start([exit(3)])).exit_status().code(), Some(3));
    assert_eq!(client(Scenario::new().on_start([die(9)])).exit_status().code(), None);

    let agent = ScriptedAgent::new(&Scenario::new().on_start([close_stdout()]));
    let mut silent = Client::start(&agent);
    assert!(silent.lines.recv_timeout(PATIENCE).is_err(), "stdout is closed");
    silent.ask("initialize", &json!({}));
    agent.wait("the end of its voice", |log| log.iter().any(|entry| entry.what() == "cannot_send").then_some(()));

    let agent = ScriptedAgent::new(&Scenario::new().ignoring_eof().ignoring_signals(&[15]));
    let mut stubborn = Client::start(&agent);
    stubborn.open_session();
    stubborn.stdin = None;
    agent.wait("the end of stdin", |log| log.iter().any(|entry| entry.what() == "eof").then_some(()));
    assert!(stubborn.process.try_wait().unwrap().is_none());
}

#[test]
fn its_children_are_stubborn() {
    let scenario = Scenario::new().on_start([spawn_stubborn_child(true), spawn_child_with_pipes(), exit(0)]);
    let agent = ScriptedAgent::new(&scenario);
    let mut client = Client::start(&agent);
    assert!(client.exit_status().success());
    let children = agent.spawned();
    assert_eq!(children.len(), 2);
    let term = Command::new("kill").args(["-TERM", &children[0].to_string()]).status().unwrap();
    assert!(term.success() && children.iter().all(|pid| processes::is_alive(*pid)));
    assert!(matches!(client.lines.try_recv(), Err(mpsc::TryRecvError::Empty)), "the second child holds stdout open");
    for pid in &children {
        processes::kill9(*pid);
    }
    assert!(client.lines.recv_timeout(PATIENCE).is_err());
}

#[test]
fn two_processes_of_one_agent_share_the_log() {
    let agent =
        ScriptedAgent::new(&Scenario::new().on_prompt([request("x/y", json!({})).with_id(json!(7)), end_turn()]));
    let sessions: Vec<String> = (0..2)
        .map(|_| {
            let mut client = Client::start(&agent);
            client.open_session();
            client.prompt();
            assert_eq!(client.message()["id"], 7);
            client.session.clone()
        })
        .collect();
    assert_ne!(sessions[0], sessions[1]);
    assert_eq!(agent.unanswered().len(), 2, "the same id of two processes is two requests");
}

#[test]
fn a_recording_is_said_again() {
    let recording = Recording::load("gemini-cli-0.61.0-text");
    let agent = ScriptedAgent::replay(&recording);
    let mut client = Client::start(&agent);
    client.ask("initialize", &json!({}));
    let mut said = String::new();
    let mut prompted = false;
    let logged = |what: &str, act: Option<&str>| {
        agent.log().iter().any(|entry| entry.what() == what && entry.get("act").as_str() == act)
    };
    loop {
        let line = match client.lines.recv_timeout(Duration::from_millis(20)) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                if logged("replayed", None) {
                    // What is still in the pipe is read before its end.
                    client.stdin = None;
                } else if logged("expects", Some("prompt")) && !prompted {
                    prompted = true;
                    client.prompt();
                }
                continue;
            }
        };
        let Ok(message) = serde_json::from_str::<Json>(&line) else {
            continue;
        };
        if message["id"] == 1 {
            client.ask("session/new", &json!({ "cwd": "/elsewhere" }));
        }
        if let Some(session) = message["result"]["sessionId"].as_str() {
            client.session = session.to_owned();
        }
        if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
            said.push_str(message["params"]["update"]["content"]["text"].as_str().unwrap());
        }
    }
    let recorded: String = recording.message_chunks().into_iter().map(|(_, text)| text).collect();
    assert!(!recorded.is_empty());
    assert_eq!(said, recorded);
}
