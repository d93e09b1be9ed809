//! What a stream leaves alone in the transcript: views, selections; and how the text comes back when the user changed it.

use serde_json::{Value as Json, json};

use crate::chat::{self, enter, enter_code, prompt_text, prompts, wait_prompt_text, window, windows};
use crate::support::scenario::{Scenario, chunk, end_turn, gate, repeat};
use crate::support::{Editor, ScriptedAgent, Setup};

/// Three streams of a hundred lines, with a gate before the second (`more`) and the third (`most`).
fn streams() -> Scenario {
    Scenario::new().on_prompt([
        repeat(100, [chunk("first $i\n")]),
        gate("more"),
        repeat(100, [chunk("more $i\n")]),
        gate("most"),
        repeat(100, [chunk("most $i\n")]),
        end_turn(),
    ])
}

#[track_caller]
fn streaming() -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::open(&streams(), Setup::new());
    editor.prompt("go");
    editor.wait_transcript("first 99");
    (agent, editor)
}

/// `winsaveview()` of the transcript's window.
#[track_caller]
fn view(editor: &Editor) -> Json {
    let found = window(editor, "agentchat").unwrap();
    let view = editor.lua("return vim.api.nvim_win_call(..., vim.fn.winsaveview)", json!([found.id]));
    json!([view["lnum"], view["topline"]])
}

#[track_caller]
fn follows(editor: &Editor) -> bool {
    let found = window(editor, "agentchat").unwrap();
    let code =
        "return vim.api.nvim_win_get_cursor(...)[1] == vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(...))";
    editor.lua(code, json!([found.id])) == json!(true)
}

#[test]
fn a_view_at_the_end_follows_and_one_placed_elsewhere_stays() {
    let (agent, editor) = streaming();
    editor.wait_until("the end in view", |e| follows(e) && e.screen().contains("first 99"));
    enter(&editor, "agentchat");
    editor.input("10G");
    enter_code(&editor);
    let before = view(&editor);
    assert_eq!(before[0], json!(10));
    agent.open_gate("more");
    editor.wait_transcript("more 99");
    assert_eq!(view(&editor), before);
    let found = window(&editor, "agentchat").unwrap();
    editor.lua("vim.api.nvim_win_set_cursor(..., { 20, 0 })", json!([found.id]));
    let before = view(&editor);
    agent.open_gate("most");
    editor.wait_transcript("most 99");
    editor.wait_state("idle");
    assert_eq!(view(&editor), before);
    enter(&editor, "agentchat_prompt");
    assert!(!editor.screen().contains("most 99"));
}

#[test]
fn k_at_the_last_line_detaches_and_big_g_attaches() {
    let (agent, editor) = streaming();
    enter(&editor, "agentchat");
    editor.input("Gk");
    editor.wait_until("one line up", |e| !follows(e));
    let before = view(&editor);
    agent.open_gate("more");
    editor.wait_transcript("more 99");
    assert_eq!(view(&editor), before);
    editor.input("G");
    editor.wait_until("the last line", follows);
    agent.open_gate("most");
    editor.wait_screen("most 99");
    editor.wait_until("the last line", follows);
}

#[test]
fn selecting_in_the_transcript_is_not_disturbed() {
    let (agent, editor) = streaming();
    enter(&editor, "agentchat");
    editor.input("GVkk");
    editor.wait_until("visual mode", |e| e.screen().mode() == "visual");
    let before = view(&editor);
    agent.open_gate("more");
    editor.wait_transcript("more 99");
    assert_eq!(view(&editor), before);
    assert_eq!(editor.lua("return vim.api.nvim_get_mode().mode", json!([])), json!("V"));
    editor.input("y<Esc>");
    let yanked = editor.lua("return vim.fn.getreg('\"')", json!([]));
    assert!(yanked.as_str().unwrap().contains("first 9"), "{yanked}");
}

#[test]
fn hiding_and_showing_keeps_the_view() {
    let (agent, editor) = streaming();
    enter(&editor, "agentchat");
    editor.input("40Gzt");
    editor.wait_until("the view", |e| view(e) == json!([40, 40]));
    editor.command("AgentChat close");
    agent.open_gate("more");
    agent.open_gate("most");
    editor.wait_transcript("most 99");
    editor.command("AgentChat");
    assert_eq!(view(&editor), json!([40, 40]));
    assert_eq!(editor.screen().mode(), "normal");
}

