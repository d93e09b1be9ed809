--- The chats of this Neovim: which there are, and which belongs to which tab page.

---@class agentchat.Chat
---@field id integer unique in this Neovim; the helper uses it too
---@field agent? string the agent asked for; nil is the default one
---@field cwd string
---@field opened boolean whether the helper was told
---@field known? { session: string, key?: integer, title?: string, fork?: boolean } the session that it is to have
---@field reopened? boolean whether it was opened with a session from before
---@field last_session? { agent: string, session: string, title?: string } that it had last, if anything was said in it
---@field tab integer the tab page it was last shown in
---@field transcript? integer buffer
---@field prompt? integer buffer
---@field status agentchat.Status
---@field waiting integer[] ids of the prompts that are queued, oldest first
---@field waiting_is_guess boolean whether `waiting` was made up before the helper was there to say
---@field commands agentchat.Command[] what the agent can be told with a slash
---@field options agentchat.SessionOption[] what the session can be set to
---@field lines_along integer lines below the prompt's text that say what goes along
---@field texts table<integer, string> prompts that may still have to be given back, by id
---@field views table<"transcript"|"prompt", agentchat.View> where the windows were when the chat was last hidden

---@class agentchat.Command
---@field name string without the slash
---@field description string
---@field hint? string what may follow it

---@class agentchat.View
---@field view table of `winsaveview()`
---@field at_end boolean whether the cursor was in the last line

local M = {}

---@type table<integer, agentchat.Chat>
local chats = {}
---@type table<integer, integer> chat by tab page
local of_tab = {}
local last_id = 0

--- The state before the helper has said anything.
---@return agentchat.Status
function M.initial_status()
  return { state = "stopped", usage = {}, follow = "off", permissions = 0, queued = 0, changes = 0, terminals = 0 }
end

---@param id integer
---@return agentchat.Chat?
function M.get(id)
  return chats[id]
end

--- All chats, oldest first.
---@return agentchat.Chat[]
function M.all()
  local list = vim.tbl_values(chats)
  table.sort(list, function(a, b)
    return a.id < b.id
  end)
  return list
end

--- A new chat for a tab page, which becomes the tab page's.
---@param opts { agent?: string, tab?: integer, id?: integer, cwd?: string }
---@return agentchat.Chat
function M.create(opts)
  local id = opts.id or last_id + 1
  last_id = math.max(last_id, id)
  local tab = opts.tab or vim.api.nvim_get_current_tabpage()
  ---@type agentchat.Chat
  local chat = {
    id = id,
    agent = opts.agent,
    cwd = opts.cwd or vim.fn.getcwd(),
    opened = false,
    tab = tab,
    status = M.initial_status(),
    waiting = {},
    waiting_is_guess = false,
    texts = {},
    commands = {},
    options = {},
    lines_along = 0,
    views = {},
  }
  chat.status.agent = opts.agent
  chats[id] = chat
  of_tab[tab] = id
  return chat
end

--- Makes a chat the one of a tab page.
---@param chat agentchat.Chat
---@param tab? integer
function M.assign(chat, tab)
  chat.tab = tab or vim.api.nvim_get_current_tabpage()
  of_tab[chat.tab] = chat.id
end

--- The chat of a tab page. A chat whose tab page was closed moves on to the first one that asks.
---@param tab? integer
---@return agentchat.Chat?
function M.current(tab)
  tab = tab or vim.api.nvim_get_current_tabpage()
  local chat = chats[of_tab[tab]]
  if chat then
    return chat
  end
  local list = M.all()
  for i = #list, 1, -1 do
    if not vim.api.nvim_tabpage_is_valid(list[i].tab) then
      of_tab[list[i].tab] = nil
      M.assign(list[i], tab)
      return list[i]
    end
  end
end

--- The newest chat of the current tab page with that agent.
---@param agent string
---@return agentchat.Chat?
function M.with_agent(agent)
  local tab = vim.api.nvim_get_current_tabpage()
  local list = M.all()
  for i = #list, 1, -1 do
    local chat = list[i]
    if chat.tab == tab and (chat.status.agent or chat.agent) == agent then
      return chat
    end
  end
end

--- The chat that a buffer belongs to.
---@param buf integer
---@return agentchat.Chat? chat
---@return "transcript"|"prompt"|nil kind
function M.of_buffer(buf)
  for _, chat in pairs(chats) do
    if chat.transcript == buf then
      return chat, "transcript"
    elseif chat.prompt == buf then
      return chat, "prompt"
    end
  end
end

---@param chat agentchat.Chat
function M.remove(chat)
  chats[chat.id] = nil
  for tab, id in pairs(of_tab) do
    if id == chat.id then
      of_tab[tab] = nil
    end
  end
end

--- Renames a buffer, without the empty buffer that Neovim leaves behind under the old name.
---@param buf integer
---@param name string
function M.rename_buffer(buf, name)
  local old = vim.api.nvim_buf_get_name(buf)
  vim.api.nvim_buf_set_name(buf, name)
  for _, other in ipairs(vim.api.nvim_list_bufs()) do
    if other ~= buf and vim.api.nvim_buf_get_name(other) == old and not vim.api.nvim_buf_is_loaded(other) then
      vim.api.nvim_buf_delete(other, { force = true })
    end
  end
end

--- A buffer of the plugin, with the options that all of them share; the caller sets the file type last.
---@param name string
---@return integer buf
function M.create_buffer(name)
  for _, old in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(old) == name then
      vim.api.nvim_buf_delete(old, { force = true })
    end
  end
  local buf = vim.api.nvim_create_buf(false, false)
  vim.api.nvim_buf_set_name(buf, name)
  M.prepare_buffer(buf)
  return buf
end

---@param buf integer
function M.prepare_buffer(buf)
  local options = vim.bo[buf]
  options.buftype = "nofile"
  options.bufhidden = "hide"
  options.buflisted = false
  options.swapfile = false
  options.modeline = false
end

return M
