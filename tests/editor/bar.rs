//! The bar above the transcript, the status line, the plan, and the windows' sizes.

use serde_json::{Value as Json, json};

use crate::support::scenario::{Scenario, Step, chunk, end_turn, gate, plan, update};
use crate::support::{Editor, ScriptedAgent, Setup};

fn chat(setup: Setup, steps: impl IntoIterator<Item = Step>) -> (Editor, ScriptedAgent) {
    let agent = ScriptedAgent::new(&Scenario::new().on_prompt(steps));
    let editor = Editor::start(setup.agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.wait_state("idle");
    (editor, agent)
}

fn wait_turn(editor: &Editor) {
    editor.wait_until("the turn is over", |e| e.events("AgentChatTurnEnd").len() == 1);
}

/// Keeps every timer that Lua makes from here on. (`vim.uv.walk` would find them too, but Neovim 0.10 aborts in it: luv
/// takes Neovim's own handles for its own.)
const RECORD_TIMERS: &str = "_G.timers = {}
    local new_timer = vim.uv.new_timer
    vim.uv.new_timer = function()
      local timer, reason, name = new_timer()
      table.insert(_G.timers, timer)
      return timer, reason, name
    end";

/// How many timers of Lua and of Vim script run in Neovim.
fn timers(editor: &Editor) -> Json {
    editor.lua(
        "local function runs(timer) return timer:is_active() end
        return #vim.tbl_filter(runs, _G.timers) + #vim.fn.timer_info()",
        json!([]),
    )
}

#[test]
fn the_bar_tells_who_does_what_with_what() {
    let steps = [
        update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan 100%" })),
        update(json!({ "sessionUpdate": "usage_update", "used": 34_000, "size": 200_000,
            "cost": { "amount": 0.125, "currency": "USD" } })),
        plan(&[("read", "completed"), ("write it", "in_progress"), ("test", "pending")]),
        gate("more"),
        plan(&[("read", "completed"), ("write it", "completed"), ("test", "in_progress")]),
        gate("end"),
        plan(&[("read", "completed"), ("write it", "completed"), ("test", "completed")]),
        update(json!({ "sessionUpdate": "session_info_update", "title": "A title" })),
        end_turn(),
    ];
    let (editor, agent) = chat(Setup::new().size(200, 40), steps);
    editor.wait_screen("scripted · idle");
    assert_eq!(editor.screen().row(0).matches("scripted").count(), 1, "in the transcript's window only");
    editor.prompt("go");
    editor.wait_screen("scripted · running · ▸ 1/3 write it");
    let bar = editor.screen().row(0);
    assert!(
        bar.ends_with("plan 100% · 34k/200k · 0.13 USD") || bar.ends_with("plan 100% · 34k/200k · 0.12 USD"),
        "{bar}"
    );
    agent.open_gate("more");
    editor.wait_screen("▸ 2/3 test");
    editor.wait_transcript("Plan  2/3");
    assert!(!editor.transcript_has("Plan  1/3"), "the plan is replaced whole");
    let line = editor.lua("return require('agentchat').statusline()", json!([]));
    let line = line.as_str().unwrap_or_default();
    assert!(line.starts_with("scripted · running · ▸ 2/3 test · "), "{line}");
    agent.open_gate("end");
    editor.wait_screen("scripted · idle · A title");
}

#[test]
fn a_narrow_bar_keeps_who_and_what_and_shortens_the_rest() {
    let steps = [
        update(json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" })),
        update(json!({ "sessionUpdate": "usage_update", "used": 34_000, "size": 200_000 })),
        plan(&[("write the thing that is long", "in_progress"), ("test", "pending")]),
        gate("end"),
        end_turn(),
    ];
    let (editor, _agent) = chat(Setup::new().size(160, 40), steps);
    editor.prompt("go");
    editor.wait_screen("▸ 0/2 write the thing");
    let bar = |e: &Editor, columns: usize| {
        let found = e.screen().row(0).chars().skip(160 - columns).collect::<String>();
        // The sign that turns is of no interest here.
        found.trim().chars().skip(2).collect::<String>()
    };
    for (columns, wanted) in [
        (60, "scripted · running · ▸ 0/2 write the th… plan · 34k/200k"),
        (50, "scripted · running · ▸ 0/2 write the thi… plan"),
        (40, "scripted · running plan · 34k/200k"),
        (30, "scripted · running plan"),
        (20, "scrip… · running"),
        (15, "running"),
    ] {
        editor.lua(
            "local layout = require('agentchat.layout').get(vim.api.nvim_get_current_tabpage())
            vim.api.nvim_win_set_width(layout.transcript, ...)",
            json!([columns]),
        );
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        editor
            .wait_until(&format!("{wanted:?} in {columns} columns"), |e| squeeze(&bar(e, columns)) == squeeze(wanted));
    }
}

#[test]
fn the_spinner_turns_only_while_a_turn_runs() {
    // The second Neovim has a timer of its own, for its end.
    let alone = "require('agentchat.code_process').prepare = function() end";
    let setup = Setup::new().init(RECORD_TIMERS).init(alone);
    let (editor, agent) = chat(setup, [chunk("a"), gate("end"), end_turn()]);
    editor.wait_until("nothing runs", |e| timers(e) == json!(0));
    editor.prompt("go");
    editor.wait_state("running");
    let first = editor.wait("a spinner", |e| Some(e.screen().row(0)).filter(|row| row.contains("scripted · running")));
    editor.wait_until("it turns", |e| {
        let row = e.screen().row(0);
        row != first && row.contains("scripted · running")
    });
    editor.wait_until("no timer but its own", |e| timers(e) == json!(1));
    agent.open_gate("end");
    wait_turn(&editor);
    editor.wait_until("nothing runs any more", |e| timers(e) == json!(0));
    assert!(editor.screen().row(0).contains(" scripted · idle"));
}

#[test]
fn the_bar_can_be_left_out() {
    let (editor, _agent) = chat(Setup::new().config("winbar", json!(false)), [chunk("a"), end_turn()]);
    editor.prompt("go");
    wait_turn(&editor);
    assert!(!editor.screen().row(0).contains("scripted"));
    assert_eq!(editor.messages(), "");
}

fn widths(editor: &Editor) -> Json {
    editor.lua(
        "return vim.tbl_map(function(win) return vim.api.nvim_win_get_width(win) end, vim.api.nvim_tabpage_list_wins(0))",
        json!([]),
    )
}

#[test]
fn the_chat_takes_its_share_however_many_windows_there_are() {
    for (windows, wanted) in [
        (vec![], json!([83, 56, 56])),
        (vec!["vsplit"], json!([41, 41, 56, 56])),
        (vec!["vsplit", "vsplit"], json!([27, 27, 27, 56, 56])),
        (vec!["split"], json!([83, 83, 56, 56])),
        (vec!["set noequalalways", "vsplit"], json!([41, 41, 56, 56])),
    ] {
        let editor = Editor::start(Setup::new().size(140, 40));
        for command in &windows {
            editor.command(command);
        }
        let before = widths(&editor);
        editor.command("AgentChat open");
        assert_eq!(widths(&editor), wanted, "{windows:?}");
        editor.command("AgentChat close");
        assert_eq!(widths(&editor), before, "{windows:?}");
    }
}

#[test]
fn the_file_type_is_there_before_the_window_is_entered() {
    let init = "vim.g.seen = {}
    vim.api.nvim_create_autocmd({ 'BufWinEnter', 'WinEnter' }, { callback = function(args)
      local seen = vim.g.seen
      seen[#seen + 1] = vim.fn.bufname(args.buf):match('^agentchat://%a+') and args.event .. ' ' .. vim.bo[args.buf].filetype
      vim.g.seen = seen
    end })";
    let editor = Editor::start(Setup::new().init(init));
    editor.command("AgentChat open");
    let seen = editor.lua("return vim.g.seen", json!([]));
    assert_eq!(seen, json!(["BufWinEnter agentchat", "BufWinEnter agentchat_prompt", "WinEnter agentchat_prompt"]));
}

fn others(editor: &Editor) -> Json {
    editor.lua(
        "local found = {}
        for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
          if not vim.b[vim.api.nvim_win_get_buf(win)].agentchat then
            table.insert(found, { vim.api.nvim_win_get_width(win), vim.api.nvim_win_get_height(win) })
          end
        end
        return found",
        json!([]),
    )
}

#[test]
fn a_narrow_window_keeps_its_width_while_a_wide_one_gives_room() {
    for before in ["set equalalways", "set noequalalways"] {
        let editor = Editor::start(Setup::new().size(160, 40));
        editor.command(&format!("{before} | vsplit | vertical resize 30"));
        let sizes = others(&editor);
        editor.command("AgentChat open");
        let open = others(&editor);
        assert_eq!(open[0][0], json!(30), "{before}: {open}");
        assert_eq!(open[1][0], json!(64), "{before}: {open}");
        editor.command("AgentChat close");
        assert_eq!(others(&editor), sizes, "{before}");
    }
}

#[test]
fn what_the_user_changed_while_the_chat_was_open_stays_when_it_closes() {
    let editor = Editor::start(Setup::new().size(160, 40));
    editor.command("vsplit | vertical resize 30");
    editor.command("AgentChat open");
    editor.command("wincmd t | vertical resize 22 | wincmd l | split | wincmd b");
    editor.command("AgentChat close");
    let sizes = others(&editor);
    assert_eq!(sizes[0][0], json!(22), "{sizes}");
    assert_eq!([&sizes[1][0], &sizes[2][0]], [&json!(137); 2], "{sizes}");
}

#[test]
fn below_the_others_a_low_window_keeps_its_height() {
    let editor = Editor::start(Setup::new().size(80, 50));
    editor.command("botright copen 6 | wincmd p | split");
    let sizes = others(&editor);
    editor.command("AgentChat open");
    let open = others(&editor);
    assert_eq!(open[2][1], json!(6), "{open}");
    editor.command("AgentChat close");
    assert_eq!(others(&editor), sizes);
}

#[test]
fn plans_with_ids_stand_beside_each_other_and_are_taken_back() {
    let items = |id: &str, entries: Json| {
        update(json!({ "sessionUpdate": "plan_update", "plan": { "type": "items", "planId": id, "entries": entries } }))
    };
    let document =
        json!({ "type": "markdown", "planId": "b", "content": "# The design\n\n- first\n", "path": "/p/plan.md" });
    let steps = [
        items("a", json!([{ "content": "read", "priority": "high", "status": "in_progress" }])),
        items("b", json!([{ "content": "write", "priority": "low", "status": "pending" }])),
        gate("two"),
        update(json!({ "sessionUpdate": "plan_update", "plan": document })),
        update(json!({ "sessionUpdate": "plan_removed", "planId": "a" })),
        update(json!({ "sessionUpdate": "plan_removed", "planId": "never" })),
        gate("end"),
        end_turn(),
    ];
    let (editor, agent) = chat(Setup::new().size(200, 40), steps);
    editor.prompt("go");
    agent.wait_gate("two");
    editor.wait_transcript("▸ read");
    editor.wait_transcript("○ write");
    editor.wait_screen("▸ 0/1 write");
    agent.open_gate("two");
    agent.wait_gate("end");
    editor.wait_transcript("Plan  /p/plan.md");
    editor.wait_transcript("# The design");
    editor.wait_transcript("Plan  (dropped by the agent)");
    let text = editor.transcript_text();
    assert!(!text.contains("▸ read") && !text.contains("○ write") && !text.contains("plan_removed"), "{text}");
    editor.wait_until("the bar without a step", |e| !e.screen().row(0).contains("0/1"));
    let initialize = agent.received("initialize");
    assert_eq!(initialize[0]["params"]["clientCapabilities"]["plan"], json!({}));
    agent.open_gate("end");
    wait_turn(&editor);
}
