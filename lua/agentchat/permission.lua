--- Open permission requests: which there are, which one is displayed, and answering it.

---@class agentchat.PermissionOption
---@field id string
---@field name string
---@field kind string
---@field rule? string what an answer with it remembers, if it does

---@class agentchat.Permission
---@field request integer
---@field chat integer
---@field agent string
---@field title string
---@field kind? string
---@field detail string[]
---@field marks? string[] what is dangerous about it
---@field options agentchat.PermissionOption[]
---@field proposed? agentchat.Proposal[] what it would do to files
---@field notes? string[] what of that cannot be shown in its buffer

local M = {}

--- An answer that was meant for what was displayed before is refused for this long, in milliseconds.
local SETTLE_TIME = 500

---@type agentchat.Permission[] oldest first
local queue = {}
---@type table<integer, boolean> requests that the user has put aside
local aside = {}
---@type table<integer, boolean> requests answered here that the helper may still list
local answered = {}
---@type integer? the request displayed
local displayed
---@type table? what of it the user reads
local displayed_content
---@type integer? when that came onto the screen, in milliseconds; nil as long as it has not
local drawn_at
---@type integer when the user came to it
local entered_at = 0

---@return integer
local function now()
  return vim.uv.hrtime() / 1e6
end

--- Where requests are displayed.
local function surface()
  local style = require("agentchat.config").get().permission.style
  return require(style == "inline" and "agentchat.permission_inline" or "agentchat.permission_float")
end

---@return agentchat.Permission[]
local function open_requests()
  return vim.tbl_filter(function(request)
    return not answered[request.request]
  end, queue)
end

--- The request to display in this tab page and its place among the open ones.
---@return agentchat.Permission? request
---@return integer place
---@return integer total
local function next_up()
  local open = open_requests()
  local can_show = surface().can_show
  for place, request in ipairs(open) do
    if not aside[request.request] and can_show(request) then
      return request, place, #open
    end
  end
  return nil, 0, #open
end

--- What is displayed is new to the eye.
local function appeared()
  -- Without a screen nothing is ever drawn.
  drawn_at = #vim.api.nvim_list_uis() == 0 and now() or nil
  require("agentchat.permission_keys").reset()
end

--- Displays what is next, or nothing.
local function display()
  local request, place, total = next_up()
  local content = request
    and {
      request = request.request,
      agent = request.agent,
      title = request.title,
      kind = request.kind,
      marks = request.marks,
      detail = request.detail,
      options = request.options,
    }
  if not vim.deep_equal(content, displayed_content) then
    displayed_content = content
    appeared()
  end
  displayed = request and request.request
  local shown = surface()
  if request then
    shown.show(request, place, total, require("agentchat.permission_keys").prompt(request))
  else
    shown.hide()
  end
end

--- Displays the same again: what is typed of an answer is another.
M.refresh = display

--- Neovim has drawn what is displayed.
function M.was_drawn()
  drawn_at = drawn_at or now()
end

--- Open requests and whether each was put aside, oldest first.
---@return agentchat.Permission[] open
---@return table<integer, boolean> aside by request
function M.open()
  return open_requests(), aside
end

--- Takes the helper's whole queue.
---@param list agentchat.Permission[]
function M.set(list)
  local known = {}
  for _, request in ipairs(queue) do
    known[request.request] = true
  end
  queue = list
  require("agentchat.changes.proposed").set(open_requests())
  local listed = {}
  for _, request in ipairs(list) do
    listed[request.request] = true
    if not known[request.request] then
      require("agentchat.attention").asked(request)
    end
  end
  for _, marks in ipairs({ aside, answered }) do
    for id in pairs(marks) do
      if not listed[id] then
        marks[id] = nil
      end
    end
  end
  display()
end

--- Another tab page is in view, say: what is displayed there is new to the eye.
function M.display_again()
  appeared()
  display()
end

--- The options of the displayed request, for completion.
---@return agentchat.PermissionOption[]
function M.options()
  local request = next_up()
  return request and request.options or {}
end

--- The user, or something that they did, has closed the display: all that is open waits until it is asked for.
function M.put_aside()
  if not displayed then
    return
  end
  local open = open_requests()
  for _, request in ipairs(open) do
    aside[request.request] = true
  end
  display()
  local what = #open > 1 and ("%d requests wait"):format(#open) or "the request waits"
  require("agentchat.message").show("info", what .. "; :AgentChat permissions shows it again")
end

--- Displays the open requests again that were put aside; when one is displayed, goes to it.
function M.show()
  local shown = surface()
  entered_at = now()
  require("agentchat.permission_keys").reset()
  if next_up() and shown.enter() then
    return
  end
  aside = {}
  local open = open_requests()
  if #open == 0 then
    require("agentchat.message").show("info", "no permission request is open")
  elseif not next_up() then
    shown.reveal(open[1])
  end
  display()
