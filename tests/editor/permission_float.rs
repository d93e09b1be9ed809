//! The float of a permission request: what of it is in view on which screen, its keys, and that it takes nothing.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::chat::{self, enter_code, windows};
use crate::permissions::{
    ASK, asked, asking, enter_float, float, selected, shown, wait_float, wait_grace, wait_no_float, wait_readable,
};
use crate::support::scenario::{
    Scenario, Step, ask_permission, ask_permission_with, chunk, end_turn, gate, repeat, tool_call, tool_update,
};
use crate::support::{Editor, Setup};

fn option(id: &str, kind: &str) -> Json {
    json!({ "optionId": id, "kind": kind, "name": format!("Name of {id}") })
}

/// Asks about a command with these options.
fn about(command: &str, options: &[Json]) -> Step {
    let call = json!({ "toolCallId": "t1", "title": "Run it", "kind": "execute", "rawInput": { "command": command } });
    ask_permission_with(call, json!(options))
}

fn heredoc() -> String {
    let mut command = "cat <<EOF\n".to_owned();
    for line in 1..=1000 {
        writeln!(command, "text {line} of it").expect("a string takes it");
    }
    command + "EOF"
}

/// The usual four.
fn usual() -> Vec<Json> {
    ["allow_once", "allow_always", "reject_once", "reject_always"].map(|kind| option(kind, kind)).into()
}

/// Changes what the helper said of the open request before Lua shows it.
#[track_caller]
fn amend(editor: &Editor, code: &str) {
    let code = format!(
        "local permission = require('agentchat.permission')
        local list = vim.deepcopy((permission.open()))
        local request = list[1]
        {code}
        permission.set(list)"
    );
    editor.lua(&code, json!([]));
}

/// The bottom border of the float, as it is drawn.
#[track_caller]
fn border(editor: &Editor) -> String {
    let screen = editor.screen();
    screen.rows().into_iter().find(|row| row.contains('╰')).unwrap_or_default()
}

#[track_caller]
fn wait_border(editor: &Editor, wanted: &str) {
    editor.wait_until(&format!("{wanted:?} in the border"), |e| border(e).contains(wanted));
}

// -- what is in view

#[test]
fn a_heredoc_of_a_thousand_lines_scrolls_and_its_keys_stay_in_view() {
    for size in [(120, 40), (80, 24), (80, 12), (40, 10), (30, 8)] {
        let (agent, editor) = asked(&asking([about(&heredoc(), &usual())]), Setup::new().size(size.0, size.1));
        wait_readable(&editor, "execute: Run it");
        let screen = editor.screen();
        assert!(screen.contains("Run it") && screen.contains(":AgentChat allow"), "{size:?} {screen}");
        let window = wait_float(&editor);
        assert!(window.height + 2 <= u64::from(size.1) * 3 / 4, "{size:?}: not all of the screen: {screen}");
        enter_float(&editor);
        for (keys, seen) in [
            ("<C-d>", "text"),
            ("G", ""),
            ("gg", "Run it"),
            ("/text 500<CR>zt", "text 500"),
            ("/text 1000<CR>", "text 1000"),
        ] {
            editor.input(keys);
            editor.wait_screen(seen);
            for key in ["y ", "2 ", "n ", "4 "] {
                wait_border(&editor, key);
            }
        }
        wait_grace(&editor);
        editor.input("n");
        assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("reject_once"), "{size:?}");
    }
}

#[test]
fn options_stand_above_a_long_command_where_there_is_room() {
    let (_agent, editor) = asked(&asking([about(&heredoc(), &usual())]), Setup::new());
    for text in ["y 1 Name of allow_once", "2 Name of allow_always (twice)", "n 3 Name of", "$ text 1 of it"] {
        editor.wait_screen(text);
    }
}

#[test]
fn a_long_word_of_a_command_is_wrapped_and_not_cut() {
    let word = format!("begin{}end", "x".repeat(580));
    let (_agent, editor) = asked(&asking([about(&word, &usual())]), Setup::new());
    let screen = editor.wait_screen("Name of reject_always");
    assert!(screen.contains("begin") && screen.contains("xend"), "{screen}");
}

