//! What the user is doing when something of the agent's arrives. Whatever it is: their mode, their text and their keys are
//! theirs, nothing that arrived is lost, and no request stays without an answer.

use serde_json::json;

use crate::chat::{self, enter, enter_code, window};
use crate::support::scenario::{
    Scenario, ask_permission, chunk, end_turn, gate, repeat, tool_call, tool_status, write_file,
};
use crate::support::{Editor, ScriptedAgent, Setup};

/// A turn with all kinds of things in it, once the gate is open.
fn busy_turn() -> Scenario {
    Scenario::new().on_prompt([
        gate("go"),
        repeat(50, [chunk("chunk $i\n")]),
        tool_call("t1", "A call", "execute"),
        tool_status("t1", "completed"),
        write_file("other.txt", "new\n").without_waiting(),
        ask_permission("t2", "A question"),
        chunk("the end of it"),
        end_turn(),
    ])
}

#[track_caller]
fn begin() -> (ScriptedAgent, Editor) {
    let setup = Setup::new().file("a.txt", "one two three\nfour five six\n").file("other.txt", "old\n").arg("a.txt");
    let (agent, editor) = chat::open(&busy_turn(), setup);
    enter_code(&editor);
    editor.prompt("go");
    agent.wait_gate("go");
    (agent, editor)
}

/// Everything has arrived, and can be answered.
#[track_caller]
fn all_is_well(agent: &ScriptedAgent, editor: &Editor) {
    editor.wait_transcript("chunk 49");
    editor.wait_transcript("A call  $ execute · done");
    editor.wait_until("the permission float", |e| window(e, "agentchat_permission").is_some());
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    agent.wait_answer("session/request_permission", 1);
    agent.wait_answer("fs/write_text_file", 1);
    editor.wait_transcript("the end of it");
    editor.wait_state("idle");
    assert_eq!(editor.file("other.txt").unwrap(), b"new\n");
    assert_eq!(chat::times_in_messages(editor, "agentchat: "), 0, "{}", editor.messages());
    assert!(agent.unanswered().is_empty() && agent.stray_answers().is_empty());
}

/// Plays the turn while the user is in the mode that `keys` lead to, where Neovim goes on answering; `leave` ends it.
#[track_caller]
fn undisturbed(keys: &str, mode: &str, leave: &str, expected: &str) {
    let (agent, editor) = begin();
    editor.input(keys);
    let mode_now = |e: &Editor| e.lua("return vim.api.nvim_get_mode().mode", json!([]));
    editor.wait_until(&format!("the mode {mode}"), |e| mode_now(e) == json!(mode));
    let current = editor.lua("return vim.api.nvim_get_current_win()", json!([]));
    agent.open_gate("go");
    editor.wait_transcript("chunk 49");
    editor.wait_until("the permission float", |e| window(e, "agentchat_permission").is_some());
    assert_eq!(mode_now(&editor), json!(mode));
    assert_eq!(editor.lua("return vim.api.nvim_get_current_win()", json!([])), current);
    editor.input(leave);
    editor.wait_until(&format!("{expected:?}"), |e| {
        let code = "return table.concat(vim.api.nvim_buf_get_lines(vim.fn.bufnr('a.txt'), 0, -1, true), '|')";
        e.lua(code, json!([])) == json!(expected)
    });
    all_is_well(&agent, &editor);
}

#[test]
fn in_insert_mode() {
    undisturbed("ggcwtyped", "i", " on<Esc>", "typed on two three|four five six");
}

#[test]
fn in_replace_mode() {
    undisturbed("ggRtyp", "R", "ed<Esc>", "typedwo three|four five six");
}

#[test]
fn in_visual_mode() {
    undisturbed("ggwv", "v", "ecX<Esc>", "one X three|four five six");
}

#[test]
fn in_visual_block_mode() {
    undisturbed("gg0l<C-v>j", "\u{16}", "d", "oe two three|fur five six");
}

#[test]
fn in_the_command_line() {
    undisturbed(":%s/e/", "c", "E/<CR>", "onE two three|four fivE six");
}

#[test]
fn in_insert_mode_with_the_completion_menu() {
    undisturbed("Gof<C-n>", "ic", "<C-y>!<Esc>", "one two three|four five six|four!");
}

#[test]
fn while_recording_a_macro() {
    undisturbed("ggqqx", "n", "xq", "e two three|four five six");
}

