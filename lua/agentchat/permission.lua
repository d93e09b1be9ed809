--- Open permission requests: which there are, which one is displayed, and answering it.

---@class agentchat.PermissionOption
---@field id string
---@field name string
---@field kind string

---@class agentchat.Permission
---@field request integer
---@field chat integer
---@field agent string
---@field title string
---@field kind? string
---@field detail string[]
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
---@type integer when either changed, in milliseconds
local displayed_since = 0

---@return integer
local function now()
  return vim.uv.hrtime() / 1e6
end

---@return agentchat.Permission[]
local function open_requests()
  return vim.tbl_filter(function(request)
    return not answered[request.request]
  end, queue)
end

--- The request to display and its place among the open ones.
---@return agentchat.Permission? request
---@return integer place
---@return integer total
local function next_up()
  local open = open_requests()
  for place, request in ipairs(open) do
    if not aside[request.request] then
      return request, place, #open
    end
  end
  return nil, 0, #open
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
      detail = request.detail,
      options = request.options,
    }
  if not vim.deep_equal(content, displayed_content) then
    displayed_content, displayed_since = content, now()
  end
  displayed = request and request.request
  local float = require("agentchat.permission_float")
  if request then
    float.show(request, place, total)
  else
    float.hide()
  end
end

--- Takes the helper's whole queue.
---@param list agentchat.Permission[]
function M.set(list)
  queue = list
  require("agentchat.changes.proposed").set(open_requests())
  local listed = {}
  for _, request in ipairs(list) do
    listed[request.request] = true
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

--- The float has to be drawn anew (another tab page, say): what is displayed is new to the eye.
function M.display_again()
  if displayed then
    displayed_since = now()
  end
  display()
end

--- The options of the displayed request, for completion.
---@return agentchat.PermissionOption[]
function M.options()
  local request = next_up()
  return request and request.options or {}
end

--- The user has closed the display: the request waits.
function M.put_aside()
  if displayed then
    aside[displayed] = true
    display()
    require("agentchat.message").show("info", "the request waits; :AgentChat permissions shows it again")
  end
end

--- Displays the open requests again that were put aside; when one is displayed, enters its float.
function M.show()
  if displayed and require("agentchat.permission_float").enter() then
    return
  end
  aside = {}
  if #open_requests() == 0 then
    require("agentchat.message").show("info", "no permission request is open")
  end
  display()
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
  if not request then
    local hint = total > 0 and "; :AgentChat permissions shows the open ones" or ""
    message.show("warn", "no permission request is displayed" .. hint)
    return nil
  end
  if now() - displayed_since < SETTLE_TIME then
    message.show("warn", "not answered: this request has just appeared or changed, read it and answer again")
    return nil
  end
  return request
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

--- Answers the displayed request with its n-th option; the digits inside of the float.
---@param n integer 1-based
function M.choose(n)
  local request = readable()
  local option = request and request.options[n]
  if request and option then
    answer(request, option)
  end
end

return M
