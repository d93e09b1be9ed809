//! Permission requests: shown without taking anything from the user, answered once, from anywhere.

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::chat::{self, Window, enter_code, wait_prompt_text, window, windows};
use crate::support::scenario::{
    Scenario, Step, ask_permission, ask_permission_with, chunk, end_turn, exit, gate, tool_call, tool_status,
    tool_update,
};
use crate::support::{Editor, ScriptedAgent, Setup};

pub(crate) const ASK: &str = "session/request_permission";
/// Commands are refused for this long after the display changed.
const TOO_NEW: Duration = Duration::from_millis(500);

/// A turn that asks for this and then ends.
pub(crate) fn asking(steps: impl IntoIterator<Item = Step>) -> Scenario {
    Scenario::new().on_prompt(steps.into_iter().chain([chunk("went on"), end_turn()]))
}

#[track_caller]
pub(crate) fn asked(scenario: &Scenario, setup: Setup) -> (ScriptedAgent, Editor) {
    let (agent, editor) = chat::open(scenario, setup);
    editor.prompt("go");
    wait_float(&editor);
    (agent, editor)
}

#[track_caller]
pub(crate) fn float(editor: &Editor) -> Option<Window> {
    window(editor, "agentchat_permission")
}

#[track_caller]
pub(crate) fn wait_float(editor: &Editor) -> Window {
    editor.wait("the permission float", float)
}

#[track_caller]
pub(crate) fn wait_no_float(editor: &Editor) {
    editor.wait_until("no permission float", |e| float(e).is_none());
}

/// What is in the float.
#[track_caller]
pub(crate) fn shown(editor: &Editor) -> String {
    let code = "return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(...), 0, -1, true), '\\n')";
    let window = wait_float(editor);
    editor.lua(code, json!([window.id])).as_str().unwrap_or_default().to_owned()
}

/// Waits until the float has shown this for so long that the user can have read it.
#[track_caller]
pub(crate) fn wait_readable(editor: &Editor, wanted: &str) {
    editor.wait_until(&format!("{wanted:?} in the float"), |e| float(e).is_some() && shown(e).contains(wanted));
    let seen = Instant::now();
    editor.wait_until("that it can be read", |_| seen.elapsed() > TOO_NEW);
}

/// Waits until keys and commands are not refused any more as too early.
#[track_caller]
pub(crate) fn wait_grace(editor: &Editor) {
    let began = Instant::now();
    editor.wait_until("that half a second is over", |_| began.elapsed() > TOO_NEW);
}

/// Goes to the float.
#[track_caller]
pub(crate) fn enter_float(editor: &Editor) {
    editor.command("AgentChat permissions");
    editor.wait_until("the float entered", |e| float(e).is_some_and(|window| window.current));
}

pub(crate) fn selected(option: &str) -> Json {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

pub(crate) fn cancelled() -> Json {
    json!({ "outcome": { "outcome": "cancelled" } })
}

#[test]
fn what_is_typed_while_a_request_arrives_lands_where_it_is_typed() {
    let scenario = asking([gate("ask"), ask_permission("t1", "Delete everything")]);
    let (agent, editor) = chat::open(&scenario, Setup::new().file("a.txt", "").arg("a.txt"));
    editor.prompt("go");
    agent.wait_gate("ask");
    enter_code(&editor);
    editor.input("iyes 1");
    editor.wait_screen("yes 1");
    agent.open_gate("ask");
    let window = wait_float(&editor);
    assert!(!window.current && window.floating);
    editor.input(" n y 2 q");
    editor.wait_screen("yes 1 n y 2 q");
    assert_eq!(editor.screen().mode(), "insert");
    assert!(agent.answers(ASK).is_empty());
    editor.input("<Esc><C-w>w<C-w>w<C-w>w<C-w>w<C-w>w");
    editor.wait_until("normal mode", |e| e.screen().mode() == "normal");
    assert!(!float(&editor).unwrap().current, "going round the windows does not enter it");
    let screen = editor.screen();
    assert!(screen.contains("Delete everything") && screen.contains("scripted asks"));
    assert!(screen.contains("Allow") && screen.contains("Reject"));
}

#[test]
fn allow_and_deny_answer_from_another_window() {
    for (command, option) in [("AgentChat allow", "allow_once"), ("AgentChat deny", "reject_once")] {
        let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
        enter_code(&editor);
        wait_readable(&editor, "Run it");
        editor.command(command);
        assert_eq!(agent.wait_answer(ASK, 1)["result"], selected(option));
        wait_no_float(&editor);
        editor.wait_transcript("went on");
        assert_eq!(editor.status()["permissions"], json!(0));
    }
}

#[test]
fn an_option_is_chosen_by_name_and_not_against_the_command() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    wait_readable(&editor, "Run it");
    editor.command("AgentChat allow reject_once");
    editor.wait_until("the refusal", |e| e.messages().contains("does not allow"));
    assert!(agent.answers(ASK).is_empty());
    editor.command("AgentChat allow allow_always");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_always"));
}

