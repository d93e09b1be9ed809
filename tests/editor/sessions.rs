//! Sessions from before: kept, listed, opened again, forked, deleted; and what is left of one when an agent dies.

use serde_json::{Value as Json, json};

use crate::chat;
use crate::support::scenario::{
    Scenario, Step, chunk, die, end_turn, gate, initialized, plan, reply, reply_error, thought, tool_call, tool_status,
    update,
};
use crate::support::{Editor, ScriptedAgent, Setup, processes};

/// Keeps what `vim.ui.select` offers, in place of asking.
const SELECT: &str = r"
vim.ui.select = function(items, opts, choose)
  _G.offered = vim.tbl_map(opts.format_item or tostring, items)
  _G.choose = function(nth) choose(items[nth], nth) end
end
";

fn said_by_user(text: &str) -> Step {
    update(json!({ "sessionUpdate": "user_message_chunk", "content": { "type": "text", "text": text } }))
}

fn setup() -> Setup {
    Setup::new().init(SELECT)
}

/// Opens the picker and gives the lines that it offers.
#[track_caller]
fn pick(editor: &Editor) -> Vec<String> {
    editor.lua("_G.offered = nil", json!([]));
    editor.command("AgentChat sessions");
    editor.wait("the sessions", |e| {
        let offered = e.lua("return _G.offered", json!([]));
        offered.as_array().map(|lines| lines.iter().filter_map(Json::as_str).map(str::to_owned).collect())
    })
}

#[track_caller]
fn choose(editor: &Editor, offered: &[String], wanted: &str) {
    let found = offered.iter().position(|line| line.contains(wanted));
    let nth = found.unwrap_or_else(|| panic!("{wanted} in {offered:#?}"));
    editor.lua("_G.choose(...)", json!([nth + 1]));
}

#[track_caller]
fn wait_turn_end(editor: &Editor, count: usize) {
    editor.wait_until("the turn's end", |e| e.events("AgentChatTurnEnd").len() == count);
}

/// A turn in a first Neovim, which is then started again.
#[track_caller]
fn talked_before(scenario: &Scenario) -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::open(scenario, setup());
    editor.prompt("build the house");
    wait_turn_end(&editor, 1);
    (agent, editor.restart())
}

fn house(capabilities: Json) -> Scenario {
    Scenario::new().on_initialize([initialized(capabilities)]).on_prompt([
        thought("how high?\n"),
        tool_call("t1", "Lay bricks", "execute"),
        tool_status("t1", "completed"),
        plan(&[("roof", "pending")]),
        chunk("It stands.\n"),
        end_turn(),
    ])
}

#[test]
fn a_session_is_loaded_again_after_a_restart_and_its_history_comes_from_the_agent() {
    let scenario = house(json!({ "loadSession": true })).on(
        "session/load",
        [
            said_by_user("build the house"),
            thought("how high?\n"),
            tool_call("t1", "Lay bricks", "execute"),
            plan(&[("roof", "completed")]),
            chunk("It stands, says the agent."),
            reply(Json::Null),
        ],
    );
    let (agent, editor) = talked_before(&scenario);
    let offered = pick(&editor);
    assert_eq!(offered.len(), 1, "{offered:#?}");
    for part in ["build the house", "scripted", "now", "It stands."] {
        assert!(offered[0].contains(part), "{part} in {offered:#?}");
    }
    choose(&editor, &offered, "build the house");
    editor.wait_state("idle");
    editor.wait_transcript("It stands, says the agent.");
    assert_eq!(editor.transcript_text().matches("build the house").count(), 1);
    let load = agent.wait_received("session/load", 1);
    assert_eq!(load["params"]["sessionId"], json!("session-1.1"));
    assert_eq!(load["params"]["cwd"], json!(editor.project()));
    assert_eq!(editor.status()["session_id"], json!("session-1.1"));
    // Nothing of the history is a thing of now.
    assert!(editor.events("AgentChatToolCall").is_empty() && editor.events("AgentChatFollow").is_empty());
    editor.prompt("and a garden");
    wait_turn_end(&editor, 1);
    assert_eq!(agent.received("session/prompt")[1]["params"]["sessionId"], json!("session-1.1"));
    assert_eq!(pick(&editor).len(), 1, "it is one session still");
}

