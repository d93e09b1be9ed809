--- What happens to the chats when the helper or their buffers go.

local M = {}

local api = vim.api

--- The helper is gone: every chat shows it, and gets back the prompts that no agent has seen.
---@param reason string
function M.helper_failed(reason)
  local chats, prompt, status = require("agentchat.chats"), require("agentchat.prompt"), require("agentchat.status")
  for _, chat in ipairs(chats.all()) do
    prompt.give_back(chat)
    require("agentchat.transcript").drop_queued(chat)
    if package.loaded["agentchat.permission_inline"] then
      require("agentchat.permission_inline").drop(chat)
    end
    chat.opened = false
    require("agentchat.follow").forget(chat.id)
    local state = chats.initial_status()
    state.state, state.error, state.agent = "failed", reason, chat.status.agent
    chat.status = state
    status.show_hint(chat)
    status.refresh(chat)
  end
  require("agentchat.permission").set({})
  require("agentchat.sessions").forget(reason)
  require("agentchat.changes.proposed").forget_calls()
  if package.loaded["agentchat.terminals"] then
    require("agentchat.terminals").helper_gone()
  end
  require("agentchat.mirror").forget_all()
  -- Not inside of the caller: a user's autocommand may start something new.
  vim.schedule(function()
    require("agentchat.events").fire("AgentChatError", { message = reason })
  end)
end

--- Tells the helper about a chat, once.
---@param chat agentchat.Chat
function M.start(chat)
  if chat.opened then
    return
  end
  require("agentchat.attention").watch()
  local helper = require("agentchat.helper")
  if helper.state == "stopped" then
    -- Starting a process takes longer than drawing the windows: those come first.
    vim.schedule(helper.ensure)
  end
  if helper.state == "failed" then
    chat.status.state, chat.status.error = "failed", helper.error
    require("agentchat.status").show_hint(chat)
    return
  end
  chat.opened = true
  chat.status.state = "starting"
  local known = chat.known
  chat.known, chat.reopened = nil, known ~= nil
  helper.notify("open", vim.tbl_extend("error", { chat = chat.id, agent = chat.agent, cwd = chat.cwd }, known or {}))
  require("agentchat.status").show_hint(chat)
end

--- Restarts the chat's agent, and the helper when it is not running.
---@param chat agentchat.Chat
function M.restart(chat)
  local helper = require("agentchat.helper")
  if helper.state ~= "failed" and helper.state ~= "stopped" then
    if chat.opened then
      helper.notify("restart", { chat = chat.id })
    else
      M.start(chat)
    end
    return
  end
  local transcript = require("agentchat.transcript")
  local message = require("agentchat.message")
  helper.restart()
  if helper.state == "failed" then
    return
  end
  for _, each in ipairs(require("agentchat.chats").all()) do
    local old = transcript.put_aside(each)
    if old then
      require("agentchat.layout").replace_buffer(old, each)
      message.show("info", ("the helper starts anew; the old text is in buffer %d"):format(old))
    end
    each.status = require("agentchat.chats").initial_status()
    each.status.agent = each.agent
    local last = each.last_session
    if last then
      each.agent, each.status.agent = last.agent, last.agent
      each.known = { session = last.session, title = last.title }
    end
    M.start(each)
    require("agentchat.status").refresh(each)
  end
end

--- Ends the chats that have lost both of their buffers.
function M.sweep()
  for _, chat in ipairs(require("agentchat.chats").all()) do
    local function gone(buf)
      return buf and not api.nvim_buf_is_loaded(buf)
    end
    if gone(chat.transcript) and gone(chat.prompt) then
      if chat.opened then
        require("agentchat.helper").notify("close", { chat = chat.id })
      end
      require("agentchat.follow").forget(chat.id)
      require("agentchat.chats").remove(chat)
    end
  end
  if #require("agentchat.chats").all() == 0 then
    require("agentchat.code_process").stop()
  end
end

--- Neovim is going away.
function M.leaving()
  require("agentchat.draft").save_all()
  require("agentchat.helper").leaving()
end

return M
