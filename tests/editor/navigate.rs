//! Moving in a transcript, and from it to files, links and the whole of a tool call.

use serde_json::{Value as Json, json};

use crate::support::scenario::{Scenario, Step, chunk, end_turn, thought, tool_call, tool_update};
use crate::support::{Editor, ScriptedAgent, Setup};

/// An editor in a transcript of two turns, at its first line.
fn in_transcript(setup: Setup, steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps).on_prompt([chunk("second answer"), end_turn()]));
    let files: String = (1..=99).map(|number| format!("line {number}\n")).collect();
    let editor = Editor::start(setup.agent("scripted", &agent).file("src/a.txt", &files).file("with space.txt", "x\n"));
    editor.command("AgentChat open");
    for number in 1..=2 {
        editor.prompt(&format!("prompt {number}"));
        editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == number);
    }
    editor.lua(
        "vim.api.nvim_set_current_win(vim.fn.bufwinid(require('agentchat.chats').current().transcript))
        vim.cmd('normal! gg0')",
        json!([]),
    );
    (editor, agent)
}

fn conversation() -> Vec<Step> {
    let text = json!([{ "type": "content", "content": { "type": "text", "text": "```\nnot a message\n```" } }]);
    vec![
        thought("so\nwhat"),
        chunk("Look:\n\n```lua\nlocal a = 1\nprint(a)\n```\n\nat src/a.txt:7, [docs](https://example.com/x) and\n"),
        tool_call("t", "Run", "execute"),
        tool_update(
            "t",
            json!({ "status": "completed", "content": text, "rawInput": { "command": "make", "deep": [1] },
                "rawOutput": "all\ngood", "locations": [{ "path": "$cwd/src/a.txt", "line": 9 }] }),
        ),
        chunk("1. item\n\n   ~~~~\n   ~~~\n   x\n   ~~~~\n"),
        end_turn(),
    ]
}

fn line(editor: &Editor) -> String {
    let line = editor.lua("return vim.api.nvim_get_current_line()", json!([]));
    line.as_str().unwrap_or_default().to_owned()
}

/// What is shown in the current window, and at which line.
fn place(editor: &Editor) -> Json {
    editor.lua(
        "return { vim.fn.fnamemodify(vim.api.nvim_buf_get_name(0), ':.'), vim.fn.line('.'), vim.bo.filetype }",
        json!([]),
    )
}

#[test]
fn keys_go_from_turn_to_turn_call_to_call_and_block_to_block() {
    let (editor, _agent) = in_transcript(Setup::new(), conversation());
    for (keys, wanted) in [
        ("]]", "❯ You"),
        ("k]]", "❯ You"),
        ("[[", "❯ You"),
        ("gg]x", "✓ Run  $ execute · done"),
        ("G[x", "✓ Run  $ execute · done"),
        ("gg]k", "local a = 1"),
        ("]k", "   ~~~"),
        ("]k", "   ~~~"),
        ("[k", "local a = 1"),
        ("G2[k", "local a = 1"),
        ("gg2]k", "   ~~~"),
        ("``", "❯ You"),
    ] {
        editor.input(keys);
        editor.wait_until(&format!("{wanted:?} after {keys}"), |e| line(e) == wanted);
    }
    editor.input("gg3]]");
    editor.wait_until("the end", |e| e.lua("return vim.fn.line('.') == vim.fn.line('$')", json!([])) == json!(true));
    editor.input("gg]]");
    assert_eq!(line(&editor), "❯ You");
    editor.input("j");
    assert_eq!(line(&editor), "prompt 2");
}

#[test]
fn a_code_block_is_a_text_object() {
    let (editor, _agent) = in_transcript(Setup::new(), conversation());
    let yanked = |keys: &str| {
        editor.input(keys);
        editor.lua("return vim.fn.getreg('\"')", json!([]))
    };
    assert_eq!(yanked("gg]kyic"), "local a = 1\nprint(a)\n");
    assert_eq!(yanked("gg]kyac"), "```lua\nlocal a = 1\nprint(a)\n```\n");
    assert_eq!(yanked("gg]kvacy"), "```lua\nlocal a = 1\nprint(a)\n```\n");
    assert_eq!(yanked("gg2]kyic"), "   ~~~\n   x\n");
    let before = yanked("ggyy");
    assert_eq!(yanked("]xjyic"), before, "a card has none");
}

#[test]
fn places_open_in_a_code_window_at_their_line() {
    let (editor, _agent) = in_transcript(Setup::new(), conversation());
    let chat = editor.lua("return vim.api.nvim_get_current_win()", json!([]));
    for (keys, wanted) in [
        ("gg/src.a.txt:7<CR>gf", json!(["src/a.txt", 7, "text"])),
        ("gg/src.a.txt:9<CR><CR>", json!(["src/a.txt", 9, "text"])),
        ("gg]x<CR>", json!(["src/a.txt", 9, "text"])),
    ] {
        editor.input(keys);
        editor.wait_until(&format!("{wanted} after {keys}"), |e| place(e) == wanted);
        let now = editor.lua("return vim.api.nvim_get_current_win()", json!([]));
        assert_ne!(now, chat, "not in the chat's window");
        editor.lua("vim.api.nvim_set_current_win(...)", json!([chat]));
        assert_eq!(place(&editor)[2], "agentchat");
    }
    editor.input("gggf");
    editor.wait_until("it says that there is none", |e| e.messages().contains("no file under the cursor"));
}

