--- Lists of ours in a buffer and a window of their own, at the bottom of the screen: rows that do something.

local M = {}

local api = vim.api

local ns = api.nvim_create_namespace("agentchat.list")
local MOST_ROWS = 15

---@class agentchat.ListKey
---@field plug string name within `<Plug>(agentchat-…)`
---@field key string
---@field description string
---@field run fun()

---@class agentchat.ListBuffer
---@field name string of the buffer
---@field filetype string
---@field keys agentchat.ListKey[]
---@field buf? integer
---@field height? integer that its window got from us
local List = {}
List.__index = List

--- A list that is not shown yet.
---@param name string of the buffer
---@param filetype string
---@param keys agentchat.ListKey[] beside `q`, which closes it
---@return agentchat.ListBuffer
function M.new(name, filetype, keys)
  return setmetatable({ name = name, filetype = filetype, keys = keys }, List)
end

--- Whether its buffer is there.
---@return boolean
function List:is_open()
  return self.buf ~= nil and api.nvim_buf_is_valid(self.buf)
end

---@return integer
function List:create_buffer()
  local buf = require("agentchat.chats").create_buffer(self.name)
  self.buf = buf
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].filetype = self.filetype
  vim.bo[buf].modifiable = false
  ---@param entry agentchat.ListKey
  local function map(entry)
    local plug = ("<Plug>(agentchat-%s)"):format(entry.plug)
    vim.keymap.set("n", plug, entry.run, { buffer = buf, desc = entry.description })
    vim.keymap.set("n", entry.key, plug, { buffer = buf, desc = entry.description })
  end
  for _, entry in ipairs(self.keys) do
    map(entry)
  end
  local kind = self.filetype:gsub("^agentchat_", "")
  map({
    plug = kind .. "-close",
    key = "q",
    description = "Close the list",
    run = function()
      pcall(api.nvim_win_close, 0, false)
    end,
  })
  return buf
end

--- Does what the row of the cursor is there for.
---@param rows table<integer, fun()> by row (1-based)
---@param nothing string what to say where there is nothing to do
function List:act(rows, nothing)
  local found = rows[api.nvim_win_get_cursor(0)[1]]
  if found then
    found()
  else
    require("agentchat.message").show("info", nothing)
  end
end

--- Shows these lines; a window that shows the list already keeps its cursor.
---@param lines string[]
---@param groups table<integer, string> highlight groups of whole rows (1-based)
---@param first integer row (1-based) on which the cursor is in a new window
function List:show(lines, groups, first)
  local is_open = self:is_open()
  local shown_in = is_open and vim.fn.win_findbuf(self.buf)[1] or nil
  local buf = is_open and self.buf --[[@as integer]] or self:create_buffer()
  vim.bo[buf].modifiable = true
  local clean = vim.tbl_map(function(line)
    return (line:gsub("%c", " "))
  end, lines)
  api.nvim_buf_set_lines(buf, 0, -1, true, clean)
  vim.bo[buf].modifiable = false
  api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  for row, group in pairs(groups) do
    api.nvim_buf_set_extmark(buf, ns, row - 1, 0, { line_hl_group = group })
  end
  local height = math.min(#lines, MOST_ROWS)
  if shown_in then
    -- Unless the user has made it another.
    if api.nvim_win_get_height(shown_in) == self.height then
      api.nvim_win_set_height(shown_in, height)
      self.height = api.nvim_win_get_height(shown_in)
    end
  else
    local win = api.nvim_open_win(buf, true, { split = "below", win = -1, height = height })
    vim.wo[win].winfixheight = true
    vim.wo[win].wrap = false
    vim.wo[win].number, vim.wo[win].relativenumber, vim.wo[win].signcolumn = false, false, "no"
    api.nvim_win_set_cursor(win, { first, 0 })
    self.height = api.nvim_win_get_height(win)
  end
end

return M
