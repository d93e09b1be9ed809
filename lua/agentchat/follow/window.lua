--- Which window shows where the agent is: never the one that the user is in.

local M = {}

local api = vim.api
local windows = require("agentchat.windows")

--- What a split leaves to each of the two windows at least.
local LEAST_COLUMNS, LEAST_LINES = 80, 15

--- Whether files may be shown in a window at all.
---@param win integer
---@param ours? integer a buffer that we put there, of whatever kind
---@return boolean
local function is_normal(win, ours)
  local buf = api.nvim_win_get_buf(win)
  local hidden = vim.bo[buf].bufhidden
  return not windows.is_float(win)
    and (buf == ours or vim.bo[buf].buftype == "")
    -- Leaving it would lose the buffer.
    and (hidden == "" or hidden == "hide")
    and not vim.wo[win].winfixbuf
    and not vim.wo[win].previewwindow
    and not vim.wo[win].diff
end

--- The windows in which what the user types next may land.
---@param tab integer
---@return table<integer, boolean>
local function in_use(tab)
  local current = api.nvim_get_current_win()
  local used = { [current] = true, [api.nvim_tabpage_get_win(tab)] = true }
  if windows.is_float(current) then
    -- A picker, say: when it closes, the user is back in the window before.
    used[vim.fn.win_getid(vim.fn.winnr("#"))] = true
  end
  return used
end

--- Whether a window may show something else now.
---@param win integer
---@param tab integer
---@param ours? integer a buffer that we put there
---@return boolean
function M.is_free(win, tab, ours)
  local is_there = api.nvim_win_is_valid(win) and api.nvim_win_get_tabpage(win) == tab
  return is_there and is_normal(win, ours) and not in_use(tab)[win]
end

---@param win integer
---@return boolean
local function is_marked(win)
  local mark = vim.w[win].agentchat_follow
  return mark ~= nil and mark ~= vim.NIL and mark ~= false and mark ~= 0 and mark ~= ""
end

--- The windows of a tab page, the one used last first, as far as Neovim tells.
---@param tab integer
---@return integer[]
local function by_use(tab)
  local previous =
    vim.fn.win_getid(vim.fn.tabpagewinnr(api.nvim_tabpage_get_number(tab), "#"), api.nvim_tabpage_get_number(tab))
  local function used(win)
    return win == previous and math.huge or vim.fn.getbufinfo(api.nvim_win_get_buf(win))[1].lastused
  end
  local wins = windows.fixed(tab)
  table.sort(wins, function(a, b)
    local of_a, of_b = used(a), used(b)
    return of_a == of_b and a < b or of_a > of_b
  end)
  return wins
end

--- How a window may be split, if there is room.
---@param win integer
---@return "right"|"below"|nil
local function direction(win)
  local columns, lines = api.nvim_win_get_width(win), api.nvim_win_get_height(win)
  if math.floor((columns - 1) / 2) >= LEAST_COLUMNS and lines >= LEAST_LINES then
    return "right"
  elseif columns >= LEAST_COLUMNS and math.floor((lines - 1) / 2) >= LEAST_LINES then
    return "below"
  end
end

--- Opens a window beside the largest one, which gives half of itself; all others stay as they are.
---@param tab integer
---@param buf integer what it shows
---@return integer?
local function open(tab, buf)
  local best, best_size
  for _, win in ipairs(windows.fixed(tab)) do
    local is_transcript = vim.bo[api.nvim_win_get_buf(win)].filetype == "agentchat"
    if direction(win) and (is_normal(win) or is_transcript) then
      local size = api.nvim_win_get_width(win) * api.nvim_win_get_height(win)
      -- The transcript only if nothing else can be split.
      size = is_transcript and size / 1e6 or size
      if not best or size > best_size then
        best, best_size = win, size
      end
    end
  end
  if not best then
    return nil
  end
  local split = direction(best)
  local columns, lines = api.nvim_win_get_width(best), api.nvim_win_get_height(best)
  local config = { split = split, win = best, noautocmd = true }
  if split == "right" then
    config.width = math.floor((columns - 1) / 2)
  else
    config.height = math.floor((lines - 1) / 2)
  end
  local win = windows.keeping_views(tab, function()
    local opened
    windows.keeping_sizes(tab, function()
      vim.wo[best].winfixwidth, vim.wo[best].winfixheight = false, false
      opened = api.nvim_open_win(buf, false, config)
    end)
    return opened
  end)
  for name, value in pairs({ winfixwidth = false, winfixheight = false, winfixbuf = false, winbar = "" }) do
    api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
  return win
end

--- A window that is free: the marked one, else the last used one.
---@param tab integer
---@return integer?
function M.find(tab)
  local free = vim.tbl_filter(function(win)
    return M.is_free(win, tab)
  end, by_use(tab))
  for _, win in ipairs(free) do
    if is_marked(win) then
      return win
    end
  end
  return free[1]
end

--- A new window, if there is room for one. The user must be in the tab page.
---@param tab integer
---@param buf integer
---@return integer? win
---@return table? sizes of the windows before
function M.open(tab, buf)
  if tab ~= api.nvim_get_current_tabpage() then
    return nil
  end
  local sizes = windows.sizes(tab)
  local win = open(tab, buf)
  return win, sizes
end

--- Whether the window that the user is in is the only one for files.
---@param tab integer
---@return boolean
function M.is_only_fit(tab)
  return is_normal(api.nvim_tabpage_get_win(tab))
end

return M
