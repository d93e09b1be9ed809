//! What the user is told while they are elsewhere: in another tab page, or in another program.

use std::fs;

use serde_json::json;

use crate::chat;
use crate::permissions::{ASK, asking, wait_float};
use crate::support::scenario::{Scenario, ask_permission, chunk, end_turn, gate};
use crate::support::{Editor, Setup};

const ASKS: &str = "scripted asks: ";
const FINISHED: &str = "scripted has finished";

/// A turn that asks at the gate `ask`, and ends at the gate `end`.
fn scenario() -> Scenario {
    let turn = || {
        [
            gate("ask"),
            ask_permission("t1", "Run\u{1b}]9;evil\u{7} it").without_waiting(),
            gate("end"),
            chunk("went on"),
            end_turn(),
        ]
    };
    Scenario::new().on_prompt(turn())
}

/// What went to the terminal, which Neovim's standard error is.
fn terminal(editor: &Editor) -> Vec<u8> {
    fs::read(editor.xdg("state").parent().and_then(|state| state.parent()).expect("a home").join("stderr.log"))
        .expect("what Neovim wrote")
}

#[test]
fn whoever_looks_on_is_told_nothing() {
    let (agent, editor) = chat::open(&scenario(), Setup::new());
    editor.prompt("go");
    agent.open_gate("ask");
    wait_float(&editor);
    agent.open_gate("end");
    editor.wait_state("idle");
    editor.wait_until("the end", |e| e.events("AgentChatTurnEnd").len() == 1);
    assert_eq!(editor.messages(), "");
}

#[test]
fn in_another_tab_page_a_request_and_the_end_of_a_turn_are_told_once_each() {
    let (agent, editor) = chat::open(&scenario(), Setup::new());
    editor.prompt("go");
    editor.command("tabnew");
    agent.open_gate("ask");
    wait_float(&editor);
    editor.wait_until("the notice", |e| e.messages().contains(ASKS));
    editor.command("tabprev | tabnext | tabnext");
    editor.command("tabnext");
    wait_float(&editor);
    agent.open_gate("end");
    editor.wait_until("the end", |e| e.messages().contains(FINISHED));
    assert_eq!(chat::times_in_messages(&editor, ASKS), 1);
    assert_eq!(chat::times_in_messages(&editor, FINISHED), 1);
    assert!(terminal(&editor).is_empty(), "the terminal is not asked for");
}

#[test]
fn without_the_focus_they_are_told_by_vim_notify_and_with_it_again_not() {
    let init = "
    _G.told = {}
    vim.notify = function(text, level) table.insert(_G.told, { text, level }) end
    ";
    let (agent, editor) = chat::open(&scenario(), Setup::new().init(init));
    editor.prompt("go");
    editor.request("nvim_ui_set_focus", &json!([false]));
    agent.open_gate("ask");
    let told = |e: &Editor| e.lua("return _G.told", json!([]));
    editor.wait_until("the notice", |e| told(e).to_string().contains("asks: Run ]9;evil  it"));
    assert_eq!(told(&editor)[0][1], json!(3), "a warning");
    editor.request("nvim_ui_set_focus", &json!([true]));
    agent.open_gate("end");
    editor.wait_until("the end", |e| e.events("AgentChatTurnEnd").len() == 1);
    editor.command("redraw");
    assert_eq!(told(&editor).as_array().map(Vec::len), Some(1), "{}", told(&editor));
}

#[test]
fn the_terminal_is_told_in_the_way_that_is_configured() {
    for (terminal_option, expected) in [
        ("osc9", "\u{1b}]9;scripted asks: Run ]9;evil  it; :AgentChat permissions shows it\u{7}"),
        ("osc777", "\u{1b}]777;notify;agentchat;scripted asks: Run ]9,evil  it, :AgentChat permissions shows it\u{7}"),
        ("bell", "\u{7}"),
    ] {
        let setup = Setup::new().config("notify", json!({ "terminal": terminal_option })).env("TMUX", "");
        let init = "vim.env.TMUX = nil if vim.api.nvim_ui_send then vim.api.nvim_ui_send = function(text) vim.api.nvim_chan_send(vim.v.stderr, text) end end";
        let (agent, editor) = chat::open(&scenario(), setup.init(init));
        editor.prompt("go");
        editor.request("nvim_ui_set_focus", &json!([false]));
        agent.open_gate("ask");
        editor.wait_until("what the terminal gets", |e| terminal(e) == expected.as_bytes());
        agent.open_gate("end");
        editor.wait_until("the end, too", |e| terminal(e).len() > expected.len());
    }
}

#[test]
fn notices_can_be_turned_off() {
    let setup = Setup::new().config("notify", json!({ "request": false, "turn_end": false, "terminal": "bell" }));
    let (agent, editor) = chat::open(&scenario(), setup);
    editor.prompt("go");
    editor.command("tabnew");
    editor.request("nvim_ui_set_focus", &json!([false]));
    agent.open_gate("ask");
    wait_float(&editor);
    agent.open_gate("end");
    editor.wait_until("the end", |e| e.events("AgentChatTurnEnd").len() == 1);
    editor.command("redraw");
    assert!(!editor.messages().contains("scripted"), "{}", editor.messages());
    assert!(terminal(&editor).is_empty());
}

#[test]
fn a_user_function_that_fails_costs_only_the_notice() {
    let init = "vim.notify = function() error('broken') end";
    let (agent, editor) = chat::open(&asking([gate("ask"), ask_permission("t1", "Run it")]), Setup::new().init(init));
    editor.prompt("go");
    editor.command("tabnew");
    agent.open_gate("ask");
    wait_float(&editor);
    editor.wait_until("the reason", |e| e.messages().contains("vim.notify failed"));
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    agent.wait_answer(ASK, 1);
}
