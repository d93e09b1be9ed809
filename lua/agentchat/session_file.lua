--- What a session file of Neovim (`:mksession`) does not hold: which sessions its chats have. Kept in a file of the state
--- directory for each session file.

local M = {}

--- Session files of which this is kept; the oldest go.
local MOST = 100

---@class agentchat.SavedChat
---@field id integer the chat's number, which is in the names of its buffers
---@field agent string
---@field session string
---@field cwd string
---@field title? string

---@return string
local function folder()
  return vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "agentchat", "sessions")
end

--- The file that belongs to the session file that was written or read last.
---@return string?
local function path()
  local session = vim.v.this_session
  return session ~= "" and vim.fs.joinpath(folder(), vim.fn.sha256(vim.fn.resolve(session)) .. ".json") or nil
end

local function prune()
  local files = {}
  for name in vim.fs.dir(folder()) do
    local file = vim.fs.joinpath(folder(), name)
    local stat = vim.uv.fs_stat(file)
    files[#files + 1] = { file, stat and stat.mtime.sec or 0 }
  end
  table.sort(files, function(a, b)
    return a[2] > b[2]
  end)
  for i = MOST + 1, #files do
    vim.uv.fs_unlink(files[i][1])
  end
end

--- A session file has been written.
function M.written()
  local file = path()
  if not file then
    return
  end
  ---@type agentchat.SavedChat[]
  local saved = {}
  for _, chat in ipairs(require("agentchat.chats").all()) do
    local known = chat.last_session
    if known then
      saved[#saved + 1] = vim.tbl_extend("error", { id = chat.id, cwd = chat.cwd }, known)
    end
  end
  if #saved == 0 then
    vim.uv.fs_unlink(file)
    return
  end
  vim.fn.mkdir(folder(), "p", tonumber("700", 8))
  local handle, problem = vim.uv.fs_open(file, "w", tonumber("600", 8))
  if handle then
    _, problem = vim.uv.fs_write(handle, vim.json.encode(saved))
    vim.uv.fs_close(handle)
  end
  if problem then
    require("agentchat.message").show(
      "warn",
      ("the sessions of the chats are not in the session file: %s"):format(problem)
    )
  end
  prune()
end

--- A session file has been read: its chats get their sessions again.
function M.restored()
  local file = path()
  if not file or not vim.uv.fs_stat(file) then
    return
  end
  local read, lines = pcall(vim.fn.readfile, file)
  local decoded, saved = pcall(vim.json.decode, read and table.concat(lines, "\n") or "")
  if not decoded or type(saved) ~= "table" then
    return
  end
  for _, each in ipairs(saved) do
    local chat = require("agentchat.chats").get(each.id)
    if chat and not chat.opened and not chat.known and vim.uv.fs_stat(each.cwd) then
      chat.agent, chat.cwd = each.agent, each.cwd
      chat.status.agent = each.agent
      chat.known = { session = each.session, title = each.title }
      require("agentchat.lifecycle").start(chat)
    end
  end
end

return M
