//! What comes out of an agent's stdout besides well-formed lines: noise, broken bytes, and lines of any length.

use std::fs;

use serde_json::{Value as Json, json};

use crate::support::scenario::{
    Scenario, bytes, chunk, end_turn, fill, gate, noise, raw, read_file, request, send, tool_call, write_file,
};
use crate::support::{Editor, ScriptedAgent, Setup};

/// The line of a chunk, as an agent writes it, without its line break.
fn chunk_line(text: &str) -> String {
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "$session", "update": update } })
        .to_string()
}

/// An editor whose chat has run one prompt of this agent.
fn after_a_prompt(setup: Setup, agent: &ScriptedAgent) -> Editor {
    let editor = Editor::start(setup.agent("scripted", agent));
    editor.command("AgentChat open");
    editor.prompt("go");
    editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
    editor
}

#[test]
fn noise_around_messages_costs_nothing() {
    let scenario = Scenario::new()
        .on_start([noise("hello, this is agent 1.0"), noise(""), noise("   "), raw("\u{feff}")])
        .on_prompt([
            noise("\u{1b}[2K[info] loading {\"model\": \"x\"}"),
            raw("\u{1b}[2J\u{1b}[H"),
            chunk("one "),
            raw(&format!("{}\r\n", chunk_line("two "))),
            noise(&format!("[{}]", chunk_line("in an array "))),
            noise("[]"),
            noise("17"),
            noise("null"),
            noise("\"text\""),
            noise("{}"),
            noise(&chunk_line("half ")[..60]),
            noise("{\"jsonrpc\":\"2.0\",\"id\":"),
            noise(&format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{}{}}}",
                "[".repeat(100_000),
                "]".repeat(100_000)
            )),
            noise(&"{\"a\":".repeat(100_000)),
            raw(&format!("\t{}  \n", chunk_line("three "))),
            raw(&chunk_line("never finished ")[..60]),
            raw(&chunk_line("four")),
            raw("\u{1b}[0m\r\n"),
            end_turn(),
        ]);
    let agent = ScriptedAgent::new(&scenario);
    let editor = after_a_prompt(Setup::new(), &agent);
    assert!(editor.transcript().contains(&"one two three four".to_owned()), "{:?}", editor.transcript());
    assert_eq!(editor.transcript().len(), 4, "noise is for the log: {:?}", editor.transcript());
    let log = editor.wait("the log has the noise", |e| {
        let folder = fs::read_dir(e.xdg("state").join("agentchat")).ok()?;
        let texts = folder.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok());
        Some(texts.collect::<String>()).filter(|log| log.contains("hello, this is agent 1.0"))
    });
    assert!(log.contains("a line was skipped"), "{log}");
}

#[test]
fn broken_text_is_repaired_and_the_rest_of_the_message_used() {
    let line = chunk_line("cut BROKEN here ");
    let (before, after) = line.split_once("BROKEN").unwrap();
    let scenario = Scenario::new().on_prompt([
        raw(&before.replace("$session", "session-1.1")),
        bytes(&[0xff, 0xc3]),
        raw(&format!("{after}\n")),
        noise(&line.replace("BROKEN", r"\ud83d")),
        noise(&line.replace("BROKEN", r"\ude00")),
        noise(&line.replace("BROKEN", r"\ud83d\ude00")),
        noise(&line.replace("BROKEN", r"\u0000\u0007\u001b[31m")),
        send(json!({ "jsonrpc": "2.0", "id": "b", "method": "x/\u{fffd}" })),
        end_turn(),
    ]);
    let agent = ScriptedAgent::new(&scenario);
    let editor = after_a_prompt(Setup::new(), &agent);
    let wanted =
        "cut \u{fffd}\u{fffd} here cut \u{fffd} here cut \u{fffd} here cut 😀 here cut \0\u{7}\u{1b}[31m here ";
    assert!(editor.transcript_text().contains(wanted), "{:?}", editor.transcript());
    assert_eq!(agent.wait_answer("x/\u{fffd}", 1)["error"]["code"], -32601);
    let screen = editor.wait_screen("here");
    assert!(screen.contains("^[[31m"), "control characters are shown, not obeyed");
}

