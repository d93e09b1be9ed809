//! Following the agent: which window jumps, what of the user's stays as it is, and whose hands win.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::changes::write_unloaded;
use crate::support::scenario::{Scenario, Step, delay, end_turn, gate, repeat, tool_call, tool_update, write_file};
use crate::support::{Editor, ScriptedAgent, Setup};

/// Lines of a file that say what they are.
pub(crate) fn lines(name: &str, count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, i| {
        writeln!(text, "{name} {i}").expect("a string takes it");
        text
    })
}

/// A call that names a place.
pub(crate) fn at(id: &str, file: &str, line: impl Into<Json>) -> Step {
    let line = line.into();
    tool_update(
        id,
        json!({ "kind": "read", "title": format!("Read {file}"), "locations": [{ "path": format!("$cwd/{file}"), "line": line }] }),
    )
}

fn setup(agent: &ScriptedAgent) -> Setup {
    Setup::new()
        .agent("scripted", agent)
        .file("mine.txt", lines("mine", 200))
        .file("a.txt", lines("a", 300))
        .file("b.txt", lines("b", 300))
        .arg("mine.txt")
}

/// The user is in the prompt, beside a window with `mine.txt`; the agent waits at the gate `go`.
pub(crate) fn beside(steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    beside_with(|setup| setup, steps)
}

fn beside_with(more: impl FnOnce(Setup) -> Setup, steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    let steps = [gate("go")].into_iter().chain(steps).chain([gate("end"), end_turn()]);
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(more(setup(&agent)));
    editor.lua("_G.code = vim.api.nvim_get_current_win()", json!([]));
    editor.command("AgentChat open");
    editor.command("AgentChat follow on");
    editor.prompt("go");
    editor.wait_state("running");
    (editor, agent)
}

/// What the code window shows: the file's name, the cursor's line, the window's first line.
pub(crate) fn shown(editor: &Editor) -> (String, u64, u64) {
    shown_in(editor, "_G.code")
}

fn shown_in(editor: &Editor, window: &str) -> (String, u64, u64) {
    let code = format!(
        "local win = {window}
        local buf = vim.api.nvim_win_get_buf(win)
        return {{ vim.fs.basename(vim.api.nvim_buf_get_name(buf)), vim.api.nvim_win_get_cursor(win)[1], vim.fn.line('w0', win) }}"
    );
    let answer = editor.lua(&code, json!([]));
    let number = |at: usize| answer[at].as_u64().unwrap_or(0);
    (answer[0].as_str().unwrap_or_default().to_owned(), number(1), number(2))
}

#[track_caller]
fn wait_shown(editor: &Editor, file: &str, line: u64) {
    editor.wait_until(&format!("{file}:{line} is shown"), |e| {
        let (name, at, _) = shown(e);
        name == file && at == line
    });
}

pub(crate) fn follow_state(editor: &Editor) -> String {
    editor.status()["follow"].as_str().unwrap_or_default().to_owned()
}

