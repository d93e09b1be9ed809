--- Files and links that a transcript speaks of, and going there.

local M = {}

local api = vim.api

--- Lines of a terminal that a card shows.
local TAIL = 5

---@class agentchat.Place
---@field path string absolute
---@field line? integer 1-based
---@field col? integer 1-based, in bytes

--- What a text may say beside the path: `path:3:7`, `path:3-9`, `path#L3`, `path(3)`.
local forms = {
  "^(.+):(%d+):(%d+)$",
  "^(.+):(%d+)%-%d+$",
  "^(.+):(%d+)$",
  "^(.+)#L(%d+)",
  "^(.+)%((%d+)%)$",
}

---@param cwd string
---@param path string
---@return string? absolute the path of something that exists
local function existing(cwd, path)
  if path == "" or #path > 4096 or path:find("[%z\n]") then
    return nil
  end
  path = path:gsub("^~/", function()
    return (vim.uv.os_homedir() or "~") .. "/"
  end)
  local is_absolute = path:find("^/") or path:find("^%a:[/\\]")
  local absolute = is_absolute and path or vim.fs.joinpath(cwd, path)
  return vim.uv.fs_stat(absolute) and vim.fs.normalize(absolute, { expand_env = false }) or nil
end

--- What a text names, if that exists.
---@param cwd string folder that relative paths start from
---@param text string
---@return agentchat.Place?
function M.parse(cwd, text)
  if vim.startswith(text, "file://") then
    text = text:gsub("^file://[^/]*", ""):gsub("%%(%x%x)", function(hex)
      return string.char(tonumber(hex, 16))
    end)
  end
  local bare = text:gsub("^[%(%[{<\"'`*]+", ""):gsub("[%)%]}>\"'`*,;:.!?]+$", "")
  for _, candidate in ipairs({ text, bare, (bare:gsub("^[ab]/", "")) }) do
    local path = existing(cwd, candidate)
    if path then
      return { path = path }
    end
    for _, form in ipairs(forms) do
      local name, line, col = candidate:match(form)
      path = name and existing(cwd, name)
      if path then
        return { path = path, line = tonumber(line), col = tonumber(col) }
      end
    end
  end
end

--- The part of a line that a pattern with one capture finds at a column.
---@param line string
---@param col integer 1-based
---@param pattern string
---@return string?
local function around(line, col, pattern)
  local init = 1
  while true do
    local first, last, found = line:find(pattern, init)
    if not first then
      return nil
    end
    if first <= col and col <= last then
      return found
    end
    init = math.max(last, first) + 1
  end
end

