--- Unsent prompts on disk: one file for each chat with text that was not sent, found again by the next Neovim in the
--- same folder. The name carries the process, so that two Neovims never overwrite each other's.

local M = {}

local uv = vim.uv

---@type table<integer, string> what is on disk, by chat
local saved = {}

---@return string
local function folder()
  return vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "agentchat", "drafts")
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
  local file, problem = uv.fs_open(path, "w", tonumber("600", 8))
  if not file then
    return problem
  end
  local _, failed = uv.fs_write(file, text, 0)
  uv.fs_close(file)
  return failed
end

--- Brings the file of a chat's draft up to date.
---@param chat agentchat.Chat
---@param text string
function M.save(chat, text)
  if vim.trim(text) == "" then
    text = ""
  end
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

--- The draft for a chat: its own, else the newest that an earlier Neovim left in the same folder.
---@param chat agentchat.Chat
---@return string?
function M.load(chat)
  if saved[chat.id] then
    return saved[chat.id]
  end
  for _, path in ipairs(ownerless(chat.cwd)) do
    local text = read(path)
    -- Renaming decides between two Neovims that start at once.
    if text and uv.fs_rename(path, path_of(chat)) then
      saved[chat.id] = text
      return text
    end
  end
end

--- Saves the drafts of all chats, with the prompts that are still queued: no agent has seen them.
function M.save_all()
  for _, chat in ipairs(require("agentchat.chats").all()) do
    local texts = { require("agentchat.prompt").text(chat) }
    for _, id in ipairs(chat.waiting) do
      texts[#texts + 1] = chat.texts[id]
    end
    if #chat.waiting > 0 or (chat.prompt and vim.api.nvim_buf_is_loaded(chat.prompt)) then
      M.save(chat, vim.trim(table.concat(texts, "\n")))
    end
  end
end

return M
