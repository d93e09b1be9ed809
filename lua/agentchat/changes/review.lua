--- Going through pending changes and deciding about them: what the commands, mappings and Lua functions do.

local M = {}

local api = vim.api
local buffer = require("agentchat.changes.buffer")
local decide = require("agentchat.changes.decide")
local hunks_of = require("agentchat.changes.hunks")
local store = require("agentchat.changes.store")

---@param level "info"|"warn"|"error"
---@param text string
local function say(level, text)
  require("agentchat.message").show(level, text)
end

---@return agentchat.ChangedFile[]
local function pending_files()
  local files = store.all()
  for _, file in ipairs(files) do
    buffer.settle(file)
  end
  return vim.tbl_filter(function(file)
    return store.pending(file) > 0
  end, files)
end

--- The file in the current buffer, if anything is pending there.
---@return agentchat.ChangedFile?
local function current_file()
  local file = buffer.file_of(api.nvim_get_current_buf())
  if file then
    buffer.settle(file)
    return store.pending(file) > 0 and file or nil
  end
end

--- The row where the cursor goes for a hunk.
---@param hunk agentchat.Hunk
---@return integer
local function row_of(hunk)
  return math.max(0, math.min(hunk.first, api.nvim_buf_line_count(0) - 1))
end

--- A window in which a file may be shown, made current.
---@return boolean
local function enter_normal_window()
  local win = api.nvim_get_current_win()
  local windows = require("agentchat.windows")
  local ours = vim.startswith(vim.bo.filetype, "agentchat")
  if not ours and not windows.is_float(win) and not vim.wo.winfixbuf and vim.bo.buftype == "" then
    return true
  end
  local normal = windows.normal(api.nvim_get_current_tabpage(), {})
  if not normal then
    return pcall(vim.cmd, "aboveleft vsplit | enew")
  end
  api.nvim_set_current_win(normal)
  return true
end

--- Shows a file in a window for files.
---@param file agentchat.ChangedFile
---@return boolean
local function show(file)
  if file.buf and file.buf == api.nvim_get_current_buf() then
    return true
  end
  if not enter_normal_window() then
    say("error", "there is no room for another window; :AgentChat close makes some")
    return false
  end
  local buf = file.buf or vim.fn.bufadd(file.path)
  vim.bo[buf].buflisted = true
  local ok, reason = pcall(vim.cmd, ("buffer %d"):format(buf))
  if not ok then
    say("error", require("agentchat.files").plain(reason):gsub("^.-Vim%(%a+%):", ""))
    return false
  end
  buffer.loaded(buf)
  return true
end

---@param hunk? agentchat.Hunk
local function go(hunk)
  if not hunk then
    return
  end
  api.nvim_win_set_cursor(0, { row_of(hunk) + 1, 0 })
  vim.cmd("normal! zv^")
  require("agentchat.changes.preview").reveal(api.nvim_get_current_buf(), hunk)
end

