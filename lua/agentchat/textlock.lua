--- Neovim forbids changes of text and windows at times (|textlock|, E565), and says so only by failing.

local M = {}

--- How long to wait before trying again, in milliseconds.
M.RETRY = 50

--- Whether an error means that Neovim forbids changes at the moment.
---@param reason any
---@return boolean
function M.is_locked(reason)
  return type(reason) == "string" and reason:find("E565", 1, true) ~= nil
end

--- Runs `action` now, or as soon as it is allowed. It may be run several times, up to where it was stopped.
---@param action fun()
function M.run(action)
  local ok, reason = pcall(action)
  if ok then
    return
  elseif not M.is_locked(reason) then
    error(reason, 0)
  end
  vim.defer_fn(function()
    local done, problem = pcall(M.run, action)
    if not done then
      require("agentchat.message").show("error", "please report this: " .. tostring(problem))
    end
  end, M.RETRY)
end

return M
