//! What the user and an agent do to one file at the same time: both stay, or the agent is told and the user can compare.

use std::fs;

use serde_json::json;

use crate::changes;
use crate::files::{READ, WRITE, at_work, at_work_with, content, is_modified, lines_of, on_disk, refusal, written};
use crate::support::scenario::{Scenario, Step, end_turn, gate, read_file, write_file};
use crate::support::{Editor, ScriptedAgent, Setup};

const OLD: &str = "one\ntwo\nthree\nfour\nfive\n";
/// What the agent makes of it.
const NEW: &str = "one\ntwo\nthree\nfour\nFIVE\n";

/// The agent reads the file, the user does something, the agent writes.
fn read_then(content: &str) -> [Step; 4] {
    [read_file("a.txt"), gate("read"), write_file("a.txt", content), gate("end")]
}

/// Saves as the user does, and lets Neovim look at all files again: neither may ask anything.
#[track_caller]
fn saves_without_a_question(editor: &Editor) {
    editor.input(":checktime<CR>");
    editor.input(":w<CR>");
    editor.wait_until("the save", |e| !e.is_blocked() && !is_modified(e, "a.txt"));
    editor.input(":checktime<CR>");
    editor.wait_until("nothing to be asked", |e| !e.is_blocked());
    assert!(!editor.messages().contains("W1"), "{}", editor.messages());
}

#[track_caller]
fn typed(editor: &Editor, keys: &str, wanted: &[&str]) {
    editor.input(keys);
    editor.wait_until(&format!("{wanted:?}"), |e| lines_of(e, "a.txt") == wanted);
}

#[test]
fn unsaved_text_elsewhere_in_the_file_stays_unsaved_beside_the_agents() {
    let (agent, editor) = at_work(OLD, read_then(NEW));
    assert_eq!(content(&agent, 1), OLD);
    typed(&editor, "ggAs<Esc>", &["ones", "two", "three", "four", "five"]);
    agent.open_gate("read");
    written(&agent, 1);
    assert_eq!(lines_of(&editor, "a.txt"), ["ones", "two", "three", "four", "FIVE"]);
    assert_eq!(on_disk(&editor, "a.txt"), NEW, "the file is as the agent meant it");
    assert!(is_modified(&editor, "a.txt"));
    saves_without_a_question(&editor);
    assert_eq!(on_disk(&editor, "a.txt"), "ones\ntwo\nthree\nfour\nFIVE\n");
    typed(&editor, "u", &["ones", "two", "three", "four", "five"]);
    typed(&editor, "u", &["one", "two", "three", "four", "five"]);
}

#[test]
fn the_whole_old_text_with_one_change_does_not_bring_back_what_the_user_changed() {
    let steps = read_then(NEW).into_iter().chain([read_file("a.txt")]);
    let (agent, editor) = at_work(OLD, steps);
    content(&agent, 1);
    typed(&editor, "ggAs<Esc>:w<CR>", &["ones", "two", "three", "four", "five"]);
    editor.wait_until("the save", |e| !is_modified(e, "a.txt"));
    agent.open_gate("read");
    written(&agent, 1);
    agent.open_gate("end");
    assert_eq!(content(&agent, 2), "ones\ntwo\nthree\nfour\nFIVE\n");
    assert_eq!(on_disk(&editor, "a.txt"), "ones\ntwo\nthree\nfour\nFIVE\n");
    assert!(!is_modified(&editor, "a.txt"));
}

#[test]
fn what_the_user_saves_in_a_turn_is_kept_by_an_agent_that_reads_with_its_own_tools() {
    let steps = [
        gate("saved"),
        write_file("a.txt", NEW),
        gate("again"),
        write_file("b.txt", &OLD.replace("one", "1")),
        write_file("b.txt", &OLD.replace("one\ntwo", "ones\nTWO")),
        gate("end"),
    ];
    let setup = Setup::new().file("a.txt", OLD).file("b.txt", OLD).arg("a.txt");
    let (agent, editor) = at_work_with(setup, steps);
    agent.wait_gate("saved");
    typed(&editor, "ggAs<Esc>:w<CR>", &["ones", "two", "three", "four", "five"]);
    editor.wait_until("the save", |e| !is_modified(e, "a.txt"));
    agent.open_gate("saved");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "ones\ntwo\nthree\nfour\nFIVE\n");
    editor.input(":e b.txt<CR>ggAs<Esc>:w<CR>");
    editor.wait_until("the save", |e| on_disk(e, "b.txt") == OLD.replace("one", "ones"));
    agent.open_gate("again");
    // From the text of before the save it changes the line that the user changed; then it has read again.
    let (_, message) = refusal(&agent, WRITE, 2);
    assert!(message.contains("line 1"), "{message}");
    written(&agent, 3);
    assert_eq!(on_disk(&editor, "b.txt"), OLD.replace("one\ntwo", "ones\nTWO"));
}

