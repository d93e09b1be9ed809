//! Requests that rules and earlier answers decide, and those that they leave to the user.

use std::fs;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::chat::{self, window};
use crate::support::scenario::{
    Scenario, Step, ask_permission_with, chunk, end_turn, exit, gate, read_file, request, write_file,
};
use crate::support::{Editor, ScriptedAgent, Setup};

const ASK: &str = "session/request_permission";
const READ: &str = "fs/read_text_file";
const WRITE: &str = "fs/write_text_file";
const CREATE: &str = "terminal/create";
const ALL: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];

fn options(kinds: &[&str]) -> Json {
    kinds.iter().map(|kind| json!({ "optionId": format!("id-{kind}"), "kind": kind, "name": kind })).collect()
}

fn ask_of(id: &str, kind: &str, fields: Json, kinds: &[&str]) -> Step {
    let mut call = json!({ "toolCallId": id, "title": format!("Call {id}"), "kind": kind });
    if let (Some(call), Json::Object(fields)) = (call.as_object_mut(), fields) {
        call.extend(fields);
    }
    ask_permission_with(call, options(kinds))
}

fn ask_command(id: &str, line: &str) -> Step {
    ask_of(id, "execute", json!({ "rawInput": { "command": line } }), &ALL)
}

fn ask_edit(id: &str, path: &str) -> Step {
    ask_of(id, "edit", json!({ "locations": [{ "path": format!("$cwd/{path}") }] }), &ALL)
}

fn turn(steps: impl IntoIterator<Item = Step>) -> Scenario {
    Scenario::new().on_prompt(steps.into_iter().chain([end_turn()]))
}

fn ruled(rules: Json) -> Setup {
    Setup::new().config("permissions", rules)
}

fn selected(option: &str) -> Json {
    json!({ "outcome": { "outcome": "selected", "optionId": format!("id-{option}") } })
}

fn cancelled() -> Json {
    json!({ "outcome": { "outcome": "cancelled" } })
}

#[track_caller]
fn answer(agent: &ScriptedAgent, count: usize) -> Json {
    agent.wait_answer(ASK, count)["result"].clone()
}

#[track_caller]
fn wait_asked(editor: &Editor, title: &str) {
    editor.wait_until(&format!("{title:?} asked"), |e| {
        window(e, "agentchat_permission").is_some() && e.screen().contains(title)
    });
}

#[track_caller]
fn respond(editor: &Editor, kind: &str) {
    editor.lua("require('agentchat').respond(...)", json!([kind]));
}

#[track_caller]
fn go(scenario: &Scenario, setup: Setup) -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::open(scenario, setup);
    editor.prompt("go");
    (agent, editor)
}

/// The lines of the list of rules and answers.
fn listed(editor: &Editor) -> Vec<String> {
    let code = "
    for _, win in ipairs(vim.api.nvim_list_wins()) do
      local buf = vim.api.nvim_win_get_buf(win)
      if vim.bo[buf].filetype == 'agentchat_permissions' then return vim.api.nvim_buf_get_lines(buf, 0, -1, true) end
    end
    return {}";
    let lines = editor.lua(code, json!([]));
    lines.as_array().into_iter().flatten().filter_map(|line| line.as_str().map(str::to_owned)).collect()
}

#[track_caller]
fn wait_listed(editor: &Editor, wanted: &str) {
    editor.wait_until(&format!("{wanted:?} listed"), |e| listed(e).iter().any(|line| line.contains(wanted)));
}

