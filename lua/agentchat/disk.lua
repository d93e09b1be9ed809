--- Buffers that follow their files: an agent, or a program it ran, has changed one on disk, or an undo puts it back. The
--- text changes by the smallest edits, undo is kept, and Neovim does not ask whether the file may be written over that it
--- has not read itself.

local M = {}

local api = vim.api
local uv = vim.uv

---@param buf integer
---@param tick integer
local function is_stale(buf, tick)
  return not api.nvim_buf_is_loaded(buf) or api.nvim_buf_get_changedtick(buf) ~= tick
end

--- Runs `:checktime` for a buffer while `choose` answers what it would ask, and nothing is reloaded by itself.
---@param buf integer
---@param choose fun(reason: string): string
local function check_time(buf, choose)
  local global = vim.go.autoread
  vim.cmd("noautocmd setglobal noautoread")
  local own = vim.bo[buf].autoread
  if own then
    api.nvim_buf_call(buf, function()
      vim.cmd("noautocmd setlocal noautoread")
    end)
  end
  local id = api.nvim_create_autocmd("FileChangedShell", {
    buffer = buf,
    callback = function()
      vim.v.fcs_choice = choose(vim.v.fcs_reason)
    end,
  })
  local ok, reason = pcall(vim.cmd, "silent checktime " .. buf)
  pcall(api.nvim_del_autocmd, id)
  if own and api.nvim_buf_is_valid(buf) then
    api.nvim_buf_call(buf, function()
      vim.cmd("noautocmd setlocal autoread")
    end)
  end
  vim.cmd("noautocmd setglobal " .. (global and "autoread" or "noautoread"))
  if not ok then
    error(reason, 0)
  end
end

--- Gives a file another time of change, within the same microseconds.
---@param path string
---@param stat uv.fs_stat.result
---@return boolean
local function nudge(path, stat)
  for step = 0, 3 do
    local seconds = stat.mtime.sec + (math.floor(stat.mtime.nsec / 1000) + step) / 1e6
    if not uv.fs_utime(path, stat.atime.sec + stat.atime.nsec / 1e9, seconds) then
      return false
    end
    local now = uv.fs_stat(path)
    if now and now.mtime.nsec ~= stat.mtime.nsec then
      return true
    end
  end
  return false
end

---@class agentchat.SeenFile what told the file that the helper has read from others
---@field sec integer
---@field nsec integer
---@field size integer

--- Whether the file of a buffer is still the one that the helper has read.
---@param buf integer
---@param seen? agentchat.SeenFile
---@return boolean
local function is_seen(buf, seen)
  local stat = uv.fs_stat(api.nvim_buf_get_name(buf))
  return seen ~= nil
    and stat ~= nil
    and stat.mtime.sec == seen.sec
    and stat.mtime.nsec == seen.nsec
    and stat.size == seen.size
end

--- Files as they were when Neovim last took them for those of their buffers: its own saves, and what was settled.
---@type table<integer, agentchat.SeenFile>
local settled = {}

---@param buf integer
local function note_settled(buf)
  local stat = uv.fs_stat(api.nvim_buf_get_name(buf))
  settled[buf] = stat and { sec = stat.mtime.sec, nsec = stat.mtime.nsec, size = stat.size } or nil
end

--- Makes Neovim take the file, whose text an unmodified buffer has, for the one that it has read. It does so by itself where
--- only the file's time differs from what it knows; of a file that has another size it first learns the size. A file that it
--- knows is left alone: another time would be news to everybody who watches it, ourselves included.
---@param buf integer
function M.settle(buf)
  if not api.nvim_buf_is_loaded(buf) or vim.bo[buf].modified then
    return
  end
  local path = api.nvim_buf_get_name(buf)
  local is_settled = false
  local function choose(reason)
    is_settled = is_settled or reason == "time"
    return reason == "time" and "ask" or ""
  end
  check_time(buf, choose)
  if not is_settled and is_seen(buf, settled[buf]) then
    return
  end
  local stat = uv.fs_stat(path)
  if not is_settled and stat and nudge(path, stat) then
    check_time(buf, choose)
  end
  if is_settled and api.nvim_buf_is_loaded(buf) then
    note_settled(buf)
  end
end

--- The buffer's text is that of its file, unless the file is another one by now.
---@param buf integer
---@param seen? agentchat.SeenFile
function M.is_as_seen(buf, seen)
  if is_seen(buf, seen) then
    vim.bo[buf].modified = false
    M.settle(buf)
  end
end

--- Whether Neovim itself would read the file of an unmodified buffer again.
---@param buf integer
---@return boolean
local function reads_by_itself(buf)
  local own = vim.bo[buf].autoread
  if own == nil then
    return vim.go.autoread
  end
  return own
end

--- Forgets the pending hunks of a file.
---@param path string
function M.drop_changes(path)
  local changes = require("agentchat.changes")
  local version = changes.get(path, 0, 0).version
  if version > 0 then
    changes.put(path, version, {}, {}, false)
  end
