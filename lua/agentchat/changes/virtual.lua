--- Lines that are no more, as virtual lines: tabs and control characters as they were seen in the text.

local M = {}

local api = vim.api

---@param text string
---@param tabstop integer
---@return string
local function printable(text, tabstop)
  if not text:find("%c") then
    return text
  end
  local result, width = {}, 0
  for part, control in (text .. "\0"):gmatch("([^%c]*)(%c)") do
    result[#result + 1] = part
    width = width + api.nvim_strwidth(part)
    if control == "\t" then
      local blanks = tabstop - width % tabstop
      result[#result + 1] = (" "):rep(blanks)
      width = width + blanks
    elseif control ~= "\0" then
      result[#result + 1] = vim.fn.strtrans(control)
      width = width + 2
    end
  end
  return table.concat(result)
end

--- An old line in chunks, as wide as the screen.
---@param line string
---@param changed integer[][] bytes that are no more
---@param tabstop integer
---@param colours? table<integer, string> the group of each byte in the file's language
---@return table[]
function M.line(line, changed, tabstop, colours)
  local chunks, at, width = {}, 0, 0
  local function piece(to, group)
    local text = line:sub(at + 1, to)
    -- A tab's width depends on where it stands.
    text = printable((" "):rep(width % tabstop) .. text, tabstop):sub(width % tabstop + 1)
    chunks[#chunks + 1] = { text, group }
    width = width + api.nvim_strwidth(text)
    at = to
  end
  local function add(to, group)
    while colours and at < to do
      local colour, stop = colours[at + 1], at + 1
      while stop < to and colours[stop + 1] == colour do
        stop = stop + 1
      end
      piece(stop, colour and { group, colour } or group)
    end
    if to > at then
      piece(to, group)
    end
  end
  for _, range in ipairs(changed) do
    add(range[1], "AgentChatDiffDelete")
    add(range[2], "AgentChatDiffDeleteWord")
  end
  add(#line, "AgentChatDiffDelete")
  chunks[#chunks + 1] = { (" "):rep(math.max(1, vim.o.columns - width)), "AgentChatDiffDelete" }
  return chunks
end

return M
