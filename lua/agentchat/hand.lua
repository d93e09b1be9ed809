--- What the helper calls. Each item of a frame stands alone: one that fails costs itself and is reported once.

local M = {}

---@class agentchat.FrameAnswer
---@field ticks table<string, integer>
---@field stale integer[] chats whose rows were not taken
---@field refused integer[] terminals of which nothing was taken

---@type table<string, fun(item: table, answer: agentchat.FrameAnswer)>
local handlers = {}

--- Without `vim.NIL`, which msgpack's nil becomes inside of tables.
---@param value table
---@return table
local function without_nil(value)
  for key, inner in pairs(value) do
    if inner == vim.NIL then
      value[key] = nil
    elseif type(inner) == "table" then
      without_nil(inner)
    end
  end
  return value
end

function handlers.rows(item, answer)
  local chat = require("agentchat.chats").get(item[2])
  if not chat then
    return
  end
  local tick = require("agentchat.transcript").apply(chat, item[3], item[4], item[5])
  if tick then
    answer.ticks[tostring(chat.id)] = tick
  else
    answer.stale[#answer.stale + 1] = chat.id
  end
end

function handlers.inspect(item)
  require("agentchat.inspect").receive(item[2], item[3], item[4], item[5], item[6])
end

function handlers.status(item)
  require("agentchat.status").set(item[2], without_nil(item[3]))
end

function handlers.permissions(item)
  require("agentchat.permission").set(without_nil(item[2]))
end

function handlers.proposals(item)
  require("agentchat.changes.proposed").set_calls(item[2], without_nil(item[3]))
end

function handlers.taken_back(item)
  require("agentchat.prompt").taken_back(item[2], item[3], item[4])
end

function handlers.queued(item)
  require("agentchat.prompt").queued(item[2], item[3], item[4])
end

function handlers.commands(item)
  local chat = require("agentchat.chats").get(item[2])
  if chat then
    chat.commands = without_nil(item[3])
  end
end

function handlers.options(item)
  local chat = require("agentchat.chats").get(item[2])
  if chat then
    chat.options = without_nil(item[3])
  end
end

function handlers.follow(item)
  local newest = item[5]
  require("agentchat.follow").receive(item[2], item[3], without_nil(item[4]), newest ~= vim.NIL and newest or nil)
end

function handlers.sign_in(item)
  require("agentchat.sign_in").offer(item[2], item[3], without_nil(item[4]))
end

function handlers.elicitations(item)
  require("agentchat.questions").set(without_nil(item[2]))
end

function handlers.elicitation_problems(item)
  require("agentchat.question_window").problems(item[2], item[3])
end

function handlers.undo_conflicts(item)
  require("agentchat.undo").conflicts(item[2], item[3], item[4])
end

function handlers.event(item)
  local data = item[3]
  require("agentchat.events").fire(item[2], type(data) == "table" and without_nil(data) or nil)
end

function handlers.terminal(item, answer)
  if not require("agentchat.terminals").receive(item[2], without_nil(item[3]), item[4]) then
    answer.refused[#answer.refused + 1] = item[2]
  end
end

function handlers.ran(item)
  require("agentchat.terminals").ran(item[2], without_nil(item[3]))
end

function handlers.notify(item)
  require("agentchat.message").show(item[2], item[3])
end

---@type table<string, boolean> kinds of items whose failure was reported
local reported = {}

---@param kind string
---@param reason any
local function report(kind, reason)
  if not reported[kind] then
    reported[kind] = true
    require("agentchat.message").show("error", ("showing %s failed (please report this): %s"):format(kind, reason))
  end
end

--- Applies one frame.
---@param items table[]
---@return agentchat.FrameAnswer
function M.frame(items)
  local answer = { ticks = vim.empty_dict(), stale = {}, refused = {} }
  for _, item in ipairs(items) do
    local handler = handlers[item[1]]
    if handler then
      local ok, reason = pcall(handler, item, answer)
      if not ok then
        report(item[1], reason)
        if item[1] == "rows" then
          answer.stale[#answer.stale + 1] = item[2]
        end
      end
    else
      report(tostring(item[1]), "unknown item")
    end
  end
  require("agentchat.spinner").beat()
  return answer
end

---@param info agentchat.HelperInfo
function M.ready(info)
  require("agentchat.helper").ready(without_nil(info))
end

--- The answer to `trail`.
---@param number integer
---@param places table[]
function M.trail(number, places)
  require("agentchat.follow.trail").receive(number, without_nil(places))
end

--- The answer to `permissions`.
---@param number integer
---@param list agentchat.PermissionList
function M.permissions_listed(number, list)
  require("agentchat.permission_list").receive(number, list)
end

--- The answer to `sessions`.
---@param number integer
---@param items table[]
---@param problem? string
function M.sessions_listed(number, items, problem)
  require("agentchat.sessions").receive(number, without_nil(items), problem ~= vim.NIL and problem or nil)
end

--- The answer to `find_files`.
---@param number integer
---@param files string[]
function M.files_found(number, files)
  require("agentchat.completion").files_found(number, files)
end

return M
