--- Looks after the chat's windows: what the user closes, quits, or opens in them.

local M = {}

local api = vim.api
local windows = require("agentchat.windows")
local layouts = require("agentchat.layout")
local sizes = require("agentchat.layout_sizes")

--- Shows a buffer in a normal window, which is opened if there is none that may show another buffer.
---@param tab integer
---@param layout agentchat.Layout
---@param buf integer
---@return integer win
local function show_beside(tab, layout, buf)
  local win = windows.normal(tab, { [layout.transcript] = true, [layout.prompt] = true })
  if win and pcall(api.nvim_win_set_buf, win, buf) then
    return win
  end
  return windows.keeping_views(tab, function()
    return require("agentchat.code_window").open(layout, buf)
  end)
end

--- Moves a buffer that was opened in a chat window to a normal one.
---@param tab integer
---@param layout agentchat.Layout
---@param kind "transcript"|"prompt"
local function move_out(tab, layout, kind)
  local win, chat = layout[kind], layout.chat
  local buf = api.nvim_win_get_buf(win)
  local own = chat[kind]
  if not own or not api.nvim_buf_is_loaded(own) then
    own = require("agentchat." .. kind).ensure(chat)
  end
  local view = api.nvim_win_call(win, vim.fn.winsaveview)
  local entered = api.nvim_get_current_win() == win
  local other, other_kind = require("agentchat.chats").of_buffer(buf)
  local is_other_chat = other and other_kind == kind and other ~= chat
  ---@type integer?
  local target = layouts.while_busy(layout, function()
    -- In this order: without 'hidden' a buffer in no window is unloaded, or refuses to leave its last one.
    local beside = not is_other_chat and show_beside(tab, layout, buf) or nil
    windows.put(win, own)
    layouts.dress(layout, kind)
    if beside then
      layouts.recall_view(layout, kind)
    end
    return beside
  end)
  if other and is_other_chat then
    layouts.show(other, false)
    return
  end
  ---@cast target integer
  api.nvim_win_call(target, function()
    vim.fn.winrestview(view)
  end)
  if entered then
    api.nvim_set_current_win(target)
  end
end

--- Looks after chat windows that show something else.
function M.rescue()
  local tab = api.nvim_get_current_tabpage()
  local layout = layouts.get(tab)
  if not layout or layout.busy then
    return
  end
  for _, kind in ipairs({ "transcript", "prompt" }) do
    ---@cast kind "transcript"|"prompt"
    local win = layout[kind]
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) ~= layout.chat[kind] then
      move_out(tab, layout, kind)
    end
  end
end

---@return boolean
local function shows_something_else()
  local layout = layouts.get(api.nvim_get_current_tabpage())
  if not layout or layout.busy then
    return false
  end
  local function foreign(kind)
    return api.nvim_win_is_valid(layout[kind]) and api.nvim_win_get_buf(layout[kind]) ~= layout.chat[kind]
  end
  return foreign("transcript") or foreign("prompt")
end

--- One of the windows is closing: the other follows, unless the user is in it and has closed all others (`:only`).
---@param win integer
local function on_closed(win)
  local tab, layout, kind = layouts.of_window(win)
  if not tab or not layout or layout.busy then
    return
  end
  ---@cast kind "transcript"|"prompt"
  if api.nvim_get_current_win() == win then
    layouts.end_insert(layout)
  end
  layouts.remember_view(layout, kind)
  local partner = kind == "prompt" and layout.transcript or layout.prompt
  local current = api.nvim_get_current_win()
  local by_only = current ~= win and current == partner
  vim.schedule(function()
    if layouts.get(tab) ~= layout then
      return
    end
    if by_only and api.nvim_win_is_valid(partner) then
      layouts.rebuild(tab)
    else
      layouts.close(tab)
    end
  end)
end

--- `:q` where only the chat's windows are left means to leave: the other one makes way. If quitting fails after all
--- (another buffer has changes), it comes back.
local function on_quit()
  local win = api.nvim_get_current_win()
  local tab, layout, kind = layouts.of_window(win)
  if not tab or not layout or layout.busy or #windows.fixed(tab) ~= 2 or not layouts.is_open(tab) then
    return
  end
  layouts.remember_view(layout, "transcript")
  layouts.remember_view(layout, "prompt")
  layouts.while_busy(layout, function()
    layouts.close_window(kind == "prompt" and layout.transcript or layout.prompt)
  end)
  vim.schedule(function()
    if layouts.get(tab) == layout and api.nvim_win_is_valid(win) then
      M.rescue()
      layouts.rebuild(tab)
    end
  end)
end

local watching = false
---@type table<integer, integer> the screen's columns when a tab page was last looked at
local columns = {}

--- Begins to look after the windows.
function M.watch()
  if watching then
    return
  end
  watching = true
  local group = api.nvim_create_augroup("agentchat.layout", {})
  api.nvim_create_autocmd("WinClosed", {
    group = group,
    callback = function(args)
      on_closed(tonumber(args.match) --[[@as integer]])
    end,
  })
  api.nvim_create_autocmd("BufNew", {
    group = group,
    callback = function()
      require("agentchat.restore").make_room()
    end,
  })
  api.nvim_create_autocmd("QuitPre", { group = group, callback = on_quit })
  api.nvim_create_autocmd({ "BufWinEnter", "BufEnter" }, {
    group = group,
    callback = function()
      if shows_something_else() then
        vim.schedule(M.rescue)
      end
    end,
  })
  api.nvim_create_autocmd("WinResized", {
    group = group,
    callback = function()
      local layout = layouts.complete(api.nvim_get_current_tabpage())
      if layout then
        layouts.show_bar(layout)
      end
      if layout and not layout.busy then
        sizes.resized(layout)
        sizes.fit_prompt(layout.chat)
      end
    end,
  })
  api.nvim_create_autocmd({ "VimResized", "TabEnter" }, {
    group = group,
    callback = function()
      local tab = api.nvim_get_current_tabpage()
      if columns[tab] ~= vim.o.columns then
        columns[tab] = vim.o.columns
        sizes.fit_width(tab)
      end
    end,
  })
end

return M
