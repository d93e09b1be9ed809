//! The bytes of a file that nobody edited stay what they are: line breaks, encodings, marks, the last newline.

use std::fs;

use serde_json::json;

use crate::files::{READ, WRITE, at_work, at_work_with, content, is_modified, lines_of, on_disk, refusal, written};
use crate::support::Setup;
use crate::support::scenario::{gate, read_file, write_file};

/// What a file with these bytes, open in Neovim, is after the agent read it and wrote `text`.
#[track_caller]
fn after_writing(bytes: &[u8], text: &str) -> (String, Vec<u8>) {
    let (agent, editor) = at_work(bytes, [read_file("a.txt"), write_file("a.txt", text)]);
    let read = content(&agent, 1);
    written(&agent, 1);
    (read, editor.file("a.txt").unwrap())
}

#[test]
fn line_breaks_stay_what_they_are() {
    assert_eq!(after_writing(b"one\r\ntwo\r\n", "one\nTWO\n"), ("one\r\ntwo\r\n".into(), b"one\r\nTWO\r\n".to_vec()));
    assert_eq!(after_writing(b"one\r\ntwo\r\n", "one\r\nTWO\r\n").1, b"one\r\nTWO\r\n");
    assert_eq!(after_writing(b"one\ntwo\n", "one\nTWO\n").1, b"one\nTWO\n");
}

#[test]
fn mixed_line_breaks_stay_where_nothing_was_edited() {
    let old = b"one\r\ntwo\rstill two\nthree\n";
    let (read, new) = after_writing(old, "one\r\ntwo\rstill two\nTHREE\n");
    assert_eq!(read.as_bytes(), old);
    assert_eq!(new, b"one\r\ntwo\rstill two\nTHREE\n");
}

#[test]
fn old_mac_files_stay_what_they_are() {
    let setup = Setup::new().file("a.txt", "one\rtwo\r").init("vim.o.fileformats = 'unix,dos,mac'").arg("a.txt");
    let (agent, editor) = at_work_with(setup, [read_file("a.txt"), write_file("a.txt", "one\rTWO\r")]);
    assert_eq!(content(&agent, 1), "one\rtwo\r");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "one\rTWO\r");
}

#[test]
fn utf_16_is_kept() {
    let bytes = |text: &str| -> Vec<u8> {
        let mut bytes = vec![0xff, 0xfe];
        bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        bytes
    };
    let (read, new) = after_writing(&bytes("one 完\n"), "one 了\n");
    assert_eq!(read, "one 完\n");
    assert_eq!(new, bytes("one 了\n"));
}

#[test]
fn the_form_of_a_file_that_is_not_loaded_is_kept() {
    let setup = Setup::new().file("dos.txt", "one\r\ntwo\r\n").file("bom.txt", "\u{feff}one\n");
    let steps = [write_file("dos.txt", "one\nTWO\n"), write_file("bom.txt", "two\n")];
    let (agent, editor) = at_work_with(setup, steps);
    written(&agent, 2);
    assert_eq!(on_disk(&editor, "dos.txt"), "one\r\nTWO\r\n");
    assert_eq!(on_disk(&editor, "bom.txt"), "\u{feff}two\n");
}

#[test]
fn a_last_newline_is_there_when_the_agent_wrote_one() {
    assert_eq!(after_writing(b"one\ntwo", "one\nTWO"), ("one\ntwo".into(), b"one\nTWO".to_vec()));
    assert_eq!(after_writing(b"one\ntwo", "one\nTWO\n").1, b"one\nTWO\n");
    assert_eq!(after_writing(b"one\ntwo\n", "one\nTWO").1, b"one\nTWO");
}

#[test]
fn a_byte_order_mark_is_there_once() {
    const BOM: &str = "\u{feff}";
    let old = format!("{BOM}one\n");
    let new = format!("{BOM}two\n").into_bytes();
    assert_eq!(after_writing(old.as_bytes(), "two\n").1, new);
    assert_eq!(after_writing(old.as_bytes(), &format!("{BOM}two\n")).1, new);
}

#[test]
fn other_encodings_are_kept() {
    assert_eq!(after_writing(b"caf\xe9\n", "caf\u{e9}s\n"), ("caf\u{e9}\n".into(), b"caf\xe9s\n".to_vec()));
    let (agent, editor) = at_work(b"caf\xe9\n", [write_file("a.txt", "完了\n")]);
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("encoding"), "{message}");
    assert_eq!(editor.file("a.txt").unwrap(), b"caf\xe9\n");
}

#[test]
fn a_locale_without_utf8_changes_nothing() {
    let setup = Setup::new().env("LANG", "C").env("LC_ALL", "C").file("a.txt", "完了 ✅\n").arg("a.txt");
    let (agent, editor) = at_work_with(setup, [read_file("a.txt"), write_file("a.txt", "完了 ✅ ja\n")]);
    assert_eq!(content(&agent, 1), "完了 ✅\n");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "完了 ✅ ja\n");
}

