--- Which files have pending changes of an agent, and what is known of each. What is stored is never changed in place, so
--- that an undo snapshot is a reference.

---@class agentchat.ChangeFacts
---@field chat? integer whose agent it was
---@field created? boolean the agent made the file
---@field deleted? boolean the agent deleted it; `old` then holds the bytes of its lines
---@field renamed_from? string
---@field eol_old? boolean whether the last line ended in a newline before, if the agent changed that
---@field stamp? string the SHA-256 of the text on disk that the table of an unloaded file belongs to

---@class agentchat.ChangedFile
---@field path string absolute, links resolved
---@field facts agentchat.ChangeFacts
---@field hunks agentchat.Hunk[]
---@field version integer another one after each change; unique among all files
---@field buf? integer the loaded buffer
---@field arriving? agentchat.ArrivingTable a table of which only the beginning is there
---@field offer? agentchat.Offer the agent's version, which is on disk and not in the buffer

---@class agentchat.ArrivingTable
---@field facts agentchat.ChangeFacts
---@field hunks agentchat.Hunk[] as they came
---@field edits integer[][] what the user edited meanwhile: first, last, new_last

local M = {}

---@type table<string, agentchat.ChangedFile>
local files = {}
local last_version = 0
---@type table<string, true> files whose change was not announced yet
local changed = {}
---@type fun(file: agentchat.ChangedFile, later: boolean)[]
local listeners = {}

---@param path string
---@return agentchat.ChangedFile?
function M.get(path)
  return files[path]
end

--- Calls `listener` after each change of a file's table, also when only rows moved; `later` is whether it may wait:
--- a buffer is being edited at this moment.
---@param listener fun(file: agentchat.ChangedFile, later: boolean)
function M.listen(listener)
  listeners[#listeners + 1] = listener
end

--- How many decisions wait in a file. One that was only renamed or deleted waits for one, and so does the agent's version
--- of a file that the user has unsaved changes in.
---@param file agentchat.ChangedFile
---@return integer
function M.pending(file)
  local facts = file.facts
  local changes = #file.hunks > 0 and #file.hunks or (facts.renamed_from or facts.deleted) and 1 or 0
  return changes + (file.offer and 1 or 0)
end

--- The files in which something is pending, by path.
---@return agentchat.ChangedFile[]
function M.all()
  local list = {}
  for _, file in pairs(files) do
    if M.pending(file) > 0 then
      list[#list + 1] = file
    end
  end
  table.sort(list, function(a, b)
    return a.path < b.path
  end)
  return list
end

--- How many decisions wait, of one chat or of all.
---@param chat? integer
---@return integer
function M.count(chat)
  local count = 0
  for _, file in pairs(files) do
    if not chat or file.facts.chat == chat then
      count = count + M.pending(file)
    end
  end
  return count
end

---@param file agentchat.ChangedFile
local function announce(file)
  if next(changed) == nil then
    vim.schedule(function()
      local paths = vim.tbl_keys(changed)
      changed = {}
      for _, path in ipairs(paths) do
        local now = files[path]
        local data = { path = path, pending = now and M.pending(now) or 0 }
        require("agentchat.helper").notify("changes_pending", data)
        require("agentchat.events").fire("AgentChatChanges", data)
      end
    end)
  end
  changed[file.path] = true
end

--- Replaces what a file's table holds. `AgentChatChanges` follows, unless rows have only moved.
---@param file agentchat.ChangedFile
---@param facts agentchat.ChangeFacts
---@param hunks agentchat.Hunk[]
---@param moved? boolean
---@param later? boolean whether those who listen may wait
function M.set(file, facts, hunks, moved, later)
  last_version = last_version + 1
  file.facts, file.hunks, file.version = facts, hunks, last_version
  for _, listener in ipairs(listeners) do
    listener(file, later or false)
  end
  if not moved then
    announce(file)
  end
end

--- The agent's version of a file waits beside the user's, or does so no more.
---@param file agentchat.ChangedFile
---@param offer? agentchat.Offer
function M.set_offer(file, offer)
  file.offer = offer
  announce(file)
end

--- The entry of a file, made if there is none.
---@param path string
---@return agentchat.ChangedFile
function M.ensure(path)
  local file = files[path]
  if not file then
    file = { path = path, facts = {}, hunks = {}, version = 0 }
    files[path] = file
  end
  return file
end

--- Forgets a file in which nothing is pending.
---@param file agentchat.ChangedFile
function M.forget(file)
  if files[file.path] == file then
    files[file.path] = nil
  end
end

return M