#[test]
fn what_the_user_saved_and_closed_since_the_agent_read_is_kept() {
    let steps = [
        read_file("b.txt"),
        read_file("c.txt"),
        gate("read"),
        write_file("b.txt", NEW),
        write_file("c.txt", &OLD.replace("one", "1")),
        read_file("b.txt"),
        gate("end"),
    ];
    let setup = Setup::new().file("a.txt", "").file("b.txt", OLD).file("c.txt", OLD).arg("a.txt");
    let (agent, editor) = at_work_with(setup, steps);
    content(&agent, 2);
    for name in ["b.txt", "c.txt"] {
        editor.command(&format!("edit {name} | call setline(1, 'ones') | write | bwipeout"));
    }
    agent.open_gate("read");
    written(&agent, 1);
    let (_, message) = refusal(&agent, WRITE, 2);
    assert!(message.contains("line 1"), "{message}");
    assert_eq!(content(&agent, 3), NEW.replace("one", "ones"));
    assert_eq!(hunks(&editor, "b.txt"), json!([[4, "a", "five"]]));
    assert_eq!(on_disk(&editor, "c.txt"), OLD.replace("one", "ones"));
}

#[test]
fn a_second_write_from_the_same_reading_keeps_what_the_user_changed() {
    let steps = [
        read_file("a.txt"),
        gate("read"),
        write_file("a.txt", NEW),
        write_file("a.txt", &format!("{NEW}six\n")),
        gate("end"),
    ];
    let (agent, editor) = at_work(OLD, steps);
    content(&agent, 1);
    typed(&editor, "ggAs<Esc>:w<CR>", &["ones", "two", "three", "four", "five"]);
    editor.wait_until("the save", |e| !is_modified(e, "a.txt"));
    agent.open_gate("read");
    written(&agent, 2);
    assert_eq!(on_disk(&editor, "a.txt"), "ones\ntwo\nthree\nfour\nFIVE\nsix\n");
}

#[test]
fn with_save_dirty_unsaved_text_is_saved_along() {
    let setup = Setup::new().file("a.txt", OLD).arg("a.txt").config("save_dirty", json!(true));
    let (agent, editor) = at_work_with(setup, read_then(NEW));
    content(&agent, 1);
    typed(&editor, "ggAs<Esc>", &["ones", "two", "three", "four", "five"]);
    agent.open_gate("read");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "ones\ntwo\nthree\nfour\nFIVE\n");
    assert!(!is_modified(&editor, "a.txt"));
}

#[test]
fn a_conflict_is_refused_and_both_versions_are_at_hand() {
    let steps = read_then("one\ntwo\nTHREE\nfour\nfive\n").into_iter().chain([
        read_file("a.txt"),
        write_file("a.txt", "one\ntwo\nthrees, THREE\nfour\nfive\n"),
        gate("done"),
    ]);
    let setup = Setup::new().file("a.rs", OLD).file("a.txt", OLD).arg("a.txt");
    let (agent, editor) = at_work_with(setup, steps);
    content(&agent, 1);
    typed(&editor, "3GAs<Esc>", &["one", "two", "threes", "four", "five"]);
    agent.open_gate("read");
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("line 3") && message.contains("Read it again"), "{message}");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two", "threes", "four", "five"]);
    assert_eq!(on_disk(&editor, "a.txt"), OLD);
    editor.wait_screen(":vert diffsplit agentchat://agent/a.txt");
    assert!(!editor.is_blocked());
    let code = "local b = vim.fn.bufnr('agentchat://agent/a.txt') return { vim.api.nvim_buf_get_lines(b, 0, -1, true), \
                vim.bo[b].filetype, vim.bo[b].buflisted }";
    assert_eq!(editor.lua(code, json!([])), json!([["one", "two", "THREE", "four", "five"], "text", false]));
    editor.input(":vert diffsplit agentchat://agent/a.txt<CR>");
    editor.wait_until("two windows that compare", |e| {
        let code = "return vim.iter(vim.api.nvim_list_wins()):filter(function(w) return vim.wo[w].diff end):totable()";
        e.lua(code, json!([])).as_array().is_some_and(|windows| windows.len() == 2)
    });
    editor.input(":close<CR>");
    agent.open_gate("end");
    written(&agent, 2);
    assert_eq!(lines_of(&editor, "a.txt")[2], "threes, THREE");
    let is_gone = |e: &Editor| e.lua("return vim.fn.bufexists('agentchat://agent/a.txt')", json!([])) == json!(0);
    editor.wait_until("the other version put away", is_gone);
}

