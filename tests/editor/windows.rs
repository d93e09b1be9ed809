//! The chat's windows and buffers: where they open, what the user may do to them, what a stream leaves alone.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::chat::{self, enter, enter_code, prompt_text, prompts, wait_prompt_text, window, windows};
use crate::support::scenario::{Scenario, chunk, end_turn, tool_call, update};
use crate::support::{Editor, Setup};

#[test]
fn the_chat_opens_on_the_right() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new().size(120, 40));
    let transcript = window(&editor, "agentchat").unwrap();
    let prompt = window(&editor, "agentchat_prompt").unwrap();
    assert_eq!((transcript.width, prompt.width), (48, 48), "40 % of 120");
    assert_eq!((transcript.column, prompt.column), (72, 72));
    assert_eq!(prompt.height, 3);
    assert!(prompt.row > transcript.row && prompt.current);
    assert_eq!(editor.screen().mode(), "normal");
}

#[test]
fn on_a_narrow_screen_the_chat_opens_below() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new().size(90, 40));
    let transcript = window(&editor, "agentchat").unwrap();
    assert_eq!((transcript.width, transcript.column), (90, 0));
    assert!(transcript.row > 5);
}

#[test]
fn the_prompt_grows_with_its_text_up_to_a_bound() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    let height = |e: &Editor| window(e, "agentchat_prompt").unwrap().height;
    editor.input("i1<CR>2<CR>3<CR>4<CR>5");
    editor.wait_until("five lines", |e| height(e) == 5);
    editor.input("<CR>6<CR>7<CR>8<CR>9<CR>10<CR>11<CR>12");
    editor.wait_until("ten lines", |e| height(e) == 10);
    editor.input("<Esc>ggdG");
    editor.wait_until("three lines", |e| height(e) == 3);
}

#[test]
fn the_other_windows_keep_their_sizes() {
    let (_agent, editor) = chat::start(&Scenario::new(), Setup::new());
    editor.command("set equalalways | split | resize 6 | vsplit | vertical resize 30");
    let sizes = |e: &Editor| e.lua("return vim.fn.winrestcmd()", json!([]));
    let heights = |e: &Editor| {
        let code = windows(e).into_iter().filter(|window| !window.filetype.starts_with("agentchat"));
        code.map(|window| window.height).collect::<Vec<_>>()
    };
    let (before, heights_before) = (sizes(&editor), heights(&editor));
    editor.command("AgentChat");
    assert_eq!(heights(&editor), heights_before);
    enter_code(&editor);
    editor.command("AgentChat close");
    assert_eq!(sizes(&editor), before);
    assert_eq!(editor.lua("return vim.o.equalalways", json!([])), json!(true));
}

#[test]
fn q_in_either_window_closes_both() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    for filetype in ["agentchat_prompt", "agentchat"] {
        enter(&editor, filetype);
        editor.input(":q<CR>");
        editor.wait_until("only the code's window", |e| {
            windows(e).iter().map(|window| window.filetype.as_str()).eq([""])
        });
        assert_eq!(editor.state(), "idle", "the session goes on");
        editor.command("AgentChat");
        assert!(chat::is_open(&editor));
    }
}

#[test]
fn q_quits_when_only_the_chat_is_left() {
    for filetype in ["agentchat_prompt", "agentchat"] {
        let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
        enter_code(&editor);
        editor.input(":q<CR>");
        editor.wait_until("the chat alone", |e| windows(e).len() == 2 && chat::is_open(e));
        enter(&editor, filetype);
        editor.input(":q<CR>");
        editor.wait_gone(Duration::from_secs(10));
    }
}

#[test]
fn closing_the_chat_when_it_is_alone_leaves_a_window() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new().file("a.txt", "text of a\n").arg("a.txt"));
    enter_code(&editor);
    editor.input(":q<CR>");
    editor.wait_until("the chat alone", |e| windows(e).len() == 2 && chat::is_open(e));
    editor.command("AgentChat close");
    editor.wait_until("a window without the chat", |e| {
        windows(e).len() == 1 && !windows(e)[0].filetype.starts_with("agentchat")
    });
    editor.command("AgentChat");
    assert!(chat::is_open(&editor));
}

#[test]
fn a_file_opened_from_a_chat_window_goes_to_a_normal_one() {
    let setup = Setup::new().file("a.txt", "text of a\n").file("b.txt", "text of b\n").arg("a.txt");
    let (_agent, editor) = chat::open(&Scenario::new(), setup);
    editor.input("idraft<Esc>");
    wait_prompt_text(&editor, "draft");
    for filetype in ["agentchat_prompt", "agentchat"] {
        enter(&editor, filetype);
        editor.input(":edit b.txt<CR>");
        editor.wait_until("the file in the normal window", |e| {
            let current = windows(e).into_iter().find(|window| window.current).unwrap();
            windows(e).len() == 3 && chat::is_open(e) && current.column == 0
        });
        editor.wait_screen("text of b");
        assert_eq!(prompt_text(&editor), "draft");
        editor.input(":edit a.txt<CR>");
        editor.wait_screen("text of a");
    }
}