end

--- The user has left the display that they had gone to.
function M.left()
  require("agentchat.permission_keys").reset()
end

---@param request agentchat.Permission
---@param wanted string an option's id, else a kind, else a name
---@return agentchat.PermissionOption?
local function find_option(request, wanted)
  for _, field in ipairs({ "id", "kind", "name" }) do
    for _, option in ipairs(request.options) do
      if option[field] == wanted then
        return option
      end
    end
  end
end

---@param request agentchat.Permission
---@param option agentchat.PermissionOption
local function answer(request, option)
  answered[request.request] = true
  require("agentchat.changes.proposed").answered(request.request)
  require("agentchat.helper").notify("respond", { request = request.request, option = option.id })
  display()
end

---@param request agentchat.Permission
local function choices(request)
  local ids = vim.tbl_map(function(option)
    return option.id
  end, request.options)
  return #ids > 0 and "its options are " .. table.concat(ids, ", ") or "it has no options; :AgentChat cancel ends it"
end

--- Answers a request; for scripts, without the wait after a change of the display.
---@param wanted string an option's id, or the kind of an option
---@param id? integer the request; default: the displayed one
function M.respond(wanted, id)
  local request = next_up()
  if id ~= nil then
    request = nil
    for _, candidate in ipairs(open_requests()) do
      if candidate.request == id then
        request = candidate
      end
    end
  end
  if not request then
    error(
      id and ("agentchat: no open permission request %s"):format(id) or "agentchat: no permission request is displayed",
      0
    )
  end
  local option = find_option(request, wanted)
  if not option then
    error(("agentchat: the request has no option %s; %s"):format(vim.inspect(wanted), choices(request)), 0)
  end
  answer(request, option)
end

--- The displayed request, unless it is too new to have been read.
---@return agentchat.Permission?
local function readable()
  local message = require("agentchat.message")
  local request, _, total = next_up()
  if not request or request.request ~= displayed then
    local hint = total > 0 and "; :AgentChat permissions shows the open ones" or ""
    message.show("warn", "no permission request is displayed" .. hint)
    return nil
  elseif not surface().is_shown() then
    message.show("warn", "not answered: the request is not in view; :AgentChat permissions shows it")
    return nil
  end
  if not drawn_at or now() - drawn_at < SETTLE_TIME then
    message.show("warn", "not answered: this request has just appeared or changed, read it and answer again")
    return nil
  end
  return request
end

--- The displayed request for a key that was pressed in it: one that was typed before the user had got there does nothing.
---@return agentchat.Permission?
function M.readable_inside()
  if now() - entered_at < SETTLE_TIME then
    require("agentchat.message").show("warn", "not answered: you have just come here; press the key again")
    return nil
  end
  return readable()
end

--- The option that a bare "allow" or "deny" stands for. Allowing never lasts; denying may, rather than not be done.
---@param request agentchat.Permission
---@param verb "allow"|"deny"
---@return agentchat.PermissionOption? option
---@return string? note what the user must know
local function default_option(request, verb)
  if verb == "allow" then
    local once = find_option(request, "allow_once")
    return once, not once and ("not answered: the request offers no 'allow once'; %s"):format(choices(request)) or nil
  end
  local once = find_option(request, "reject_once")
  if once then
    return once
  end
  local always = find_option(request, "reject_always")
  if always then
    return always, ("there is no 'reject once': answered with '%s'"):format(always.name)
  end
  return nil, ("not answered: the request offers no way to reject; %s"):format(choices(request))
end

--- Answers the displayed request the way the user said.
---@param verb "allow"|"deny"
---@param wanted? string an option's id, kind or name
function M.decide(verb, wanted)
  local request = readable()
  if not request then
    return
  end
  local option, note
  if wanted and wanted ~= "" then
    option = find_option(request, wanted)
    if not option then
      note = ("the request has no option %s; %s"):format(wanted, choices(request))
    elseif vim.startswith(option.kind or "", verb == "allow" and "reject" or "allow") then
      note = ("not answered: '%s' does not %s; use the other command"):format(option.name, verb)
      option = nil
    end
  else
    option, note = default_option(request, verb)
  end
  if note then
    require("agentchat.message").show("warn", note)
  end
  if option then
    answer(request, option)
  end
end

--- Answers the displayed request with its n-th option.
---@param n integer 1-based
function M.choose(n)
  local request = next_up()
  local option = request and request.request == displayed and request.options[n]
  if request and option then
    answer(request, option)
  end
end

return M
