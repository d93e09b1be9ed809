--- A coding agent in Neovim. The functions here and `:AgentChat` are the plugin's interface (`:help agentchat-lua`).

local M = {}

---@return agentchat.Chat
local function ensure_chat()
  local chats = require("agentchat.chats")
  return chats.current() or chats.create({})
end

---@param chat agentchat.Chat
---@param enter boolean
local function show_and_start(chat, enter)
  require("agentchat.highlight").set()
  if require("agentchat.layout").show(chat, enter) then
    require("agentchat.lifecycle").start(chat)
  end
end

--- Sets options. Not needed when `vim.g.agentchat` is used or the defaults are right.
---@param opts? agentchat.UserConfig
function M.setup(opts)
  require("agentchat.config").set(opts)
end

--- Opens the chat of the current tab page; with an agent's name, the one with that agent.
---@param opts? { agent?: string }
function M.open(opts)
  local agent = opts and opts.agent
  local chats = require("agentchat.chats")
  local chat = agent and (chats.with_agent(agent) or chats.create({ agent = agent })) or ensure_chat()
  show_and_start(chat, true)
end

--- Opens a new chat in the current tab page. The old one keeps its session.
---@param opts? { agent?: string }
function M.new(opts)
  local chat = require("agentchat.chats").create({ agent = opts and opts.agent })
  show_and_start(chat, true)
end

--- Closes the chat's windows. The session goes on.
function M.close()
  require("agentchat.layout").close()
end

--- Opens the chat of the current tab page, or closes its windows.
function M.toggle()
  if require("agentchat.layout").is_open() then
    M.close()
  else
    M.open()
  end
end

--- Sends a prompt. While the agent starts or works, it is queued.
---@param text_or_blocks string|{ type: "text", text: string }[]
---@param opts? { agent?: string }
function M.prompt(text_or_blocks, opts)
  local blocks = text_or_blocks
  if type(blocks) == "string" then
    blocks = { { type = "text", text = blocks } }
  elseif type(blocks) ~= "table" or #blocks == 0 then
    error("agentchat: prompt() takes a text or a list of blocks", 2)
  end
  local chats = require("agentchat.chats")
  local agent = opts and opts.agent
  local chat = agent and (chats.with_agent(agent) or chats.create({ agent = agent })) or ensure_chat()
  show_and_start(chat, false)
  require("agentchat.prompt").send(chat, blocks)
end

--- Stops the turn; again within the grace period, ends it by force.
function M.cancel()
  local chat = require("agentchat.chats").current()
  if not chat or not chat.opened then
    require("agentchat.message").show("info", "there is nothing to cancel")
    return
  end
  if not require("agentchat.prompt").withdraw_unsent(chat) then
    require("agentchat.helper").notify("cancel", { chat = chat.id })
  end
end

--- Answers a permission request.
---@param option string an option's id, or a kind such as "allow_once"
---@param request? integer default: the displayed request
function M.respond(option, request)
  require("agentchat.permission").respond(option, request)
end

--- Restarts the agent of the current tab page's chat, and the helper when it has failed.
function M.restart()
  local chat = ensure_chat()
  require("agentchat.lifecycle").restart(chat)
end

--- What the current tab page's chat is doing.
---@return agentchat.Status
function M.status()
  return require("agentchat.status").get()
end

--- The same in one line, for a status line.
---@return string
function M.statusline()
  return require("agentchat.status").statusline()
end

return M
