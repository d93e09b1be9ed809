--- Files that are open in Neovim, as the helper reads and edits them: what the user sees is what is read, and an edit
--- is an undo step of its own that moves nothing but the text.

local M = {}

local api = vim.api
local uv = vim.uv
local busy = require("agentchat.busy")

--- When to try again after Neovim forbade changes (textlock), in milliseconds.
local LOCKED_RETRY = 100

--- Kinds of buffers whose text stands for the file of their name. Others only borrow the name.
local file_buftypes = { [""] = true, acwrite = true, help = true }

---@param path string
---@return integer? buf
local function loaded_buffer(path)
  local real
  for _, buf in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(buf) and file_buftypes[vim.bo[buf].buftype] then
      local name = api.nvim_buf_get_name(buf)
      if name == path then
        return buf
      end
      real = real or uv.fs_realpath(path) or path
      if name ~= "" and uv.fs_realpath(name) == real then
        return buf
      end
    end
  end
end

--- Lines that the buffer has: Neovim says 1 for a buffer without any text.
---@param buf integer
---@return integer
local function line_count(buf)
  local count = api.nvim_buf_line_count(buf)
  if count == 1 and api.nvim_buf_get_lines(buf, 0, 1, true)[1] == "" then
    return api.nvim_buf_call(buf, vim.fn.wordcount).bytes == 0 and 0 or 1
  end
  return count
end

---@param buf integer
---@return string?
local function why_not_writable(buf)
  local options = vim.bo[buf]
  if options.buftype == "acwrite" then
    return "another plugin has it in a buffer that it saves in its own way"
  elseif not options.modifiable then
    return "the buffer is not modifiable (:set modifiable)"
  elseif options.readonly then
    return "the buffer is read-only (:set noreadonly)"
  end
end

--- Why a file must not be written although a buffer of it, if there is one, could be.
---@param path string
---@return string?
local function why_locked(path)
  local pid = require("agentchat.swap").editor(path)
  if pid then
    local name = vim.fs.basename(path)
    local text =
      "another editor (process %d) has unsaved changes in %s, so the agent cannot write it; save or quit there"
    require("agentchat.message").show("warn", text:format(pid, name))
    return ("another editor (process %d) has unsaved changes of it. Ask the user to save or close it there"):format(pid)
  end
end

--- What Neovim knows about a file.
---@param path string absolute
---@param to_write? boolean whether it is to be written now; then other editors count, too
---@return table stat `{loaded=false, why_not}`, or the buffer's facts; `line_count` is 0 when it holds no text at all
function M.file_stat(path, to_write)
  local buf = loaded_buffer(path)
  if not buf then
    return { loaded = false, why_not = to_write and why_locked(path) or nil }
  end
  local options = vim.bo[buf]
  local why_not = why_not_writable(buf) or (to_write and why_locked(path)) or nil
  return {
    loaded = true,
    buf = buf,
    tick = api.nvim_buf_get_changedtick(buf),
    -- What such a buffer holds need not be the file's text.
    modified = options.modified and options.buftype ~= "acwrite",
    behind = require("agentchat.disk_state").is_behind(buf),
    on_disk = uv.fs_stat(path) ~= nil,
    line_count = line_count(buf),
    eol = options.eol,
    fileformat = options.fileformat,
    fileencoding = options.fileencoding,
    bomb = options.bomb,
    writable = why_not == nil,
    why_not = why_not,
  }
end

---@param buf integer
---@param tick integer
local function is_stale(buf, tick)
  return not api.nvim_buf_is_loaded(buf) or api.nvim_buf_get_changedtick(buf) ~= tick
end

--- A piece of a buffer's text.
---@param buf integer
---@param tick integer
---@param first integer row, 0-based
---@param max_bytes integer about how much; at least one line is answered
---@return table
function M.file_lines(buf, tick, first, max_bytes)
  if is_stale(buf, tick) then
    return { stale = true }
  end
  local count = api.nvim_buf_line_count(buf)
  local last = first
  local start = api.nvim_buf_get_offset(buf, math.min(first, count))
  local low, high = math.min(first + 1, count), count
  -- The last row whose end is within the bound, by halving: reading a line only to measure it costs as much as sending it.
  while low < high do
    local middle = math.ceil((low + high) / 2)
    if api.nvim_buf_get_offset(buf, middle) - start <= max_bytes then
      low = middle
    else
      high = middle - 1
    end
  end
  last = low
  return { lines = api.nvim_buf_get_lines(buf, first, last, false), next = last, done = last >= count }
end