#[test]
fn a_message_needs_no_jsonrpc_member_and_may_have_more_than_the_protocol_says() {
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "used",
        "annotations": null, "new": [1] }, "_meta": null, "extra": { "a": 1 } });
    let scenario = Scenario::new()
        .on_initialize([send(json!({ "id": "$id", "result": { "protocolVersion": 1, "agentCapabilities": null,
            "authMethods": null, "agentInfo": null, "future": {} }, "error": null }))])
        .on_new_session([send(json!({ "id": "$id", "jsonrpc": "1.0", "result": { "sessionId": "s", "modes": null,
            "configOptions": null, "models": 7 } }))])
        .on_prompt([
            send(json!({ "method": "session/update", "params": { "sessionId": "s", "update": update, "_meta": null },
                "trace": "x" })),
            send(json!({ "method": "fs/nothing", "id": 5 })),
            end_turn(),
        ]);
    let agent = ScriptedAgent::new(&scenario);
    let editor = after_a_prompt(Setup::new(), &agent);
    assert_eq!(editor.transcript().last().map(String::as_str), Some("used"));
    assert_eq!(agent.wait_answer("fs/nothing", 1)["error"]["code"], -32601);
}

/// A chunk whose image has `size` characters, in one line.
fn image(size: u64) -> [crate::support::scenario::Step; 3] {
    let content = json!({ "type": "image", "mimeType": "image/png", "data": "DATA" });
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": content });
    let params = json!({ "sessionId": "$session", "update": update });
    let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string();
    let (before, after) = line.split_once("DATA").unwrap();
    [raw(before), fill("A", size), raw(&format!("{after}\n"))]
}

#[test]
fn lines_of_any_length_up_to_the_limit_are_read() {
    const SIZES: [u64; 4] = [70_000, 1_000_000, 12_000_000, 60_000_000];
    let steps = SIZES.into_iter().flat_map(image).chain([chunk("\nstill here"), end_turn()]);
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.wait_state("idle");
    let ((), delay) = editor.rtt(|e| {
        e.prompt("go");
        e.wait_transcript("still here");
    });
    for size in SIZES {
        let described = format!("[image image/png, {} bytes]", size / 4 * 3);
        assert!(editor.transcript_has(&described), "{described} in {:?}", editor.transcript());
    }
    assert!(delay.max.as_secs_f64() < 1.0, "a key waited {:?}", delay.max);
}

#[test]
fn a_diff_of_twelve_megabytes_is_a_card() {
    let diff = |text: &str| json!([{ "type": "diff", "path": "/p/big.txt", "oldText": "a\n", "newText": text }]);
    let update = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "t", "content": diff("DATA"),
        "status": "completed" });
    let params = json!({ "sessionId": "$session", "update": update });
    let line = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }).to_string();
    let (before, after) = line.split_once("DATA").unwrap();
    let steps = [
        tool_call("t", "Write big.txt", "edit"),
        raw(before),
        fill("0123456789abcdef ", 700_000),
        raw(&format!("{after}\n")),
        end_turn(),
    ];
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.wait_state("idle");
    let ((), delay) = editor.rtt(|e| {
        e.prompt("go");
        e.wait_transcript("big.txt  +1 −1");
        e.wait_state("idle");
    });
    assert!(delay.max.as_secs_f64() < 1.0, "a key waited {:?}", delay.max);
    let longest = editor.transcript().iter().map(String::len).max();
    assert!(longest < Some(3_000), "a row of a card has {longest:?} bytes");
}

/// The most memory that a process of the helper ever had, in MiB.
fn peak_memory(editor: &Editor) -> u64 {
    let helpers = editor.processes().into_iter().filter(|process| process.command.contains("agentchat nvim"));
    let peaks = helpers.filter_map(|process| {
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?.to_owned();
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    peaks.max().expect("the helper runs") / 1024
}

#[test]
fn a_line_without_end_costs_no_memory_and_the_next_one_is_read() {
    let steps = [chunk("before"), fill("x", 300_000_000), gate("end of line"), noise(""), chunk("after"), end_turn()];
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent).config("max_line_bytes", json!(1_000_000)));
    editor.command("AgentChat open");
    editor.prompt("go");
    agent.wait_gate("end of line");
    // The user hears of it although the line has not ended.
    editor.wait_transcript("The agent sent a message of more than 1000000 bytes");
    editor.wait_transcript("max_line_bytes");
    assert_eq!(editor.state(), "running");
    assert!(peak_memory(&editor) < 100, "the helper had {} MiB", peak_memory(&editor));
    agent.open_gate("end of line");
    editor.wait_transcript("after");
    editor.wait_state("idle");
}

