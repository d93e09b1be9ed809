//! What a permission request would change, shown in the buffer before it exists.

use serde_json::{Value as Json, json};

use crate::chat::{self, enter_code, window};
use crate::files::{is_modified, lines_of};
use crate::support::scenario::{Scenario, Step, ask_permission_with, end_turn, gate, tool_call, tool_update};
use crate::support::{Editor, ScriptedAgent, Setup};

/// Asks about a call with these fields, in which `$cwd` is the project.
fn asking(fields: &Json) -> Step {
    let mut call = json!({ "toolCallId": "t1", "title": "Edit a.txt", "kind": "edit" });
    call.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let options = json!([
        { "optionId": "yes", "kind": "allow_once", "name": "Allow" },
        { "optionId": "no", "kind": "reject_once", "name": "Reject" },
    ]);
    ask_permission_with(call, options)
}

/// `a.txt` is open, and the agent asks after these steps.
#[track_caller]
fn asked(steps: impl IntoIterator<Item = Step>) -> (ScriptedAgent, Editor) {
    let scenario = Scenario::new().on_prompt(steps.into_iter().chain([end_turn()]));
    let (agent, editor) =
        chat::open(&scenario, Setup::new().file("a.txt", "one\ntwo(1)\nthree\ntwo(2)\n").arg("a.txt"));
    enter_code(&editor);
    editor.prompt("go");
    editor.wait("the permission float", |e| window(e, "agentchat_permission"));
    (agent, editor)
}

fn marks(editor: &Editor) -> u64 {
    let code = "
    local buf, ns = vim.fn.bufnr('a.txt'), vim.api.nvim_create_namespace('agentchat.proposed')
    return #vim.api.nvim_buf_get_extmarks(buf, ns, 0, -1, {})";
    editor.lua(code, json!([])).as_u64().unwrap()
}

#[track_caller]
fn assert_untouched(editor: &Editor) {
    assert_eq!(lines_of(editor, "a.txt"), ["one", "two(1)", "three", "two(2)"]);
    assert!(!is_modified(editor, "a.txt"));
}

#[test]
fn a_fragment_is_shown_where_it_is_until_the_request_is_answered() {
    let diff = json!([{ "type": "diff", "path": "$cwd/a.txt", "oldText": "(1)\nthree", "newText": "(one)\nTHREE" }]);
    let (_agent, editor) = asked([asking(&json!({ "content": diff }))]);
    let screen = editor.wait_screen("two(one)");
    assert!(screen.contains("THREE"));
    assert_eq!(screen.groups_of("two(1)").unwrap().last().unwrap(), "DiffDelete");
    assert_untouched(&editor);
    editor.lua("require('agentchat').respond('reject_once')", json!([]));
    editor.wait_until("nothing is shown any more", |e| marks(e) == 0);
    assert_untouched(&editor);
}

#[test]
fn it_vanishes_when_the_turn_is_cancelled() {
    let diff = json!([{ "type": "diff", "path": "$cwd/a.txt", "oldText": "three", "newText": "3" }]);
    let (_agent, editor) = asked([asking(&json!({ "content": diff }))]);
    editor.wait_until("it is shown", |e| marks(e) > 0);
    editor.command("AgentChat cancel");
    editor.wait_until("nothing is shown any more", |e| marks(e) == 0);
}

#[test]
fn what_comes_in_raw_arguments_or_a_later_update_is_shown_too() {
    let raw = json!({ "file_path": "$cwd/a.txt", "old_string": "three", "new_string": "3" });
    let (_agent, editor) = asked([tool_call("t1", "Edit", "edit"), asking(&json!({ "rawInput": raw }))]);
    editor.wait_until("it is shown", |e| marks(e) > 0);
    let unified = "--- a/a.txt\n+++ b/a.txt\n@@ -3,2 +3,2 @@\n three\n-two(2)\n+two(two)\n";
    let later = json!({ "rawInput": { "path": "$cwd/a.txt", "diff": unified } });
    let (agent, editor) =
        asked([asking(&json!({})).without_waiting(), gate("later"), tool_update("t1", later), gate("end")]);
    assert_eq!(marks(&editor), 0);
    agent.open_gate("later");
    editor.wait_screen("two(two)");
    assert_untouched(&editor);
}

#[test]
fn a_text_that_is_there_twice_or_not_at_all_is_said() {
    for (old, said) in [("two(", "than once"), ("four", "to replace is not")] {
        let diff = json!([{ "type": "diff", "path": "$cwd/a.txt", "oldText": old, "newText": "x" }]);
        let (_agent, editor) = asked([asking(&json!({ "content": diff }))]);
        editor.wait_screen(said);
        assert_eq!(marks(&editor), 0);
    }
}