#[test]
fn a_file_that_changed_behind_unsaved_text_is_merged_too() {
    let (agent, editor) = at_work(OLD, read_then(NEW));
    content(&agent, 1);
    typed(&editor, "ggAs<Esc>", &["ones", "two", "three", "four", "five"]);
    fs::write(editor.project().join("a.txt"), "one\ntwo\nTHREE\nfour\nfive\n").unwrap();
    agent.open_gate("read");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "one\ntwo\nTHREE\nfour\nFIVE\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["ones", "two", "THREE", "four", "FIVE"]);
    saves_without_a_question(&editor);
}

#[test]
fn a_file_that_changed_behind_unsaved_text_that_the_agent_has_seen_is_not_written() {
    let steps = [gate("typed"), read_file("a.txt"), gate("read"), write_file("a.txt", "ones\nTWO\n"), gate("end")];
    let (agent, editor) = at_work("one\ntwo\n", steps);
    typed(&editor, "ggAs<Esc>", &["ones", "two"]);
    agent.open_gate("typed");
    assert_eq!(content(&agent, 1), "ones\ntwo\n");
    fs::write(editor.project().join("a.txt"), "one\ntwo\nthree\n").unwrap();
    agent.open_gate("read");
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("another program"), "{message}");
    assert_eq!(on_disk(&editor, "a.txt"), "one\ntwo\nthree\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["ones", "two"]);
}

#[test]
fn typing_without_saving_survives_an_agent_that_writes_the_disk_itself() {
    let steps = [read_file("a.txt"), gate("disk"), write_file("a.txt", NEW), gate("end")];
    let (agent, editor) = at_work(OLD, steps);
    content(&agent, 1);
    typed(&editor, "ggAs<Esc>", &["ones", "two", "three", "four", "five"]);
    fs::write(editor.project().join("a.txt"), NEW).unwrap();
    agent.open_gate("disk");
    written(&agent, 1);
    assert_eq!(lines_of(&editor, "a.txt"), ["ones", "two", "three", "four", "FIVE"]);
    assert_eq!(on_disk(&editor, "a.txt"), NEW);
    saves_without_a_question(&editor);
}

// -- a user who does not stop

/// The agent writes while the user is where `keys` lead, and gets its answer although they stay there.
#[track_caller]
fn busy(keys: &str, mode: &str, content_written: &str) -> (ScriptedAgent, Editor) {
    let steps = [
        read_file("a.txt"),
        gate("busy"),
        write_file("a.txt", content_written),
        gate("again"),
        read_file("a.txt"),
        write_file("a.txt", "one typed more\ntwo\nthree\nfour\nFIVE\nsix\n"),
        gate("end"),
    ];
    let setup = Setup::new().file("a.txt", OLD).arg("a.txt").config("timeouts", json!({ "busy": 500 }));
    let (agent, editor) = at_work_with(setup, steps);
    assert_eq!(content(&agent, 1), OLD);
    editor.input(keys);
    editor.wait_until("the mode", |e| e.lua("return vim.api.nvim_get_mode().mode", json!([])) == json!(mode));
    agent.open_gate("busy");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), content_written);
    assert_eq!(editor.lua("return vim.api.nvim_get_mode().mode", json!([])), json!(mode));
    (agent, editor)
}