#[test]
fn the_float_is_laid_out_anew_when_the_screen_or_a_window_has_another_size() {
    let (agent, editor) =
        asked(&asking([about(&"word ".repeat(60), &usual())]), Setup::new().file("a.txt", "").arg("a.txt"));
    wait_readable(&editor, "Run it");
    let fits = |columns: u64, rows: u64| {
        editor.wait_until(&format!("a float within {columns}x{rows}"), |e| {
            let Some(window) = float(e) else { return false };
            // Its border is outside of it.
            window.row + window.height + 2 <= rows && window.column + window.width + 2 <= columns && window.width >= 10
        });
    };
    for (columns, rows) in [(60, 20), (30, 8), (200, 50), (120, 40)] {
        editor.request("nvim_ui_try_resize", &json!([columns, rows]));
        fits(columns, rows);
    }
    // The prompt grows, and what is typed stays in view.
    let before = wait_float(&editor).row;
    chat::enter(&editor, "agentchat_prompt");
    editor.input("ione<CR>two<CR>three<CR>four<CR>five<CR>six");
    editor.wait_until("the float above a grown prompt", |e| float(e).is_some_and(|window| window.row < before));
    editor.wait_screen("six");
    editor.input("<Esc>");
    editor.command("AgentChat close");
    editor.wait_until("the float in the corner", |e| {
        float(e).is_some_and(|window| window.row + window.height + 2 >= 38 && window.width > 60)
    });
    editor.command("set cmdheight=5 laststatus=0");
    fits(120, 40 - 5);
    assert!(agent.answers(ASK).is_empty());
}

#[test]
fn danger_is_named_and_not_only_coloured() {
    let (_agent, editor) = asked(&asking([about("rm -rf build", &usual())]), Setup::new());
    amend(&editor, "request.marks = { 'deletes files', 'runs as root' }");
    let screen = editor.wait_screen("⚠ deletes files, runs as root");
    assert_eq!(screen.groups_of("deletes files").map(|groups| groups.contains(&"DiagnosticError".into())), Some(true));
}

#[test]
fn the_size_of_a_change_is_told_and_its_preview_is_in_its_buffer() {
    let call = json!({ "toolCallId": "t1", "title": "Edit a.txt", "kind": "edit", "content": [
        { "type": "diff", "path": "$cwd/a.txt", "oldText": "two\n", "newText": "TWO\nmore\n" }] });
    let (agent, editor) = asked(
        &asking([ask_permission_with(call, json!(usual()))]),
        Setup::new().file("a.txt", "one\ntwo\nthree\n").arg("a.txt"),
    );
    editor.wait_screen("± a.txt  +2 −1");
    editor.wait_screen("proposed: +2 −1");
    wait_readable(&editor, "Edit a.txt");
    editor.command("AgentChat deny");
    agent.wait_answer(ASK, 1);
    editor.wait_until("no preview", |e| !e.screen().contains("proposed:"));
}

// -- how to answer

#[test]
fn the_border_says_how_to_answer_from_where_the_user_is() {
    let (_agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    wait_border(&editor, " :AgentChat allow · deny · permissions ");
    editor.input("i");
    wait_border(&editor, "<Esc> :AgentChat allow · deny");
    editor.input("<Esc>");
    wait_border(&editor, " :AgentChat allow · deny · permissions ");
    editor.command("terminal cat");
    editor.input("i");
    wait_border(&editor, "<C-\\><C-n> :AgentChat allow");
    editor.input("<C-\\><C-n>");
    editor.lua(
        "vim.keymap.set('n', '<Space>ay', '<Plug>(agentchat-allow)') vim.keymap.set('n', '<F4>', '<Plug>(agentchat-deny)')",
        json!([]),
    );
    editor.input("i<C-\\><C-n>");
    wait_border(&editor, " <Space>ay allow · <F4> deny");
    enter_float(&editor);
    wait_border(&editor, " y Allow · 2 Alway");
    editor.input("<C-w>p");
    wait_border(&editor, "<Space>ay allow");
}

#[test]
fn the_users_own_mapping_answers() {
    let init = "vim.keymap.set('n', '<Space>ay', '<Plug>(agentchat-allow)')";
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new().init(init));
    wait_readable(&editor, "Run it");
    enter_code(&editor);
    editor.input("<Space>ay");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
}

