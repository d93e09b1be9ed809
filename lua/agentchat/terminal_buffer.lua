--- The buffer of a terminal: made without anybody noticing, fed with what the helper has drawn for its size.

local M = {}

local api = vim.api

--- The size of the largest window that shows a buffer: Neovim gives its terminal that size.
---@param buf integer
---@return integer? columns
---@return integer? rows
function M.shown_size(buf)
  local columns, rows
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    columns = math.max(columns or 0, api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff)
    rows = math.max(rows or 0, api.nvim_win_get_height(win))
  end
  return columns, rows
end

--- Opens the terminal of a buffer. Its size is that of the current window, so one of the right size is current for a
--- moment. `TermOpen` is not for it: many users go to insert mode then.
---@param buf integer
---@param info { columns: integer, rows: integer }
---@param on_input fun(data: string)
---@return integer channel
local function open_channel(buf, info, on_input)
  local ignored = vim.o.eventignore
  vim.o.eventignore = "all"
  local win
  local ok, channel = pcall(function()
    win = api.nvim_open_win(buf, false, {
      relative = "editor",
      row = 0,
      col = 0,
      width = info.columns,
      height = info.rows,
      style = "minimal",
      hide = true,
      focusable = false,
    })
    local opened
    api.nvim_win_call(win, function()
      opened = api.nvim_open_term(buf, {
        on_input = function(_, _, _, data)
          on_input(data)
        end,
      })
    end)
    return opened
  end)
  if win then
    pcall(api.nvim_win_close, win, true)
  end
  vim.o.eventignore = ignored
  if not ok then
    error(channel, 0)
  end
  return channel
end

--- Makes a buffer with a terminal. Fails while Neovim allows no new windows.
---@param name string
---@param info { columns: integer, rows: integer }
---@param on_input fun(data: string)
---@return integer buf
---@return integer channel
function M.create(name, info, on_input)
  local buf = api.nvim_create_buf(true, true)
  vim.bo[buf].bufhidden = "hide"
  local ok, channel = pcall(open_channel, buf, info, on_input)
  if not ok then
    pcall(api.nvim_buf_delete, buf, { force = true })
    error(channel, 0)
  end
  -- Of two with the same name the second goes without.
  pcall(api.nvim_buf_set_name, buf, name)
  vim.bo[buf].filetype = "agentchat_terminal"
  return buf, channel
end

--- Puts the cursor of a window where the terminal goes on: there, Neovim follows what is written.
---@param win integer
function M.to_end(win)
  local last = api.nvim_buf_line_count(api.nvim_win_get_buf(win))
  api.nvim_win_set_cursor(win, { last, 0 })
  api.nvim_win_call(win, function()
    vim.fn.winrestview({ topline = math.max(1, last - api.nvim_win_get_height(win) + 1) })
  end)
end

return M
