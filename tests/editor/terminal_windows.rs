//! Terminals of agents in windows: what is in them whatever the user does, and what of the user's stays as it is.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use crate::chat::{self, enter_code, window, windows};
use crate::support::scenario::{Scenario, Step, ask_permission_with, end_turn, gate, tool_call, tool_update};
use crate::support::{Editor, ScriptedAgent, Setup};
use crate::terminals::{CREATE, WAIT, about, buffer, create, run, wait_buffer};

/// A command that prints numbered lines, one every 20 ms or so.
fn counting(lines: usize) -> Step {
    let script = format!("i=1; while [ $i -le {lines} ]; do echo line $i; i=$((i+1)); sleep 0.02; done");
    create(json!({ "command": "sh", "args": ["-c", script] }))
}

/// What such a command prints.
fn counted(lines: usize) -> String {
    (1..=lines).fold(String::new(), |mut text, i| {
        writeln!(text, "line {i}").expect("a string takes it");
        text
    })
}

/// The terminal's buffer once its command has ended, without what says so.
fn final_text(editor: &Editor) -> String {
    wait_buffer(editor, "[exit code 0]");
    let text = buffer(editor);
    text.split("[exit code 0]").next().unwrap_or_default().to_owned()
}

/// First row in view, 1-based, of the current window.
fn top(editor: &Editor) -> u64 {
    editor.lua("return vim.fn.line('w0')", json!([])).as_u64().unwrap_or_default()
}

fn terminals(editor: &Editor) -> Json {
    editor.status()["terminals"].clone()
}

#[test]
fn a_terminal_window_that_is_left_and_entered_while_it_prints_stays_where_it_is() {
    let (agent, editor) = run([counting(150), about(WAIT)], Setup::new());
    agent.wait_answer(CREATE, 1);
    wait_buffer(&editor, "line 3\n");
    editor.command("AgentChat terminals 1");
    let followed = |e: &Editor| e.lua("return vim.fn.line('w0') > 1", json!([])) == json!(true);
    editor.wait_until("that the window follows the end", followed);

    // Up by hand: there it stays, in the window and out of it.
    editor.input("gg");
    assert_eq!(top(&editor), 1);
    let before = buffer(&editor);
    editor.command("wincmd p");
    editor.wait_until("more lines", |e| buffer(e).len() > before.len() + 20);
    editor.command("wincmd p");
    assert_eq!((top(&editor), editor.lua("return vim.fn.mode()", json!([]))), (1, json!("n")));

    // In terminal mode and out of it, and hidden and shown again.
    editor.input("i");
    editor.input("<C-\\><C-n>");
    editor.input("10G");
    let view = editor.lua("return vim.fn.winsaveview()", json!([]));
    editor.command("wincmd p");
    editor.command("wincmd p");
    assert_eq!(editor.lua("return vim.fn.winsaveview()", json!([]))["lnum"], view["lnum"]);
    editor.input("G");
    assert_eq!(final_text(&editor), counted(150));
    editor.wait_until("that the end is in view", |e| e.screen().contains("[exit code 0]"));
}

#[test]
fn a_buffer_has_every_line_once_however_its_windows_change_while_it_prints() {
    let (agent, editor) = run([counting(200), about(WAIT)], Setup::new());
    agent.wait_answer(CREATE, 1);
    wait_buffer(&editor, "line 2\n");
    editor.command("AgentChat terminals 1");
    let steps = [
        "resize 5",
        "vsplit",
        "vertical resize 15",
        "close",
        "resize 20",
        "hide",
        "AgentChat terminals 1",
        "wincmd =",
        "only",
    ];
    for step in steps {
        let before = buffer(&editor).len();
        editor.command(step);
        editor.wait_until(&format!("more lines after {step:?}"), |e| buffer(e).len() > before + 40);
    }
    assert_eq!(final_text(&editor), counted(200));
}

#[test]
fn what_the_user_types_is_not_disturbed_by_a_new_terminal() {
    let scenario = Scenario::new().on_prompt([
        gate("asked"),
        tool_call("t", "Run", "execute"),
        ask_permission_with(
            json!({ "toolCallId": "t", "kind": "execute", "rawInput": { "command": "echo hello" } }),
            json!([{ "optionId": "yes", "kind": "allow_once", "name": "Yes" }]),
        ),
        gate("run"),
        create(json!({ "command": "echo hello" })),
        gate("end"),
        end_turn(),
    ]);
    for (keys, mode) in [("itext", "i"), ("v", "v"), ("d", "no"), (":echo", "c")] {
        let (agent, editor) = chat::open(&scenario, Setup::new());
        editor.prompt("go");
        agent.open_gate("asked");
        crate::terminals::allow(&editor);
        let shown = windows(&editor);
        editor.input(keys);
        agent.open_gate("run");
        wait_buffer(&editor, "hello");
        assert_eq!(editor.lua("return vim.fn.mode(1)", json!([])), json!(mode), "after {keys:?}");
        assert_eq!(windows(&editor), shown, "after {keys:?}");
        editor.input("<Esc>");
    }
}

#[test]
fn running_commands_are_counted_and_read_after_they_are_released() {
    let steps = [counting(2_000), gate("release"), about("terminal/release"), gate("end")];
    let (agent, editor) = run(steps, Setup::new());
    agent.wait_answer(CREATE, 1);
    wait_buffer(&editor, "line 5\n");
    assert_eq!(terminals(&editor), json!(1));
    agent.open_gate("release");
    wait_buffer(&editor, "[SIGTERM]");
    editor.wait_until("that none runs", |e| terminals(e) == json!(0));
    editor.command("AgentChat close");
    assert!(buffer(&editor).contains("line 5\n"));
}