#[test]
fn a_mapping_answers_in_the_middle_of_a_word() {
    let init = "vim.keymap.set('i', '<M-y>', '<Plug>(agentchat-allow)')";
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new().init(init));
    wait_readable(&editor, "Run it");
    enter_code(&editor);
    editor.input("ibegin");
    wait_border(&editor, " <M-y> allow ");
    editor.input("<M-y>ning");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
    editor.wait_screen("beginning");
    assert_eq!(editor.screen().mode(), "insert");
}

#[test]
fn what_is_remembered_takes_two_presses_and_is_said_before() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    amend(&editor, "request.options[2].rule = 'allow execute `cargo test`'");
    editor.wait_screen("remembers: allow execute `cargo test`");
    enter_float(&editor);
    wait_grace(&editor);
    for keys in ["2<Esc>", "2", "4", "2", "<C-w>p"] {
        editor.input(keys);
    }
    editor.wait_until("the float left", |e| float(e).is_some_and(|window| !window.current));
    enter_float(&editor);
    wait_grace(&editor);
    editor.input("2");
    wait_border(&editor, "again or <CR> remembers: allow execute");
    assert!(agent.answers(ASK).is_empty(), "none of these was the second press in a row");
    editor.input("2");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_always"));
}

#[test]
fn twelve_options_have_keys_and_no_digit_waits_for_a_clock() {
    let options: Vec<Json> = (1..=12).map(|number| option(&format!("o{number}"), "foo")).collect();
    for (keys, answer) in
        [("12", "o12"), ("1<CR>", "o1"), ("10", "o10"), ("2", "o2"), ("19<Esc>11", "o11"), ("1<Esc>9", "o9")]
    {
        let (agent, editor) = asked(&asking([about("ls", &options)]), Setup::new());
        editor.wait_screen("12 Name of o12");
        editor.wait_screen("1<CR> Name of o1");
        enter_float(&editor);
        wait_grace(&editor);
        editor.input(keys);
        assert_eq!(agent.wait_answer(ASK, 1)["result"], selected(answer), "{keys}");
    }
}

#[test]
fn odd_options_have_keys_too() {
    let call = |id: &str| json!({ "toolCallId": id, "title": format!("Call {id}") });
    let scenario = Scenario::new().on_prompt([
        ask_permission_with(call("t1"), json!([option("aa", "allow_always"), option("ra", "reject_always")])),
        ask_permission_with(call("t2"), json!([option("foo", "foo"), option("bar", "foo_always")])),
        ask_permission_with(call("t3"), json!([option("only", "reject_once")])),
        ask_permission_with(call("t4"), json!([])).without_waiting(),
        gate("the turn does not end"),
    ]);
    let (agent, editor) = asked(&scenario, Setup::new());
    wait_readable(&editor, "Call t1");
    enter_float(&editor);
    wait_grace(&editor);
    editor.input("y");
    editor.wait_until("that allowing lasts", |e| e.messages().contains("no 'allow once'"));
    editor.input("n");
    wait_border(&editor, "again or <CR> remembers: deny this very call");
    assert!(agent.answers(ASK).is_empty());
    editor.input("n");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("ra"));

    wait_readable(&editor, "Call t2");
    enter_float(&editor);
    wait_grace(&editor);
    editor.input("2");
    wait_border(&editor, "again or <CR>");
    editor.input("1");
    assert_eq!(agent.wait_answer(ASK, 2)["result"], selected("foo"));

    wait_readable(&editor, "Call t3");
    enter_float(&editor);
    wait_grace(&editor);
    editor.input("n");
    assert_eq!(agent.wait_answer(ASK, 3)["result"], selected("only"));

    wait_readable(&editor, "Call t4");
    wait_border(&editor, ":AgentChat cancel");
    editor.input("1n<CR>");
    editor.command("AgentChat cancel");
    assert_eq!(agent.wait_answer(ASK, 4)["result"]["outcome"]["outcome"], json!("cancelled"));
    wait_no_float(&editor);
}

