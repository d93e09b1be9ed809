--- Sessions from before, of any agent: the list of them, and going on with one.

---@class agentchat.SessionItem
---@field agent string
---@field session? string the agent's id for it; nil for a chat that has none yet
---@field cwd string
---@field title? string
---@field opening? string first line of the first prompt
---@field last? string first line of what the agent said last
---@field updated? integer when something happened in it last, in seconds since 1970
---@field listed boolean whether the agent lists it itself
---@field key? integer what our own store calls it, if it is kept
---@field chat? integer the chat in which it is open

local M = {}

local TITLE_WIDTH = 44
local LAST_WIDTH = 60

---@type table<integer, fun(items: agentchat.SessionItem[], problem?: string)>
local waiting = {}
local last_question = 0
--- The ids of the last list, for completion.
---@type string[]
local known_ids = {}

--- Seconds since 1970 of a time as the protocol writes it.
---@param text? string ISO 8601
---@return integer?
function M.seconds(text)
  local year, month, day, hour, minute, second, rest = (text or ""):match(
    "^(%d+)-(%d+)-(%d+)[Tt ](%d+):(%d+):?(%d*)(.*)$"
  )
  if not year then
    return
  end
  year, month, day = tonumber(year), tonumber(month), tonumber(day)
  -- Days since 1970-01-01, with years that begin in March, so that a leap day is a year's last.
  local y = month <= 2 and year - 1 or year
  local m = (month + 9) % 12
  local days = 365 * y + math.floor(y / 4) - math.floor(y / 100) + math.floor(y / 400)
  days = days + math.floor((153 * m + 2) / 5) + day - 1 - 719468
  local total = days * 86400 + tonumber(hour) * 3600 + tonumber(minute) * 60 + (tonumber(second) or 0)
  local sign, zone_hour, zone_minute = rest:match("([+-])(%d%d):?(%d%d)$")
  if sign then
    local offset = tonumber(zone_hour) * 3600 + tonumber(zone_minute) * 60
    total = sign == "+" and total - offset or total + offset
  end
  return total
end

--- How long ago that was, in a few characters.
---@param seconds? integer since 1970
---@param now integer
---@return string
function M.age(seconds, now)
  if not seconds then
    return ""
  end
  local ago = math.max(0, now - seconds)
  for _, unit in ipairs({ { 86400 * 365, "y" }, { 86400 * 30, "mo" }, { 86400, "d" }, { 3600, "h" }, { 60, "min" } }) do
    if ago >= unit[1] then
      return ("%d %s"):format(math.floor(ago / unit[1]), unit[2])
    end
  end
  return "now"
end

---@param text string
---@param width integer in columns
---@return string
local function cut(text, width)
  text = vim.trim((text:gsub("%c+", " ")))
  if vim.api.nvim_strwidth(text) <= width then
    return text
  end
  return vim.fn.strcharpart(text, 0, width - 1) .. "…"
end