#[test]
fn a_user_who_stays_in_insert_mode_keeps_no_agent_and_loses_nothing() {
    let (agent, editor) = busy("ggA typed", "i", NEW);
    assert_eq!(lines_of(&editor, "a.txt"), ["one typed", "two", "three", "four", "five"]);
    editor.input(" more");
    editor.wait_screen("one typed more");
    agent.open_gate("again");
    assert_eq!(content(&agent, 2), "one typed more\ntwo\nthree\nfour\nFIVE\n", "what the user will see");
    editor.input("<Esc>");
    let both = ["one typed more", "two", "three", "four", "FIVE", "six"];
    editor.wait_until("both", |e| lines_of(e, "a.txt") == both);
    written(&agent, 2);
    saves_without_a_question(&editor);
    assert_eq!(on_disk(&editor, "a.txt"), "one typed more\ntwo\nthree\nfour\nFIVE\nsix\n");
}

#[test]
fn a_save_before_the_buffer_has_caught_up_writes_over_nothing() {
    for quit in ["ZZ", ":wqa<CR>"] {
        let (_agent, editor) = busy("ggA typed", "i", NEW);
        // At once: the mode ends and the save comes before anything else is asked of Neovim.
        editor.input(&format!("<Esc>{quit}"));
        let both = "one typed\ntwo\nthree\nfour\nFIVE\n";
        editor.wait_until("both texts on disk", |e| on_disk(e, "a.txt") == both);
        assert_eq!(lines_of(&editor, "a.txt").concat(), both.replace('\n', ""));
        editor.wait_until("a saved buffer", |e| !is_modified(e, "a.txt"));
        assert!(!editor.is_blocked());
    }
}

#[test]
fn a_save_before_the_buffer_has_caught_up_where_both_typed_is_stopped() {
    let (_agent, editor) = busy("ggA", "i", "ONE\ntwo\nthree\nfour\nfive\n");
    editor.input(" mine<Esc>:wq<CR>");
    editor.wait_screen("the agent's version differs");
    editor.input(":wq<CR>");
    editor.wait_until("the refusal", |e| e.messages().contains("not saved: the agent changed the same lines"));
    assert_eq!(on_disk(&editor, "a.txt"), "ONE\ntwo\nthree\nfour\nfive\n");
    assert_eq!(lines_of(&editor, "a.txt")[0], "one mine");
    editor.command("AgentChat reject file");
    editor.wait_until("the file from before", |e| on_disk(e, "a.txt") == OLD);
    saves_without_a_question(&editor);
    assert_eq!(on_disk(&editor, "a.txt"), "one mine\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn a_user_who_stays_in_visual_mode_keeps_no_agent() {
    let (_agent, editor) = busy("2GVj", "V", NEW);
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two", "three", "four", "five"]);
    editor.input("<Esc>");
    editor.wait_until("the agent's text", |e| lines_of(e, "a.txt") == ["one", "two", "three", "four", "FIVE"]);
    editor.wait_until("a saved buffer", |e| !is_modified(e, "a.txt"));
    assert_eq!(on_disk(&editor, "a.txt"), NEW);
}

#[test]
fn what_is_typed_where_the_agent_wrote_meanwhile_stays_and_both_can_be_compared() {
    let (_agent, editor) = busy("ggA", "i", "ONE\ntwo\nthree\nfour\nfive\n");
    editor.input(" mine<Esc>");
    editor.wait_screen("agentchat://agent/a.txt");
    assert_eq!(lines_of(&editor, "a.txt"), ["one mine", "two", "three", "four", "five"]);
    assert!(is_modified(&editor, "a.txt"));
}

#[test]
fn a_buffer_that_cannot_follow_its_file_says_so_with_the_agents_text_at_hand() {
    let (_agent, editor) = busy("ggA", "i", "one\ntwo\nthree\nfour\nFIVE\n");
    editor.lua("vim.bo.modifiable = false", json!([]));
    editor.input("<Esc>");
    editor.wait_screen("agentchat://agent/a.txt");
    assert_eq!(lines_of(&editor, "a.txt"), ["one", "two", "three", "four", "five"]);
}

#[test]
fn a_buffer_that_another_plugin_saves_is_not_written() {
    let steps = [gate("special"), read_file("a.txt"), write_file("a.txt", "two\n"), gate("end")];
    let (agent, editor) = at_work("one\n", steps);
    editor.command("set buftype=acwrite");
    agent.open_gate("special");
    assert_eq!(content(&agent, 1), "one\n");
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("another plugin"), "{message}");
    assert!(agent.answers(READ).len() == 1 && on_disk(&editor, "a.txt") == "one\n");
}

