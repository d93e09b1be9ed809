--- The tables of loaded files: they follow what the user edits, undoes and redoes in the buffer.
---
--- A snapshot of the table is kept for each undo state (|changenr()|). Neovim does not tell an undo from an edit while it
--- happens, but a state's table cannot change once the next state began, so it is enough to take the snapshot between keys
--- and to see afterwards which state the buffer is in.

local M = {}

local api = vim.api
local hunks_of = require("agentchat.changes.hunks")
local store = require("agentchat.changes.store")

--- Undo states whose table is kept; undoing beyond them moves the hunks like any edit does.
local SNAPSHOTS = 200

---@class agentchat.UndoState
---@field facts agentchat.ChangeFacts
---@field hunks agentchat.Hunk[]

---@class agentchat.AttachedBuffer
---@field buf integer
---@field file agentchat.ChangedFile
---@field seq integer the undo state that the table belongs to
---@field states table<integer, agentchat.UndoState>
---@field order integer[] states from the oldest on
---@field ignoring boolean our own edits are going on
---@field is_detached? boolean Neovim does not tell us of edits any more; the buffer is unloaded, or read anew (`:edit!`)
---@field last_lines? string[] the text before it is read anew
---@field last_stamp? string
---@field abandoned? { dos: boolean, encoding: string } the text had changes that were not saved

---@type table<integer, agentchat.AttachedBuffer>
local attached = {}
--- Buffers that were edited since the last key.
---@type table<integer, agentchat.AttachedBuffer>
local edited = {}
local keys_ns = api.nvim_create_namespace("agentchat.changes")

---@param buf integer
---@return integer
local function undo_state(buf)
  if api.nvim_get_current_buf() == buf then
    return vim.fn.changenr()
  end
  return api.nvim_buf_call(buf, vim.fn.changenr)
end

