//! Much at once: the editor answers keys, nothing is lost, and afterwards nothing runs.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::support::scenario::{
    Scenario, Step, ask_permission, ask_permission_with, chunk, end_turn, gate, plan, repeat, request, send, thought,
    tool_call, tool_status, tool_update, update, wait_for,
};
use crate::support::{Editor, KeyDelay, ScriptedAgent, Setup, poll};

/// A generous bound: what a key really waits is measured by the benches.
const KEY_MAY_WAIT: Duration = Duration::from_secs(1);

/// Runs one prompt to its end.
fn run(steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent, KeyDelay) {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.wait_state("idle");
    let ((), delay) = editor.rtt(|e| {
        e.prompt("go");
        e.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
    });
    assert!(delay.max < KEY_MAY_WAIT, "a key waited {:?}", delay.max);
    (editor, agent, delay)
}

#[test]
fn keys_are_answered_in_a_flood_of_chunks_and_no_chunk_is_lost() {
    let (editor, _agent, delay) = run([repeat(10_000, [chunk("word $i "), chunk("and $i\n")]), end_turn()]);
    assert!(delay.probes > 20, "the editor was asked only {} times", delay.probes);
    let expected: Vec<String> = (0..10_000).map(|number| format!("word {number} and {number}")).collect();
    let transcript = editor.transcript();
    assert_eq!(transcript.len(), expected.len() + 4, "heading, prompt, blank line, and the line that may go on");
    assert_eq!(transcript[3..expected.len() + 3], expected);
}

#[test]
fn thoughts_may_flood_too() {
    let (editor, _agent, _) = run([repeat(5_000, [thought("hm $i, ")]), chunk("done"), end_turn()]);
    assert!(editor.transcript_has("hm 4999, "));
    assert!(editor.transcript_has("done"));
}

#[test]
fn one_message_of_two_megabytes_is_whole() {
    let lines: Vec<String> =
        (0..40_000).map(|number| format!("line {number} of one very long message without an end\n")).collect();
    let text = lines.concat();
    let (editor, _agent, _) = run([chunk(&text), end_turn()]);
    assert_eq!(editor.transcript()[3..].join("\n"), text);
}

#[test]
fn one_line_of_half_a_megabyte_is_whole() {
    let text = "0123456789 ".repeat(45_000);
    let pieces = text.as_bytes().chunks(5_000).map(|piece| chunk(std::str::from_utf8(piece).unwrap()));
    let (editor, _agent, _) = run(pieces.chain([end_turn()]).collect::<Vec<_>>());
    assert_eq!(editor.transcript().last(), Some(&text));
}

#[test]
fn two_megabytes_of_output_just_before_the_end_of_a_call_are_a_card() {
    let lines: Vec<String> = (0..60_000).map(|number| format!("{number:05} some line of the tool's output")).collect();
    for text in [lines.join("\n"), lines.join(" ")] {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let (editor, _agent, _) = run([
            tool_call("t", "Run the tests", "execute"),
            tool_update("t", json!({ "content": content, "rawOutput": { "text": text } })),
            tool_update("t", json!({ "status": "completed" })),
            chunk("and then"),
            end_turn(),
        ]);
        let transcript = editor.transcript();
        assert!(transcript.iter().any(|line| line.starts_with("✓ Run the tests")), "{transcript:?}");
        assert!(transcript.iter().any(|line| line.contains("00000 some line")), "{transcript:?}");
        assert!(transcript.iter().all(|line| line.len() < 3_000), "a card's row is bounded");
        assert!(transcript.len() < 2_020, "a card's rows are bounded");
        assert!(editor.screen().contains("and then"), "and nearly all of them are folded");
    }
}