#[test]
fn a_buffer_with_bytes_that_are_no_text_is_refused_and_kept() {
    let bytes = b"one\nbad \xff\xfe byte\nthree\n";
    let setup = Setup::new().file("a.txt", bytes).arg("a.txt").init("vim.o.fileencodings = 'utf-8'");
    let (agent, editor) =
        at_work_with(setup, [gate("typed"), read_file("a.txt"), write_file("a.txt", "one\nTWO\nthree\n")]);
    editor.command("edit ++enc=utf-8 ++bad=keep a.txt");
    editor.input("Gotyped<Esc>");
    editor.wait_screen("typed");
    agent.open_gate("typed");
    assert!(refusal(&agent, READ, 1).1.contains("UTF-8"));
    refusal(&agent, WRITE, 1);
    assert_eq!(editor.file("a.txt").unwrap(), bytes);
    assert!(is_modified(&editor, "a.txt"));
}

#[test]
fn an_empty_file_and_an_empty_line_are_told_apart() {
    for (old, new) in [("text\n", ""), ("text\n", "\n"), ("", "text\n"), ("\n", "")] {
        let (agent, editor) = at_work(old, [read_file("a.txt"), write_file("a.txt", new)]);
        assert_eq!(content(&agent, 1), old);
        written(&agent, 1);
        let path = editor.project().join("a.txt");
        assert_eq!(fs::read_to_string(&path).unwrap(), new, "{old:?} to {new:?}");
    }
}

#[test]
fn unsaved_emptiness_is_read_as_the_user_would_save_it() {
    for (lines, text) in [("{''}", "\n"), ("{}", "")] {
        let (agent, editor) = at_work("text\n", [gate("emptied"), read_file("a.txt")]);
        editor.lua(&format!("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.txt'), 0, -1, true, {lines})"), json!([]));
        let saved_as = editor.lua("vim.cmd('silent write! copy.txt') return vim.fn.readblob('copy.txt')", json!([]));
        agent.open_gate("emptied");
        assert_eq!(content(&agent, 1), saved_as.as_str().unwrap_or(text), "{lines}");
    }
}

#[test]
fn blanks_at_the_ends_of_lines_and_nul_bytes_stay() {
    assert_eq!(after_writing(b"one  \ntwo\t\nthree\n", "one  \ntwo\t\nTHREE \n").1, b"one  \ntwo\t\nTHREE \n");
    let (read, new) = after_writing(b"one\0two\nthree\n", "one\0two\nTHREE\0\n");
    assert_eq!(read, "one\0two\nthree\n");
    assert_eq!(new, b"one\0two\nTHREE\0\n");
}

#[test]
fn options_about_the_last_newline_change_nothing() {
    for option in ["fixeol", "nofixeol"] {
        for (old, new) in [("one\ntwo", "one\nTWO"), ("one\ntwo\n", "one\nTWO\n"), ("one\ntwo", "one\nTWO\n")] {
            let setup = Setup::new().file("a.txt", old).arg("a.txt").init(&format!("vim.cmd('set {option}')"));
            let (agent, editor) = at_work_with(setup, [read_file("a.txt"), write_file("a.txt", new)]);
            assert_eq!(content(&agent, 1), old);
            written(&agent, 1);
            assert_eq!(on_disk(&editor, "a.txt"), new, "{option}");
        }
    }
}

#[test]
fn unsaved_text_beside_the_agents_keeps_the_form_of_the_file() {
    let old = "\u{feff}one\r\ntwo\r\nthree";
    let steps = [read_file("a.txt"), gate("typed"), write_file("a.txt", "one\ntwo\nTHREE"), gate("end")];
    let (agent, editor) = at_work(old, steps);
    assert_eq!(content(&agent, 1), old);
    editor.input("ggAs<Esc>");
    editor.wait_screen("ones");
    agent.open_gate("typed");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "\u{feff}one\r\ntwo\r\nTHREE");
    editor.command("silent write");
    // The user's own save, which adds what 'fixendofline' asks for.
    assert_eq!(on_disk(&editor, "a.txt"), "\u{feff}ones\r\ntwo\r\nTHREE\r\n");
}

#[test]
fn unsaved_text_in_another_encoding_is_saved_with_the_agents() {
    let steps = [read_file("a.txt"), gate("typed"), write_file("a.txt", "caf\u{e9}\ntwo\nthr\u{e9}e\n"), gate("end")];
    let (agent, editor) = at_work(b"caf\xe9\ntwo\nthree\n", steps);
    assert_eq!(content(&agent, 1), "caf\u{e9}\ntwo\nthree\n");
    editor.input("ggAs<Esc>");
    editor.wait_screen("caf\u{e9}s");
    agent.open_gate("typed");
    written(&agent, 1);
    assert_eq!(editor.file("a.txt").unwrap(), b"caf\xe9s\ntwo\nthr\xe9e\n");
}

#[test]
fn a_buffer_that_was_opened_read_only_is_not_written() {
    let (agent, editor) = at_work("one\n", [gate("set"), write_file("a.txt", "two\n"), gate("end")]);
    // As after the answer "open read-only" to the question about a swap file.
    editor.command("set readonly");
    agent.open_gate("set");
    assert!(refusal(&agent, WRITE, 1).1.contains("read-only"));
    assert_eq!(on_disk(&editor, "a.txt"), "one\n");
}

#[test]
fn a_buffer_that_only_borrows_the_name_of_a_file_is_none_of_it() {
    let steps = [gate("set"), read_file("a.txt"), write_file("a.txt", "two\n"), gate("end")];
    let (agent, editor) = at_work("one\n", steps);
    editor.command("set buftype=nofile");
    editor.input("Goscratch<Esc>");
    editor.wait_screen("scratch");
    agent.open_gate("set");
    assert_eq!(content(&agent, 1), "one\n");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "two\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "scratch"]);
}