#[test]
fn a_save_that_takes_its_time_is_not_taken_for_the_agents_work() {
    let (agent, editor) = at_work(OLD, read_then(NEW));
    assert_eq!(content(&agent, 1), OLD);
    // As a large file on a slow disk is written, in pieces.
    let code = "vim.api.nvim_create_autocmd('BufWriteCmd', { buffer = 0, once = true, callback = function(args)
      local lines = vim.api.nvim_buf_get_lines(0, 0, -1, true)
      vim.fn.writefile(vim.list_slice(lines, 1, 2), args.match)
      vim.uv.sleep(1000)
      vim.fn.writefile(lines, args.match)
      vim.bo.modified = false
      vim.cmd('doautocmd BufWritePost')
    end })";
    editor.lua(code, json!([]));
    editor.command("normal! ggAs");
    editor.command("write");
    assert_eq!(on_disk(&editor, "a.txt"), "ones\ntwo\nthree\nfour\nfive\n");
    assert_eq!(lines_of(&editor, "a.txt"), ["ones", "two", "three", "four", "five"]);
    assert_eq!(changes::table_of(&editor, &editor.project().join("a.txt")).0.len(), 0);
    agent.open_gate("read");
    written(&agent, 1);
    assert_eq!(lines_of(&editor, "a.txt"), ["ones", "two", "three", "four", "FIVE"]);
    let (hunks, ..) = changes::table_of(&editor, &editor.project().join("a.txt"));
    assert_eq!(hunks.len(), 1, "what the agent wrote: {hunks:?}");
}

// -- another Neovim

/// A second Neovim that shares the folder for swap files with the first, and has its `a.txt` open with the text that `keys`
/// type.
#[track_caller]
fn another_neovim(editor: &Editor, keys: &str) -> Editor {
    let other = Editor::start(Setup::new());
    // As for two Neovims of one user; the question about the swap file of the first is answered as by "(E)dit anyway".
    let code = "local path, swap = ...
    vim.o.directory = swap
    vim.api.nvim_create_autocmd('SwapExists', { callback = function() vim.v.swapchoice = 'e' end })
    vim.cmd.edit(path)";
    let swap = editor.lua("return vim.o.directory", json!([]));
    other.lua(code, json!([editor.project().join("a.txt"), swap]));
    other.input(keys);
    other
}

fn is_dirty(editor: &Editor) -> bool {
    editor.lua("return vim.bo.modified", json!([])) == json!(true)
}

#[test]
fn a_file_in_which_another_neovim_has_unsaved_text_is_not_written() {
    let steps = [
        gate("typed"),
        write_file("a.txt", "agent\n"),
        gate("saved"),
        write_file("a.txt", "agent\n"),
        read_file("a.txt"),
        write_file("a.txt", "agent\n"),
        gate("end"),
    ];
    let setup = Setup::new().file("a.txt", "one\n").file("b.txt", "b\n").arg("b.txt");
    let (agent, editor) = at_work_with(setup, steps);
    let other = another_neovim(&editor, "ccmine<Esc>");
    other.wait_until("unsaved text", is_dirty);
    agent.open_gate("typed");
    let (_, message) = refusal(&agent, WRITE, 1);
    assert!(message.contains("another editor") && message.contains(&other.pid().to_string()), "{message}");
    editor.wait_until("the user is told", |e| e.messages().contains("unsaved changes in a.txt"));
    assert_eq!(on_disk(&editor, "a.txt"), "one\n");
    other.input(":w<CR>");
    other.wait_until("the save", |other| !is_dirty(other));
    agent.open_gate("saved");
    let (_, message) = refusal(&agent, WRITE, 2);
    assert!(message.contains("you have not seen"), "{message}");
    written(&agent, 3);
    assert_eq!(on_disk(&editor, "a.txt"), "agent\n");
    other.command("set autoread | checktime");
    assert_eq!(other.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)", json!([])), json!(["agent"]));
}