#[test]
fn a_new_file_is_a_scratch_buffer_with_its_filetype() {
    let diff = json!([{ "type": "diff", "path": "$cwd/new.py", "oldText": null, "newText": "import os\n" }]);
    let (_agent, editor) = asked([asking(&json!({ "content": diff }))]);
    editor.wait_screen("new.py would be new");
    let code = "
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_get_name(buf):find('proposed/%d+/new.py$') then
        return { vim.bo[buf].filetype, vim.bo[buf].buftype, vim.api.nvim_buf_get_lines(buf, 0, -1, true) }
      end
    end
    return {}";
    assert_eq!(editor.lua(code, json!([])), json!(["python", "nofile", ["import os"]]));
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    editor.wait_until("it is gone", |e| e.lua(code, json!([])) == json!([]));
}

#[test]
fn a_file_that_is_opened_later_shows_it() {
    let diff = json!([{ "type": "diff", "path": "$cwd/b.txt", "oldText": "b", "newText": "B" }]);
    let scenario = Scenario::new().on_prompt([asking(&json!({ "content": diff })), end_turn()]);
    let (_agent, editor) = chat::open(&scenario, Setup::new().file("b.txt", "b\n"));
    enter_code(&editor);
    editor.prompt("go");
    editor.wait("the permission float", |e| window(e, "agentchat_permission"));
    editor.command("edit b.txt");
    editor.wait_screen("proposed: +1 −1");
}

// -- calls that nobody is asked about

/// `a.txt` is open, and the agent does this without asking.
#[track_caller]
fn unasked(steps: impl IntoIterator<Item = Step>) -> (ScriptedAgent, Editor) {
    let scenario = Scenario::new().on_prompt(steps.into_iter().chain([gate("end"), end_turn()]));
    let setup = Setup::new().file("a.txt", "one\ntwo(1)\nthree\ntwo(2)\n").arg("a.txt");
    let (agent, editor) = chat::open(&scenario, setup);
    enter_code(&editor);
    editor.prompt("go");
    (agent, editor)
}

#[test]
fn a_call_that_is_not_asked_about_shows_what_it_would_do_until_it_ends() {
    let diff = json!([{ "type": "diff", "path": "$cwd/a.txt", "oldText": "(1)\nthree", "newText": "(one)\nTHREE" }]);
    let inputs = [
        json!({ "content": diff }),
        json!({ "rawInput": { "file_path": "$cwd/a.txt", "old_string": "(1)", "new_string": "(one)" } }),
        json!({ "rawInput": { "filePath": "$cwd/a.txt", "oldString": "(1)", "newString": "(one)" } }),
        json!({ "rawInput": { "command": "str_replace", "path": "$cwd/a.txt", "old_str": "(1)", "new_str": "(one)" } }),
    ];
    for (number, says) in inputs.into_iter().enumerate() {
        let status = if number % 2 == 0 { "completed" } else { "failed" };
        let steps = [
            tool_call("t1", "Edit a.txt", "edit"),
            tool_update("t1", says),
            gate("shown"),
            tool_update("t1", json!({ "status": "in_progress" })),
            gate("running"),
            tool_update("t1", json!({ "status": status })),
        ];
        let (agent, editor) = unasked(steps);
        editor.wait_screen("two(one)");
        assert_untouched(&editor);
        agent.open_gate("shown");
        assert!(marks(&editor) > 0);
        agent.open_gate("running");
        editor.wait_until("nothing is shown any more", |e| marks(e) == 0);
        assert_untouched(&editor);
    }
}

#[test]
fn what_an_unfinished_call_would_do_vanishes_with_its_turn() {
    let raw = json!({ "rawInput": { "file_path": "$cwd/a.txt", "old_string": "three", "new_string": "3" } });
    let (_agent, editor) = unasked([tool_call("t1", "Edit", "edit"), tool_update("t1", raw)]);
    editor.wait_until("it is shown", |e| marks(e) > 0);
    editor.command("AgentChat cancel");
    editor.wait_until("nothing is shown any more", |e| marks(e) == 0);
}

#[test]
fn a_call_that_was_asked_about_is_not_shown_again_once_that_is_answered() {
    let diff = json!([{ "type": "diff", "path": "$cwd/a.txt", "oldText": "three", "newText": "3" }]);
    let steps = [
        asking(&json!({ "content": diff })),
        tool_update("t1", json!({ "status": "in_progress", "content": diff })),
        gate("running"),
    ];
    let (_agent, editor) = asked(steps);
    editor.wait_until("it is shown", |e| marks(e) > 0);
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    editor.wait_until("nothing is shown any more", |e| marks(e) == 0);
    editor.wait_transcript("Allow: Edit a.txt");
    assert_eq!(marks(&editor), 0);
}

#[test]
fn where_an_unfinished_call_means_is_said_to_be_unknown() {
    let raw = json!({ "rawInput": { "path": "$cwd/a.txt", "old_string": "two(", "new_string": "2(" } });
    let (_agent, editor) = unasked([tool_call("t1", "Edit", "edit"), tool_update("t1", raw)]);
    editor.wait_screen("than once");
    assert_eq!(marks(&editor), 0);
}