// -- stray keys

#[test]
fn a_key_that_follows_too_soon_into_the_float_answers_nothing() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    wait_readable(&editor, "Run it");
    editor.input(":AgentChat permissions<CR>y1n");
    editor.wait_until("the refusal", |e| e.messages().contains("you have just come here"));
    wait_grace(&editor);
    assert!(agent.answers(ASK).is_empty());
    editor.input("y");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
}

#[test]
fn inside_of_the_float_the_next_request_has_to_be_read_first() {
    let scenario =
        asking([ask_permission("t1", "First thing").without_waiting(), ask_permission("t2", "Second thing")]);
    let (agent, editor) = asked(&scenario, Setup::new());
    editor.wait_screen("(1 of 2)");
    wait_readable(&editor, "First thing");
    enter_float(&editor);
    wait_grace(&editor);
    editor.input("yy");
    agent.wait_answer(ASK, 1);
    wait_readable(&editor, "Second thing");
    assert_eq!(agent.answers(ASK).len(), 1);
    assert!(wait_float(&editor).current, "the user is still in it");
    editor.input("n");
    assert_eq!(agent.wait_answer(ASK, 2)["result"], selected("reject_once"));
    wait_no_float(&editor);
}

#[test]
fn no_key_leads_into_the_float() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    enter_code(&editor);
    editor.command("split");
    for keys in ["w", "W", "p", "t", "b", "j", "l", "<C-w>", "x", "r", "="] {
        editor.input(&format!("<C-w>{keys}"));
        assert!(!wait_float(&editor).current, "<C-w>{keys}");
    }
    let window = wait_float(&editor);
    editor.request("nvim_input_mouse", &json!(["left", "press", "", 0, window.row + 1, window.column + 3]));
    editor.request("nvim_input_mouse", &json!(["left", "release", "", 0, window.row + 1, window.column + 3]));
    editor.command("windo let g:visited = get(g:, 'visited', '') .. &filetype");
    assert!(!wait_float(&editor).current);
    let fixed = windows(&editor).iter().filter(|window| !window.floating).count();
    assert_eq!(fixed, 4);
    assert!(agent.answers(ASK).is_empty());
}

#[test]
fn the_float_keeps_its_buffer_and_stays_a_float() {
    let (agent, editor) =
        asked(&asking([ask_permission("t1", "Run it")]), Setup::new().file("a.txt", "mine\n").arg("a.txt"));
    enter_float(&editor);
    for keys in [":silent! edit a.txt<CR>", ":silent! bnext<CR>", "ix<Esc>", "dd", "p", "<C-w>H", "<C-w>x"] {
        editor.input(keys);
        editor.wait_until(&format!("a float after {keys}"), |e| float(e).is_some_and(|window| window.floating));
        assert!(shown(&editor).contains("Run it"), "{keys}");
    }
    assert!(agent.answers(ASK).is_empty());
    editor.command("AgentChat cancel");
    wait_no_float(&editor);
    assert_eq!(editor.lua("return vim.fn.bufexists('agentchat://permission')", json!([])), json!(1));
}

#[test]
fn while_a_command_is_typed_the_request_comes_into_view_and_is_not_answered_by_it() {
    let scenario = Scenario::new().on_prompt([
        ask_permission("t1", "First thing").without_waiting(),
        gate("second"),
        tool_call("t1", "First thing", "execute"),
        tool_update("t1", json!({ "status": "completed" })),
        ask_permission("t2", "Second thing"),
        chunk("went on"),
        end_turn(),
    ]);
    let (agent, editor) = asked(&scenario, Setup::new());
    wait_readable(&editor, "First thing");
    editor.input(":AgentChat allow");
    editor.wait_screen(":AgentChat allow");
    agent.open_gate("second");
    let screen = editor.wait_screen("Second thing");
    assert!(screen.contains(":AgentChat allow"), "{screen}");
    editor.input("<CR>");
    editor.wait_until("the refusal", |e| e.messages().contains("has just appeared"));
    assert_eq!(agent.answers(ASK).len(), 1, "only the call that ended");
    wait_readable(&editor, "Second thing");
    editor.input(":AgentChat allow<CR>");
    assert_eq!(agent.wait_answer(ASK, 2)["result"], selected("allow_once"));
}

