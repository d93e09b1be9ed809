--- Moving in a transcript: between turns, tool calls and code blocks, and the text objects of a code block.

local M = {}

local api = vim.api

--- Puts the cursor of the current window on a row, so that `` takes it back.
---@param row integer 0-based
local function go(row)
  vim.cmd("normal! m'")
  api.nvim_win_set_cursor(0, { math.max(1, math.min(row + 1, api.nvim_buf_line_count(0))), 0 })
end

---@param kinds table<string, boolean>
---@param step 1|-1
---@return integer? row of the entry that is `v:count1` further, else of the farthest
local function entry_row(kinds, step)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local entries = require("agentchat.folds").entries_from(api.nvim_get_current_buf(), row, step, kinds)
  local entry = entries[math.min(vim.v.count1, #entries)]
  return entry and entry.row
end

--- To the next prompt of the user, or the one before; past the last one to the end, which is followed again.
---@param step 1|-1
function M.turn(step)
  local row = entry_row({ user = true }, step)
  go(row or step > 0 and api.nvim_buf_line_count(0) - 1 or 0)
end

--- To the next tool call, or the one before.
---@param step 1|-1
function M.tool(step)
  local row = entry_row({ tool = true }, step)
  if row then
    go(row)
  end
end

--- To the first line of the next code block, or of the one before.
---@param step 1|-1
function M.code(step)
  local folds, code_blocks = require("agentchat.folds"), require("agentchat.code_blocks")
  local buf, row = api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1
  local entries = folds.entries_from(buf, row, step, code_blocks.messages)
  local here = folds.entry_at(buf, row)
  if here and step > 0 then
    table.insert(entries, 1, here)
  end
  local left, found = vim.v.count1, nil
  for _, entry in ipairs(entries) do
    local blocks = code_blocks.of_entry(buf, entry)
    for i = 1, #blocks do
      local target = blocks[step > 0 and i or #blocks + 1 - i].open + 1
      if left > 0 and (target - row) * step > 0 then
        found, left = target, left - 1
      end
    end
    if left == 0 then
      break
    end
  end
  if found then
    go(found)
  end
end

--- Selects the code block at the cursor.
---@param around boolean whether its fences belong to it
function M.select_code(around)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local block = require("agentchat.code_blocks").at(api.nvim_get_current_buf(), row)
  if not block then
    return
  end
  local last_row = api.nvim_buf_line_count(0) - 1
  local first = around and block.open or block.open + 1
  local last = math.min(around and block.close or block.close - 1, last_row)
  if last < first then
    return
  end
  if vim.fn.mode():find("^[vV\22]") then
    vim.cmd("normal! \27")
  end
  api.nvim_win_set_cursor(0, { first + 1, 0 })
  vim.cmd("normal! V")
  api.nvim_win_set_cursor(0, { last + 1, 0 })
end

return M
