--- `:AgentChat agents`: the agents that there are, which of them are installed, and how to get the others. The helper's
--- program looks at them (`agentchat agents`), in a process of its own, so that nothing waits for slow programs.

local M = {}

---@class agentchat.Checked what a started agent said
---@field title? string
---@field version? string
---@field methods string[]
---@field starts_session? boolean
---@field problem? string

---@class agentchat.ListedAgent
---@field name string
---@field source "configured"|"known"|"builtin"
---@field command string[]
---@field is_default boolean
---@field path? string
---@field problem? string
---@field install? string
---@field sign_in? string
---@field version? string
---@field checked? agentchat.Checked

--- Runs `agentchat agents` with what is configured.
---@param check boolean whether each agent is started for a moment
---@param each fun(agent: agentchat.ListedAgent) called for each line, more than once for an agent
---@param done? fun(problem: string?) after the last
---@return vim.SystemObj? process
---@return string? problem one sentence
function M.look(check, each, done)
  local binary, problem = require("agentchat.binary").find()
  if not binary then
    return nil, problem
  end
  local config = require("agentchat.config").get()
  local rest = ""
  ---@param text string
  local function take(text)
    rest = rest .. text
    for line in rest:gmatch("([^\n]*)\n") do
      local ok, agent = pcall(vim.json.decode, line, { luanil = { object = true } })
      if ok and type(agent) == "table" and agent.name then
        each(agent)
      end
    end
    rest = rest:match("[^\n]*$") --[[@as string]]
  end
  local command = { binary, "agents", "--json", "--configured" }
  if check then
    command[#command + 1] = "--check"
  end
  -- An empty Lua table would be taken for a list.
  local agents = vim.empty_dict()
  for name, spec in pairs(config.agents) do
    agents[name] = { command = spec.command, env = next(spec.env or {}) and spec.env or nil, cwd = spec.cwd }
  end
  local started, process = pcall(
    vim.system,
    command,
    {
      text = true,
      cwd = vim.fn.getcwd(),
      stdin = vim.json.encode({ agents = agents, default_agent = config.default_agent }),
      stdout = vim.schedule_wrap(function(_, text)
        if text then
          take(text)
        end
      end),
    },
    vim.schedule_wrap(function(result)
      if done then
        done(result.code ~= 0 and vim.trim(result.stderr or "") or nil)
      end
    end)
  )
  if not started then
    return nil, ("the helper %s cannot be started; see :checkhealth agentchat"):format(binary)
  end
  return process
end

---@type agentchat.ListedAgent[] as they were told
local agents = {}
---@type table<integer, agentchat.ListedAgent> by row (1-based)
local at = {}
---@type vim.SystemObj? the look that goes on
local looking
---@type agentchat.ListBuffer
local list_buffer

---@param agent agentchat.ListedAgent
---@return string
local function chats_with(agent)
  local notes = {}
  for _, chat in ipairs(require("agentchat.chats").all()) do
    if (chat.status.agent or chat.agent) == agent.name then
      notes[#notes + 1] = ("chat %d %s"):format(chat.id, chat.status.state)
    end
  end
  return table.concat(notes, ", ")
end

---@param agent agentchat.ListedAgent
---@return string
local function state(agent)
  if not agent.path then
    return agent.source == "configured" and "its program is missing" or "not installed"
  end
  local notes = { agent.version or "installed" }
  if agent.is_default then
    notes[#notes + 1] = "default"
  end
  local chats = chats_with(agent)
  if chats ~= "" then
    notes[#notes + 1] = chats
  end
  return table.concat(notes, ", ")
end

---@type table<string, boolean> the agents that are explained in the list, by name
local explained = {}

--- What is known of an agent, in lines.
---@param agent agentchat.ListedAgent
---@return string[]
local function explanation(agent)
  local lines = { "started as " .. table.concat(agent.command, " ") }
  lines[#lines + 1] = agent.path and ("its program is " .. agent.path) or agent.problem
  if agent.install and not agent.path then
    lines[#lines + 1] = "to install it: " .. agent.install
  end
  if agent.sign_in then
    lines[#lines + 1] = "to sign in: " .. agent.sign_in
  end
  return lines
end

local function render()
  local lines = { "Agents: <CR> starts a chat or explains, K explains" }
  local groups = { "AgentChatListTitle" }
  local width = 0
  for _, agent in ipairs(agents) do
    width = math.max(width, #agent.name)
  end
  at = {}
  for _, agent in ipairs(agents) do
    lines[#lines + 1] = ("  %s  %s"):format(agent.name .. (" "):rep(width - #agent.name), state(agent))
    at[#lines] = agent
    groups[#lines] = not agent.path and "AgentChatDim" or nil
    for _, line in ipairs(explained[agent.name] and explanation(agent) or {}) do
      lines[#lines + 1] = "      " .. line
      at[#lines] = agent
    end
  end
  list_buffer:show(lines, groups, math.min(2, #lines))
end

---@param agent agentchat.ListedAgent
local function explain(agent)
  explained[agent.name] = not explained[agent.name]
  render()
end

---@param run fun(agent: agentchat.ListedAgent)
---@return fun()
local function with_agent(run)
  return function()
    local rows = vim.tbl_map(function(agent)
      return function()
        run(agent)
      end
    end, at)
    list_buffer:act(rows, "there is no agent in this line")
  end
end

list_buffer = require("agentchat.list_buffer").new("agentchat://agents", "agentchat_agents", {
  {
    plug = "agents-start",
    key = "<CR>",
    description = "Start a chat with the agent at the cursor, or tell how to get it",
    run = with_agent(function(agent)
      if not agent.path then
        explain(agent)
        return
      end
      pcall(vim.api.nvim_win_close, 0, false)
      require("agentchat").open({ agent = agent.name })
    end),
  },
  {
    plug = "agents-explain",
    key = "K",
    description = "Tell how the agent at the cursor is started, installed and signed in",
    run = with_agent(explain),
  },
})

--- Opens the list, or brings it up to date.
function M.open()
  if looking then
    looking:kill("sigterm")
  end
  local fresh = {}
  agents, explained = fresh, {}
  local place = {}
  local drawn = false
  local process, problem
  process, problem = M.look(false, function(agent)
    if agents ~= fresh then
      return
    end
    place[agent.name] = place[agent.name] or #agents + 1
    agents[place[agent.name]] = agent
    if drawn and not list_buffer:is_open() then
      return
    end
    drawn = true
    render()
  end, function(failure)
    if looking == process then
      looking = nil
    end
    if failure and agents == fresh then
      require("agentchat.message").show("error", "the agents cannot be listed; " .. failure)
    end
  end)
  looking = process
  if not process then
    require("agentchat.message").show("error", problem --[[@as string]])
  end
end

return M
