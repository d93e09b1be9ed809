--- Where the agents are, in every buffer that has such a place: the line's number and dim text behind the line, which
--- move nothing. A sign only where there is a column for it anyway.

local M = {}

local api = vim.api

M.ns = api.nvim_create_namespace("agentchat.follow")

--- Groups there are; sessions share them in turn.
local COLOURS = 4
--- How long the line that was jumped to is highlighted, in milliseconds.
local FLASH = 500

---@type table<integer, table<string, integer>> line (1-based) by chat and path
local places = {}
---@type table<integer, table<integer, integer>> extmark by buffer and chat
local marks = {}
---@type integer? the autocommand that looks for places in buffers that are shown
local watcher

--- The highlight group of a chat.
---@param chat integer
---@return string
function M.group(chat)
  return ("AgentChatFollow%d"):format((chat - 1) % COLOURS + 1)
end

--- What a chat's agent is called, so that it is told from the others.
---@param chat integer
---@return string
function M.name(chat)
  local chats = require("agentchat.chats")
  local function agent(each)
    return each.status.agent or each.agent or "agent"
  end
  local mine = chats.get(chat)
  if not mine then
    return "agent"
  end
  for _, other in ipairs(chats.all()) do
    if other.id ~= chat and agent(other) == agent(mine) then
      return ("%s %d"):format(agent(mine), chat)
    end
  end
  return agent(mine)
end

--- Whether a sign would move the text in none of the windows.
---@param buf integer
---@return boolean
local function has_sign_column(buf)
  local wins = vim.fn.win_findbuf(buf)
  return #wins > 0
    and vim.iter(wins):all(function(win)
      local column = vim.wo[win].signcolumn
      return vim.startswith(column, "yes") or column == "number" or column == "no"
    end)
end

---@param buf integer
---@param chat integer
local function unmark(buf, chat)
  local id = marks[buf] and marks[buf][chat]
  if id then
    marks[buf][chat] = nil
    if api.nvim_buf_is_valid(buf) then
      api.nvim_buf_del_extmark(buf, M.ns, id)
    end
  end
end

---@param buf integer
---@param chat integer
---@param line integer 1-based
local function mark(buf, chat, line)
  marks[buf] = marks[buf] or {}
  local row = math.max(0, math.min(line, api.nvim_buf_line_count(buf)) - 1)
  local group = M.group(chat)
  marks[buf][chat] = api.nvim_buf_set_extmark(buf, M.ns, row, 0, {
    id = marks[buf][chat],
    number_hl_group = group,
    virt_text = { { "◂ " .. M.name(chat), { "AgentChatDim", group } } },
    virt_text_pos = "eol",
    hl_mode = "combine",
    sign_text = has_sign_column(buf) and "▸" or nil,
    sign_hl_group = group,
  })
end

--- Marks the places of a buffer that has come to be shown.
---@param buf integer
function M.refresh(buf)
  local name = api.nvim_buf_get_name(buf)
  if name == "" or not api.nvim_buf_is_loaded(buf) then
    return
  end
  for chat, lines in pairs(places) do
    for path, line in pairs(lines) do
      if vim.fn.bufexists(path) == 1 and vim.fn.bufadd(path) == buf then
        local known = marks[buf] and marks[buf][chat]
        local at = known and api.nvim_buf_get_extmark_by_id(buf, M.ns, known, {})[1]
        -- The text may have moved below the mark since.
        mark(buf, chat, at and at + 1 or line)
      end
    end
  end
end

local function watch()
  if next(places) == nil then
    if watcher then
      api.nvim_del_autocmd(watcher)
      watcher = nil
    end
  elseif not watcher then
    watcher = api.nvim_create_autocmd({ "BufWinEnter", "BufReadPost" }, {
      callback = function(args)
        M.refresh(args.buf)
      end,
    })
  end
end

--- Takes the news of one chat.
---@param chat integer
---@param clear boolean whether what was marked is no longer so
---@param news agentchat.SeenPlace[]
function M.update(chat, clear, news)
  if clear then
    places[chat] = nil
    for buf in pairs(marks) do
      unmark(buf, chat)
    end
  end
  for _, place in ipairs(news) do
    places[chat] = places[chat] or {}
    places[chat][place.path] = place.line or 1
    if vim.fn.bufexists(place.path) == 1 then
      local buf = vim.fn.bufadd(place.path)
      if api.nvim_buf_is_loaded(buf) then
        mark(buf, chat, place.line or 1)
      end
    end
  end
  watch()
end

--- Highlights a line for a moment.
---@param buf integer
---@param line integer 1-based
function M.flash(buf, line)
  local id = api.nvim_buf_set_extmark(buf, M.ns, line - 1, 0, { line_hl_group = "AgentChatFollowLine" })
  vim.defer_fn(function()
    if api.nvim_buf_is_valid(buf) then
      api.nvim_buf_del_extmark(buf, M.ns, id)
    end
  end, FLASH)
end

return M
