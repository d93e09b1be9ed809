//! Colours of code blocks: who parses, what that costs the user's Neovim, and what is left when things go wrong.

use std::fs;
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::chat;
use crate::support::scenario::{Scenario, Step, chunk, end_turn, gate};
use crate::support::{Editor, ScriptedAgent, Setup, processes};

/// What Neovim may leave behind, and for how long.
const SOON: Duration = Duration::from_secs(2);

fn block(language: &str, code: &str) -> Step {
    chunk(&format!("```{language}\n{code}\n```\n\n"))
}

/// A chat whose agent plays the steps.
fn start(setup: Setup, steps: impl IntoIterator<Item = Step>) -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::open(&Scenario::new().on_prompt(steps), setup);
    editor.prompt("go");
    (agent, editor)
}

/// The texts with that highlight group, in the order of the transcript.
fn coloured(editor: &Editor, group: &str) -> Vec<String> {
    let found = editor.lua(
        r#"
        local buf = require("agentchat.chats").current().transcript
        local ns = vim.api.nvim_create_namespace("agentchat.chat")
        local texts = {}
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true })) do
          local details = mark[4]
          if details.hl_group == ... then
            texts[#texts + 1] = vim.api.nvim_buf_get_text(buf, mark[2], mark[3], details.end_row, details.end_col, {})[1]
          end
        end
        return texts
        "#,
        json!([group]),
    );
    found.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

#[track_caller]
fn wait_coloured(editor: &Editor, group: &str, expected: &[&str]) {
    editor.wait_until(&format!("{expected:?} as {group}"), |e| coloured(e, group) == expected);
}

/// The processes that parse.
fn workers(editor: &Editor) -> Vec<i32> {
    let found =
        editor.processes().into_iter().filter(|process| process.command.contains(" --embed --headless -u NONE"));
    found.map(|process| process.pid).collect()
}

#[track_caller]
fn only_worker(editor: &Editor) -> i32 {
    let found = workers(editor);
    assert_eq!(found.len(), 1, "{:?}", editor.processes());
    found[0]
}

/// Warnings about colours.
fn warnings(editor: &Editor) -> usize {
    chat::times_in_messages(editor, "colouring code failed")
}

#[test]
fn the_users_neovim_loads_no_parser_and_no_query() {
    let watch = r#"
        vim.fn.writefile({ "loaded" }, vim.fn.getcwd() .. "/configurations", "a")
        _G.calls = {}
        for of, name in pairs({ query = "get", language = "add" }) do
          local original = vim.treesitter[of][name]
          vim.treesitter[of][name] = function(...)
            table.insert(_G.calls, name)
            return original(...)
          end
        end
    "#;
    let steps = [block("c", "int x; // one"), block("LUA", "local y = 2"), end_turn()];
    let (_agent, editor) = start(Setup::new().init(watch), steps);
    wait_coloured(&editor, "@comment.c", &["// one"]);
    wait_coloured(&editor, "@keyword.lua", &["local"]);
    assert_eq!(editor.lua("return { #_G.calls, vim._ts_has_language('c') }", json!([])), json!([0, false]));
    only_worker(&editor);
    let configurations = fs::read_to_string(editor.project().join("configurations")).unwrap();
    assert_eq!(configurations, "loaded\n", "the user's configuration was loaded once, in the user's Neovim");
    assert_eq!(warnings(&editor), 0);
}

#[test]
fn the_group_of_a_colour_is_the_users_to_define() {
    let setup = Setup::new().init("vim.api.nvim_set_hl(0, '@keyword.lua', { link = 'Todo' })");
    let (_agent, editor) = start(setup, [block("lua", "local y = 2"), end_turn()]);
    editor.wait_until("the user's colour on the screen", |e| {
        e.screen().groups_of("local").is_some_and(|groups| groups.iter().any(|group| group == "Todo"))
    });
}

#[test]
fn what_has_no_parser_costs_nothing() {
    // What is asked is noted before it is sent; the last block shows that all before it were looked at.
    let note = r#"
        local process = require("agentchat.code_process")
        local call = process.call
        _G.asked = {}
        process.call = function(name, argument)
          table.insert(_G.asked, argument.language or name)
          return call(name, argument)
        end
    "#;
    let unknown = ["python", "*", "c*", "[c]", "../c", "no-such"].map(|language| block(language, "int x;"));
    let steps = unknown.into_iter().chain([gate("last"), block("lua", "local y = 2"), end_turn()]);
    let (agent, editor) = start(Setup::new(), steps.collect::<Vec<_>>());
    editor.lua(note, json!([]));
    editor.wait_transcript("```no-such");
    agent.open_gate("last");
    wait_coloured(&editor, "@keyword.lua", &["local"]);
    assert_eq!(editor.lua("return _G.asked", json!([])), json!(["lua"]));
    assert_eq!(warnings(&editor), 0);
}

#[test]
fn a_killed_worker_is_replaced_for_the_next_block() {
    let steps = [block("c", "int x; // one"), gate("next"), block("c", "int y; // two"), end_turn()];
    let (agent, editor) = start(Setup::new(), steps);
    wait_coloured(&editor, "@comment.c", &["// one"]);
    let first = only_worker(&editor);
    processes::kill9(first);
    editor.wait_until("its end", |e| workers(e).is_empty());
    agent.open_gate("next");
    wait_coloured(&editor, "@comment.c", &["// one", "// two"]);
    assert_ne!(only_worker(&editor), first);
    assert_eq!(warnings(&editor), 0);
}