#[test]
fn a_resumed_session_shows_the_transcript_that_was_kept() {
    let scenario = house(json!({ "sessionCapabilities": { "resume": {} } })).on("session/resume", [reply(json!({}))]);
    let (agent, editor) = talked_before(&scenario);
    editor.command("AgentChat resume");
    editor.wait_state("idle");
    for text in ["build the house", "how high?", "Lay bricks", "roof", "It stands."] {
        editor.wait_transcript(text);
    }
    agent.wait_received("session/resume", 1);
    editor.prompt("and a garden");
    wait_turn_end(&editor, 1);
    let editor = editor.restart();
    editor.command("AgentChat resume");
    editor.wait_transcript("and a garden");
    editor.wait_transcript("build the house");
}

#[test]
fn where_the_agent_cannot_open_it_the_text_is_shown_and_goes_along() {
    let (agent, editor) = talked_before(&house(json!({})));
    let offered = pick(&editor);
    choose(&editor, &offered, "build the house");
    editor.wait_state("idle");
    editor.wait_transcript("It stands.");
    editor.wait_transcript("cannot open earlier sessions");
    editor.prompt("and a garden");
    wait_turn_end(&editor, 1);
    let prompt = agent.received("session/prompt")[1]["params"]["prompt"].to_string();
    assert!(prompt.contains("It stands.") && prompt.contains("and a garden"), "{prompt}");
}

#[test]
fn a_session_that_the_agent_does_not_know_any_more_costs_nothing_but_its_memory() {
    let scenario =
        house(json!({ "loadSession": true })).on("session/load", [reply_error(-32002, "Resource not found")]);
    let (agent, editor) = talked_before(&scenario);
    editor.command("AgentChat resume");
    editor.wait_transcript("Resource not found");
    editor.wait_transcript("goes along");
    editor.prompt("and a garden");
    wait_turn_end(&editor, 1);
    let prompt = agent.received("session/prompt")[1]["params"].to_string();
    assert!(prompt.contains("It stands.") && prompt.contains("session-2."), "{prompt}");
}

#[test]
fn what_an_agent_lists_comes_in_pages_joined_with_what_is_kept() {
    let page = |ids: &[&str], next: Option<&str>| {
        let session = |id: &&str| {
            json!({ "sessionId": id, "cwd": "$cwd/x", "title": format!("Title of {id}"),
                    "updatedAt": "2020-02-29T12:00:00.000Z" })
        };
        let sessions: Vec<Json> = ids.iter().map(session).collect();
        reply(json!({ "sessions": sessions, "nextCursor": next }))
    };
    let scenario = house(json!({ "sessionCapabilities": { "list": {} } }))
        .on("session/list", [page(&["session-1.1", "b"], Some("opaque 1"))])
        .on("session/list", [page(&["c", "b"], Some("opaque 2"))])
        .on("session/list", [page(&["d"], Some("opaque 1"))]);
    let (agent, editor) = talked_before(&scenario);
    let offered = pick(&editor);
    assert_eq!(offered.len(), 4, "{offered:#?}");
    let kept = offered.iter().find(|line| line.contains("Title of session-1.1")).unwrap();
    assert!(kept.contains("It stands."), "{offered:#?}");
    assert!(offered.iter().any(|line| line.contains("Title of d") && line.contains(" y ")), "{offered:#?}");
    let asked = agent.received("session/list");
    let cursors: Vec<&Json> = asked.iter().map(|list| &list["params"]["cursor"]).collect();
    assert_eq!(cursors, [&Json::Null, &json!("opaque 1"), &json!("opaque 2")]);
}

#[test]
fn an_agent_that_is_killed_in_mid_turn_goes_on_with_the_same_session() {
    let scenario = Scenario::new()
        .on_initialize([initialized(json!({ "loadSession": true }))])
        .on_prompt([chunk("half a wo"), gate("on"), chunk("whole"), end_turn()])
        .on("session/load", [said_by_user("go"), chunk("half a wo"), reply(json!({}))]);
    let (agent, editor) = chat::open(&scenario, setup());
    editor.prompt("go");
    agent.wait_gate("on");
    editor.wait_transcript("half a wo");
    processes::kill9(agent.pids()[0]);
    editor.wait_state("failed");
    agent.open_gate("on");
    editor.prompt("go on");
    editor.wait_transcript("goes on with this session");
    wait_turn_end(&editor, 2);
    let text = editor.transcript_text();
    assert_eq!(text.matches("half a wo").count(), 2, "once before, once in the new answer: {text}");
    let sessions: Vec<String> =
        agent.received("session/prompt").iter().map(|prompt| prompt["params"]["sessionId"].to_string()).collect();
    assert_eq!(sessions[0], sessions[1]);
}

