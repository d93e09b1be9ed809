//! Requests in the transcript instead of a float.

use serde_json::json;

use crate::chat::{self, enter_code, windows};
use crate::permissions::{ASK, asking, selected, wait_grace};
use crate::support::scenario::{Scenario, ask_permission, ask_permission_with, chunk, end_turn, exit, gate};
use crate::support::{Editor, ScriptedAgent, Setup};

fn setup() -> Setup {
    Setup::new().config("permissions", json!({ "style": "inline" })).file("a.txt", "one\n").arg("a.txt")
}

#[track_caller]
fn asked(scenario: &Scenario, setup: Setup) -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::open(scenario, setup);
    editor.prompt("go");
    editor.wait_transcript("? scripted asks");
    (agent, editor)
}

/// Waits until the card is in view, and for so long that it can have been read.
#[track_caller]
fn wait_readable(editor: &Editor, wanted: &str) {
    editor.wait_transcript(wanted);
    editor.wait_screen(wanted);
    wait_grace(editor);
}

#[track_caller]
fn floats(editor: &Editor) -> usize {
    windows(editor).iter().filter(|window| window.floating).count()
}

#[test]
fn the_card_stands_at_the_end_of_the_transcript_and_takes_nothing() {
    let scenario = asking([
        gate("ask"),
        chunk("before"),
        ask_permission("t1", "First thing").without_waiting(),
        ask_permission("t2", "Second thing").without_waiting(),
        gate("more"),
        chunk("said meanwhile"),
        gate("end"),
    ]);
    let (agent, editor) = chat::open(&scenario, setup());
    editor.prompt("go");
    agent.wait_gate("ask");
    enter_code(&editor);
    editor.input("ityped");
    agent.open_gate("ask");
    editor.wait_transcript("? scripted asks (1 of 2)");
    editor.input(" y 1 n");
    editor.wait_screen("typed y 1 n");
    assert_eq!(floats(&editor), 0);
    agent.open_gate("more");
    editor.wait_transcript("said meanwhile");
    editor.prompt("next prompt");
    editor.wait_transcript("queued: next prompt");
    let lines = editor.transcript();
    let at = |wanted: &str| lines.iter().position(|line| line.contains(wanted)).unwrap_or_else(|| panic!("{lines:?}"));
    assert!(at("said meanwhile") < at("? scripted asks") && at("? scripted asks") < at("y 1 Allow"));
    assert!(at(":AgentChat allow") < at("queued: next prompt"));
    editor.input("<Esc>");
    wait_readable(&editor, "First thing");
    editor.command("AgentChat allow");
    agent.wait_answer(ASK, 1);
    wait_readable(&editor, "other: Second thing");
    editor.command("AgentChat deny");
    assert_eq!(agent.wait_answer(ASK, 2)["result"], selected("reject_once"));
    editor.wait_until("no card", |e| !e.transcript_has("? scripted asks"));
    assert!(editor.transcript_has("queued: next prompt"));
    agent.open_gate("end");
}

#[test]
fn an_answer_is_given_with_enter_and_what_lasts_takes_two() {
    let scenario = asking([
        ask_permission("t1", "First thing"),
        ask_permission("t2", "Second thing"),
        ask_permission("t3", "Third"),
    ]);
    let (agent, editor) = asked(&scenario, setup());
    let go = |row: &str| {
        editor.command("AgentChat permissions");
        editor.wait_until("the cursor at the first answer", |e| {
            e.lua("return vim.fn.getline('.')", json!([])).as_str().is_some_and(|line| line.contains("y 1 Allow"))
        });
        editor.input(row);
    };
    wait_readable(&editor, "First thing");
    go("<CR>");
    editor.wait_until("the refusal", |e| e.messages().contains("you have just come here"));
    wait_grace(&editor);
    assert!(agent.answers(ASK).is_empty());
    editor.input("<CR>");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
    wait_readable(&editor, "other: Second thing");
    // The row of what would be remembered belongs to its answer.
    go("jj");
    wait_grace(&editor);
    editor.input("<CR>");
    editor.wait_transcript("again or <CR> remembers: allow this very call");
    assert_eq!(agent.answers(ASK).len(), 1);
    editor.input("<CR>");
    assert_eq!(agent.wait_answer(ASK, 2)["result"], selected("allow_always"));
    wait_readable(&editor, "other: Third");
    // What would be remembered has a row of its own.
    go("jjj");
    wait_grace(&editor);
    editor.input("<CR>");
    assert_eq!(agent.wait_answer(ASK, 3)["result"], selected("reject_once"));
    editor.wait_transcript("went on");
}