#[test]
fn a_worker_killed_within_a_block_leaves_no_gap_and_no_colour_twice() {
    // The process ends when it is asked to go on for the first time.
    let kill_once = r#"
        local process = require("agentchat.code_process")
        local call, killed = process.call, false
        process.call = function(name, argument)
          if name == "more" and not killed then
            killed = true
            for _, channel in ipairs(vim.api.nvim_list_chans()) do
              if vim.tbl_contains(channel.argv or {}, "--headless") then
                vim.uv.kill(vim.fn.jobpid(channel.id), 9)
              end
            end
          end
          return call(name, argument)
        end
    "#;
    let (agent, editor) = start(Setup::new(), [gate("go"), block("lua", &"local y = 2\n".repeat(1_500)), end_turn()]);
    editor.lua(kill_once, json!([]));
    agent.open_gate("go");
    wait_coloured(&editor, "@keyword.lua", &vec!["local"; 1_500]);
    assert_eq!(warnings(&editor), 0);
}

#[test]
fn a_worker_that_does_not_answer_is_replaced() {
    let (agent, editor) = start(Setup::new(), [block("c", "// one"), gate("next"), block("c", "// two"), end_turn()]);
    wait_coloured(&editor, "@comment.c", &["// one"]);
    let first = only_worker(&editor);
    editor.lua("require('agentchat.code_process').answer_time = 3000; vim.uv.kill(..., 'sigstop')", json!([first]));
    agent.open_gate("next");
    wait_coloured(&editor, "@comment.c", &["// one", "// two"]);
    editor.wait_until("the end of the first", |e| !workers(e).contains(&first));
}

#[test]
fn a_block_that_kills_the_worker_twice_is_left_out() {
    let deadly = r#"
        vim.fn.writefile({ "started" }, vim.g.project .. "/starts", "a")
        if vim.uv.fs_stat(vim.g.project .. "/deadly") then
          vim.uv.kill(vim.uv.os_getpid(), 9)
        end
    "#;
    // The worker has no variables of the user's.
    let predicates = "vim.g.project = vim.fs.dirname(vim.api.nvim_get_runtime_file('lua/nvim-treesitter', false)[1])";
    let setup = Setup::new()
        .init("vim.opt.runtimepath:prepend(vim.fn.getcwd() .. '/plugin')")
        .file("plugin/lua/nvim-treesitter/query_predicates.lua", format!("{predicates}\n{deadly}"))
        .file("plugin/lua/deadly", "");
    let (agent, editor) = start(setup, [block("c", "// one"), gate("next"), block("c", "// two"), end_turn()]);
    editor.wait_until("a warning", |e| warnings(e) == 1);
    let starts = editor.project().join("plugin/lua/starts");
    assert_eq!(fs::read_to_string(&starts).unwrap(), "started\nstarted\n");
    fs::remove_file(editor.project().join("plugin/lua/deadly")).unwrap();
    agent.open_gate("next");
    wait_coloured(&editor, "@comment.c", &["// two"]);
    assert_eq!(warnings(&editor), 1);
}

#[test]
fn a_query_that_fails_is_one_warning() {
    let setup = Setup::new().init("vim.opt.runtimepath:append(vim.fn.getcwd() .. '/plugin')").file(
        "plugin/queries/lua/highlights.scm",
        ";; extends\n((identifier) @variable (#no-such-predicate? @variable))\n",
    );
    let steps = [block("lua", "local y = 2"), block("lua", "local z = 3"), block("c", "// one"), end_turn()];
    let (_agent, editor) = start(setup, steps);
    wait_coloured(&editor, "@comment.c", &["// one"]);
    assert_eq!(warnings(&editor), 1, "{}", editor.messages());
    assert!(coloured(&editor, "@variable.lua").is_empty());
}

#[test]
fn the_worker_ends_when_there_is_nothing_to_do() {
    let steps = [block("c", "// one"), gate("next"), block("c", "// two"), end_turn()];
    let (agent, editor) = start(Setup::new(), steps);
    wait_coloured(&editor, "@comment.c", &["// one"]);
    let first = only_worker(&editor);
    editor.lua("require('agentchat.code_process').idle_time = 100", json!([]));
    agent.open_gate("next");
    wait_coloured(&editor, "@comment.c", &["// one", "// two"]);
    editor.wait_until("its end", |e| workers(e).is_empty());
    editor.wait_until("nothing of it", |_| !processes::is_alive(first));
    assert_eq!(warnings(&editor), 0);
}

#[test]
fn the_worker_ends_with_the_last_chat() {
    let (_agent, editor) = start(Setup::new(), [block("c", "// one"), end_turn()]);
    wait_coloured(&editor, "@comment.c", &["// one"]);
    only_worker(&editor);
    editor.command("bwipeout! agentchat://transcript/1 agentchat://prompt/1");
    editor.wait_until("its end", |e| workers(e).is_empty());
}

#[test]
fn the_worker_ends_with_neovim_however_that_ends() {
    for is_killed in [true, false] {
        let (_agent, mut editor) = start(Setup::new(), [block("c", "// one"), end_turn()]);
        wait_coloured(&editor, "@comment.c", &["// one"]);
        only_worker(&editor);
        if is_killed {
            editor.kill9();
        } else {
            let (status, took) = editor.quit();
            assert!(status.success() && took < SOON, "{status}, {took:?}");
        }
        editor.wait_gone(SOON);
    }
}