#[test]
fn rules_allow_deny_and_ask() {
    let rules = json!([
        { "action": "allow", "kind": "read" },
        { "action": "ask", "command": "git push" },
        { "action": "allow", "command": "git" },
        { "action": "deny", "command": "git push --force" },
        { "action": "allow", "kind": "edit", "path": "src/**", "agent": "scripted" },
        { "action": "deny", "path": ".env" },
        { "action": "allow", "kind": "other", "tool": "search_*" },
    ]);
    let scenario = turn([
        ask_of("r", "read", json!({ "locations": [{ "path": "$cwd/a" }] }), &ALL),
        ask_edit("e", "src/a.rs"),
        ask_edit("env", "src/.env"),
        ask_of("t", "other", json!({ "name": "search_web" }), &ALL),
        ask_command("force", "cd x; git push --force"),
        ask_command("push", "git push"),
        ask_command("status", "git status; rm -rf x"),
    ]);
    let (agent, editor) = go(&scenario, ruled(rules));
    for (count, option) in
        [(1, "allow_once"), (2, "allow_once"), (3, "reject_once"), (4, "allow_once"), (5, "reject_once")]
    {
        assert_eq!(answer(&agent, count), selected(option), "request {count}");
    }
    wait_asked(&editor, "Call push");
    assert_eq!(editor.events("AgentChatPermission").len(), 1, "what a rule answered was never open");
    respond(&editor, "reject_once");
    wait_asked(&editor, "Call status");
    editor.wait_screen("deletes files");
    respond(&editor, "allow_once");
    editor.wait_state("idle");
    editor.wait_transcript("Allowed by the rule \"allow kind = read\": Call r");
    editor.wait_transcript("Denied by the rule \"deny path = .env\": Call env");
    let automatic: Vec<Json> = editor
        .events("AgentChatPermissionResolved")
        .into_iter()
        .filter(|event| event["automatic"] == json!(true))
        .map(|event| json!([event["action"], event["title"], event["option"]]))
        .collect();
    assert_eq!(automatic[0], json!(["allow", "Call r", "id-allow_once"]));
    assert_eq!(automatic[2], json!(["deny", "Call env", "id-reject_once"]));
    assert_eq!(automatic.len(), 5);
}

#[test]
fn an_option_is_chosen_by_its_kind_or_the_user_is_asked() {
    let rules = json!([{ "action": "allow", "kind": "read" }, { "action": "deny", "kind": "fetch" }]);
    let scenario = turn([
        ask_of("1", "read", json!({}), &["reject_always", "reject_once", "allow_always", "allow_once"]),
        ask_of("2", "fetch", json!({}), &["allow_once", "reject_always", "reject_once"]),
        ask_of("3", "fetch", json!({}), &["allow_once", "reject_always"]),
        ask_of("4", "read", json!({}), &["allow_always", "reject_once", "odd"]),
        ask_of("5", "fetch", json!({}), &["allow_once", "allow_always"]),
    ]);
    let (agent, editor) = go(&scenario, ruled(rules));
    for (count, option) in [(1, "allow_once"), (2, "reject_once"), (3, "reject_always")] {
        assert_eq!(answer(&agent, count), selected(option), "request {count}");
    }
    wait_asked(&editor, "Call 4");
    editor.wait_transcript("The agent offers no way to allow this once");
    respond(&editor, "id-odd");
    wait_asked(&editor, "Call 5");
    respond(&editor, "allow_once");
    assert_eq!(answer(&agent, 5), selected("allow_once"));
}

#[test]
fn an_answer_with_always_is_remembered_for_the_project_until_it_is_revoked() {
    let scenario = turn([ask_command("make", "make test"), ask_command("other", "make clean")]);
    let (agent, editor) = go(&scenario, Setup::new());
    wait_asked(&editor, "Call make");
    respond(&editor, "allow_always");
    assert_eq!(answer(&agent, 1), selected("allow_always"));
    editor.wait_transcript("Remembered for this project: allow exactly `make test`.");
    wait_asked(&editor, "Call other");
    respond(&editor, "allow_once");
    editor.wait_state("idle");

    let editor = editor.restart();
    editor.command("AgentChat open");
    editor.wait_state("idle");
    editor.prompt("again");
    assert_eq!(answer(&agent, 3), selected("allow_once"), "by itself, and once");
    editor.wait_transcript("Allowed by your earlier answer \"allow exactly `make test`\": Call make");
    wait_asked(&editor, "Call other");
    respond(&editor, "allow_once");
    editor.wait_state("idle");

    editor.command("AgentChat permissions");
    wait_listed(&editor, "scripted: allow exactly `make test`");
    assert_eq!(window(&editor, "agentchat_permissions").map(|window| window.current), Some(true));
    editor.input("x");
    editor.wait_until("the answer revoked", |e| !listed(e).iter().any(|line| line.contains("make test")));
    editor.input("q");
    editor.wait_until("the list closed", |e| window(e, "agentchat_permissions").is_none());
    editor.prompt("and again");
    wait_asked(&editor, "Call make");
}

