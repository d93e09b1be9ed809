--- What the words `@selection`, `@diagnostics`, `@buffers`, `@diff` and `@quickfix` stand for at this moment, and the
--- pieces that a prompt is sent in.

---@alias agentchat.Part
---| { type: "text", text: string }
---| { type: "file", label: string, path: string, first?: integer, last?: integer }
---| { type: "context", label: string, name: string, text: string }
---| { type: "diff", label: string }

---@class agentchat.Special
---@field doc string
---@field parts fun(label: string): agentchat.Part[] empty when there is nothing
---@field describe fun(): string? what there is, short; nil when there is nothing

local M = {}

local api = vim.api
local mentions = require("agentchat.mentions")

--- Text of Neovim's that is sent whole through the channel to the helper; longer ones are cut, and it is said.
local MAX_BYTES = 200 * 1024
local MAX_ITEMS = 200
local MAX_BUFFERS = 50

---@type table<string, { buf: integer, mark: integer, first: integer, last: integer }> ranges that were added, by what is written
local tracked = {}
local tracked_ns = api.nvim_create_namespace("agentchat.added")

--- Whether a buffer is one of the user's, rather than a chat, a terminal or a list.
---@param buf integer
local function is_users(buf)
  return vim.bo[buf].buftype == "" and not vim.b[buf].agentchat
end

--- The buffer that the user was in before the prompt.
---@return integer?
function M.source()
  local current = api.nvim_get_current_buf()
  if is_users(current) then
    return current
  end
  local wins = api.nvim_tabpage_list_wins(0)
  local previous = vim.fn.win_getid(vim.fn.winnr("#"))
  if previous ~= 0 then
    table.insert(wins, 1, previous)
  end
  for _, win in ipairs(wins) do
    local buf = api.nvim_win_get_buf(win)
    if is_users(buf) and api.nvim_win_get_config(win).relative == "" then
      return buf
    end
  end
end

--- A path for the agent's eyes.
---@param buf integer
---@return string
local function shown_name(buf)
  local name = api.nvim_buf_get_name(buf)
  return name ~= "" and vim.fn.fnamemodify(name, ":.") or ("[No Name %d]"):format(buf)
end

