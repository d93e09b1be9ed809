--- What the chats are doing, kept up to date so that asking never waits.

---@class agentchat.Status
---@field state "stopped"|"starting"|"idle"|"running"|"cancelling"|"failed"
---@field agent? string
---@field session_id? string
---@field phase? "process"|"initialize"|"session" what is waited for while the state is "starting"
---@field title? string
---@field mode? string
---@field model? string
---@field usage { used?: number, size?: number, cost?: any }
---@field plan? { done: integer, total: integer, step?: string } of the turn that runs, or ran last
---@field follow "on"|"off"|"paused"
---@field prompt_capabilities? { image: boolean, embedded_context: boolean } what the agent takes, once it is known
---@field permissions integer open permission requests
---@field elicitations? integer open questions beside those
---@field queued integer prompts that wait
---@field turn? integer number of the newest turn, 0 before the first
---@field lost? boolean whether something was said here that the agent does not know any more
---@field changes integer pending hunks
---@field terminals integer running
---@field error? string

local M = {}

local SEPARATOR = " · "
--- Columns that are left of an agent's name at least, and of the subject if it is shown at all.
local LEAST, LEAST_SUBJECT = 4, 16

local columns = require("agentchat.columns")
local cut, width = columns.cut, columns.width

---@return agentchat.Status
function M.get()
  local chat = require("agentchat.chats").current()
  local changes = package.loaded["agentchat.changes.store"]
  local terminals = package.loaded["agentchat.terminals"]
  if chat then
    local status = vim.deepcopy(chat.status)
    status.changes = changes and changes.count(chat.id) or 0
    status.terminals = terminals and terminals.running(chat.id) or 0
    return status
  end
  local status = require("agentchat.chats").initial_status()
  status.changes = changes and changes.count() or 0
  status.terminals = terminals and terminals.running() or 0
  local helper = require("agentchat.helper")
  if helper.state == "failed" then
    status.state, status.error = "failed", helper.error
  end
  return status
end

--- What an agent says of itself, as one line.
---@param text string
local function clean(text)
  return (text:gsub("%c", " "))
end

--- For an option like 'winbar', in which `%` begins an item.
---@param text string
local function escape(text)
  return (text:gsub("%%", "%%%%"))
end

---@param count number
---@return string
local function short(count)
  if count >= 1e6 then
    return ("%.1fM"):format(count / 1e6)
  elseif count >= 1e4 then
    return ("%.0fk"):format(count / 1e3)
  end
  return count >= 1e3 and ("%.1fk"):format(count / 1e3) or tostring(count)
end