#[test]
fn a_request_that_has_just_appeared_is_not_answered_by_a_command() {
    let init = r#"
    vim.api.nvim_create_autocmd("User", { pattern = "AgentChatPermission", callback = function()
      vim.schedule(function() vim.cmd("AgentChat allow") end)
    end })
    "#;
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new().init(init));
    editor.wait_until("the refusal", |e| e.messages().contains("has just appeared"));
    assert!(agent.answers(ASK).is_empty());
    wait_readable(&editor, "Run it");
    editor.command("AgentChat allow");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
}

#[test]
fn respond_takes_an_id_or_a_kind_or_says_what_there_is() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    let error = editor.try_lua("require('agentchat').respond('maybe')", json!([])).expect_err("no such option");
    assert!(error.contains("allow_once"), "{error}");
    let error =
        editor.try_lua("require('agentchat').respond('allow_once', 999)", json!([])).expect_err("no such request");
    assert!(error.contains("999"), "{error}");
    assert!(agent.answers(ASK).is_empty());
    editor.lua("require('agentchat').respond('reject_always')", json!([]));
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("reject_always"));
    let error = editor.try_lua("require('agentchat').respond('allow_once')", json!([])).expect_err("nothing is open");
    assert!(error.contains("no permission request"), "{error}");
}

#[test]
fn several_requests_are_shown_one_after_the_other() {
    let scenario = asking([
        ask_permission("t1", "First thing").without_waiting(),
        ask_permission("t2", "Second thing").without_waiting(),
        ask_permission("t3", "Third thing"),
        gate("end"),
    ]);
    let (agent, editor) = asked(&scenario, Setup::new());
    editor.wait_screen("(1 of 3)");
    assert_eq!(editor.status()["permissions"], json!(3));
    wait_readable(&editor, "First thing");
    editor.lua("vim.cmd('AgentChat allow') vim.cmd('AgentChat allow')", json!([]));
    wait_readable(&editor, "Second thing");
    assert_eq!(agent.answers(ASK).len(), 1, "the second was too new for the same key");
    editor.command("AgentChat deny");
    wait_readable(&editor, "Third thing");
    editor.command("AgentChat allow");
    wait_no_float(&editor);
    agent.wait_answer(ASK, 3);
    let results: Vec<Json> = agent.answers(ASK).iter().map(|answer| answer["result"].clone()).collect();
    assert_eq!(results, [selected("allow_once"), selected("reject_once"), selected("allow_once")]);
    agent.open_gate("end");
    editor.wait_transcript("went on");
}

#[test]
fn a_cancel_answers_all_of_them() {
    let scenario = Scenario::new().on_prompt([
        ask_permission("t1", "First thing").without_waiting(),
        ask_permission("t2", "Second thing").without_waiting(),
        ask_permission("t3", "Third thing"),
    ]);
    let (agent, editor) = asked(&scenario, Setup::new());
    editor.wait_screen("(1 of 3)");
    editor.command("AgentChat cancel");
    agent.wait_answer(ASK, 3);
    assert!(agent.answers(ASK).iter().all(|answer| answer["result"] == cancelled()));
    wait_no_float(&editor);
    editor.wait_state("idle");
    let resolved = editor.events("AgentChatPermissionResolved");
    assert_eq!(resolved.len(), 3);
    assert!(resolved.iter().all(|event| event.get("option").is_none()), "{resolved:?}");
    assert!(agent.stray_answers().is_empty());
}

