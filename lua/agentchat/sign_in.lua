--- Signing in with an agent that wants that: the user picks one of its ways, in the agent's process or in a terminal.

local M = {}

local api = vim.api

---@class agentchat.SignInMethod
---@field id string
---@field name string
---@field description? string
---@field launch? { command: string[], env: table<string, string>, cwd: string } in a terminal

---@class agentchat.SignInOffer
---@field agent string
---@field methods agentchat.SignInMethod[]

---@type table<integer, agentchat.SignInOffer> by chat
local offers = {}

---@param level "info"|"warn"|"error"
---@param text string
local function say(level, text)
  require("agentchat.message").show(level, text)
end

--- Starts the agent's program in a window of its own, where the user signs in.
---@param chat integer
---@param agent string
---@param launch { command: string[], env: table<string, string>, cwd: string }
local function in_terminal(chat, agent, launch)
  vim.cmd("botright new")
  local win, buf = api.nvim_get_current_win(), api.nvim_get_current_buf()
  vim.bo[buf].bufhidden = "wipe"
  local opts = {
    cwd = launch.cwd,
    env = next(launch.env) and launch.env or nil,
    on_exit = vim.schedule_wrap(function(_, code)
      if code ~= 0 then
        say(
          "error",
          ("signing in did not work: %s ended with code %d; :AgentChat signin tries again"):format(agent, code)
        )
        return
      end
      offers[chat] = nil
      if api.nvim_win_is_valid(win) and #api.nvim_tabpage_list_wins(0) > 1 then
        pcall(api.nvim_win_close, win, true)
      end
      require("agentchat.helper").notify("signed_in", { chat = chat })
    end),
  }
  local ok, job
  if vim.fn.has("nvim-0.11") == 1 then
    opts.term = true
    ok, job = pcall(vim.fn.jobstart, launch.command, opts)
  else
    ok, job = pcall(vim.fn.termopen, launch.command, opts)
  end
  if not ok or job <= 0 then
    pcall(api.nvim_win_close, win, true)
    say("error", ("%s cannot be started: %s"):format(launch.command[1], tostring(job)))
    return
  end
  vim.cmd.startinsert()
end

---@param chat integer
---@param offer agentchat.SignInOffer
local function pick(chat, offer)
  vim.ui.select(offer.methods, {
    prompt = ("%s wants you to sign in:"):format(offer.agent),
    kind = "agentchat_sign_in",
    format_item = function(method)
      local description = method.description and " — " .. method.description:gsub("%s+", " ") or ""
      return method.name .. description .. (method.launch and " (in a terminal)" or "")
    end,
  }, function(method)
    if not method then
      return
    elseif method.launch then
      in_terminal(chat, offer.agent, method.launch)
    else
      require("agentchat.helper").notify("authenticate", { chat = chat, method = method.id })
    end
  end)
end

--- An agent wants the user to sign in. They are asked when they ask for it: nobody is taken out of what they are doing.
---@param chat integer
---@param agent string
---@param methods agentchat.SignInMethod[]
function M.offer(chat, agent, methods)
  offers[chat] = { agent = agent, methods = methods }
  say("warn", ("%s wants you to sign in; :AgentChat signin shows how"):format(agent))
end

--- Lets the user sign in with the agent of the current chat, else with any that wants it.
function M.run()
  local current = require("agentchat.chats").current()
  local chat = current and offers[current.id] and current.id or next(offers)
  if not chat then
    say("info", "no agent wants you to sign in")
    return
  end
  pick(chat, offers[chat])
end

--- Signs out of the agent of the current chat.
function M.out()
  local current = require("agentchat.chats").current()
  if current then
    require("agentchat.helper").notify("sign_out", { chat = current.id })
  else
    say("info", "there is no chat, and so no agent to sign out of")
  end
end

--- The chat has its session: nothing is wanted any more.
---@param chat integer
function M.done(chat)
  offers[chat] = nil
end

return M