#[test]
fn a_request_that_comes_while_text_is_locked_is_shown_and_only_then_answered() {
    let init = "
    vim.keymap.set('n', '<F5>', function() _G.locked = true vim.fn.getcharstr() _G.locked = false return '' end, { expr = true })
    ";
    let scenario = asking([gate("ask"), ask_permission("t1", "Run it")]);
    let (agent, editor) = chat::open(&scenario, Setup::new().init(init));
    editor.prompt("go");
    agent.wait_gate("ask");
    editor.input("<F5>");
    editor.wait_until("the lock", |e| e.lua("return _G.locked", json!([])) == json!(true));
    agent.open_gate("ask");
    editor.wait_until("the request", |e| e.status()["permissions"] == json!(1));
    assert!(float(&editor).is_none());
    editor.lua("pcall(vim.cmd, 'AgentChat allow')", json!([]));
    assert!(agent.answers(ASK).is_empty());
    editor.input("x");
    wait_readable(&editor, "Run it");
    editor.command("AgentChat allow");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
}

#[test]
fn a_session_file_neither_has_the_float_nor_loses_the_request() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new().file("a.txt", "").arg("a.txt"));
    enter_float(&editor);
    editor.command("mksession! Session.vim");
    let session = String::from_utf8(editor.file("Session.vim").expect("a session file")).expect("text");
    assert!(!session.contains("agentchat://permission"), "{session}");
    editor.input(":silent source Session.vim<CR>");
    editor.wait_until("the request put aside", |e| float(e).is_none() && e.status()["permissions"] == json!(1));
    editor.command("AgentChat permissions");
    wait_readable(&editor, "Run it");
    editor.command("AgentChat allow");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
}

#[test]
fn what_is_put_aside_stays_aside_while_others_are_asked_and_ends_with_a_cancel() {
    let scenario = Scenario::new().on_prompt([
        ask_permission("t1", "First thing").without_waiting(),
        ask_permission("t2", "Second thing").without_waiting(),
        gate("third"),
        ask_permission("t3", "Third thing"),
    ]);
    let (agent, editor) = asked(&scenario, Setup::new());
    editor.wait_screen("(1 of 2)");
    enter_float(&editor);
    editor.input("q");
    wait_no_float(&editor);
    editor.wait_until("the hint", |e| e.messages().contains("2 requests wait"));
    agent.open_gate("third");
    editor.wait_screen("(3 of 3)");
    wait_readable(&editor, "Third thing");
    editor.command("AgentChat deny");
    agent.wait_answer(ASK, 1);
    wait_no_float(&editor);
    editor.command("AgentChat allow");
    editor.wait_until("the hint", |e| e.messages().contains("shows the open ones"));
    editor.command("AgentChat permissions");
    wait_readable(&editor, "First thing");
    editor.command("AgentChat cancel");
    agent.wait_answer(ASK, 3);
    wait_no_float(&editor);
    assert!(agent.unanswered().is_empty() && agent.stray_answers().is_empty());
}

#[test]
fn a_flood_of_requests_is_a_queue_and_a_cancel_answers_all_of_them() {
    let scenario = Scenario::new().on_prompt([repeat(300, [ask_permission("t$i", "Thing $i").without_waiting()])]);
    let (agent, editor) = asked(&scenario, Setup::new());
    editor.wait_screen("(1 of 300)");
    assert_eq!(editor.status()["permissions"], json!(300));
    editor.command("AgentChat cancel");
    agent.wait_answer(ASK, 300);
    wait_no_float(&editor);
    assert!(agent.unanswered().is_empty() && agent.stray_answers().is_empty());
}
