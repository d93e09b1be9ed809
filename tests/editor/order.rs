//! The order in which things come is the order in which they are shown, also outside of turns and sessions.

use serde_json::{Value as Json, json};

use crate::support::scenario::{
    Scenario, Step, chunk, end_turn, gate, new_session, plan, repeat, thought, tool_call, tool_status, update,
};
use crate::support::{Editor, ScriptedAgent, Setup};

fn chat_with(scenario: &Scenario) -> (Editor, ScriptedAgent) {
    let agent = ScriptedAgent::new(scenario);
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    (editor, agent)
}

fn mode(id: &str) -> Step {
    update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": id }))
}

fn usage(used: u64) -> Step {
    update(json!({ "sessionUpdate": "usage_update", "used": used, "size": 1000 }))
}

fn commands() -> Step {
    let commands = json!([{ "name": "compact", "description": "Make room" }]);
    update(json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands }))
}

#[test]
fn many_updates_between_two_chunks_stay_between_them() {
    let (editor, _agent) = chat_with(&Scenario::new().on_prompt([
        chunk("the beginning"),
        repeat(24, [tool_call("t$i", "call number $i", "read"), tool_status("t$i", "completed")]),
        plan(&[("the plan", "pending")]),
        chunk("the end"),
        end_turn(),
    ]));
    editor.prompt("go");
    editor.wait_transcript("the end");
    let transcript = editor.transcript_text();
    let calls = (0..24).map(|number| format!("call number {number}  ≡ read · done"));
    let order = ["the beginning".to_owned()].into_iter().chain(calls).chain(["the plan".into(), "the end".into()]);
    let places: Vec<usize> = order
        .map(|said| transcript.find(&said).unwrap_or_else(|| editor.fail(&format!("{said} is not shown"))))
        .collect();
    assert!(places.is_sorted(), "{transcript}");
    assert!(!transcript.contains("call number 24"), "{transcript}");
}

#[test]
fn what_comes_after_the_last_chunk_is_no_part_of_it() {
    let (editor, _agent) = chat_with(&Scenario::new().on_prompt([
        thought("thinking"),
        chunk("said"),
        tool_call("a", "First", "read"),
        thought("thinking again"),
        tool_status("a", "completed"),
        chunk("said more"),
        chunk(", and more"),
        end_turn(),
    ]));
    editor.prompt("go");
    editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
    let lines: Vec<String> = editor.transcript().into_iter().filter(|line| !line.is_empty()).collect();
    let expected = [
        "❯ You",
        "go",
        "… thinking",
        "thinking",
        "said",
        "✓ First",
        "… thinking",
        "thinking again",
        "said more, and more",
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "{lines:?}");
    }
}

#[test]
fn updates_before_the_session_is_announced_are_applied_after_it() {
    let session = json!({ "sessionUpdate": "session_info_update", "title": "An early title" });
    let (editor, agent) = chat_with(&Scenario::new().on_new_session([
        commands(),
        mode("plan"),
        usage(17),
        update(session),
        tool_call("early", "An early call", "read"),
        chunk("an early word"),
        gate("answer"),
        new_session(),
    ]));
    agent.wait_gate("answer");
    assert_eq!(editor.state(), "starting");
    agent.open_gate("answer");
    editor.wait_state("idle");
    editor.wait_transcript("an early word");
    editor.wait_transcript("An early call");
    let status = editor.status();
    assert_eq!((&status["mode"], &status["title"]), (&json!("plan"), &json!("An early title")));
    assert_eq!(status["usage"]["used"], 17);
}

#[test]
fn updates_of_a_foreign_session_are_nobodys() {
    let foreign = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "not yours" } });
    let message = json!({ "jsonrpc": "2.0", "method": "session/update",
        "params": { "sessionId": "session-1.2", "update": foreign } });
    let (editor, agent) =
        chat_with(&Scenario::new().on_prompt([crate::support::scenario::send(message), chunk("yours"), end_turn()]));
    editor.prompt("go");
    editor.wait_transcript("yours");
    editor.wait_state("idle");
    // The second session has the very id; what was said before it was asked for is not its own.
    editor.command("tabnew");
    editor.command("AgentChat open");
    editor.wait_state("idle");
    agent.wait_received("session/new", 2);
    assert!(!editor.transcript_has("not yours"));
}

