--- The windows of a transcript: which of them follow its end, and which rows somebody looks at.
---
--- A window follows while its cursor is in the last line and the end of that line was not scrolled out of view. Anything
--- that the user does to cursor or view makes it stay; reaching the end makes it follow again.

local M = {}

local api = vim.api

--- A column behind the end of any line; Neovim clamps it.
local TO_LINE_END = 0x3fffffff
--- Breaking a line at words takes Neovim five times as long as wrapping it anywhere, for the whole line at each change
--- of it: from this length on (in bytes) the windows that follow the text do without.
local LONG_LINE = 4000
--- Rows at the end that the helper highlights without being asked; more if a window has shown more.
local FOLLOWED = 60
--- Most rows that the helper highlights for one window.
local MAX_SEEN = 300

---@class agentchat.Scrolling
---@field detached table<integer, boolean> windows that stay although their cursor is in the last line
---@field held table<integer, integer> row of the cursor in windows that follow again once they may be moved
---@field bottom table<integer, integer> the last row that each window showed when it was drawn, 1-based
---@field followed integer rows at the end that the helper highlights without being asked
---@field seen table<integer, [integer, integer]> rows that were asked for, by window: the first, the one after the last

---@type table<integer, agentchat.Scrolling> by buffer
local states = {}

---@param win integer
---@param buf integer
---@return boolean
local function is_in_last_line(win, buf)
  return api.nvim_win_get_cursor(win)[1] >= api.nvim_buf_line_count(buf)
end

--- Length of the last line, in bytes.
---@param buf integer
---@return integer
local function last_length(buf)
  local last = api.nvim_buf_line_count(buf)
  return api.nvim_buf_get_offset(buf, last) - api.nvim_buf_get_offset(buf, last - 1) - 1
end

--- Whether the window shows the last character of the text.
---@param win integer
---@param buf integer
---@return boolean
local function shows_end(win, buf)
  return vim.fn.screenpos(win, api.nvim_buf_line_count(buf), math.max(last_length(buf), 1)).row > 0
end

--- Whether a window's cursor may be moved now: not while the user selects or has an operator pending in it.
---@param win integer
---@return boolean
local function may_move(win)
  if win ~= api.nvim_get_current_win() then
    return true
  end
  local mode = api.nvim_get_mode().mode
  return mode == "n" or mode == "c"
end

--- The windows of a buffer; some may be in neither list.
---@param buf integer
---@return integer[] following windows that follow the end
---@return integer[] others windows that stay
function M.windows(buf)
  local state = states[buf]
  local following, others = {}, {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local row = api.nvim_win_get_cursor(win)[1]
    local at_end = is_in_last_line(win, buf) or state.held[win] == row
    state.held[win] = nil
    if not at_end then
      others[#others + 1] = win
    elseif not may_move(win) then
      state.held[win] = row
    elseif not state.detached[win] then
      following[#following + 1] = win
    end
  end
  return following, others
end

--- Shows the end of the text.
---@param win integer
---@param buf integer
function M.to_end(win, buf)
  if last_length(buf) > LONG_LINE then
    vim.wo[win][0].linebreak = false
  end
  api.nvim_win_set_cursor(win, { api.nvim_buf_line_count(buf), TO_LINE_END })
end

--- A window was scrolled, by us or by the user.
---@param win integer
---@param buf integer
---@param delta table of |WinScrolled-event|
local function scrolled(win, buf, delta)
  local state = states[buf]
  local is_down = delta.topline > 0 or (delta.topline == 0 and delta.skipcol > 0)
  local is_up = delta.topline < 0 or (delta.topline == 0 and delta.skipcol < 0)
  local in_last_line = is_in_last_line(win, buf)
  if is_up and in_last_line and not shows_end(win, buf) then
    state.detached[win] = true
  elseif is_down and (state.detached[win] or not in_last_line) and shows_end(win, buf) then
    -- With the end in view already, it was not the end that the user scrolled for.
    local was_in_view = not in_last_line and (state.bottom[win] or 0) >= api.nvim_buf_line_count(buf)
    if not was_in_view and may_move(win) then
      state.detached[win] = nil
      M.to_end(win, buf)
    end
  end
end

--- The cursor was moved in a window.
---@param win integer
---@param buf integer
local function moved(win, buf)
  local state = states[buf]
  if not state.detached[win] then
    return
  end
  local cursor = api.nvim_win_get_cursor(win)
  local is_at_end = cursor[1] >= api.nvim_buf_line_count(buf) and cursor[2] >= last_length(buf) - 1
  -- In any other line the cursor alone decides.
  if is_at_end and shows_end(win, buf) or not is_in_last_line(win, buf) then
    state.detached[win] = nil
  end
end

--- Asks the helper for the highlights of what a window shows, unless they are there.
---@param win integer
---@param buf integer
---@param first integer 0-based first row
---@param last integer 0-based last row, as far as Neovim knows before it has drawn the window
local function see(win, buf, first, last)
  local state = states[buf]
  if not state then
    return
  end
  local count = api.nvim_buf_line_count(buf)
  last = math.min(last + 1, count)
  state.bottom[win] = last
  local asked = state.seen[win]
  if first >= count - state.followed or (asked and first >= asked[1] and last <= asked[2]) then
    return
  end
  local height = last - first
  state.followed = math.max(state.followed, math.min(height, MAX_SEEN))
  -- What is scrolled to next comes along.
  state.seen[win] = { math.max(first - height, 0), math.min(last + height, count) }
  require("agentchat.helper").notify("view", { chat = vim.b[buf].agentchat, first = first, last = last })
end

api.nvim_set_decoration_provider(api.nvim_create_namespace("agentchat.view"), {
  on_win = function(_, win, buf, first, last)
    see(win, buf, first, last)
    return false
  end,
})

--- Takes care of a buffer's windows from now on.
---@param buf integer
---@param group integer for autocommands
function M.own(buf, group)
  states[buf] = { detached = {}, held = {}, bottom = {}, followed = FOLLOWED, seen = {} }
  api.nvim_create_autocmd("WinScrolled", {
    group = group,
    callback = function()
      for key, delta in pairs(vim.v.event) do
        local win = tonumber(key)
        if win and api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == buf then
          scrolled(win, buf, delta)
        end
      end
    end,
  })
  api.nvim_create_autocmd("CursorMoved", {
    group = group,
    buffer = buf,
    callback = function()
      moved(api.nvim_get_current_win(), buf)
    end,
  })
  api.nvim_create_autocmd("WinClosed", {
    group = group,
    callback = function(event)
      local win = tonumber(event.match)
      local state = states[buf]
      if win and state then
        state.detached[win], state.held[win], state.bottom[win], state.seen[win] = nil, nil, nil, nil
      end
    end,
  })
end

--- The buffer's text comes again from the beginning, and none of it is highlighted.
---@param buf integer
function M.start_over(buf)
  local state = states[buf]
  if state then
    state.seen = {}
  end
end

---@param buf integer
function M.forget(buf)
  states[buf] = nil
end

return M
