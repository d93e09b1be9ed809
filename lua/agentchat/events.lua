--- The `User` autocommands of the plugin.

local M = {}

--- Fires one event. An error in a user's autocommand is reported and goes no further.
---@param name string the pattern, such as "AgentChatTurnEnd"
---@param data? table
function M.fire(name, data)
  local ok, reason = pcall(vim.api.nvim_exec_autocmds, "User", { pattern = name, data = data, modeline = false })
  if not ok then
    require("agentchat.message").show("error", ("an autocommand for %s failed: %s"):format(name, reason))
  end
end

return M
