--- What an agent asks to be allowed to change, or says that it is about to, shown in the buffer where it would be, without touching the text: the lines
--- that would go in the colours of removed ones, what would come as virtual lines below them.

local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("agentchat.proposed")

--- Bytes of a buffer in which a fragment is looked for.
local LONGEST = 8 * 1024 * 1024

---@class agentchat.Proposal
---@field path string
---@field old? string the text to replace: the file's or a part of it; nil for a whole file
---@field new string

---@class agentchat.Proposed
---@field proposals agentchat.Proposal[]
---@field marks { [1]: integer, [2]: integer }[] buffer and extmark
---@field scratch integer[] buffers of new files
---@field notes string[]
---@field is_call? boolean nobody is asked about it

---@type table<string, agentchat.Proposed> by what proposes: a request, or a call of a chat
local shown = {}
local is_watching = false

---@param path string
---@return string
local function resolved(path)
  return vim.uv.fs_realpath(path) or path
end

---@param text string
---@return string[]
local function lines_of(text)
  local lines = vim.split(text, "\n", { plain = true })
  if lines[#lines] == "" then
    lines[#lines] = nil
  end
  return lines
end

--- The one place of a fragment in a text.
---@param text string
---@param fragment string
---@return integer? first byte, 1-based
---@return string? problem
local function locate(text, fragment)
  if fragment == "" then
    return nil, "the agent does not say where"
  end
  local first = text:find(fragment, 1, true)
  if not first then
    return nil, "the text to replace is not in it"
  elseif text:find(fragment, first + 1, true) then
    return nil, "the text to replace is in it more than once"
  end
  return first
end

---@param text string
---@param to integer
---@return integer row 0-based, of the byte
local function row_at(text, to)
  return select(2, text:sub(1, to - 1):gsub("\n", ""))
end

--- Sets the marks of one replacement of lines.
---@param buf integer
---@param state agentchat.Proposed
---@param row integer
---@param old string[]
---@param new string[]
local function draw(buf, state, row, old, new)
  local text = table.concat(old, "\n") .. (#old > 0 and "\n" or "")
  local diff = vim.diff(text, table.concat(new, "\n") .. (#new > 0 and "\n" or ""), { result_type = "indices" })
  local tabstop = vim.bo[buf].tabstop
  local count = api.nvim_buf_line_count(buf)
  for _, change in
    ipairs(diff --[[@as integer[][] ]])
  do
    local old_first, old_count, new_first, new_count = unpack(change)
    local first = row + (old_count == 0 and old_first or old_first - 1)
    for at = first, first + old_count - 1 do
      state.marks[#state.marks + 1] =
        { buf, api.nvim_buf_set_extmark(buf, ns, at, 0, { line_hl_group = "AgentChatDiffDelete" }) }
    end
    local virtual = {}
    for i = new_first, new_first + new_count - 1 do
      local shown_line = new[i]:gsub("\t", (" "):rep(tabstop)):gsub("%c", vim.fn.strtrans)
      local fill = (" "):rep(math.max(1, vim.o.columns - api.nvim_strwidth(shown_line)))
      virtual[#virtual + 1] = { { shown_line .. fill, "AgentChatDiffAdd" } }
    end
    if #virtual > 0 then
      local last = first + old_count
      local above = last == 0
      local at = above and 0 or math.min(last, count) - 1
      local mark = api.nvim_buf_set_extmark(buf, ns, at, 0, {
        virt_lines = virtual,
        virt_lines_above = above,
        virt_text = { { (" proposed: +%d −%d"):format(new_count, old_count), "AgentChatDiffHint" } },
        virt_text_pos = "eol",
      })
      state.marks[#state.marks + 1] = { buf, mark }
    end
  end
end

--- Shows a fragment where it is.
---@param buf integer
---@param state agentchat.Proposed
---@param proposal agentchat.Proposal
---@return string? problem
local function show_in(buf, state, proposal)
  local now = api.nvim_buf_get_lines(buf, 0, -1, true)
  if not proposal.old then
    draw(buf, state, 0, now, lines_of(proposal.new))
    return nil
  end
  if api.nvim_buf_get_offset(buf, #now) > LONGEST then
    return "it is too long to be searched"
  end
  local text = table.concat(now, "\n") .. "\n"
  local old, new = proposal.old, proposal.new
  local first, problem = locate(text, old)
  if not first and state.is_call and new ~= "" and locate(text, new) then
    -- The agent has done it already.
    return nil
  end
  if not first and old:find("\r\n", 1, true) then
    old, new = old:gsub("\r\n", "\n"), new:gsub("\r\n", "\n")
    first, problem = locate(text, old)
  end
  if not first then
    return problem
  end
  -- The fragment with the rest of its first and last line.
  local row = row_at(text, first)
  local last = row_at(text, first + #old - 1)
  local line_start = first - #text:sub(1, first - 1):match("[^\n]*$")
  local before = text:sub(line_start, first - 1)
  local after = old:sub(-1) == "\n" and "" or text:match("^[^\n]*", first + #old)
  draw(buf, state, row, vim.list_slice(now, row + 1, last + 1), lines_of(before .. new .. after))
end

--- A buffer with the text of a file that is not there yet.
---@param proposal agentchat.Proposal
---@return integer buf
local function scratch(proposal)
  local buf = api.nvim_create_buf(false, true)
  local name = ("agentchat://proposed/%d/%s"):format(buf, vim.fs.basename(proposal.path))
  api.nvim_buf_set_name(buf, name)
  api.nvim_buf_set_lines(buf, 0, -1, true, lines_of(proposal.new))
  vim.bo[buf].modifiable = false
  local filetype = vim.filetype.match({ filename = proposal.path, buf = buf })
  if filetype then
    vim.bo[buf].filetype = filetype
  end
  return buf
end

---@param state agentchat.Proposed
---@param only? integer a buffer
local function show(state, only)
  for _, proposal in ipairs(state.proposals) do
    local path = resolved(proposal.path)
    local buf = require("agentchat.changes.buffer").find(path)
    local name = vim.fs.basename(path)
    local note
    if buf and (not only or buf == only) then
      local problem = show_in(buf, state, proposal)
      note = problem and ("%s is open, but %s"):format(name, problem)
    elseif not buf and not only and not proposal.old and not vim.uv.fs_stat(path) then
      local new = scratch(proposal)
      state.scratch[#state.scratch + 1] = new
      note = ("%s would be new: :sbuffer %d shows it"):format(name, new)
    end
    if note and not vim.list_contains(state.notes, note) then
      state.notes[#state.notes + 1] = note
    end
  end
end

---@param state agentchat.Proposed
local function clear(state)
  for _, mark in ipairs(state.marks) do
    if api.nvim_buf_is_loaded(mark[1]) then
      api.nvim_buf_del_extmark(mark[1], ns, mark[2])
    end
  end
  for _, buf in ipairs(state.scratch) do
    if api.nvim_buf_is_valid(buf) then
      api.nvim_buf_delete(buf, { force = true })
    end
  end
end

--- A file that is opened while a request is open shows what is proposed for it.
local function watch()
  if is_watching then
    return
  end
  is_watching = true
  require("agentchat.highlight").set()
  api.nvim_create_autocmd("BufReadPost", {
    group = api.nvim_create_augroup("agentchat.proposed", {}),
    callback = function(args)
      for _, state in pairs(shown) do
        show(state, args.buf)
      end
    end,
  })
end

---@param key string
local function forget(key)
  if shown[key] then
    clear(shown[key])
    shown[key] = nil
  end
end

--- Shows what somebody proposes in place of what they proposed before.
---@param key string
---@param proposals agentchat.Proposal[]
---@param is_call? boolean
---@return string[] notes what cannot be shown
---@return boolean is_new
local function propose(key, proposals, is_call)
  local state = shown[key]
  if state and vim.deep_equal(state.proposals, proposals) then
    return state.notes, false
  end
  forget(key)
  if #proposals == 0 then
    return {}, false
  end
  watch()
  state = { proposals = proposals, marks = {}, scratch = {}, notes = {}, is_call = is_call }
  shown[key] = state
  show(state)
  return state.notes, true
end

--- Forgets whatever begins like that and is not to be kept.
---@param prefix string
---@param kept table<string, true>
local function forget_others(prefix, kept)
  for _, key in ipairs(vim.tbl_keys(shown)) do
    if vim.startswith(key, prefix) and not kept[key] then
      forget(key)
    end
  end
end

--- Shows what the open requests propose, and no other; says in `notes` of each request what cannot be shown.
---@param list agentchat.Permission[]
function M.set(list)
  local open = {}
  for _, request in ipairs(list) do
    local key = "request " .. request.request
    open[key] = true
    request.notes = propose(key, request.proposed or {})
  end
  forget_others("request ", open)
end

--- Shows what the unfinished calls of a chat would do, and no other.
---@param chat integer
---@param calls { id: string, proposed: agentchat.Proposal[] }[]
function M.set_calls(chat, calls)
  if not require("agentchat.config").get().changes.preview then
    return
  end
  local prefix = ("call %d "):format(chat)
  local open = {}
  for _, call in ipairs(calls) do
    local key = prefix .. call.id
    open[key] = true
    local notes, is_new = propose(key, call.proposed, true)
    if is_new and #notes > 0 then
      require("agentchat.message").show("info", "proposed: " .. notes[1])
    end
  end
  forget_others(prefix, open)
end

--- No call is going on any more.
function M.forget_calls()
  forget_others("call ", {})
end

--- A request was answered here; the helper will tell so, too.
---@param request integer
function M.answered(request)
  forget("request " .. request)
end

return M
