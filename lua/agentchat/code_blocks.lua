--- Fenced code blocks in the messages of a transcript.

local M = {}

local api = vim.api

---@class agentchat.CodeBlock
---@field open integer row of the opening fence, 0-based
---@field close integer row of the closing fence; the row after the last one while the block is open

--- The entries that may have code blocks.
M.messages = { user = true, agent = true, thought = true }

---@param line string
---@return string? fence
---@return string? info
local function fence_of(line)
  if not line:find("```", 1, true) and not line:find("~~~", 1, true) then
    return nil
  end
  local fence, info = line:match("^[%s>]*(```+)([^`]*)$")
  if not fence then
    fence, info = line:match("^[%s>]*(~~~+)(.*)$")
  end
  return fence, info
end

--- The blocks of an entry; none if it is no message.
---@param buf integer
---@param entry agentchat.EntryPlace
---@return agentchat.CodeBlock[]
function M.of_entry(buf, entry)
  if not M.messages[entry.kind] then
    return {}
  end
  local after = require("agentchat.folds").entry_end(buf, entry.row)
  local blocks, open = {}, nil
  ---@type string?
  local opened_by
  for i, line in ipairs(api.nvim_buf_get_lines(buf, entry.row, after, true)) do
    local fence, info = fence_of(line)
    if fence and not opened_by then
      opened_by, open = fence, entry.row + i - 1
    elseif fence and opened_by and vim.startswith(fence, opened_by) and not info:find("%S") then
      blocks[#blocks + 1] = { open = open, close = entry.row + i - 1 }
      opened_by = nil
    end
  end
  if opened_by then
    blocks[#blocks + 1] = { open = open, close = after }
  end
  return blocks
end

--- The block that a row lies in, its fences included.
---@param buf integer
---@param row integer 0-based
---@return agentchat.CodeBlock?
function M.at(buf, row)
  local entry = require("agentchat.folds").entry_at(buf, row)
  for _, block in ipairs(entry and M.of_entry(buf, entry) or {}) do
    if block.open <= row and row <= block.close then
      return block
    end
  end
end

return M
