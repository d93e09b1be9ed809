//! What is folded in a transcript, and that a fold is the user's own once they opened it.

use serde_json::{Value as Json, json};

use crate::support::scenario::{
    Scenario, Step, chunk, end_turn, gate, numbered, plan, thought, tool_call, tool_status, tool_update, update,
};
use crate::support::{Editor, ScriptedAgent, Setup};

/// An editor in whose chat a prompt was sent.
fn prompted(steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent).size(140, 40));
    editor.command("AgentChat open");
    editor.prompt("go");
    (editor, agent)
}

fn wait_turn(editor: &Editor) {
    editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
}

fn lines(name: &str, count: usize) -> String {
    numbered(name, 0..count)
}

fn text(text: &str) -> Json {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}

const IN_TRANSCRIPT: &str = "
local wanted, action = ...
local buf = require('agentchat.chats').current().transcript
local row
for i, line in ipairs(vim.api.nvim_buf_get_lines(buf, 0, -1, true)) do
  if line:find(wanted, 1, true) then row = i break end
end
local win = vim.fn.bufwinid(buf)
return vim.api.nvim_win_call(win, function()
  if action then vim.cmd(row .. action) end
  return { row, vim.fn.foldclosed(row), vim.fn.foldclosedend(row) }
end)";

/// The first and last line of the closed fold that hides the first line with `wanted`; `None` when it is in view.
fn closed_at(editor: &Editor, wanted: &str) -> Option<(i64, i64)> {
    let found = editor.lua(IN_TRANSCRIPT, json!([wanted]));
    Some((found[1].as_i64()?, found[2].as_i64()?)).filter(|(first, _)| *first > 0)
}

/// Runs an Ex command such as `foldopen` on the first line with `wanted`.
fn at_line(editor: &Editor, wanted: &str, command: &str) {
    editor.lua(IN_TRANSCRIPT, json!([wanted, command]));
}

fn transcript_window(editor: &Editor) -> Json {
    editor.lua("return vim.fn.bufwinid(require('agentchat.chats').current().transcript)", json!([]))
}

#[test]
fn a_thought_becomes_one_line_with_its_length_when_it_is_finished() {
    let (editor, agent) =
        prompted([thought("first\nsecond"), gate("more"), thought("\nthird"), chunk("so be it"), end_turn()]);
    editor.wait_transcript("second");
    agent.wait_gate("more");
    assert_eq!(closed_at(&editor, "second"), None, "one may watch it think");
    editor.input("ihalf a pro");
    agent.open_gate("more");
    let screen = editor.wait_screen("… thought · 3 lines, 18 bytes");
    wait_turn(&editor);
    assert!(!screen.contains("second"), "{screen}");
    assert_eq!(closed_at(&editor, "third"), Some((4, 7)));
    let highlights = editor.lua("return vim.wo[...].winhighlight", json!([transcript_window(&editor)]));
    assert_eq!(highlights, "Folded:AgentChatFold");
    editor.input("mpt");
    editor.wait_screen("half a prompt");
    assert_eq!(editor.screen().mode(), "insert");
}

#[test]
fn content_beyond_twelve_lines_is_folded_and_is_all_there() {
    let (editor, agent) = prompted([
        tool_call("t", "Run the tests", "execute"),
        tool_update("t", json!({ "status": "in_progress", "content": text(&lines("output", 30)) })),
        gate("end"),
        tool_status("t", "completed"),
        tool_call("u", "Short", "read"),
        tool_update("u", json!({ "status": "completed", "content": text(&lines("short", 12)) })),
        end_turn(),
    ]);
    editor.wait_transcript("… 18 more lines · output 29");
    assert!(!editor.transcript_has("output 12"), "what still grows is shown in part");
    agent.open_gate("end");
    wait_turn(&editor);
    assert_eq!(closed_at(&editor, "output 11"), None);
    assert_eq!(closed_at(&editor, "output 12"), closed_at(&editor, "output 29"));
    assert!(closed_at(&editor, "output 12").is_some());
    assert_eq!(closed_at(&editor, "short 11"), None);
    editor.wait_screen("… 18 more lines");
}

#[test]
fn a_diff_shows_what_is_added_and_removed_and_folds_the_rest() {
    let (old, new) = (lines("old", 20), lines("new", 20));
    let diff = json!([{ "type": "diff", "path": "$cwd/a.txt", "oldText": old, "newText": new }]);
    let (editor, _agent) = prompted([
        tool_call("e", "Edit a.txt", "edit"),
        tool_update("e", json!({ "status": "completed", "content": diff })),
        end_turn(),
    ]);
    wait_turn(&editor);
    let screen = editor.wait_screen("± a.txt  +20 −20");
    assert_eq!(screen.groups_of("- old 3").and_then(<[_]>::last).map(String::as_str), Some("Removed"));
    assert!(closed_at(&editor, "+ new 19").is_some());
    at_line(&editor, "+ new 19", "foldopen");
    let screen = editor.wait_screen("+ new 3");
    assert_eq!(screen.groups_of("+ new 3").and_then(<[_]>::last).map(String::as_str), Some("Added"));
}

