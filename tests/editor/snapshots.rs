//! The screen of a long session, text and highlight groups, compared with what it was when somebody last looked at it.
//! `AGENTCHAT_UPDATE_SNAPSHOTS=1 make test` writes it anew; look at the difference before committing it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::support::scenario::{Scenario, Step, chunk, end_turn, numbered, plan, repeat, thought, update};
use crate::support::{Editor, Screen, ScriptedAgent, Setup, poll};

/// Where the chat's columns begin on 140 columns.
const FIRST_COLUMN: usize = 84;
const LAST_COLUMN: usize = 139;

/// The chat's part of the screen: each row as text, and below it a letter for the groups of each cell. Of the command
/// line, the last row, only the text: how Neovim colours it when it is empty differs between versions.
fn picture(screen: &Screen) -> String {
    let mut letters: BTreeMap<String, char> = BTreeMap::new();
    let mut out = String::new();
    let command_line = screen.rows().len() - 1;
    for row in 0..=command_line {
        let cells: String = (FIRST_COLUMN..=LAST_COLUMN).map(|column| screen.cell(row, column)).collect();
        let groups = (FIRST_COLUMN..=LAST_COLUMN).map(|column| {
            let name = screen.groups_at(row, column).last().cloned().unwrap_or_default();
            if name.is_empty() || row == command_line {
                return ' ';
            }
            let next = char::from(b'a' + u8::try_from(letters.len()).unwrap_or(25).min(25));
            *letters.entry(name).or_insert(next)
        });
        let groups: String = groups.collect();
        let _ = writeln!(out, "{}\n{}", without_times(cells.trim_end()), groups.trim_end());
    }
    for (name, letter) in letters {
        let _ = writeln!(out, "{letter} {name}");
    }
    out
}

/// Times differ from run to run.
fn without_times(row: &str) -> String {
    let is_summary = row.starts_with("─ ") && row.contains(" s");
    if is_summary { "─ …".to_owned() } else { row.to_owned() }
}

/// Compares what is shown once nothing changes any more.
fn compare(editor: &Editor, name: &str) {
    let shown = editor.wait("a screen that stays as it is", |e| {
        let before = picture(&e.screen());
        let changed = poll(Duration::from_millis(500), || (picture(&e.screen()) != before).then_some(()));
        changed.is_none().then_some(before)
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editor/snapshots").join(name);
    if std::env::var_os("AGENTCHAT_UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &shown).unwrap();
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, wanted, "the screen differs from {}", path.display());
}

fn session() -> Vec<Step> {
    let output = numbered("test", 1..41);
    let content = json!([{ "type": "content", "content": { "type": "text", "text": output } }]);
    let diff = json!([{ "type": "diff", "path": "$cwd/src/a.py", "oldText": "def f():\n    return 1\n",
        "newText": "def f():\n    return 2\n" }]);
    vec![
        thought("Let me see.\nA function."),
        chunk("I will **change** `f` in src/a.py:\n\n1. edit\n2. test\n\n"),
        repeat(30, [chunk("Some line of a long answer, number $i.\n")]),
        plan(&[("Edit the function", "completed"), ("Run the tests", "in_progress"), ("Report", "pending")]),
        update(json!({ "sessionUpdate": "tool_call", "toolCallId": "e", "title": "Edit src/a.py", "kind": "edit",
            "status": "completed", "content": diff, "locations": [{ "path": "$cwd/src/a.py", "line": 2 }] })),
        update(json!({ "sessionUpdate": "tool_call", "toolCallId": "r", "title": "Run the tests", "kind": "execute",
            "status": "completed", "content": content })),
        update(json!({ "sessionUpdate": "tool_call", "toolCallId": "x", "title": "Fetch the docs", "kind": "fetch",
            "status": "failed" })),
        chunk("All done.\n\n```python\ndef f():\n    return 2\n```\n"),
        end_turn(),
    ]
}

#[test]
fn a_long_session_looks_as_it_did() {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(session()));
    // Neovim's own status line differs between versions.
    let setup = Setup::new().agent("scripted", &agent).size(140, 40).init("vim.o.statusline = '%f'");
    let editor = Editor::start(setup);
    editor.command("AgentChat open");
    editor.prompt("Change f");
    editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
    editor.wait_screen("scripted · idle");
    compare(&editor, "end.txt");
    editor.lua(
        "vim.api.nvim_set_current_win(vim.fn.bufwinid(require('agentchat.chats').current().transcript))",
        json!([]),
    );
    editor.input("gg");
    editor.wait_screen("❯ You");
    compare(&editor, "beginning.txt");
}