#[test]
fn two_neovims_share_what_is_remembered() {
    let one = turn([ask_edit("a", "a.txt")]);
    let (first_agent, first) = chat::open(&one, Setup::new());
    let state = first.xdg("state");
    let state = state.parent().unwrap().to_str().unwrap();
    let (agent, second) = chat::start(&one, Setup::new().env("XDG_STATE_HOME", state));
    second.command(&format!("cd {}", first.project().display()));
    second.command("AgentChat open");
    second.wait_state("idle");
    second.prompt("ask before");
    wait_asked(&second, "Call a");
    respond(&second, "reject_once");
    second.wait_state("idle");

    first.prompt("go");
    wait_asked(&first, "Call a");
    respond(&first, "allow_always");
    first.wait_state("idle");
    second.prompt("ask after");
    assert_eq!(answer(&agent, 2), selected("allow_once"), "the other Neovim's answer");
    second.wait_state("idle");

    second.command("AgentChat permissions list");
    wait_listed(&second, "changing files of this project");
    second.input("x");
    second.wait_until("the answer revoked", |e| !listed(e).iter().any(|line| line.contains("changing files")));
    first.prompt("once more");
    wait_asked(&first, "Call a");
    assert_eq!(first_agent.answers(ASK).len(), 1);
}

#[test]
fn a_remembered_answer_ends_where_danger_begins() {
    let scenario = turn([
        ask_edit("a", "a.txt"),
        ask_edit("b", "sub/b.txt"),
        ask_edit("hook", ".git/hooks/pre-commit"),
        ask_command("compound", "make; make install"),
        ask_command("compound", "make; make install"),
    ]);
    let (agent, editor) = go(&scenario, Setup::new());
    wait_asked(&editor, "Call a");
    respond(&editor, "allow_always");
    assert_eq!(answer(&agent, 2), selected("allow_once"));
    wait_asked(&editor, "Call hook");
    editor.wait_screen("changes what runs by itself");
    respond(&editor, "allow_once");
    for count in 4..=5 {
        wait_asked(&editor, "Call compound");
        respond(&editor, "allow_always");
        assert_eq!(answer(&agent, count), selected("allow_always"), "what a shell makes of it is asked each time");
    }
    editor.wait_transcript("Remembered: nothing here");
}

#[test]
fn what_is_wrong_with_a_rule_is_told_and_nothing_is_allowed_meanwhile() {
    let rules = json!([
        { "action": "allow", "kind": "read" },
        { "action": "deny", "comand": "rm" },
        { "action": "allow", "command": "git status; ls" },
        { "action": "maybe", "kind": "reads" },
        { "action": "deny", "kind": "fetch" },
        { "action": "allow", "command": "sudo ls" },
    ]);
    let scenario = turn([ask_of("f", "fetch", json!({}), &ALL), ask_of("r", "read", json!({}), &ALL)]);
    let (agent, editor) = go(&scenario, ruled(rules));
    assert_eq!(answer(&agent, 1), selected("reject_once"));
    wait_asked(&editor, "Call r");
    respond(&editor, "reject_once");
    editor.command("checkhealth agentchat");
    let health = || {
        let lines = editor.lua("return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), ' ')", json!([]));
        lines.as_str().unwrap_or_default().to_owned()
    };
    editor.wait_until("the report", |_| health().contains("`permissions[2].comand` is unknown"));
    for wanted in [
        "`permissions[3].command` must be plain words, without \";\"",
        "`permissions[4].action` must be \"allow\", \"deny\" or \"ask\", not \"maybe\"",
        "`permissions[4].kind` must be one of",
        "nothing is allowed without asking you",
        "never allows anything: sudo runs what its arguments say",
    ] {
        assert!(health().contains(wanted), "{wanted}: {}", health());
    }
}