#[test]
fn calls_and_status_may_flood_too() {
    let (editor, _agent, _) = run([
        repeat(
            3_000,
            [
                tool_call("t$i", "Call $i", "read"),
                update(json!({ "sessionUpdate": "usage_update", "used": 1, "size": 100 })),
                tool_update("t$i", json!({ "status": "in_progress" })),
                plan(&[("step $i", "in_progress")]),
                tool_update("t$i", json!({ "status": "completed" })),
            ],
        ),
        end_turn(),
    ]);
    let done = editor.transcript().iter().filter(|line| line.starts_with("✓ Call ")).count();
    assert_eq!(done, 3_000);
    assert!(editor.transcript_has("step 2999"));
    // Those that Neovim was too busy for are coalesced; the last status of each call is told.
    editor.wait_until("the last status of each call", |e| {
        let told = e.events("AgentChatToolCall");
        let ended: BTreeSet<&str> = told
            .iter()
            .filter(|call| call["status"] == json!("completed"))
            .filter_map(|call| call["tool_call_id"].as_str())
            .collect();
        ended.len() == 3_000
    });
}

#[test]
fn many_permission_requests_at_once_are_all_answered() {
    let agent = ScriptedAgent::new(
        &Scenario::new()
            .on_prompt([
                repeat(200, [ask_permission("t$i", "Call $i").without_waiting()]),
                wait_for("session/cancel", 1),
            ])
            .on_cancel([]),
    );
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    let ((), delay) = editor.rtt(|e| {
        e.prompt("go");
        e.wait_until("all are counted", |e| e.status()["permissions"] == 200);
        e.lua("require('agentchat').respond('allow_once')", json!([]));
        e.command("AgentChat cancel");
        e.wait_until("none is open", |e| e.status()["permissions"] == 0);
    });
    assert!(delay.max < KEY_MAY_WAIT, "a key waited {:?}", delay.max);
    agent.wait_answer("session/request_permission", 200);
    let answers = agent.answers("session/request_permission");
    let selected: Vec<&Json> = answers
        .iter()
        .map(|answer| &answer["result"]["outcome"])
        .filter(|outcome| outcome["outcome"] == "selected")
        .collect();
    assert_eq!(selected, [&json!({ "outcome": "selected", "optionId": "allow_once" })]);
    assert_eq!(agent.stray_answers(), [Json::Null; 0]);
}

#[test]
fn a_permission_request_of_megabytes_is_shown_and_answered() {
    let huge = "0123456789 ".repeat(100_000);
    let lines = "a line of the plan\n".repeat(50_000);
    let subject = json!({ "toolCallId": "t", "title": format!("Begin {huge}"), "kind": "execute",
        "rawInput": { "command": format!("echo {huge}") },
        "content": [{ "type": "content", "content": { "type": "text", "text": lines } },
                    { "type": "diff", "path": "/p/a", "oldText": huge, "newText": lines }] });
    let options = json!([{ "optionId": "yes", "name": "Yes", "kind": "allow_once" }]);
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt([ask_permission_with(subject, options), end_turn()]));
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.wait_state("idle");
    let ((), delay) = editor.rtt(|e| {
        e.prompt("go");
        e.wait_screen("Begin 0123456789");
        e.wait_until("the request is answered", |e| {
            e.try_lua("require('agentchat').respond('yes')", json!([])).is_ok()
        });
        e.wait_state("idle");
    });
    assert!(delay.max < KEY_MAY_WAIT, "a key waited {:?}", delay.max);
    assert_eq!(agent.answers("session/request_permission")[0]["result"]["outcome"]["optionId"], "yes");
}

#[test]
fn fields_of_a_megabyte_cost_no_key_anything() {
    let huge = "0123456789 ".repeat(100_000);
    let option = json!([{ "optionId": huge, "name": huge, "kind": huge }]);
    let (editor, agent, _) = run([
        update(json!({ "sessionUpdate": "session_info_update", "title": huge })),
        update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": huge })),
        update(json!({ "sessionUpdate": huge, "x": huge })),
        update(json!({ "sessionUpdate": "plan", "entries": [{ "content": huge }] })),
        update(json!({ "sessionUpdate": "tool_call", "toolCallId": huge, "title": huge, "kind": huge, "status": huge,
            "locations": [{ "path": huge }], "rawInput": { "command": huge } })),
        tool_update("t", json!({ "content": [{ "type": "diff", "path": huge, "newText": huge }, { "type": huge }] })),
        request(&huge, json!({})),
        request("fs/read_text_file", json!({ "sessionId": "$session", "path": huge })),
        ask_permission_with(json!({ "toolCallId": "p", "title": "May I" }), option)
            .with_id(json!("p"))
            .without_waiting(),
        send(json!({ "method": "$/cancel_request", "params": { "requestId": "p" } })),
        wait_for("session/prompt", 1),
        chunk("through"),
        send(json!({ "id": "$id", "error": { "message": huge, "data": huge } })),
    ]);
    editor.wait_transcript("through");
    assert_eq!(agent.unanswered(), []);
    editor.wait_transcript("The agent could not go on");
    assert!(editor.screen().contains("scripted"), "the chat is still named");
    assert!(editor.transcript().iter().all(|line| line.len() < 3_000));
}

