--- What the user is told when they cannot see it: that an agent asks, or has finished, while they are in another tab page
--- or in another program.

local M = {}

local api = vim.api

--- Whether Neovim has the focus, as far as the terminal tells; without a word from it, it has.
local is_focused = true
local is_watching = false

--- Wraps a sequence that is for the terminal, not for the tmux in between.
---@param sequence string
---@return string
local function through_tmux(sequence)
  if not vim.env.TMUX then
    return sequence
  end
  return ("\27Ptmux;%s\27\\"):format((sequence:gsub("\27", "\27\27")))
end

---@type table<string, fun(text: string): string>
local sequences = {
  bell = function()
    return "\7"
  end,
  osc9 = function(text)
    return through_tmux(("\27]9;%s\7"):format(text))
  end,
  osc777 = function(text)
    return through_tmux(("\27]777;notify;agentchat;%s\7"):format((text:gsub(";", ","))))
  end,
}

--- Sends a sequence to the user's terminal.
---@param sequence string
local function send(sequence)
  if api.nvim_ui_send then
    api.nvim_ui_send(sequence)
  else
    -- The standard error of a Neovim with a TUI is the terminal.
    api.nvim_chan_send(vim.v.stderr, sequence)
  end
end

---@param level "info"|"warn"
---@param text string
local function tell(level, text)
  -- A title of an agent is hostile until shown otherwise. Some terminals take C1 characters for control ones, too.
  text = text:gsub("%c", " "):gsub("\194[\128-\159]", " ")
  require("agentchat.message").show(level, text)
  local sequence = sequences[require("agentchat.config").get().notify.terminal]
  if not sequence then
    return
  end
  local ok, reason = pcall(send, sequence(vim.fn.strcharpart(text, 0, 200)))
  if not ok then
    require("agentchat.message").show("warn", ("the terminal cannot be told: %s"):format(reason))
  end
end

--- Whether a chat's windows are in the tab page where the user is, and the user in Neovim.
---@param id integer
---@return boolean
local function is_in_view(id)
  local layout = require("agentchat.layout")
  local shown = layout.get(api.nvim_get_current_tabpage())
  return is_focused and layout.is_open() and shown ~= nil and shown.chat.id == id
end

--- Whether the user sees a request of a chat: the float is there in the chat's own tab page, whether or not its windows
--- are. That it is in others, too, may escape somebody who works on something else.
---@param id integer
---@return boolean
local function is_asked_here(id)
  if require("agentchat.config").get().permission.style == "inline" then
    return is_in_view(id)
  end
  local chat = require("agentchat.chats").current()
  return is_focused and chat ~= nil and chat.id == id
end

---@param id integer
---@return string
local function name(id)
  return require("agentchat.follow.marks").name(id)
end

--- An agent asks for permission; called once for each request.
---@param request agentchat.Permission
function M.asked(request)
  if not require("agentchat.config").get().notify.request or is_asked_here(request.chat) then
    return
  end
  -- Not inside of the frame that shows it: what `vim.notify` does may take long, or fail.
  vim.schedule(function()
    tell("warn", ("%s asks: %s; :AgentChat permissions shows it"):format(name(request.chat), request.title))
  end)
end

--- An agent asks something else than a permission; called once for each question.
---@param question agentchat.Question
function M.asks(question)
  if not require("agentchat.config").get().notify.request or is_in_view(question.chat) then
    return
  end
  vim.schedule(function()
    tell("warn", ("%s asks: %s; :AgentChat answer shows it"):format(name(question.chat), question.message))
  end)
end

---@param id integer
---@param stop_reason? string
local function ended(id, stop_reason)
  -- Whoever has cancelled it knows.
  local is_known = is_in_view(id) or (is_focused and stop_reason == "cancelled")
  if is_known or not require("agentchat.config").get().notify.turn_end then
    return
  end
  local how = stop_reason == "end_turn" and "has finished"
    or ("has stopped (%s)"):format((tostring(stop_reason or "no reason given"):gsub("_", " ")))
  tell("info", ("%s %s"):format(name(id), how))
end

--- Begins to notice whether the user is in Neovim, and the ends of turns.
function M.watch()
  if is_watching then
    return
  end
  is_watching = true
  local group = api.nvim_create_augroup("agentchat.attention", {})
  api.nvim_create_autocmd({ "FocusLost", "FocusGained" }, {
    group = group,
    callback = function(args)
      is_focused = args.event == "FocusGained"
    end,
  })
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = "AgentChatTurnEnd",
    callback = function(args)
      local data = args.data or {}
      vim.schedule(function()
        ended(data.chat, data.stop_reason)
      end)
    end,
  })
end

return M
