--- The option `permissions`: which requests need no answer of the user's. Only its form is checked here; the helper decides.

---@class agentchat.PermissionRule what is not there fits everything
---@field action "allow"|"deny"|"ask"
---@field kind? string the kind of the call: "read", "edit", "execute", …
---@field tool? string a glob for the tool's name
---@field path? string a glob for every path that is concerned
---@field command? string the first words of the command
---@field agent? string the agent's name in the configuration

local M = {}

M.actions = { allow = true, deny = true, ask = true }

--- The kinds of the protocol.
M.kinds = {
  read = true,
  edit = true,
  delete = true,
  move = true,
  search = true,
  execute = true,
  think = true,
  fetch = true,
  switch_mode = true,
  other = true,
}

local fields = { action = true, kind = true, tool = true, path = true, command = true, agent = true }

--- What is wrong with the words of a command. The helper reads them in the same way (`core::permission::shell`).
---@param command string
---@return string?
local function check_command(command)
  if vim.trim(command) == "" then
    return "must not be empty"
  end
  local odd = command:match("[^%w_@+=:,./%%%- '\"]")
  if odd then
    return ("must be plain words, without %s"):format(vim.inspect(odd))
  end
  local first = command:match("^%s*(%S+)")
  if first:find("=", 1, true) or vim.startswith(first, "-") then
    return "must begin with the name of a program"
  end
end

---@param rule table
---@param place integer
---@return string[] problems
local function check_rule(rule, place)
  local problems = {}
  ---@param field string
  ---@param text string
  local function wrong(field, text)
    problems[#problems + 1] = ("`permissions[%d].%s` %s"):format(place, field, text)
  end
  for field, value in pairs(rule) do
    if not fields[field] then
      wrong(tostring(field), "is unknown; a rule has action, kind, tool, path, command and agent")
    elseif type(value) ~= "string" then
      wrong(field, ("must be a string, not a %s"):format(type(value)))
    end
  end
  if rule.action == nil then
    wrong("action", 'must say "allow", "deny" or "ask"')
  elseif type(rule.action) == "string" and not M.actions[rule.action] then
    wrong("action", ('must be "allow", "deny" or "ask", not %s'):format(vim.inspect(rule.action)))
  end
  if type(rule.kind) == "string" and not M.kinds[rule.kind] then
    local kinds = vim.tbl_keys(M.kinds)
    table.sort(kinds)
    wrong("kind", ("must be one of %s, not %s"):format(table.concat(kinds, ", "), vim.inspect(rule.kind)))
  end
  for _, field in ipairs({ "path", "tool" }) do
    if type(rule[field]) == "string" and (rule[field] == "" or not pcall(vim.glob.to_lpeg, rule[field])) then
      wrong(field, "must be a glob")
    end
  end
  local problem = type(rule.command) == "string" and check_command(rule.command)
  if problem then
    wrong("command", problem)
  end
  return problems
end

--- The rules that can be used, and what is wrong with the others.
---@param rules any
---@return agentchat.PermissionRule[] rules
---@return string[] problems each with the full name of what it is about
function M.read(rules)
  if not vim.islist(rules) then
    return {}, { "`permissions` must be a list of rules" }
  end
  local good, problems = {}, {}
  for place, rule in ipairs(rules) do
    local found = type(rule) == "table" and check_rule(rule, place)
      or { ("`permissions[%d]` must be a table, not a %s"):format(place, type(rule)) }
    if #found == 0 then
      good[#good + 1] = rule
    end
    vim.list_extend(problems, found)
  end
  return good, problems
end

--- Rules that are in order, but do less or more than they seem to.
---@param rules agentchat.PermissionRule[]
---@return string[]
function M.doubts(rules)
  local doubts = {}
  for place, rule in ipairs(rules) do
    local name = ("`permissions[%d]`"):format(place)
    if rule.action == "allow" and not rule.command and (rule.kind == "execute" or not rule.kind) and not rule.path then
      local only = rule.tool and " of that tool" or ""
      doubts[#doubts + 1] = ("%s allows every command%s, whatever it does"):format(name, only)
    end
    local program = rule.command and rule.command:match("^%s*(%S+)")
    if rule.action == "allow" and program and M.runners[vim.fs.basename(program)] then
      doubts[#doubts + 1] = ("%s never allows anything: %s runs what its arguments say"):format(name, program)
    end
  end
  return doubts
end

--- The best known of the programs that the helper never lets a rule allow (`core::permission::programs`).
M.runners = {}
for _, program in ipairs({
  "sh",
  "bash",
  "zsh",
  "fish",
  "env",
  "xargs",
  "sudo",
  "doas",
  "ssh",
  "eval",
  "exec",
  "awk",
  "sed",
}) do
  M.runners[program] = true
end

return M
