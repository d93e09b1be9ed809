--- What a session can be set to: its mode, its model, and whatever else the agent has.

local M = {}

---@class agentchat.OptionValue
---@field id string
---@field name string
---@field description? string
---@field group? string

---@class agentchat.SessionOption
---@field id string
---@field name string
---@field description? string
---@field category? string
---@field current string id of its value; "true" or "false" of one that is on or off
---@field is_switch boolean
---@field values agentchat.OptionValue[]

---@param text string
local function warn(text)
  require("agentchat.message").show("warn", text)
end

--- The options of the current chat.
---@return agentchat.SessionOption[]
function M.list()
  local chat = require("agentchat.chats").current()
  return chat and chat.options or {}
end

--- An option by its id, or by its category.
---@param name string
---@return agentchat.SessionOption?
local function find(name)
  local by_category
  for _, option in ipairs(M.list()) do
    if option.id == name then
      return option
    end
    by_category = by_category or (option.category == name and option or nil)
  end
  return by_category
end

--- What may be typed for an option's value.
---@param name string
---@return string[]
function M.values(name)
  local option = find(name)
  if not option then
    return {}
  end
  return option.is_switch and { "on", "off" } or vim.tbl_map(function(value)
    return value.id
  end, option.values)
end

--- What the user reads for an option's value.
---@param option agentchat.SessionOption
---@return string
local function current(option)
  if option.is_switch then
    return option.current == "true" and "on" or "off"
  end
  for _, value in ipairs(option.values) do
    if value.id == option.current then
      return value.name
    end
  end
  return option.current
end

---@param option agentchat.SessionOption
---@param value string
local function set(option, value)
  local chat = require("agentchat.chats").current()
  if chat then
    require("agentchat.helper").notify("set_option", { chat = chat.id, option = option.id, value = value })
  end
end

---@param value agentchat.OptionValue
---@param option agentchat.SessionOption
---@return string
local function value_line(value, option)
  local mark = value.id == option.current and "* " or "  "
  local group = value.group and value.group .. ": " or ""
  local description = value.description and " — " .. value.description:gsub("%s+", " ") or ""
  return mark .. group .. value.name .. description
end

---@param option agentchat.SessionOption
local function pick_value(option)
  if option.is_switch then
    set(option, option.current == "true" and "off" or "on")
    return
  end
  vim.ui.select(option.values, {
    prompt = option.name .. ":",
    kind = "agentchat_option",
    format_item = function(value)
      return value_line(value, option)
    end,
  }, function(value)
    if value then
      set(option, value.id)
    end
  end)
end

--- Sets an option of the current session, and lets the user pick what is not given.
---@param name? string id or category
---@param value? string id or name; `on` or `off` of one that is on or off
function M.set(name, value)
  local options = M.list()
  if #options == 0 then
    warn("this session has no options; an agent tells them when the session begins")
    return
  end
  if not name then
    vim.ui.select(options, {
      prompt = "Option:",
      kind = "agentchat_options",
      format_item = function(option)
        return ("%s: %s"):format(option.name, current(option))
      end,
    }, function(option)
      if option then
        pick_value(option)
      end
    end)
    return
  end
  local option = find(name)
  if not option then
    local names = vim.tbl_map(function(known)
      return known.id
    end, options)
    warn(("this session has no option %s; it has %s"):format(name, table.concat(names, ", ")))
  elseif value then
    set(option, value)
  else
    pick_value(option)
  end
end

--- Sets the next value of an option.
---@param name string id or category
function M.cycle(name)
  local option = find(name)
  if not option then
    warn(("this session has no option %s"):format(name))
  elseif option.is_switch then
    pick_value(option)
  else
    for at, value in ipairs(option.values) do
      if value.id == option.current then
        set(option, option.values[at % #option.values + 1].id)
        return
      end
    end
  end
end

return M
