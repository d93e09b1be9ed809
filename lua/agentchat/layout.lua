--- The chat's two windows: opening and closing them together, and what a user may do to them.

---@class agentchat.Layout
---@field chat agentchat.Chat
---@field transcript integer window
---@field prompt integer window
---@field below boolean whether the pair is below the other windows, not beside them
---@field busy boolean whether we are changing it ourselves
---@field wins integer[] the tab page's windows when the pair's width was last the user's choice
---@field share number the pair's part of the screen's columns, as configured or as the user made it
---@field before? agentchat.SizesBefore the others' sizes without it

local M = {}

local api = vim.api
local windows = require("agentchat.windows")
local sizes = require("agentchat.layout_sizes")

---@type table<integer, agentchat.Layout> by tab page
local layouts = {}

---@type table<string, any>
local shared_options = {
  number = false,
  relativenumber = false,
  signcolumn = "no",
  foldcolumn = "0",
  statuscolumn = "",
  colorcolumn = "",
  list = false,
  wrap = true,
  linebreak = true,
  cursorline = false,
}

--- Runs `change`, which changes the windows for us: `window_guard` stands back meanwhile, and no longer.
---@generic T
---@param layout agentchat.Layout
---@param change fun(): T?
---@return T?
function M.while_busy(layout, change)
  local was = layout.busy
  layout.busy = true
  local ok, result = pcall(change)
  layout.busy = was
  if not ok then
    error(result, 0)
  end
  return result
end

---@param win integer
---@param name string
---@param value any
local function set_local(win, name, value)
  api.nvim_set_option_value(name, value, { win = win, scope = "local" })
end

--- Shows the chat's status in the bar of its transcript window, unless the user wants none.
---@param layout agentchat.Layout
function M.show_bar(layout)
  if require("agentchat.config").get().winbar then
    local columns = api.nvim_win_get_width(layout.transcript)
    set_local(layout.transcript, "winbar", require("agentchat.status").winbar(layout.chat, columns))
  end
end

---@param layout agentchat.Layout
---@param kind "transcript"|"prompt"
function M.dress(layout, kind)
  local win = layout[kind]
  for name, value in pairs(shared_options) do
    set_local(win, name, value)
  end
  set_local(win, "winfixwidth", not layout.below)
  set_local(win, "winfixheight", kind == "prompt" or layout.below)
  if kind == "transcript" then
    set_local(win, "spell", false)
    M.show_bar(layout)
    local buf = api.nvim_win_get_buf(win)
    if not require("agentchat.folds").has(buf, win) then
      require("agentchat.folds").prepare(buf, win)
    end
  end
end

--- The layout of a tab page, of which a window may be missing.
---@param tab integer
---@return agentchat.Layout?
function M.get(tab)
  return layouts[tab]
end

--- The layout of a tab page that has both windows.
---@param tab integer
---@return agentchat.Layout?
function M.complete(tab)
  local layout = layouts[tab]
  if layout and api.nvim_win_is_valid(layout.transcript) and api.nvim_win_is_valid(layout.prompt) then
    return layout
  end
end

--- The tab pages that show a chat.
---@param chat agentchat.Chat
---@return fun(): integer, agentchat.Layout
function M.of_chat(chat)
  ---@type integer, agentchat.Layout
  local tab, layout
  return function()
    repeat
      tab, layout = next(layouts, tab)
    until not tab or (layout.chat == chat and M.complete(tab))
    return tab, layout
  end
end

---@param win integer
---@return integer? tab
---@return agentchat.Layout? layout
---@return "transcript"|"prompt"|nil kind
function M.of_window(win)
  for tab, layout in pairs(layouts) do
    if layout.transcript == win then
      return tab, layout, "transcript"
    elseif layout.prompt == win then
      return tab, layout, "prompt"
    end
  end
end

--- Keeps where a window was, for when its chat is shown again.
---@param layout agentchat.Layout
---@param kind "transcript"|"prompt"
function M.remember_view(layout, kind)
  local win, chat = layout[kind], layout.chat
  if not api.nvim_win_is_valid(win) or api.nvim_win_get_buf(win) ~= chat[kind] then
    return
  end
  if kind == "transcript" then
    require("agentchat.folds").remember(chat.transcript, win)
  end
  chat.views[kind] = {
    view = api.nvim_win_call(win, vim.fn.winsaveview),
    at_end = api.nvim_win_get_cursor(win)[1] >= api.nvim_buf_line_count(chat[kind]),
  }
end

---@param layout agentchat.Layout
---@param kind "transcript"|"prompt"
function M.recall_view(layout, kind)
  local win, known = layout[kind], layout.chat.views[kind]
  if kind == "transcript" and (not known or known.at_end) then
    local last = api.nvim_buf_line_count(api.nvim_win_get_buf(win))
    api.nvim_win_set_cursor(win, { last, 0x3fffffff })
  elseif known then
    api.nvim_win_call(win, function()
      vim.fn.winrestview(known.view)
    end)
  end