#[test]
fn two_neovims_with_the_same_file_and_an_agent_in_one_lose_nothing() {
    let steps = [
        read_file("a.txt"),
        gate("other"),
        write_file("a.txt", NEW),
        gate("typed"),
        write_file("a.txt", &NEW.replace("two", "TWO")),
        gate("end"),
    ];
    let (agent, editor) = at_work(OLD, steps);
    content(&agent, 1);
    let other = another_neovim(&editor, "");
    agent.open_gate("other");
    written(&agent, 1);
    // The other one follows as Neovims do, and then has something of its own.
    other.command("set autoread | checktime");
    assert_eq!(other.lua("return vim.fn.getline('$')", json!([])), json!("FIVE"));
    other.input("ggAs<Esc>");
    other.wait_until("unsaved text", is_dirty);
    agent.open_gate("typed");
    let (_, message) = refusal(&agent, WRITE, 2);
    assert!(message.contains("another editor"), "{message}");
    assert_eq!(on_disk(&editor, "a.txt"), NEW);
    other.input(":w<CR>");
    other.wait_until("the save", |other| !is_dirty(other));
    assert_eq!(on_disk(&editor, "a.txt"), NEW.replace("one", "ones"));
}

// -- hunks

/// What is pending in a file, as `first`, `flags` and `old` of each hunk.
fn hunks(editor: &Editor, path: &str) -> serde_json::Value {
    let code = "local path = vim.uv.fs_realpath(...) or ...
    return vim.iter(require('agentchat.changes').get(path, 0, 100000).hunks):map(function(h)
      return { h.first, h.flags, table.concat(h.old, '|') } end):totable()";
    editor.lua(code, json!([editor.project().join(path)]))
}

#[test]
fn what_the_agent_writes_is_pending_and_what_the_user_types_is_not() {
    let steps = [
        read_file("a.txt"),
        gate("read"),
        write_file("a.txt", NEW),
        gate("again"),
        read_file("a.txt"),
        write_file("a.txt", "ones\nTWO\nthree\nfour\nFIVE\n"),
        gate("end"),
    ];
    let (agent, editor) = at_work(OLD, steps);
    content(&agent, 1);
    typed(&editor, "ggAs<Esc>", &["ones", "two", "three", "four", "five"]);
    agent.open_gate("read");
    written(&agent, 1);
    assert_eq!(hunks(&editor, "a.txt"), json!([[4, "a", "five"]]));
    agent.open_gate("again");
    written(&agent, 2);
    assert_eq!(hunks(&editor, "a.txt"), json!([[1, "a", "two"], [4, "a", "five"]]));
    editor.command("AgentChat reject file");
    let without = ["ones", "two", "three", "four", "five"];
    editor.wait_until("the text without the agent", |e| lines_of(e, "a.txt") == without);
}

#[test]
fn a_file_that_is_not_loaded_has_hunks_without_a_buffer() {
    let setup = Setup::new().file("a.txt", "").file("b.txt", "one\r\ntwo\r\nthree\r\n").arg("a.txt");
    let steps = [
        write_file("b.txt", "ONE\ntwo\nthree\n"),
        write_file("b.txt", "ONE\ntwo\nTHREE\n"),
        write_file("b.txt", "ONE\ntwo\nTHREE\n"),
        write_file("new.txt", "new\n"),
        gate("end"),
    ];
    let (agent, editor) = at_work_with(setup, steps);
    written(&agent, 4);
    assert_eq!(hunks(&editor, "b.txt"), json!([[0, "a", "one"], [2, "a", "three"]]));
    assert_eq!(hunks(&editor, "new.txt"), json!([[0, "a", ""]]));
    assert_eq!(editor.lua("return vim.fn.bufnr('b.txt') + vim.fn.bufnr('new.txt')", json!([])), json!(-2));
    assert_eq!(on_disk(&editor, "b.txt"), "ONE\r\ntwo\r\nTHREE\r\n");
    editor.command("edit b.txt");
    editor.command("AgentChat reject file");
    editor.wait_until("the old bytes", |e| on_disk(e, "b.txt") == "one\r\ntwo\r\nthree\r\n");
}

#[test]
fn what_a_formatter_makes_of_a_write_is_pending_with_it() {
    let init = r#"
    vim.api.nvim_create_autocmd("BufWritePre", { pattern = "a.txt", callback = function()
      vim.cmd([[keepjumps %s/^\s*/  /]])
    end })
    "#;
    let setup = Setup::new().file("a.txt", "one\n").arg("a.txt").init(init);
    let (agent, editor) = at_work_with(setup, [read_file("a.txt"), write_file("a.txt", "one\ntwo\n"), gate("end")]);
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), "  one\n  two\n");
    assert_eq!(hunks(&editor, "a.txt"), json!([[0, "aa", "one"]]));
}

