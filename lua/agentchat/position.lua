--- Where a place in a text is after edits. Rows and columns are 0-based, columns are bytes.

---@alias agentchat.Edit { [1]: integer, [2]: integer, [3]: integer, [4]: integer, [5]: string[] } row, col, end_row, end_col, lines

local M = {}

---@param row integer
---@param col integer
---@param edit agentchat.Edit
---@return integer row
---@return integer col
local function after_one(row, col, edit)
  local first_row, first_col, end_row, end_col, lines = unpack(edit)
  if row < first_row or (row == first_row and col < first_col) then
    return row, col
  end
  if row < end_row or (row == end_row and col < end_col) then
    return math.min(row, first_row + #lines - 1), col
  end
  local moved = row - end_row + first_row + #lines - 1
  if row == end_row then
    col = col - end_col + #lines[#lines] + (#lines == 1 and first_col or 0)
  end
  return moved, col
end

--- Where a place is after edits that go from the bottom up. A place inside of replaced text keeps its row if it can.
---@param row integer
---@param col integer
---@param edits agentchat.Edit[]
---@return integer row
---@return integer col
function M.after(row, col, edits)
  for _, edit in ipairs(edits) do
    row, col = after_one(row, col, edit)
  end
  return row, col
end

return M
