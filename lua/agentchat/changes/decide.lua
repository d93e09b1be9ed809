--- Accepting and rejecting hunks.

local M = {}

local api = vim.api
local buffer = require("agentchat.changes.buffer")
local hunks_of = require("agentchat.changes.hunks")
local store = require("agentchat.changes.store")

---@class agentchat.RejectedHunk
---@field id integer
---@field first integer
---@field lines string[] the agent's
---@field old string[]

--- Tells the helper, for the agent's next prompt and for what it takes as the agent's text.
---@param path string
---@param chat? integer
---@param accepted integer
---@param rejected agentchat.RejectedHunk[]
function M.tell(path, chat, accepted, rejected)
  require("agentchat.helper").notify("changes_decided", {
    path = path,
    chat = chat,
    accepted = accepted,
    rejected = rejected,
  })
end

--- What is left to know of a file once some of what the agent did is the user's.
---@param facts agentchat.ChangeFacts
---@param hunks agentchat.Hunk[] what is still pending
---@return agentchat.ChangeFacts
local function after_accept(facts, hunks)
  return {
    chat = facts.chat,
    stamp = facts.stamp,
    eol_old = #hunks > 0 and facts.eol_old or nil,
    renamed_from = #hunks > 0 and facts.renamed_from or nil,
  }
end

