--- Unsent prompts on disk: one file for each chat with text that was not sent, found again by the next Neovim in the
--- same folder. The name carries the process, so that two Neovims never overwrite each other's.

local M = {}

local uv = vim.uv

--- How long the user pauses before what they type is on disk, in milliseconds.
local PAUSE = 500

---@type table<integer, string> what is on disk, by chat
local saved = {}
---@type table<integer, string> the text of prompt buffers that are gone, by chat
local kept = {}
---@type table<integer, true> chats whose file waits for the pause
local due = {}
---@type uv.uv_timer_t?
local timer
---@type table<string, true> projects whose drafts of earlier Neovims were looked for
local adopted = {}

---@return string
local function folder()
  return vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "agentchat", "drafts")
end

---@param text string
local function is_blank(text)
  return text:find("%S") == nil
end

--- A short name for a folder: the end of its path, and a hash of all of it. (`sha256()` tests itself at its first call,
--- which takes longer than opening the chat.)
---@param cwd string
---@return string
local function project_key(cwd)
  local path = uv.fs_realpath(cwd) or cwd
  local hash = 5381
  for i = 1, #path do
    hash = bit.tobit(hash * 33 + path:byte(i))
  end
  return ("%s-%s"):format(path:sub(-40):gsub("[^%w_.]", "_"), bit.tohex(hash))
end

---@param chat agentchat.Chat
---@return string
local function path_of(chat)
  return vim.fs.joinpath(folder(), ("%s-%d-%d"):format(project_key(chat.cwd), uv.os_getpid(), chat.id))
end

---@param path string
---@param text string
---@return string? problem
local function write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), "p", tonumber("700", 8))
  -- A Neovim that is killed while it writes leaves the draft as it was.
  local unfinished = path .. "~"
  local file, problem = uv.fs_open(unfinished, "w", tonumber("600", 8))
  if not file then
    return problem
  end
  local _, failed = uv.fs_write(file, text, 0)
  uv.fs_close(file)
  if not failed then
    _, failed = uv.fs_rename(unfinished, path)
  end
  return failed
end

--- All that would be lost with this Neovim: what is in the prompt, and the prompts that no agent has for sure.
---@param chat agentchat.Chat
---@return string
local function unsent(chat)
  local prompt = require("agentchat.prompt")
  local is_there = chat.prompt and vim.api.nvim_buf_is_loaded(chat.prompt)
  local texts = { is_there and prompt.text(chat) or kept[chat.id] }
  vim.list_extend(texts, prompt.unconfirmed(chat))
  return table.concat(
    vim.tbl_filter(function(text)
      return not is_blank(text)
    end, texts),
    "\n"
  )
end

--- Brings the file of a chat's draft up to date.
---@param chat agentchat.Chat
function M.save(chat)
  due[chat.id] = nil
  local text = unsent(chat)
  if text == (saved[chat.id] or "") then
    return
  end
  local path = path_of(chat)
  if text == "" then
    uv.fs_unlink(path)
    saved[chat.id] = nil
    return
  end
  local ok, problem = pcall(write, path, text)
  if not ok or problem then
    require("agentchat.message").show("warn", ("the draft is not saved: %s"):format(problem))
    return
  end
  saved[chat.id] = text
end

local function save_due()
  local chats = require("agentchat.chats")
  for id in pairs(due) do
    local chat = chats.get(id)
    if chat then
      M.save(chat)
    end
  end
  due = {}
end

--- Does so once the user has paused: while they type, nothing is saved that would be replaced at once.
---@param chat agentchat.Chat
function M.save_later(chat)
  due[chat.id] = true
  timer = timer or assert(uv.new_timer())
  timer:start(PAUSE, 0, vim.schedule_wrap(save_due))
end

--- A chat's prompt buffer is about to go: its text is kept for the next one.
---@param chat agentchat.Chat
function M.keep(chat)
  kept[chat.id] = require("agentchat.prompt").text(chat)
  M.save(chat)
end

---@param pid integer
local function is_running(pid)
  local ok, _, code = uv.kill(pid, 0)
  return ok == 0 or code == "EPERM"
end

--- The files with drafts for a project that no running Neovim owns, newest first.
---@param cwd string
---@return string[]
local function ownerless(cwd)
  local found = {}
  local key = project_key(cwd)
  for name, kind in vim.fs.dir(folder()) do
    local project, pid = name:match("^(.+)-(%d+)-%d+$")
    if
      kind == "file"
      and project == key
      and not is_running(tonumber(pid) --[[@as integer]])
    then
      local path = vim.fs.joinpath(folder(), name)
      local stat = uv.fs_stat(path)
      if stat then
        found[#found + 1] = { path = path, time = stat.mtime.sec + stat.mtime.nsec / 1e9 }
      end
    end
  end
  table.sort(found, function(a, b)
    return a.time > b.time
  end)
  return vim.tbl_map(function(entry)
    return entry.path
  end, found)
end

---@param path string
---@return string?
local function read(path)
  local file = uv.fs_open(path, "r", 0)
  if not file then
    return nil
  end
  local stat = uv.fs_fstat(file)
  local text = stat and uv.fs_read(file, stat.size, 0)
  uv.fs_close(file)
  return text or nil
end

--- The draft for a chat: its own, else the newest that an earlier Neovim left in the same folder. Only the first chat in
--- a folder takes that, and one that a session file brings back: who opens another chat wants an empty prompt.
---@param chat agentchat.Chat
---@param restored boolean
---@return string?
function M.load(chat, restored)
  local own = kept[chat.id]
  if own then
    kept[chat.id] = nil
    return not is_blank(own) and own or nil
  end
  local project = project_key(chat.cwd)
  if adopted[project] and not restored then
    return nil
  end
  adopted[project] = true
  for _, path in ipairs(ownerless(chat.cwd)) do
    local text = read(path)
    -- Renaming decides between two Neovims that start at once.
    if text and uv.fs_rename(path, path_of(chat)) then
      saved[chat.id] = text
      return text
    end
  end
end

--- Saves the drafts of all chats.
function M.save_all()
  for _, chat in ipairs(require("agentchat.chats").all()) do
    M.save(chat)
  end
end

return M
