--- The transcript buffer: applies the helper's edits to it and keeps the windows at its end that were there.

local M = {}

local api = vim.api
local scrolling = require("agentchat.scrolling")
local textlock = require("agentchat.textlock")
local chat_ns = api.nvim_create_namespace("agentchat.chat")
local hint_ns = api.nvim_create_namespace("agentchat.hint")

--- Highlights of whole lines are below those within them, and above what 'syntax' or tree-sitter might bring.
local BLOCK_PRIORITY, INLINE_PRIORITY = 110, 120

---@class agentchat.TranscriptState
---@field returned integer the tick that the helper was told last
---@field actual integer the buffer's changedtick when we last changed it
---@field backlog table[] ops that wait because the text was locked
---@field views table<integer, table> views to restore once the text is there again, by window
---@field hinted boolean

---@type table<integer, agentchat.TranscriptState> by buffer
local states = {}

---@return agentchat.TranscriptState
local function new_state()
  return { returned = 0, actual = 0, backlog = {}, views = {}, hinted = false }
end

---@param chat agentchat.Chat
---@return string
function M.name(chat)
  return ("agentchat://transcript/%d"):format(chat.id)
end

---@param chat agentchat.Chat
---@param buf integer
local function own(chat, buf)
  states[buf] = new_state()
  vim.b[buf].agentchat = chat.id
  local options = vim.bo[buf]
  options.undolevels = -1
  options.modifiable = false
  require("agentchat.keys").map_transcript(buf)
  options.filetype = "agentchat"
  local group = api.nvim_create_augroup("agentchat.transcript." .. buf, {})
  require("agentchat.folds").own(buf, group)
  api.nvim_create_autocmd("BufUnload", {
    group = group,
    buffer = buf,
    callback = function()
      states[buf] = nil
      require("agentchat.code").forget(buf)
      scrolling.forget(buf)
      require("agentchat.folds").disown(buf)
      api.nvim_del_augroup_by_id(group)
      vim.schedule(require("agentchat.lifecycle").sweep)
    end,
  })
  scrolling.own(buf, group)
end

--- The chat's transcript buffer, made when it is not there (any more).
---@param chat agentchat.Chat
---@return integer buf
function M.ensure(chat)
  local buf = chat.transcript
  if buf and api.nvim_buf_is_loaded(buf) and states[buf] then
    return buf
  end
  local had_one = buf ~= nil
  buf = require("agentchat.chats").create_buffer(M.name(chat))
  chat.transcript = buf
  own(chat, buf)
  if had_one and chat.opened then
    require("agentchat.helper").notify("resync", { chat = chat.id })
  end
  require("agentchat.status").show_hint(chat)
  return buf
end

--- Takes over a buffer that has the name of this chat's transcript (from a session file, say).
---@param chat agentchat.Chat
---@param buf integer
function M.adopt(chat, buf)
  chat.transcript = buf
  require("agentchat.chats").prepare_buffer(buf)
  own(chat, buf)
  require("agentchat.status").show_hint(chat)
end

--- Leaves the text of a session that has ended under another name, and lets the chat begin a new buffer.
---@param chat agentchat.Chat
---@return integer? old the buffer that was put aside
function M.put_aside(chat)
  local old = chat.transcript
  if not old or not states[old] then
    return nil
  end
  if api.nvim_buf_line_count(old) == 1 and api.nvim_buf_get_lines(old, 0, 1, true)[1] == "" then
    local state = states[old]
    state.returned, state.actual, state.backlog = 0, 0, {}
    return nil
  end
  states[old] = nil
  scrolling.forget(old)
  require("agentchat.folds").disown(old)
  pcall(api.nvim_del_augroup_by_name, "agentchat.transcript." .. old)
  api.nvim_buf_clear_namespace(old, hint_ns, 0, -1)
  require("agentchat.chats").rename_buffer(old, ("%s/ended-%d"):format(M.name(chat), old))
  vim.b[old].agentchat = nil
  chat.transcript = nil
  M.ensure(chat)
  return old
end

--- Takes rows out that the helper would have taken out, which is gone.
---@param chat agentchat.Chat
---@param first integer 0-based
---@param last integer the row after the last
function M.remove(chat, first, last)
  local buf = chat.transcript
  local state = buf and states[buf]
  if not buf or not state then
    return
  end
  local count = api.nvim_buf_line_count(buf)
  textlock.run(function()
    if states[buf] == state and api.nvim_buf_line_count(buf) == count then
      vim.bo[buf].modifiable = true
      api.nvim_buf_set_lines(buf, first, last, true, {})
      vim.bo[buf].modifiable = false
    end
  end)
end