--- Accepts hunks: the text stays.
---@param file agentchat.ChangedFile
---@param accepted agentchat.Hunk[] of the file
function M.accept(file, accepted)
  local gone = {}
  for _, hunk in ipairs(accepted) do
    gone[hunk] = #hunk.flags
  end
  local chat = file.facts.chat
  local hunks = hunks_of.without(file.hunks, gone)
  buffer.set(file, after_accept(file.facts, hunks), hunks)
  buffer.accepted(file, accepted)
  if not file.buf and #hunks == 0 then
    store.forget(file)
  end
  M.tell(file.path, chat, math.max(1, #accepted), {})
end

--- The smallest edit that puts lines into the place of a buffer's rows, or nothing if they are the same.
---@param buf integer
---@param first integer
---@param last integer
---@param lines string[]
---@return agentchat.Edit?
local function edit_of(buf, first, last, lines)
  local count = api.nvim_buf_line_count(buf)
  local now = api.nvim_buf_get_lines(buf, first, last, false)
  local same = 0
  while same < math.min(#now, #lines) and now[same + 1] == lines[same + 1] do
    same = same + 1
  end
  local tail = 0
  while tail < math.min(#now, #lines) - same and now[#now - tail] == lines[#lines - tail] do
    tail = tail + 1
  end
  first, last = first + same, last - tail
  lines = vim.list_slice(lines, same + 1, #lines - tail)
  if first == last and #lines == 0 then
    return nil
  elseif last < count then
    lines[#lines + 1] = ""
    return { first, 0, last, 0, lines }
  elseif first == 0 then
    -- Everything goes: Neovim is left with its one empty row.
    return { 0, 0, count - 1, #api.nvim_buf_get_lines(buf, count - 1, count, true)[1], #lines > 0 and lines or { "" } }
  end
  local before = #api.nvim_buf_get_lines(buf, first - 1, first, true)[1]
  local end_col = #api.nvim_buf_get_lines(buf, count - 1, count, true)[1]
  table.insert(lines, 1, "")
  return { first - 1, before, count - 1, end_col, lines }
end

---@param buf integer
---@return boolean
local function is_empty(buf)
  return api.nvim_buf_line_count(buf) == 1 and api.nvim_buf_get_lines(buf, 0, 1, true)[1] == ""
end

--- Saves what is the text before the agent's change again; Neovim asks if the file was changed by somebody else.
---@param buf integer
local function save(buf)
  local ok, reason = require("agentchat.files").write_as_is(buf, "write")
  if not ok then
    local name = vim.fs.basename(api.nvim_buf_get_name(buf))
    local problem = require("agentchat.files").plain(reason)
    require("agentchat.message").show("error", ("%s is changed but not saved: %s"):format(name, problem))
  end
end

--- The file that the agent made goes; its buffer stays, without text.
---@param file agentchat.ChangedFile
local function remove(file)
  local ok, reason = vim.uv.fs_unlink(file.path)
  if ok or (reason or ""):find("ENOENT", 1, true) then
    vim.bo[file.buf].modified = false
  else
    require("agentchat.message").show("error", ("the new file could not be deleted: %s"):format(reason))
  end
end

--- Gives a renamed file its name back.
---@param file agentchat.ChangedFile
---@param from string
local function rename_back(file, from)
  local message = require("agentchat.message")
  if vim.uv.fs_stat(from) then
    message.show("error", ("%s keeps its new name: there is a %s again"):format(vim.fs.basename(file.path), from))
    return
  end
  vim.fn.mkdir(vim.fs.dirname(from), "p")
  local ok, reason = vim.uv.fs_rename(file.path, from)
  if not ok then
    message.show("error", ("the file could not be renamed back: %s"):format(reason))
    return
  end
  if file.buf then
    local modified = vim.bo[file.buf].modified
    api.nvim_buf_set_name(file.buf, from)
    if not modified then
      -- Neovim would ask before it overwrites a file that it has not read under this name.
      api.nvim_buf_call(file.buf, function()
        vim.cmd("silent noautocmd keepalt lockmarks write!")
      end)
    end
  end
end

--- A deleted file is there again.
---@param file agentchat.ChangedFile
function M.restored(file)
  local old = file.hunks[1] and file.hunks[1].old or {}
  M.tell(file.path, file.facts.chat, 0, { { id = 0, first = 0, lines = {}, old = old } })
  buffer.set(file, { chat = file.facts.chat }, {})
  if not file.buf then
    store.forget(file)
  end
end

--- The buffer of a deleted file kept its text: once the file is there again it is that of the file, or beside it.
---@param buf integer
---@param lines string[] of the file
local function settle_restored(buf, lines)
  local now = api.nvim_buf_get_lines(buf, 0, -1, true)
  local is_same = #now == math.max(1, #lines)
  for i, line in ipairs(is_same and lines or {}) do
    is_same = is_same and (line == now[i] or line == now[i] .. "\r")
  end
  if is_same then
    vim.bo[buf].modified = false
    require("agentchat.disk").settle(buf)
  else
    require("agentchat.disk_state").synced(buf)
  end
end

--- Puts a deleted file back, byte for byte.
---@param file agentchat.ChangedFile
---@return boolean
local function restore(file)
  local message = require("agentchat.message")
  if vim.uv.fs_stat(file.path) then
    message.show("error", ("%s was not restored: there is such a file again"):format(file.path))
    return false
  end
  local lines = file.hunks[1] and file.hunks[1].old or {}
  -- Neovim's lines have a newline for each NUL.
  local bytes = table.concat(
    vim.tbl_map(function(line)
      return (line:gsub("\n", "\0"))
    end, lines),
    "\n"
  )
  if #lines > 0 and file.facts.eol_old ~= false then
    bytes = bytes .. "\n"
  end
  vim.fn.mkdir(vim.fs.dirname(file.path), "p")
  local handle, problem = io.open(file.path, "wb")
  local ok = false
  if handle then
    ok, problem = handle:write(bytes)
    handle:close()
  end
  if not ok then
    message.show("error", ("%s could not be restored: %s"):format(file.path, problem))
    return false
  end
  local buf = file.buf
  M.restored(file)
  if buf and not vim.bo[buf].modified then
    api.nvim_buf_call(buf, function()
      vim.cmd("silent keepalt edit!")
    end)
  elseif buf then
    settle_restored(buf, lines)
  end
  return true
end

--- The file in a buffer, loaded if it is not.
---@param file agentchat.ChangedFile
---@return integer? buf
local function load(file)
  if file.buf then
    return file.buf
  end
  local shortmess = vim.o.shortmess
  -- A question about a swap file would come up in the middle of nothing.
  vim.opt.shortmess:append("A")
  local buf = vim.fn.bufadd(file.path)
  local ok, reason = pcall(vim.fn.bufload, buf)
  vim.o.shortmess = shortmess
  if not ok then
    require("agentchat.message").show("error", ("%s cannot be read: %s"):format(file.path, reason))
    return nil
  end
  buffer.loaded(buf)
  return file.buf
end

--- What rejecting hunks does to the text and to the table.
---@param file agentchat.ChangedFile
---@param buf integer
---@param rejected agentchat.Hunk[] from the top down
---@return agentchat.Edit[] edits from the bottom up
---@return table<agentchat.Hunk, integer> gone lines in each one's place
---@return agentchat.RejectedHunk[] told
local function plan(file, buf, rejected)
  local gone, told = {}, {}
  ---@type { first: integer, last: integer, lines: string[] }[] hunks that touch each other are one edit
  local regions = {}
  for _, hunk in ipairs(rejected) do
    local last = hunks_of.last(hunk)
    local lines = api.nvim_buf_get_lines(buf, hunk.first, last, false)
    local back = hunks_of.rejected(hunk, lines)
    gone[hunk] = #back
    local of_agent = {}
    for n = 1, #hunk.flags do
      if hunk.flags:byte(n) == 97 then
        of_agent[#of_agent + 1] = lines[n]
      end
    end
    told[#told + 1] = { id = hunk.id, first = hunk.first, lines = of_agent, old = hunk.old }
    local above = regions[#regions]
    if above and above.last == hunk.first then
      above.last = last
      vim.list_extend(above.lines, back)
    else
      regions[#regions + 1] = { first = hunk.first, last = last, lines = back }
    end
  end
  local edits = {}
  -- The row of a buffer without text is none.
  local empty = is_empty(buf) and not vim.bo[buf].eol
  for i = #regions, 1, -1 do
    local region = regions[i]
    edits[#edits + 1] = edit_of(buf, region.first, empty and 1 or region.last, region.lines)
  end
  return edits, gone, told
end

--- Whether the end of the text becomes again what it was.
---@param file agentchat.ChangedFile
---@param buf integer
---@param rejected agentchat.Hunk[]
---@param left agentchat.Hunk[]
local function reaches_end(file, buf, rejected, left)
  if file.facts.eol_old == nil then
    return false
  end
  return #left == 0 or hunks_of.last(rejected[#rejected]) >= api.nvim_buf_line_count(buf)
end

--- Rejects hunks: the agent's lines go and the old ones come back, in one undo step, saved if the buffer was.
---@param file agentchat.ChangedFile
---@param rejected agentchat.Hunk[] of the file, in order
---@return boolean done
function M.reject(file, rejected)
  if file.facts.deleted then
    return restore(file)
  end
  -- Loading may drop hunks that do not fit the text any more.
  local buf = load(file)
  local message = require("agentchat.message")
  local files = require("agentchat.files")
  local problem = buf and files.why_not_writable(buf)
  if not buf or problem then
    message.show("error", ("nothing was rejected: %s"):format(problem or "the file cannot be read"))
    return false
  end
  local wanted = {}
  for _, hunk in ipairs(rejected) do
    wanted[hunk.id] = true
  end
  rejected = vim.tbl_filter(function(hunk)
    return wanted[hunk.id] ~= nil
  end, file.hunks)
  local was_modified = vim.bo[buf].modified
  local facts = file.facts
  local edits, gone, told = plan(file, buf, rejected)
  local left = hunks_of.without(file.hunks, gone)
  local eol = vim.bo[buf].eol
  if reaches_end(file, buf, rejected, left) then
    eol = facts.eol_old
  end
  local after = #left > 0 and facts or { chat = facts.chat, stamp = facts.stamp }
  local ok, reason = pcall(buffer.replace, file, function()
    if #edits > 0 then
      files.apply(buf, edits)
    end
    vim.bo[buf].eol = eol
  end, after, left)
  if not ok then
    message.show("error", ("nothing was rejected: %s"):format(files.plain(reason)))
    return false
  end
  if facts.created and #left == 0 and is_empty(buf) then
    remove(file)
  elseif not was_modified and vim.bo[buf].modified then
    save(buf)
  end
  if facts.renamed_from and #left == 0 then
    rename_back(file, facts.renamed_from)
  end
  M.tell(file.path, facts.chat, 0, told)
  return true
end

--- The smallest edit that puts lines into the place of rows.
M.edit_of = edit_of

--- Saves a buffer as the user does, and tells them if that fails.
M.save = save

return M