---@param item agentchat.SessionItem
---@param now integer
---@return string
local function line(item, now)
  local title = item.title or item.opening or (item.session and "untitled" or "new chat")
  title = cut(title, TITLE_WIDTH)
  title = title .. (" "):rep(TITLE_WIDTH - vim.api.nvim_strwidth(title))
  local parts = { title, item.agent, item.chat and "open" or M.age(item.updated, now) }
  parts[#parts + 1] = vim.fn.fnamemodify(item.cwd, ":~")
  if item.last then
    parts[#parts + 1] = "“" .. cut(item.last, LAST_WIDTH) .. "”"
  end
  return table.concat(
    vim.tbl_filter(function(part)
      return part ~= ""
    end, parts),
    " · "
  )
end

---@param chat agentchat.Chat
---@return string
local function agent_of(chat)
  local info = require("agentchat.helper").info
  return chat.status.agent or chat.agent or (info and info.default_agent) or "agent"
end

--- The chats of this Neovim among the sessions; those that no list names come first.
---@param items agentchat.SessionItem[]
---@return agentchat.SessionItem[]
local function with_chats(items)
  local list = {}
  for _, chat in ipairs(require("agentchat.chats").all()) do
    local id = chat.status.session_id
    local found = id
      and vim.iter(items):find(function(item)
        return item.session == id and item.agent == agent_of(chat) and not item.chat
      end)
    if found then
      found.chat = chat.id
    elseif chat.opened then
      local title = chat.status.title
      list[#list + 1] =
        { agent = agent_of(chat), session = id, cwd = chat.cwd, title = title, listed = false, chat = chat.id }
    end
  end
  return vim.list_extend(list, items)
end

--- Those of this folder first, then the newest first.
---@param items agentchat.SessionItem[]
local function sort(items)
  local here = vim.fn.getcwd()
  local place = {}
  for i, item in ipairs(items) do
    place[item] = i
  end
  table.sort(items, function(a, b)
    if (a.cwd == here) ~= (b.cwd == here) then
      return a.cwd == here
    elseif (a.chat ~= nil) ~= (b.chat ~= nil) then
      return a.chat ~= nil
    elseif (a.updated or 0) ~= (b.updated or 0) then
      return (a.updated or 0) > (b.updated or 0)
    end
    return place[a] < place[b]
  end)
end

--- Asks for all sessions: those that the agent lists, and those that are kept.
---@param callback fun(items: agentchat.SessionItem[], problem?: string)
function M.list(callback)
  local helper = require("agentchat.helper")
  helper.ensure()
  if helper.state == "failed" then
    callback({}, helper.error)
    return
  end
  last_question = last_question + 1
  waiting[last_question] = callback
  local chat = require("agentchat.chats").current()
  local agent = chat and (chat.status.agent or chat.agent)
  helper.notify("sessions", { id = last_question, agent = agent, at = vim.fn.getcwd() })
end

--- The helper's answer.
---@param question integer
---@param items table[]
---@param problem? string
function M.receive(question, items, problem)
  local callback = waiting[question]
  waiting[question] = nil
  if not callback then
    return
  end
  for _, item in ipairs(items) do
    local kept = item.updated_ms and math.floor(item.updated_ms / 1000)
    item.updated = M.seconds(item.updated_at) or kept
    item.updated_at, item.updated_ms = nil, nil
  end
  items = with_chats(items)
  sort(items)
  known_ids = {}
  for _, item in ipairs(items) do
    known_ids[#known_ids + 1] = item.session
  end
  callback(items, problem)
end

--- The helper is gone: nobody will answer.
---@param reason string
function M.forget(reason)
  local callbacks = waiting
  waiting = {}
  for _, callback in pairs(callbacks) do
    callback({}, reason)
  end
end

--- Ids to complete: those of the last list.
---@return string[]
function M.ids()
  return known_ids
end

--- Shows a session in the current tab page: its chat if it is open, else a new one that gets it.
---@param item agentchat.SessionItem
function M.open(item)
  local chats = require("agentchat.chats")
  local chat = item.chat and chats.get(item.chat)
  if not chat then
    local cwd = item.cwd
    if not vim.uv.fs_stat(cwd) then
      require("agentchat.message").show("warn", ("its folder %s is gone; it goes on in this one"):format(cwd))
      cwd = vim.fn.getcwd()
    end
    chat = chats.create({ agent = item.agent, cwd = cwd })
    chat.known = { session = item.session, key = item.key, title = item.title }
  end
  require("agentchat").show(chat)
end

---@param prompt string
---@param choose fun(item: agentchat.SessionItem)
local function pick(prompt, choose)
  M.list(function(items, problem)
    local message = require("agentchat.message")
    if problem then
      message.show("warn", problem)
    end
    if #items == 0 then
      message.show("info", "there are no sessions yet")
      return
    end
    local now = os.time()
    vim.ui.select(items, {
      prompt = prompt,
      kind = "agentchat_session",
      format_item = function(item)
        return line(item, now)
      end,
    }, function(item)
      if item then
        choose(item)
      end
    end)
  end)
end

--- Lets the user choose a session.
function M.pick()
  pick("Sessions", M.open)
end

--- Goes on with a session: that of an id; else with what was lost in the current chat, else the newest of this folder.
---@param id? string
function M.resume(id)
  local chat = require("agentchat.chats").current()
  if not id and chat and chat.status.lost then
    require("agentchat.helper").notify("take_along", { chat = chat.id })
    return
  end
  M.list(function(items)
    local here = vim.fn.getcwd()
    local found = vim.iter(items):find(function(item)
      if id then
        return item.session == id
      end
      return item.session ~= nil and item.cwd == here and not item.chat
    end)
    if found then
      M.open(found)
    elseif id then
      -- An agent that lists nothing may know it all the same.
      M.open({ agent = chat and agent_of(chat) or nil, session = id, cwd = here, listed = false })
    else
      require("agentchat.message").show("info", "there is no earlier session of this folder; see :AgentChat sessions")
    end
  end)
end

--- A copy of the current chat's session in a new chat.
function M.fork()
  local chats = require("agentchat.chats")
  local chat = chats.current()
  local session = chat and chat.status.session_id
  if not chat or not session then
    require("agentchat.message").show("info", "there is no session to fork")
    return
  end
  local copy = chats.create({ agent = agent_of(chat), cwd = chat.cwd })
  copy.known = { session = session, title = chat.status.title, fork = true }
  require("agentchat").show(copy)
end

---@param item agentchat.SessionItem
local function delete(item)
  require("agentchat.helper").notify("delete_session", { agent = item.agent, session = item.session, key = item.key })
end

--- Deletes a session: that of an id, else one that the user chooses and confirms.
---@param id? string
function M.delete(id)
  if not id then
    pick("Delete which session?", function(item)
      vim.ui.select(
        { "Keep it", "Delete it" },
        { prompt = ("Delete “%s”?"):format(line(item, os.time())) },
        function(_, nth)
          if nth == 2 then
            delete(item)
          end
        end
      )
    end)
    return
  end
  M.list(function(items)
    local found = vim.iter(items):find(function(item)
      return item.session == id
    end)
    if found then
      delete(found)
    else
      require("agentchat.message").show("error", ("there is no session %s; see :AgentChat sessions"):format(id))
    end
  end)
end

return M
