--- The pending changes of agents. The table of each file lives here, so that keys act at once; the helper computes it and
--- hands it over. These functions are what the helper calls.

local M = {}

local buffer = require("agentchat.changes.buffer")
local hunks_of = require("agentchat.changes.hunks")
local store = require("agentchat.changes.store")

--- A string or number of msgpack's nil is nothing.
---@generic T
---@param value T
---@return T?
local function given(value)
  if value ~= vim.NIL then
    return value
  end
end

local is_watching = false

--- Buffers are watched from the first table on.
local function watch()
  if is_watching then
    return
  end
  is_watching = true
  require("agentchat.changes.preview").start()
  local group = vim.api.nvim_create_augroup("agentchat.changes", {})
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile", "BufFilePost" }, {
    group = group,
    callback = function(args)
      buffer.loaded(args.buf)
    end,
  })
  vim.api.nvim_create_autocmd("BufWritePost", {
    group = group,
    callback = function(args)
      local file = buffer.file_of(args.buf)
      if file and file.facts.deleted and vim.uv.fs_stat(file.path) then
        -- The user has brought the file back by saving its text.
        require("agentchat.changes.decide").restored(file)
      end
    end,
  })
  vim.api.nvim_create_autocmd("BufUnload", {
    group = group,
    callback = function(args)
      buffer.unloading(args.buf)
    end,
  })
end

---@param facts table
---@return agentchat.ChangeFacts
local function read_facts(facts)
  return {
    chat = given(facts.chat),
    created = given(facts.created) or nil,
    deleted = given(facts.deleted) or nil,
    renamed_from = given(facts.renamed_from),
    eol_old = given(facts.eol_old),
    stamp = given(facts.stamp),
  }
end

--- A piece of a file's table.
---@param path string absolute, links resolved
---@param from integer index of the first hunk wanted, 0-based
---@param max_bytes integer about how much; at least one hunk is answered, if there is one
---@return { facts?: agentchat.ChangeFacts, hunks: agentchat.Hunk[], done: boolean, version: integer } table without
---facts there is no table
function M.get(path, from, max_bytes)
  local file = store.get(path)
  if not file then
    return { hunks = {}, done = true, version = 0 }
  end
  buffer.settle(file)
  local piece, bytes, next_index = {}, 0, from + 1
  while file.hunks[next_index] and (bytes < max_bytes or #piece == 0) do
    local hunk = file.hunks[next_index]
    piece[#piece + 1] = hunk
    bytes = bytes + #hunk.flags + 32
    for _, line in ipairs(hunk.old) do
      bytes = bytes + #line + 5
    end
    next_index = next_index + 1
  end
  local facts = next(file.facts) and file.facts or vim.empty_dict()
  return { facts = facts, hunks = piece, done = next_index > #file.hunks, version = file.version }
end

--- What is pending after auto-accepting.
---@param file agentchat.ChangedFile
---@param facts agentchat.ChangeFacts
---@param hunks agentchat.Hunk[]
---@param more boolean
---@return agentchat.ChangeFacts facts
---@return agentchat.Hunk[] hunks
local function received(file, facts, hunks, more)
  file.arriving = more and { hunks = vim.list_slice(hunks), edits = {}, facts = facts } or nil
  if #hunks == 0 and not facts.renamed_from and not facts.deleted then
    return facts, hunks
  end
  if require("agentchat.changes.auto_accept").matches(file.path, facts) then
    if not more then
      require("agentchat.changes.decide").tell(file.path, facts.chat, #hunks, {})
    end
    return { chat = facts.chat, stamp = facts.stamp }, {}
  end
  return facts, hunks
end

--- Replaces the table of a file whose text does not change by that.
---@param path string
---@param version integer of the table that the new one was made from, 0 if there was none
---@param facts table
---@param hunks agentchat.Hunk[]
---@param more boolean whether `put_more` brings the rest
---@return { ok?: true, stale?: true }
function M.put(path, version, facts, hunks, more)
  local file = store.get(path)
  if file then
    buffer.settle(file)
  end
  if (file and file.version or 0) ~= version then
    return { stale = true }
  end
  watch()
  file = store.ensure(path)
  local buf = buffer.find(path)
  if buf then
    buffer.attach(file, buf)
  end
  buffer.set(file, received(file, read_facts(facts), hunks, given(more) or false))
  if not buf and not file.arriving and store.pending(file) == 0 then
    store.forget(file)
  end
  return { ok = true }
end

--- Appends to a table that came with `more`.
---@param path string
---@param hunks agentchat.Hunk[]
---@param more boolean
---@return { ok?: true, stale?: true }
function M.put_more(path, hunks, more)
  local file = store.get(path)
  local arriving = file and file.arriving
  if not file or not arriving then
    return { stale = true }
  end
  buffer.settle(file)
  vim.list_extend(arriving.hunks, hunks)
  if given(more) then
    return { ok = true }
  end
  -- What the user did meanwhile, done again to the whole.
  local whole = arriving.hunks
  for _, edit in ipairs(arriving.edits) do
    whole = hunks_of.edited(whole, edit[1], edit[2], edit[3])
  end
  local facts
  facts, whole = received(file, arriving.facts, whole, false)
  buffer.set(file, facts, whole)
  return { ok = true }
end

--- The agent's version of a loaded file is pending as a whole.
---@param path string
---@param offer agentchat.Offer
---@param chat integer whose agent's it is
---@return integer? buf
function M.offer(path, offer, chat)
  local buf = buffer.find(path)
  if buf then
    watch()
    local file = store.ensure(path)
    buffer.attach(file, buf)
    file.facts.chat = chat
    store.set_offer(file, offer)
  end
  return buf
end

--- Accepts hunks that are committed, and says so.
---@param path string
---@param version integer of the table in which they were found
---@param ids integer[]
---@return { ok?: true, stale?: true }
function M.committed(path, version, ids)
  local file = store.get(path)
  if file then
    buffer.settle(file)
  end
  if not file or file.version ~= version or file.arriving then
    return { stale = true }
  end
  local accepted = vim.tbl_filter(function(hunk)
    return vim.list_contains(ids, hunk.id)
  end, file.hunks)
  require("agentchat.changes.decide").accept(file, accepted)
  local what = #accepted == 1 and "1 change" or #accepted .. " changes"
  local name = vim.fn.fnamemodify(path, ":~:.")
  require("agentchat.message").show("info", ("accepted %s in %s: committed"):format(what, name))
  return { ok = true }
end

--- Edits a loaded buffer and replaces its table at once.
---@param buf integer
---@param changes { path: string, facts: table, hunks: agentchat.Hunk[], more: boolean }
---@param edit fun() edits the buffer; if it raises, the table is as before
function M.replace(buf, changes, edit)
  watch()
  local path = given(changes.path)
  if not path then
    local name = vim.api.nvim_buf_get_name(buf)
    path = vim.uv.fs_realpath(name) or name
  end
  local file = store.ensure(path)
  buffer.attach(file, buf)
  local before = file.arriving
  local facts, hunks = received(file, read_facts(changes.facts), changes.hunks, given(changes.more) or false)
  local ok, reason = pcall(buffer.replace, file, edit, facts, hunks, true)
  if not ok then
    file.arriving = before
    error(reason, 0)
  end
end

return M
