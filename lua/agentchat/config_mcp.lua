--- The user's MCP servers in the configuration: what is wrong with them, and how they go to the helper.

local M = {}

---@class agentchat.McpServer
---@field command? string[] the program and its arguments, which the agent starts
---@field env? table<string, string> environment variables of it
---@field url? string instead of a command
---@field type? "http"|"sse" how the address is spoken to (default: "http")
---@field headers? table<string, string> that go along

local fields = { command = "table", env = "table", url = "string", type = "string", headers = "table" }

---@param map table
---@return boolean
local function maps_strings(map)
  for key, value in pairs(map) do
    if type(key) ~= "string" or type(value) ~= "string" then
      return false
    end
  end
  return true
end

---@param spec any
---@return string?
local function wrong(spec)
  if type(spec) ~= "table" then
    return "must be a table"
  end
  for field, value in pairs(spec) do
    if not fields[field] then
      return ("has no option `%s`"):format(field)
    elseif type(value) ~= fields[field] then
      return ("`%s` must be a %s"):format(field, fields[field])
    end
  end
  if (spec.command == nil) == (spec.url == nil) then
    return "must have either `command` or `url`"
  elseif spec.command and (#spec.command == 0 or type(spec.command[1]) ~= "string") then
    return "`command` must be a list of strings"
  elseif spec.type and spec.type ~= "http" and spec.type ~= "sse" then
    return '`type` must be "http" or "sse"'
  elseif not maps_strings(spec.env or {}) or not maps_strings(spec.headers or {}) then
    return "must map names to strings in `env` and `headers`"
  end
end

--- What is wrong with all of them.
---@param servers table<string, agentchat.McpServer>
---@return string?
function M.check(servers)
  for name, spec in pairs(servers) do
    local problem = type(name) ~= "string" and "must have names" or wrong(spec)
    if problem then
      return ("`%s` %s"):format(tostring(name), problem)
    end
  end
end

--- All of them, by name, as the helper takes them.
---@param servers table<string, agentchat.McpServer>
---@return table[]
function M.for_helper(servers)
  local list = {}
  for name, spec in pairs(servers) do
    list[#list + 1] = {
      name = name,
      type = spec.command and "stdio" or spec.type or "http",
      command = spec.command or {},
      url = spec.url or "",
      env = vim.tbl_extend("force", vim.empty_dict(), spec.env or {}),
      headers = vim.tbl_extend("force", vim.empty_dict(), spec.headers or {}),
    }
  end
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return list
end

return M
