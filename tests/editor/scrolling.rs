//! Who follows the end of a transcript, and who stays where they are.

use serde_json::{Value as Json, json};

use crate::support::scenario::{Scenario, Step, chunk, end_turn, gate, repeat, tool_call, tool_update};
use crate::support::{Editor, ScriptedAgent, Setup};

const TRANSCRIPT_WINDOW: &str = r#"
    local win = vim.fn.bufwinid(require("agentchat.chats").current().transcript)
"#;

fn start(steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.prompt("go");
    (editor, agent)
}

/// Runs Lua code in which `win` is the transcript's window.
fn in_window(editor: &Editor, code: &str) -> Json {
    editor.lua(&format!("{TRANSCRIPT_WINDOW}{code}"), json!([]))
}

fn view(editor: &Editor) -> Json {
    in_window(editor, "return vim.api.nvim_win_call(win, vim.fn.winsaveview)")
}

/// Whether the last character of the text is in the window.
fn shows_end(editor: &Editor) -> bool {
    let code = r"
        local last = vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(win))
        local length = #vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), last - 1, last, true)[1]
        return vim.fn.screenpos(win, last, math.max(length, 1)).row > 0
    ";
    in_window(editor, code) == json!(true)
}

/// Goes to the transcript's window.
fn enter(editor: &Editor) {
    in_window(editor, "vim.api.nvim_set_current_win(win)");
}

/// Lines, then more lines on demand.
fn in_three_parts(lines: u32) -> Vec<Step> {
    let part = |name: &str| repeat(lines, [chunk(&format!("{name} $i\n"))]);
    vec![part("first"), gate("second"), part("second"), gate("third"), part("third"), end_turn()]
}

#[test]
fn the_end_is_followed_and_one_key_ends_that() {
    let (editor, agent) = start(in_three_parts(200));
    enter(&editor);
    editor.wait_until("the end is in view", |e| e.transcript_has("first 199") && shows_end(e));
    editor.input("k");
    let before = view(&editor);
    agent.open_gate("second");
    editor.wait_transcript("second 199");
    editor.screen();
    assert_eq!(view(&editor), before, "the cursor was moved away from the last line");
    editor.input("G");
    editor.wait_until("the end is in view again", shows_end);
    agent.open_gate("third");
    editor.wait_until("it is followed", |e| e.transcript_has("third 199") && shows_end(e));
}

#[test]
fn a_cursor_set_from_elsewhere_stays_and_so_does_one_that_was_left_behind() {
    let (editor, agent) = start(in_three_parts(2_000));
    editor.wait_until("the end is in view", |e| e.transcript_has("first 1999") && shows_end(e));
    in_window(&editor, "vim.api.nvim_win_set_cursor(win, { 10, 0 })");
    editor.screen();
    let before = view(&editor);
    assert_eq!(before["lnum"], json!(10));
    agent.open_gate("second");
    editor.wait_transcript("second 1999");
    assert_eq!(view(&editor), before);
    enter(&editor);
    editor.input("20G<C-w>p");
    let before = view(&editor);
    agent.open_gate("third");
    editor.wait_transcript("third 1999");
    assert_eq!(view(&editor), before);
}

#[test]
fn scrolling_back_stays_and_scrolling_to_the_end_follows() {
    for wheel_from_elsewhere in [false, true] {
        let (editor, agent) = start(in_three_parts(200));
        editor.wait_until("the end is in view", |e| e.transcript_has("first 199") && shows_end(e));
        let place = in_window(&editor, "local at = vim.api.nvim_win_get_position(win) return { at[1] + 3, at[2] + 3 }");
        let wheel = |direction: &str| {
            let arguments = json!(["wheel", direction, "", 0, place[0], place[1]]);
            editor.request("nvim_input_mouse", &arguments);
        };
        if !wheel_from_elsewhere {
            enter(&editor);
        }
        wheel("up");
        editor.wait_until("it scrolled", |e| !shows_end(e));
        let before = view(&editor)["topline"].clone();
        agent.open_gate("second");
        editor.wait_transcript("second 199");
        editor.screen();
        assert_eq!(view(&editor)["topline"], before);
        editor.wait_until("scrolled to the end", |e| {
            wheel("down");
            shows_end(e)
        });
        agent.open_gate("third");
        editor.wait_until("it is followed", |e| e.transcript_has("third 199") && shows_end(e));
    }
}

