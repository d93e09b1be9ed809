//! What the user wrote and no agent has: it outlives the helper and Neovim, however they end.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::chat::{self, prompt_text, wait_prompt_text, winbar};
use crate::support::scenario::{Scenario, chunk, gate};
use crate::support::{Editor, Setup};

/// Whether a draft on disk has the text in it.
fn is_on_disk(editor: &Editor, wanted: &str) -> bool {
    let has = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.contains(wanted));
    let entries = fs::read_dir(editor.xdg("state").join("agentchat/drafts")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| has(&path))
}

#[track_caller]
fn signal_helpers(editor: &Editor, signal: &str) {
    for process in editor.processes().into_iter().filter(|process| process.command.contains("agentchat nvim")) {
        let status = std::process::Command::new("kill").args([signal, &process.pid.to_string()]).status().unwrap();
        assert!(status.success());
    }
}

#[test]
fn a_prompt_that_the_helper_did_not_live_to_take_comes_back() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    signal_helpers(&editor, "-STOP");
    editor.input("i  precious prompt<C-s>");
    wait_prompt_text(&editor, "");
    editor.input("another<C-s><Esc>");
    wait_prompt_text(&editor, "");
    signal_helpers(&editor, "-KILL");
    editor.wait_state("failed");
    wait_prompt_text(&editor, "  precious prompt\nanother");
}

#[test]
fn a_prompt_that_is_in_the_transcript_does_not_come_back() {
    let scenario = Scenario::new().on_prompt([chunk("working on it"), gate("never")]);
    let (_agent, editor) = chat::open(&scenario, Setup::new());
    editor.input("ifirst<C-s><Esc>");
    editor.wait_transcript("working on it");
    signal_helpers(&editor, "-KILL");
    editor.wait_state("failed");
    assert_eq!(prompt_text(&editor), "");
}

#[test]
fn a_draft_that_is_being_typed_survives_a_killed_neovim() {
    let (_agent, mut editor) = chat::open(&Scenario::new(), Setup::new());
    editor.input("i  a precious draft");
    wait_prompt_text(&editor, "  a precious draft");
    editor.wait_until("the draft on disk", |e| is_on_disk(e, "  a precious draft"));
    editor.kill9();
    let editor = editor.restart();
    editor.command("AgentChat open");
    assert_eq!(prompt_text(&editor), "  a precious draft");
    editor.input("a!<Esc>");
    wait_prompt_text(&editor, "  a precious draft!");
}

#[test]
fn queued_prompts_survive_a_killed_neovim() {
    let scenario = Scenario::new().on_prompt([chunk("busy"), gate("never")]);
    let (_agent, mut editor) = chat::open(&scenario, Setup::new());
    editor.input("ione<C-s>");
    editor.wait_transcript("busy");
    editor.input("  queued<C-s>half a");
    editor.wait_until("the queued prompt", |e| winbar(e).contains("1 queued"));
    editor.wait_until("both on disk", |e| is_on_disk(e, "half a\n  queued"));
    editor.kill9();
    let editor = editor.restart();
    editor.command("AgentChat open");
    assert_eq!(prompt_text(&editor), "half a\n  queued");
}

#[test]
fn the_draft_of_an_earlier_neovim_is_for_the_first_chat() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    let drafts = editor.xdg("state").join("agentchat/drafts");
    editor.input("iof this one<Esc>");
    editor.wait_until("the draft on disk", |e| is_on_disk(e, "of this one"));
    let own = fs::read_dir(&drafts).unwrap().flatten().next().unwrap().file_name().into_string().unwrap();
    // What a Neovim leaves that ended while this one runs.
    let dead = own.replace(&format!("-{}-", editor.pid()), "-4194305-");
    fs::write(drafts.join(dead), "of a dead one").unwrap();
    editor.command("AgentChat new");
    editor.wait_until("the second chat", |e| prompt_text(e) != "of this one");
    assert_eq!(editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)", json!([])), json!([""]));
}