#[test]
fn the_input_is_shown_when_there_is_nothing_else() {
    let call = json!({ "toolCallId": "t1", "rawInput": { "command": "rm -rf build", "target": "x" } });
    let options = json!([{ "optionId": "ok", "kind": "allow_once", "name": "Fine" }]);
    let (agent, editor) = asked(&asking([ask_permission_with(call, options)]), Setup::new());
    let text = shown(&editor);
    assert!(text.contains("rm -rf build") && text.contains("Fine"), "{text}");
    editor.lua("require('agentchat').respond('ok')", json!([]));
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("ok"));
}

#[test]
fn a_request_may_come_before_its_call() {
    let scenario = asking([
        ask_permission("t1", "Asked early").without_waiting(),
        tool_call("t1", "Known now", "execute"),
        gate("go on"),
        tool_status("t1", "completed"),
    ]);
    let (agent, editor) = asked(&scenario, Setup::new());
    editor.wait_transcript("Known now");
    editor.lua("require('agentchat').respond('allow_once')", json!([]));
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
    agent.open_gate("go on");
    editor.wait_transcript("Known now  $ execute · done");
    let cards = editor.transcript().iter().filter(|line| line.contains("Known now  ")).count();
    assert_eq!(cards, 1, "one card for one call");
}

#[test]
fn the_float_closes_when_the_call_ends_while_it_is_open() {
    let scenario = asking([
        tool_call("t1", "Quick thing", "execute"),
        ask_permission("t1", "Quick thing").without_waiting(),
        gate("done"),
        tool_status("t1", "completed"),
    ]);
    let (agent, editor) = asked(&scenario, Setup::new());
    agent.open_gate("done");
    wait_no_float(&editor);
    editor.wait_transcript("went on");
    agent.wait_answer(ASK, 1);
    assert!(agent.unanswered().is_empty() && agent.stray_answers().is_empty());
    editor.command("AgentChat allow");
    editor.wait_until("that nothing is open", |e| e.messages().contains("no permission request is displayed"));
}

#[test]
fn a_long_command_is_shown_whole() {
    let words: Vec<String> = (0..60).map(|number| format!("word-{number:03}")).collect();
    let command = words.join(" ");
    assert!(command.len() > 500);
    let scenario = asking([
        tool_call("t1", "bash", "execute"),
        tool_update("t1", json!({ "rawInput": { "command": format!("{command} && reboot now please") } })),
        ask_permission_with(
            json!({ "toolCallId": "t1" }),
            json!([{ "optionId": "ok", "kind": "allow_once", "name": "Fine" }]),
        ),
    ]);
    let (_agent, editor) = asked(&scenario, Setup::new());
    assert!(shown(&editor).contains(&command));
    let screen = editor.wait_screen("word-000");
    for word in ["word-030", "word-059", "reboot", "Fine"] {
        assert!(screen.contains(word), "{word} is on the screen");
    }
}

#[test]
fn odd_options_can_all_be_answered() {
    let option = |id: &str, kind: &str| json!({ "optionId": id, "kind": kind, "name": format!("Name of {id}") });
    let two = json!([option("aa", "allow_always"), option("ra", "reject_always")]);
    let six: Json = (1..=6).map(|number| option(&format!("o{number}"), "foo")).collect();
    let call = |id: &str| json!({ "toolCallId": id, "title": format!("Call {id}") });
    let scenario = Scenario::new().on_prompt([
        ask_permission_with(call("t1"), two),
        ask_permission_with(call("t2"), six),
        ask_permission_with(call("t3"), json!([option("only", "reject_once")])),
        ask_permission_with(call("t4"), json!([])).without_waiting(),
        chunk("went on"),
        gate("the turn does not end"),
    ]);
    let (agent, editor) = asked(&scenario, Setup::new());

    wait_readable(&editor, "Call t1");
    editor.command("AgentChat allow");
    editor.wait_until("that allowing for ever must be said", |e| e.messages().contains("no 'allow once'"));
    assert!(agent.answers(ASK).is_empty());
    editor.command("AgentChat allow aa");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("aa"));

    wait_readable(&editor, "Call t2");
    assert!(shown(&editor).contains("6 Name of o6"));
    editor.command("AgentChat allow o5");
    assert_eq!(agent.wait_answer(ASK, 2)["result"], selected("o5"));

    wait_readable(&editor, "Call t3");
    editor.command("AgentChat deny");
    assert_eq!(agent.wait_answer(ASK, 3)["result"], selected("only"));

    editor.wait_until("the last request", |e| float(e).is_some() && shown(e).contains("Call t4"));
    editor.wait_transcript("went on");
    editor.wait_until("a way out", |e| shown(e).contains(":AgentChat cancel"));
    editor.command("AgentChat cancel");
    assert_eq!(agent.wait_answer(ASK, 4)["result"], cancelled());
    wait_no_float(&editor);
}

