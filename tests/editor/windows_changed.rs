//! The chat's windows after the user moved, split, fixed or closed them.

use serde_json::{Value as Json, json};

use crate::chat::{self, enter, enter_code, window, windows};
use crate::support::scenario::Scenario;
use crate::support::{Editor, Setup};

#[track_caller]
fn command_height(editor: &Editor) -> Json {
    editor.lua("vim.cmd.redraw() return vim.o.cmdheight", json!([]))
}

/// Types keys, and waits until Neovim has done them and looked after its windows.
#[track_caller]
fn done(editor: &Editor, keys: &str) {
    // Windows are resized only when Neovim waits for the next key.
    editor.input(keys);
    editor.input(":let g:done = 1<CR>");
    editor.wait_until("the end of the keys", |e| e.lua("return vim.g.done", json!([])) == json!(1));
    editor.command("unlet g:done");
    editor.screen();
}

#[test]
fn the_prompt_moved_to_a_side_leaves_the_command_line_its_height() {
    for key in ["H", "L", "K", "J"] {
        let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
        enter(&editor, "agentchat_prompt");
        done(&editor, &format!("<C-w>{key}"));
        assert_eq!(command_height(&editor), json!(1), "after <C-w>{key}\n{}", editor.screen());
        editor.input("i1<CR>2<CR>3<CR>4<CR>5<Esc>");
        editor.wait_screen("5");
        assert_eq!(command_height(&editor), json!(1), "after <C-w>{key} and typing\n{}", editor.screen());
        editor.command("AgentChat close");
        assert_eq!(command_height(&editor), json!(1), "after <C-w>{key} and closing");
    }
}

#[test]
fn the_chat_gets_its_share_beside_a_narrow_window() {
    let (_agent, editor) = chat::start(&Scenario::new(), Setup::new().size(160, 40));
    editor.command("set noequalalways | vsplit | wincmd l | vertical resize 30");
    editor.command("AgentChat");
    assert_eq!(window(&editor, "agentchat").unwrap().width, 64, "40 % of 160");
}

#[test]
fn a_split_of_the_prompt_that_is_closed_leaves_the_widths() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new().size(160, 40));
    let widths = |e: &Editor| windows(e).into_iter().map(|window| window.width).collect::<Vec<_>>();
    let before = widths(&editor);
    enter(&editor, "agentchat_prompt");
    for command in ["vsplit", "split"] {
        done(&editor, &format!(":{command}<CR>"));
        done(&editor, ":q<CR>");
        editor.wait_until(&format!("the widths {before:?} again after :{command}"), |e| widths(e) == before);
        assert_eq!(command_height(&editor), json!(1));
    }
}

#[test]
fn closing_the_chat_while_typing_does_not_type_into_a_file() {
    let init = "
    vim.keymap.set({ 'n', 'i' }, '<F2>', '<Cmd>AgentChat<CR>')
    vim.keymap.set({ 'n', 'i' }, '<F3>', '<Cmd>quit<CR>')
    ";
    for key in ["<F2>", "<F3>", "<C-o>:AgentChat<CR>", "<C-o>:q<CR>"] {
        let (_agent, editor) = chat::open(&Scenario::new(), Setup::new().init(init));
        editor.input(&format!("ihalf a{key}dd"));
        editor.wait_until("the closed chat", |e| !chat::is_open(e));
        editor.wait_until("normal mode", |e| e.screen().mode() == "normal");
        assert_eq!(editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)", json!([])), json!([""]));
    }
}

#[test]
fn windows_that_the_user_fixed_show_another_chat_all_the_same() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.command("windo set winfixbuf");
    enter(&editor, "agentchat_prompt");
    editor.command("AgentChat new");
    editor.wait_state("idle");
    editor.prompt("hello");
    editor.wait_transcript("hello");
    assert_eq!(editor.lua("return vim.fn.bufname()", json!([])), json!("agentchat://prompt/2"));
    assert_eq!(editor.lua("return vim.wo.winfixbuf", json!([])), json!(true));
    enter_code(&editor);
    editor.command("AgentChat close");
    assert!(!chat::is_open(&editor), "it still obeys");
    editor.command("AgentChat");
    assert!(chat::is_open(&editor));
}

#[test]
fn an_error_while_a_window_changes_does_not_end_the_care_for_them() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.lua("_G.put = require('agentchat.windows').put require('agentchat.windows').put = error", json!([]));
    editor.command("AgentChat new");
    editor.wait_until("a message", |e| e.messages().contains("cannot be shown here"));
    editor.lua("require('agentchat.windows').put = _G.put", json!([]));
    editor.command("AgentChat close");
    assert!(!chat::is_open(&editor));
}

#[test]
fn a_file_opened_from_the_prompt_without_hidden_buffers_costs_no_text() {
    let setup = Setup::new().file("a.txt", "text of a\n").file("b.txt", "text of b\n").arg("a.txt");
    let init = "
    vim.o.hidden = false
    vim.g.unloaded = 0
    vim.api.nvim_create_autocmd('BufUnload', { pattern = 'b.txt', command = 'let g:unloaded += 1' })
    ";
    let (_agent, editor) = chat::open(&Scenario::new(), setup.init(init));
    enter_code(&editor);
    editor.input("omine<Esc>");
    editor.wait_screen("mine");
    enter(&editor, "agentchat_prompt");
    editor.input("idraft<Esc>");
    done(&editor, ":edit +normal\\ oyours b.txt<CR>");
    editor.wait_until("the file beside the chat", |e| {
        let current = windows(e).into_iter().find(|window| window.current).unwrap();
        chat::is_open(e) && !current.filetype.starts_with("agentchat")
    });
    assert_eq!(editor.lua("return vim.fn.expand('%:t')", json!([])), json!("b.txt"));
    assert_eq!(chat::prompt_text(&editor), "draft");
    let lines =
        |name: &str| editor.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, true)", json!([name]));
    assert_eq!(lines("a.txt"), json!(["text of a", "mine"]));
    assert_eq!(lines("b.txt"), json!(["text of b", "yours"]));
    assert_eq!(editor.lua("return vim.g.unloaded", json!([])), json!(0));
    assert!(!editor.messages().contains("E37"), "{}", editor.messages());
}

#[test]
fn a_session_file_is_loaded_without_a_question() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.command("mksession s.vim");
    let editor = editor.restart();
    let before = editor.lua("return vim.o.shortmess", json!([]));
    done(&editor, ":source s.vim<CR>");
    assert!(chat::is_open(&editor));
    assert!(!editor.messages().contains("No lines"), "{}", editor.messages());
    assert_eq!(editor.lua("return vim.o.shortmess", json!([])), before);
}
