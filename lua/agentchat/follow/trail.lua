--- The places where the agent was in this turn, as a quickfix list.

local M = {}

local api = vim.api

---@class agentchat.TrailPlace
---@field path string
---@field line? integer 1-based
---@field kind string
---@field title string
---@field text? string of the line, as it is on disk

---@type integer counts questions; only the newest is answered
local asked = 0
---@type { chat: integer, after?: fun() }
local question

--- Fills the quickfix list.
---@param after? fun() what to do then
function M.fill(after)
  local chat = require("agentchat.chats").current()
  if not chat or not chat.opened then
    require("agentchat.message").show("info", "no agent was anywhere yet; :AgentChat opens a chat")
    return
  end
  asked = asked + 1
  question = { chat = chat.id, after = after }
  require("agentchat.helper").notify("trail", { chat = chat.id, id = asked })
end

--- The text of a line, as the user sees it.
---@param place agentchat.TrailPlace
---@return string
local function text_of(place)
  local buf = vim.fn.bufexists(place.path) == 1 and vim.fn.bufadd(place.path)
  if buf and api.nvim_buf_is_loaded(buf) then
    local row = (place.line or 1) - 1
    return api.nvim_buf_get_lines(buf, row, row + 1, false)[1] or ""
  end
  return place.text or ""
end

---@param place agentchat.TrailPlace
---@return table
local function entry(place)
  local title = place.title ~= "" and place.title or place.kind
  local what = place.title ~= "" and ("%s: %s"):format(place.kind, title) or title
  local text = vim.trim(text_of(place))
  return {
    filename = place.path,
    lnum = math.max(1, place.line or 1),
    text = text ~= "" and ("%s │ %s"):format(what, text) or what,
  }
end

--- The helper's answer.
---@param number integer
---@param places agentchat.TrailPlace[]
function M.receive(number, places)
  if number ~= asked then
    return
  end
  local name = require("agentchat.follow.marks").name(question.chat)
  local context = { agentchat = question.chat }
  vim.fn.setqflist({}, " ", { title = "Trail of " .. name, items = vim.tbl_map(entry, places), context = context })
  if question.after then
    question.after()
    return
  end
  local message = #places == 0 and ("%s was nowhere in this turn; ask it something"):format(name)
    or ("%d places where %s was; :copen lists them"):format(#places, name)
  require("agentchat.message").show("info", message)
end

--- Goes to a place, in a window for files.
---@param command string
local function go(command)
  if vim.bo.buftype ~= "" and vim.bo.buftype ~= "quickfix" then
    api.nvim_set_current_win(require("agentchat.code_window").get())
  end
  local ok, reason = pcall(vim.cmd, command)
  if not ok then
    local text = tostring(reason):gsub("^.-Vim%([^)]*%):", "")
    require("agentchat.message").show("info", text)
  end
end

--- Goes to the next place of the trail, or the one before. The first time, to its beginning or its end.
---@param step 1|-1
function M.walk(step)
  local chat = require("agentchat.chats").current()
  local list = vim.fn.getqflist({ context = 1 })
  local is_trail = type(list.context) == "table" and chat and list.context.agentchat == chat.id
  if is_trail then
    go(("%d%s"):format(vim.v.count1, step > 0 and "cnext" or "cprevious"))
    return
  end
  local win = api.nvim_get_current_win()
  M.fill(function()
    if api.nvim_get_current_win() == win and api.nvim_get_mode().mode == "n" then
      go(step > 0 and "cfirst" or "clast")
    end
  end)
end

return M
