--- The user's agents in the configuration: reading one, and what is wrong with it.

local M = {}

---@type table<string, type>
local agent_fields = { command = "table", args = "table", env = "table", cwd = "string", options = "table" }

--- What is wrong with a list of strings.
---@param value any
---@return string?
local function not_strings(value)
  if not vim.islist(value) then
    return "must be a list of strings"
  end
  for _, item in ipairs(value) do
    if type(item) ~= "string" then
      return "must be a list of strings"
    end
  end
end

---@param name string
---@param spec any
---@param errors string[]
---@return agentchat.AgentSpec?
function M.read(name, spec, errors)
  local prefix = "agents." .. name
  if type(spec) ~= "table" then
    errors[#errors + 1] = ("`%s` must be a table, not a %s"):format(prefix, type(spec))
    return nil
  end
  local before = #errors
  for field, value in pairs(spec) do
    local wanted = agent_fields[field]
    if not wanted then
      errors[#errors + 1] = ("unknown option `%s.%s`"):format(prefix, field)
    elseif type(value) ~= wanted then
      errors[#errors + 1] = ("`%s.%s` must be a %s, not a %s"):format(prefix, field, wanted, type(value))
    elseif field == "command" or field == "args" then
      local wrong = not_strings(value)
      if wrong then
        errors[#errors + 1] = ("`%s.%s` %s"):format(prefix, field, wrong)
      end
    end
  end
  if type(spec.command) == "table" and #spec.command == 0 or spec.command == nil then
    errors[#errors + 1] = ('`%s.command` must name a program, as in { "prog", "arg" }'):format(prefix)
  end
  local env = {}
  for key, value in pairs(type(spec.env) == "table" and spec.env or {}) do
    if type(key) == "string" and (type(value) == "string" or type(value) == "number") then
      env[key] = tostring(value)
    else
      errors[#errors + 1] = ("`%s.env.%s` must be a string"):format(prefix, key)
    end
  end
  local options = {}
  for option, value in pairs(type(spec.options) == "table" and spec.options or {}) do
    if type(option) == "string" and (type(value) == "string" or type(value) == "boolean") then
      options[option] = type(value) == "boolean" and (value and "on" or "off") or value
    else
      errors[#errors + 1] = ("`%s.options.%s` must be a string, or true or false"):format(prefix, option)
    end
  end
  if #errors > before and type(spec.command) ~= "table" then
    return nil
  end
  local command = not_strings(spec.command) == nil and vim.list_extend({}, spec.command) or nil
  if not command or #command == 0 then
    return nil
  end
  if type(spec.args) == "table" and not_strings(spec.args) == nil then
    vim.list_extend(command, spec.args)
  end
  local cwd = type(spec.cwd) == "string" and vim.fn.expand(spec.cwd) or nil
  return { command = command, env = env, cwd = cwd, options = options }
end

return M