#[test]
fn what_the_user_opened_or_closed_stays_so() {
    let (editor, agent) = prompted([
        thought("alpha\nbeta"),
        tool_call("t", "Run", "execute"),
        tool_update("t", json!({ "status": "completed", "content": text(&lines("output", 30)) })),
        gate("late"),
        // An update of a call that is done replaces rows inside of its fold.
        tool_update("t", json!({ "content": text(&lines("output", 40)) })),
        chunk("the end"),
        gate("end"),
        end_turn(),
    ]);
    agent.wait_gate("late");
    editor.wait_until("the output is folded", |e| closed_at(e, "output 20").is_some());
    at_line(&editor, "output 20", "foldopen");
    agent.open_gate("late");
    editor.wait_transcript("the end");
    assert_eq!(closed_at(&editor, "output 39"), None);
    at_line(&editor, "output 20", "foldclose");
    assert!(closed_at(&editor, "output 39").is_some(), "it is one fold, to its new end");
    at_line(&editor, "beta", "foldopen");

    // Also when the text is sent anew, and when the chat was hidden.
    editor.lua(
        "local buf = require('agentchat.chats').current().transcript
        vim.bo[buf].modifiable = true
        vim.api.nvim_buf_set_lines(buf, 0, 1, true, {})",
        json!([]),
    );
    agent.open_gate("end");
    editor.wait_until("the text is back", |e| e.transcript().first().is_some_and(|line| line == "❯ You"));
    wait_turn(&editor);
    let check = |when: &str| {
        editor.wait_until(when, |e| e.transcript_has("output 39") && closed_at(e, "output 39").is_some());
        assert_eq!(closed_at(&editor, "beta"), None, "{when}");
    };
    check("after a resync");
    editor.command("AgentChat close");
    editor.command("AgentChat open");
    check("after it was hidden");
}

#[test]
fn nothing_folds_under_the_eyes_of_a_reader() {
    let (editor, agent) = prompted([
        chunk(&lines("before", 30)),
        thought(&lines("thinking", 10)),
        gate("more"),
        chunk(&lines("after", 60)),
        end_turn(),
    ]);
    editor.wait_transcript("thinking 9");
    agent.wait_gate("more");
    let window = transcript_window(&editor);
    let view = "local win = ...
    return vim.api.nvim_win_call(win, function() return { vim.fn.line('w0'), vim.fn.line('.') } end)";
    editor.lua("local win = ... vim.api.nvim_win_set_cursor(win, { 40, 0 })", json!([window]));
    editor.screen();
    let before = editor.lua(view, json!([window]));
    agent.open_gate("more");
    wait_turn(&editor);
    assert_eq!(closed_at(&editor, "thinking 5"), None);
    assert_eq!(editor.lua(view, json!([window])), before);
}

const CLOSED_FOLDS: &str = "
local closed, line = 0, 1
while line <= vim.fn.line('$') do
  if vim.fn.foldclosed(line) ~= -1 then
    closed, line = closed + 1, vim.fn.foldclosedend(line)
  end
  line = line + 1
end
return closed";

#[test]
fn every_window_of_the_transcript_has_its_folds() {
    let (editor, _agent) = prompted([thought("a\nb"), chunk("x"), thought("c\nd"), chunk("y"), end_turn()]);
    wait_turn(&editor);
    let window = transcript_window(&editor);
    editor.lua("vim.api.nvim_set_current_win(...)", json!([window]));
    assert_eq!(editor.lua(CLOSED_FOLDS, json!([])), 2);
    editor.command("split");
    assert_eq!(editor.lua(CLOSED_FOLDS, json!([])), 2, "a split");
    editor.command("close");
    let buffer = editor.lua("return vim.api.nvim_get_current_buf()", json!([]));
    editor.command("tabnew");
    editor.command(&format!("buffer {buffer}"));
    assert_eq!(editor.lua(CLOSED_FOLDS, json!([])), 2, "another window");
    editor.command("enew");
    let options = editor.lua("return vim.wo.foldtext .. vim.wo.winhighlight .. vim.wo.fillchars", json!([]));
    assert_eq!(options, "foldtext()", "no option of ours is left in it");
}

#[test]
fn a_replay_of_four_hundred_folds_in_many_lines_keeps_keys_answered() {
    let round = |number: usize| {
        [
            thought(&lines(&format!("thought {number}"), 15)),
            chunk(&lines(&format!("answer {number}"), 170)),
            tool_call(&format!("t{number}"), "Run", "execute"),
            tool_update(&format!("t{number}"), json!({ "status": "completed", "content": text(&lines("out", 30)) })),
        ]
    };
    let steps: Vec<Step> = (0..200).flat_map(round).chain([gate("go"), end_turn()]).collect();
    let (editor, agent) = prompted(steps);
    agent.wait_gate("go");
    let ((), delay) = editor.rtt(|e| {
        agent.open_gate("go");
        wait_turn(e);
    });
    assert!(delay.max.as_millis() < 1_000, "a key waited {:?}", delay.max);
    let window = transcript_window(&editor);
    editor.lua("vim.api.nvim_set_current_win(...)", json!([window]));
    assert_eq!(editor.lua(CLOSED_FOLDS, json!([])), 400);
}

