--- The lines of a question, and which of them do what. Pure: no window, no buffer.

local M = {}

---@class agentchat.QuestionRow
---@field field agentchat.QuestionField
---@field choice? agentchat.QuestionChoice the row of a choice

---@class agentchat.QuestionView
---@field lines string[]
---@field rows table<integer, agentchat.QuestionRow> by line (1-based)
---@field groups table<integer, string> highlight groups by line (1-based)

---@param text string
---@return string
local function one_line(text)
  return (text:gsub("%s*[\r\n]+%s*", " "):gsub("%c", " "))
end

---@param view agentchat.QuestionView
---@param line string
---@param group? string
---@param row? agentchat.QuestionRow
local function add(view, line, group, row)
  view.lines[#view.lines + 1] = one_line(line)
  view.groups[#view.lines] = group
  view.rows[#view.lines] = row
end

---@param view agentchat.QuestionView
---@param text? string
---@param indent string
---@param group? string
local function paragraph(view, text, indent, group)
  for _, line in ipairs(text and vim.split(vim.trim(text), "\r?\n") or {}) do
    add(view, indent .. line, group)
  end
end

---@param field agentchat.QuestionField
---@param choice agentchat.QuestionChoice
---@param value? agentchat.QuestionValue
---@return string
local function choice_line(field, choice, value)
  local mark
  if field.kind == "many" then
    mark = vim.list_contains(type(value) == "table" and value or {}, choice.value) and "[x]" or "[ ]"
  else
    mark = value == choice.value and "(●)" or "( )"
  end
  local description = choice.description and " — " .. choice.description or ""
  return ("  %s %s%s"):format(mark, choice.title, description)
end

---@param view agentchat.QuestionView
---@param field agentchat.QuestionField
---@param value? agentchat.QuestionValue
---@param problem? string
local function add_field(view, field, value, problem)
  local hint = field.hint and (" (%s)"):format(field.hint) or ""
  add(view, "")
  add(view, field.title .. (field.required and " *" or "") .. hint, "AgentChatQuestionField")
  paragraph(view, field.description, "  ", "AgentChatDim")
  if field.kind == "text" then
    add(view, "  > " .. tostring(value or ""), nil, { field = field })
  elseif field.kind == "boolean" then
    local said = "(not said)"
    if value ~= nil then
      said = value and "yes" or "no"
    end
    add(view, "  > " .. said, nil, { field = field })
  end
  for _, choice in ipairs(field.choices) do
    add(view, choice_line(field, choice, value), nil, { field = field, choice = choice })
  end
  if problem then
    add(view, "  ✗ " .. problem, "AgentChatError")
  end
end

--- The lines of a question.
---@param question agentchat.Question
---@param values table<string, agentchat.QuestionValue> by the names of fields
---@param problems table<string, string> by the names of fields
---@return agentchat.QuestionView
function M.view(question, values, problems)
  ---@type agentchat.QuestionView
  local view = { lines = {}, rows = {}, groups = {} }
  paragraph(view, question.message, "")
  paragraph(view, question.title, "", "AgentChatQuestionField")
  paragraph(view, question.description, "", "AgentChatDim")
  if question.url then
    add(view, "")
    add(view, "Opens in your browser, on: " .. question.host, "AgentChatQuestionField")
    if question.doubt then
      add(view, "! " .. question.doubt, "AgentChatPermissionDanger")
    end
    add(view, "")
    add(view, question.url, "AgentChatQuestionUrl")
  end
  for _, field in ipairs(question.fields or {}) do
    add_field(view, field, values[field.name], problems[field.name])
  end
  return view
end

--- The values that a form begins with.
---@param question agentchat.Question
---@return table<string, agentchat.QuestionValue>
function M.defaults(question)
  local values = {}
  for _, field in ipairs(question.fields or {}) do
    values[field.name] = field.default
  end
  return values
end

--- What a field has after its choice was chosen, or its switch turned.
---@param row agentchat.QuestionRow
---@param value? agentchat.QuestionValue
---@return agentchat.QuestionValue?
function M.toggled(row, value)
  local field, choice = row.field, row.choice
  if field.kind == "boolean" then
    return value ~= true
  elseif field.kind == "one" and choice then
    -- What is not needed may be taken back.
    return (value ~= choice.value or field.required) and choice.value or nil
  elseif field.kind == "many" and choice then
    local chosen = type(value) == "table" and vim.deepcopy(value) or {}
    local kept = vim.tbl_filter(function(known)
      return known ~= choice.value
    end, chosen)
    if #kept == #chosen then
      kept[#kept + 1] = choice.value
    end
    return kept
  end
  return value
end

return M