#[test]
fn a_place_opens_a_window_when_there_are_only_the_chats() {
    let (editor, _agent) = in_transcript(Setup::new(), conversation());
    editor.command("only");
    editor.wait_until("both windows of the chat are back", |e| {
        e.lua("return #vim.api.nvim_tabpage_list_wins(0)", json!([])) == json!(2)
    });
    editor.input("gg]x<CR>");
    editor.wait_until("the file", |e| place(e) == json!(["src/a.txt", 9, "text"]));
    let windows = editor.lua("return #vim.api.nvim_tabpage_list_wins(0)", json!([]));
    assert_eq!(windows, 3);
}

#[test]
fn k_shows_all_of_a_tool_call() {
    let (editor, _agent) = in_transcript(Setup::new(), conversation());
    editor.input("gg]xK");
    editor.wait_screen("\"command\": \"make\"");
    let screen = editor.wait_screen("good");
    assert!(screen.contains("\"deep\": [") && screen.contains("not a message"), "{screen}");
    editor.input("q");
    editor.wait_until("it is closed", |e| place(e)[2] == "agentchat");
    editor.input("ggK");
    editor.wait_until("it says that there is none", |e| e.messages().contains("no tool call under the cursor"));
}

#[test]
fn much_of_a_tool_call_comes_in_pieces() {
    let output: String = (0..50_000).map(|number| format!("number {number}\n")).collect();
    let steps = [
        tool_call("t", "Run", "execute"),
        tool_update("t", json!({ "status": "completed", "rawOutput": output })),
        end_turn(),
    ];
    let (editor, _agent) = in_transcript(Setup::new(), steps);
    let ((), delay) = editor.rtt(|e| {
        e.input("gg]xK");
        e.wait_until("its end", |e| {
            e.lua("return vim.api.nvim_buf_get_lines(0, -2, -1, true)[1]", json!([])) == json!("number 49999")
        });
    });
    assert!(delay.max.as_millis() < 1_000, "a key waited {:?}", delay.max);
}

#[test]
fn links_are_opened_by_the_system() {
    let setup = Setup::new().init("vim.ui.open = function(link) vim.g.opened = link end");
    let (editor, _agent) = in_transcript(setup, conversation());
    for keys in ["gg/docs<CR>gx", "gg/https<CR>gx"] {
        editor.lua("vim.g.opened = nil", json!([]));
        editor.input(keys);
        editor.wait_until(&format!("the link after {keys}"), |e| {
            e.lua("return vim.g.opened", json!([])) == json!("https://example.com/x")
        });
    }
}

#[test]
fn the_keys_are_shown_and_shadow_no_default() {
    let (editor, _agent) = in_transcript(Setup::new(), conversation());
    editor.input("g?");
    let screen = editor.wait_screen("Next tool call");
    assert!(screen.contains("In the prompt"), "{screen}");
    editor.input("q");
    let shadowed = editor.lua(
        "local shadowed = {}
        for _, mode in ipairs({ 'n', 'x', 'o' }) do
          local defaults = {}
          for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do defaults[map.lhs] = true end
          for _, map in ipairs(vim.api.nvim_buf_get_keymap(0, mode)) do
            -- These go on doing what they do everywhere, for what a transcript has.
            local kept = { gx = true, ['<CR>'] = true }
            if defaults[map.lhs] and not kept[map.lhs] then shadowed[#shadowed + 1] = map.lhs end
          end
        end
        return shadowed",
        json!([]),
    );
    assert_eq!(shadowed, json!([]));
}

#[test]
fn a_conversation_is_exported_and_no_file_is_replaced_unasked() {
    let (editor, _agent) = in_transcript(Setup::new().file("there.md", "mine\n"), conversation());
    editor.command("AgentChat export there.md");
    editor.wait_until("it is refused", |e| e.messages().contains("there.md exists"));
    assert_eq!(editor.file("there.md").as_deref(), Some(&b"mine\n"[..]));
    editor.command("AgentChat! export there.md");
    editor.wait_until("it is written", |e| e.messages().contains("The conversation is in"));
    let written = String::from_utf8(editor.file("there.md").unwrap()).unwrap();
    for part in ["# Conversation with scripted", "## You\n\nprompt 1\n", "```lua\nlocal a = 1", "second answer"] {
        assert!(written.contains(part), "{part:?} in {written}");
    }
    editor.command("AgentChat export");
    editor.wait_until("a file with the time in its name", |e| {
        let names = std::fs::read_dir(e.project()).unwrap().map(|file| file.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("agentchat-")).count() == 1
    });
}
