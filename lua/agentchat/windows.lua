--- Windows in general: opening and closing one without upsetting the others.

local M = {}

local api = vim.api

---@param win integer
function M.is_float(win)
  return api.nvim_win_get_config(win).relative ~= ""
end

--- The windows of a tab page that are not floating.
---@param tab integer
---@return integer[]
function M.fixed(tab)
  return vim.tbl_filter(function(win)
    return not M.is_float(win)
  end, api.nvim_tabpage_list_wins(tab))
end

--- Runs `change`, which may open or close windows, with every other window's view as it was.
---@generic T
---@param tab integer
---@param change fun(): T
---@return T
function M.keeping_views(tab, change)
  local views = {}
  for _, win in ipairs(M.fixed(tab)) do
    views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  local keep = vim.o.splitkeep
  vim.cmd("noautocmd set splitkeep=topline")
  local ok, result = pcall(change)
  vim.cmd("noautocmd set splitkeep=" .. keep)
  for win, view in pairs(views) do
    if api.nvim_win_is_valid(win) then
      api.nvim_win_call(win, function()
        vim.fn.winrestview(view)
      end)
    end
  end
  if not ok then
    error(result, 0)
  end
  return result
end

--- Shows a buffer of ours in a window of ours, also when the user has fixed the buffer there ('winfixbuf').
---@param win integer
---@param buf integer
function M.put(win, buf)
  local fixed = { win = win, scope = "local" }
  local is_fixed = api.nvim_get_option_value("winfixbuf", fixed)
  if not is_fixed then
    api.nvim_win_set_buf(win, buf)
    return
  end
  api.nvim_set_option_value("winfixbuf", false, fixed)
  local ok, reason = pcall(api.nvim_win_set_buf, win, buf)
  api.nvim_set_option_value("winfixbuf", true, fixed)
  if not ok then
    error(reason, 0)
  end
end

--- Closes windows without the equal sizes that 'equalalways' then gives the others. (Turning the option off does not
--- help: turning it on again makes all windows equal.)
---@param tab integer
---@param close fun()
function M.keeping_sizes(tab, close)
  local fixed = {}
  for _, win in ipairs(M.fixed(tab)) do
    fixed[win] = { vim.wo[win].winfixwidth, vim.wo[win].winfixheight }
    vim.wo[win].winfixwidth, vim.wo[win].winfixheight = true, true
  end
  local ok, reason = pcall(close)
  for win, options in pairs(fixed) do
    if api.nvim_win_is_valid(win) then
      vim.wo[win].winfixwidth, vim.wo[win].winfixheight = options[1], options[2]
    end
  end
  if not ok then
    error(reason, 0)
  end
end

---@class agentchat.ScreenSizes
---@field wins integer[]
---@field command string of |winrestcmd()|
---@field lines integer
---@field columns integer

--- Sizes to come back to, as long as there are the same windows in the same screen.
---@param tab integer
---@return agentchat.ScreenSizes
function M.sizes(tab)
  return {
    wins = M.fixed(tab),
    command = vim.fn.winrestcmd(),
    lines = vim.o.lines,
    columns = vim.o.columns,
  }
end

--- Puts sizes back that `sizes` took.
---@param tab integer the current tab page
---@param sizes agentchat.ScreenSizes
---@return boolean done
function M.restore_sizes(tab, sizes)
  local same = sizes.lines == vim.o.lines
    and sizes.columns == vim.o.columns
    and vim.deep_equal(sizes.wins, M.fixed(tab))
  if same then
    vim.cmd("noautocmd " .. sizes.command)
  end
  return same
end

--- A window in which a file may be shown: the last one the user was in, else any.
---@param tab integer
---@param except table<integer, boolean>
---@return integer?
function M.normal(tab, except)
  local function fits(win)
    if win == 0 or not api.nvim_win_is_valid(win) or except[win] or M.is_float(win) then
      return false
    end
    local buf = api.nvim_win_get_buf(win)
    return vim.bo[buf].buftype == "" and not vim.wo[win].winfixbuf and not vim.wo[win].previewwindow
  end
  local previous = vim.fn.win_getid(vim.fn.winnr("#"))
  if fits(previous) then
    return previous
  end
  for _, win in ipairs(M.fixed(tab)) do
    if fits(win) then
      return win
    end
  end
end

return M