end

--- Shows the chat's status in the bar of its transcript window.
---@param chat agentchat.Chat
function M.refresh_bar(chat)
  for _, layout in M.of_chat(chat) do
    M.show_bar(layout)
  end
end

--- Opens the two windows in the current tab page.
---@param chat agentchat.Chat
---@return agentchat.Layout
local function open_pair(chat)
  local bounds = require("agentchat.config").get().layout
  local below = vim.o.columns < bounds.min_columns
  local transcript = require("agentchat.transcript").ensure(chat)
  local prompt = require("agentchat.prompt").ensure(chat)
  local tab = api.nvim_get_current_tabpage()
  local before = sizes.before(tab)
  ---@type agentchat.Layout
  local layout = {
    chat = chat,
    transcript = 0,
    prompt = 0,
    below = below,
    busy = false,
    wins = {},
    share = 0,
    before = before,
  }
  windows.keeping_views(tab, function()
    if below then
      local height = math.max(math.floor(vim.o.lines * bounds.width), bounds.prompt_min + sizes.LEAST_TRANSCRIPT + 2)
      layout.transcript = api.nvim_open_win(transcript, false, { split = "below", win = -1, height = height })
      api.nvim_win_set_height(layout.transcript, height)
    else
      local width = math.floor(vim.o.columns * bounds.width)
      layout.transcript = api.nvim_open_win(transcript, false, { split = "right", win = -1, width = width })
      -- 'equalalways' gives all windows the same width, this one too.
      api.nvim_win_set_width(layout.transcript, width)
    end
    sizes.opened(tab, layout, before)
    local opened, reason = pcall(windows.keeping_sizes, tab, function()
      layout.prompt =
        api.nvim_open_win(prompt, false, { split = "below", win = layout.transcript, height = bounds.prompt_min })
    end)
    if not opened then
      api.nvim_win_close(layout.transcript, true)
      error(reason, 0)
    end
  end)
  sizes.note_share(tab, layout)
  sizes.settled(tab, before)
  layouts[tab] = layout
  return layout
end

--- Shows another chat in the windows that are there.
---@param layout agentchat.Layout
---@param chat agentchat.Chat
local function exchange(layout, chat)
  M.remember_view(layout, "transcript")
  M.remember_view(layout, "prompt")
  layout.chat = chat
  M.while_busy(layout, function()
    windows.put(layout.transcript, require("agentchat.transcript").ensure(chat))
    windows.put(layout.prompt, require("agentchat.prompt").ensure(chat))
  end)
end

---@param layout agentchat.Layout
local function finish_opening(layout)
  M.while_busy(layout, function()
    M.dress(layout, "transcript")
    M.dress(layout, "prompt")
    M.recall_view(layout, "transcript")
    M.recall_view(layout, "prompt")
  end)
  sizes.fit_prompt(layout.chat)
  require("agentchat.spinner").update()
end

--- Shows a chat in the current tab page.
---@param chat agentchat.Chat
---@param enter boolean whether the prompt becomes the current window
---@return boolean shown
function M.show(chat, enter)
  if vim.fn.getcmdwintype() ~= "" then
    require("agentchat.message").show("error", "the chat cannot open from the command-line window: leave it first")
    return false
  end
  require("agentchat.window_guard").watch()
  require("agentchat.chats").assign(chat)
  local tab = api.nvim_get_current_tabpage()
  local layout = M.complete(tab)
  if not layout then
    M.close(tab)
    local ok, result = pcall(open_pair, chat)
    if not ok then
      require("agentchat.message").show("error", ("the chat cannot be opened here: %s"):format(result))
      return false
    end
    layout = result
    finish_opening(layout)
  elseif layout.chat ~= chat then
    local ok, reason = pcall(exchange, layout, chat)
    if not ok then
      require("agentchat.message").show("error", ("the chat cannot be shown here: %s"):format(reason))
      return false
    end
    finish_opening(layout)
  end
  if enter then
    api.nvim_set_current_win(layout.prompt)
  end
  return true
end

--- Whether the chat's windows are in the tab page.
---@param tab? integer
---@return boolean
function M.is_open(tab)
  return M.complete(tab or api.nvim_get_current_tabpage()) ~= nil
end

--- Where the prompt is: something in the bottom right corner should leave it free.
---@return integer? row its first screen line, 0-based; nil when the chat is not shown
---@return integer? width in columns
function M.prompt_area()
  local layout = M.complete(api.nvim_get_current_tabpage())
  if layout then
    return api.nvim_win_get_position(layout.prompt)[1], api.nvim_win_get_width(layout.prompt)
  end
end

