--- What agents ask the user beside permissions: a form to be filled in, or an address to be opened. It waits until the user
--- wants to answer.

local M = {}

---@class agentchat.QuestionChoice
---@field value string
---@field title string
---@field description? string

---@class agentchat.QuestionField
---@field name string
---@field title string
---@field description? string
---@field required boolean
---@field kind "text"|"boolean"|"one"|"many"|"unknown"
---@field hint? string what may be put in
---@field choices agentchat.QuestionChoice[]
---@field default? agentchat.QuestionValue

---@alias agentchat.QuestionValue string|boolean|string[]

---@class agentchat.Question
---@field request integer
---@field chat integer
---@field agent string
---@field message string
---@field title? string
---@field description? string
---@field fields? agentchat.QuestionField[] of a form
---@field url? string of an address
---@field host? string where it leads to
---@field doubt? string what is remarkable about that

---@type agentchat.Question[] oldest first
local open = {}
---@type table<integer, boolean> requests that the user heard of
local told = {}

--- The questions that wait.
---@return agentchat.Question[]
function M.open()
  return open
end

--- Takes all questions that wait now.
---@param list agentchat.Question[]
function M.set(list)
  open = list
  local still = {}
  for _, question in ipairs(list) do
    still[question.request] = true
    if not told[question.request] then
      require("agentchat.attention").asks(question)
    end
  end
  told = still
  require("agentchat.question_window").follow(still)
end

--- The question that is meant if none is named: the oldest of the current chat, else the oldest of all.
---@return agentchat.Question?
local function next_question()
  local chat = require("agentchat.chats").current()
  for _, question in ipairs(open) do
    if chat and question.chat == chat.id then
      return question
    end
  end
  return open[1]
end

--- Shows the next question, for the user to answer.
function M.answer()
  local question = next_question()
  if question then
    require("agentchat.question_window").show(question)
  else
    require("agentchat.message").show(
      "info",
      "no agent asks anything; permissions are answered by :AgentChat allow and deny"
    )
  end
end

--- Answers a question.
---@param request integer
---@param action "accept"|"decline"|"cancel"
---@param values? table<string, agentchat.QuestionValue> by the names of fields
function M.respond(request, action, values)
  require("agentchat.helper").notify("elicitation", {
    request = request,
    action = action,
    values = values and next(values) and values or nil,
  })
end

return M