#[test]
fn in_terminal_mode() {
    let (agent, editor) = begin();
    editor.command("new | terminal cat");
    editor.input("itext");
    editor.wait_screen("text");
    agent.open_gate("go");
    editor.wait_transcript("chunk 49");
    editor.wait_until("the permission float", |e| window(e, "agentchat_permission").is_some());
    assert_eq!(editor.lua("return vim.api.nvim_get_mode().mode", json!([])), json!("t"));
    editor.input(" and more");
    editor.wait_screen("text and more");
    all_is_well(&agent, &editor);
}

#[test]
fn in_the_command_line_window() {
    let (agent, editor) = begin();
    editor.input("q:iecho 'typed'");
    editor.wait_until("the command-line window", |e| e.lua("return vim.fn.getcmdwintype()", json!([])) == json!(":"));
    agent.open_gate("go");
    editor.wait_transcript("chunk 49");
    editor.input("<Esc>:q<CR>");
    editor.wait_until("the normal windows", |e| e.lua("return vim.fn.getcmdwintype()", json!([])) == json!(""));
    all_is_well(&agent, &editor);
}

/// Plays the turn while Neovim waits for a key and answers nothing; `leave` ends that.
#[track_caller]
fn caught_up(keys: &str, leave: &str) {
    let (agent, editor) = begin();
    editor.input(keys);
    editor.wait_until("that Neovim waits for a key", Editor::is_blocked);
    agent.open_gate("go");
    agent.wait("all is sent", |log| {
        log.iter().any(|entry| entry.what() == "asked" && entry.method() == "session/request_permission").then_some(())
    });
    assert!(editor.is_blocked(), "it waits for the same key as before");
    editor.input(leave);
    all_is_well(&agent, &editor);
}

#[test]
fn with_half_a_command() {
    caught_up("f", "t");
}

#[test]
fn with_an_operator_pending() {
    caught_up("\"", "<Esc>");
}

#[test]
fn at_a_hit_enter_prompt() {
    caught_up(":echo 'one' | echo 'two'<CR>", "<CR>");
}

#[test]
fn at_a_more_prompt() {
    caught_up(":set more | for n in range(100) | echo n | endfor<CR>", "q");
}

#[test]
fn at_the_question_of_a_substitution() {
    let (agent, editor) = begin();
    editor.input(":%s/o/0/gc<CR>");
    editor.wait_screen("replace with 0");
    agent.open_gate("go");
    agent.wait("all is sent", |log| {
        log.iter().any(|entry| entry.what() == "asked" && entry.method() == "session/request_permission").then_some(())
    });
    editor.input("yny<Esc>");
    editor.wait_until("the substitutions", |e| {
        e.lua("return vim.fn.getline(1)", json!([])) == json!("0ne two three")
            && e.lua("return vim.fn.getline(2)", json!([])) == json!("f0ur five six")
    });
    all_is_well(&agent, &editor);
}

#[test]
fn while_an_expression_mapping_waits() {
    let (agent, editor) = begin();
    editor.lua(
        "vim.keymap.set('n', 'Z', function() return 'ix' .. vim.fn.getcharstr() .. '<Esc>' end, { expr = true })",
        json!([]),
    );
    editor.input("ggZ");
    agent.open_gate("go");
    agent.wait("all is sent", |log| {
        log.iter().any(|entry| entry.what() == "asked" && entry.method() == "session/request_permission").then_some(())
    });
    editor.input("y");
    editor.wait_until("what the mapping typed", |e| {
        e.lua("return vim.fn.getline(1)", json!([])) == json!("xyone two three")
    });
    all_is_well(&agent, &editor);
}

#[test]
fn searching_in_the_transcript() {
    let (agent, editor) = begin();
    enter(&editor, "agentchat");
    editor.input("/chunk 1");
    editor.wait_until("the search", |e| e.lua("return vim.fn.getcmdline()", json!([])) == json!("chunk 1"));
    agent.open_gate("go");
    editor.wait_transcript("chunk 49");
    assert_eq!(editor.lua("return vim.fn.getcmdline()", json!([])), json!("chunk 1"));
    editor.input("2<CR>");
    editor.wait_until("the match", |e| e.lua("return vim.fn.getline('.')", json!([])) == json!("chunk 12"));
    all_is_well(&agent, &editor);
}
