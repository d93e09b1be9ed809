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

--- Shows a chat in the current tab page, and starts what it needs.
---@param chat agentchat.Chat
function M.show(chat)
  show_and_start(chat, true)
end

--- Gives all sessions to `callback`: those that the current chat's agent lists, those that are kept, and the open ones.
---@param callback fun(sessions: agentchat.SessionItem[], problem?: string)
function M.sessions(callback)
  require("agentchat.sessions").list(callback)
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

--- A script's blocks as the text that stands for them.
---@param blocks agentchat.Block[]
---@param chat agentchat.Chat
---@return string
local function as_text(blocks, chat)
  local mentions = require("agentchat.mentions")
  local texts = {}
  for i, block in ipairs(blocks) do
    if type(block) == "table" and block.type == "text" and type(block.text) == "string" then
      texts[i] = block.text
    elseif type(block) == "table" and (block.type == "file" or block.type == "image") and block.path then
      texts[i] = mentions.write(mentions.name(vim.fs.normalize(block.path), chat.cwd), block.first, block.last)
    else
      error(("agentchat: block %d is neither a text nor a file"):format(i), 3)
    end
  end
  return table.concat(texts, "\n")
end

---@alias agentchat.Block
---| { type: "text", text: string }
---| { type: "file"|"image", path: string, first?: integer, last?: integer }

--- Sends a prompt, and what it mentions (`@file`) with it. While the agent starts or works, it is queued.
---@param text_or_blocks string|agentchat.Block[]
---@param opts? { agent?: string, range?: { [1]: integer, [2]: integer } } lines of the current buffer that go along
function M.prompt(text_or_blocks, opts)
  local is_list = type(text_or_blocks) == "table" and #text_or_blocks > 0
  if not is_list and type(text_or_blocks) ~= "string" then
    error("agentchat: prompt() takes a text or a list of blocks", 2)
  end
  local chats = require("agentchat.chats")
  local agent = opts and opts.agent
  local chat = agent and (chats.with_agent(agent) or chats.create({ agent = agent })) or ensure_chat()
  local text = is_list and as_text(text_or_blocks --[[@as agentchat.Block[] ]], chat) or text_or_blocks
  local range = opts and opts.range
  if range then
    local buf = vim.api.nvim_get_current_buf()
    text = text .. "\n" .. require("agentchat.context").track(chat, buf, range[1], range[2])
  end
  show_and_start(chat, false)
  require("agentchat.prompt").send(chat, text --[[@as string]])
end

--- Lines to go along with a prompt, 1-based, inclusive.
---@class agentchat.Added
---@field path? string default: the current buffer
---@field first? integer
---@field last? integer

--- Adds files or lines to the next prompt; without an argument, the current file.
---@param ... string|agentchat.Added a path, or lines of a file or of the current buffer
function M.add(...)
  local added = { ... }
  local buf = vim.api.nvim_get_current_buf()
  if #added == 0 then
    local name = vim.api.nvim_buf_get_name(buf)
    if vim.bo[buf].buftype ~= "" or name == "" then
      require("agentchat.message").show("error", "this buffer is no file; name one: :AgentChat add {file}")
      return
    end
    added = { name }
  end
  local chat = ensure_chat()
  local mentions = require("agentchat.mentions")
  local labels = {}
  for i, item in ipairs(added) do
    ---@type agentchat.Added
    local lines = type(item) == "table" and item or {}
    local path = type(item) == "string" and item or lines.path
    if path then
      path = vim.fs.normalize(vim.fn.fnamemodify(path, ":p"))
      labels[i] = mentions.write(mentions.name(path, chat.cwd), lines.first, lines.last)
    elseif lines.first then
      labels[i] = require("agentchat.context").track(chat, buf, lines.first, lines.last or lines.first)
    else
      error("agentchat: add() takes paths, or tables with `path` or `first` and `last`", 2)
    end
  end
  show_and_start(chat, false)
  require("agentchat.prompt").insert(chat, table.concat(labels, " "))
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

--- Follows the agent of the current tab page's chat, or ends that.
---@param wanted? "on"|"off"|"toggle"|boolean
function M.follow(wanted)
  if type(wanted) == "boolean" then
    wanted = wanted and "on" or "off"
  end
  wanted = wanted or "toggle"
  if wanted ~= "on" and wanted ~= "off" and wanted ~= "toggle" then
    error('agentchat: follow() takes "on", "off" or "toggle"', 2)
  end
  require("agentchat.follow").set(wanted)
end

--- Answers a permission request.
---@param option string an option's id, or a kind such as "allow_once"
---@param request? integer default: the displayed request
function M.respond(option, request)
  require("agentchat.permission").respond(option, request)
end

--- What agents ask beside permissions, oldest first.
---@return agentchat.Question[]
function M.questions()
  return vim.deepcopy(require("agentchat.questions").open())
end

--- Answers a question of an agent's.
---@param request integer
---@param action "accept"|"decline"|"cancel"
---@param values? table<string, string|boolean|string[]> by the names of fields
function M.answer(request, action, values)
  if action ~= "accept" and action ~= "decline" and action ~= "cancel" then
    error('agentchat: answer() takes "accept", "decline" or "cancel"', 2)
  end
  require("agentchat.questions").respond(request, action, values)
end

--- Lists the pending changes in the quickfix list; with "diff", shows a file beside what it was.
---@param what? "list"|"diff"
function M.review(what)
  require("agentchat.changes.review").review(what)
end

--- Accepts pending changes.
---@param scope? "hunk"|"file"|"all" default: the hunk at the cursor
function M.accept(scope)
  require("agentchat.changes.review").decide("accept", scope)
end

--- Rejects pending changes: the text from before comes back.
---@param scope? "hunk"|"file"|"all" default: the hunk at the cursor
function M.reject(scope)
  require("agentchat.changes.review").decide("reject", scope)
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
