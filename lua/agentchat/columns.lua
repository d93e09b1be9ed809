--- Texts measured in columns of the screen.

local M = {}

M.width = vim.fn.strdisplaywidth

--- The beginning of a text, as much as has room; an ellipsis says that there is more.
---@param text string one line
---@param room integer columns; with less than one there is no room at all
---@return string
function M.cut(text, room)
  if M.width(text) <= room then
    return text
  elseif room < 1 then
    return ""
  end
  local kept = vim.fn.strcharpart(text, 0, room - 1)
  while kept ~= "" and M.width(kept) > room - 1 do
    kept = vim.fn.strcharpart(kept, 0, vim.fn.strchars(kept) - 1)
  end
  return kept .. "…"
end

return M
