//! `--run-tools`.

use std::io::{Read as _, Write};
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::responses_server::{Answer, Kind, Server};
use crate::{User, shell, weather};

fn with_run(name: &str, script: &str) -> Value {
    json!({"type": "function", "name": name, "run": shell(script)})
}

#[test]
fn the_loop_goes_on_until_the_model_is_done() {
    for kind in Kind::ALL {
        let server = Server::start(kind);
        server
            .answer(Answer::new().text("I look.").call("call_1", "time", "{\"city\":\"Oslo\"}"))
            .answer(Answer::new().call("call_2", "time", "{\"city\":\"Rome\"}"))
            .answer(Answer::new().text("Done."));
        let user = User::of(&server, kind);
        let file = user.tools(&json!([with_run("time", "sed 's/.*:/got /'")]));
        let outcome = user.chat(&["hi", "--tools-file", &file, "--run-tools", "--yes", "--tool-choice", "required"]);
        let result = outcome.json();
        assert_eq!(result["content"], "Done.", "{kind:?}");
        assert_eq!(result["usage"]["total_tokens"], 51, "all requests count");
        let outputs: Vec<&Value> = result["tool_runs"].as_array().unwrap().iter().map(|run| &run["output"]).collect();
        assert_eq!(outputs, ["got \"Oslo\"}", "got \"Rome\"}"], "{kind:?}");
        let posts = server.posts();
        assert!(posts[0]["tools"][0].get("run").is_none(), "what runs here is no business of the endpoint's");
        // Whoever has to call a function would call one for ever.
        assert!(posts[1]["tool_choice"] == "auto" || posts[1]["tool_choice"].is_null(), "{kind:?}");
        let kept = user.chat(&["list-input-items", "resp_3", "--order", "asc"]).json();
        let outputs =
            kept["data"].as_array().unwrap().iter().filter(|item| item["type"] == "function_call_output").count();
        assert_eq!(outputs, 2, "{kind:?}");
    }
}

#[test]
fn it_is_seen_while_it_happens() {
    let server = Server::start(Kind::OpenAi);
    server
        .answer(Answer::new().text("I look.").call("call_1", "time", "{\"a\":1}"))
        .answer(Answer::new().text("Noon."));
    let user = User::of(&server, Kind::OpenAi);
    let file = user.tools(&json!([with_run("time", "cat >/dev/null; echo 12:00")]));
    let outcome = user.chat(&["hi", "--stream", "--tools-file", &file, "--run-tools", "--yes"]);
    assert_eq!(outcome.text(), "Response:\nI look.\n[Tool args] {\"a\":1}\n[Tool output] 12:00\nResponse:\nNoon.\n");
}

#[test]
fn what_a_program_says_wrong_is_told_to_the_model() {
    let server = Server::start(Kind::OpenAi);
    server
        .answer(Answer::new().call("a", "fails", "{}").call("b", "missing", "{}").call("c", "fails", "{\"x\":"))
        .answer(Answer::new().text("Oh."));
    let user = User::of(&server, Kind::OpenAi);
    let file = user.tools(&json!([with_run("fails", "echo why; echo for the user >&2; exit 3"),
        {"type": "function", "name": "missing", "run": ["/nowhere/at/all"]}]));
    let outcome = user.chat(&["hi", "--tools-file", &file, "--run-tools", "-y", "--store=false"]);
    assert_eq!(outcome.json()["content"], "Oh.");
    assert!(outcome.stderr.contains("for the user"), "{outcome:#?}");
    let input = server.posts()[1]["input"].clone();
    let output = |id: &str| {
        let item = input
            .as_array()
            .unwrap()
            .iter()
            .find(|item| item["type"] == "function_call_output" && item["call_id"] == id);
        item.unwrap()["output"].as_str().unwrap().to_owned()
    };
    assert!(output("a").contains("exit status: 3") && output("a").ends_with("why"));
    assert!(output("b").contains("could not be run"));
    assert!(output("c").contains("not valid JSON"));
}

#[test]
fn it_ends_after_max_turns() {
    let server = Server::start(Kind::OpenAi);
    for turn in 0..3 {
        server.answer(Answer::new().call(&format!("call_{turn}"), "time", "{}"));
    }
    let user = User::of(&server, Kind::OpenAi);
    let file = user.tools(&json!([with_run("time", "echo 1")]));
    let outcome = user.chat(&["hi", "--tools-file", &file, "--run-tools", "--yes", "--max-turns", "2"]);
    assert!(outcome.error(1)["message"].as_str().unwrap().contains("--max-turns"), "{outcome:#?}");
    assert_eq!(server.posts().len(), 2);
    assert!(outcome.stdout.contains("\"call_1\""), "the last response is shown: {outcome:#?}");
}

