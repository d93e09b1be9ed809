//! The helper's copies of buffers: an agent always reads and changes what the user has, and a buffer that the helper knows is
//! not read as a whole again.

use std::fmt::Write;

use serde_json::json;

use crate::files::{at_work, content, lines_of, on_disk, written};
use crate::support::scenario::{Step, gate, read_file, write_file};
use crate::support::{Editor, ScriptedAgent};

/// Counts how often a piece of a buffer's text is read.
fn count_pieces(editor: &Editor) {
    let code = "
    local files, pieces = require('agentchat.files'), 0
    local file_lines, done = files.file_lines, false
    files.file_lines = function(...)
      local answer = file_lines(...)
      pieces, done = pieces + 1, done or answer.done
      return answer
    end
    function _G.has_all() return done end
    function _G.pieces() return pieces end";
    editor.lua(code, json!([]));
}

#[track_caller]
fn pieces(editor: &Editor) -> u64 {
    editor.lua("return pieces()", json!([])).as_u64().unwrap()
}

/// A text of many lines, which no two of are the same.
fn long(lines: usize) -> String {
    (0..lines).fold(String::new(), |mut text, line| {
        writeln!(text, "line {} of a text that is longer than one piece", (line * 7919) % lines).unwrap();
        text
    })
}

/// What a buffer holds, as an agent reads it.
#[track_caller]
fn text_of(editor: &Editor) -> String {
    lines_of(editor, "a.txt").into_iter().fold(String::new(), |text, line| text + &line + "\n")
}

/// Reads once for each of the gates, which are opened one after the other.
fn reads(count: usize) -> impl Iterator<Item = Step> {
    (0..count).flat_map(|number| [gate(&number.to_string()), read_file("a.txt")])
}

#[track_caller]
fn reads_what_is_there(agent: &ScriptedAgent, editor: &Editor, number: usize, why: &str) {
    agent.open_gate(&number.to_string());
    assert_eq!(content(agent, number + 1), text_of(editor), "{why}");
}

#[test]
fn whatever_the_user_does_an_agent_reads_what_is_there_and_only_what_changed_is_asked_for() {
    let acts = [
        "normal! ggAtyped",
        "normal! GOabove the last line",
        "silent undo",
        "silent undo",
        "silent redo",
        "100,200sort",
        "200,300!tac",
        "5m 900",
        "global/line 1./delete",
        "undo",
        "%s/line 2/2 enil/",
        "1,50delete",
        "normal! Gp",
        "silent earlier 3",
        "silent later 2",
        "normal! qqqqqIx\u{1b}500jq7@q",
        "call setline(10, 'by a script')",
        "call append(0, ['two', 'rows'])",
        "$delete",
        "1t.",
        "normal! 300G20J",
        "set inccommand=split",
        "silent! execute \"normal! :%s/text/x\\<Esc>\"",
    ];
    let (agent, editor) = at_work(long(4_000), reads(acts.len() + 1));
    count_pieces(&editor);
    editor.command("normal! ggAdirty");
    reads_what_is_there(&agent, &editor, 0, "the first time");
    let whole = pieces(&editor);
    assert!(whole > 2);
    for (number, act) in acts.iter().enumerate() {
        editor.command(act);
        reads_what_is_there(&agent, &editor, number + 1, act);
    }
    // After a change all over the text all is read; there are six here.
    assert!(pieces(&editor) <= 8 * whole, "{} pieces, {whole} of the whole", pieces(&editor));
}

#[test]
fn a_buffer_that_is_read_anew_or_closed_is_known_no_more() {
    let (agent, editor) = at_work(long(3_000), reads(4));
    editor.command("normal! ggAdirty");
    reads_what_is_there(&agent, &editor, 0, "the first time");
    std::fs::write(editor.project().join("a.txt"), "1\n2\n3\n").unwrap();
    editor.command("edit! | normal! ggAdirty");
    reads_what_is_there(&agent, &editor, 1, "read anew");
    editor.command("enew | bwipeout! a.txt | edit a.txt | normal! Odirty again");
    reads_what_is_there(&agent, &editor, 2, "opened again");
    editor.command("enew | bdelete! a.txt | edit a.txt | %delete");
    agent.open_gate("3");
    assert_eq!(content(&agent, 4), "", "a buffer without a text");
}

#[test]
fn what_neovim_does_not_tell_is_noticed() {
    let write = [gate("write"), write_file("a.txt", "x\n2\n"), gate("end")];
    let steps = reads(2).chain(write);
    let (agent, editor) = at_work("1\n2\n", steps);
    editor.command("normal! ggAdirty");
    reads_what_is_there(&agent, &editor, 0, "the first time");
    editor.lua("require('agentchat.mirror').note = function() end", json!([]));
    editor.command("normal! Goone more");
    reads_what_is_there(&agent, &editor, 1, "a change that was not noted");
    agent.open_gate("write");
    written(&agent, 1);
    assert_eq!(lines_of(&editor, "a.txt"), ["x", "2"]);
}

#[test]
fn an_agent_that_has_read_writes_a_line_without_the_buffer_being_read() {
    let old = long(4_000);
    let new = old.replacen("line 0 of", "LINE 0 of", 1);
    let newer = new.replacen("line 1 of", "LINE 1 of", 1);
    let steps = [
        gate("read"),
        read_file("a.txt"),
        gate("write"),
        write_file("a.txt", &new),
        write_file("a.txt", &newer),
        gate("end"),
    ];
    let (agent, editor) = at_work(&old, steps);
    count_pieces(&editor);
    agent.open_gate("read");
    assert_eq!(content(&agent, 1), old);
    editor.wait_until("the helper has a copy", |e| e.lua("return has_all()", json!([])) == json!(true));
    let whole = pieces(&editor);
    editor.command("normal! GAtyped");
    editor.command("silent undo | silent write");
    agent.open_gate("write");
    written(&agent, 2);
    assert_eq!(text_of(&editor), newer);
    assert_eq!(on_disk(&editor, "a.txt"), newer);
    assert_eq!(pieces(&editor), whole);
}
