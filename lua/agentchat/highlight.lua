--- The highlight groups, all links that a colour scheme or the user may replace.

local M = {}

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
  { "AgentChatDim", "NonText", "what is beside the point" },
  { "AgentChatAdded", "Added", "a line that an edit adds" },
  { "AgentChatRemoved", "Removed", "a line that an edit removes" },
  { "AgentChatPermissionTitle", "Title", "what a permission request is for" },
  { "AgentChatPermissionBorder", "DiagnosticWarn", "the border of a permission request" },
}

function M.set()
  for _, group in ipairs(M.groups) do
    vim.api.nvim_set_hl(0, group[1], { default = true, link = group[2] })
  end
end

return M
