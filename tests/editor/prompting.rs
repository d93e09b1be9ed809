//! The prompt: sending, history, the queue, drafts.

use serde_json::json;

use crate::chat::{self, prompt_text, prompts, wait_prompt_text, winbar};
use crate::support::Setup;
use crate::support::scenario::{
    Scenario, ask_permission, chunk, end_turn, exit, gate, stop, tool_call, tool_status, update, write_file,
};

#[test]
fn several_lines_are_sent_as_typed_by_either_key() {
    let (agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.input("ifirst line<CR><CR>  third: 完了 <lt>tag><Esc>");
    wait_prompt_text(&editor, "first line\n\n  third: 完了 <tag>");
    editor.input("<CR>");
    agent.wait_received("session/prompt", 1);
    wait_prompt_text(&editor, "");
    editor.wait_transcript("third: 完了 <tag>");
    editor.input("iwhile inserting<C-s>");
    agent.wait_received("session/prompt", 2);
    editor.wait_until("insert mode kept", |e| e.screen().mode() == "insert");
    editor.input("<Esc>ifrom normal mode<Esc><C-s>");
    agent.wait_received("session/prompt", 3);
    assert_eq!(prompts(&agent), ["first line\n\n  third: 完了 <tag>", "while inserting", "from normal mode"]);
}

#[test]
fn an_empty_prompt_is_not_sent() {
    let (agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.input("i  <CR> <C-s><Esc><CR>");
    editor.prompt("the only one");
    agent.wait_received("session/prompt", 1);
    assert_eq!(prompts(&agent), ["the only one"]);
}

#[test]
fn the_history_is_at_the_ends_of_the_prompt() {
    let (agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.input("iolder<C-s>");
    agent.wait_received("session/prompt", 1);
    editor.input("newer<CR>with two lines<C-s>");
    agent.wait_received("session/prompt", 2);
    editor.wait_state("idle");
    editor.input("draft<Esc>");
    wait_prompt_text(&editor, "draft");
    editor.input("<C-p>");
    wait_prompt_text(&editor, "newer\nwith two lines");
    editor.input("<C-p>");
    editor.wait_until("one line up, as always", |e| {
        e.lua("return vim.api.nvim_win_get_cursor(0)[1]", json!([])) == json!(1)
    });
    assert_eq!(prompt_text(&editor), "newer\nwith two lines");
    editor.input("<C-p>");
    wait_prompt_text(&editor, "older");
    editor.input("<C-p>");
    editor.input("<C-n>");
    wait_prompt_text(&editor, "newer\nwith two lines");
    editor.input("G<C-n>");
    wait_prompt_text(&editor, "draft");
    editor.input("<C-n>");
    assert_eq!(prompt_text(&editor), "draft");
}

#[test]
fn a_queued_prompt_is_shown_and_taken_back() {
    let scenario = Scenario::new().on_prompt([chunk("busy"), gate("go"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.input("ione<C-s>");
    editor.wait_transcript("busy");
    editor.input("two<C-s>three<C-s>");
    editor.wait_until("the queue in the bar", |e| winbar(e).contains("2 queued"));
    editor.wait_until("the queue on the screen", |e| e.screen().contains("two") && e.screen().contains("three"));
    editor.input("<C-p>");
    wait_prompt_text(&editor, "three");
    editor.wait_until("one less in the bar", |e| winbar(e).contains("1 queued"));
    agent.open_gate("go");
    agent.wait_received("session/prompt", 2);
    editor.wait_state("idle");
    assert_eq!(prompts(&agent), ["one", "two"]);
    assert_eq!(prompt_text(&editor), "three");
}

#[test]
fn prompts_sent_while_a_turn_runs_come_one_after_the_other() {
    let scenario = Scenario::new()
        .on_prompt([gate("first"), end_turn()])
        .on_prompt([gate("second"), end_turn()])
        .on_prompt([chunk("third turn"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    for text in ["one", "two", "three"] {
        editor.prompt(text);
    }
    agent.wait_gate("first");
    assert_eq!(prompts(&agent), ["one"]);
    agent.open_gate("first");
    agent.wait_gate("second");
    assert_eq!(prompts(&agent), ["one", "two"]);
    agent.open_gate("second");
    editor.wait_transcript("third turn");
    assert_eq!(prompts(&agent), ["one", "two", "three"]);
}

#[test]
fn a_draft_survives_closing_and_quitting_and_is_gone_once_it_is_sent() {
    let (agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.input("inot sent<CR>yet<Esc>");
    wait_prompt_text(&editor, "not sent\nyet");
    editor.command("AgentChat close");
    assert!(!chat::is_open(&editor));
    editor.command("AgentChat");
    assert_eq!(prompt_text(&editor), "not sent\nyet");
    editor.input(":wqa<CR>");
    editor.wait_until("the end of Neovim", |e| {
        let own = i32::try_from(e.pid()).unwrap();
        e.processes().iter().all(|process| process.pid != own)
    });
    let editor = editor.restart();
    editor.command("AgentChat");
    assert_eq!(prompt_text(&editor), "not sent\nyet");
    editor.input("<CR>");
    agent.wait_received("session/prompt", 1);
    assert_eq!(prompts(&agent), ["not sent\nyet"]);
    editor.wait_until("the end of the turn", |e| !e.events("AgentChatTurnEnd").is_empty());
    let editor = editor.restart();
    editor.command("AgentChat");
    assert_eq!(prompt_text(&editor), "");
}

#[test]
fn a_draft_survives_a_killed_neovim() {
    let (_agent, mut editor) = chat::open(&Scenario::new(), Setup::new());
    editor.input("ifinished line<Esc>");
    wait_prompt_text(&editor, "finished line");
    editor.wait_until("the draft on disk", |e| {
        let drafts = e.xdg("state").join("agentchat/drafts");
        std::fs::read_dir(drafts).is_ok_and(|entries| entries.count() == 1)
    });
    editor.kill9();
    let editor = editor.restart();
    editor.command("AgentChat");
    assert_eq!(prompt_text(&editor), "finished line");
}

#[test]
fn a_range_goes_along_with_the_prompt() {
    let setup = Setup::new().file("a.lua", "one\ntwo ```\nthree\n").arg("a.lua");
    let (agent, editor) = chat::open(&Scenario::new(), setup);
    chat::enter_code(&editor);
    editor.command("2,3AgentChat prompt explain");
    let sent = agent.wait_received("session/prompt", 1);
    assert_eq!(sent["params"]["prompt"][0]["text"], json!("explain"));
    let context = sent["params"]["prompt"][1]["text"].as_str().unwrap().to_owned();
    assert!(context.contains("a.lua") && context.contains("two ```\nthree"), "{context}");
    assert!(!context.contains("one"), "{context}");
}

#[test]
fn events_come_with_their_data_and_the_status_has_the_fields() {
    let scenario = Scenario::new().on_prompt([
        update(json!({ "sessionUpdate": "session_info_update", "title": "A title" })),
        update(json!({ "sessionUpdate": "usage_update", "used": 1200, "size": 200_000 })),
        tool_call("t1", "Read a file", "read"),
        tool_status("t1", "completed"),
        write_file("new.txt", "text\n"),
        ask_permission("t2", "Run it"),
        stop("refusal"),
    ]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    assert_eq!(editor.events("AgentChatSessionStart"), [json!({ "chat": 1, "session_id": "session-1.1" })]);
    editor.prompt("go");
    editor.wait_until("the request", |e| !e.events("AgentChatPermission").is_empty());
    editor.wait_until("the count in the status", |e| e.status()["permissions"] == json!(1));
    let status = editor.status();
    assert_eq!(status["state"], json!("running"));
    assert_eq!(status["agent"], json!("scripted"));
    assert_eq!(status["title"], json!("A title"));
    assert_eq!(status["session_id"], json!("session-1.1"));
    assert_eq!((&status["usage"]["used"], &status["usage"]["size"]), (&json!(1200), &json!(200_000)));
    assert_eq!((&status["changes"], &status["terminals"]), (&json!(1), &json!(0)), "the hunk of the new file");
    assert_eq!(status["follow"], json!("off"));
    editor.lua("require('agentchat').respond('reject_once')", json!([]));
    editor.wait_state("idle");
    assert_eq!(editor.events("AgentChatTurnStart"), [json!({ "chat": 1, "turn": 1 })]);
    let calls = editor.events("AgentChatToolCall");
    assert_eq!(calls[0], json!({ "chat": 1, "tool_call_id": "t1", "status": "pending" }));
    assert_eq!(calls[1], json!({ "chat": 1, "tool_call_id": "t1", "status": "completed" }));
    let request = editor.events("AgentChatPermission")[0]["request"].clone();
    assert_eq!(
        editor.events("AgentChatPermissionResolved"),
        [json!({ "chat": 1, "request": request, "option": "reject_once" })]
    );
    let path = editor.project().canonicalize().unwrap().join("new.txt");
    assert_eq!(editor.events("AgentChatFileChanged"), [json!({ "chat": 1, "path": path })]);
    assert_eq!(editor.events("AgentChatTurnEnd"), [json!({ "chat": 1, "stop_reason": "refusal" })]);
    editor.wait_transcript("Refused");
    assert!(agent.unanswered().is_empty() && agent.stray_answers().is_empty());
}

#[test]
fn a_queued_prompt_survives_quitting() {
    let scenario = Scenario::new().on_prompt([chunk("busy"), gate("never")]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.input("ione<C-s>");
    editor.wait_transcript("busy");
    editor.input("queued one<C-s>queued two<C-s>");
    editor.wait_until("the queue in the bar", |e| winbar(e).contains("2 queued"));
    editor.input("draft<Esc>");
    wait_prompt_text(&editor, "draft");
    let editor = editor.restart();
    editor.command("AgentChat");
    assert_eq!(prompt_text(&editor), "draft\nqueued one\nqueued two");
    assert_eq!(prompts(&agent), ["one"]);
}

#[test]
fn a_prompt_to_an_agent_that_died_starts_it_again() {
    let scenario = Scenario::new().on_prompt([chunk("reply to it"), end_turn()]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    crate::support::processes::kill9(agent.pids()[0]);
    editor.wait_state("failed");
    editor.input("iagain<C-s>");
    editor.wait_transcript("reply to it");
    assert_eq!(prompts(&agent), ["again"]);
    assert_eq!(agent.pids().len(), 2);
}

#[test]
fn a_prompt_to_an_agent_that_always_dies_can_be_taken_back() {
    let (agent, editor) = chat::start(&Scenario::new().on_start([exit(1)]), Setup::new());
    editor.command("AgentChat");
    editor.wait_state("failed");
    editor.input("iprecious<C-s>");
    editor.wait_until("another try", |_| agent.pids().len() == 2);
    editor.wait_state("failed");
    editor.wait_until("the queued prompt", |e| winbar(e).contains("1 queued"));
    editor.input("<C-p>");
    wait_prompt_text(&editor, "precious");
}

#[test]
fn bytes_that_are_no_text_do_not_lose_the_prompt() {
    let (agent, editor) = chat::open(&Scenario::new(), Setup::new());
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'before \\xff after', 'nul \\0 too' })", json!([]));
    editor.input("<C-s>");
    agent.wait_received("session/prompt", 1);
    let sent = prompts(&agent).remove(0);
    assert!(sent.starts_with("before ") && sent.contains(" after\nnul "), "{sent:?}");
}