#[test]
fn five_changes_in_a_dos_file_are_five_hunks_and_rejecting_them_gives_back_the_bytes() {
    let old = (1..=20).fold(String::new(), |text, number| text + &format!("line {number}\r\n"));
    let mut new = old.replace("\r\n", "\n").replace("line 1\n", "").replace("line 5\n", "LINE 5\n");
    new = new.replace("line 9\n", "line 9\nadded\n").replace("line 13\n", "13\n").replace("line 20\n", "line 20\nlast");
    let steps = [
        read_file("a.txt"),
        write_file("a.txt", &old.replace("line 5\r", "five").replace('\r', "")),
        gate("one"),
        write_file("a.txt", &new),
        gate("five"),
    ];
    let (agent, editor) = at_work(&old, steps);
    written(&agent, 1);
    assert_eq!(hunks(&editor, "a.txt"), json!([[4, "a", "line 5"]]), "one line, whatever its end");
    assert_eq!(on_disk(&editor, "a.txt"), old.replace("line 5", "five"));
    agent.open_gate("one");
    written(&agent, 2);
    assert_eq!(hunks(&editor, "a.txt").as_array().map(Vec::len), Some(5));
    editor.command("AgentChat reject file");
    editor.wait_until("the old bytes", |e| on_disk(e, "a.txt") == old);
    assert_eq!(hunks(&editor, "a.txt"), json!([]));
}

#[test]
fn names_like_those_of_windows_can_be_rejected_and_identical_text_is_no_hunk() {
    const NAME: &str = r"C:\folder\a.txt";
    let setup = Setup::new().file(NAME, "one\ntwo\n").file("same.txt", "same\n").arg("same.txt");
    let steps = [write_file(NAME, "one\nTWO\n"), write_file("same.txt", "same\n"), gate("end")];
    let (agent, editor) = at_work_with(setup, steps);
    written(&agent, 2);
    assert_eq!(hunks(&editor, "same.txt"), json!([]));
    assert_eq!(hunks(&editor, NAME), json!([[1, "a", "two"]]));
    editor.command("AgentChat reject all");
    editor.wait_until("the old text", |e| on_disk(e, NAME) == "one\ntwo\n");
}

#[test]
fn a_write_waits_for_the_end_of_a_textlock() {
    let init = "vim.keymap.set('n', '<F5>', function() vim.fn.getcharstr() return '' end, { expr = true })";
    let steps = [gate("locked"), write_file("a.txt", NEW).without_waiting(), read_file("b.txt"), gate("end")];
    let setup = Setup::new().file("a.txt", OLD).file("b.txt", "b").arg("a.txt").init(init);
    let (agent, editor) = at_work_with(setup, steps);
    editor.input("<F5>");
    agent.open_gate("locked");
    content(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), OLD);
    editor.input("x");
    written(&agent, 1);
    assert_eq!(on_disk(&editor, "a.txt"), NEW);
    assert_eq!(lines_of(&editor, "a.txt")[4], "FIVE");
}

/// An agent that reads with its own tools, and writes in a turn what it wrote in an earlier one.
#[test]
fn the_same_text_in_a_later_turn_is_a_change_again() {
    let scenario = Scenario::new().on_prompt([write_file("a.txt", NEW), end_turn()]).on_prompt([
        gate("typed"),
        write_file("a.txt", NEW),
        end_turn(),
    ]);
    let (agent, editor) = crate::chat::open(&scenario, Setup::new().file("a.txt", OLD).arg("a.txt"));
    crate::chat::enter_code(&editor);
    editor.prompt("go");
    editor.wait_until("the first change", |e| on_disk(e, "a.txt") == NEW);
    editor.wait_state("idle");
    editor.command("AgentChat reject all");
    editor.wait_until("the old text", |e| on_disk(e, "a.txt") == OLD && !is_modified(e, "a.txt"));
    editor.prompt("again");
    agent.wait_gate("typed");
    typed(&editor, "ggAs<Esc>", &["ones", "two", "three", "four", "five"]);
    agent.open_gate("typed");
    written(&agent, 2);
    editor.wait_until("both", |e| lines_of(e, "a.txt") == ["ones", "two", "three", "four", "FIVE"]);
    assert_eq!(on_disk(&editor, "a.txt"), NEW);
}
