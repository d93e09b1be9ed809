--- The user's configuration: a schema as data, and one validated table made from it.

---@class agentchat.AgentSpec
---@field command string[] the program and its arguments
---@field args? string[] more arguments, appended to `command`
---@field env? table<string, string> environment variables added for the agent
---@field cwd? string folder the agent starts in (default: the chat's)
---@field options? table<string, string> what its sessions are set to at their beginning

---@class agentchat.UserConfig
---@field agents? table<string, agentchat.AgentSpec>
---@field default_agent? string
---@field binary? string
---@field max_line_bytes? integer
---@field save_dirty? boolean
---@field winbar? boolean
---@field timeouts? { spawn?: integer, initialize?: integer, session_new?: integer, cancel_grace?: integer, busy?: integer }
---@field checkpoints? { max_files?: integer, max_file_bytes?: integer, max_bytes?: integer }
---@field permissions? agentchat.PermissionRule[]
---@field completion? { autotrigger?: boolean }
---@field follow? { jumps_per_second?: number, resume_on_prompt?: boolean }
---@field permission? { style?: "float"|"inline" }
---@field notify? { request?: boolean, turn_end?: boolean, terminal?: "none"|"bell"|"osc9"|"osc777" }
---@field changes? { preview?: boolean, hint?: boolean, tell_rejections?: boolean, auto_accept?: agentchat.AutoAcceptRule[] }
---@field terminal? { env?: table<string, string|false> }
---@field layout? { width?: number, min_columns?: integer, prompt_min?: integer, prompt_max?: integer }

---@class agentchat.Config
---@field agents table<string, agentchat.AgentSpec>
---@field default_agent? string
---@field binary? string
---@field max_line_bytes integer
---@field save_dirty boolean
---@field winbar boolean
---@field timeouts { spawn: integer, initialize: integer, session_new: integer, cancel_grace: integer, busy: integer }
---@field checkpoints { max_files: integer, max_file_bytes: integer, max_bytes: integer }
---@field permissions agentchat.PermissionRule[] those that are in order
---@field permissions_broken boolean whether some are not
---@field completion { autotrigger: boolean }
---@field follow { jumps_per_second: number, resume_on_prompt: boolean }
---@field permission { style: "float"|"inline" }
---@field notify { request: boolean, turn_end: boolean, terminal: "none"|"bell"|"osc9"|"osc777" }
---@field changes { preview: boolean, hint: boolean, tell_rejections: boolean, auto_accept: agentchat.AutoAcceptRule[] }
---@field terminal { env: table<string, string|false> }
---@field layout { width: number, min_columns: integer, prompt_min: integer, prompt_max: integer }

---@class agentchat.Option
---@field key string full name, sections separated by dots
---@field type type
---@field default any
---@field check? fun(value: any): string? what is wrong with the value
---@field doc string

local M = {}

---@param low number
---@param high number
local function between(low, high)
  return function(value)
    if value < low or value > high then
      return ("must be between %s and %s"):format(low, high)
    end
  end
end

---@param value number
local function positive_integer(value)
  if value < 1 or value % 1 ~= 0 then
    return "must be a whole number of at least 1"
  end
end

---@param list any[]
local function strings(list)
  for _, item in ipairs(list) do
    if type(item) ~= "string" or item == "" then
      return "must be a list of strings"
    end
  end
  return not vim.islist(list) and "must be a list of strings" or nil
end

---@param words string[]
local function one_of(words)
  return function(value)
    if not vim.list_contains(words, value) then
      return ('must be "%s"'):format(table.concat(words, '", "'):gsub(', ("[^"]*)$', " or %1"))
    end
  end
end

---@type agentchat.Option[]
M.schema = {
  { key = "agents", type = "table", default = {}, doc = "Agents by name, beside the built-in ones." },
  { key = "default_agent", type = "string", doc = "The agent that `:AgentChat` starts." },
  { key = "binary", type = "string", doc = "The helper program." },
  {
    key = "max_line_bytes",
    type = "number",
    default = 64 * 1024 * 1024,
    check = positive_integer,
    doc = "The longest message of an agent that is read, in bytes.",
  },
  {
    key = "save_dirty",
    type = "boolean",
    default = false,
    doc = "Whether an agent's write into a file also saves what you have not saved in it.",
  },
  { key = "winbar", type = "boolean", default = true, doc = "Whether the transcript has a bar with the chat's state." },
  {
    key = "timeouts.spawn",
    type = "number",
    default = 10000,
    check = positive_integer,
    doc = "Milliseconds for a program to start.",
  },
  {
    key = "timeouts.initialize",
    type = "number",
    default = 60000,
    check = positive_integer,
    doc = "Milliseconds for an agent to answer `initialize`.",
  },
  {
    key = "timeouts.session_new",
    type = "number",
    default = 60000,
    check = positive_integer,
    doc = "Milliseconds for an agent to answer `session/new`.",
  },
  {
    key = "timeouts.cancel_grace",
    type = "number",
    default = 10000,
    check = positive_integer,
    doc = "Milliseconds in which a cancelled turn may end by itself.",
  },
  {
    key = "timeouts.busy",
    type = "number",
    default = 9000,
    check = between(1, 9000),
    doc = "Milliseconds that a write waits while you are in the middle of something in its buffer.",
  },
  {
    key = "checkpoints.max_files",
    type = "number",
    default = 20000,
    check = positive_integer,
    doc = "Files of a project that are looked at before a turn.",
  },
  {
    key = "checkpoints.max_file_bytes",
    type = "number",
    default = 1024 * 1024,
    check = positive_integer,
    doc = "The longest file that is kept although no tool call names it, in bytes.",
  },
  {
    key = "checkpoints.max_bytes",
    type = "number",
    default = 256 * 1024 * 1024,
    check = positive_integer,
    doc = "How much a Neovim keeps on disk to undo turns, in bytes.",
  },
  {
    key = "permissions",
    type = "table",
    default = {},
    doc = "What is allowed or denied without asking you.",
  },
  {
    key = "completion.autotrigger",
    type = "boolean",
    default = true,
    doc = "Whether `/` and `@` in the prompt show completions by themselves.",
  },
  {
    key = "follow.jumps_per_second",
    type = "number",
    default = 4,
    check = between(0.1, 20),
    doc = "How often at most the window that follows the agent jumps.",
  },
  {
    key = "follow.resume_on_prompt",
    type = "boolean",
    default = false,
    doc = "Whether following that was paused goes on with the next prompt.",
  },
  {
    key = "permission.style",
    type = "string",
    default = "float",
    check = one_of({ "float", "inline" }),
    doc = "Whether a request is shown in a float or in the transcript.",
  },
  {
    key = "notify.request",
    type = "boolean",
    default = true,
    doc = "Whether you are told of a request of another tab page, or while Neovim has not the focus.",
  },
  {
    key = "notify.turn_end",
    type = "boolean",
    default = true,
    doc = "Whether you are told of the end of a turn that you do not see.",
  },
  {
    key = "notify.terminal",
    type = "string",
    default = "none",
    check = one_of({ "none", "bell", "osc9", "osc777" }),
    doc = "How the terminal is told, too.",
  },
  {
    key = "changes.preview",
    type = "boolean",
    default = true,
    doc = "Whether pending changes are drawn in their buffers.",
  },
  {
    key = "changes.hint",
    type = "boolean",
    default = true,
    doc = "Whether the first change in view says how to decide.",
  },
  {
    key = "changes.tell_rejections",
    type = "boolean",
    default = true,
    doc = "Whether the agent hears with the next prompt which of its changes were rejected.",
  },
  {
    key = "changes.auto_accept",
    type = "table",
    default = {},
    check = function(rules)
      return require("agentchat.changes.auto_accept").check(rules)
    end,
    doc = "Changes that need no decision.",
  },
  {
    key = "terminal.env",
    type = "table",
    default = {},
    check = function(env)
      for name, value in pairs(env) do
        local is_value = type(value) == "string" or type(value) == "number" or value == false
        if type(name) ~= "string" or not is_value then
          return ("must map names to strings, or to false; `%s` does not"):format(name)
        end
      end
    end,
    doc = "Environment variables of commands in terminals; `false` removes one.",
  },
  {
    key = "mcp_servers",
    type = "table",
    default = {},
    check = function(servers)
      return require("agentchat.config_mcp").check(servers)
    end,
    doc = "MCP servers that agents are told of.",
  },
  {
    key = "additional_directories",
    type = "table",
    default = {},
    check = strings,
    doc = "Further folders of every session's workspace.",
  },
  { key = "system_prompt", type = "string", doc = "What every session's model is told, beside what its agent says." },
  {
    key = "layout.width",
    type = "number",
    default = 0.4,
    check = between(0.1, 0.9),
    doc = "The chat's share of the screen.",
  },
  {
    key = "layout.min_columns",
    type = "number",
    default = 100,
    check = positive_integer,
    doc = "On fewer columns the chat opens below.",
  },
  {
    key = "layout.prompt_min",
    type = "number",
    default = 3,
    check = positive_integer,
    doc = "Lines of the prompt when it is empty.",
  },
  {
    key = "layout.prompt_max",
    type = "number",
    default = 10,
    check = positive_integer,
    doc = "Lines up to which the prompt grows.",
  },
}

---@param config table
---@param key string
---@param value any
local function put(config, key, value)
  local section, name = key:match("^(.-)%.(.+)$")
  if section then
    config[section] = config[section] or {}
    config[section][name] = value
  else
    config[key] = value
  end
end

--- The style of permission requests may stand among their rules, where one looks for it.
---@param user table
---@return table
local function with_own_style(user)
  local rules = user.permissions
  if type(rules) ~= "table" or rules.style == nil then
    return user
  end
  local copy, list = vim.tbl_extend("force", {}, user), vim.tbl_extend("force", {}, rules)
  list.style = nil
  copy.permissions = next(list) ~= nil and list or nil
  copy.permission = user.permission or { style = rules.style }
  return copy
end

--- Every key that the user gave, with its full name, one section deep.
---@param user table
---@param errors string[]
---@return table<string, any>
local function flatten(user, errors)
  local known, sections = {}, {}
  for _, option in ipairs(M.schema) do
    known[option.key] = option
    local section = option.key:match("^(.-)%.")
    if section then
      sections[section] = true
    end
  end
  local flat = {}
  local function take(key, value)
    if known[key] then
      flat[key] = value
    else
      errors[#errors + 1] = ("unknown option `%s`"):format(key)
    end
  end
  for key, value in pairs(with_own_style(user)) do
    key = tostring(key)
    if sections[key] and type(value) == "table" then
      for name, inner in pairs(value) do
        take(key .. "." .. tostring(name), inner)
      end
    elseif sections[key] then
      errors[#errors + 1] = ("`%s` must be a table, not a %s"):format(key, type(value))
    else
      take(key, value)
    end
  end
  return flat
end

--- Reads a user's table. What is wrong is left at its default and described.
---@param user any
---@return agentchat.Config config
---@return string[] errors
function M.read(user)
  local errors = {}
  if type(user) ~= "table" then
    errors[1] = ("the configuration must be a table, not a %s"):format(type(user))
    user = {}
  end
  local flat = flatten(user, errors)
  local config = {}
  for _, option in ipairs(M.schema) do
    local value = flat[option.key]
    if value ~= nil then
      local wrong = type(value) ~= option.type and ("must be a %s, not a %s"):format(option.type, type(value))
        or option.check and option.check(value)
      if wrong then
        errors[#errors + 1] = ("`%s` %s"):format(option.key, wrong)
        value = nil
      end
    end
    if value == nil then
      value = vim.deepcopy(option.default)
    end
    put(config, option.key, value)
  end
  local agents = {}
  for name, spec in pairs(config.agents) do
    if type(name) == "string" then
      agents[name] = require("agentchat.config_agents").read(name, spec, errors)
    else
      errors[#errors + 1] = ("`agents` must map names to agents; entry %s has no name"):format(name)
    end
  end
  config.agents = agents
  local before = #errors
  local rules, problems = require("agentchat.permission_rules").read(config.permissions)
  config.permissions = rules
  vim.list_extend(errors, problems)
  -- What is no table at all was left at its default, and may have been what denies something.
  config.permissions_broken = #errors > before or flat.permissions ~= nil and type(flat.permissions) ~= "table"
  config.layout.prompt_max = math.max(config.layout.prompt_max, config.layout.prompt_min)
  table.sort(errors)
  return config, errors
end

---@type agentchat.UserConfig?
local from_setup
---@type agentchat.Config?
local current
---@type string[]
local current_errors = {}

--- The configuration in force: `vim.g.agentchat`, and above it what `setup` was given.
---@return agentchat.Config config
function M.get()
  if not current then
    local global = vim.g.agentchat
    local merged = global
    if from_setup then
      merged = type(global) == "table" and vim.tbl_deep_extend("force", global, from_setup) or from_setup
    end
    current, current_errors = M.read(merged == nil and {} or merged)
    for _, message in ipairs(current_errors) do
      require("agentchat.message").show("error", message .. " (see :help agentchat-config)")
    end
  end
  return current
end

--- What is wrong with the configuration in force.
---@return string[]
function M.errors()
  M.get()
  return current_errors
end

--- Takes the user's options; used by `setup`.
---@param opts? agentchat.UserConfig
function M.set(opts)
  if opts ~= nil and type(opts) ~= "table" then
    error(("agentchat: setup() takes a table, not a %s"):format(type(opts)), 3)
  end
  from_setup = opts
  current = nil
  M.get()
end

--- The part of the configuration that the helper needs, as it goes over the channel.
---@return table
function M.for_helper()
  local config = M.get()
  local agents = vim.empty_dict()
  for name, spec in pairs(config.agents) do
    local env = vim.empty_dict()
    for key, value in pairs(spec.env or {}) do
      env[key] = value
    end
    local options = vim.tbl_extend("force", vim.empty_dict(), spec.options or {})
    agents[name] = { command = spec.command, env = env, cwd = spec.cwd, options = options }
  end
  local terminal_env = vim.empty_dict()
  for name, value in pairs(config.terminal.env) do
    terminal_env[name] = type(value) == "number" and tostring(value) or value
  end
  return {
    agents = agents,
    default_agent = config.default_agent,
    mcp_servers = require("agentchat.config_mcp").for_helper(config.mcp_servers),
    additional_directories = vim.tbl_map(function(folder)
      return vim.fs.normalize(vim.fn.fnamemodify(folder, ":p"))
    end, config.additional_directories),
    system_prompt = config.system_prompt,
    timeouts = config.timeouts,
    checkpoints = config.checkpoints,
    state = vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "agentchat"),
    permissions = config.permissions,
    permissions_broken = config.permissions_broken,
    max_line_bytes = config.max_line_bytes,
    save_dirty = config.save_dirty,
    tell_rejections = config.changes.tell_rejections,
    terminal = { env = terminal_env },
    follow_interval = math.floor(1000 / config.follow.jumps_per_second),
  }
end

return M