#[test]
fn a_card_shows_the_last_lines_in_colour_and_leads_to_the_terminal() {
    let script = "printf 'one\\n\\033[31mred\\033[0m and plain\\n'; sleep 300";
    let steps = [
        create(json!({ "command": "sh", "args": ["-c", script] })),
        tool_call("t", "Run", "execute"),
        tool_update("t", json!({ "content": [{ "type": "terminal", "terminalId": "terminal-1" }] })),
        gate("end"),
    ];
    let (_agent, editor) = run(steps, Setup::new());
    editor.wait_transcript("│ red and plain");
    editor.wait_until("the colour", |e| {
        let groups = e.screen().groups_of("red and plain").map(<[String]>::to_vec);
        groups.is_some_and(|groups| groups.iter().any(|group| group == "AgentChatTermRed"))
    });
    chat::enter(&editor, "agentchat");
    editor.command("call search('red and plain')");
    editor.input("<CR>");
    editor
        .wait_until("the terminal's window", |e| window(e, "agentchat_terminal").is_some_and(|window| window.current));
    editor.input("<C-c>");
    wait_buffer(&editor, "[SIGTERM]");
}

#[test]
fn follow_mode_shows_the_terminal_that_the_agent_waits_for() {
    let command = create(json!({ "command": "sh", "args": ["-c", "echo working; sleep 300"] }));
    let steps = [
        gate("go"),
        command,
        tool_call("t", "Run", "execute"),
        tool_update("t", json!({ "content": [{ "type": "terminal", "terminalId": "terminal-1" }] })),
        gate("end"),
        end_turn(),
    ];
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent).file("mine.txt", "mine\n").arg("mine.txt"));
    editor.command("AgentChat open");
    editor.wait_state("idle");
    editor.command("AgentChat follow on");
    editor.prompt("go");
    agent.open_gate("go");
    crate::terminals::allow(&editor);
    chat::enter(&editor, "agentchat_prompt");
    editor.wait_until("the terminal in the window that follows", |e| window(e, "agentchat_terminal").is_some());
    assert!(!window(&editor, "agentchat_terminal").unwrap().current);
    editor.wait_screen("working");
    editor.command("AgentChat follow off");
    editor.wait_until("the file again", |e| window(e, "agentchat_terminal").is_none() && e.screen().contains("mine"));
}

#[test]
fn a_terminal_of_the_agents_own_is_shown_the_same_way() {
    let meta = |name: &str, mut value: Json| {
        value["terminal_id"] = json!("call_1");
        tool_update("call_1", json!({ "_meta": { name: value } }))
    };
    let steps = [
        tool_call("call_1", "Terminal", "execute"),
        tool_update(
            "call_1",
            json!({
                "rawInput": { "command": "make all" },
                "content": [{ "type": "terminal", "terminalId": "call_1" }],
                "_meta": { "terminal_info": { "terminal_id": "call_1" } },
            }),
        ),
        meta("terminal_output", json!({ "data": "first\n\u{1b}[32mgre" })),
        meta("terminal_output", json!({ "data": "en\u{1b}[0m\n" })),
        gate("live"),
        meta("terminal_exit", json!({ "exit_code": 2, "signal": null })),
        gate("end"),
        end_turn(),
    ];
    let (agent, editor) = chat::open(&Scenario::new().on_prompt(steps), Setup::new());
    editor.prompt("go");
    agent.wait_gate("live");
    wait_buffer(&editor, "first\ngreen\n");
    editor.wait_transcript("│ green");
    assert_eq!(terminals(&editor), json!(1));
    let named = "return vim.api.nvim_buf_get_name(require('agentchat.terminals').all()[1].buf)";
    assert_eq!(editor.lua(named, json!([])), json!("agentchat://terminal/1/make all"));
    agent.open_gate("live");
    wait_buffer(&editor, "first\ngreen\n[exit code 2]");
    editor.wait_until("that none runs", |e| terminals(e) == json!(0));
    let initialize = agent.received("initialize");
    assert_eq!(initialize[0]["params"]["clientCapabilities"]["_meta"]["terminal_output"], json!(true));
}

#[test]
fn a_command_of_the_users_runs_in_a_normal_window_and_its_end_is_told() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    let start = "
    _G.ends = {}
    require('agentchat.terminals').run(..., { env = { NAME = 'value' } }, function(how) table.insert(_G.ends, how) end)";
    let script = "echo $NAME; read x; echo got $x; exit 3";
    editor.lua(start, json!([["sh", "-c", script]]));
    editor.wait_until("its window", |e| window(e, "agentchat_terminal").is_some_and(|window| window.current));
    wait_buffer(&editor, "value");
    editor.input("iyes<CR>");
    editor.wait_until("the end", |e| e.lua("return _G.ends[1] and _G.ends[1].code", json!([])) == json!(3));
    wait_buffer(&editor, "got yes");
    editor.lua(start, json!([["no-such-program-here"]]));
    let error = editor
        .wait("the error", |e| e.lua("return _G.ends[1] and _G.ends[1].error", json!([])).as_str().map(str::to_owned));
    assert!(error.contains("no-such-program-here"), "{error}");
}

#[test]
fn a_trickle_is_shown_as_it_comes() {
    let (agent, editor) = run([counting(40), about(WAIT)], Setup::new());
    agent.wait_answer(CREATE, 1);
    enter_code(&editor);
    // Every line is seen on its own: nothing waits for more to come.
    let mut seen = 0;
    editor.wait_until("the end", |e| {
        let now = buffer(e).matches("line ").count();
        seen += usize::from(now > 0 && now < 40);
        now == 40
    });
    assert!(seen > 2, "{seen} states between the first line and the last");
}
