--- A message where there is no line for messages ('cmdheight' is 0): Neovim would show it with a hit-enter prompt, in which
--- the helper gets no answer. A line above the status line tells it instead, until something is done.

local M = {}

local api = vim.api

--- Milliseconds until a message goes by itself.
local STAYS = 5000

---@type integer?
local shown

local function close()
  if shown and api.nvim_win_is_valid(shown) then
    pcall(api.nvim_win_close, shown, true)
  end
  shown = nil
end

--- Columns that a message may have.
---@return integer
function M.room()
  return vim.o.columns - 1
end

--- Shows a line, in place of the one before.
---@param text string that fits
---@param highlight string
function M.show(text, highlight)
  close()
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = "wipe"
  api.nvim_buf_set_lines(buf, 0, -1, true, { text })
  local win = api.nvim_open_win(buf, false, {
    relative = "editor",
    row = math.max(0, vim.o.lines - 1 - (vim.o.laststatus > 0 and 1 or 0)),
    col = 0,
    width = math.max(1, math.min(M.room(), require("agentchat.columns").width(text))),
    height = 1,
    style = "minimal",
    border = "none",
    focusable = false,
    zindex = 200,
    noautocmd = true,
  })
  shown = win
  api.nvim_set_option_value("winhighlight", "Normal:" .. highlight, { win = win, scope = "local" })
  local function close_this()
    if shown == win then
      close()
    end
  end
  -- Not by what led to the message, which may still be going on.
  vim.schedule(function()
    api.nvim_create_autocmd({ "CursorMoved", "CursorMovedI", "ModeChanged", "WinEnter" }, {
      group = api.nvim_create_augroup("agentchat.message", {}),
      once = true,
      callback = close_this,
    })
  end)
  vim.defer_fn(close_this, STAYS)
end

return M
