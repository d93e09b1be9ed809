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
---@field follow "on"|"off"|"paused"
---@field prompt_capabilities? { image: boolean, embedded_context: boolean } what the agent takes, once it is known
---@field permissions integer open permission requests
---@field queued integer prompts that wait
---@field changes integer pending hunks
---@field terminals integer running
---@field error? string

local M = {}

---@return agentchat.Status
function M.get()
  local chat = require("agentchat.chats").current()
  if chat then
    return vim.deepcopy(chat.status)
  end
  local status = require("agentchat.chats").initial_status()
  local helper = require("agentchat.helper")
  if helper.state == "failed" then
    status.state, status.error = "failed", helper.error
  end
  return status
end

---@param text string
local function escape(text)
  return (text:gsub("%c", " "):gsub("%%", "%%%%"))
end

---@param status agentchat.Status
---@param waiting integer prompts that are queued
---@param title_prefix? string
---@return string
local function describe(status, waiting, title_prefix)
  local state = status.phase and ("%s (%s)"):format(status.state, status.phase) or status.state
  local parts = { escape(status.agent or "agent"), state }
  if waiting > 0 then
    parts[#parts + 1] = ("%d queued"):format(waiting)
  end
  if status.permissions > 0 then
    parts[#parts + 1] = ("%d to allow or deny"):format(status.permissions)
  end
  if status.title and status.title ~= "" then
    parts[#parts + 1] = (title_prefix or "") .. escape(status.title)
  end
  return table.concat(parts, " · ")
end

--- One line for a status line; empty when no chat was opened.
---@return string
function M.statusline()
  local chat = require("agentchat.chats").current()
  return chat and describe(chat.status, #chat.waiting) or ""
end

--- The text in the transcript window's bar.
---@param chat agentchat.Chat
---@return string
function M.winbar(chat)
  return "%#AgentChatBar# " .. describe(chat.status, #chat.waiting, "%<") .. " %*"
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
  chat.status = vim.tbl_extend("force", require("agentchat.chats").initial_status(), status)
  if chat.waiting_is_guess and chat.status.state == "running" then
    chat.waiting, chat.waiting_is_guess = {}, false
  end
  if chat.status.state ~= before and chat.status.state ~= "starting" then
    require("agentchat.transcript").hint(chat, nil)
  end
  M.refresh(chat)
  require("agentchat.prompt").status_changed(chat)
end

return M
