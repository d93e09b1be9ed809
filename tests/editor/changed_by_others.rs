//! Files with pending changes of an agent that somebody else changes, outside of a turn: the hunks go along, or are gone.

use std::fs;

use serde_json::json;

use crate::changes::{table_of, write_loaded};
use crate::files::{at_work, lines_of, on_disk, written};
use crate::support::scenario::{gate, write_file};
use crate::support::{Editor, Setup};

const OLD: [&str; 5] = ["1", "2", "3", "4", "5"];
const NEW: [&str; 5] = ["1", "two", "3", "four", "5"];

fn text(lines: &[&str]) -> String {
    lines.iter().fold(String::new(), |text, line| text + line + "\n")
}

/// `a.txt` is open, with two pending hunks.
fn two_hunks() -> Editor {
    let editor = Editor::start(Setup::new().file("a.txt", text(&OLD)).file("other.txt", "").arg("a.txt"));
    write_loaded(&editor, "a.txt", &NEW, json!({ "chat": 1 }));
    assert_eq!(rows(&editor), [(1, "2".to_owned()), (3, "4".to_owned())]);
    editor
}

/// The pending hunks: the row, 0-based, and what was there before.
#[track_caller]
fn rows(editor: &Editor) -> Vec<(usize, String)> {
    let hunks = table_of(editor, &editor.project().join("a.txt")).0;
    hunks.iter().map(|hunk| (hunk.first, hunk.old.join("\n"))).collect()
}

/// Another program writes the file, as a new one so that Neovim cannot miss it.
fn others_write(editor: &Editor, lines: &[&str]) {
    let path = editor.project().join("a.txt");
    fs::remove_file(&path).unwrap();
    fs::write(path, text(lines)).unwrap();
}

#[test]
fn hunks_go_along_when_neovim_reads_the_file_anew_by_itself() {
    let editor = two_hunks();
    others_write(&editor, &["0", "1", "two", "3", "and", "four", "5"]);
    editor.command("checktime");
    editor.wait_until("the new text", |e| lines_of(e, "a.txt").len() == 7);
    editor.wait_until("the hunks", |e| rows(e) == [(2, "2".to_owned()), (5, "4".to_owned())]);
    editor.command("AgentChat reject file");
    assert_eq!(lines_of(&editor, "a.txt"), ["0", "1", "2", "3", "and", "4", "5"]);
}

#[test]
fn a_line_that_somebody_put_back_is_not_pending_and_comes_once() {
    let editor = two_hunks();
    others_write(&editor, &["1", "2", "3", "four", "5"]);
    editor.command("checktime");
    editor.wait_until("the hunk that is left", |e| rows(e) == [(3, "4".to_owned())]);
    // The user does so as well, by hand.
    editor.input("4Gcc4<Esc>");
    editor.wait_until("no hunk", |e| rows(e).is_empty());
    editor.input("u");
    editor.wait_until("the hunk again", |e| rows(e) == [(3, "4".to_owned())]);
    editor.command("AgentChat reject file");
    assert_eq!(lines_of(&editor, "a.txt"), OLD);
}

#[test]
fn hunks_of_a_closed_file_are_those_of_its_text_only() {
    let editor = two_hunks();
    editor.command("edit other.txt | bwipeout a.txt");
    editor.command("edit a.txt");
    assert_eq!(rows(&editor).len(), 2, "nobody changed it");
    editor.command("edit other.txt | bwipeout a.txt");
    others_write(&editor, &["4", "3", "2", "1"]);
    editor.command("edit a.txt");
    assert_eq!(rows(&editor), []);
    let told = "others changed a.txt while it was closed, so its pending changes are not known any more";
    assert!(editor.messages().contains(told), "{}", editor.messages());
    editor.command("AgentChat reject file");
    assert_eq!(on_disk(&editor, "a.txt"), "4\n3\n2\n1\n");
}

#[test]
fn nothing_is_pending_in_a_file_that_is_gone_with_its_buffer() {
    let editor = two_hunks();
    editor.command("normal! Gotyped");
    fs::remove_file(editor.project().join("a.txt")).unwrap();
    editor.command("edit! other.txt | bwipeout! a.txt");
    editor.wait_until("no hunk", |e| rows(e).is_empty());
}

#[test]
fn what_is_pending_in_a_closed_file_stays_so_when_the_agent_writes_it_again() {
    let first = text(&NEW);
    let second = first.replace('1', "one");
    let third = second.replace('5', "five");
    let steps = [
        write_file("a.txt", &first),
        gate("close"),
        write_file("a.txt", &second),
        gate("edit"),
        write_file("a.txt", &third),
        gate("end"),
    ];
    let (agent, editor) = at_work(text(&OLD), steps);
    written(&agent, 1);
    editor.command("enew | bwipeout a.txt");
    agent.open_gate("close");
    written(&agent, 2);
    assert_eq!(rows(&editor), [(0, "1\n2".to_owned()), (3, "4".to_owned())]);
    // The user takes what they have typed into it away with the buffer.
    editor.command("edit a.txt | normal! Gotyped");
    editor.command("enew! | bwipeout! a.txt");
    agent.open_gate("edit");
    written(&agent, 3);
    assert_eq!(rows(&editor), [(0, "1\n2".to_owned()), (3, "4\n5".to_owned())]);
    editor.command("edit a.txt");
    assert_eq!(rows(&editor).len(), 2);
    editor.command("AgentChat reject file");
    assert_eq!(on_disk(&editor, "a.txt"), text(&OLD));
}
