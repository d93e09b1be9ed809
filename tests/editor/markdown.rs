//! Markdown in the transcript: what is highlighted, when, and at what cost.

use serde_json::{Value as Json, json};

use crate::support::scenario::{Scenario, Step, chunk, end_turn, gate, repeat};
use crate::support::{Editor, ScriptedAgent, Setup};

fn start(steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.prompt("go");
    (editor, agent)
}

fn run(steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    let (editor, agent) = start(steps);
    editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
    (editor, agent)
}

/// `text group` of each extmark with a highlight group in the transcript, in order; whole prompts and the sums of turns
/// left out.
fn marks(editor: &Editor) -> Vec<String> {
    let found = editor.lua(
        r#"
        local buf = require("agentchat.chats").current().transcript
        local ns = vim.api.nvim_create_namespace("agentchat.chat")
        local told = {}
        for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buf, ns, 0, -1, { details = true })) do
          local details = mark[4]
          if details.hl_group and not details.hl_group:find("^AgentChatUser") and details.hl_group ~= "AgentChatSummary" then
            local text = vim.api.nvim_buf_get_text(buf, mark[2], mark[3], details.end_row, details.end_col, {})
            told[#told + 1] = table.concat(text, "\n") .. " " .. details.hl_group
          end
        end
        return told
        "#,
        json!([]),
    );
    found.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

const SAMPLE: &str = "# Title\nsome **bold** and `code`\n\n> quote\n\n- [x] done\n\n```lua\nlocal x = 1\n```\n";

#[test]
fn what_is_shown_does_not_depend_on_how_it_was_cut() {
    let (whole, _agent) = run([chunk(SAMPLE), end_turn()]);
    let expected = marks(&whole);
    assert!(expected.contains(&"**bold** AgentChatStrong".to_owned()), "{expected:#?}");
    assert!(expected.contains(&"local x = 1 AgentChatCodeBlock".to_owned()), "{expected:#?}");
    for size in [1, 2, 7] {
        let bytes = SAMPLE.as_bytes();
        // One letter after the other, also within a fence, each in a frame of its own for some.
        let pieces = bytes.chunks(size).map(|piece| chunk(std::str::from_utf8(piece).unwrap()));
        let (cut, _agent) = run(pieces.chain([end_turn()]).collect::<Vec<_>>());
        cut.wait_until("the same highlights", |e| {
            let found: Vec<String> = marks(e).into_iter().filter(|mark| !mark.contains(" @")).collect();
            found == expected.iter().filter(|mark| !mark.contains(" @")).cloned().collect::<Vec<_>>()
        });
        assert_eq!(cut.transcript_text(), whole.transcript_text());
    }
}

#[test]
fn highlights_are_there_while_the_text_still_comes() {
    let (editor, agent) =
        start([chunk("a **b** c"), gate("more"), chunk(" and **d"), gate("end"), chunk("** e"), end_turn()]);
    editor.wait_until("the first", |e| marks(e) == ["**b** AgentChatStrong"]);
    agent.open_gate("more");
    editor.wait_transcript("**d");
    assert_eq!(marks(&editor), ["**b** AgentChatStrong"]);
    agent.open_gate("end");
    editor.wait_until("both", |e| marks(e) == ["**b** AgentChatStrong", "**d** AgentChatStrong"]);
}

#[test]
fn a_code_block_is_coloured_once_it_is_complete() {
    let (editor, agent) = start([chunk("```lua\nlocal x = 1\n"), gate("close"), chunk("```\n"), end_turn()]);
    editor.wait_until("one colour", |e| marks(e).contains(&"local x = 1 AgentChatCodeBlock".to_owned()));
    assert!(!marks(&editor).iter().any(|mark| mark.contains('@')));
    agent.open_gate("close");
    editor.wait_until("colours of the language", |e| marks(e).contains(&"local @keyword.lua".to_owned()));
}

#[test]
fn a_table_stands_in_columns_and_its_text_stays_as_it_came() {
    let table = "| a | number |\n|---|--:|\n| long cell | 1 |\n";
    let (editor, _agent) = run([chunk(table), chunk("\nafter"), end_turn()]);
    editor.wait_screen("| long cell |      1 |");
    editor.wait_screen("| a         | number |");
    editor.wait_screen("|-----------|-------:|");
    assert!(editor.transcript_text().contains(table));
}

/// The first row on the screen with strong text, if that is highlighted as such.
fn first_bold(editor: &Editor) -> Option<String> {
    let screen = editor.screen();
    let (row, column) = screen.find("**bold**")?;
    // A screen names the group that the links end at.
    screen.groups_at(row, column).iter().any(|group| group == "@markup.strong").then(|| screen.row(row))
}

#[test]
fn rows_far_above_are_highlighted_when_they_are_looked_at() {
    let (editor, _agent) = run([repeat(5_000, [chunk("row $i is **bold**\n")]), end_turn()]);
    let highlighted = marks(&editor).len();
    assert!(highlighted < 1_500, "{highlighted} of 5,000 rows are highlighted, but nobody has seen them");
    editor.lua(
        r#"
        local chat = require("agentchat.chats").current()
        vim.api.nvim_win_set_cursor(vim.fn.bufwinid(chat.transcript), { 2000, 0 })
        "#,
        json!([]),
    );
    editor.wait_until("the rows in view are highlighted", |e| first_bold(e).is_some_and(|row| row.contains("row 19")));
    // In a second window, and after everything was sent anew, too.
    editor.lua(
        r#"
        local buf = require("agentchat.chats").current().transcript
        vim.bo[buf].modifiable = true
        vim.api.nvim_buf_set_lines(buf, 0, 3, true, { "somebody was here" })
        require("agentchat.helper").notify("resync", { chat = vim.b[buf].agentchat })
        vim.cmd("tab sbuffer " .. buf)
        vim.api.nvim_win_set_cursor(0, { 1000, 0 })
        "#,
        json!([]),
    );
    editor.wait_until("they are again", |e| first_bold(e).is_some_and(|row| row.contains("row 9")));
}

#[test]
fn nothing_an_agent_sends_is_interpreted() {
    let text = "a\u{1b}[31mred\u{1b}[0m\u{7} \u{0}nul\rcr \u{9b}2J\u{202e}rtl vim: set ft=lua:\n";
    let (editor, _agent) = run([chunk(text), end_turn()]);
    editor.wait_screen("a^[[31mred^[[0m^G ^@nul^Mcr");
    let screen = editor.screen();
    assert!(screen.contains("<9b>2J") && screen.contains("<202e>rtl"), "{:?}", screen.rows());
    let line = text.trim_end_matches('\n');
    assert!(editor.transcript().iter().any(|row| row == line), "the text itself is untouched");
    assert_eq!(
        editor.lua("return vim.bo[require('agentchat.chats').current().transcript].filetype", json!([])),
        "agentchat"
    );
}
