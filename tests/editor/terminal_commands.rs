//! What agents may ask to be run, in all the ways in which they write it.

use serde_json::{Value as Json, json};

use crate::chat;
use crate::support::scenario::{Scenario, Step, ask_permission_with, end_turn, fill, gate, tool_call, tool_update};
use crate::support::{Editor, ScriptedAgent, Setup};
use crate::terminals::{CREATE, OUTPUT, WAIT, about, allow, buffer, create, run, wait_buffer};

/// What an agent reads that runs this command.
#[track_caller]
fn output(command: Json, setup: Setup) -> Json {
    let (agent, _editor) = run([create(command), about(WAIT), about(OUTPUT)], setup);
    agent.wait_answer(OUTPUT, 1)["result"].clone()
}

#[track_caller]
fn text(command: Json, setup: Setup) -> String {
    output(command, setup)["output"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_whole_line_without_arguments_is_the_shells_unless_it_names_a_program() {
    let project = || Setup::new().file("a file.txt", "text\n").file("a folder/tool", "#!/bin/sh\necho tool \"$#\"\n");
    assert_eq!(text(json!({ "command": "ls -1 'a folder'" }), project()), "tool\n");
    assert_eq!(text(json!({ "command": "ls -1 'a folder'", "args": [] }), project()), "tool\n");
    assert_eq!(text(json!({ "command": "true && printf 'a\\nb\\n' | tail -1; echo $((1+1))" }), project()), "b\n2\n");
    let steps = [create(json!({ "command": "chmod +x 'a folder/tool'" })), about(WAIT), gate("second"), end_turn()];
    let second =
        [create(json!({ "command": "$cwd/a folder/tool", "args": [] })), about_second(WAIT), about_second(OUTPUT)];
    let (agent, editor) =
        chat::open(&Scenario::new().on_prompt(steps).on_prompt(second.into_iter().chain([end_turn()])), project());
    editor.prompt("go");
    allow(&editor);
    agent.wait_gate("second");
    agent.open_gate("second");
    editor.wait_state("idle");
    editor.prompt("again");
    allow(&editor);
    assert_eq!(agent.wait_answer(OUTPUT, 1)["result"]["output"], json!("tool 0\n"));
}

fn about_second(method: &str) -> Step {
    crate::support::scenario::request(method, json!({ "sessionId": "$session", "terminalId": "terminal-2" }))
}

#[test]
fn arguments_and_variables_arrive_as_they_are() {
    let odd = "a \"b\" 'c'\\ $HOME\nsecond * ;|&";
    let command = json!({
        "command": "sh", "args": ["-c", "printf '[%s]' \"$1\" \"$ODD\"", "sh", odd],
        "env": [{ "name": "ODD", "value": odd }],
    });
    assert_eq!(text(command, Setup::new()), format!("[{odd}][{odd}]"));
    let bad = json!({ "command": "true", "env": [{ "name": "A=B", "value": "" }] });
    let (agent, _editor) = run([create(bad)], Setup::new());
    assert!(agent.wait_answer(CREATE, 1)["error"].is_object());
}

#[test]
fn a_command_runs_in_the_folder_that_was_asked_for() {
    let project = || Setup::new().file("below/x", "");
    let path = |folder: &str| json!({ "command": "sh", "args": ["-c", "basename \"$PWD\""], "cwd": folder });
    assert_eq!(text(path("$cwd/below"), project()), "below\n");
    assert_eq!(text(json!({ "command": "sh", "args": ["-c", "basename \"$PWD\""] }), project()), "project\n");
    for (folder, said) in [("$cwd/not-there", "not-there"), ("below", "absolute"), ("$cwd/below/x", "no folder")] {
        let scenario = Scenario::new().on_prompt([create(path(folder)), end_turn()]);
        let (agent, editor) = chat::open(&scenario, project());
        editor.prompt("go");
        if folder.starts_with("$cwd") {
            allow(&editor);
        }
        let error = agent.wait_answer(CREATE, 1)["error"]["message"].to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_pager_is_not_waited_for_and_the_user_may_set_another() {
    let show = || json!({ "command": "sh", "args": ["-c", "echo $TERM $PAGER $GIT_PAGER ${GH_PAGER-none}"] });
    assert_eq!(text(show(), Setup::new()), "xterm-256color cat cat cat\n");
    let env = json!({ "env": { "PAGER": "more", "GH_PAGER": false } });
    assert_eq!(text(show(), Setup::new().config("terminal", env)), "xterm-256color more cat none\n");
}

#[test]
fn errors_of_a_command_are_output_and_its_code_is_exact() {
    let result = output(json!({ "command": "sh", "args": ["-c", "echo out; echo bad >&2; exit 1"] }), Setup::new());
    assert_eq!(result["output"], json!("out\nbad\n"));
    assert_eq!(result["exitStatus"]["exitCode"], json!(1));
    let result = output(json!({ "command": "sh", "args": ["-c", "kill -SEGV $$"] }), Setup::new());
    assert_eq!(result["exitStatus"]["signal"], json!("SIGSEGV"));
    assert!(result["exitStatus"]["exitCode"].is_null());
}

#[test]
fn what_is_wide_combined_broken_or_redrawn_reads_as_on_a_screen() {
    let command = |script: &str| json!({ "command": "sh", "args": ["-c", script] });
    let shown = [
        ("printf '完了 e\\314\\201 ✅\\n'", "完了 e\u{301} ✅\n"),
        ("printf 'a\\377b\\n'", "a\u{fffd}b\n"),
        ("for i in 1 2 3; do printf '\\r%d%%' $i; done; echo", "3%\n"),
        ("printf 'x\\033]52;c;ZXZpbA==\\007\\033[31my\\033[0m\\n'", "xy\n"),
        ("printf '\\033[?1049h\\033[Hfull screen\\033[?1049l'", "full screen\n"),
    ];
    for (script, wanted) in shown {
        assert_eq!(text(command(script), Setup::new()), wanted, "{script}");
    }
    let mut limited = command("printf 'äöü'");
    limited["outputByteLimit"] = json!(5);
    let result = output(limited, Setup::new());
    assert_eq!((&result["output"], &result["truncated"]), (&json!("öü"), &json!(true)));
}

#[test]
fn the_clipboard_cannot_be_written_by_what_a_command_prints() {
    let script = "printf 'before\\033]52;c;ZXZpbA==\\007\\033Pq\\033\\\\\\033[6nafter\\n'";
    let spy = "
    _G.requests = 0
    vim.api.nvim_create_autocmd('TermRequest', { callback = function() _G.requests = _G.requests + 1 end })
    vim.g.clipboard = { name = 'spy', copy = { ['+'] = function() _G.requests = _G.requests + 1 end,
      ['*'] = function() _G.requests = _G.requests + 1 end }, paste = { ['+'] = function() return {} end, ['*'] = function() return {} end } }";
    let scenario = Scenario::new().on_prompt([
        create(json!({ "command": "sh", "args": ["-c", script] })),
        about(WAIT),
        end_turn(),
    ]);
    let (_agent, editor) = chat::open(&scenario, Setup::new());
    editor.lua(spy, json!([]));
    editor.prompt("go");
    allow(&editor);
    wait_buffer(&editor, "beforeafter\n[exit code 0]");
    assert_eq!(editor.lua("return _G.requests", json!([])), json!(0));
}

#[test]
fn a_command_that_was_allowed_with_its_call_is_not_asked_about_again() {
    let ask = |command: Json| {
        ask_permission_with(
            json!({ "toolCallId": "t", "kind": "execute", "title": "Run", "rawInput": command }),
            json!([{ "optionId": "yes", "kind": "allow_once", "name": "Yes" }]),
        )
    };
    let steps = [
        tool_call("t", "Run", "execute"),
        ask(json!({ "command": "printf", "args": ["a b"] })),
        create(json!({ "command": "printf", "args": ["a b"] })),
        about(WAIT),
        about(OUTPUT),
        gate("other"),
        create(json!({ "command": "printf a b" })).without_waiting(),
        gate("end"),
        end_turn(),
    ];
    let (agent, editor) = chat::open(&Scenario::new().on_prompt(steps), Setup::new());
    editor.prompt("go");
    allow(&editor);
    assert_eq!(agent.wait_answer(OUTPUT, 1)["result"]["output"], json!("a b"));
    assert_eq!(editor.status()["permissions"], json!(0));
    agent.open_gate("other");
    editor.wait_until("the question", |e| e.status()["permissions"] == json!(1));
}

#[test]
fn two_megabytes_in_one_update_just_before_the_end_are_shown_and_bounded() {
    let line = "x".repeat(99) + "\\n";
    let text = "[{ \"type\": \"content\", \"content\": { \"type\": \"text\", \"text\": \"";
    let (before, after) = (
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"$session\",\"update\":{{\
             \"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"t\",\"content\":{text}"
        ),
        "\" } }]}}}\n".to_owned(),
    );
    let steps = [
        tool_call("t", "Run", "execute"),
        crate::support::scenario::raw(&before),
        fill(&line, 21_000),
        crate::support::scenario::raw(&after),
        tool_update("t", json!({ "status": "completed" })),
        end_turn(),
    ];
    let (_agent, editor) = chat::open(&Scenario::new().on_prompt(steps), Setup::new());
    editor.prompt("go");
    editor.wait_state("idle");
    editor.wait_transcript("✓ Run");
    editor.wait_transcript(&format!("│ {}", "x".repeat(99)));
    assert!(editor.whole_transcript().len() < 3_000, "the card is bounded");
}

#[test]
fn a_program_that_reads_what_the_terminal_says_of_its_window_sees_it_grow() {
    let script = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done";
    let (agent, editor): (ScriptedAgent, Editor) =
        run([create(json!({ "command": "sh", "args": ["-c", script] })), gate("end")], Setup::new());
    agent.wait_answer(CREATE, 1);
    wait_buffer(&editor, "24 80");
    editor.command("AgentChat terminals 1");
    editor.command("resize 11");
    let size = editor.lua("return ('%d %d'):format(vim.fn.winheight(0), vim.fn.winwidth(0))", json!([]));
    wait_buffer(&editor, size.as_str().unwrap_or_default());
    assert!(buffer(&editor).starts_with("24 80"));
}