#[test]
fn a_function_without_program_is_only_shown() {
    let server = Server::start(Kind::OpenAi);
    server.answer(Answer::new().call("a", "query_weather", "{}").call("b", "time", "{}"));
    let user = User::of(&server, Kind::OpenAi);
    let ran = user.home.path().join("ran");
    let file = user.tools(&json!([weather(), with_run("time", &format!("touch {}", ran.display()))]));
    let outcome = user.chat(&["hi", "--tools-file", &file, "--run-tools", "--yes"]);
    assert_eq!(outcome.json()["function_calls"].as_array().unwrap().len(), 2);
    assert!(outcome.stderr.contains("query_weather") && !ran.exists(), "{outcome:#?}");
}

#[test]
fn there_has_to_be_somebody_to_ask() {
    let server = Server::start(Kind::OpenAi);
    let user = User::of(&server, Kind::OpenAi);
    let file = user.tools(&json!([with_run("time", "echo 1")]));
    // In a session of its own the program has no terminal.
    let mut command = std::process::Command::new("setsid");
    command.arg("--wait").arg(env!("CARGO_BIN_EXE_agentchat")).args([
        "chat",
        "hi",
        "--tools-file",
        &file,
        "--run-tools",
    ]);
    let output = command.env("HOME", user.home.path()).stdin(std::process::Stdio::null()).output().unwrap();
    let outcome = crate::outcome(output);
    assert!(outcome.refused().contains("no terminal"), "{outcome:#?}");
    assert_eq!(server.requests().len(), 0);
    assert!(user.chat(&["hi", "--run-tools"]).refused().contains("needs a function with \"run\""));
}

/// The program at a terminal, and what it prints there.
struct Terminal {
    writer: Box<dyn Write + Send>,
    screen: mpsc::Receiver<String>,
    seen: String,
    child: Box<dyn portable_pty::Child + Send + Sync>,
}

impl Terminal {
    fn start(user: &User, arguments: &[&str]) -> Self {
        let pty = portable_pty::native_pty_system().openpty(portable_pty::PtySize::default()).unwrap();
        let mut command = portable_pty::CommandBuilder::new(env!("CARGO_BIN_EXE_agentchat"));
        command.args(arguments);
        command.env_clear();
        command.env("HOME", user.home.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let child = pty.slave.spawn_command(command).unwrap();
        let (mut reader, writer) = (pty.master.try_clone_reader().unwrap(), pty.master.take_writer().unwrap());
        let (tell, screen) = mpsc::channel();
        std::thread::spawn(move || {
            // The terminal lives as long as its output is read.
            let _master = pty.master;
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if tell.send(String::from_utf8_lossy(&bytes[..count]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self { writer, screen, seen: String::new(), child }
    }

    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        while !self.seen.contains(text) {
            match self.screen.recv_timeout(std::time::Duration::from_secs(20)) {
                Ok(more) => self.seen.push_str(&more),
                Err(error) => panic!("{error}: {text:?} is not in {:?}", self.seen),
            }
        }
    }

    #[track_caller]
    fn answer(&mut self, key: &str) {
        self.wait_for("[q]uit? ");
        self.seen.clear();
        self.writer.write_all(key.as_bytes()).unwrap();
    }
}

#[test]
fn each_run_is_asked_about() {
    let server = Server::start(Kind::OpenAi);
    server
        .answer(Answer::new().call("a", "time", "{\"n\":1}"))
        .answer(Answer::new().call("b", "time", "{\"n\":2}"))
        .answer(Answer::new().call("c", "time", "{\"n\":3}"))
        .answer(Answer::new().call("d", "other", "{}"));
    let user = User::of(&server, Kind::OpenAi);
    let file = user.tools(&json!([with_run("time", "cat"), with_run("other", "cat")]));
    let mut terminal = Terminal::start(&user, &["chat", "hi", "--stream", "--tools-file", &file, "--run-tools"]);
    terminal.wait_for("Run time with {\"n\":1}\r\n  sh -c cat\r\n");
    terminal.answer("n\n");
    terminal.answer("a\n");
    // "Always" holds for this function, and for no other.
    terminal.wait_for("Run other with");
    terminal.answer("q\n");
    terminal.wait_for("stopped by the user");
    assert_eq!(terminal.child.wait().unwrap().exit_code(), 1);
    let outputs: Vec<Value> = server.posts()[1..].iter().map(|body| body["input"][0]["output"].clone()).collect();
    assert_eq!(outputs, ["The user did not allow this call.", "{\"n\":2}", "{\"n\":3}"]);
}