#[test]
fn an_agent_that_lost_the_talk_says_so_and_is_told_of_it_when_the_user_wants_that() {
    let scenario = Scenario::new()
        .on_prompt([chunk("I know a secret word"), end_turn()])
        .on_prompt([die(9)])
        .on_prompt([end_turn()]);
    let (agent, editor) = chat::open(&scenario, setup());
    editor.prompt("hello");
    wait_turn_end(&editor, 1);
    editor.prompt("die");
    editor.wait_state("failed");
    editor.command("AgentChat restart");
    editor.wait_transcript("does not know what was said above");
    editor.wait_state("idle");
    assert_eq!(editor.status()["lost"], json!(true));
    editor.command("AgentChat resume");
    editor.wait_transcript("goes along with your next prompt");
    editor.prompt("what was the word?");
    let prompt = agent.wait_received("session/prompt", 3);
    assert!(prompt["params"]["prompt"].to_string().contains("I know a secret word"), "{prompt}");
    editor.wait_until("nothing lost", |e| e.status()["lost"] == json!(false));
}

#[test]
fn a_session_file_brings_its_chats_back_with_their_sessions() {
    let scenario = house(json!({ "sessionCapabilities": { "resume": {} } })).on("session/resume", [reply(json!({}))]);
    let (agent, editor) = chat::open(&scenario, setup());
    editor.prompt("build the house");
    wait_turn_end(&editor, 1);
    editor.command("mksession Session.vim");
    let editor = editor.restart();
    editor.command("source Session.vim");
    editor.wait_state("idle");
    editor.wait_transcript("It stands.");
    assert_eq!(agent.wait_received("session/resume", 1)["params"]["sessionId"], json!("session-1.1"));
    assert!(chat::window(&editor, "agentchat").is_some() && chat::window(&editor, "agentchat_prompt").is_some());
    editor.prompt("and a garden");
    wait_turn_end(&editor, 1);
}

#[test]
fn sessions_are_switched_in_place_and_each_is_where_it_was() {
    let lines = |name: &str| (0..100).map(|line| format!("{name} {line}\n")).collect::<String>();
    let scenario = Scenario::new()
        .on_prompt([chunk(&lines("first")), end_turn()])
        .on_prompt([chunk(&lines("second")), end_turn()]);
    let (agent, editor) = chat::open(&scenario, setup());
    editor.prompt("one");
    wait_turn_end(&editor, 1);
    chat::enter(&editor, "agentchat");
    editor.input("30Gzt");
    editor.wait_until("line 30", |e| e.lua("return vim.fn.line('.')", json!([])) == json!(30));
    editor.command("AgentChat new");
    editor.wait_state("idle");
    editor.prompt("two");
    wait_turn_end(&editor, 2);
    editor.wait_transcript("second 99");
    let offered = pick(&editor);
    assert_eq!(offered.iter().filter(|line| line.contains("open")).count(), 2, "{offered:#?}");
    choose(&editor, &offered, "one");
    let found = chat::window(&editor, "agentchat").unwrap();
    let view = "local v = vim.api.nvim_win_call(..., vim.fn.winsaveview) return { v.lnum, v.topline }";
    assert_eq!(editor.lua(view, json!([found.id])), json!([30, 30]));
    assert!(editor.transcript().iter().any(|line| line == "first 99"));
    assert_eq!(agent.pids().len(), 1, "both are with one process");
    let sessions: Vec<Json> =
        agent.received("session/prompt").into_iter().map(|prompt| prompt["params"]["sessionId"].clone()).collect();
    assert_ne!(sessions[0], sessions[1]);
}