#[test]
fn only_keeps_the_chat_whole() {
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.input(":only<CR>");
    editor.wait_until("the chat alone and whole", |e| windows(e).len() == 2 && chat::is_open(e));
    enter(&editor, "agentchat");
    editor.input(":only<CR>");
    editor.wait_until("the chat alone and whole", |e| windows(e).len() == 2 && chat::is_open(e));
}

#[test]
fn two_chats_in_two_tab_pages_are_apart() {
    let scenario = Scenario::new().on_prompt([chunk("of $session"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("one");
    editor.wait_transcript("of session-1.1");
    editor.command("tabnew");
    assert_eq!(editor.state(), "stopped", "this tab page has no chat yet");
    editor.command("AgentChat");
    editor.prompt("two");
    editor.wait_transcript("of session-1.2");
    assert!(editor.transcript().iter().any(|line| line.contains("of session-1.2")));
    assert!(!editor.transcript().iter().any(|line| line.contains("of session-1.1")));
    editor.command("tabfirst");
    assert!(editor.transcript().iter().any(|line| line.contains("of session-1.1")));
    editor.prompt("three");
    agent.wait_received("session/prompt", 3);
    let sessions: Vec<Json> =
        agent.received("session/prompt").iter().map(|prompt| prompt["params"]["sessionId"].clone()).collect();
    assert_eq!(sessions, [json!("session-1.1"), json!("session-1.2"), json!("session-1.1")]);
}

#[test]
fn a_session_file_brings_the_chat_back() {
    let scenario = Scenario::new().on_prompt([chunk("a reply"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new().file("a.txt", "text of a\n").arg("a.txt"));
    editor.prompt("one");
    editor.wait_transcript("a reply");
    editor.input("iunsent<Esc>");
    wait_prompt_text(&editor, "unsent");
    editor.command("mksession s.vim");
    editor.command("source s.vim");
    editor.wait_until("the same chat", |e| chat::is_open(e) && windows(e).len() == 3);
    editor.wait_transcript("a reply");
    assert_eq!(prompt_text(&editor), "unsent");
    editor.prompt("two");
    editor.wait_transcript("two");
    agent.wait_received("session/prompt", 2);
    assert_eq!(agent.pids().len(), 1, "the running session is the one that is shown");

    let editor = editor.restart();
    editor.command("source s.vim");
    editor.wait_until("the windows", |e| chat::is_open(e) && windows(e).len() == 3);
    editor.wait_screen("text of a");
    assert_eq!(prompt_text(&editor), "unsent");
    // The agent cannot open its sessions again: what was said is kept here, and goes along.
    editor.wait_transcript("cannot open earlier sessions");
    editor.wait_transcript("a reply");
    enter(&editor, "agentchat_prompt");
    editor.input("<CR>");
    let sent = agent.wait_received("session/prompt", 3)["params"]["prompt"].clone();
    assert!(sent[0]["text"].as_str().is_some_and(|text| text.contains("one") && text.contains("two")), "{sent}");
    assert_eq!(sent[1]["text"], json!("unsent"));
    enter(&editor, "agentchat_prompt");
    editor.input(":q<CR>");
    editor.wait_until("only the code's window", |e| windows(e).len() == 1);
}

#[test]
fn the_filetype_is_set_before_the_window_opens() {
    let init = r#"
    _G.seen = {}
    vim.api.nvim_create_autocmd({ "BufWinEnter", "WinNew" }, { callback = function(event)
      if vim.api.nvim_buf_get_name(event.buf):find("agentchat://", 1, true) then
        table.insert(_G.seen, vim.bo[event.buf].filetype)
      end
    end })
    "#;
    let (_agent, editor) = chat::open(&Scenario::new(), Setup::new().init(init));
    let seen = editor.lua("return _G.seen", json!([]));
    let seen = seen.as_array().unwrap();
    assert!(
        !seen.is_empty() && seen.iter().all(|filetype| filetype.as_str().unwrap().starts_with("agentchat")),
        "{seen:?}"
    );
}

#[test]
fn a_prompt_by_command_leaves_the_user_where_they_are() {
    let (agent, editor) = chat::start(&Scenario::new(), Setup::new().file("a.txt", "text of a\n").arg("a.txt"));
    let before = windows(&editor).into_iter().find(|window| window.current).unwrap().id;
    editor.input(":AgentChat prompt do it<CR>");
    agent.wait_received("session/prompt", 1);
    assert!(chat::is_open(&editor));
    assert_eq!(windows(&editor).into_iter().find(|window| window.current).unwrap().id, before);
    assert_eq!(prompts(&agent), ["do it"]);
}

#[test]
fn what_an_agent_calls_itself_cannot_run_code_in_the_bar() {
    let title = "50% %{execute('let g:ran = 1')} %#Error# \u{1b}[31m\nend";
    let scenario = Scenario::new()
        .on_prompt([update(json!({ "sessionUpdate": "session_info_update", "title": title })), end_turn()]);
    let (_agent, editor) = chat::open(&scenario, Setup::new().size(200, 40));
    editor.prompt("go");
    editor.wait_until("the title in the bar", |e| chat::winbar(e).contains("50% %{execute("));
    assert!(chat::winbar(&editor).contains("%#Error#"));
    editor.command("redraw!");
    assert_eq!(editor.lua("return vim.g.ran == nil", json!([])), json!(true));
}

#[test]
fn on_a_tiny_screen_the_chat_opens_or_says_that_it_cannot() {
    for (columns, rows) in [(20, 6), (12, 12), (30, 10)] {
        let (agent, editor) = chat::start(&Scenario::new(), Setup::new().size(columns, rows));
        editor.input(":AgentChat<CR>");
        editor.wait_until("the chat, or a message", |e| {
            !e.is_blocked() && (chat::is_open(e) || e.messages().contains("agentch"))
        });
        editor.prompt("go");
        agent.wait_received("session/prompt", 1);
        editor.input(":AgentChat close<CR>");
        editor.wait_until("one window", |e| windows(e).len() == 1);
    }
}

#[test]
fn options_of_the_user_do_not_upset_the_layout() {
    let init =
        "vim.cmd('set winheight=20 winwidth=80 nohidden splitbelow splitright autochdir number wrap cursorbind')";
    let setup = Setup::new().init(init).file("a.txt", "text of a\n").arg("a.txt");
    let (_agent, editor) = chat::open(&Scenario::new(), setup);
    assert!(chat::is_open(&editor));
    editor.input("idraft<Esc>");
    wait_prompt_text(&editor, "draft");
    enter_code(&editor);
    enter(&editor, "agentchat_prompt");
    editor.input(":edit a.txt<CR>");
    editor.wait_until("the file in the normal window", |e| {
        chat::is_open(e) && windows(e).iter().any(|window| window.current && window.column == 0)
    });
    assert_eq!(prompt_text(&editor), "draft");
    enter(&editor, "agentchat_prompt");
    editor.input(":q<CR>");
    editor.wait_until("only the code's window", |e| windows(e).len() == 1);
    editor.command("AgentChat");
    assert_eq!(prompt_text(&editor), "draft");
}

#[test]
fn autocommands_of_the_user_that_fail_or_close_the_chat_cost_nothing() {
    let init = r#"
    vim.api.nvim_create_autocmd("User", { pattern = "AgentChatTurnStart", callback = function() error("mine") end })
    vim.api.nvim_create_autocmd("User", { pattern = "AgentChatToolCall", command = "AgentChat close" })
    "#;
    let scenario =
        Scenario::new().on_prompt([chunk("before\n"), tool_call("t1", "Call", "read"), chunk("after\n"), end_turn()]);
    let (_agent, editor) = chat::open(&scenario, Setup::new().init(init));
    editor.lua("pcall(require('agentchat').prompt, 'go')", json!([]));
    editor.wait_until("the user's error at a hit-enter prompt", Editor::is_blocked);
    editor.input("<CR>");
    editor.wait_until("the end of the turn", |e| !e.events("AgentChatTurnEnd").is_empty());
    editor.wait_until("the closed windows", |e| windows(e).len() == 1);
    editor.command("AgentChat open");
    editor.wait_until("the chat", chat::is_open);
    editor.wait_transcript("before");
    editor.wait_transcript("after");
}

#[test]
fn a_session_file_with_two_tab_pages_brings_both_chats_back() {
    let scenario = Scenario::new().on_prompt([chunk("of $session"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.input("ifirst draft<Esc>");
    wait_prompt_text(&editor, "first draft");
    editor.command("tabnew");
    editor.command("AgentChat");
    editor.input("isecond draft<Esc>");
    wait_prompt_text(&editor, "second draft");
    editor.command("mksession s.vim");
    let editor = editor.restart();
    editor.command("source s.vim");
    let mut drafts = Vec::new();
    for tab in ["tabfirst", "tablast"] {
        editor.command(tab);
        editor.wait_until("the chat", |e| chat::is_open(e) && windows(e).len() == 3);
        drafts.push(prompt_text(&editor));
        enter(&editor, "agentchat_prompt");
        editor.input("<CR>");
        editor.wait_until("the reply", |e| e.transcript().iter().any(|line| line.contains("of session")));
    }
    drafts.sort();
    assert_eq!(drafts, ["first draft", "second draft"]);
    let mut sent = prompts(&agent);
    sent.sort();
    assert_eq!(sent, ["first draft", "second draft"]);
}
