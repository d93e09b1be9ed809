--- Permission requests at the end of their chat's transcript, for small screens and screen readers: rows like any others,
--- which the helper keeps below all that is said.

local M = {}

local api = vim.api
local card_of = require("agentchat.permission_card")
local draw_ns = api.nvim_create_namespace("agentchat.permission")

---@class agentchat.InlineCard
---@field request agentchat.Permission
---@field rows agentchat.CardRow[]

---@type table<integer, agentchat.InlineCard> by chat
local cards = {}
---@type integer? the chat whose request is the displayed one
local current

---@param chat integer
---@return agentchat.Chat?
local function chat_of(chat)
  return require("agentchat.chats").get(chat)
end

--- The transcript's window in the tab page where the user is, if that chat is shown there.
---@param chat integer
---@return integer? win
local function window_of(chat)
  local layout = require("agentchat.layout").get(api.nvim_get_current_tabpage())
  if layout and layout.chat.id == chat and api.nvim_win_is_valid(layout.transcript) then
    return layout.transcript
  end
end

--- Where a chat's card is in its transcript.
---@param chat integer
---@return integer? first row, 0-based
---@return integer last row after its end
local function place_of(chat)
  local card, owner = cards[chat], chat_of(chat)
  local buf = owner and owner.transcript
  if not card or not buf or not api.nvim_buf_is_loaded(buf) then
    return nil, 0
  end
  local count, size = api.nvim_buf_line_count(buf), #card.rows
  -- Below it may be prompts that wait, and a blank row above them.
  local from = math.max(0, count - size - #owner.waiting - 2)
  local lines = api.nvim_buf_get_lines(buf, from, count, true)
  for at = 1, #lines - size + 1 do
    local matches = true
    for i = 1, size do
      if lines[at + i - 1] ~= card.rows[i][1] then
        matches = false
        break
      end
    end
    if matches then
      return from + at - 1, from + at - 1 + size
    end
  end
  return nil, 0
end

---@param request agentchat.Permission
---@param place integer
---@param total integer
---@param prompt? string
---@return agentchat.CardRow[]
local function rows_of(request, place, total, prompt)
  local parts = card_of.parts(request)
  local heading = "? " .. card_of.heading(request, place, total)
  local rows = { { heading, "AgentChatPermissionTitle", #heading } }
  for _, part in ipairs({ parts.about, parts.detail, parts.options }) do
    vim.list_extend(rows, part)
  end
  local how = prompt or card_of.how(request, vim.o.columns) .. " · <CR> on an answer"
  rows[#rows + 1] = { how, "", 0 }
  return rows
end

---@param chat integer
---@param rows agentchat.CardRow[]
local function send(chat, rows)
  local wire = vim.tbl_map(function(row)
    return { row[1], row[2], row[3] }
  end, rows)
  require("agentchat.helper").notify("asked", { chat = chat, rows = wire })
end

--- Shows each chat the oldest of its open requests, and takes away what is answered.
---@param prompt? string
local function refresh(prompt)
  local open = require("agentchat.permission").open()
  local wanted = {}
  for place, request in ipairs(open) do
    if not wanted[request.chat] then
      local rows = rows_of(request, place, #open, request.chat == current and prompt or nil)
      wanted[request.chat] = { request = request, rows = rows }
    end
  end
  for chat in pairs(vim.tbl_extend("keep", {}, cards, wanted)) do
    local card = wanted[chat]
    if not card then
      send(chat, {})
    elseif not cards[chat] or not vim.deep_equal(cards[chat].rows, card.rows) then
      send(chat, card.rows)
    end
  end
  cards = wanted
end

local watching = false

local function watch()
  if watching then
    return
  end
  watching = true
  api.nvim_set_decoration_provider(draw_ns, {
    on_win = function(_, win, _, first, last)
      if current and window_of(current) == win then
        local from, to = place_of(current)
        if from and from <= last and to > first then
          require("agentchat.permission").was_drawn()
        end
      end
      return false
    end,
  })
  local group = api.nvim_create_augroup("agentchat.permission", {})
  -- Which chat is in this tab page may be another one now.
  api.nvim_create_autocmd({ "TabEnter", "BufWinEnter", "WinClosed" }, {
    group = group,
    callback = vim.schedule_wrap(function()
      if next(cards) then
        require("agentchat.permission").refresh()
      end
    end),
  })
end

--- Displays a request.
---@param request agentchat.Permission
---@param _place integer
---@param _total integer
---@param prompt? string what is typed of an answer so far
function M.show(request, _place, _total, prompt)
  watch()
  current = request.chat
  refresh(prompt)
end

--- Displays nothing in this tab page.
function M.hide()
  watch()
  current = nil
  refresh()
end

--- Whether a request can be displayed in this tab page: only where its chat is.
---@param request agentchat.Permission
---@return boolean
function M.can_show(request)
  return window_of(request.chat) ~= nil
end

--- Whether the displayed request is in the part of the transcript that is in view.
---@return boolean
function M.is_shown()
  local win = current and window_of(current)
  if not win then
    return false
  end
  local from, to = place_of(current)
  return from ~= nil and from < vim.fn.line("w$", win) and to >= vim.fn.line("w0", win)
end

--- Brings a request into view that is not displayed in this tab page: goes to its chat, or opens it here.
---@param request agentchat.Permission
function M.reveal(request)
  local chat, layout = chat_of(request.chat), require("agentchat.layout")
  if not chat then
    return
  end
  if api.nvim_tabpage_is_valid(chat.tab) and layout.is_open(chat.tab) and layout.get(chat.tab).chat == chat then
    api.nvim_set_current_tabpage(chat.tab)
  elseif not layout.show(chat, false) then
    return
  end
  current = chat.id
  M.enter()
end

--- Goes to the first answer of the displayed request.
---@return boolean entered
function M.enter()
  local win = current and window_of(current)
  local from = win and place_of(current)
  if not win or not from then
    return false
  end
  local row = from
  for i, each in ipairs(cards[current].rows) do
    if each.n then
      row = from + i - 1
      break
    end
  end
  api.nvim_set_current_win(win)
  api.nvim_win_set_cursor(win, { row + 1, 0 })
  return true
end

--- Presses the key of the answer at the cursor, if there is one: <CR> in the transcript.
---@return boolean
function M.press_at_cursor()
  local win = current and window_of(current)
  if not win or win ~= api.nvim_get_current_win() then
    return false
  end
  local from, to = place_of(current)
  local row = api.nvim_win_get_cursor(win)[1] - 1
  if not from or row < from or row >= to then
    return false
  end
  local n = cards[current].rows[row - from + 1].n
  if n then
    require("agentchat.permission_keys").press(n)
  end
  return n ~= nil
end

--- The helper is gone, and with it what removes a card: takes a chat's card out of the buffer.
---@param chat agentchat.Chat
function M.drop(chat)
  local from, to = place_of(chat.id)
  cards[chat.id] = nil
  if from then
    require("agentchat.transcript").remove(chat, math.max(0, from - 1), to)
  end
end

return M