#[test]
fn closing_the_float_in_any_way_puts_the_request_aside_and_no_more() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    let again = |how: &str| {
        editor.wait_until(&format!("no float after {how}"), |e| float(e).is_none());
        assert_eq!(editor.status()["permissions"], json!(1), "{how}");
        editor.wait_until("the hint", |e| e.messages().contains("the request waits"));
        editor.command("messages clear | AgentChat permissions");
        assert!(!wait_float(&editor).current, "{how}");
    };
    for how in [":q<CR>", "<C-w>c", "<C-w>q", ":close<CR>", "ZZ", "q"] {
        enter_float(&editor);
        editor.input(how);
        again(how);
    }
    enter_code(&editor);
    for how in [":only<CR>", "<C-w>o", ":tabnew | tabclose<CR>", ":bwipeout! agentchat://permission<CR>"] {
        editor.input(how);
        again(how);
    }
    editor.command("tabnew");
    wait_float(&editor);
    editor.input(":tabclose<CR>");
    again(":tabclose");
    editor.command("mksession! Session.vim | silent source Session.vim");
    again("a session file");
    assert!(agent.answers(ASK).is_empty());
    enter_float(&editor);
    wait_grace(&editor);
    editor.input("y");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
    wait_no_float(&editor);
}

#[test]
fn the_keys_of_the_float_answer() {
    for (keys, option) in [
        ("y", "allow_once"),
        ("n", "reject_once"),
        ("1", "allow_once"),
        ("22", "allow_always"),
        ("4<CR>", "reject_always"),
    ] {
        let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
        wait_readable(&editor, "Run it");
        enter_float(&editor);
        wait_grace(&editor);
        editor.input(keys);
        assert_eq!(agent.wait_answer(ASK, 1)["result"], selected(option), "{keys}");
        wait_no_float(&editor);
        assert!(windows(&editor).iter().any(|window| window.current && !window.floating));
    }
}

#[test]
fn the_float_is_in_the_tab_page_where_the_user_is() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    editor.command("tabnew");
    wait_float(&editor);
    wait_readable(&editor, "Run it");
    editor.command("AgentChat allow");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
    editor.command("tabfirst");
    wait_no_float(&editor);
}

#[test]
fn an_agent_that_dies_takes_its_requests_along() {
    let scenario = Scenario::new().on_prompt([ask_permission("t1", "Run it").without_waiting(), gate("die"), exit(1)]);
    let (agent, editor) = asked(&scenario, Setup::new());
    agent.open_gate("die");
    editor.wait_state("failed");
    wait_no_float(&editor);
    assert_eq!(editor.status()["permissions"], json!(0));
}

#[test]
fn a_request_does_not_stop_what_the_user_writes_in_the_prompt() {
    let scenario = asking([gate("ask"), ask_permission("t1", "Run it")]);
    let (agent, editor) = chat::open(&scenario, Setup::new());
    editor.prompt("go");
    agent.wait_gate("ask");
    editor.input("ihalf");
    wait_prompt_text(&editor, "half");
    agent.open_gate("ask");
    wait_float(&editor);
    editor.input(" a thought");
    wait_prompt_text(&editor, "half a thought");
    editor.wait_screen("half a thought");
    assert_eq!(editor.screen().mode(), "insert");
}