#[test]
fn output_that_grows_with_every_update_keeps_keys_answered() {
    let grown: Vec<Step> = (1..=2_000)
        .map(|length| {
            let text = "another line of output\n".repeat(length);
            tool_update("t", json!({ "content": [{ "type": "content", "content": { "type": "text", "text": text } }] }))
        })
        .collect();
    let steps = [tool_call("t", "Build", "execute")].into_iter().chain(grown).chain([end_turn()]);
    let (editor, _agent, _) = run(steps.collect::<Vec<_>>());
    let transcript = editor.transcript();
    assert_eq!(transcript.iter().filter(|line| line.contains("another line of output")).count(), 1_999);
}

#[test]
fn many_long_code_blocks_are_coloured_without_holding_up_a_key() {
    let block = |number: u32| {
        let lines: String =
            (0..200).map(|line| format!("local name_{line} = \"text\" .. {line} -- {number}\n")).collect();
        [chunk("```lua\n")]
            .into_iter()
            .chain(lines.split_inclusive('\n').map(chunk).collect::<Vec<_>>())
            .chain([chunk("```\n\n")])
    };
    let steps: Vec<Step> = (0..20).flat_map(block).chain([end_turn()]).collect();
    let (editor, _agent, _) = run(steps);
    let is_coloured = r#"
        local buf = require("agentchat.chats").current().transcript
        local last = vim.api.nvim_buf_line_count(buf)
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, -1, { last - 20, 0 }, -1, { details = true })) do
          if mark[4].hl_group == "@keyword.lua" then
            return true
          end
        end
        return false
    "#;
    editor.wait_until("the last block is coloured", |e| e.lua(is_coloured, json!([])) == true);
}

#[test]
fn a_large_table_may_come_cell_by_cell() {
    let row = |row: u32| {
        let cells = (0..8).map(move |column| chunk(&format!("| cell {row}.{column} ")));
        cells.chain([chunk("|\n")])
    };
    let head = [chunk("|h|h|h|h|h|h|h|h|\n"), chunk(&format!("{}|\n", "|---".repeat(8)))];
    let steps: Vec<Step> = head.into_iter().chain((0..500).flat_map(row)).chain([end_turn()]).collect();
    let (editor, _agent, _) = run(steps);
    editor.wait_transcript("| cell 499.7 |");
    assert_eq!(editor.transcript().iter().filter(|line| line.starts_with("| cell ")).count(), 500);
}

#[test]
fn a_huge_diff_is_a_card() {
    let old: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    let new: String =
        (0..20_000).map(|line| format!("line {line}{}\n", if line % 7 == 0 { " changed" } else { "" })).collect();
    let content = json!([{ "type": "diff", "path": "/tmp/huge.txt", "oldText": old, "newText": new }]);
    let (editor, _agent, _) = run([
        tool_call("t", "Edit huge.txt", "edit"),
        tool_update("t", json!({ "content": content, "status": "completed" })),
        chunk("done"),
        end_turn(),
    ]);
    editor.wait_transcript("more lines of the change");
    assert!(editor.transcript().len() < 2_100, "a card has a bounded number of rows");
}

