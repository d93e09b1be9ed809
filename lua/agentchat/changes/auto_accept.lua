--- Changes that the user has said need no decision (the option `changes.auto_accept`).

---@class agentchat.AutoAcceptRule
---@field kind? "create"|"edit"|"delete"|"move"
---@field path? string a glob, for the absolute path or for the one from the working directory

local M = {}

M.kinds = { create = true, edit = true, delete = true, move = true }

---@param facts agentchat.ChangeFacts
---@return "create"|"edit"|"delete"|"move"
local function kind_of(facts)
  return facts.created and "create" or facts.deleted and "delete" or facts.renamed_from and "move" or "edit"
end

---@param glob string
---@param path string
---@return boolean
local function fits(glob, path)
  local pattern = vim.glob.to_lpeg(glob)
  if pattern:match(path) then
    return true
  end
  local root = (vim.uv.fs_realpath(vim.fn.getcwd()) or vim.fn.getcwd()) .. "/"
  return vim.startswith(path, root) and pattern:match(path:sub(#root + 1)) ~= nil
end

--- Whether a rule accepts what an agent did to a file: all that the rule names must fit.
---@param path string
---@param facts agentchat.ChangeFacts
---@return boolean
function M.matches(path, facts)
  for _, rule in ipairs(require("agentchat.config").get().changes.auto_accept) do
    if (not rule.kind or rule.kind == kind_of(facts)) and (not rule.path or fits(rule.path, path)) then
      return true
    end
  end
  return false
end

--- What is wrong with the option's value.
---@param rules any
---@return string?
function M.check(rules)
  if not vim.islist(rules) then
    return "must be a list of rules"
  end
  for i, rule in ipairs(rules) do
    if type(rule) ~= "table" then
      return ("must be a list of rules, but rule %d is a %s"):format(i, type(rule))
    end
    for key, value in pairs(rule) do
      if key == "kind" and not M.kinds[value] then
        return ('has in rule %d the kind %s; there are "create", "edit", "delete" and "move"'):format(
          i,
          vim.inspect(value)
        )
      elseif key == "path" and (type(value) ~= "string" or not pcall(vim.glob.to_lpeg, value)) then
        return ("has in rule %d a path that is no glob"):format(i)
      elseif key ~= "kind" and key ~= "path" then
        return ("has in rule %d the unknown key `%s`"):format(i, key)
      end
    end
  end
end

return M
