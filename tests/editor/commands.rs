//! `:AgentChat` itself: its subcommands, their completion, and what it says when there is nothing to do.

use serde_json::json;

use crate::chat;
use crate::support::scenario::Scenario;
use crate::support::{Editor, ScriptedAgent, Setup};

/// What `<Tab>` offers after this.
#[track_caller]
fn completions(editor: &Editor, typed: &str) -> Vec<String> {
    let found = editor.lua("return vim.fn.getcompletion(..., 'cmdline')", json!([typed]));
    found.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

#[test]
fn subcommands_and_agents_are_completed() {
    let agent = ScriptedAgent::new(&Scenario::new());
    let editor = Editor::start(Setup::new().agent("scripted", &agent).agent("second", &agent));
    let all = completions(&editor, "AgentChat ");
    for name in ["open", "close", "toggle", "new", "prompt", "cancel", "allow", "deny", "permissions", "restart", "log"]
    {
        assert!(all.iter().any(|word| word == name), "{name} in {all:?}");
    }
    assert_eq!(completions(&editor, "AgentChat ca"), ["cancel"]);
    let agents = completions(&editor, "AgentChat open ");
    assert!(agents.iter().any(|name| name == "scripted") && agents.iter().any(|name| name == "second"), "{agents:?}");
    assert_eq!(completions(&editor, "AgentChat new sec"), ["second"]);
}

#[test]
fn a_command_with_nothing_to_do_says_so_and_starts_nothing() {
    let (agent, editor) = chat::start(&Scenario::new(), Setup::new());
    for (typed, said) in [
        ("cancel", "nothing to cancel"),
        ("allow", "no permission request is displayed"),
        ("deny", "no permission request is displayed"),
        ("prompt", "needs a text"),
        ("dance", "there is no :AgentChat dance"),
        ("cancel now", "takes no argument"),
        ("open two names", "takes one argument"),
    ] {
        editor.input(&format!(":AgentChat {typed}<CR>"));
        editor.wait_until(&format!("{said:?} for {typed:?}"), |e| e.messages().contains(said));
    }
    editor.input(":AgentChat close<CR>");
    assert_eq!(editor.state(), "stopped");
    assert!(agent.pids().is_empty());
}

#[test]
fn in_the_command_line_window_the_chat_says_that_it_cannot_open_and_opens_later() {
    let (_agent, editor) = chat::start(&Scenario::new(), Setup::new());
    editor.input("q:");
    editor.wait_until("the command-line window", |e| e.lua("return vim.fn.getcmdwintype()", json!([])) == json!(":"));
    editor.input(":AgentChat<CR>");
    editor.wait_until("a message", |e| e.messages().contains("leave it first"));
    editor.input("<C-c><C-c>");
    editor.wait_until("the normal window", |e| e.lua("return vim.fn.getcmdwintype()", json!([])) == json!(""));
    editor.input(":AgentChat<CR>");
    editor.wait_until("the chat", chat::is_open);
    editor.wait_state("idle");
}

#[test]
fn a_wrong_configuration_is_named_and_the_rest_is_used() {
    let setup = Setup::new().config("layout", json!({ "width": "wide", "prompt_max": 5 })).config("colour", json!(1));
    let (_agent, editor) = chat::start(&Scenario::new(), setup);
    editor.input(":AgentChat<CR>");
    editor.wait_state("idle");
    let messages = editor.messages();
    assert!(messages.contains("layout.width") && messages.contains("colour"), "{messages}");
    assert_eq!(chat::window(&editor, "agentchat").unwrap().width, 48, "the default for what is wrong");
    editor.input("<CR>i1<CR>2<CR>3<CR>4<CR>5<CR>6<CR>7");
    editor.wait_until("the configured bound", |e| chat::window(e, "agentchat_prompt").unwrap().height == 5);
}

/// The rows of the list of agents, of which the first is a heading.
fn listed(editor: &Editor) -> Vec<String> {
    let rows = editor.lua(
        r"for _, buf in ipairs(vim.api.nvim_list_bufs()) do
            if vim.bo[buf].filetype == 'agentchat_agents' then return vim.api.nvim_buf_get_lines(buf, 0, -1, true) end
          end
          return {}",
        json!([]),
    );
    rows.as_array()
        .map(|rows| rows.iter().filter_map(|row| row.as_str().map(str::to_owned)).collect())
        .unwrap_or_default()
}

#[test]
fn agents_are_listed_with_how_to_get_them_and_started_from_there() {
    let agent = ScriptedAgent::new(&Scenario::new());
    let setup = Setup::new()
        .size(100, 30)
        .agent("scripted", &agent)
        .config(
            "agents",
            json!({ "missing": { "command": ["no-such-program"] }, "scripted": { "command": agent.command() } }),
        )
        .config("default_agent", json!("scripted"));
    let editor = Editor::start(setup);
    editor.input(":AgentChat agents<CR>");
    let is_known = |e: &Editor| listed(e).iter().any(|row| row.contains("goose") && row.contains("not installed"));
    editor.wait_until("the list", |e| {
        is_known(e) && listed(e)[1].contains("scripted") && listed(e)[1].contains("default")
    });
    let row_of =
        |e: &Editor, name: &str| listed(e).iter().position(|row| row.trim_start().starts_with(name)).unwrap() + 1;
    assert!(
        listed(&editor)[row_of(&editor, "missing") - 1].contains("its program is missing"),
        "{:?}",
        listed(&editor)
    );
    editor.input(&format!("{}G<CR>", row_of(&editor, "goose")));
    editor.wait_until("how to get it", |e| listed(e).iter().any(|row| row.contains("to install it: see https://")));
    editor.input("K");
    editor.wait_until("less again", |e| !listed(e).iter().any(|row| row.contains("to install it")));
    assert!(agent.pids().is_empty(), "nothing was started to list it");
    editor.input(&format!("{}G<CR>", row_of(&editor, "scripted")));
    editor.wait_state("idle");
    editor.wait_until("the list is closed", |e| listed(e).is_empty());
    editor.input("<Esc>:AgentChat agents<CR>");
    editor.wait_until("its chat", |e| {
        listed(e).iter().any(|row| row.contains("scripted") && row.contains("chat 1 idle"))
    });
}

#[test]
fn checkhealth_tells_of_agents_terminal_and_files() {
    let (_agent, editor) = chat::start(&Scenario::new(), Setup::new().size(120, 40));
    editor.command("checkhealth agentchat");
    let report = || {
        let text = editor.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), ' ')", json!([]));
        text.as_str().unwrap_or_default().to_owned()
    };
    editor.wait_until("the report", |_| report().contains("log: "));
    let report = report();
    for wanted in [
        "answers and starts a session",
        "the configuration is valid",
        "termguicolors",
        "images cannot be pasted",
        "state: ",
    ] {
        assert!(report.contains(wanted), "{wanted}: {report}");
    }
}

#[test]
fn the_log_is_opened_whatever_its_folder_is_called() {
    let (_agent, editor) = chat::start(&Scenario::new(), Setup::new());
    let folder = editor.project().join("a b#c%d[e]$f");
    std::fs::create_dir_all(folder.join("agentchat")).unwrap();
    std::fs::write(folder.join("agentchat/helper.log"), "a line\n").unwrap();
    editor.lua("local folder = ... vim.fn.stdpath = function() return folder end", json!([folder]));
    editor.command("AgentChat log");
    editor.wait_screen("a line");
}

#[test]
fn without_a_line_for_messages_none_stops_neovim() {
    let agent = ScriptedAgent::new(&Scenario::new());
    let editor = Editor::start(Setup::new().size(80, 24).init("vim.o.cmdheight = 0").agent("scripted", &agent));
    editor.input(":AgentChat next<CR>");
    editor.wait_screen("agentchat: nothing is pending");
    assert!(!editor.is_blocked(), "{}", editor.screen());
    editor.input("i");
    editor.wait_until("it makes room", |e| !e.screen().to_string().contains("nothing is pending"));
}