#[test]
fn the_end_of_a_long_last_line_is_what_is_followed() {
    let words = || repeat(2_000, [chunk("words $i ")]);
    let (editor, agent) = start([chunk("a\nb\n"), words(), gate("more"), words(), gate("rest"), words(), end_turn()]);
    editor.wait_until("the end is in view", |e| e.transcript_has("words 1999") && shows_end(e));
    enter(&editor);
    // Within the line: the cursor stays in the last line, but its end is out of view.
    editor.input("<C-y><C-y><C-y>");
    editor.wait_until("it scrolled", |e| !shows_end(e));
    let before = view(&editor);
    agent.open_gate("more");
    editor
        .wait_until("more came", |e| e.transcript().last().is_some_and(|line| line.matches("words 1999").count() == 2));
    editor.screen();
    let after = view(&editor);
    assert_eq!((&after["topline"], &after["skipcol"]), (&before["topline"], &before["skipcol"]));
    editor.input("G$");
    editor.wait_until("the end is in view", shows_end);
    agent.open_gate("rest");
    editor.wait_until("followed", |e| {
        e.transcript().last().is_some_and(|line| line.matches("words 1999").count() == 3) && shows_end(e)
    });
}

/// Notes every topline of the transcript's window that is drawn.
const NOTE_TOPLINES: &str = r#"
    _G.toplines = {}
    vim.api.nvim_set_decoration_provider(vim.api.nvim_create_namespace("test"), {
      on_win = function(_, drawn, _, top)
        if drawn == win then _G.toplines[#_G.toplines + 1] = top end
      end,
    })
"#;

#[test]
fn the_view_never_goes_back_by_itself() {
    let output = |lines: usize| {
        let text = "some line of output that is long enough to be wrapped at least once\n".repeat(lines);
        tool_update("t", json!({ "content": [{ "type": "content", "content": { "type": "text", "text": text } }] }))
    };
    let mut steps = vec![repeat(100, [chunk("line $i\n")]), tool_call("t", "Build", "execute"), gate("go")];
    for lines in 1..40 {
        // The card grows above the text that comes.
        steps.extend([output(lines), chunk(&format!("text {lines}\n"))]);
    }
    steps.push(end_turn());
    let (editor, agent) = start(steps);
    editor.wait_transcript("Build");
    in_window(&editor, NOTE_TOPLINES);
    agent.open_gate("go");
    editor.wait_until("the end", |e| e.transcript_has("text 39") && e.events("AgentChatTurnEnd").len() == 1);
    editor.screen();
    let drawn = editor.lua("return _G.toplines", json!([]));
    let toplines: Vec<u64> = drawn.as_array().into_iter().flatten().filter_map(Json::as_u64).collect();
    assert!(toplines.len() > 1 && toplines.is_sorted(), "{toplines:?}");
    assert!(shows_end(&editor));
}

#[test]
fn hidden_and_shown_again_the_view_is_the_same() {
    let (editor, agent) = start(in_three_parts(300));
    editor.wait_transcript("first 299");
    in_window(&editor, "vim.api.nvim_win_set_cursor(win, { 100, 2 })");
    editor.screen();
    let before = view(&editor);
    editor.command("AgentChat close");
    agent.open_gate("second");
    editor.wait_transcript("second 299");
    editor.command("AgentChat open");
    editor.screen();
    assert_eq!(view(&editor)["topline"], before["topline"]);
    assert_eq!(view(&editor)["lnum"], before["lnum"]);
}