--- The prompts that were queued are back in the prompt: removes the rows at the end that say so.
---@param chat agentchat.Chat
function M.drop_queued(chat)
  local buf = chat.transcript
  local state = buf and states[buf]
  if not buf or not state then
    return
  end
  local last = api.nvim_buf_line_count(buf)
  local first = last
  local function is_queued(row)
    local marks = api.nvim_buf_get_extmarks(buf, chat_ns, { row, 0 }, { row, -1 }, { details = true })
    return vim.iter(marks):any(function(mark)
      return mark[4].hl_group == "AgentChatQueued"
    end)
  end
  while first > 0 and is_queued(first - 1) do
    first = first - 1
  end
  if first == last then
    return
  end
  if first > 0 and api.nvim_buf_get_lines(buf, first - 1, first, true)[1] == "" then
    first = first - 1
  end
  M.remove(chat, first, last)
end

---@type table<string, integer> ids of highlight groups, which never change
local group_ids = {}

---@param name string
---@return integer
local function group_id(name)
  local id = group_ids[name]
  if not id then
    id = api.nvim_get_hl_id_by_name(name)
    group_ids[name] = id
  end
  return id
end

--- The row operations, by their letter: doc/architecture.md, "Row operations".
---@type table<string, fun(buf: integer, op: table)>
local operations = {}

function operations.l(buf, op)
  api.nvim_buf_set_lines(buf, op[2], op[3], true, op[4])
end

function operations.t(buf, op)
  api.nvim_buf_set_text(buf, op[2], op[3], op[2], op[3], op[4])
end

function operations.m(buf, op)
  api.nvim_buf_set_extmark(buf, chat_ns, op[2], op[3], {
    end_row = op[4],
    end_col = op[5],
    end_right_gravity = op[7],
    hl_group = group_id(op[6]),
    strict = false,
  })
end

function operations.h(buf, op)
  local set_extmark, flat = api.nvim_buf_set_extmark, op[4]
  local mark = { hl_group = group_id(op[2]), priority = op[3] and BLOCK_PRIORITY or INLINE_PRIORITY, strict = false }
  for i = 1, #flat, 3 do
    mark.end_col = flat[i + 2]
    set_extmark(buf, chat_ns, flat[i], flat[i + 1], mark)
  end
end

function operations.p(buf, op)
  local fill, flat = op[2], op[3]
  local group = fill == "-" and "AgentChatTableBorder" or nil
  for i = 1, #flat, 3 do
    api.nvim_buf_set_extmark(buf, chat_ns, flat[i], flat[i + 1], {
      virt_text = { { fill:rep(flat[i + 2]), group } },
      virt_text_pos = "inline",
      right_gravity = false,
      strict = false,
    })
  end
end

function operations.c(buf, op)
  require("agentchat.code").add(buf, op[2], op[3], op[4])
end

function operations.x(buf, op)
  local first, last, col = op[2], op[3], op[4]
  if col > 0 then
    for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, chat_ns, { first, col }, { first, -1 }, {})) do
      api.nvim_buf_del_extmark(buf, chat_ns, mark[1])
    end
    first = first + 1
  end
  if first < last then
    api.nvim_buf_clear_namespace(buf, chat_ns, first, last)
  end
end

---@param buf integer
---@param ops table[]
local function run(buf, ops)
  for i = 1, #ops do
    local op = ops[i]
    local operation = operations[op[1]]
    if not operation then
      error(("unknown row operation %s"):format(vim.inspect(op[1])))
    end
    operation(buf, op)
  end
end

---@param buf integer
---@param state agentchat.TranscriptState
---@param from_scratch boolean
---@param ops table[]
---@param marks? table[]
local function change(buf, state, from_scratch, ops, marks)
  local folds = require("agentchat.folds")
  local following, others = scrolling.windows(buf)
  if from_scratch then
    for _, win in ipairs(others) do
      state.views[win] = api.nvim_win_call(win, vim.fn.winsaveview)
    end
  end
  if from_scratch then
    folds.clear(buf)
  end
  local were_open = marks and folds.states(buf, marks)
  api.nvim_set_option_value("modifiable", true, { buf = buf })
  local ok, reason = pcall(function()
    if from_scratch then
      api.nvim_buf_clear_namespace(buf, chat_ns, 0, -1)
      require("agentchat.code").forget(buf)
      scrolling.start_over(buf)
      api.nvim_buf_set_lines(buf, 0, -1, true, {})
    end
    run(buf, ops)
  end)
  api.nvim_set_option_value("modifiable", false, { buf = buf })
  api.nvim_set_option_value("modified", false, { buf = buf })
  if not ok then
    error(reason, 0)
  end
  local collapsed = marks and folds.apply(buf, marks, were_open, following) or {}
  local last = api.nvim_buf_line_count(buf)
  for _, win in ipairs(following) do
    if not state.views[win] then
      scrolling.to_end(win, buf)
    end
  end
  folds.fill(collapsed)
  for win, view in pairs(state.views) do
    if not api.nvim_win_is_valid(win) or api.nvim_win_get_buf(win) ~= buf then
      state.views[win] = nil
    elseif last >= view.lnum then
      state.views[win] = nil
      api.nvim_win_call(win, function()
        vim.fn.winrestview(view)
      end)
    end
  end