#[test]
fn an_oversize_message_of_one_session_costs_no_other() {
    let scenario = Scenario::new()
        .on_prompt([
            chunk("first begins"),
            gate("big"),
            fill("x", 5_000),
            noise(""),
            chunk("first goes on"),
            end_turn(),
        ])
        .on_prompt([chunk("second begins"), gate("second"), chunk("second goes on"), read_file("a.txt"), end_turn()]);
    let agent = ScriptedAgent::new(&scenario);
    let setup = Setup::new().agent("scripted", &agent).config("max_line_bytes", json!(4_000)).file("a.txt", "text\n");
    let editor = Editor::start(setup);
    editor.command("AgentChat open");
    editor.prompt("one");
    agent.wait_gate("big");
    editor.command("tabnew");
    editor.command("AgentChat open");
    editor.prompt("two");
    agent.wait_gate("second");
    assert_eq!(agent.pids().len(), 1, "both sessions are on one process");
    agent.open_gate("big");
    editor.wait_transcript("it was dropped");
    editor.wait_transcript("first begins");
    editor.wait_transcript("first goes on");
    agent.open_gate("second");
    editor.wait_transcript("second goes on");
    editor.wait_state("idle");
    assert_eq!(agent.answers("fs/read_text_file")[0]["result"]["content"], "text\n");
    editor.wait_until("both turns are over", |e| e.events("AgentChatTurnEnd").len() == 2);
}

#[test]
fn an_answer_that_was_too_long_ends_what_it_answers() {
    let answer =
        json!({ "jsonrpc": "2.0", "id": 3, "result": { "stopReason": "end_turn", "_meta": "x".repeat(9_000) } });
    let scenario = Scenario::new().on_prompt([send(answer)]).on_prompt([chunk("again"), end_turn()]);
    let agent = ScriptedAgent::new(&scenario);
    let editor = Editor::start(Setup::new().agent("scripted", &agent).config("max_line_bytes", json!(4_000)));
    editor.command("AgentChat open");
    editor.prompt("go");
    editor.wait_transcript("it was dropped");
    editor.wait_transcript("The agent could not go on: its answer had more than 4000 bytes");
    editor.wait_state("idle");
    editor.prompt("more");
    editor.wait_transcript("again");
}

#[test]
fn a_request_that_was_too_long_is_answered() {
    let scenario = Scenario::new().on_prompt([
        write_file("a.txt", &"x".repeat(9_000)).with_id(json!("long/1")),
        chunk("it goes on"),
        end_turn(),
    ]);
    let agent = ScriptedAgent::new(&scenario);
    let editor = after_a_prompt(Setup::new().config("max_line_bytes", json!(4_000)), &agent);
    let answer = agent.wait_answer("fs/write_text_file", 1);
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    editor.wait_transcript("it was dropped");
    editor.wait_transcript("it goes on");
    assert!(editor.file("a.txt").is_none());
}

#[test]
fn a_request_in_the_last_line_before_stdout_ends_is_no_crash() {
    let scenario = Scenario::new().on_prompt([
        request("x/y", json!({})).without_waiting(),
        raw("{\"jsonrpc\":\"2.0\",\"id\":\"last\",\"method\":\"x/last\"}"),
        crate::support::scenario::exit(0),
    ]);
    let agent = ScriptedAgent::new(&scenario);
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.prompt("go");
    editor.wait_state("failed");
    editor.wait_transcript("scripted ended: ");
    let failure: Json = editor.status()["error"].clone();
    assert!(failure.as_str().unwrap().contains("restart"), "{failure}");
}

#[test]
fn requests_in_an_array_are_refused_each() {
    let asks = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"fs/read_text_file","params":{{"sessionId":"x","path":"/x"}}}}"#
        )
    };
    let scenario = Scenario::new().on_prompt([
        raw(&format!("[{}, {}]\n", asks("7"), asks("\"b\""))),
        chunk("afterwards"),
        end_turn(),
    ]);
    let agent = ScriptedAgent::new(&scenario);
    let editor = after_a_prompt(Setup::new(), &agent);
    editor.wait_transcript("afterwards");
    // The scripted agent does not know that it asked.
    let answers = agent.wait("both answers", |_| Some(agent.stray_answers()).filter(|answers| answers.len() == 2));
    for (answer, id) in answers.iter().zip([json!(7), json!("b")]) {
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32600)), "{answer}");
    }
}