#[test]
fn files_pass_the_same_rules_although_the_agent_did_not_ask() {
    let outside = TempDir::new().unwrap();
    let folder = outside.path().canonicalize().unwrap();
    fs::write(folder.join("open.txt"), "open").unwrap();
    fs::write(folder.join("shut.txt"), "shut").unwrap();
    let pattern = format!("{}/open.*", folder.display());
    let rules = json!([
        { "action": "allow", "kind": "read", "path": pattern },
        { "action": "deny", "path": ".env" },
        { "action": "ask", "kind": "edit", "path": "asked/**" },
    ]);
    let steps = [
        gate("linked"),
        read_file("link/open.txt"),
        read_file("link/shut.txt"),
        read_file("sub/.env"),
        write_file("asked/a.txt", "new"),
        write_file("free.txt", "new"),
    ];
    let setup = ruled(rules).file("sub/.env", "SECRET=1");
    let (agent, editor) = go(&turn(steps), setup);
    std::os::unix::fs::symlink(&folder, editor.project().join("link")).unwrap();
    agent.open_gate("linked");
    assert_eq!(agent.wait_answer(READ, 1)["result"]["content"], json!("open"));
    wait_asked(&editor, "outside of the project");
    respond(&editor, "reject_once");
    let refused = agent.wait_answer(READ, 2)["error"]["message"].to_string();
    assert!(refused.contains("did not allow") && refused.contains("ask the user"), "{refused}");
    let denied = agent.wait_answer(READ, 3)["error"]["message"].to_string();
    assert!(denied.contains("deny path = .env"), "{denied}");
    wait_asked(&editor, "Write: asked/a.txt");
    assert!(editor.file("asked/a.txt").is_none());
    respond(&editor, "allow_once");
    agent.wait_answer(WRITE, 2);
    assert_eq!(editor.file("asked/a.txt").as_deref(), Some(&b"new"[..]));
    assert_eq!(editor.file("free.txt").as_deref(), Some(&b"new"[..]));
    editor.wait_transcript("Denied by the rule \"deny path = .env\": Read: sub/.env");
    editor.wait_transcript("Allowed by the rule");
}

#[test]
fn what_was_rejected_in_a_turn_is_not_written_past_the_user() {
    let steps = [ask_edit("e", "a.txt"), write_file("a.txt", "agent"), write_file("b.txt", "agent")];
    let (agent, editor) = go(&turn(steps), Setup::new().file("a.txt", "mine"));
    wait_asked(&editor, "Call e");
    respond(&editor, "reject_once");
    let refused = agent.wait_answer(WRITE, 1)["error"]["message"].to_string();
    assert!(refused.contains("rejected"), "{refused}");
    assert!(agent.wait_answer(WRITE, 2).get("result").is_some());
    assert_eq!(editor.file("a.txt").as_deref(), Some(&b"mine"[..]));
    editor.wait_transcript("Refused, since you rejected it in this turn: Write: a.txt");
}

#[test]
fn a_command_runs_without_another_question_when_it_was_allowed() {
    let create = |line: &str| request(CREATE, json!({ "sessionId": "$session", "command": line }));
    let rules = json!([{ "action": "allow", "command": "echo ruled" }, { "action": "deny", "command": "rm" }]);
    let steps = [
        create("echo ruled by"),
        create("true; rm -rf x"),
        ask_command("t", "echo asked; true"),
        create("echo asked; true"),
        create("echo asked; true"),
    ];
    let (agent, editor) = go(&turn(steps), ruled(rules));
    assert!(agent.wait_answer(CREATE, 1)["result"].is_object());
    let denied = agent.wait_answer(CREATE, 2)["error"]["message"].to_string();
    assert!(denied.contains("deny command = rm"), "{denied}");
    wait_asked(&editor, "Call t");
    respond(&editor, "allow_once");
    assert!(agent.wait_answer(CREATE, 3)["result"].is_object());
    wait_asked(&editor, "Run a command");
    respond(&editor, "reject_once");
    assert!(agent.wait_answer(CREATE, 4)["error"].is_object());
}

#[test]
fn a_cancel_or_the_agents_end_closes_what_is_asked() {
    let scenario = Scenario::new()
        .on_prompt([ask_edit("one", "a").without_waiting(), ask_edit("two", "b").without_waiting()])
        .on_cancel([end_turn()]);
    let (agent, editor) = go(&scenario, Setup::new());
    wait_asked(&editor, "Call one");
    editor.command("AgentChat cancel");
    assert_eq!([answer(&agent, 1), answer(&agent, 2)], [cancelled(), cancelled()]);
    editor.wait_until("no float", |e| window(e, "agentchat_permission").is_none());

    let scenario = turn([ask_edit("one", "a").without_waiting(), gate("die"), exit(1), chunk("never")]);
    let (agent, editor) = go(&scenario, Setup::new());
    wait_asked(&editor, "Call one");
    agent.open_gate("die");
    editor.wait_state("failed");
    editor.wait_until("no float", |e| window(e, "agentchat_permission").is_none());
    assert_eq!(editor.status()["permissions"], json!(0));
}