---@param lines string[]
---@param unit string what the lines are, for the sentence that says how many are missing
---@return string
local function joined(lines, unit)
  local size = 0
  for i, line in ipairs(lines) do
    size = size + #line + 1
    if size > MAX_BYTES or (i > MAX_ITEMS and unit ~= "lines") then
      local kept = vim.list_slice(lines, 1, i - 1)
      kept[#kept + 1] = ("(%d more %s are left out)"):format(#lines - i + 1, unit)
      return table.concat(kept, "\n") .. "\n"
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

--- The rows that were last selected in a buffer, 1-based.
---@param buf integer?
---@return integer? first
---@return integer? last
local function selected_rows(buf)
  if not buf then
    return nil
  end
  if buf == api.nvim_get_current_buf() and api.nvim_get_mode().mode:find("^[vV\22]") then
    local a, b = vim.fn.line("v"), vim.fn.line(".")
    return math.min(a, b), math.max(a, b)
  end
  local first, last = api.nvim_buf_get_mark(buf, "<")[1], api.nvim_buf_get_mark(buf, ">")[1]
  if first > 0 and last >= first then
    return first, math.min(last, api.nvim_buf_line_count(buf))
  end
end

--- Lines of a buffer: from its file when it has one, so that they need not go through the channel.
---@param buf integer
---@param label string
---@param first integer
---@param last integer
---@return agentchat.Part
local function lines_part(buf, label, first, last)
  local path = api.nvim_buf_get_name(buf)
  if vim.bo[buf].buftype == "" and path ~= "" then
    return { type = "file", label = label, path = path, first = first, last = last }
  end
  local text = joined(api.nvim_buf_get_lines(buf, first - 1, last, false), "lines")
  return { type = "context", label = label, name = ("buffer/%d#L%d:%d"):format(buf, first, last), text = text }
end

---@param label string
---@param name string
---@param lines string[]
---@param unit string
---@return agentchat.Part[]
local function list_part(label, name, lines, unit)
  return #lines == 0 and {} or { { type = "context", label = label, name = name, text = joined(lines, unit) } }
end

---@return vim.Diagnostic[]
local function diagnostics()
  local found = vim.diagnostic.get()
  local source = M.source()
  table.sort(found, function(a, b)
    if a.bufnr ~= b.bufnr then
      return a.bufnr == source or (b.bufnr ~= source and a.bufnr < b.bufnr)
    end
    return a.lnum < b.lnum
  end)
  return found
end

---@return string[] paths
local function open_files()
  local found = {}
  for _, info in ipairs(vim.fn.getbufinfo({ buflisted = 1 })) do
    if is_users(info.bufnr) and info.name ~= "" and #found < MAX_BUFFERS then
      found[#found + 1] = info.name
    end
  end
  return found
end

---@param count integer
---@param one string
---@param many? string
---@return string?
local function counted(count, one, many)
  return count > 0 and ("%d %s"):format(count, count == 1 and one or many or one .. "s") or nil
end

---@type table<string, agentchat.Special>
M.specials = {
  selection = {
    doc = "The lines last selected in the window you came from",
    parts = function(label)
      local buf = M.source()
      local first, last = selected_rows(buf)
      return first and {
        lines_part(buf --[[@as integer]], label, first, last --[[@as integer]]),
      } or {}
    end,
    describe = function()
      local first, last = selected_rows(M.source())
      return first and "selection " .. counted(last - first + 1, "line")
    end,
  },
  diagnostics = {
    doc = "The diagnostics of all buffers",
    parts = function(label)
      local severity = vim.diagnostic.severity
      local lines = vim.tbl_map(function(item)
        local place = ("%s:%d:%d"):format(shown_name(item.bufnr), item.lnum + 1, item.col + 1)
        local text = item.message:gsub("%s*\n%s*", " ")
        local from = item.source and (" (%s)"):format(item.source) or ""
        return ("%s: %s: %s%s"):format(place, severity[item.severity]:lower(), text, from)
      end, diagnostics())
      return list_part(label, "diagnostics", lines, "diagnostics")
    end,
    describe = function()
      return counted(#vim.diagnostic.get(), "diagnostic")
    end,
  },
  buffers = {
    doc = "The files that are open in listed buffers",
    parts = function(label)
      local parts = {}
      for i, path in ipairs(open_files()) do
        parts[#parts + 1] = { type = "file", label = i == 1 and label or "", path = path }
      end
      return parts
    end,
    describe = function()
      return counted(#open_files(), "buffer")
    end,
  },
  diff = {
    doc = "What is changed and not committed, from git",
    parts = function(label)
      return { { type = "diff", label = label } }
    end,
    describe = function()
      return "diff"
    end,
  },
  quickfix = {
    doc = "The entries of the quickfix list",
    parts = function(label)
      local lines = {}
      for _, item in ipairs(vim.fn.getqflist()) do
        local text = item.text:gsub("%s*\n%s*", " ")
        local place = item.bufnr > 0 and ("%s:%d:%d: "):format(shown_name(item.bufnr), item.lnum, item.col) or ""
        lines[#lines + 1] = place .. text
      end
      return list_part(label, "quickfix", lines, "entries")
    end,
    describe = function()
      return counted(vim.fn.getqflist({ size = 0 }).size, "quickfix entry", "quickfix entries")
    end,
  },
}

--- Writes a mention of lines of a buffer, and follows them from now on: what is sent is where they are then.
---@param chat agentchat.Chat
---@param buf integer
---@param first integer 1-based
---@param last integer
---@return string
function M.track(chat, buf, first, last)
  local path = api.nvim_buf_get_name(buf)
  local named = path ~= "" and vim.bo[buf].buftype == ""
  local label = mentions.write(named and mentions.name(path, chat.cwd) or "buffer:" .. buf, first, last)
  local mark = api.nvim_buf_set_extmark(buf, tracked_ns, first - 1, 0, { end_row = last - 1, right_gravity = false })
  local old = tracked[label]
  if old and api.nvim_buf_is_valid(old.buf) then
    api.nvim_buf_del_extmark(old.buf, tracked_ns, old.mark)
  end
  tracked[label] = { buf = buf, mark = mark, first = first, last = last }
  return label
end

--- The buffer and lines that a mention means, if they were added with `track()` or it names a buffer.
---@param mention agentchat.Mention
---@return integer? buf
---@return integer? first
---@return integer? last
function M.lines_of(mention)
  if not mention.first then
    return nil
  end
  local range = tracked[mention.label]
  if range and api.nvim_buf_is_loaded(range.buf) then
    local mark = api.nvim_buf_get_extmark_by_id(range.buf, tracked_ns, range.mark, { details = true })
    if mark[1] then
      return range.buf, mark[1] + 1, math.max(mark[1], mark[3].end_row) + 1
    end
  end
  local buf = tonumber(mention.name:match("^buffer:(%d+)$"))
  if buf and api.nvim_buf_is_loaded(buf) then
    return buf, mention.first, mention.last
  end
end

---@param parts agentchat.Part[]
---@param text string
local function add_text(parts, text)
  local last = parts[#parts]
  if last and last.type == "text" then
    last.text = last.text .. text
  elseif text ~= "" then
    parts[#parts + 1] = { type = "text", text = text }
  end
end

---@param parts agentchat.Part[]
---@param mention agentchat.Mention
---@param chat agentchat.Chat
local function add_mention(parts, mention, chat)
  local special = not mention.quoted and not mention.first and M.specials[mention.name]
  if special then
    local found = special.parts(mention.label)
    if #found == 0 then
      add_text(parts, mention.label)
    end
    vim.list_extend(parts, found)
    return
  end
  local buf, first, last = M.lines_of(mention)
  if buf then
    parts[#parts + 1] = lines_part(buf, mention.label, first --[[@as integer]], last --[[@as integer]])
    return
  end
  -- Whether there is such a file is found out by the helper; if not, it stays text.
  local path = mentions.path(mention.name, chat.cwd)
  parts[#parts + 1] = { type = "file", label = mention.label, path = path, first = mention.first, last = mention.last }
end

--- The pieces of a prompt.
---@param chat agentchat.Chat
---@param text string
---@return agentchat.Part[]
function M.parts(chat, text)
  local parts = {}
  for i, line in ipairs(vim.split(text, "\n", { plain = true })) do
    if i > 1 then
      add_text(parts, "\n")
    end
    local at = 0
    for _, mention in ipairs(mentions.in_line(line)) do
      add_text(parts, line:sub(at + 1, mention.start))
      add_mention(parts, mention, chat)
      at = mention.stop
    end
    add_text(parts, line:sub(at + 1))
  end
  return parts
end

return M
