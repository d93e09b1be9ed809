--- Colours for complete code blocks, by tree-sitter, where a parser for the language is installed.
---
--- The parsing is done in a second Neovim (`code_process.lua`, `code_worker.lua`). Here its answers become extmarks, a
--- slice at a time, so that keys are answered in between. No parser is ever loaded here.

local M = {}

local api = vim.api
local chat_ns = api.nvim_create_namespace("agentchat.chat")
--- Where the blocks are that still wait.
local anchor_ns = api.nvim_create_namespace("agentchat.code")

--- How long a slice may take, and the pause until the next one, in milliseconds.
local BUDGET, PAUSE = 3, 15
--- How long is believed what was found when parsers were looked for, in milliseconds; one may be installed.
local PARSERS_TIME = 60000
--- Extmarks that are set between two looks at the clock.
local STRIDE = 50
--- A longer block, in bytes, keeps its one colour: tens of thousands of extmarks would make moving in it slow.
local MAX_BYTES = 256 * 1024
--- How often the process may end over a block before that is left out.
local MAX_FAILURES = 2
--- Above the group for code blocks, below what is marked within lines.
local PRIORITY = 115

---@class agentchat.CodeJob
---@field buf integer
---@field anchor integer extmark that covers the block
---@field fence string what the fence calls the language
---@field language? string the parser's name, once it was looked for
---@field rows integer
---@field row integer the first row, 0-based in the block, whose colours are not here yet
---@field failures integer
---@field ident? integer what the process calls the block; what it tells of another one is of no interest any more
---@field answer? agentchat.CodeAnswer what is being made extmarks

---@class agentchat.CodeAnswer
---@field flat integer[] see `code_worker.lua`
---@field at integer index of the next capture in `flat`
---@field next_row? integer where the following answer begins; nil for the last one

---@type agentchat.CodeJob[] oldest first
local jobs = {}
local is_scheduled = false
local last_ident = 0
--- When extmarks were set last, by the clock of the event loop.
local last_paint = 0

--- What was found when a parser was looked for, by what a fence calls the language; false if there is none.
---@type table<string, string|false>
local parsers = {}
local parsers_since = 0

--- The captures of each language's query by their index: names, or ids of highlight groups once they were used.
---@type table<string, (string|integer)[]>
local captures_of = {}

---@type table<string, boolean> languages whose failure was reported
local reported = {}

---@param job agentchat.CodeJob
---@param reason any
local function report(job, reason)
  local language = job.language or job.fence
  if not reported[language] then
    reported[language] = true
    local text = "colouring code failed; is the tree-sitter parser for %s up to date? %s"
    require("agentchat.message").show("warn", text:format(language, reason))
  end
end

--- The parser for what a fence calls the language, if there is one. It is looked for, not loaded.
---@param fence string
---@return string|false name
local function look_for_parser(fence)
  local word = fence:lower()
  local get_lang = vim.treesitter.language.get_lang
  local filetype = vim.filetype.match({ filename = "code." .. word }) or word
  local name = get_lang(word) or get_lang(filetype) or filetype
  local function has(pattern)
    return #api.nvim_get_runtime_file(pattern:format(name), false) > 0
  end
  -- Anything else would be a pattern, or a way to other folders.
  local is_name = name:find("^[%w_]+$") ~= nil
  return is_name and has("parser/%s.*") and has("queries/%s/highlights.scm") and name
end

---@param fence string
---@return string?
local function parser_for(fence)
  local now = vim.uv.now()
  if now - parsers_since > PARSERS_TIME then
    parsers, parsers_since = {}, now
  end
  if parsers[fence] == nil then
    parsers[fence] = look_for_parser(fence)
  end
  return parsers[fence] or nil
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

--- Asks for the block's colours, from the first row that has none on.
---@param job agentchat.CodeJob
---@param first integer
---@param last integer
---@return boolean sent
local function ask(job, first, last)
  last_ident = last_ident + 1
  job.ident = last_ident
  return require("agentchat.code_process").call("colour", {
    ident = job.ident,
    language = job.language,
    lines = api.nvim_buf_get_lines(job.buf, first, last, true),
    row = job.row,
  })
end

---@param captures (string|integer)[] what is looked up becomes the group's id
---@param index integer
---@param language string
---@return integer group
local function group_of(captures, index, language)
  local group = captures[index]
  if type(group) == "string" then
    group = api.nvim_get_hl_id_by_name(("@%s.%s"):format(group, language))
    captures[index] = group
  end
  return group
end

