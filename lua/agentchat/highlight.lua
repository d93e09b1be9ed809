--- The highlight groups, all links that a colour scheme or the user may replace.

local M = {}

local api = vim.api

---@type { [1]: string, [2]: string, [3]: string }[] name, link, what it is for
M.groups = {
  { "AgentChatBar", "WinBar", "the bar above the transcript" },
  { "AgentChatUser", "Normal", "the text of your prompts" },
  { "AgentChatUserHeader", "Title", "the line above your prompt" },
  { "AgentChatThought", "Comment", "the agent's thoughts" },
  { "AgentChatTool", "Function", "a tool call" },
  { "AgentChatToolPending", "Comment", "the status of a call that waits" },
  { "AgentChatToolRunning", "DiagnosticInfo", "the status of a call that runs" },
  { "AgentChatToolDone", "DiagnosticOk", "the status of a call that is done" },
  { "AgentChatToolFailed", "DiagnosticError", "the status of a call that failed" },
  { "AgentChatToolCancelled", "DiagnosticWarn", "the status of a cancelled call" },
  { "AgentChatPlan", "Identifier", "an entry of the plan" },
  { "AgentChatPlanDone", "Comment", "an entry of the plan that is done" },
  { "AgentChatNotice", "DiagnosticInfo", "a notice of the plugin" },
  { "AgentChatError", "DiagnosticError", "an error" },
  { "AgentChatStop", "DiagnosticWarn", "why a turn stopped" },
  { "AgentChatSummary", "NonText", "what a turn took, at its end" },
  { "AgentChatFold", "Comment", "what is folded" },
  { "AgentChatQueued", "NonText", "a prompt that waits" },
  { "AgentChatMention", "Special", "what goes along with a prompt" },
  { "AgentChatListTitle", "Title", "a heading in a list of ours" },
  { "AgentChatDim", "NonText", "what is beside the point" },
  { "AgentChatAdded", "Added", "a line that an edit adds" },
  { "AgentChatRemoved", "Removed", "a line that an edit removes" },
  { "AgentChatDiffAdd", "DiffAdd", "a line of a pending change" },
  { "AgentChatDiffAddWord", "DiffText", "what is new in such a line" },
  { "AgentChatDiffAddNumber", "Added", "its line number and sign" },
  { "AgentChatDiffDelete", "DiffDelete", "a line that a pending change took away" },
  { "AgentChatDiffDeleteWord", "DiffText", "what of such a line is no more" },
  { "AgentChatDiffDeleteNumber", "Removed", "line number and sign where lines were taken away" },
  { "AgentChatDiffHint", "NonText", "how to decide about a change" },
  { "AgentChatHeading1", "@markup.heading.1", "a heading of the first level" },
  { "AgentChatHeading2", "@markup.heading.2", "a heading of the second level" },
  { "AgentChatHeading3", "@markup.heading.3", "a heading of the third level" },
  { "AgentChatHeading4", "@markup.heading.4", "a heading of the fourth level" },
  { "AgentChatHeading5", "@markup.heading.5", "a heading of the fifth level" },
  { "AgentChatHeading6", "@markup.heading.6", "a heading of the sixth level" },
  { "AgentChatStrong", "@markup.strong", "`**strong**` text" },
  { "AgentChatEmphasis", "@markup.italic", "`*emphasized*` text" },
  { "AgentChatStrikethrough", "@markup.strikethrough", "`~~struck through~~` text" },
  { "AgentChatCode", "@markup.raw", "code within a line" },
  { "AgentChatCodeBlock", "@markup.raw.block", "a line of a code block" },
  { "AgentChatFence", "@punctuation.special", "the line that opens or closes a code block" },
  { "AgentChatLink", "@markup.link.label", "the text of a link" },
  { "AgentChatUrl", "@markup.link.url", "where a link leads" },
  { "AgentChatListMarker", "@markup.list", "bullet or number of a list item" },
  { "AgentChatTaskDone", "@markup.list.checked", "the check box of a task that is done" },
  { "AgentChatTaskTodo", "@markup.list.unchecked", "the check box of a task that is not" },
  { "AgentChatQuote", "@markup.quote", "a line of a quote" },
  { "AgentChatTableHeader", "@markup.heading", "the head of a table" },
  { "AgentChatTableBorder", "@punctuation.special", "what separates the cells of a table" },
  { "AgentChatRule", "@punctuation.special", "a line across" },
  { "AgentChatFollowLine", "Visual", "the line that was just jumped to" },
  { "AgentChatFollow1", "DiagnosticInfo", "where the agent of the first session is" },
  { "AgentChatFollow2", "DiagnosticHint", "where that of the second is" },
  { "AgentChatFollow3", "DiagnosticWarn", "where that of the third is" },
  { "AgentChatFollow4", "DiagnosticOk", "where that of the fourth is; then it begins anew" },
  { "AgentChatPermissionTitle", "Title", "what a permission request is for" },
  { "AgentChatPermissionDanger", "DiagnosticError", "what is dangerous about it" },
  { "AgentChatPermissionKey", "Special", "the keys of a way to answer it" },
  { "AgentChatPermissionHint", "Comment", "how to answer from where you are" },
  { "AgentChatQuestionField", "Title", "what a question of an agent's asks for" },
  { "AgentChatQuestionUrl", "Underlined", "the address that it wants to be opened" },
  { "AgentChatPermissionBorder", "DiagnosticWarn", "the border of a permission request" },
}

--- The colours of terminals in cards, as terminals number them, with what they are if the user has no
--- `g:terminal_color_0` and so on.
---@type { [1]: string, [2]: string }[]
M.terminal = {
  { "AgentChatTermBlack", "#000000" },
  { "AgentChatTermRed", "#cd3131" },
  { "AgentChatTermGreen", "#0dbc79" },
  { "AgentChatTermYellow", "#c19c00" },
  { "AgentChatTermBlue", "#2472c8" },
  { "AgentChatTermMagenta", "#bc3fbc" },
  { "AgentChatTermCyan", "#11a8cd" },
  { "AgentChatTermWhite", "#cccccc" },
  { "AgentChatTermBrightBlack", "#767676" },
  { "AgentChatTermBrightRed", "#f14c4c" },
  { "AgentChatTermBrightGreen", "#23d18b" },
  { "AgentChatTermBrightYellow", "#e5b80b" },
  { "AgentChatTermBrightBlue", "#3b8eea" },
  { "AgentChatTermBrightMagenta", "#d670d6" },
  { "AgentChatTermBrightCyan", "#29b8db" },
  { "AgentChatTermBrightWhite", "#ffffff" },
}

function M.set()
  for number, group in ipairs(M.terminal) do
    local colour = vim.g["terminal_color_" .. number - 1]
    colour = type(colour) == "string" and colour or group[2]
    local ok = pcall(api.nvim_set_hl, 0, group[1], { default = true, fg = colour, ctermfg = number - 1 })
    if not ok then
      api.nvim_set_hl(0, group[1], { default = true, fg = group[2], ctermfg = number - 1 })
    end
  end
  for _, group in ipairs(M.groups) do
    api.nvim_set_hl(0, group[1], { default = true, link = group[2] })
  end
end

return M
