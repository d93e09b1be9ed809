--- Buffers named `agentchat://…` that a session file or a command brought up: they become a chat's again.

local M = {}

local api = vim.api

---@param name string
---@return "transcript"|"prompt"|nil kind
---@return integer? id
local function parse(name)
  local kind, id = name:match("^agentchat://(%l+)/(%d+)$")
  if kind == "transcript" or kind == "prompt" then
    return kind, tonumber(id)
  end
end

--- Makes a buffer the one that its name says. A chat that has one already keeps it: the windows show that one.
---@param buf integer
function M.buffer(buf)
  local kind, id = parse(api.nvim_buf_get_name(buf))
  if not kind then
    return
  end
  require("agentchat.highlight").set()
  local chats = require("agentchat.chats")
  local chat = chats.get(id) or chats.create({ id = id })
  local own = chat[kind]
  if own == buf and vim.b[buf].agentchat and vim.bo[buf].buftype == "nofile" then
    return
  end
  if own and own ~= buf and api.nvim_buf_is_loaded(own) then
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      require("agentchat.windows").put(win, own)
    end
    api.nvim_buf_delete(buf, { force = true })
    chats.rename_buffer(own, require("agentchat." .. kind).name(chat))
    return
  end
  require("agentchat." .. kind).adopt(chat, buf)
  if kind == "transcript" and chat.opened then
    require("agentchat.helper").notify("resync", { chat = chat.id })
  end
end

--- The window of a tab page that shows a buffer.
---@param tab integer
---@param buf? integer
---@return integer?
local function window_of(tab, buf)
  for _, win in ipairs(api.nvim_tabpage_list_wins(tab)) do
    if api.nvim_win_get_buf(win) == buf then
      return win
    end
  end
end

--- Gives the running chats' buffers their names again that no buffer of the session file took.
local function give_names_back()
  for _, chat in ipairs(require("agentchat.chats").all()) do
    for _, kind in ipairs({ "transcript", "prompt" }) do
      local buf = chat[kind]
      local name = require("agentchat." .. kind).name(chat)
      if buf and api.nvim_buf_is_valid(buf) and api.nvim_buf_get_name(buf) == name .. "/live" then
        require("agentchat.chats").rename_buffer(buf, name)
      end
    end
  end
end

--- A session file has been loaded.
function M.session()
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) then
      M.buffer(buf)
    end
  end
  give_names_back()
  local chats = require("agentchat.chats")
  for _, tab in ipairs(api.nvim_list_tabpages()) do
    for _, chat in ipairs(chats.all()) do
      local transcript, prompt = window_of(tab, chat.transcript), window_of(tab, chat.prompt)
      if transcript and prompt then
        chats.assign(chat, tab)
        require("agentchat.layout").adopt(tab, chat, transcript, prompt)
        break
      end
    end
  end
  require("agentchat.session_file").restored()
end

--- While a session file is read it names new buffers after those of the running chats, which is an error as long as
--- they have these names. `session` gives the names back.
function M.make_room()
  if vim.g.SessionLoad ~= 1 then
    return
  end
  for _, chat in ipairs(require("agentchat.chats").all()) do
    for _, kind in ipairs({ "transcript", "prompt" }) do
      local buf = chat[kind]
      local name = require("agentchat." .. kind).name(chat)
      if buf and api.nvim_buf_is_valid(buf) and api.nvim_buf_get_name(buf) == name then
        require("agentchat.chats").rename_buffer(buf, name .. "/live")
      end
    end
  end
end

return M
