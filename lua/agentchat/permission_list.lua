--- `:AgentChat permissions list`: the open requests, the answers that are remembered, and the rules, in a buffer of their own.

local M = {}

---@class agentchat.RememberedAnswer
---@field id integer
---@field made_at integer seconds since 1970
---@field agent string
---@field shown string what is remembered
---@field project string
---@field here boolean whether it is for the project that the user is in

---@class agentchat.PermissionList
---@field rules string[]
---@field answers agentchat.RememberedAnswer[]

---@type integer counts questions; only the newest is answered
local asked = 0
---@type table<integer, fun()> what `x` and `<CR>` do in a row (1-based)
local revoke_at, show_at = {}, {}
---@type string where the user was when they asked
local cwd

---@param revoke? integer an answer that is revoked first
local function ask(revoke)
  asked = asked + 1
  require("agentchat.helper").notify("permissions", { id = asked, cwd = cwd, revoke = revoke })
end

--- Opens the list, or brings it up to date.
function M.open()
  cwd = vim.fn.getcwd()
  require("agentchat.helper").ensure()
  ask()
end

---@type agentchat.ListBuffer
local list_buffer
list_buffer = require("agentchat.list_buffer").new("agentchat://permissions", "agentchat_permissions", {
  {
    plug = "permissions-revoke",
    key = "x",
    description = "Revoke the answer at the cursor",
    run = function()
      list_buffer:act(revoke_at, "there is no remembered answer in this line")
    end,
  },
  {
    plug = "permissions-show",
    key = "<CR>",
    description = "Show the request at the cursor",
    run = function()
      list_buffer:act(show_at, "there is no open request in this line")
    end,
  },
})

---@param seconds integer
---@return string
local function when(seconds)
  return os.date("%Y-%m-%d %H:%M", seconds) --[[@as string]]
end

---@param list agentchat.PermissionList
---@return string[] lines
---@return table<integer, string> highlight groups by row (1-based)
local function render(list)
  local lines, headings = {}, {}
  revoke_at, show_at = {}, {}
  ---@param heading string
  ---@param nothing string
  ---@param items table[]
  ---@param add fun(item: table, place: integer)
  local function section(heading, nothing, items, add)
    if #lines > 0 then
      lines[#lines + 1] = ""
    end
    lines[#lines + 1] = heading
    headings[#lines] = "AgentChatListTitle"
    for place, item in ipairs(items) do
      add(item, place)
    end
    if #items == 0 then
      lines[#lines + 1] = "  " .. nothing
    end
  end
  local open, aside = require("agentchat.permission").open()
  section("Open requests: <CR> shows them", "none", open, function(request)
    local note = aside[request.request] and " (put aside)" or ""
    lines[#lines + 1] = ("  %s: %s%s"):format(request.agent, request.title, note)
    show_at[#lines] = function()
      require("agentchat.permission").show()
    end
  end)
  ---@param answer agentchat.RememberedAnswer
  local function add_answer(answer)
    local where = answer.here and "" or (" in " .. vim.fn.fnamemodify(answer.project, ":~"))
    lines[#lines + 1] = ("  %s  %s: %s%s"):format(when(answer.made_at), answer.agent, answer.shown, where)
    revoke_at[#lines] = function()
      ask(answer.id)
      require("agentchat.message").show("info", ("revoked: %s; you are asked again"):format(answer.shown))
    end
  end
  local here, elsewhere = {}, {}
  for _, answer in ipairs(list.answers) do
    local group = answer.here and here or elsewhere
    group[#group + 1] = answer
  end
  section("Remembered in this project: x revokes", "nothing", here, add_answer)
  if #elsewhere > 0 then
    section("Remembered in other projects: x revokes", "nothing", elsewhere, add_answer)
  end
  section(
    "Rules of the configuration, a deny first",
    "none, see :help agentchat-rules",
    list.rules,
    function(rule, place)
      lines[#lines + 1] = ("  %d. %s"):format(place, rule)
    end
  )
  return lines, headings
end

--- The helper's answer.
---@param number integer
---@param list agentchat.PermissionList
function M.receive(number, list)
  if number ~= asked then
    return
  end
  local lines, headings = render(list)
  local first = next(revoke_at) and math.min(unpack(vim.tbl_keys(revoke_at))) or 1
  list_buffer:show(lines, headings, first)
end

return M
