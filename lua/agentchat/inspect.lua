--- All that an agent sent of one tool call, in a float.

local M = {}

local api = vim.api

---@type { buf: integer, chat: integer, entry: integer }? what is being shown
local shown

---@param title string
---@return string
local function fit(title)
  local room = math.max(10, math.floor(vim.o.columns * 0.8) - 4)
  return vim.fn.strcharpart((title:gsub("%c", " ")), 0, room)
end

--- Opens a float in the middle of the editor, and enters it.
---@param title string
---@param lines string[]
---@param filetype string
---@return integer buf
---@return integer win
function M.float(title, lines, filetype)
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].modeline = false
  vim.bo[buf].undolevels = -1
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].modifiable = false
  local width, height = math.floor(vim.o.columns * 0.8), math.floor(vim.o.lines * 0.8)
  local win = api.nvim_open_win(buf, true, {
    relative = "editor",
    width = width,
    height = height,
    col = math.floor((vim.o.columns - width) / 2),
    row = math.floor((vim.o.lines - height) / 2) - 1,
    border = "rounded",
    style = "minimal",
    title = " " .. fit(title) .. " ",
  })
  vim.wo[win][0].wrap = true
  vim.keymap.set("n", "q", "<Cmd>close<CR>", { buffer = buf, nowait = true, desc = "Close this window" })
  vim.bo[buf].filetype = filetype
  return buf, win
end

--- Shows the tool call at the cursor.
function M.open()
  local buf = api.nvim_get_current_buf()
  local chat = require("agentchat.chats").of_buffer(buf)
  local entry = require("agentchat.folds").entry_at(buf, api.nvim_win_get_cursor(0)[1] - 1)
  if not chat or not entry or entry.kind ~= "tool" then
    require("agentchat.message").show("info", "there is no tool call under the cursor")
    return
  end
  local title = api.nvim_buf_get_lines(buf, entry.row, entry.row + 1, true)[1]
  local float = M.float(title, { "…" }, "agentchat_inspect")
  shown = { buf = float, chat = chat.id, entry = entry.entry }
  require("agentchat.helper").notify("inspect", { chat = chat.id, entry = entry.entry })
end

--- Takes a piece of what the helper knows.
---@param chat integer
---@param entry integer
---@param is_first boolean
---@param title string
---@param lines string[]
function M.receive(chat, entry, is_first, title, lines)
  if not shown or shown.chat ~= chat or shown.entry ~= entry or not api.nvim_buf_is_valid(shown.buf) then
    return
  end
  vim.bo[shown.buf].modifiable = true
  api.nvim_buf_set_lines(shown.buf, is_first and 0 or -1, -1, true, lines)
  vim.bo[shown.buf].modifiable = false
  for _, win in ipairs(is_first and vim.fn.win_findbuf(shown.buf) or {}) do
    api.nvim_win_set_config(win, { title = " " .. fit(title) .. " " })
  end
end

return M