/// All of the user's that a jump might move.
fn everything_else(editor: &Editor) -> Json {
    editor.lua(
        r#"
        local win = vim.api.nvim_get_current_win()
        local windows = {}
        for _, each in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
          local size = { vim.api.nvim_win_get_width(each), vim.api.nvim_win_get_height(each) }
          local view = vim.bo[vim.api.nvim_win_get_buf(each)].filetype == "agentchat_prompt" and vim.api.nvim_win_call(each, vim.fn.winsaveview) or nil
          windows[#windows + 1] = { each, size, view and view.topline, view and view.lnum }
        end
        local jumps = vim.fn.getjumplist(_G.code)
        return {
          win, vim.api.nvim_get_mode().mode, windows, vim.fn.getreg('"'), vim.fn.getreg("/"), vim.v.hlsearch,
          #jumps[1], jumps[2],
          vim.api.nvim_win_call(_G.code, function() return vim.fn.bufname('#') end), vim.fn.bufname('#'),
          vim.o.hidden, vim.o.eventignore, vim.o.shortmess, vim.o.splitkeep,
        }
        "#,
        json!([]),
    )
}

// -- jumps

#[test]
fn ten_places_while_the_user_types_change_nothing_but_one_window() {
    let places = (1..=10).flat_map(|i| {
        let file = if i % 2 == 0 { "a.txt" } else { "b.txt" };
        [at("t", file, i * 20), delay(Duration::from_millis(30))]
    });
    let (editor, agent) = beside(places);
    editor.input("ihalf a sen");
    editor.wait_screen("half a sen");
    let before = everything_else(&editor);
    assert_eq!(before[1], json!("i"));
    agent.open_gate("go");
    wait_shown(&editor, "a.txt", 200);
    assert_eq!(everything_else(&editor), before);
    editor.input("tence");
    editor.wait_screen("half a sentence");
    let (_, line, top) = shown(&editor);
    assert!((10..30).contains(&(line - top)), "in the middle: {line} in a window from {top}");
    assert_eq!(follow_state(&editor), "on");
    let events = editor.events("AgentChatFollow");
    let last = events.last().expect("an event for each jump");
    assert_eq!(last["line"], json!(200), "{last}");
    assert!(last["path"].as_str().is_some_and(|path| path.ends_with("/a.txt")), "{last}");
}

#[test]
fn when_it_ends_the_window_shows_what_it_showed_where_it_was() {
    let (editor, agent) = beside([at("t", "a.txt", 250), gate("b"), at("t", "b.txt", 100)]);
    editor.lua(
        r#"
        vim.api.nvim_win_call(_G.code, function()
          vim.cmd("set foldmethod=manual | 150,155fold | normal! 120Gzt")
          vim.fn.setline(1, "changed")
          vim.o.hidden = false
        end)
        "#,
        json!([]),
    );
    let view = |e: &Editor| {
        e.lua("return vim.api.nvim_win_call(_G.code, function() local v = vim.fn.winsaveview() return { v, vim.fn.foldclosed(152), vim.bo.modified, vim.fn.getline(1), vim.wo.statusline, vim.fn.bufname('#') } end)", json!([]))
    };
    let before = view(&editor);
    agent.open_gate("go");
    wait_shown(&editor, "a.txt", 250);
    agent.open_gate("b");
    wait_shown(&editor, "b.txt", 100);
    assert!(editor.screen().contains("following scripted"), "the window says what it is: {}", editor.screen());
    let listed =
        "return vim.tbl_map(function(b) return vim.fs.basename(b.name) end, vim.fn.getbufinfo({ buflisted = 1 }))";
    assert_eq!(editor.lua(listed, json!([])), json!(["mine.txt"]));
    editor.command("AgentChat follow off");
    wait_shown(&editor, "mine.txt", 120);
    assert_eq!(view(&editor), before);
    let loaded =
        "return vim.tbl_map(function(b) return vim.fs.basename(b.name) end, vim.fn.getbufinfo({ bufloaded = 1 }))";
    let loaded = editor.lua(loaded, json!([])).to_string();
    assert!(!loaded.contains("a.txt") && !loaded.contains("b.txt"), "dropped: {loaded}");
    assert_eq!(editor.lua("return vim.w[_G.code].agentchat_follow", json!([])), Json::Null);
    assert!(!editor.screen().contains("following scripted"), "{}", editor.screen());
    assert_eq!(follow_state(&editor), "off");
}

#[test]
fn lines_are_clamped_and_what_is_no_text_is_not_shown() {
    let odd = |id: &str, path: &str| tool_update(id, json!({ "locations": [{ "path": path, "line": 3 }] }));
    let (editor, agent) = beside_with(
        |setup| {
            setup
                .file("sub/x.txt", lines("x", 9))
                .file("binary", b"\x7fELF\0\0\0")
                .file("huge.txt", lines("huge", 4_000_000))
        },
        [
            at("t1", "a.txt", 0),
            gate("1"),
            at("t2", "a.txt", 1_000_000),
            gate("2"),
            at("t3", "b.txt", Json::Null),
            gate("3"),
            odd("t4", "sub/x.txt"),
            gate("4"),
            odd("t5", "$cwd/sub"),
            odd("t6", "$cwd/binary"),
            odd("t7", "$cwd/none.txt"),
            odd("t8", "/dev/zero"),
            odd("t9", ""),
            at("t10", "a.txt", 300),
            gate("5"),
            at("t11", "huge.txt", 3_999_999),
        ],
    );
    agent.open_gate("go");
    wait_shown(&editor, "a.txt", 1);
    agent.open_gate("1");
    wait_shown(&editor, "a.txt", 300);
    agent.open_gate("2");
    wait_shown(&editor, "b.txt", 1);
    agent.open_gate("3");
    wait_shown(&editor, "x.txt", 3);
    agent.open_gate("4");
    wait_shown(&editor, "a.txt", 300);
    let before = editor.messages();
    agent.open_gate("5");
    wait_shown(&editor, "huge.txt", 3_999_999);
    let heavy = "local b = vim.api.nvim_win_get_buf(_G.code) return { vim.bo[b].syntax, vim.bo[b].filetype, vim.bo[b].swapfile }";
    assert_eq!(editor.lua(heavy, json!([])), json!(["", "", false]));
    assert_eq!(editor.messages(), before, "nothing to say");
}

#[test]
fn without_locations_the_diff_or_the_arguments_say_where() {
    let old_new =
        json!([{ "type": "diff", "path": "$cwd/a.txt", "oldText": "a 149\na 150\n", "newText": "a 149\nA 150\n" }]);
    let (editor, agent) = beside([
        tool_update("t1", json!({ "kind": "edit", "content": old_new })),
        gate("1"),
        tool_update("t2", json!({ "kind": "read", "rawInput": { "file_path": "$cwd/b.txt", "offset": 77 } })),
        gate("2"),
        tool_update(
            "t3",
            json!({ "kind": "edit", "rawInput": { "filePath": "$cwd/b.txt", "oldString": "b 210\n", "newString": "B\n" } }),
        ),
        gate("3"),
        tool_update("t4", json!({ "kind": "edit", "locations": [{ "path": "$cwd/a.txt" }], "content": old_new })),
    ]);
    agent.open_gate("go");
    wait_shown(&editor, "a.txt", 150);
    agent.open_gate("1");
    wait_shown(&editor, "b.txt", 77);
    agent.open_gate("2");
    wait_shown(&editor, "b.txt", 210);
    agent.open_gate("3");
    wait_shown(&editor, "a.txt", 150);
}

#[test]
fn a_file_that_is_not_there_yet_is_shown_once_it_is() {
    let (editor, agent) = beside([at("t1", "new.txt", 2), gate("write"), write_file("new.txt", "one\ntwo\nthree\n")]);
    agent.open_gate("go");
    editor.wait_transcript("Read new.txt");
    assert_eq!(shown(&editor).0, "mine.txt");
    agent.open_gate("write");
    wait_shown(&editor, "new.txt", 2);
}

#[test]
fn pending_changes_are_seen_in_the_window_that_follows_and_outlive_it() {
    let old = lines("a", 300);
    let new = old.replace("a 150\n", "A 150!\n");
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let (editor, agent) = beside([at("t", "a.txt", 150)]);
    write_unloaded(&editor, "a.txt", &old, &new, json!({ "chat": 1 }));
    let changes = |e: &Editor| e.status()["changes"].as_u64();
    agent.open_gate("go");
    wait_shown(&editor, "a.txt", 150);
    editor.wait_until("the change is drawn", |e| {
        let screen = e.screen();
        screen.find("A 150!").is_some() && screen.find("a 150").is_some()
    });
    editor.wait_until("it is pending", |e| changes(e) == Some(1));
    editor.command("AgentChat follow off");
    wait_shown(&editor, "mine.txt", 1);
    assert_eq!(changes(&editor), Some(1));
    editor.lua("vim.api.nvim_set_current_win(_G.code)", json!([]));
    editor.command("AgentChat next");
    wait_shown(&editor, "a.txt", 150);
    editor.command("AgentChat reject");
    editor.wait_until("it is as it was", |e| e.file("a.txt") == Some(lines("a", 300).into_bytes()));
}

/// What the user is in the middle of, and what has come of it in the end.
const BUSY: [(&str, &str, &str); 6] = [
    ("visual", "Vjj", "d"),
    ("operator", "2d", "d"),
    ("substitute", ":%s/mine/MINE/g", "<CR>"),
    ("insert after a count", "3ix", "y<Esc>"),
    ("macro", "qaA!<Esc>", "jA?<Esc>q"),
    ("search", "/mine 5", "0<CR>x"),
];

#[test]
fn whatever_the_user_is_in_the_middle_of_goes_on_as_if_nothing_had_happened() {
    let outcome = |e: &Editor| {
        e.input("<Esc>");
        e.lua(
            "return { vim.api.nvim_buf_get_lines(0, 0, -1, true), vim.api.nvim_win_get_cursor(0), vim.fn.getreg('a'), vim.fn.getreg('/'), vim.fn.getreg('\"') }",
            json!([]),
        )
    };
    for (name, begin, finish) in BUSY {
        let plain = Editor::start(Setup::new().file("mine.txt", lines("mine", 200)).arg("mine.txt"));
        plain.input(begin);
        plain.input(finish);
        let expected = outcome(&plain);
        let places = (1..=8).flat_map(|i| [at("t", "a.txt", i * 20), delay(Duration::from_millis(100))]);
        let (editor, agent) = beside(places);
        editor.lua("vim.api.nvim_set_current_win(_G.code) vim.cmd('belowright split')", json!([]));
        editor.input(begin);
        agent.open_gate("go");
        // In operator-pending mode Neovim answers, but the helper's frames come all the same.
        if begin.starts_with([':', '/']) {
            editor.wait_transcript("a.txt:160");
            assert_eq!(shown(&editor).0, "mine.txt", "{name}: no jump under a command line");
        } else {
            wait_shown(&editor, "a.txt", 160);
        }
        editor.input(finish);
        assert_eq!(outcome(&editor), expected, "{name}");
        wait_shown(&editor, "a.txt", 160);
    }
}

#[test]
fn from_a_terminal_and_the_command_line_window_nothing_is_taken() {
    let (editor, agent) = beside([at("t", "a.txt", 20), gate("2"), at("u", "b.txt", 40)]);
    editor.lua("vim.api.nvim_set_current_win(_G.code) vim.cmd('belowright split | terminal cat')", json!([]));
    editor.input("i");
    editor.wait_until("terminal mode", |e| e.lua("return vim.api.nvim_get_mode().mode", json!([])) == json!("t"));
    agent.open_gate("go");
    wait_shown(&editor, "a.txt", 20);
    editor.input("typed<CR>");
    editor.wait_screen("typed");
    assert_eq!(editor.lua("return vim.api.nvim_get_mode().mode", json!([])), json!("t"));
    editor.input("<C-\\><C-n>q:");
    editor.wait_until("the command-line window", |e| e.lua("return vim.fn.getcmdwintype()", json!([])) == json!(":"));
    agent.open_gate("2");
    editor.wait_transcript("Read b.txt");
    assert_eq!(shown(&editor).0, "a.txt");
    editor.command("quit");
    wait_shown(&editor, "b.txt", 40);
}

#[test]
fn of_a_burst_only_what_is_shown_is_loaded() {
    let many = |setup: Setup| (0..1000).fold(setup, |setup, i| setup.file(&format!("many/{i}.txt"), "one\ntwo\n"));
    let (editor, agent) = beside_with(
        many,
        [repeat(1000, [tool_update("t$i", json!({ "locations": [{ "path": "$cwd/many/$i.txt", "line": 2 }] }))])],
    );
    editor.lua(
        r#"
        _G.loaded = {}
        local bufload = vim.fn.bufload
        vim.api.nvim_create_autocmd("User", { pattern = "AgentChatFollow", callback = function(event)
          if event.data.path then _G.loaded[#_G.loaded + 1] = event.data.path end
        end })
        "#,
        json!([]),
    );
    agent.open_gate("go");
    wait_shown(&editor, "999.txt", 2);
    let jumps = editor.lua("return #_G.loaded", json!([])).as_u64().unwrap_or(99);
    assert!(jumps <= 12, "{jumps} jumps");
    let known = editor.lua(
        "return #vim.tbl_filter(function(b) return vim.api.nvim_buf_get_name(b):find('/many/') ~= nil end, vim.api.nvim_list_bufs())",
        json!([]),
    );
    assert!(known.as_u64().is_some_and(|known| known <= jumps), "{known} buffers, {jumps} jumps");
}

// -- windows

#[test]
fn the_marked_window_is_taken_and_special_ones_never_are() {
    let (editor, agent) = beside([at("t", "a.txt", 50), gate("2"), at("u", "b.txt", 60)]);
    editor.lua(
        r#"
        vim.api.nvim_set_current_win(_G.code)
        vim.cmd("split") _G.marked = vim.api.nvim_get_current_win() vim.w.agentchat_follow = 1
        vim.cmd("split") vim.wo.winfixbuf = true _G.fixed = vim.api.nvim_get_current_win()
        vim.cmd("split") vim.wo.previewwindow = true
        vim.api.nvim_set_current_win(_G.code)
        "#,
        json!([]),
    );
    agent.open_gate("go");
    editor.wait_until("the marked window jumps", |e| shown_in(e, "_G.marked").1 == 50);
    assert_eq!(shown_in(&editor, "_G.code").0, "mine.txt");
    editor.command("AgentChat follow off");
    assert_eq!(shown_in(&editor, "_G.marked").0, "mine.txt");
    assert_eq!(editor.lua("return vim.w[_G.marked].agentchat_follow", json!([])), json!(1));
    editor.lua("vim.api.nvim_win_close(_G.marked, true)", json!([]));
    editor.command("AgentChat follow on");
    agent.open_gate("2");
    editor.wait_transcript("Read b.txt");
    editor.wait_until("the user is told", |e| e.messages().contains("leave this window"));
    for window in ["_G.code", "_G.fixed"] {
        assert_eq!(shown_in(&editor, window).0, "mine.txt", "{window}");
    }
}

#[test]
fn the_current_window_is_never_changed_and_jumps_when_it_is_left() {
    let (editor, agent) = beside([at("t", "a.txt", 50)]);
    editor.lua("vim.api.nvim_set_current_win(_G.code)", json!([]));
    agent.open_gate("go");
    editor.wait_until("the user is told", |e| e.messages().contains("scripted is in a.txt:50"));
    editor.input("itext<Esc>");
    editor.wait_screen("textmine 1");
    editor.input("<C-w>p");
    wait_shown(&editor, "a.txt", 50);
    editor.command("AgentChat follow off");
    assert_eq!(shown(&editor).0, "mine.txt");
    assert!(editor.screen().contains("textmine 1"), "{}", editor.screen());
}

#[test]
fn a_split_is_made_only_where_there_is_room_and_goes_when_it_is_over() {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt([at("t", "a.txt", 50), gate("end"), end_turn()]));
    let editor = Editor::start(setup(&agent).size(280, 50));
    editor.lua("_G.code = vim.api.nvim_get_current_win()", json!([]));
    editor.command("AgentChat open");
    editor.lua("vim.api.nvim_set_current_win(_G.code)", json!([]));
    let sizes = "return vim.tbl_map(function(w) return { vim.api.nvim_win_get_width(w), vim.api.nvim_win_get_height(w) } end, vim.api.nvim_tabpage_list_wins(0))";
    let before = editor.lua(sizes, json!([]));
    editor.command("AgentChat follow");
    editor.prompt("go");
    editor.wait_until("a window for it", |e| e.lua("return #vim.api.nvim_tabpage_list_wins(0)", json!([])) == json!(4));
    editor.wait_screen("a 50");
    let during = editor.lua(sizes, json!([]));
    let widths: Vec<u64> = during.as_array().into_iter().flatten().filter_map(|size| size[0].as_u64()).collect();
    assert!(widths[0] >= 80 && widths[1] >= 80, "{during}");
    assert_eq!(during.as_array().map(|all| &all[2..]), before.as_array().map(|all| &all[1..]), "the chat is as it was");
    assert_eq!(editor.lua("return vim.api.nvim_get_current_win() == _G.code", json!([])), json!(true));
    editor.command("AgentChat follow off");
    assert_eq!(editor.lua(sizes, json!([])), before);
}

#[test]
fn with_only_the_chat_open_a_window_is_split_off() {
    let (editor, agent) = beside([at("t", "a.txt", 50)]);
    editor.lua("vim.api.nvim_win_close(_G.code, true)", json!([]));
    agent.open_gate("go");
    editor.wait_screen("a 50");
    assert_eq!(editor.lua("return vim.bo.filetype", json!([])), json!("agentchat_prompt"));
    editor.command("AgentChat follow off");
    assert_eq!(editor.lua("return #vim.api.nvim_tabpage_list_wins(0)", json!([])), json!(2));
}

// -- the user's hands

/// Something that the user does.
type Act = fn(&Editor);

#[test]
fn entering_scrolling_and_closing_the_window_pause_it() {
    let hands: [(&str, Act); 4] = [
        ("enter", |e| e.input("<C-w>h")),
        ("wheel", |e| {
            e.request("nvim_input_mouse", &json!(["wheel", "down", "", 0, 5, 5]));
        }),
        ("keys", |e| {
            e.command("nnoremap <F5> <Cmd>call win_execute(luaeval('_G.code'), 'normal! 3\u{5}')<CR>");
            e.input("<F5>");
        }),
        ("close", |e| {
            e.lua("vim.api.nvim_win_close(_G.code, true)", json!([]));
        }),
    ];
    for (name, act) in hands {
        let (editor, agent) = beside([at("t", "a.txt", 50), gate("2"), at("u", "b.txt", 60)]);
        editor.input("<Esc>");
        agent.open_gate("go");
        wait_shown(&editor, "a.txt", 50);
        // Longer than Neovim takes to draw the jump.
        let drawn = std::time::Instant::now();
        editor.wait_until("the jump is drawn", |_| drawn.elapsed() > Duration::from_millis(200));
        act(&editor);
        editor.wait_until(&format!("{name} pauses"), |e| follow_state(e) == "paused");
        assert!(editor.messages().contains(":AgentChat follow resumes"), "{name}: {}", editor.messages());
        if name == "close" {
            continue;
        }
        agent.open_gate("2");
        editor.wait_transcript("Read b.txt");
        assert_eq!(shown(&editor).0, "a.txt", "{name}");
        editor.lua("vim.cmd('wincmd b')", json!([]));
        editor.command("AgentChat follow");
        wait_shown(&editor, "b.txt", 60);
        editor.command("AgentChat follow off");
        wait_shown(&editor, "mine.txt", 1);
    }
}

#[test]
fn resizes_and_what_plugins_do_are_not_the_user() {
    let (editor, agent) = beside([at("t", "a.txt", 50), gate("2"), at("u", "b.txt", 60)]);
    agent.open_gate("go");
    wait_shown(&editor, "a.txt", 50);
    let drawn = std::time::Instant::now();
    editor.wait_until("the jump is drawn", |_| drawn.elapsed() > Duration::from_millis(400));
    editor.lua(
        r#"
        local now = vim.api.nvim_get_current_win()
        vim.api.nvim_set_current_win(_G.code) vim.api.nvim_set_current_win(now)
        vim.api.nvim_win_call(_G.code, function() vim.cmd("normal! 5\5") end)
        vim.cmd("botright new")
        local new = vim.api.nvim_get_current_win()
        vim.api.nvim_set_current_win(now)
        vim.api.nvim_win_close(new, true)
        "#,
        json!([]),
    );
    editor.request("nvim_ui_try_resize", &json!([100, 30]));
    editor.screen();
    agent.open_gate("2");
    wait_shown(&editor, "b.txt", 60);
    assert_eq!(follow_state(&editor), "on");
}

#[test]
fn what_the_user_enters_becomes_a_buffer_like_any_other_and_stays() {
    let (editor, agent) = beside_with(
        |setup| setup.file("code.lua", "local one = 1\n"),
        [at("t", "code.lua", 1), gate("2"), at("u", "b.txt", 60)],
    );
    editor.command("autocmd FileType lua let g:saw_filetype = 1");
    editor.command("autocmd BufEnter,BufReadPost * startinsert");
    editor.input("<Esc>");
    agent.open_gate("go");
    wait_shown(&editor, "code.lua", 1);
    assert_eq!(
        editor.lua("return { vim.g.saw_filetype or 0, vim.api.nvim_get_mode().mode }", json!([])),
        json!([0, "n"])
    );
    editor.command("autocmd! BufEnter,BufReadPost *");
    editor.input("<C-w>h");
    editor.wait_until("its file type", |e| e.lua("return vim.bo.filetype", json!([])) == json!("lua"));
    editor.input("otwo<Esc>");
    editor.command("AgentChat follow off");
    agent.open_gate("2");
    editor.wait_transcript("Read b.txt");
    assert_eq!(shown(&editor).0, "code.lua", "the current window is the user's");
    assert_eq!(
        editor.lua("return { vim.bo.buflisted, vim.bo.modified, vim.fn.getline(2) }", json!([])),
        json!([true, true, "two"])
    );
}

#[test]
fn a_swap_file_asks_nothing() {
    let (editor, agent) = beside([at("t", "a.txt", 50)]);
    // Another Neovim has the file open.
    editor.lua(
        r#"
        local other = vim.fn.jobstart({ vim.v.progpath, "--headless", "--embed", "-u", "NONE", "--cmd", "set swapfile updatecount=1" }, { rpc = true })
        vim.rpcrequest(other, "nvim_command", "set swapfile | edit a.txt | call setline(1, 'theirs') | preserve")
        vim.o.hidden = false
        "#,
        json!([]),
    );
    agent.open_gate("go");
    wait_shown(&editor, "a.txt", 50);
    assert!(!editor.is_blocked());
    assert!(!editor.messages().contains("ATTENTION"), "{}", editor.messages());
}

#[test]
fn the_next_prompt_resumes_only_if_that_is_configured() {
    for resumes in [false, true] {
        let (editor, agent) =
            beside_with(|setup| setup.config("follow", json!({ "resume_on_prompt": resumes })), [at("t", "a.txt", 50)]);
        agent.open_gate("go");
        wait_shown(&editor, "a.txt", 50);
        editor.input("<Esc><C-w>h");
        editor.wait_until("paused", |e| follow_state(e) == "paused");
        editor.input("<C-w>l");
        agent.open_gate("end");
        editor.wait_state("idle");
        editor.prompt("again");
        editor.wait_until("the next turn", |e| e.events("AgentChatTurnStart").len() == 2);
        assert_eq!(follow_state(&editor), if resumes { "on" } else { "paused" });
    }
}

// -- where the agent is

#[test]
fn the_agent_is_shown_where_it_is_without_moving_text_until_the_turn_ends() {
    let (editor, agent) = beside([at("t", "mine.txt", 3)]);
    editor.command("AgentChat follow off");
    editor.lua("vim.wo[_G.code].number = true", json!([]));
    let text_column = |e: &Editor| e.screen().find("mine 3").map(|(_, column)| column);
    editor.wait_until("the numbers", |e| text_column(e) == Some(4));
    let before = text_column(&editor);
    agent.open_gate("go");
    editor.wait_screen("mine 3 ◂ scripted");
    assert_eq!(text_column(&editor), before);
    let marks = r#"
        local ns = vim.api.nvim_create_namespace("agentchat.follow")
        return vim.tbl_map(function(m) return { m[2], m[4].number_hl_group, m[4].sign_text or "" } end,
          vim.api.nvim_buf_get_extmarks(vim.api.nvim_win_get_buf(_G.code), ns, 0, -1, { details = true }))
    "#;
    assert_eq!(editor.lua(marks, json!([])), json!([[2, "AgentChatFollow1", ""]]));
    // A buffer that is opened later has its mark too.
    editor.lua(
        "vim.api.nvim_win_call(_G.code, function() vim.cmd('bwipeout | set signcolumn=yes | edit mine.txt') end)",
        json!([]),
    );
    editor.wait_until("a sign where there is a column for it", |e| e.lua(marks, json!([]))[0][2] == json!("▸ "));
    agent.open_gate("end");
    editor.wait_until("the mark is gone", |e| {
        e.lua(marks, json!([])) == json!({}) || e.lua(marks, json!([])) == json!([])
    });
}

#[test]
fn following_another_chat_follows_that_one_only() {
    let scenario = |file: &str| {
        Scenario::new().on_prompt([gate("go"), at("t", file, 40), gate("2"), at("u", file, 90), end_turn()])
    };
    let (one, two) = (ScriptedAgent::new(&scenario("a.txt")), ScriptedAgent::new(&scenario("b.txt")));
    let editor = Editor::start(setup(&one).agent("other", &two));
    editor.lua("_G.code = vim.api.nvim_get_current_win()", json!([]));
    editor.command("AgentChat open");
    editor.command("AgentChat follow on");
    editor.prompt("go");
    one.open_gate("go");
    wait_shown(&editor, "a.txt", 40);
    editor.command("AgentChat new other");
    editor.prompt("go");
    two.open_gate("go");
    editor.wait_transcript("Read b.txt");
    assert_eq!((shown(&editor).0, follow_state(&editor)), ("a.txt".to_owned(), "off".to_owned()));
    editor.command("AgentChat follow on");
    wait_shown(&editor, "b.txt", 40);
    one.open_gate("2");
    two.open_gate("2");
    wait_shown(&editor, "b.txt", 90);
    editor.command("AgentChat follow off");
    assert_eq!(shown(&editor).0, "mine.txt");
}

#[test]
fn the_trail_lists_every_place_of_the_turn() {
    let (editor, agent) = beside([
        tool_call("t", "Read both", "read"),
        tool_update(
            "t",
            json!({ "locations": [{ "path": "$cwd/a.txt", "line": 7 }, { "path": "$cwd/b.txt", "line": 9 }] }),
        ),
        at("u", "none.txt", 3),
    ]);
    agent.open_gate("go");
    editor.wait_transcript("Read none.txt");
    editor.command("AgentChat trail");
    let list = "return vim.tbl_map(function(i) return { vim.fs.basename(vim.fn.bufname(i.bufnr)), i.lnum, i.text } end, vim.fn.getqflist())";
    let expected = json!([
        ["a.txt", 7, "read: Read both │ a 7"],
        ["b.txt", 9, "read: Read both │ b 9"],
        ["none.txt", 3, "read: Read none.txt"]
    ]);
    editor.wait_until("the list", |e| e.lua(list, json!([])) == expected);
    editor.lua("vim.api.nvim_set_current_win(_G.code) vim.cmd.AgentChat('follow', 'off')", json!([]));
    editor.lua("vim.fn.setqflist({}, 'f')", json!([]));
    editor.lua("vim.keymap.set('n', '<F6>', '<Plug>(agentchat-trail-next)')", json!([]));
    editor.input("<F6>");
    wait_shown(&editor, "a.txt", 7);
    editor.input("<F6>");
    wait_shown(&editor, "b.txt", 9);
}

#[test]
fn names_and_options_that_are_wrong_are_told() {
    let editor = Editor::start(Setup::new().config("follow", json!({ "jumps_per_second": 0 })));
    editor.command("AgentChat agents");
    editor.command("AgentChat follow");
    editor.wait_until("no chat", |e| e.messages().contains("there is no agent to follow"));
    assert!(editor.messages().contains("`follow.jumps_per_second` must be between"), "{}", editor.messages());
    editor.command("AgentChat follow maybe");
    assert!(editor.messages().contains("takes on, off or toggle"), "{}", editor.messages());
    assert!(editor.try_lua("require('agentchat').follow('maybe')", json!([])).is_err());
    assert_eq!(
        editor.lua("return vim.fn.getcompletion('AgentChat follow o', 'cmdline')", json!([])),
        json!(["on", "off"])
    );
}