#[test]
fn two_chats_are_each_where_they_were_left() {
    let (editor, _agent) = prompted([chunk(&lines("row", 200)), thought("a\nb"), chunk("end"), end_turn()]);
    wait_turn(&editor);
    let view = "local win = vim.fn.bufwinid(require('agentchat.chats').current().transcript)
    return vim.api.nvim_win_call(win, function()
      local view = vim.fn.winsaveview()
      return { view.topline, view.lnum, vim.api.nvim_buf_get_name(0) }
    end)";
    let window = transcript_window(&editor);
    editor.lua("local win = ... vim.api.nvim_win_set_cursor(win, { 90, 0 })", json!([window]));
    editor.screen();
    let first = editor.lua(view, json!([]));
    editor.command("AgentChat new");
    editor.wait_until("the second chat is in view", |e| e.lua(view, json!([]))[2] != first[2]);
    editor.lua("require('agentchat.layout').show(require('agentchat.chats').all()[1], true)", json!([]));
    assert_eq!(editor.lua(view, json!([])), first);
    assert!(closed_at(&editor, "b").is_some() || closed_at(&editor, "thought").is_some());
}

#[test]
fn a_turn_ends_with_what_it_took_and_brought() {
    let diff = json!([{ "type": "diff", "path": "$cwd/a.txt", "newText": "x\n" }]);
    let usage = |amount: f64| {
        json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2,
            "cost": { "amount": amount, "currency": "USD" } })
    };
    let (editor, _agent) = prompted([
        update(usage(0.5)),
        tool_call("e", "Edit", "edit"),
        tool_update("e", json!({ "status": "completed", "content": diff })),
        plan(&[("one", "completed")]),
        chunk("done"),
        crate::support::scenario::reply(json!({ "stopReason": "end_turn", "usage": {
            "totalTokens": 1234, "inputTokens": 1000, "outputTokens": 234 } })),
    ]);
    wait_turn(&editor);
    let last = editor.whole_transcript().pop().unwrap_or_default();
    assert!(last.starts_with("─ ") && last.ends_with(" · 1 file changed · 1,234 tokens · 0.5000 USD"), "{last}");
}

#[test]
fn what_the_user_selects_is_left_alone_and_folds_come_when_they_have_done() {
    let (editor, agent) = prompted([
        tool_call("t", "Run", "execute"),
        tool_update("t", json!({ "status": "completed", "content": text(&lines("output", 30)) })),
        gate("late"),
        tool_update("t", json!({ "content": text(&lines("output", 40)) })),
        end_turn(),
    ]);
    agent.wait_gate("late");
    editor.wait_until("the output is folded", |e| closed_at(e, "output 20").is_some());
    editor.command("wincmd h");
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'one', 'two', 'three' })", json!([]));
    editor.input("ggVj");
    agent.open_gate("late");
    editor.wait_transcript("output 39");
    wait_turn(&editor);
    assert_eq!(editor.lua("return vim.fn.mode() .. vim.fn.line('v') .. vim.fn.line('.')", json!([])), "V12");
    editor.input("d");
    editor.wait_until("the fold is whole", |e| closed_at(e, "output 39") == closed_at(e, "output 20"));
    assert!(closed_at(&editor, "output 39").is_some());
    assert_eq!(editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)", json!([])), json!(["three"]));
}

#[test]
fn a_card_that_grows_past_what_is_folded_never_scrolls_back() {
    let grown = |length| tool_update("t", json!({ "content": text(&lines("output", length)) }));
    let steps = [
        chunk(&lines("before", 60)),
        tool_call("t", "Run", "execute"),
        grown(5),
        gate("to the threshold"),
        grown(12),
        gate("beyond it"),
        grown(60),
        gate("the end of the call"),
        tool_status("t", "completed"),
        gate("the end"),
        chunk(&lines("after", 20)),
        end_turn(),
    ];
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent).size(140, 40));
    editor.command("AgentChat open");
    editor.lua(
        "_G.tops = {}
        vim.api.nvim_create_autocmd('WinScrolled', { callback = function()
          local win = vim.fn.bufwinid(require('agentchat.chats').current().transcript)
          table.insert(_G.tops, vim.fn.line('w0', win))
        end })",
        json!([]),
    );
    editor.prompt("go");
    for (shown, gate) in [
        ("output 4", "to the threshold"),
        ("output 11", "beyond it"),
        ("… 48 more lines · output 59", "the end of the call"),
        ("✓ Run", "the end"),
    ] {
        editor.wait_screen(shown);
        agent.open_gate(gate);
    }
    editor.wait_screen("after 19");
    wait_turn(&editor);
    let tops = editor.lua("return _G.tops", json!([]));
    let tops: Vec<u64> = tops.as_array().unwrap().iter().filter_map(Json::as_u64).collect();
    assert!(tops.len() > 1 && tops.is_sorted(), "{tops:?}");
}
