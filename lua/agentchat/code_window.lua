--- Where files are shown that are opened from the chat: in a window beside it.

local M = {}

local api = vim.api
local windows = require("agentchat.windows")

--- A window for files when there are only the chat's: beside them, with the last file or an empty buffer.
---@param layout agentchat.Layout
---@param buf? integer
---@return integer win
function M.open(layout, buf)
  if not buf then
    local listed = vim.tbl_filter(function(info)
      return vim.bo[info.bufnr].buftype == ""
    end, vim.fn.getbufinfo({ buflisted = 1 }))
    table.sort(listed, function(a, b)
      return a.lastused > b.lastused
    end)
    buf = listed[1] and listed[1].bufnr or api.nvim_create_buf(true, false)
  end
  local share = require("agentchat.config").get().layout.width
  local width = api.nvim_win_get_width(layout.transcript)
  local win = api.nvim_open_win(buf, false, { split = layout.below and "above" or "left", win = -1 })
  if not layout.below then
    api.nvim_win_set_width(layout.transcript, math.min(width, math.floor(vim.o.columns * share)))
  else
    api.nvim_win_set_height(win, vim.o.lines - math.floor(vim.o.lines * share) - 2)
  end
  return win
end

--- A window for files in the current tab page, beside the chat's; opened when there is none.
---@return integer win
function M.get()
  local tab = api.nvim_get_current_tabpage()
  local layout = require("agentchat.layout").complete(tab)
  local except = { [api.nvim_get_current_win()] = true }
  if layout then
    except[layout.transcript], except[layout.prompt] = true, true
  end
  local win = windows.normal(tab, except)
  if win then
    return win
  end
  return windows.keeping_views(tab, function()
    if layout then
      return M.open(layout)
    end
    return api.nvim_open_win(api.nvim_create_buf(true, false), false, { split = "above", win = 0 })
  end)
end

return M