#[test]
fn a_whole_conversation_comes_at_once() {
    let prompt =
        update(json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": "question $i" } }));
    let answer = format!("## Answer $i\n\n{}", "a line of **text** with `code`\n".repeat(28));
    let steps =
        repeat(2_800, [prompt, chunk(&answer), tool_call("t$i", "Read $i", "read"), tool_status("t$i", "completed")]);
    let (editor, _agent, _) = run([steps, chunk("the end"), end_turn()]);
    let transcript = editor.transcript();
    assert!(transcript.len() > 87_000, "{} lines", transcript.len());
    for number in [0, 1_400, 2_799] {
        assert!(
            transcript.contains(&format!("question {number}")) && transcript.contains(&format!("## Answer {number}"))
        );
    }
}

#[test]
fn hardly_a_line_is_written_twice() {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt([
        gate("count"),
        repeat(4_000, [chunk("some words, "), chunk("**more** words $i\n")]),
        end_turn(),
    ]));
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.prompt("go");
    agent.wait_gate("count");
    editor.lua(
        r#"
        _G.written, _G.frames = 0, 0
        local function counting(name, at)
          local original = vim.api[name]
          vim.api[name] = function(...)
            _G.written = _G.written + #select(at, ...)
            return original(...)
          end
        end
        counting("nvim_buf_set_lines", 5)
        counting("nvim_buf_set_text", 6)
        local hand = require("agentchat.hand")
        local frame = hand.frame
        hand.frame = function(items)
          _G.frames = _G.frames + 1
          return frame(items)
        end
        "#,
        json!([]),
    );
    agent.open_gate("count");
    editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
    let counted = editor.lua("return { _G.written, _G.frames, vim.api.nvim_buf_line_count(require('agentchat.chats').current().transcript) }", json!([]));
    let [written, frames, lines] = [0, 1, 2].map(|at| counted[at].as_f64().unwrap());
    assert!(lines > 4_000.0 && frames > 1.0);
    assert!(written <= 1.2 * lines + frames, "{written} lines written for {lines} in {frames} frames");
}

/// Clock ticks of CPU time and wake-ups that the helper's processes have had so far.
fn work_of_helper(editor: &Editor) -> (u64, u64) {
    let helpers = editor.processes().into_iter().filter(|process| process.command.contains("agentchat nvim"));
    let folders: Vec<String> = helpers.map(|process| format!("/proc/{}", process.pid)).collect();
    assert_eq!(folders.len(), 2, "the guard and the helper");
    let ticks = |folder: &String| -> u64 {
        let stat = fs::read_to_string(format!("{folder}/stat")).unwrap();
        let (_, rest) = stat.rsplit_once(") ").unwrap();
        // Fields 14 and 15, utime and stime, counted from the state, which is field 3.
        rest.split(' ').skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum()
    };
    let wake_ups = |folder: &String| -> u64 {
        let threads = fs::read_dir(format!("{folder}/task")).unwrap();
        let status = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("status")).ok());
        status.map(|status| switches(&status)).sum()
    };
    (folders.iter().map(ticks).sum(), folders.iter().map(wake_ups).sum())
}

fn switches(status: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

#[test]
fn an_idle_chat_costs_nothing() {
    let (editor, agent, _) = run([repeat(600, [chunk(&format!("{}\n", "text ".repeat(200)))]), end_turn()]);
    // Files are watched for a moment longer than the turn.
    let a_while = Duration::from_secs(2);
    editor.wait_until("nothing is left to be done", |e| {
        let before = work_of_helper(e);
        poll(a_while, || (work_of_helper(e) != before).then_some(())).is_none()
    });
    let before = work_of_helper(&editor);
    let worked = poll(Duration::from_secs(2), || Some(work_of_helper(&editor)).filter(|now| *now != before));
    assert_eq!(worked, None, "ticks and wake-ups; before: {before:?}");
    drop(agent);
}

#[test]
fn a_waiting_turn_costs_nothing_either() {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt([chunk("a moment"), gate("never"), end_turn()]));
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.prompt("go");
    editor.wait_transcript("a moment");
    editor.wait_until("a second without work", |e| {
        let before = work_of_helper(e);
        poll(Duration::from_secs(1), || (work_of_helper(e) != before).then_some(())).is_none()
    });
    assert_eq!(editor.state(), "running");
}