#[test]
fn what_is_not_in_view_is_not_answered_and_is_shown_on_demand() {
    let scenario = asking([gate("ask"), ask_permission("t1", "Run it")]);
    let (agent, editor) = chat::open(&scenario, setup());
    editor.prompt("go");
    agent.wait_gate("ask");
    editor.command("AgentChat close");
    agent.open_gate("ask");
    editor.wait_until("the notice", |e| e.messages().contains("scripted asks: Run it"));
    wait_grace(&editor);
    editor.command("AgentChat allow");
    editor.wait_until("the hint", |e| e.messages().contains("no permission request is displayed"));
    editor.command("AgentChat permissions");
    wait_readable(&editor, "y 1 Allow");
    assert!(agent.answers(ASK).is_empty());
    editor.command("AgentChat allow");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
}

#[test]
fn another_tab_pages_chat_is_gone_to_on_demand() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), setup());
    editor.command("tabnew");
    wait_grace(&editor);
    editor.command("AgentChat allow");
    editor.wait_until("the hint", |e| e.messages().contains("no permission request is displayed"));
    assert!(agent.answers(ASK).is_empty());
    editor.command("AgentChat permissions");
    assert_eq!(editor.lua("return vim.fn.tabpagenr()", json!([])), json!(1));
    wait_readable(&editor, "Run it");
    editor.command("AgentChat deny");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("reject_once"));
}

#[test]
fn a_long_command_is_whole_in_the_text() {
    let word = "x".repeat(3_000);
    let call = json!({ "toolCallId": "t1", "title": "Run it", "rawInput": { "command": format!("a\n{word}\nz") } });
    let options = json!([{ "optionId": "ok", "kind": "allow_once", "name": "Fine" }]);
    let (agent, editor) = asked(&asking([ask_permission_with(call, options)]), setup());
    editor.wait_transcript("y 1 Fine");
    assert!(editor.transcript().contains(&format!("$ {word}")));
    wait_readable(&editor, "y 1 Fine");
    editor.command("AgentChat allow");
    agent.wait_answer(ASK, 1);
}

#[test]
fn the_card_goes_with_a_cancel_with_the_agent_and_with_the_helper() {
    let ask = || ask_permission("t1", "Run it").without_waiting();
    let gone = |editor: &Editor| editor.wait_until("no card", |e| !e.transcript_has("? scripted asks"));
    let scenario = Scenario::new().on_prompt([ask(), gate("never")]);
    let (agent, editor) = asked(&scenario, setup());
    editor.command("AgentChat cancel");
    gone(&editor);
    agent.wait_answer(ASK, 1);

    let (agent, editor) = asked(&Scenario::new().on_prompt([ask(), gate("die"), exit(1)]), setup());
    agent.open_gate("die");
    gone(&editor);

    let (_agent, editor) = asked(&scenario, setup());
    let helpers = editor.processes();
    let helper = helpers.iter().find(|process| process.command.contains("agentchat nvim")).expect("a helper");
    editor.lua("vim.uv.kill(..., 'sigkill')", json!([helper.pid]));
    editor.wait_state("failed");
    gone(&editor);
    assert!(editor.transcript_has("Run it"), "the call is still there");
}

#[test]
fn the_style_is_set_where_its_name_says_too() {
    let setup = Setup::new().config("permission", json!({ "style": "inline" }));
    let (_agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), setup);
    assert_eq!(floats(&editor), 0);
    assert_eq!(editor.messages(), "");
}

#[test]
fn a_wrong_style_is_told_and_the_float_is_taken() {
    let setup = Setup::new().config("permission", json!({ "style": "inlined" }));
    let (_agent, editor) = chat::open(&Scenario::new().on_prompt([ask_permission("t", "Run it"), end_turn()]), setup);
    editor.prompt("go");
    editor.wait_until("the float", |e| floats(e) == 1);
    let messages = editor.messages();
    assert!(messages.contains("permission.style"), "{messages}");
}