--- The place of the hunk that is `count` further in a list of all hunks of all files.
---@param files agentchat.ChangedFile[]
---@param count integer negative: backwards
---@return agentchat.ChangedFile file
---@return integer index of the hunk
local function far(files, count)
  local total = 0
  for _, file in ipairs(files) do
    total = total + math.max(1, #file.hunks)
  end
  local here = current_file()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  -- Between which hunks the cursor is, as the number of hunks before it.
  local before, at_one = 0, false
  local path = here and here.path or vim.fs.normalize(api.nvim_buf_get_name(0))
  for _, file in ipairs(files) do
    if file == here then
      for _, hunk in ipairs(file.hunks) do
        local of_hunk = row_of(hunk)
        before = before + (of_hunk < row and 1 or 0)
        at_one = at_one or of_hunk == row
      end
    elseif file.path < path then
      before = before + math.max(1, #file.hunks)
    end
  end
  -- Counted from 0.
  local target = count > 0 and before + (at_one and count or count - 1) or before + count
  target = target % total
  for _, file in ipairs(files) do
    local size = math.max(1, #file.hunks)
    if target < size then
      return file, target + 1
    end
    target = target - size
  end
  return files[1], 1
end

--- Goes to a pending hunk; after the last one to the first again.
---@param count integer how many further; negative: backwards
function M.go(count)
  local files = pending_files()
  if #files == 0 then
    say("info", "nothing is pending")
    return
  end
  local file, index = far(files, count)
  vim.cmd("normal! m'")
  if show(file) then
    go(file.hunks[index])
    if #file.hunks == 0 or file.offer then
      say("info", M.describe_file(file))
    end
  end
end

--- What happened to a file as a whole.
---@param file agentchat.ChangedFile
---@return string
function M.describe_file(file)
  local facts = file.facts
  if file.offer then
    return "the agent's version waits beside your unsaved changes; :AgentChat review diff compares"
  elseif facts.renamed_from then
    return "renamed from " .. vim.fn.fnamemodify(facts.renamed_from, ":~:.")
  elseif facts.deleted then
    return ("deleted, %d lines"):format(file.hunks[1] and #file.hunks[1].old or 0)
  end
  return facts.created and "new file" or "changed"
end

--- The hunks at a row and `count - 1` after them.
---@param file agentchat.ChangedFile
---@param count integer
---@return agentchat.Hunk[]
local function hunks_at(file, count)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local best
  for i, hunk in ipairs(file.hunks) do
    if hunk.first <= row and row < hunks_of.last(hunk) then
      best = i
      break
    elseif #hunk.flags == 0 and (row_of(hunk) == row or (not best and hunk.first == row + 1)) then
      best = i
    end
  end
  return best and vim.list_slice(file.hunks, best, best + count - 1) or {}
end

---@param verb "accept"|"reject"
---@param file agentchat.ChangedFile
---@param hunks agentchat.Hunk[]
---@return boolean
local function carry_out(verb, file, hunks)
  if file.arriving then
    say("warn", ("the changes of %s are still arriving; try again"):format(vim.fs.basename(file.path)))
    return false
  end
  if file.offer then
    local conflict = require("agentchat.conflict")
    if verb == "accept" then
      return conflict.accept(file)
    end
    local done = conflict.reject(file)
    return (#hunks == 0 or decide.reject(file, hunks)) and done
  elseif verb == "accept" then
    decide.accept(file, hunks)
    return true
  end
  return decide.reject(file, hunks)
end

---@param verb "accept"|"reject"
---@param count integer
local function one(verb, count)
  local file = current_file()
  if not file then
    say("info", "nothing is pending in this buffer; :AgentChat next goes to the next change")
    return
  end
  local hunks = hunks_at(file, count)
  if #file.hunks == 0 or (file.offer and #hunks == 0) then
    carry_out(verb, file, {})
  elseif #hunks == 0 then
    say("info", "no pending change at the cursor; :AgentChat next goes to the next one")
  else
    carry_out(verb, file, hunks)
  end
end

--- Decides.
---@param verb "accept"|"reject"
---@param scope? "hunk"|"file"|"all" default: the hunk at the cursor
---@param count? integer how many hunks from there on
function M.decide(verb, scope, count)
  scope = scope or "hunk"
  if scope == "hunk" then
    one(verb, count or 1)
    return
  end
  local files = pending_files()
  if scope == "file" then
    files = { current_file() }
  elseif scope ~= "all" then
    error(('agentchat: the scope is "hunk", "file" or "all", not %s'):format(vim.inspect(scope)), 0)
  end
  if #files == 0 then
    say("info", scope == "file" and "nothing is pending in this buffer" or "nothing is pending")
    return
  end
  local decided, count_of = 0, 0
  for _, file in ipairs(files) do
    local pending = store.pending(file)
    if carry_out(verb, file, vim.list_slice(file.hunks)) then
      decided, count_of = decided + 1, count_of + pending
    end
  end
  if decided > 0 then
    local what = count_of == 1 and "1 change" or count_of .. " changes"
    say("info", ("%sed %s in %s"):format(verb, what, decided == 1 and "1 file" or decided .. " files"))
  end
end

---@param file agentchat.ChangedFile
---@param hunk agentchat.Hunk
---@return string
local function describe(file, hunk)
  local parts = {}
  local added = select(2, hunk.flags:gsub("a", ""))
  if added > 0 then
    parts[#parts + 1] = "+" .. added
  end
  if #hunk.old > 0 then
    parts[#parts + 1] = "−" .. #hunk.old
  end
  if hunks_of.is_mixed(hunk) then
    parts[#parts + 1] = "with lines of yours"
  end
  if file.facts.created or file.facts.renamed_from then
    parts[#parts + 1] = M.describe_file(file)
  end
  return table.concat(parts, " ")
end

--- All pending hunks in the quickfix list.
---@return boolean whether there are any
function M.list()
  local items = {}
  for _, file in ipairs(pending_files()) do
    local first = #file.hunks == 0 or file.facts.deleted
    for _, hunk in ipairs(first and {} or file.hunks) do
      local line = file.buf and api.nvim_buf_get_lines(file.buf, hunk.first, hunk.first + 1, false)[1]
      local text = describe(file, hunk)
      local shown = #hunk.flags > 0 and line or hunk.old[1]
      items[#items + 1] = {
        bufnr = file.buf,
        filename = not file.buf and file.path or nil,
        lnum = hunk.first + 1,
        text = shown and ("%s  %s"):format(text, vim.trim(shown)) or text,
      }
    end
    if first or file.offer then
      items[#items + 1] = { filename = file.path, lnum = 1, text = M.describe_file(file) }
    end
  end
  if #items == 0 then
    say("info", "nothing is pending")
    return false
  end
  vim.fn.setqflist({}, " ", { title = "Pending changes", items = items })
  return true
end

--- Lists all pending hunks; with "diff", shows a file beside what it was.
---@param what? "list"|"diff"
function M.review(what)
  if what == "diff" then
    local file = current_file() or pending_files()[1]
    if file then
      require("agentchat.changes.side_by_side").open(file)
    else
      say("info", "nothing is pending")
    end
  elseif M.list() then
    enter_normal_window()
    vim.cmd("botright copen")
  end
end

---@type { verb: "accept"|"reject", scope: "hunk"|"file"|"all" }
local repeated = { verb = "accept", scope = "hunk" }

--- The function that `g@` calls: |.| repeats it.
function M.operator()
  M.decide(repeated.verb, repeated.scope, vim.v.count1)
end

--- Keys that decide and can be repeated with |.|; for `<expr>` mappings.
---@param verb "accept"|"reject"
---@param scope "hunk"|"file"|"all"
---@return string
function M.keys(verb, scope)
  repeated = { verb = verb, scope = scope }
  vim.go.operatorfunc = "v:lua.require'agentchat.changes.review'.operator"
  return "g@l"
end

return M