#[test]
fn a_fork_begins_with_what_was_said_and_is_a_session_of_its_own() {
    let scenario = house(json!({ "sessionCapabilities": { "fork": {} } }))
        .on("session/fork", [reply(json!({ "sessionId": "the-copy" }))]);
    let (agent, editor) = chat::open(&scenario, setup());
    editor.prompt("build the house");
    wait_turn_end(&editor, 1);
    editor.command("AgentChat fork");
    editor.wait_until("the copy", |e| e.status()["session_id"] == json!("the-copy"));
    editor.wait_transcript("It stands.");
    editor.prompt("another roof");
    wait_turn_end(&editor, 2);
    assert_eq!(agent.received("session/fork")[0]["params"]["sessionId"], json!("session-1.1"));
    assert_eq!(pick(&editor).len(), 2);
}

#[test]
fn a_deleted_session_is_gone_here_and_with_the_agent() {
    let scenario = house(json!({ "sessionCapabilities": { "list": {}, "delete": {} } }))
        .on("session/list", [reply(json!({ "sessions": [] }))])
        .on("session/delete", [reply(json!({}))]);
    let (agent, editor) = talked_before(&scenario);
    assert_eq!(pick(&editor).len(), 1);
    editor.command("AgentChat delete session-1.1");
    agent.wait_received("session/delete", 1);
    editor.wait_until("the message", |e| e.messages().contains("is deleted"));
    editor.command("AgentChat sessions");
    editor.wait_until("an empty list", |e| e.messages().contains("no sessions yet"));
}

#[test]
fn what_is_kept_is_private_without_secrets_and_can_be_exported() {
    let scenario = Scenario::new().on_prompt([chunk("the key is sk-proj-abcdefghijklmnop, you know\n"), end_turn()]);
    let (_agent, editor) = chat::open(&scenario, setup());
    editor.prompt("which key?");
    wait_turn_end(&editor, 1);
    editor.command("AgentChat export talk.jsonl");
    let lines = editor.wait("the file", |e| e.file("talk.jsonl").filter(|bytes| !bytes.is_empty()));
    let lines: Vec<Json> = String::from_utf8(lines).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(lines[0]["content"]["text"], json!("which key?"));
    assert_eq!(lines[1]["content"]["text"], json!("the key is [redacted], you know\n"));
    let store = editor.lua("return vim.fn.stdpath('state') .. '/agentchat/store.db'", json!([]));
    let store = std::path::Path::new(store.as_str().unwrap());
    let folder = store.parent().unwrap();
    for file in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", file.display());
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(20).any(|part| part == b"sk-proj-abcdefghijkl"), "{}", file.display());
    }
}

#[test]
fn a_long_history_is_loaded_whole_while_neovim_answers() {
    let history = (0..700).flat_map(|number| {
        let text: String = (0..31).map(|line| format!("line {line} of {number}\n")).collect();
        [said_by_user(&format!("question {number}")), chunk(&text)]
    });
    let scenario = Scenario::new()
        .on_initialize([initialized(json!({ "loadSession": true }))])
        .on("session/load", history.chain([chunk("the end of it"), reply(json!({}))]));
    let (_agent, editor) = chat::start(&scenario, setup());
    editor.command("AgentChat resume elsewhere");
    editor.wait_transcript("the end of it");
    editor.wait_state("idle");
    let text = editor.transcript_text();
    for number in [0, 350, 699] {
        assert!(text.contains(&format!("question {number}\n")) && text.contains(&format!("line 30 of {number}\n")));
    }
    assert_eq!(text.matches("line 0 of ").count(), 700);
}

#[test]
fn a_store_of_a_newer_version_is_said_and_everything_else_works() {
    let (_agent, editor) = talked_before(&house(json!({})));
    let store = editor.lua("return vim.fn.stdpath('state') .. '/agentchat/store.db'", json!([]));
    let store = rusqlite::Connection::open(store.as_str().unwrap()).unwrap();
    store.pragma_update(None, "user_version", 999).unwrap();
    drop(store);
    editor.command("AgentChat open");
    editor.wait_state("idle");
    editor.wait_until("the warning", |e| e.messages().contains("update agentchat"));
    editor.prompt("build the house");
    wait_turn_end(&editor, 1);
    editor.wait_transcript("It stands.");
}