--- Characters that the file's encoding does not have would be written as question marks.
---@param buf integer
---@param edits agentchat.Edit[]
---@return string?
local function unencodable(buf, edits)
  local encoding = vim.bo[buf].fileencoding
  if encoding == "" or encoding == "utf-8" or vim.startswith(encoding, "ucs") or vim.startswith(encoding, "utf-") then
    return nil
  end
  for _, edit in ipairs(edits) do
    for _, line in ipairs(edit[5]) do
      if line:find("[\128-\255]") then
        local encoded = vim.iconv(line, "utf-8", encoding)
        if not encoded or vim.iconv(encoded, encoding, "utf-8") ~= line then
          return ("the text has characters that the file's encoding %s does not have"):format(encoding)
        end
      end
    end
  end
end

---@type fun()?
local in_step

--- Runs what `as_undo_step` was given; reached through an Ex command, which is the only way to have modifiers.
function M.run_in_step()
  if in_step then
    in_step()
  end
end

--- Ends the undo step that is being collected before and after what is run; neither the jumplist nor the changelist knows of
--- it. All in one call: Neovim looks up a command faster than it goes to Lua and back.
local STEP = [[
let &l:undolevels = &l:undolevels
keepjumps lua require("agentchat.files").run_in_step()
let &l:undolevels = &l:undolevels]]

---@param buf integer
---@param run fun()
local function as_undo_step(buf, run)
  in_step = run
  local ok, reason
  if api.nvim_get_current_buf() == buf then
    ok, reason = pcall(api.nvim_exec2, STEP, {})
  else
    ok, reason = pcall(api.nvim_buf_call, buf, function()
      api.nvim_exec2(STEP, {})
    end)
  end
  in_step = nil
  if not ok then
    error(reason, 0)
  end
end

--- Whether edits move what a window shows: neither below its cursor nor elsewhere with as many lines as before do they.
---@param win integer
---@param edits agentchat.Edit[]
---@return boolean
local function moves(win, edits)
  local row = api.nvim_win_get_cursor(win)[1] - 1
  for _, edit in ipairs(edits) do
    local first, last = edit[1], edit[3]
    local is_elsewhere = row > last and #edit[5] == last - first + 1
    if first <= row and not is_elsewhere then
      return true
    end
  end
  return false
end

--- Where each window that shows the buffer will be after the edits, if they move it.
---@param buf integer
---@param edits agentchat.Edit[]
---@return table<integer, table> views by window
local function views_after(buf, edits)
  local position = require("agentchat.position")
  local views = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    if moves(win, edits) then
      local view = api.nvim_win_call(win, vim.fn.winsaveview)
      local row, col = position.after(view.lnum - 1, view.col, edits)
      local top = position.after(view.topline - 1, 0, edits)
      view.lnum, view.col, view.topline = row + 1, col, top + 1
      views[win] = view
    end
  end
  return views
end

---@param buf integer
---@param edits agentchat.Edit[]
local function apply(buf, edits)
  local views = views_after(buf, edits)
  local applied = 0
  local ok, reason = pcall(as_undo_step, buf, function()
    for _, edit in ipairs(edits) do
      api.nvim_buf_set_text(buf, edit[1], edit[2], edit[3], edit[4], edit[5])
      applied = applied + 1
    end
  end)
  if not ok then
    if applied > 0 then
      api.nvim_buf_call(buf, function()
        vim.cmd("let &l:undolevels = &l:undolevels | silent undo")
      end)
    end
    error(reason, 0)
  end
  for win, view in pairs(views) do
    if api.nvim_win_is_valid(win) then
      api.nvim_win_call(win, function()
        local now = vim.fn.winsaveview()
        if now.lnum ~= view.lnum or now.col ~= view.col or now.topline ~= view.topline then
          vim.fn.winrestview(view)
        end
      end)
    end
  end
end

--- An error of an Ex command, without Neovim's own Lua around it.
---@param reason any
---@return string
local function plain(reason)
  local text = tostring(reason):gsub("\nstack traceback:.*", "")
  return (text:gsub("^.-nvim_exec2%(%)[^.:]*[.:]*%s*", ""):gsub("^Vim%(write%):", ""))
end

--- Writes the buffer as it is: Neovim would add the last newline that neither the user nor the agent wrote.
---@param buf integer
---@param command string
---@return boolean ok
---@return any reason
function M.write_as_is(buf, command)
  local fixeol = vim.bo[buf].fixeol
  vim.bo[buf].fixeol = false
  local ok, reason
  api.nvim_buf_call(buf, function()
    ok, reason = pcall(vim.cmd, "silent keepalt lockmarks " .. command)
  end)
  -- An autocommand may have deleted it.
  if api.nvim_buf_is_valid(buf) then
    vim.bo[buf].fixeol = fixeol
  end
  return ok, reason
end

--- Saves without any question; autocommands on save run. `write!` is what keeps Neovim from asking about a file that
--- changed on disk; the helper has compared the disk before.
---@param buf integer
---@return string? problem
local function save(buf)
  local name = api.nvim_buf_get_name(buf)
  local ok, reason = pcall(vim.fn.mkdir, vim.fs.dirname(name), "p")
  if ok then
    ok, reason = M.write_as_is(buf, "write!")
  end
  if not api.nvim_buf_is_valid(buf) then
    return "an autocommand deleted the buffer while it was saved"
  end
  if ok then
    return nil
  elseif vim.bo[buf].modified then
    return plain(reason)
  end
  require("agentchat.message").show("warn", ("%s is saved, but: %s"):format(vim.fs.basename(name), plain(reason)))