--- Who, and what it is doing; the most important first.
---@param chat agentchat.Chat
---@return string[]
local function doing(chat)
  local status = chat.status
  local state = status.phase and ("%s (%s)"):format(status.state, status.phase) or status.state
  local parts = { clean(status.agent or "agent"), state }
  if status.permissions > 0 then
    parts[#parts + 1] = ("%d to allow or deny"):format(status.permissions)
  end
  if (status.elicitations or 0) > 0 then
    parts[#parts + 1] = status.elicitations == 1 and "asks you" or ("asks you %d things"):format(status.elicitations)
  end
  if #chat.waiting > 0 then
    parts[#parts + 1] = ("%d queued"):format(#chat.waiting)
  end
  if status.follow ~= "off" then
    parts[#parts + 1] = status.follow == "on" and "followed" or "follow paused"
  end
  if status.state == "failed" then
    parts[#parts + 1] = ":AgentChat restart"
  end
  return parts
end

--- How it works, and what that takes.
---@param status agentchat.Status
---@return string[]
local function means(status)
  local parts = {}
  for _, name in ipairs({ status.mode or "", status.model or "" }) do
    if name ~= "" then
      parts[#parts + 1] = clean(name)
    end
  end
  local usage = status.usage
  if usage.used and usage.size and usage.size > 0 then
    parts[#parts + 1] = ("%s/%s"):format(short(usage.used), short(usage.size))
  elseif usage.used then
    parts[#parts + 1] = short(usage.used)
  end
  if type(usage.cost) == "table" and type(usage.cost.amount) == "number" then
    parts[#parts + 1] = ("%.2f %s"):format(usage.cost.amount, clean(tostring(usage.cost.currency or "")))
  end
  return parts
end

--- What the middle of the bar is about: the plan's current step while a turn runs, else the title.
---@param status agentchat.Status
---@return string?
local function subject(status)
  local plan = status.plan
  if plan and plan.total > 0 and (plan.done < plan.total or status.state == "running") then
    return ("▸ %d/%d %s"):format(plan.done, plan.total, clean(plan.step or ""))
  end
  return status.title and status.title ~= "" and clean(status.title) or nil
end

--- One line for a status line; empty when no chat was opened.
---@return string
function M.statusline()
  local chat = require("agentchat.chats").current()
  if not chat then
    return ""
  end
  local parts = doing(chat)
  parts[#parts + 1] = subject(chat.status)
  vim.list_extend(parts, means(chat.status))
  return escape(table.concat(parts, SEPARATOR))
end

--- Who, what it is doing, and of the rest what there is room for.
---@param chat agentchat.Chat
---@param room integer columns
---@return string
local function fitting(chat, room)
  local parts = doing(chat)
  local state = parts[2]
  local for_name = room - width(SEPARATOR) - width(state)
  if for_name < LEAST then
    -- Without what exactly it waits for.
    state = chat.status.state
    for_name = room - width(SEPARATOR) - width(state)
  end
  if for_name < LEAST then
    return cut(state, room)
  end
  local line = cut(parts[1], for_name) .. SEPARATOR .. state
  for i = 3, #parts do
    if width(line) + width(SEPARATOR) + width(parts[i]) <= room then
      line = line .. SEPARATOR .. parts[i]
    end
  end
  return line
end

--- The text in the transcript window's bar: nothing of it is cut by Neovim, which would cut at the wrong place.
---@param chat agentchat.Chat
---@param window_width integer
---@return string
function M.winbar(chat, window_width)
  local spinner = require("agentchat.spinner")
  local sign = spinner.runs(chat) and spinner.picture() .. " " or ""
  local room = window_width - width(sign) - 2
  local left = fitting(chat, room)
  room = room - width(left)
  local middle = subject(chat.status)
  local for_middle = middle and width(SEPARATOR) + math.min(width(middle), LEAST_SUBJECT) or 0
  if for_middle > room then
    middle, for_middle = nil, 0
  end
  local right = ""
  for _, part in ipairs(means(chat.status)) do
    local longer = right == "" and part or right .. SEPARATOR .. part
    -- A space is between the two sides.
    if for_middle + width(longer) + 1 <= room then
      right = longer
    end
  end
  room = room - (right == "" and 0 or width(right) + 1)
  if middle then
    left = left .. SEPARATOR .. cut(middle, room - width(SEPARATOR))
  end
  return table.concat({ "%#AgentChatBar# ", sign, escape(left), "%=", escape(right), " %*" })
end

--- What the transcript shows while the agent has said nothing, or after a failure.
---@param chat agentchat.Chat
function M.show_hint(chat)
  local transcript = require("agentchat.transcript")
  local status = chat.status
  local name = status.agent or chat.agent or "the agent"
  if status.state == "failed" and not chat.opened then
    local lines = vim.split(status.error or "The agent failed.", "\n", { plain = true })
    for _, line in ipairs(require("agentchat.helper").stderr) do
      if line ~= "" then
        lines[#lines + 1] = "  " .. line
      end
    end
    local shown = vim.list_slice(lines, 1, 1)
    vim.list_extend(shown, vim.list_slice(lines, math.max(2, #lines - 8)))
    transcript.hint(chat, shown, "AgentChatError")
  elseif not chat.opened then
    transcript.hint(chat, { "Send a prompt to start a new session." }, "AgentChatDim")
  elseif status.state == "starting" then
    transcript.hint(chat, { ("Starting %s…"):format(name) }, "AgentChatDim")
  else
    transcript.hint(chat, nil)
  end
end

--- Shows a changed status.
---@param chat agentchat.Chat
function M.refresh(chat)
  require("agentchat.layout").refresh_bar(chat)
  require("agentchat.spinner").update()
end

--- Takes the helper's whole status of one chat.
---@param id integer
---@param status table
function M.set(id, status)
  local chat = require("agentchat.chats").get(id)
  if not chat then
    return
  end
  local before = chat.status.state
  local follow = chat.status.follow
  chat.status = vim.tbl_extend("force", require("agentchat.chats").initial_status(), status, { follow = follow })
  local session = chat.status.session_id
  if session and chat.status.agent and ((chat.status.turn or 0) > 0 or chat.reopened) then
    chat.last_session = { agent = chat.status.agent, session = session, title = chat.status.title }
  end
  if chat.waiting_is_guess and chat.status.state == "running" then
    chat.waiting, chat.waiting_is_guess = {}, false
  end
  if chat.status.state ~= before and chat.status.state ~= "starting" then
    require("agentchat.transcript").hint(chat, nil)
  end
  local is_ready = before == "starting" and chat.status.state == "idle"
  if is_ready or (chat.status.state == "running" and before ~= "running") then
    vim.schedule(require("agentchat.code_process").prepare)
  end
  M.refresh(chat)
  require("agentchat.prompt").status_changed(chat)
end

return M
