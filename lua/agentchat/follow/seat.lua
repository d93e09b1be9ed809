--- The window that follows the agent: what it showed before, what it shows now, and that it says so.

local M = {}

local api = vim.api
local quiet = require("agentchat.follow.quiet")
local visited = require("agentchat.follow.visited")

---@class agentchat.FollowSeat
---@field win integer
---@field buf integer what it showed before, or the first that it showed if we opened it
---@field view? table where that was; nil if we opened the window
---@field sizes? table of the windows before we opened it
---@field mark any the user's own `w:agentchat_follow`
---@field shown? integer buffer that we put there
---@field line? integer where we put the cursor
---@field statusline? string what we made of the window's status line

--- What Neovim shows without 'statusline'.
local PLAIN = "%<%f %h%w%m%r%=%-14.(%l,%c%V%) %P"
local SAYS = " %{get(w:, 'agentchat_follow', '')} "

---@param win integer
---@return string
local function own_statusline(win)
  return api.nvim_get_option_value("statusline", { win = win, scope = "local" })
end

---@param win integer
---@param value string
local function set_statusline(win, value)
  quiet.run(function()
    api.nvim_set_option_value("statusline", value, { win = win, scope = "local" })
  end)
end

--- Takes our text out of the status line, before the window shows another buffer: Neovim remembers the option with the
--- buffer and would use it in other windows.
---@param seat agentchat.FollowSeat
local function undress(seat)
  if seat.statusline and own_statusline(seat.win) == seat.statusline then
    set_statusline(seat.win, "")
  end
  seat.statusline = nil
end

---@param seat agentchat.FollowSeat
local function dress(seat)
  -- Somebody's own for this window, such as a status line plugin's, is left alone: the variable is there for it.
  if own_statusline(seat.win) ~= "" then
    return
  end
  local global = vim.go.statusline
  if vim.startswith(global, "%!") then
    return
  end
  seat.statusline = (global ~= "" and global or PLAIN) .. SAYS
  set_statusline(seat.win, seat.statusline)
end

--- Takes a window that shows something of the user's.
---@param win integer
---@return agentchat.FollowSeat
function M.take(win)
  return {
    win = win,
    buf = api.nvim_win_get_buf(win),
    view = api.nvim_win_call(win, vim.fn.winsaveview),
    mark = vim.w[win].agentchat_follow,
  }
end

--- Takes a window that was opened for us.
---@param win integer
---@param sizes table
---@return agentchat.FollowSeat
function M.take_new(win, sizes)
  local buf = api.nvim_win_get_buf(win)
  return { win = win, buf = buf, sizes = sizes, shown = buf }
end

--- Says in the window what it is.
---@param seat agentchat.FollowSeat
---@param text string
function M.say(seat, text)
  if api.nvim_win_is_valid(seat.win) then
    vim.w[seat.win].agentchat_follow = text
    if not seat.statusline then
      dress(seat)
    end
    api.nvim__redraw({ win = seat.win, statusline = true })
  end
end

--- Shows another buffer in a window, without a trace: no jump, no alternate file, nothing unloaded, no autocommand.
---@param win integer
---@param buf integer
local function put(win, buf)
  if api.nvim_win_get_buf(win) ~= buf then
    quiet.run(function()
      api.nvim_win_call(win, function()
        vim.cmd(("silent keepalt keepjumps hide buffer %d"):format(buf))
      end)
    end)
  end
end

--- The first line of a window that has `line` in its middle.
---@param win integer
---@param line integer 1-based
---@return integer
local function top_for(win, line)
  local half = math.floor((api.nvim_win_get_height(win) - 1) / 2)
  local top = line
  while top > 1 and api.nvim_win_text_height(win, { start_row = top - 2, end_row = line - 2 }).all <= half do
    top = top - 1
  end
  return top
end

--- Shows a line of a buffer, in the middle and unfolded.
---@param seat agentchat.FollowSeat
---@param buf integer
---@param line? integer 1-based; nil is where the buffer's cursor is in that window
function M.show(seat, buf, line)
  local is_other = api.nvim_win_get_buf(seat.win) ~= buf
  if is_other then
    undress(seat)
    put(seat.win, buf)
    seat.shown = buf
    dress(seat)
  end
  seat.shown = buf
  if not line and not is_other then
    return
  end
  line = math.max(1, math.min(line or 1, api.nvim_buf_line_count(buf)))
  api.nvim_win_set_cursor(seat.win, { line, 0 })
  api.nvim_win_call(seat.win, function()
    if vim.fn.foldclosed(line) ~= -1 then
      pcall(vim.cmd, ("silent keepjumps %dfoldopen!"):format(line))
    end
    vim.fn.winrestview({
      lnum = line,
      col = 0,
      coladd = 0,
      curswant = 0,
      topline = top_for(seat.win, line),
      leftcol = 0,
      skipcol = 0,
    })
  end)
  seat.line = line
end

--- Shows a terminal where it goes on.
---@param seat agentchat.FollowSeat
---@param buf integer
function M.show_end(seat, buf)
  M.show(seat, buf)
  require("agentchat.terminal_buffer").to_end(seat.win)
  require("agentchat.terminals").resized()
end

--- Whether the window still shows what we put there.
---@param seat agentchat.FollowSeat
---@return boolean
function M.is_ours(seat)
  return api.nvim_win_is_valid(seat.win) and (not seat.shown or api.nvim_win_get_buf(seat.win) == seat.shown)
end

--- Closes the window that we opened.
---@param seat agentchat.FollowSeat
local function close(seat)
  local windows = require("agentchat.windows")
  local tab = api.nvim_win_get_tabpage(seat.win)
  local others = vim.tbl_filter(function(win)
    return win ~= seat.win
  end, windows.fixed(tab))
  if #others == 0 then
    return
  end
  windows.keeping_views(tab, function()
    windows.keeping_sizes(tab, function()
      api.nvim_win_close(seat.win, true)
    end)
    local sizes = seat.sizes
    if sizes and tab == api.nvim_get_current_tabpage() then
      windows.restore_sizes(tab, sizes)
    end
  end)
end

--- Gives the window back: it shows again what it showed, where it was. One that the user is in, or in which somebody
--- has put something else, keeps what it shows.
---@param seat agentchat.FollowSeat
function M.give_back(seat)
  if not api.nvim_win_is_valid(seat.win) then
    return
  end
  undress(seat)
  vim.w[seat.win].agentchat_follow = seat.mark
  local is_current = seat.win == api.nvim_get_current_win()
    or seat.win == api.nvim_tabpage_get_win(api.nvim_win_get_tabpage(seat.win))
  if is_current or not M.is_ours(seat) or not seat.shown then
    visited.keep(api.nvim_win_get_buf(seat.win))
  elseif not seat.view then
    close(seat)
  elseif api.nvim_buf_is_loaded(seat.buf) then
    put(seat.win, seat.buf)
    api.nvim_win_call(seat.win, function()
      vim.fn.winrestview(seat.view)
    end)
  end
end

return M