--- Keeps the table of the state that it belongs to.
---@param known agentchat.AttachedBuffer
local function keep(known)
  if not known.states[known.seq] then
    known.order[#known.order + 1] = known.seq
    if #known.order > SNAPSHOTS then
      known.states[table.remove(known.order, 1)] = nil
    end
  end
  known.states[known.seq] = { facts = known.file.facts, hunks = known.file.hunks }
end

--- Tells that hunks are pending again, whose rejection was undone: the agent need not hear of it.
---@param file agentchat.ChangedFile
---@param before agentchat.Hunk[]
local function tell_pending_again(file, before)
  local known, again = {}, {}
  for _, hunk in ipairs(before) do
    known[hunk.id] = true
  end
  for _, hunk in ipairs(file.hunks) do
    if not known[hunk.id] then
      again[#again + 1] = hunk.id
    end
  end
  if #again > 0 then
    local decided = { path = file.path, chat = file.facts.chat, accepted = 0, rejected = {}, pending = again }
    require("agentchat.helper").notify("changes_decided", decided)
  end
end

--- Brings the table of a buffer up to the undo state that the buffer is in.
---@param known agentchat.AttachedBuffer
local function settle(known)
  edited[known.buf] = nil
  if next(edited) == nil then
    vim.on_key(nil, keys_ns)
  end
  if not api.nvim_buf_is_loaded(known.buf) then
    return
  end
  local seq = undo_state(known.buf)
  if seq ~= known.seq then
    known.seq = seq
    local state = known.states[seq]
    if state then
      local before = known.file.hunks
      store.set(known.file, state.facts, state.hunks)
      tell_pending_again(known.file, before)
    end
  end
  keep(known)
end

local function settle_all()
  for _, known in pairs(edited) do
    settle(known)
  end
end

--- Brings a file's table up to date; whoever reads it calls this first.
---@param file agentchat.ChangedFile
function M.settle(file)
  local known = file.buf and edited[file.buf]
  if known then
    settle(known)
  end
end

---@param known agentchat.AttachedBuffer
local function note_edit(known)
  if next(edited) == nil then
    vim.on_key(settle_all, keys_ns)
    vim.schedule(settle_all)
  end
  edited[known.buf] = known
end

---@param known agentchat.AttachedBuffer
---@param first integer
---@param last integer
---@param new_last integer
local function on_lines(known, first, last, new_last)
  if known.ignoring then
    return
  end
  local file = known.file
  local seq = undo_state(known.buf)
  if seq ~= known.seq then
    keep(known)
    known.seq = seq
  end
  note_edit(known)
  if file.arriving then
    table.insert(file.arriving.edits, { first, last, new_last })
  end
  local hunks = hunks_of.edited(file.hunks, first, last, new_last)
  hunks = hunks_of.without_restored(hunks, first, new_last, function(from, to)
    return api.nvim_buf_get_lines(known.buf, from, to, false)
  end)
  if hunks ~= file.hunks then
    store.set(file, file.facts, hunks, #hunks == #file.hunks, true)
  end
end

--- The hunks after a text was replaced by one that somebody else wrote.
---@param hunks agentchat.Hunk[]
---@param before string[]
---@param now string[]
---@return agentchat.Hunk[]
local function moved(hunks, before, now)
  local function text(lines)
    return table.concat(lines, "\n") .. "\n"
  end
  local diff = vim.diff(text(before), text(now), { result_type = "indices" }) --[[@as integer[][] ]]
  for i = #diff, 1, -1 do
    local old, count, new_count = diff[i][1], diff[i][2], diff[i][4]
    local first = count == 0 and old or old - 1
    hunks = hunks_of.edited(hunks, first, first + count, first + new_count)
  end
  hunks = hunks_of.within(hunks, #now)
  return hunks_of.without_restored(hunks, 0, #now, function(from, to)
    return vim.list_slice(now, from + 1, to)
  end)
end

--- Stands for a text; `stamp` in `src/nvim/files/hunks.rs` is the same.
---@param lines string[] with "\n" for NUL, as Neovim has them
---@param eol boolean whether the last one ends in a newline
---@return string
local function stamp_of(lines, eol)
  local is_empty = #lines == 0 or (#lines == 1 and lines[1] == "")
  return vim.fn.sha256(is_empty and "" or table.concat(lines, "\n") .. (eol and "\n" or ""))
end

---@param buf integer
---@return string
local function stamp(buf)
  return stamp_of(api.nvim_buf_get_lines(buf, 0, -1, true), vim.bo[buf].eol)
end

---@param facts agentchat.ChangeFacts
---@param text_stamp string
---@return agentchat.ChangeFacts
local function stamped(facts, text_stamp)
  return vim.tbl_extend("force", facts, { stamp = text_stamp })
end

--- The text was read anew.
---@param known agentchat.AttachedBuffer
local function reread(known)
  local file, before = known.file, known.last_lines
  known.last_lines = nil
  local hunks = {}
  if before then
    hunks = moved(file.hunks, before, api.nvim_buf_get_lines(known.buf, 0, -1, true))
  elseif #file.hunks > 0 then
    -- Where the hunks are now cannot be known.
    local name = vim.fs.basename(file.path)
    local text = "%s was read again, so its pending changes are not known any more; :undo shows the text from before"
    require("agentchat.message").show("warn", text:format(name))
  end
  known.seq = undo_state(known.buf)
  store.set(file, file.facts, hunks)
  keep(known)
end

--- Unsaved changes are gone with their buffer: the table is that of the file on disk, if there is one.
---@param known agentchat.AttachedBuffer
local function forget_unsaved(known)
  local how, file = known.abandoned, known.file
  local ok, now = pcall(vim.fn.readfile, file.path, "b")
  if not ok then
    store.set(file, { chat = file.facts.chat }, {})
    return
  end
  local eol = now[#now] == ""
  if eol then
    now[#now] = nil
  end
  for i, line in ipairs(now) do
    line = how.dos and line:gsub("\r$", "") or line
    now[i] = how.encoding ~= "" and how.encoding ~= "utf-8" and vim.iconv(line, how.encoding, "utf-8") or line
  end
  store.set(file, stamped(file.facts, stamp_of(now, eol)), moved(file.hunks, known.last_lines, now))
end

---@param known agentchat.AttachedBuffer
local function detach(known)
  edited[known.buf] = nil
  if attached[known.buf] ~= known then
    return
  end
  attached[known.buf] = nil
  known.file.buf = nil
  if known.abandoned then
    forget_unsaved(known)
  elseif known.last_lines and not known.file.facts.deleted then
    store.set(known.file, stamped(known.file.facts, known.last_stamp or ""), known.file.hunks)
  end
  if store.pending(known.file) == 0 then
    store.forget(known.file)
  end
end

--- The text of a buffer that Neovim is reading anew by itself. It keeps that in a buffer without a name until it has read the
--- file, with one empty line more, in case it cannot; nothing else has that text.
---@return string[]?
local function text_before_reload()
  local bufs = api.nvim_list_bufs()
  local kept = bufs[#bufs]
  if api.nvim_buf_get_name(kept) == "" and not vim.bo[kept].buflisted then
    return api.nvim_buf_get_lines(kept, 0, -2, false)
  end
end

---@param known agentchat.AttachedBuffer
local function listen(known)
  local buf = known.buf
  known.is_detached = false
  api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, new_last)
      if attached[buf] ~= known then
        return true
      end
      on_lines(known, first, last, new_last)
    end,
    on_reload = function()
      known.last_lines = known.last_lines or text_before_reload()
      vim.schedule(function()
        if attached[buf] == known and api.nvim_buf_is_loaded(buf) then
          reread(known)
        end
      end)
    end,
    on_detach = function()
      known.is_detached = true
      vim.schedule(function()
        if not api.nvim_buf_is_loaded(buf) then
          detach(known)
        end
      end)
    end,
  })
end

--- Lets a file's table follow its loaded buffer.
---@param file agentchat.ChangedFile
---@param buf integer
function M.attach(file, buf)
  if attached[buf] and attached[buf].file == file then
    return
  end
  ---@type agentchat.AttachedBuffer
  local known = { buf = buf, file = file, seq = undo_state(buf), states = {}, order = {}, ignoring = false }
  attached[buf] = known
  file.buf = buf
  keep(known)
  listen(known)
end

---@param buf integer
---@return agentchat.ChangedFile?
function M.file_of(buf)
  local known = attached[buf]
  return known and known.file
end

---@param buf integer
---@return string? path
local function path_of(buf)
  local name = api.nvim_buf_get_name(buf)
  if name ~= "" and vim.bo[buf].buftype == "" then
    return vim.uv.fs_realpath(name) or name
  end
end

--- The loaded buffer of a file.
---@param path string
---@return integer?
function M.find(path)
  local file = store.get(path)
  if file and file.buf and api.nvim_buf_is_loaded(file.buf) then
    return file.buf
  end
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) and path_of(buf) == path then
      return buf
    end
  end
end

--- A buffer got a text: it may be that of a file with a table.
---@param buf integer
function M.loaded(buf)
  local known = attached[buf]
  if known and known.is_detached then
    listen(known)
    reread(known)
    return
  end
  local path = path_of(buf)
  local file = path and store.get(path)
  if not file or file.buf == buf or store.pending(file) == 0 then
    return
  end
  local facts = file.facts
  if not facts.deleted then
    if facts.stamp and facts.stamp ~= stamp(buf) then
      local text = "others changed %s while it was closed, so its pending changes are not known any more"
      require("agentchat.message").show("warn", text:format(vim.fs.basename(path)))
      store.set(file, { chat = facts.chat }, {})
    else
      store.set(file, facts, hunks_of.within(file.hunks, api.nvim_buf_line_count(buf)), true)
    end
  end
  M.attach(file, buf)
end

--- A buffer's text is about to go, perhaps to be read anew.
---@param buf integer
function M.unloading(buf)
  local known = attached[buf]
  if known and store.pending(known.file) > 0 then
    settle(known)
    -- Kept until the buffer is read again, or known to be gone.
    known.last_lines = api.nvim_buf_get_lines(buf, 0, -1, true)
    known.last_stamp = stamp_of(known.last_lines, vim.bo[buf].eol)
    local options = vim.bo[buf]
    local is_abandoned = options.modified and not known.file.facts.deleted
    known.abandoned = is_abandoned and { dos = options.fileformat == "dos", encoding = options.fileencoding } or nil
  end
end

--- The buffer is not that of its file any more.
---@param buf integer
function M.release(buf)
  local known = attached[buf]
  if known then
    settle(known)
    attached[buf], edited[buf] = nil, nil
    known.file.buf = nil
  end
end

--- Edits a buffer so that its table does not follow by itself; `edit` does it, and `facts` and `hunks` hold then. If it
--- fails, the table is as before.
---@param file agentchat.ChangedFile
---@param edit fun()
---@param facts agentchat.ChangeFacts
---@param hunks agentchat.Hunk[]
---@param later? boolean whether what shows the table may wait until Neovim has a moment
function M.replace(file, edit, facts, hunks, later)
  local known = attached[file.buf]
  if not known then
    edit()
    store.set(file, facts, hunks)
    return
  end
  settle(known)
  known.ignoring = true
  local ok, reason = pcall(edit)
  known.ignoring = false
  if not ok then
    error(reason, 0)
  end
  known.seq = undo_state(known.buf)
  store.set(file, facts, hunks, false, later)
  keep(known)
end

--- Replaces a table without a change of the text.
---@param file agentchat.ChangedFile
---@param facts agentchat.ChangeFacts
---@param hunks agentchat.Hunk[]
function M.set(file, facts, hunks)
  local known = attached[file.buf]
  if known then
    settle(known)
  end
  store.set(file, facts, hunks)
  if known then
    keep(known)
  end
end

--- Takes hunks that were accepted out of the undo states, so that undoing something else does not bring them back.
---@param file agentchat.ChangedFile
---@param accepted agentchat.Hunk[]
function M.accepted(file, accepted)
  local known = attached[file.buf]
  if not known then
    return
  end
  local by_id = {}
  for _, hunk in ipairs(accepted) do
    by_id[hunk.id] = hunk
  end
  for _, state in pairs(known.states) do
    state.hunks = vim.tbl_filter(function(hunk)
      local same = by_id[hunk.id]
      return not (same and same.flags == hunk.flags and (same.old == hunk.old or vim.deep_equal(same.old, hunk.old)))
    end, state.hunks)
  end
  keep(known)
end

return M
