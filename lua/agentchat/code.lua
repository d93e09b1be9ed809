--- Colours for complete code blocks, by tree-sitter, where a parser for the language is installed.
---
--- The block's text is parsed as a string, once; no parser is ever attached to the transcript. What is long is done a
--- slice at a time, so that keys are answered in between.

local M = {}

local api = vim.api
local chat_ns = api.nvim_create_namespace("agentchat.chat")
--- Where the blocks are that still wait.
local anchor_ns = api.nvim_create_namespace("agentchat.code")

--- How long a slice may take, and the pause until the next one, in milliseconds.
local BUDGET, PAUSE = 3, 15
--- Rows that are coloured between two looks at the clock.
local ROWS = 10
--- A longer block, in bytes, keeps its one colour: parsing it would take a key press's time.
local MAX_BYTES = 64 * 1024
--- Above the group for code blocks, below what is marked within lines.
local PRIORITY = 115

---@class agentchat.CodeJob
---@field buf integer
---@field anchor integer extmark that covers the block
---@field language string
---@field rows integer
---@field paint? fun(first: integer): boolean colours some rows from the one that `first` is; false if there is nothing to do

---@type agentchat.CodeJob[] oldest first
local jobs = {}
local is_scheduled = false

---@type table<string, boolean> languages whose failure was reported
local reported = {}

---@param language string
---@param reason any
local function report(language, reason)
  if not reported[language] then
    reported[language] = true
    local text = "colouring code failed; is the tree-sitter parser for %s up to date? %s"
    require("agentchat.message").show("warn", text:format(language, reason))
  end
end

--- The parser for what a fence calls the language, if there is one.
---@param language string
---@return string?
local function parser_for(language)
  language = language:lower()
  local filetype = vim.filetype.match({ filename = "code." .. language }) or language
  local name = vim.treesitter.language.get_lang(language) or vim.treesitter.language.get_lang(filetype) or filetype
  local has_parser, added = pcall(vim.treesitter.language.add, name)
  if
    has_parser
    and added ~= false
    and #api.nvim_get_runtime_file(("queries/%s/highlights.scm"):format(name), false) > 0
  then
    return name
  end
end

--- Parses a block. The returned function colours `ROWS` rows from `row` (0-based in the block) on.
---@param buf integer
---@param first integer
---@param last integer
---@param language string
---@return fun(row: integer, first: integer)? paint `first` is where the block is by then
local function prepare(buf, first, last, language)
  local text = table.concat(api.nvim_buf_get_lines(buf, first, last, true), "\n") .. "\n"
  if #text > MAX_BYTES then
    return nil
  end
  local parser = vim.treesitter.get_string_parser(text, language)
  local root = parser:parse()[1]:root()
  local query = vim.treesitter.query.get(language, "highlights")
  if not query then
    return nil
  end
  local groups = {}
  return function(row, start)
    local stop = row + ROWS
    for id, node, metadata in query:iter_captures(root, text, row, stop) do
      local name = query.captures[id]
      local from_row, from_col, to_row, to_col = node:range()
      -- What began in an earlier slice was coloured there.
      if name:sub(1, 1) ~= "_" and name ~= "spell" and name ~= "nospell" and (from_row >= row or row == 0) then
        groups[name] = groups[name] or api.nvim_get_hl_id_by_name(("@%s.%s"):format(name, language))
        api.nvim_buf_set_extmark(buf, chat_ns, start + from_row, from_col, {
          end_row = start + to_row,
          end_col = to_col,
          hl_group = groups[name],
          priority = PRIORITY + (tonumber(metadata.priority) and 1 or 0),
          strict = false,
        })
      end
    end
  end
end

---@param job agentchat.CodeJob
---@return integer? first where the block is now
---@return integer? last
local function place(job)
  if not api.nvim_buf_is_loaded(job.buf) then
    return nil
  end
  local mark = api.nvim_buf_get_extmark_by_id(job.buf, anchor_ns, job.anchor, { details = true })
  local details = mark[3]
  if details and details.end_row - mark[1] + 1 == job.rows then
    return mark[1], details.end_row + 1
  end
end

--- Does some of the oldest job; true when nothing of it is left.
---@param job agentchat.CodeJob
---@param deadline integer
---@return boolean
local function work(job, deadline)
  local first, last = place(job)
  if not first or not last then
    return true
  end
  if not job.paint then
    local paint = prepare(job.buf, first, last, job.language)
    if not paint then
      return true
    end
    local row = 0
    job.paint = function(start)
      paint(row, start)
      row = row + ROWS
      return row < job.rows
    end
  end
  while vim.uv.hrtime() < deadline do
    if not job.paint(first) then
      return true
    end
  end
  return false
end

local function slice()
  is_scheduled = false
  local deadline = vim.uv.hrtime() + BUDGET * 1000000
  while jobs[1] and vim.uv.hrtime() < deadline do
    local job = jobs[1]
    local ok, done = pcall(work, job, deadline)
    if not ok or done then
      if not ok then
        report(job.language, done)
      end
      table.remove(jobs, 1)
      pcall(api.nvim_buf_del_extmark, job.buf, anchor_ns, job.anchor)
    end
  end
  M.schedule()
end

--- Goes on after a pause, if there is anything to do.
function M.schedule()
  if jobs[1] and not is_scheduled then
    is_scheduled = true
    vim.defer_fn(slice, PAUSE)
  end
end

--- A block is complete: rows `first` up to, without, `last`.
---@param buf integer
---@param first integer
---@param last integer
---@param language string what the fence says
function M.add(buf, first, last, language)
  local parser = first < last and parser_for(language)
  if not parser then
    return
  end
  local anchor = api.nvim_buf_set_extmark(buf, anchor_ns, first, 0, { end_row = last - 1 })
  jobs[#jobs + 1] = { buf = buf, anchor = anchor, language = parser, rows = last - first }
  M.schedule()
end

--- A buffer's text is gone.
---@param buf integer
function M.forget(buf)
  jobs = vim.tbl_filter(function(job)
    return job.buf ~= buf
  end, jobs)
end

return M
