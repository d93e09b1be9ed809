--- The window in which a question of an agent's is answered. Opened only when the user asks for it; leaving it puts the question
--- aside, with what was filled in.

local M = {}

local api = vim.api

local ns = api.nvim_create_namespace("agentchat.question")
local KEYS = " <CR> change · <Tab> next · <C-s> send · D decline · C cancel · q later "
local URL_KEYS = " <CR> open · D decline · C cancel · q later "

---@class agentchat.QuestionState
---@field question agentchat.Question
---@field values table<string, agentchat.QuestionValue>
---@field problems table<string, string>
---@field rows table<integer, agentchat.QuestionRow>
---@field buf? integer
---@field win? integer

---@type table<integer, agentchat.QuestionState> by request
local states = {}

---@param state agentchat.QuestionState
local function close(state)
  if state.win and api.nvim_win_is_valid(state.win) then
    pcall(api.nvim_win_close, state.win, true)
  end
  state.win, state.buf = nil, nil
end

---@param state agentchat.QuestionState
---@param lines string[]
---@return vim.api.keyset.win_config
local function placed(state, lines)
  local most = math.max(20, math.floor(vim.o.columns * 0.8))
  local keys = state.question.url and URL_KEYS or KEYS
  local width = vim.fn.strdisplaywidth(keys)
  for _, line in ipairs(lines) do
    width = math.max(width, vim.fn.strdisplaywidth(line))
  end
  width = math.min(width, most)
  local rows = 0
  for _, line in ipairs(lines) do
    rows = rows + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width))
  end
  local height = math.max(1, math.min(rows, math.floor(vim.o.lines * 0.8)))
  return {
    relative = "editor",
    width = width,
    height = height,
    col = math.floor((vim.o.columns - width) / 2),
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
  }
end

---@param state agentchat.QuestionState
local function render(state)
  local view = require("agentchat.question_form").view(state.question, state.values, state.problems)
  state.rows = view.rows
  local buf = state.buf --[[@as integer]]
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, 0, -1, true, view.lines)
  vim.bo[buf].modifiable = false
  api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  for line, group in pairs(view.groups) do
    api.nvim_buf_set_extmark(buf, ns, line - 1, 0, { line_hl_group = group })
  end
  if state.win and api.nvim_win_is_valid(state.win) then
    api.nvim_win_set_config(state.win, placed(state, view.lines))
  end
end

--- Moves the cursor to a row that does something.
---@param state agentchat.QuestionState
---@param step 1|-1
local function move(state, step)
  local last = api.nvim_buf_line_count(state.buf)
  local line = api.nvim_win_get_cursor(state.win)[1]
  for _ = 1, last do
    line = (line - 1 + step) % last + 1
    if state.rows[line] then
      api.nvim_win_set_cursor(state.win, { line, 0 })
      return
    end
  end
end

---@param state agentchat.QuestionState
---@param action "accept"|"decline"|"cancel"
local function answer(state, action)
  local request = state.question.request
  if action ~= "accept" then
    close(state)
  end
  require("agentchat.questions").respond(request, action, action == "accept" and state.values or nil)
end

---@param state agentchat.QuestionState
local function open_url(state)
  -- The address only ever goes to the system's own program, and only after the user has seen it.
  local _, problem = vim.ui.open(state.question.url)
  if problem then
    require("agentchat.message").show("error", ("the address cannot be opened: %s"):format(problem))
    return
  end
  close(state)
  answer(state, "accept")
end

--- Changes what the row of the cursor is there for.
---@param state agentchat.QuestionState
local function change(state)
  if state.question.url then
    open_url(state)
    return
  end
  local row = state.rows[api.nvim_win_get_cursor(state.win)[1]]
  if not row then
    move(state, 1)
    return
  end
  local name = row.field.name
  if row.field.kind ~= "text" then
    state.values[name] = require("agentchat.question_form").toggled(row, state.values[name])
    state.problems[name] = nil
    render(state)
    return
  end
  local given = state.values[name]
  vim.ui.input({ prompt = row.field.title .. ": ", default = given and tostring(given) or "" }, function(typed)
    if typed then
      state.values[name] = typed ~= "" and typed or nil
      state.problems[name] = nil
      if state.buf and api.nvim_buf_is_valid(state.buf) then
        render(state)
      end
    end
  end)
end

---@param state agentchat.QuestionState
local function map(state)
  local buf = state.buf --[[@as integer]]
  ---@type [string, string, fun()][]
  local keys = {
    {
      "<CR>",
      "Change this",
      function()
        change(state)
      end,
    },
    {
      "<Space>",
      "Change this",
      function()
        change(state)
      end,
    },
    {
      "<Tab>",
      "To the next field",
      function()
        move(state, 1)
      end,
    },
    {
      "<S-Tab>",
      "To the field before",
      function()
        move(state, -1)
      end,
    },
    {
      "D",
      "Decline to answer",
      function()
        answer(state, "decline")
      end,
    },
    {
      "C",
      "Do not answer",
      function()
        answer(state, "cancel")
      end,
    },
    {
      "q",
      "Answer later",
      function()
        close(state)
      end,
    },
    {
      "<Esc>",
      "Answer later",
      function()
        close(state)
      end,
    },
  }
  if not state.question.url then
    keys[#keys + 1] = {
      "<C-s>",
      "Send the answer",
      function()
        answer(state, "accept")
      end,
    }
  end
  for _, key in ipairs(keys) do
    vim.keymap.set("n", key[1], key[3], { buffer = buf, nowait = true, desc = key[2] })
  end
end

--- Shows a question, and enters its window.
---@param question agentchat.Question
function M.show(question)
  local state = states[question.request]
  if not state then
    state =
      { question = question, values = require("agentchat.question_form").defaults(question), problems = {}, rows = {} }
    states[question.request] = state
  end
  if state.win and api.nvim_win_is_valid(state.win) then
    api.nvim_set_current_win(state.win)
    return
  end
  local buf = api.nvim_create_buf(false, true)
  state.buf = buf
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].modeline = false
  vim.bo[buf].undolevels = -1
  local config = vim.tbl_extend("error", placed(state, { "" }), {
    border = "rounded",
    style = "minimal",
    title = (" %s asks "):format((question.agent:gsub("%c", " "))),
    footer = question.url and URL_KEYS or KEYS,
    footer_pos = "right",
  })
  state.win = api.nvim_open_win(buf, true, config)
  vim.wo[state.win][0].wrap = true
  vim.wo[state.win][0].linebreak = true
  vim.wo[state.win][0].cursorline = true
  vim.bo[buf].filetype = "agentchat_question"
  map(state)
  render(state)
  move(state, 1)
end

--- Takes what is wrong with what was sent.
---@param request integer
---@param problems table<string, string> by the names of fields
function M.problems(request, problems)
  local state = states[request]
  if not state then
    return
  end
  state.problems = problems
  if state.buf and api.nvim_buf_is_valid(state.buf) then
    render(state)
  else
    require("agentchat.message").show(
      "error",
      "the answer was not sent: something in it is wrong; :AgentChat answer shows what"
    )
  end
end

--- Closes the windows of questions that are not open any more.
---@param still table<integer, boolean> requests that are
function M.follow(still)
  for request, state in pairs(states) do
    if not still[request] then
      close(state)
      states[request] = nil
    end
  end
end

return M