--- The chats that some tab page shows.
---@return agentchat.Chat[]
function M.shown_chats()
  local chats = {}
  for tab, layout in pairs(layouts) do
    if api.nvim_tabpage_is_valid(tab) and M.complete(tab) then
      chats[#chats + 1] = layout.chat
    end
  end
  return chats
end

---@param win integer
function M.close_window(win)
  if api.nvim_win_is_valid(win) then
    local ok, reason = pcall(api.nvim_win_close, win, true)
    if not ok then
      require("agentchat.message").show("error", ("a chat window cannot be closed: %s"):format(reason))
    end
  end
end

--- Ends insert mode if the window is where the user types: it would go on in the window that they come to next.
---@param layout agentchat.Layout
function M.end_insert(layout)
  local win = api.nvim_get_current_win()
  local mode = api.nvim_get_mode().mode
  local inserts = mode:find("^[iR]") or mode:find("^ni")
  if inserts and (win == layout.prompt or win == layout.transcript) then
    vim.cmd.stopinsert()
  end
end

---@param tab integer
---@param layout agentchat.Layout
local function close_pair(tab, layout)
  local others = vim.tbl_filter(function(win)
    return win ~= layout.transcript and win ~= layout.prompt
  end, windows.fixed(tab))
  if #others == 0 then
    layout.transcript = api.nvim_win_is_valid(layout.transcript) and layout.transcript or layout.prompt
    api.nvim_set_current_win(require("agentchat.code_window").open(layout))
  end
  local at_close = require("agentchat.window_sizes").take(others)
  windows.keeping_sizes(tab, function()
    M.close_window(layout.prompt)
    M.close_window(layout.transcript)
  end)
  if layout.before and #others > 0 and tab == api.nvim_get_current_tabpage() then
    sizes.closed(tab, layout.before, at_close)
  end
end

--- Closes what there is of the chat's windows in a tab page. The session goes on.
---@param tab? integer
function M.close(tab)
  tab = tab or api.nvim_get_current_tabpage()
  local layout = layouts[tab]
  if not layout or layout.busy then
    return
  end
  if not api.nvim_tabpage_is_valid(tab) then
    layouts[tab] = nil
    return
  end
  M.end_insert(layout)
  M.remember_view(layout, "transcript")
  M.remember_view(layout, "prompt")
  M.while_busy(layout, function()
    windows.keeping_views(tab, function()
      close_pair(tab, layout)
    end)
  end)
  layouts[tab] = nil
end

--- Puts both windows back after one of them went.
---@param tab integer
function M.rebuild(tab)
  local layout = layouts[tab]
  if not layout or tab ~= api.nvim_get_current_tabpage() then
    return
  end
  local kind = api.nvim_win_is_valid(layout.transcript) and "transcript" or "prompt"
  local win = layout[kind]
  if not api.nvim_win_is_valid(win) then
    layouts[tab] = nil
    return
  end
  local stays = api.nvim_get_current_win() == win
  local ok, reason = pcall(M.while_busy, layout, function()
    if kind == "transcript" then
      local prompt = require("agentchat.prompt").ensure(layout.chat)
      local least = require("agentchat.config").get().layout.prompt_min
      layout.prompt = api.nvim_open_win(prompt, false, { split = "below", win = win, height = least })
    else
      local transcript = require("agentchat.transcript").ensure(layout.chat)
      local height = math.max(1, api.nvim_win_get_height(win) - 4)
      layout.transcript = api.nvim_open_win(transcript, false, { split = "above", win = win, height = height })
    end
  end)
  if not ok then
    require("agentchat.message").show("error", ("the chat has no room here: %s"):format(reason))
    M.close(tab)
    return
  end
  finish_opening(layout)
  if stays then
    api.nvim_set_current_win(win)
  end
end

--- The chat has a new transcript buffer: shows it where the old one was.
---@param old integer
---@param chat agentchat.Chat
function M.replace_buffer(old, chat)
  for _, layout in M.of_chat(chat) do
    if api.nvim_win_get_buf(layout.transcript) == old then
      M.while_busy(layout, function()
        windows.put(layout.transcript, chat.transcript)
        M.dress(layout, "transcript")
      end)
    end
  end
end

--- Takes over two windows that show a chat's buffers already (after a session file).
---@param tab integer
---@param chat agentchat.Chat
---@param transcript integer window
---@param prompt integer window
function M.adopt(tab, chat, transcript, prompt)
  require("agentchat.window_guard").watch()
  if M.complete(tab) then
    return
  end
  local below = api.nvim_win_get_width(transcript) >= vim.o.columns
  ---@type agentchat.Layout
  local layout =
    { chat = chat, transcript = transcript, prompt = prompt, below = below, busy = false, wins = {}, share = 0 }
  sizes.note_share(tab, layout)
  layouts[tab] = layout
  finish_opening(layout)
end

return M