#[test]
fn two_chats_in_one_tab_page_keep_their_views_and_drafts() {
    let scenario = Scenario::new().on_prompt([repeat(100, [chunk("line $i\n")]), end_turn()]);
    let (first, second) = (ScriptedAgent::new(&scenario), ScriptedAgent::new(&scenario));
    let editor = Editor::start(Setup::new().agent("first", &first).agent("second", &second));
    editor.command("AgentChat open first");
    editor.prompt("to the first");
    editor.wait_transcript("line 99");
    enter(&editor, "agentchat");
    editor.input("30Gzt");
    editor.wait_until("the view", |e| view(e) == json!([30, 30]));
    enter(&editor, "agentchat_prompt");
    editor.input("ifirst's draft<Esc>");
    wait_prompt_text(&editor, "first's draft");
    editor.command("AgentChat open second");
    wait_prompt_text(&editor, "");
    assert_eq!(windows(&editor).len(), 3);
    editor.prompt("to the second");
    second.wait_received("session/prompt", 1);
    editor.wait_state("idle");
    assert_eq!(editor.status()["agent"], json!("second"));
    editor.command("AgentChat open first");
    assert_eq!(view(&editor), json!([30, 30]));
    assert_eq!(prompt_text(&editor), "first's draft");
    assert_eq!((prompts(&first), prompts(&second)), (vec!["to the first".into()], vec!["to the second".into()]));
}

/// The lines of the transcript that the streams made.
#[track_caller]
fn streamed(editor: &Editor) -> Vec<String> {
    let is_streamed = |line: &String| ["first ", "more ", "most "].iter().any(|word| line.starts_with(word));
    editor.transcript().into_iter().filter(is_streamed).collect()
}

fn all_of_the_stream() -> Vec<String> {
    let of = |word: &'static str| (0..100).map(move |number| format!("{word} {number}"));
    of("first").chain(of("more")).chain(of("most")).collect()
}

#[test]
fn a_transcript_that_the_user_changed_is_mended() {
    let (agent, editor) = streaming();
    enter(&editor, "agentchat");
    editor.command("setlocal modifiable");
    editor.input("5GdGggOmine<Esc>");
    editor.wait_until("the damage", |e| e.transcript().len() < 20);
    agent.open_gate("more");
    editor.wait_transcript("more 99");
    editor.command("setlocal modifiable | %delete _");
    agent.open_gate("most");
    editor.wait_transcript("most 99");
    editor.wait_state("idle");
    editor.wait_until("the whole text", |e| streamed(e) == all_of_the_stream());
    assert_eq!(chat::times_in_messages(&editor, "agentchat: "), 0, "{}", editor.messages());
}

#[test]
fn a_transcript_that_the_user_wiped_comes_back() {
    let (agent, editor) = streaming();
    editor.command("bwipeout! agentchat://transcript/1");
    agent.open_gate("more");
    editor.command("AgentChat open");
    editor.wait_transcript("more 99");
    editor.command("bwipeout! agentchat://transcript/1");
    agent.open_gate("most");
    editor.wait_state("idle");
    editor.command("AgentChat open");
    editor.wait_until("the whole text", |e| streamed(e) == all_of_the_stream());
    assert_eq!(chat::times_in_messages(&editor, "agentchat: "), 0, "{}", editor.messages());
    editor.command("AgentChat open");
    assert!(chat::is_open(&editor));
}

#[test]
fn closing_the_windows_in_mid_stream_loses_nothing() {
    let (agent, editor) = streaming();
    editor.command("AgentChat close");
    agent.open_gate("more");
    editor.wait_transcript("more 99");
    editor.command("AgentChat");
    agent.open_gate("most");
    editor.wait_transcript("most 99");
    assert_eq!(streamed(&editor), all_of_the_stream());
}

#[test]
fn wiping_both_buffers_ends_the_session_and_its_agent() {
    let (agent, editor) = chat::open(&streams(), Setup::new());
    editor.prompt("go");
    editor.wait_transcript("first 99");
    editor.command("bwipeout! agentchat://transcript/1 agentchat://prompt/1");
    editor.wait_until("the agent's end", |_| !crate::support::processes::is_alive(agent.pids()[0]));
    assert_eq!(chat::times_in_messages(&editor, "agentchat: "), 0, "{}", editor.messages());
    editor.command("AgentChat");
    editor.wait_state("idle");
    assert_eq!(agent.pids().len(), 2);
}

#[test]
fn a_chat_whose_tab_page_was_closed_is_shown_in_the_next_one() {
    let (agent, editor) = streaming();
    editor.command("tabnew");
    editor.command("1tabclose");
    agent.open_gate("more");
    agent.open_gate("most");
    editor.wait_transcript("most 99");
    editor.command("AgentChat");
    assert!(chat::is_open(&editor));
    assert_eq!(streamed(&editor), all_of_the_stream());
    assert_eq!(agent.pids().len(), 1);
    editor.wait_state("idle");
}

#[test]
fn a_resized_screen_keeps_the_chat_whole() {
    let (agent, editor) = streaming();
    for (columns, rows) in [(80, 24), (200, 50), (120, 40)] {
        editor.request("nvim_ui_try_resize", &json!([columns, rows]));
        editor.wait_until("the new size", |e| e.lua("return vim.o.columns", json!([])) == json!(columns));
        assert!(chat::is_open(&editor));
        assert!(window(&editor, "agentchat_prompt").unwrap().height <= 10);
    }
    agent.open_gate("more");
    editor.wait_screen("more 99");
}