end

--- Applies what waited for the text lock to end, or waits on.
---@param chat agentchat.Chat
---@param buf integer
local function retry_later(chat, buf)
  vim.defer_fn(function()
    local state = states[buf]
    if not state then
      return
    end
    while #state.backlog > 0 do
      local item = state.backlog[1]
      local fresh = item.from_scratch or api.nvim_buf_get_changedtick(buf) == state.actual
      local ok, reason = pcall(function()
        assert(fresh, "the text was changed meanwhile")
        change(buf, state, item.from_scratch, item.ops, item.marks)
      end)
      if not ok and textlock.is_locked(reason) then
        return retry_later(chat, buf)
      elseif not ok then
        state.backlog = {}
        require("agentchat.helper").notify("resync", { chat = chat.id })
        return
      end
      state.actual = api.nvim_buf_get_changedtick(buf)
      table.remove(state.backlog, 1)
    end
  end, textlock.RETRY)
end

--- Applies one rows item.
---@param chat agentchat.Chat
---@param base integer what the previous call returned; 0 starts from an empty buffer
---@param ops table[] doc/architecture.md, "Row operations"
---@param marks? table[] "Marks" there
---@return integer? tick what the next item's `base` must be; nil when the buffer is not what the helper thinks
function M.apply(chat, base, ops, marks)
  local buf = chat.transcript
  local state = buf and api.nvim_buf_is_loaded(buf) and states[buf]
  if not state then
    buf = M.ensure(chat)
    state = states[buf]
  end
  ---@cast buf integer
  local from_scratch = base == 0
  local waits = #state.backlog > 0
  if not from_scratch then
    local untouched = waits or api.nvim_buf_get_changedtick(buf) == state.actual
    if base ~= state.returned or not untouched then
      return nil
    end
  end
  if from_scratch and waits then
    state.backlog = {}
    waits = false
  end
  if state.hinted then
    api.nvim_buf_clear_namespace(buf, hint_ns, 0, -1)
    state.hinted = false
  end
  local ok, reason = true, nil
  if not waits then
    ok, reason = pcall(change, buf, state, from_scratch, ops, marks)
  end
  if waits or (not ok and textlock.is_locked(reason)) then
    state.backlog[#state.backlog + 1] = { from_scratch = from_scratch, ops = ops, marks = marks }
    if not waits then
      retry_later(chat, buf)
    end
    state.returned = math.max(api.nvim_buf_get_changedtick(buf), 1)
    return state.returned
  end
  state.actual = api.nvim_buf_get_changedtick(buf)
  state.returned = state.actual
  if not ok then
    -- Sending everything again cannot mend rows that were wrong from the start.
    if from_scratch then
      error(reason, 0)
    end
    state.returned = -1
    return nil
  end
  return state.returned
end

--- Virtual lines do not wrap by themselves.
---@param lines string[]
---@param width integer columns
---@return string[]
local function wrapped(lines, width)
  local result = {}
  for _, line in ipairs(lines) do
    local row = ""
    for word in line:gmatch("%s*%S+") do
      if row ~= "" and vim.fn.strdisplaywidth(row .. word) > width then
        result[#result + 1] = row
        word = vim.trim(word)
        row = ""
      end
      row = row .. word
    end
    result[#result + 1] = row
  end
  return result
end

---@param buf integer
---@return integer columns that a hint may take: those of the window that shows the transcript, or will
local function hint_width(buf)
  local win = vim.fn.win_findbuf(buf)[1]
  local share = require("agentchat.config").get().layout.width
  return win and api.nvim_win_get_width(win) or math.floor(vim.o.columns * share)
end

--- Shows lines below the text that are not part of it; nil removes them.
---@param chat agentchat.Chat
---@param lines? string[]
---@param group? string
function M.hint(chat, lines, group)
  local buf = chat.transcript
  local state = buf and states[buf]
  if not buf or not state or (not lines and not state.hinted) then
    return
  end
  api.nvim_buf_clear_namespace(buf, hint_ns, 0, -1)
  state.hinted = lines ~= nil
  if not lines then
    return
  end
  lines = wrapped(lines, hint_width(buf))
  local last = api.nvim_buf_line_count(buf) - 1
  local mark = {}
  if last == 0 and api.nvim_buf_get_lines(buf, 0, 1, true)[1] == "" then
    mark.virt_text = { { table.remove(lines, 1), group } }
    mark.virt_text_pos = "overlay"
  end
  mark.virt_lines = vim.tbl_map(function(line)
    return { { line, group } }
  end, lines)
  api.nvim_buf_set_extmark(buf, hint_ns, last, 0, mark)
end

return M
