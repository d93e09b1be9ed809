--- Doing something without anybody hearing of it: autocommands of the user may start insert mode, move the cursor or ask
--- something, which in a window that they are not in would happen to what they are typing.

local M = {}

--- Runs `action` without autocommands and messages.
---@generic T
---@param action fun(): T
---@return T
function M.run(action)
  local ignored = vim.o.eventignore
  -- Not with |:noautocmd|, which puts this very option back.
  vim.o.eventignore = "all"
  local ok, result = pcall(action)
  vim.o.eventignore = ignored
  if not ok then
    error(result, 0)
  end
  return result
end

return M