#[test]
fn updates_outside_of_a_turn_are_shown() {
    let (editor, agent) = chat_with(&Scenario::new().on_new_session([
        new_session(),
        gate("later"),
        chunk("by the way"),
        commands(),
        mode("ask"),
        usage(500),
        tool_call("t", "Background work", "execute"),
        tool_status("t", "in_progress"),
        gate("much later"),
        tool_status("t", "completed"),
        chunk("done with it"),
    ]));
    editor.wait_state("idle");
    agent.open_gate("later");
    editor.wait_transcript("by the way");
    editor.wait_transcript("Background work  $ execute · running");
    editor.wait_until("the mode and the usage", |e| {
        let status = e.status();
        status["mode"] == "ask" && status["usage"]["used"] == 500
    });
    assert_eq!(editor.state(), "idle");
    agent.open_gate("much later");
    editor.wait_transcript("done with it");
    editor.wait_transcript("Background work  $ execute · done");
}

#[test]
fn the_end_of_a_turn_never_overtakes_its_text() {
    let (editor, _agent) = chat_with(&Scenario::new().on_prompt([
        repeat(3_000, [chunk("word $i\n")]),
        chunk("the very last word"),
        end_turn(),
    ]));
    editor.lua(
        r#"
        vim.api.nvim_create_autocmd("User", {
          pattern = "AgentChatTurnEnd",
          callback = function()
            local lines = {}
            for _, buf in ipairs(vim.api.nvim_list_bufs()) do
              if vim.bo[buf].filetype == "agentchat" then
                lines = vim.api.nvim_buf_get_lines(buf, -2, -1, true)
              end
            end
            _G.last_at_turn_end = { line = lines[1], state = require("agentchat").status().state }
          end,
        })
        "#,
        json!([]),
    );
    editor.prompt("go");
    let seen = editor.wait("the turn's end", |e| {
        Some(e.lua("return _G.last_at_turn_end", json!([]))).filter(|seen| *seen != Json::Null)
    });
    assert_eq!(seen["state"], "idle");
    let line = seen["line"].as_str().unwrap_or_default();
    assert!(line.starts_with("─ "), "the last line sums the turn up: {line}");
    assert_eq!(editor.transcript().last().map(String::as_str), Some("the very last word"));
}

/// Lines and highlights of the transcript in the current tab.
const LOOK: &str = r#"
for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  local buf = vim.api.nvim_win_get_buf(win)
  if vim.bo[buf].filetype == "agentchat" then
    local marks = {}
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, -1, 0, -1, { details = true })) do
      if mark[4].hl_group then
        local place = ("%d:%d-%d:%d"):format(mark[2], mark[3], mark[4].end_row, mark[4].end_col)
        marks[#marks + 1] = place .. " " .. mark[4].hl_group
      end
    end
    table.sort(marks)
    local lines = vim.tbl_map(function(line)
      return (line:gsub("^─ [%d.]+ s", "─ some time"))
    end, vim.api.nvim_buf_get_lines(buf, 0, -1, true))
    return { lines = lines, marks = marks }
  end
end
"#;

#[test]
fn text_cut_anywhere_looks_as_if_sent_whole() {
    let text = "# Title\n\nHere is `code`:\n\n```json\n{ \"a\": [1, 2] }\n```\n\nDone — 完了 👩‍👩‍👧 e\u{301} **bold**\n";
    let whole = [thought(text), chunk(text), chunk("```rust\nfn f() {}\n```\n"), end_turn()];
    let letters = |each: fn(&str) -> Step| text.chars().map(move |letter| each(&letter.to_string()));
    let opener = ["``", "`ru", "st\nfn f() {}\n`", "``", "\n"].map(chunk);
    let pieces = letters(thought).chain(letters(chunk)).chain(opener).chain([end_turn()]);
    let (editor, agent) = chat_with(&Scenario::new().on_prompt(whole).on_prompt(pieces.collect::<Vec<_>>()));
    let mut looks = Vec::new();
    for turn in 1..=2 {
        editor.prompt("go");
        editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == turn);
        looks.push(editor.lua(LOOK, json!([])));
        editor.command("tabnew");
        editor.command("AgentChat open");
    }
    assert_eq!(agent.received("session/prompt").len(), 2);
    assert!(looks[0]["lines"].as_array().unwrap().contains(&json!("```json")), "{looks:?}");
    assert_eq!(looks[0], looks[1]);
}
