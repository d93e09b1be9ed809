//! Ctrl-C.

use std::io::Read as _;
use std::process::Child;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use crate::responses_server::{Answer, Kind, Server};
use crate::{User, outcome, shell};

const BEGUN: &str = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_7\"}}\n\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hel\"}\n\n";

fn interrupt(child: &Child) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
}

#[test]
fn what_had_come_is_stored_and_said() {
    let server = Server::start(Kind::Ollama);
    server.answer(Answer::raw([BEGUN]).stall_after(BEGUN.len()));
    let user = User::of(&server, Kind::Ollama);
    let mut child = user.command(&["chat", "hi", "--stream"]).spawn().unwrap();
    let mut seen = [0; 13];
    child.stdout.as_mut().unwrap().read_exact(&mut seen).unwrap();
    interrupt(&child);
    let outcome = outcome(child.wait_with_output().unwrap());
    assert_eq!((outcome.stdout.as_str(), &seen), ("\n", b"Response:\nHel"));
    let error = outcome.error(1);
    assert_eq!(error["type"], "cancelled");
    assert!(error["hint"].as_str().unwrap().contains("agentchat chat get resp_7"), "{error}");
    server.wait_hung_up(1);
    let kept = user.chat(&["get", "resp_7"]).json();
    assert_eq!((&kept["content"], &kept["status"]), (&json!("Hel"), &json!("cancelled")));
}

#[test]
fn nothing_is_stored_of_what_had_not_come() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().text("Hello").stall_after(0));
    let user = User::of(&server, Kind::OpenAi);
    let child = user.command(&["chat", "hi"]).spawn().unwrap();
    server.wait_requests(1);
    interrupt(&child);
    let outcome = outcome(child.wait_with_output().unwrap());
    assert!(outcome.error(1)["hint"].as_str().unwrap().contains("nothing"), "{outcome:#?}");
    assert!(!user.store().exists());
}

#[test]
fn a_program_that_runs_is_ended() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().call("a", "wait", "{}"));
    let user = User::of(&server, Kind::OpenAi);
    let fifo = user.home.path().join("started");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let script = format!("echo $$ > {}; exec sleep 1000", fifo.display());
    let file = user.tools(&json!([{"type": "function", "name": "wait", "run": shell(&script)}]));
    let child = user.command(&["chat", "hi", "--tools-file", &file, "--run-tools", "--yes"]).spawn().unwrap();
    let program: i32 = std::fs::read_to_string(&fifo).unwrap().trim().parse().unwrap();
    interrupt(&child);
    let outcome = outcome(child.wait_with_output().unwrap());
    assert_eq!(outcome.error(1)["type"], "cancelled");
    let started = std::time::Instant::now();
    let state = |pid: i32| {
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .ok()
            .and_then(|stat| stat.rsplit_once(')')?.1.trim().chars().next())
    };
    while state(program).is_some_and(|state| state != 'Z') {
        assert!(started.elapsed().as_secs() < 20, "it still runs");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_reader_that_does_not_read_does_not_keep_it() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().text(&"words ".repeat(100_000)).pieces(1000));
    let user = User::of(&server, Kind::OpenAi);
    let mut child = user.command(&["chat", "hi", "--stream"]).spawn().unwrap();
    server.wait_requests(1);
    // It is stuck once it has written something and the pipe is full.
    let mut seen = [0; 10];
    child.stdout.as_mut().unwrap().read_exact(&mut seen).unwrap();
    interrupt(&child);
    let started = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed().as_secs() < 20, "it still runs");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