--- Sets extmarks until the deadline.
---@param job agentchat.CodeJob
---@param first integer where the block is
---@param deadline integer
---@return boolean done
local function paint(job, first, deadline)
  local answer = job.answer --[[@as agentchat.CodeAnswer]]
  local flat, captures = answer.flat, captures_of[job.language]
  local mark = { strict = false }
  while answer.at <= #flat do
    if vim.uv.hrtime() >= deadline then
      return false
    end
    local stop = math.min(answer.at + STRIDE * 6, #flat + 1)
    for i = answer.at, stop - 1, 6 do
      mark.end_row, mark.end_col = first + flat[i + 2], flat[i + 3]
      mark.hl_group, mark.priority = group_of(captures, flat[i + 4], job.language), PRIORITY + flat[i + 5]
      api.nvim_buf_set_extmark(job.buf, chat_ns, first + flat[i], flat[i + 1], mark)
    end
    answer.at = stop
    last_paint = vim.uv.now()
  end
  return true
end

--- Makes extmarks of the answer that is there.
---@param job agentchat.CodeJob
---@param first integer where the block is
---@param deadline integer
---@return "over"|"asks"|"goes on" state
local function use_answer(job, first, deadline)
  if not paint(job, first, deadline) then
    return "goes on"
  end
  local next_row = job.answer.next_row
  job.answer = nil
  if not next_row then
    return "over"
  end
  job.row = next_row
  return "asks"
end

--- Does some of the oldest job.
---@param job agentchat.CodeJob
---@param deadline integer
---@return "over"|"waits"|"goes on" state
local function work(job, deadline)
  local first, last = place(job)
  job.language = job.language or parser_for(job.fence)
  if not first or not last or not job.language then
    return "over"
  end
  if job.answer then
    local state = use_answer(job, first, deadline)
    if state ~= "asks" then
      return state
    elseif job.ident and require("agentchat.code_process").call("more", job.ident) then
      return "waits"
    end
  elseif job.ident then
    return "waits"
  end
  if job.failures >= MAX_FAILURES then
    report(job, "The Neovim that parses it ended.")
    return "over"
  end
  if not ask(job, first, last) then
    job.ident, job.failures = nil, job.failures + 1
    return "goes on"
  end
  return "waits"
end

---@param job agentchat.CodeJob
local function drop(job)
  table.remove(jobs, 1)
  pcall(api.nvim_buf_del_extmark, job.buf, anchor_ns, job.anchor)
end

local function slice()
  is_scheduled = false
  local deadline = vim.uv.hrtime() + BUDGET * 1000000
  while jobs[1] and vim.uv.hrtime() < deadline do
    local job = jobs[1]
    local ok, state = pcall(work, job, deadline)
    if not ok then
      report(job, state)
    end
    if not ok or state == "over" then
      drop(job)
    elseif state == "waits" then
      return
    end
  end
  M.schedule()
end

--- Goes on after a pause, if there is anything to do.
function M.schedule()
  if not jobs[1] then
    require("agentchat.code_process").rest()
  elseif not is_scheduled then
    is_scheduled = true
    vim.defer_fn(slice, PAUSE)
  end
end

---@param ident integer
---@return agentchat.CodeJob?
local function asked(ident)
  local job = jobs[1]
  return job and job.ident == ident and job or nil
end

--- Captures of the block that was asked about (`code_worker.lua` calls this).
---@param ident integer
---@param language string
---@param captures? string[] names by index, unless they were told before
---@param flat integer[]
---@param next_row? integer
function M.take(ident, language, captures, flat, next_row)
  local job = asked(ident)
  if captures ~= vim.NIL then
    captures_of[language] = captures
  end
  if job then
    next_row = next_row ~= vim.NIL and next_row or nil
    job.answer = { flat = flat, at = 1, next_row = next_row }
    if not is_scheduled and vim.uv.now() - last_paint >= PAUSE then
      slice()
    else
      M.schedule()
    end
  end
end

--- The block cannot be parsed (`code_worker.lua` calls this).
---@param ident integer
---@param reason string
function M.failed(ident, reason)
  local job = asked(ident)
  if job then
    report(job, reason)
    drop(job)
    M.schedule()
  end
end

--- The process has ended by itself, or was ended because it did not answer.
function M.worker_gone()
  local job = jobs[1]
  if job and job.ident then
    job.ident, job.failures = nil, job.failures + 1
    M.schedule()
  end
end

--- A block is complete: rows `first` up to, without, `last`.
---@param buf integer
---@param first integer
---@param last integer
---@param fence string what the fence calls the language
function M.add(buf, first, last, fence)
  if first >= last or api.nvim_buf_get_offset(buf, last) - api.nvim_buf_get_offset(buf, first) > MAX_BYTES then
    return
  end
  local anchor = api.nvim_buf_set_extmark(buf, anchor_ns, first, 0, { end_row = last - 1 })
  jobs[#jobs + 1] = { buf = buf, anchor = anchor, fence = fence, rows = last - first, row = 0, failures = 0 }
  M.schedule()
end

--- A buffer's text is gone.
---@param buf integer
function M.forget(buf)
  jobs = vim.tbl_filter(function(job)
    return job.buf ~= buf
  end, jobs)
  M.schedule()
end

return M
