//! A chat with a scripted agent, and what a user sees and types in it: what most tests begin with.

use serde_json::{Value as Json, json};

use crate::support::scenario::Scenario;
use crate::support::{Editor, ScriptedAgent, Setup};

/// Opens the chat and waits until the agent is ready for a prompt.
#[track_caller]
pub(crate) fn open(scenario: &Scenario, setup: Setup) -> (ScriptedAgent, Editor) {
    let (agent, editor) = start(scenario, setup);
    editor.command("AgentChat open");
    editor.wait_state("idle");
    (agent, editor)
}

/// An editor that knows the agent, with no chat yet.
#[track_caller]
pub(crate) fn start(scenario: &Scenario, setup: Setup) -> (ScriptedAgent, Editor) {
    let agent = ScriptedAgent::new(scenario);
    let editor = Editor::start(setup.agent("scripted", &agent));
    (agent, editor)
}

/// A window of the current tab page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) id: u64,
    pub(crate) filetype: String,
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) row: u64,
    pub(crate) column: u64,
    pub(crate) floating: bool,
    pub(crate) current: bool,
}

const WINDOWS: &str = r#"
return vim.tbl_map(function(win)
  local position = vim.api.nvim_win_get_position(win)
  return {
    id = win,
    filetype = vim.bo[vim.api.nvim_win_get_buf(win)].filetype,
    width = vim.api.nvim_win_get_width(win),
    height = vim.api.nvim_win_get_height(win),
    row = position[1],
    column = position[2],
    floating = vim.api.nvim_win_get_config(win).relative ~= "",
    current = vim.api.nvim_get_current_win() == win,
  }
end, vim.api.nvim_tabpage_list_wins(0))
"#;

/// The windows of the current tab page.
#[track_caller]
pub(crate) fn windows(editor: &Editor) -> Vec<Window> {
    let found = editor.lua(WINDOWS, json!([]));
    let number = |window: &Json, name: &str| window[name].as_u64().unwrap_or_default();
    let window = |window: &Json| Window {
        id: number(window, "id"),
        filetype: window["filetype"].as_str().unwrap_or_default().to_owned(),
        width: number(window, "width"),
        height: number(window, "height"),
        row: number(window, "row"),
        column: number(window, "column"),
        floating: window["floating"] == json!(true),
        current: window["current"] == json!(true),
    };
    found.as_array().into_iter().flatten().map(window).collect()
}

/// The window of the current tab page with that file type.
#[track_caller]
pub(crate) fn window(editor: &Editor, filetype: &str) -> Option<Window> {
    windows(editor).into_iter().find(|window| window.filetype == filetype)
}

/// Whether both windows of the chat are in the current tab page.
#[track_caller]
pub(crate) fn is_open(editor: &Editor) -> bool {
    window(editor, "agentchat").is_some() && window(editor, "agentchat_prompt").is_some()
}

/// Makes the window with that file type the current one.
#[track_caller]
pub(crate) fn enter(editor: &Editor, filetype: &str) {
    let found = window(editor, filetype).unwrap_or_else(|| editor.fail(&format!("no window with {filetype}")));
    editor.lua("vim.api.nvim_set_current_win(...)", json!([found.id]));
}

/// Makes a window that is not the chat's the current one.
#[track_caller]
pub(crate) fn enter_code(editor: &Editor) {
    let found = windows(editor).into_iter().find(|window| !window.filetype.starts_with("agentchat"));
    let found = found.unwrap_or_else(|| editor.fail("no window besides the chat's"));
    editor.lua("vim.api.nvim_set_current_win(...)", json!([found.id]));
}

/// The text in the prompt of the current tab page, else in any prompt.
#[track_caller]
pub(crate) fn prompt_text(editor: &Editor) -> String {
    const CODE: &str = r#"
    local found
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.bo[buf].filetype == "agentchat_prompt" then found = found or buf end
    end
    for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
      local buf = vim.api.nvim_win_get_buf(win)
      if vim.bo[buf].filetype == "agentchat_prompt" then found = buf end
    end
    return found and table.concat(vim.api.nvim_buf_get_lines(found, 0, -1, true), "\n") or ""
    "#;
    editor.lua(CODE, json!([])).as_str().unwrap_or_default().to_owned()
}

/// Waits until that is the text in the prompt.
#[track_caller]
pub(crate) fn wait_prompt_text(editor: &Editor, wanted: &str) {
    editor.wait_until(&format!("{wanted:?} in the prompt"), |e| prompt_text(e) == wanted);
}

/// The bar above the transcript as it is drawn.
#[track_caller]
pub(crate) fn winbar(editor: &Editor) -> String {
    let screen = editor.screen();
    let found = window(editor, "agentchat").unwrap_or_else(|| editor.fail("the transcript has no window"));
    let row: Vec<char> = screen.row(usize::try_from(found.row).unwrap()).chars().collect();
    row.into_iter().skip(usize::try_from(found.column).unwrap()).collect()
}

/// How often a text is in the messages.
#[track_caller]
pub(crate) fn times_in_messages(editor: &Editor, wanted: &str) -> usize {
    editor.messages().matches(wanted).count()
}

/// The text of the first block of each prompt that the agent got, oldest first.
pub(crate) fn prompts(agent: &ScriptedAgent) -> Vec<String> {
    let texts = agent.received("session/prompt").into_iter();
    texts.map(|prompt| prompt["params"]["prompt"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}