end

--- Turns the text of a buffer into what is, or is to be, in its file.
---@param buf integer
---@param tick integer
---@param edits agentchat.Edit[] from the bottom up
---@param opts { eol?: boolean, changes?: table, clean?: boolean, seen?: agentchat.SeenFile, only_autoread?: boolean, restore?: boolean, save?: boolean } `clean`: the
---text is that of the file; `seen`: the file that was read, if it is the disk that the buffer follows; `only_autoread`: as Neovim would do it itself; `restore`: no hunk is pending afterwards
---@return table as `file_edit`
function M.follow(buf, tick, edits, opts)
  if is_stale(buf, tick) or (opts.seen and not is_seen(buf, opts.seen)) then
    return { stale = true }
  elseif opts.only_autoread and not reads_by_itself(buf) then
    return { ok = true, tick = tick, saved = false }
  end
  local answer = require("agentchat.files").file_edit(buf, tick, edits, {
    save = opts.save or false,
    eol = opts.eol,
    changes = opts.restore and { facts = {}, hunks = {}, more = false } or opts.changes,
  })
  if answer.ok and opts.clean then
    if opts.seen then
      M.is_as_seen(buf, opts.seen)
    else
      vim.bo[buf].modified = false
      M.settle(buf)
    end
  elseif answer.ok and is_seen(buf, opts.seen) and vim.bo[buf].modified then
    -- What is on disk is merged: saving must not ask about it.
    require("agentchat.disk_state").synced(buf)
  end
  if answer.ok then
    answer.tick = api.nvim_buf_get_changedtick(buf)
  end
  return answer
end

--- The file of a buffer is gone. Its text stays, as text that is not saved.
---@param buf integer
---@param tick integer
function M.gone(buf, tick)
  if is_stale(buf, tick) or uv.fs_stat(api.nvim_buf_get_name(buf)) then
    return
  end
  check_time(buf, function()
    return ""
  end)
  vim.bo[buf].modified = true
end

--- The file of a buffer is what the user decided that it should be: nothing is to be asked about it.
---@param buf integer
---@param seen? agentchat.SeenFile only if it is still this one
function M.known(buf, seen)
  if not api.nvim_buf_is_loaded(buf) or (seen and not is_seen(buf, seen)) then
    return
  elseif vim.bo[buf].modified then
    require("agentchat.disk_state").synced(buf)
  else
    M.settle(buf)
  end
end

--- The agent gave a file another name: its buffer, if there is one, has it as well. Where the new name has a buffer already,
--- the old one keeps its text as one that is not saved.
---@param from string
---@param to string
function M.renamed(from, to)
  local buffer = require("agentchat.changes.buffer")
  local buf = buffer.find(from)
  if not buf or vim.fn.bufexists(to) == 1 then
    return
  end
  local store, old = require("agentchat.changes.store"), buffer.file_of(buf)
  if old then
    buffer.release(buf)
    if store.pending(old) == 0 then
      store.forget(old)
    end
  end
  api.nvim_buf_call(buf, function()
    -- The old name would become the alternate file, and a buffer without text.
    vim.cmd("silent keepalt noautocmd file " .. vim.fn.fnameescape(vim.fn.fnamemodify(to, ":~:.")))
  end)
  local left = vim.fn.bufnr("^" .. vim.fn.fnameescape(from) .. "$")
  if left > 0 and left ~= buf and not api.nvim_buf_is_loaded(left) then
    pcall(api.nvim_buf_delete, left, { force = true })
  end
  buffer.loaded(buf)
  require("agentchat.disk_state").renamed(buf)
end

--- Reads a file again that only Neovim knows how to read; changes that were not saved stay.
---@param buf integer
---@param tick integer
function M.reload(buf, tick)
  if is_stale(buf, tick) or vim.bo[buf].modified then
    return
  end
  check_time(buf, function(reason)
    return reason == "deleted" and "" or "reload"
  end)
end

--- Tells the helper of everything that is saved, so that it is not taken for the work of an agent.
function M.watch_saves()
  local group = api.nvim_create_augroup("agentchat.saves", {})
  -- Neovim has noticed another file. (Not `FileChangedShell`: whoever listens to that answers what the user would be asked.)
  api.nvim_create_autocmd({ "FileChangedShellPost", "BufUnload" }, {
    group = group,
    callback = function(args)
      settled[args.buf] = nil
    end,
  })
  api.nvim_create_autocmd("BufWritePost", {
    group = group,
    callback = function(args)
      if vim.bo[args.buf].buftype == "" then
        note_settled(args.buf)
        local name = api.nvim_buf_get_name(args.buf)
        require("agentchat.helper").notify("file_saved", { path = uv.fs_realpath(name) or name })
      end
    end,
  })
end

return M