end

--- Puts a new file, which lies beside it, into the place of a buffer's file. Neovim takes it for written by the buffer.
---@param buf integer
---@param file { path: string, temporary?: string } without `temporary` it is in its place already
---@return string? problem
local function replace_file(buf, file)
  if file.temporary then
    -- Where a file cannot be replaced (a mount of its own), it is written over.
    local moved = uv.fs_rename(file.temporary, file.path)
    local ok, reason = moved, nil
    if not moved then
      ok, reason = uv.fs_copyfile(file.temporary, file.path)
    end
    if not ok then
      return reason
    end
  end
  require("agentchat.disk_state").synced(buf)
end

--- The helper is about to write the file of this buffer, and merges the two once the user is free. Until then a save would
--- write over it.
---@param buf integer
function M.file_ahead(buf)
  if api.nvim_buf_is_loaded(buf) then
    require("agentchat.save_guard").hold(buf, "ahead")
  end
end

--- The helper has written the file of this buffer, or could not.
---@param buf integer
---@param is_written boolean
function M.file_synced(buf, is_written)
  if not api.nvim_buf_is_loaded(buf) then
    return
  elseif is_written then
    require("agentchat.disk_state").synced(buf)
    require("agentchat.save_guard").hold(buf, "ahead")
  elseif require("agentchat.save_guard").release(buf) then
    require("agentchat.changes.decide").save(buf)
  end
end

--- msgpack's nil is nothing.
---@generic T
---@param value T
---@return T?
local function given(value)
  if value ~= vim.NIL then
    return value
  end
end

---@param buf integer
---@param edits agentchat.Edit[]
---@param eol? boolean
---@param changes? table
---@return boolean ok
---@return any reason
local function try_edits(buf, edits, eol, changes)
  local function edit()
    if #edits > 0 then
      apply(buf, edits)
    end
  end
  return pcall(function()
    if changes then
      require("agentchat.changes").replace(buf, changes, edit)
    else
      edit()
    end
    if eol ~= nil and eol ~= vim.bo[buf].eol then
      vim.bo[buf].eol = eol
    end
  end)
end

--- Whether the error of an edit is that Neovim forbids changes for now; `file_free` is then notified later.
---@param buf integer
---@param reason any
local function waits_for_lock(buf, reason)
  if not require("agentchat.textlock").is_locked(reason) then
    return false
  end
  -- Nothing tells when the lock ends.
  vim.defer_fn(function()
    busy.tell_free(buf)
  end, LOCKED_RETRY)
  return true
end

---@class agentchat.EditOptions
---@field save boolean
---@field eol? boolean whether the text ends in a newline
---@field file? { path: string, temporary?: string } takes the place of the buffer's file; the buffer is not saved
---@field changes? table the table of hunks that holds after the edits
---@field catches_up? boolean what the file got ahead of the buffer by is among the edits

--- Edits a buffer, and saves it if asked to. Whoever is told that the user is busy there hears `file_free` later.
---@param buf integer
---@param tick integer
---@param edits agentchat.Edit[] from the bottom up
---@param opts agentchat.EditOptions
---@return table
function M.file_edit(buf, tick, edits, opts)
  if is_stale(buf, tick) then
    return { stale = true }
  end
  local reason_to_wait = busy.with(buf, opts.save)
  if reason_to_wait then
    busy.watch(buf, opts.save)
    return { busy = reason_to_wait }
  end
  local problem = why_not_writable(buf) or unencodable(buf, edits)
  if problem then
    return { error = problem }
  end
  local file = given(opts.file)
  local ok, reason = try_edits(buf, edits, given(opts.eol), given(opts.changes))
  if not ok then
    return waits_for_lock(buf, reason) and { busy = "textlock" } or { error = plain(reason) }
  end
  local saves = opts.save
  if saves or file or given(opts.catches_up) then
    -- With this, what was ahead of the buffer is in it, and a save that was stopped can go through.
    saves = require("agentchat.save_guard").release(buf) and not file or saves
  end
  problem = saves and save(buf) or file and replace_file(buf, file)
  if problem then
    return { error = "the buffer was edited but cannot be saved: " .. problem }
  end
  return {
    ok = true,
    tick = api.nvim_buf_get_changedtick(buf),
    saved = saves and not vim.bo[buf].modified,
  }
end

--- Edits a buffer as one undo step of its own; windows keep their views.
M.apply = apply

--- An error of an Ex command, without Neovim's own Lua around it.
M.plain = plain

--- Why a buffer cannot be edited.
M.why_not_writable = why_not_writable

return M