#[test]
fn a_script_answers_in_the_event_itself() {
    let init = r#"
    vim.api.nvim_create_autocmd("User", { pattern = "AgentChatPermission", callback = function(event)
      require("agentchat").respond("reject_once", event.data.request)
    end })
    "#;
    // Which of the two is shown first, nobody promises: the turn must not end before both are answered.
    let first = ask_permission("t1", "First thing").without_waiting();
    let scenario = asking([first, ask_permission("t2", "Second thing"), gate("both")]);
    let (agent, editor) = chat::open(&scenario, Setup::new().init(init));
    editor.prompt("go");
    agent.wait_answer(ASK, 2);
    agent.open_gate("both");
    editor.wait_transcript("went on");
    let answers = agent.answers(ASK);
    assert!(
        answers.iter().all(|answer| answer["result"] == selected("reject_once")),
        "{answers:?} {}",
        editor.messages()
    );
    wait_no_float(&editor);
    assert_eq!(chat::times_in_messages(&editor, "agentchat: "), 0, "{}", editor.messages());
}

#[test]
fn a_switch_of_the_tab_page_makes_the_request_new_to_the_eye() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new());
    wait_readable(&editor, "Run it");
    editor.lua("vim.cmd('tabnew') vim.cmd('AgentChat allow')", json!([]));
    editor.wait_until("the refusal", |e| e.messages().contains("has just appeared"));
    assert!(agent.answers(ASK).is_empty());
    wait_readable(&editor, "Run it");
    editor.command("AgentChat allow");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
}

#[test]
fn control_characters_of_the_agent_are_only_text() {
    let call = json!({ "toolCallId": "t1", "title": "red \u{1b}[31m\u{7}\nsecond line\ttab", "kind": "execute\n",
        "rawInput": { "command": "one\ntwo\r\n\u{1b}]0;title\u{7}" } });
    let options = json!([{ "optionId": "o\nk", "kind": "allow_once", "name": "Fine\nor not" }]);
    let (agent, editor) = asked(&asking([ask_permission_with(call, options)]), Setup::new());
    let text = shown(&editor);
    assert!(text.contains("second line") && text.contains("two") && text.contains("or not"), "{text}");
    wait_readable(&editor, "second line");
    editor.command("AgentChat allow");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("o\nk"));
    editor.wait_transcript("went on");
    assert_eq!(chat::times_in_messages(&editor, "agentchat: "), 0, "{}", editor.messages());
}

#[test]
fn a_request_whose_content_changes_has_to_be_read_again() {
    let (agent, editor) = asked(&asking([ask_permission("t1", "Run ls")]), Setup::new());
    wait_readable(&editor, "Run ls");
    // The agent may say more of the call that it asks for, at any time.
    let code = "
    local hand = require('agentchat.hand')
    local option = { id = 'allow_once', name = 'Allow', kind = 'allow_once' }
    local request = { request = ..., chat = 1, agent = 'scripted', title = 'Run rm', detail = {}, options = { option } }
    hand.frame({ { 'permissions', { request } } })
    vim.cmd('AgentChat allow')
    hand.frame({ { 'permissions', { vim.deepcopy(request) } } })
    ";
    let request = editor.events("AgentChatPermission")[0]["request"].clone();
    editor.lua(code, json!([request]));
    editor.wait_until("the refusal", |e| e.messages().contains("has just appeared or changed"));
    assert!(agent.answers(ASK).is_empty());
    wait_readable(&editor, "Run rm");
    editor.command("AgentChat allow");
    assert_eq!(agent.wait_answer(ASK, 1)["result"], selected("allow_once"));
}

#[test]
fn on_a_small_screen_the_request_leaves_the_prompt_free_and_says_how_to_answer() {
    for size in [(40, 10), (80, 12)] {
        let (_agent, editor) = asked(&asking([ask_permission("t1", "Run it")]), Setup::new().size(size.0, size.1));
        editor.input("itext");
        wait_prompt_text(&editor, "text");
        let screen = editor.screen();
        assert!(screen.contains("text") && screen.contains("Run it"), "{screen}");
        assert!(screen.contains(":AgentChat allow"), "{screen}");
    }
}
