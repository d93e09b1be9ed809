--- `:AgentChat permissions list`: the open requests, the answers that are remembered, and the rules, in a buffer of their own.

local M = {}

local api = vim.api

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

local ns = api.nvim_create_namespace("agentchat.permissions")
local NAME = "agentchat://permissions"
local MOST_ROWS = 15

---@type integer counts questions; only the newest is answered
local asked = 0
---@type integer?
local buf
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

---@param rows table<integer, fun()>
---@param nothing string what to say where there is nothing to do
local function act(rows, nothing)
  local found = rows[api.nvim_win_get_cursor(0)[1]]
  if found then
    found()
  else
    require("agentchat.message").show("info", nothing)
  end
end

---@return integer
local function create_buffer()
  buf = require("agentchat.chats").create_buffer(NAME)
  vim.bo[buf].bufhidden = "wipe"
  vim.bo[buf].filetype = "agentchat_permissions"
  vim.bo[buf].modifiable = false
  ---@param name string
  ---@param key string
  ---@param description string
  ---@param run fun()
  local function map(name, key, description, run)
    vim.keymap.set("n", name, run, { buffer = buf, desc = description })
    vim.keymap.set("n", key, name, { buffer = buf, desc = description })
  end
  map("<Plug>(agentchat-permissions-revoke)", "x", "Revoke the answer at the cursor", function()
    act(revoke_at, "there is no remembered answer in this line")
  end)
  map("<Plug>(agentchat-permissions-show)", "<CR>", "Show the request at the cursor", function()
    act(show_at, "there is no open request in this line")
  end)
  map("<Plug>(agentchat-permissions-close)", "q", "Close the list", function()
    pcall(api.nvim_win_close, 0, false)
  end)
  return buf
end

---@param seconds integer
---@return string
local function when(seconds)
  return os.date("%Y-%m-%d %H:%M", seconds) --[[@as string]]
end

---@param list agentchat.PermissionList
---@return string[] lines
---@return table<integer, boolean> headings by row (1-based)
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
    headings[#lines] = true
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
  local is_open = buf and api.nvim_buf_is_valid(buf)
  local shown_in = is_open and vim.fn.win_findbuf(buf --[[@as integer]])[1] or nil
  local target = is_open and buf --[[@as integer]] or create_buffer()
  local lines, headings = render(list)
  vim.bo[target].modifiable = true
  api.nvim_buf_set_lines(
    target,
    0,
    -1,
    true,
    vim.tbl_map(function(line)
      return (line:gsub("%c", " "))
    end, lines)
  )
  vim.bo[target].modifiable = false
  api.nvim_buf_clear_namespace(target, ns, 0, -1)
  for row in pairs(headings) do
    api.nvim_buf_set_extmark(target, ns, row - 1, 0, { line_hl_group = "AgentChatPermissionTitle" })
  end
  if not shown_in then
    local height = math.min(#lines, MOST_ROWS)
    local win = api.nvim_open_win(target, true, { split = "below", win = -1, height = height })
    vim.wo[win].winfixheight = true
    vim.wo[win].wrap = false
    vim.wo[win].number, vim.wo[win].relativenumber, vim.wo[win].signcolumn = false, false, "no"
    local first = next(revoke_at) and math.min(unpack(vim.tbl_keys(revoke_at))) or 1
    api.nvim_win_set_cursor(win, { first, 0 })
  end
end

return M