--- What is written at a column that may name something, the likeliest first.
---@param line string
---@param col integer 1-based
---@return string[]
local function candidates(line, col)
  local found = {}
  for _, pattern in ipairs({ "%[[^%]]*%]%(([^%)%s]+)[^%)]*%)", "`([^`]+)`", "(%S+)" }) do
    found[#found + 1] = around(line, col, pattern)
  end
  return found
end

--- What a row of a card names: a place, or the file of a diff; nil for its output and for changed lines.
---@param line string
---@return string?
local function card_text(line)
  local diff = line:match("^  ± (.-)  %+%d+ −%d+$")
  if diff then
    return (diff:gsub(" %(new file%)$", ""))
  end
  return not line:find("^  │") and not line:find("^  [-+$] ") and line:match("^  (%S.*)$") or nil
end

--- The place that a row of a card names.
---@param cwd string
---@param line? string
---@return agentchat.Place?
local function card_place(cwd, line)
  local text = line and card_text(line)
  return text and M.parse(cwd, text)
end

--- The place that the cursor is on; on a card, else the first that the card names.
---@param chat agentchat.Chat
---@param buf integer
---@return agentchat.Place?
local function at_cursor(chat, buf)
  local cursor = api.nvim_win_get_cursor(0)
  local row, line = cursor[1] - 1, api.nvim_get_current_line()
  for _, text in ipairs(candidates(line, cursor[2] + 1)) do
    local place = M.parse(chat.cwd, text)
    if place then
      return place
    end
  end
  local folds = require("agentchat.folds")
  local entry = folds.entry_at(buf, row)
  if not entry or entry.kind ~= "tool" then
    return nil
  end
  local lines = api.nvim_buf_get_lines(buf, entry.row, folds.entry_end(buf, entry.row), true)
  -- The nearest above the cursor is what the row belongs to; then the card's first.
  for i = row - entry.row + 1, 1, -1 do
    local place = card_place(chat.cwd, lines[i])
    if place then
      return place
    end
  end
  for word in (lines[1] or ""):gmatch("%S+") do
    local place = M.parse(chat.cwd, word)
    if place then
      return place
    end
  end
  for i = 2, #lines do
    local place = card_place(chat.cwd, lines[i])
    if place then
      return place
    end
  end
end

--- Shows a place in a window for files, and goes there.
---@param place agentchat.Place
local function open(place)
  local win = require("agentchat.code_window").get()
  api.nvim_set_current_win(win)
  local buf = vim.fn.bufadd(place.path)
  if api.nvim_win_get_buf(win) ~= buf then
    local ok, reason = pcall(vim.cmd.buffer, buf)
    if not ok then
      require("agentchat.message").show("error", ("%s cannot be opened: %s"):format(place.path, reason))
      return
    end
    vim.bo[buf].buflisted = true
  end
  if place.line then
    vim.cmd("normal! m'")
    local last = api.nvim_buf_line_count(buf)
    api.nvim_win_set_cursor(win, { math.max(1, math.min(place.line, last)), math.max(0, (place.col or 1) - 1) })
    vim.cmd("normal! zv")
  end
end

---@return agentchat.Chat? chat
---@return integer buf
local function current()
  local buf = api.nvim_get_current_buf()
  return require("agentchat.chats").of_buffer(buf), buf
end

--- The terminal whose last lines the cursor is on.
---@return string? name
local function terminal_at_cursor()
  local row = api.nvim_win_get_cursor(0)[1]
  for at = row, math.max(1, row - TAIL), -1 do
    local line = api.nvim_buf_get_lines(0, at - 1, at, true)[1]
    if not vim.startswith(line, "  │ ") then
      return nil
    end
    local name = line:match("^  │ terminal (.+)$")
    if name then
      return name
    end
  end
end

--- Opens the file that the cursor is on.
function M.go()
  local chat, buf = current()
  local place = chat and at_cursor(chat, buf)
  if place then
    open(place)
  else
    require("agentchat.message").show("info", "there is no file under the cursor")
  end
end

--- The same, or opens the fold at the cursor; where there is neither, the key's own meaning.
function M.go_or_down()
  local inline = package.loaded["agentchat.permission_inline"]
  if inline and inline.press_at_cursor() then
    return
  end
  local line = vim.fn.line(".")
  if vim.fn.foldclosed(line) ~= -1 then
    vim.cmd("normal! zo")
    return
  end
  local chat, buf = current()
  local terminal = chat and terminal_at_cursor()
  if chat and terminal and require("agentchat.terminals").open(terminal, chat.id) then
    return
  end
  local place = chat and at_cursor(chat, buf)
  if place then
    open(place)
  else
    pcall(vim.cmd, ("normal! %d+"):format(vim.v.count1))
  end
end

--- The link at a column.
---@param line string
---@param col integer 1-based
---@return string?
local function link_at(line, col)
  local target = around(line, col, "%[[^%]]*%]%(([^%)%s]+)[^%)]*%)")
  if target and target:find("^%a[%w+.-]*:") then
    return target
  end
  local url = around(line, col, '(%a[%w+.-]*://[^%s<>"`]+)') or around(line, col, '(mailto:[^%s<>"`]+)')
  if url then
    -- A closing bracket belongs to the text unless the link opens it.
    url = url:gsub("[.,;:!?'*]+$", "")
    if url:find("%)$") and not url:find("(", 1, true) then
      url = url:gsub("%)+[.,;:!?'*]*$", "")
    end
  end
  return url
end

--- Opens the link at the cursor with the system's program, else the file.
function M.open_link()
  local link = link_at(api.nvim_get_current_line(), api.nvim_win_get_cursor(0)[2] + 1)
  if not link then
    local chat, buf = current()
    local place = chat and at_cursor(chat, buf)
    link = place and place.path
  end
  if not link then
    require("agentchat.message").show("info", "there is no link under the cursor")
    return
  end
  local _, reason = vim.ui.open(link)
  if reason then
    require("agentchat.message").show("error", reason)
  end
end

return M
