--- `:checkhealth agentchat`

local M = {}

local health = vim.health

local function check_neovim()
  local version = tostring(vim.version())
  if vim.fn.has("nvim-0.10") == 1 then
    health.ok("Neovim " .. version)
  else
    health.error(("Neovim %s is too old"):format(version), "Install Neovim 0.10 or newer")
  end
end

local function check_config()
  local errors = require("agentchat.config").errors()
  for _, message in ipairs(errors) do
    health.error(message, "See :help agentchat-config")
  end
  if #errors == 0 then
    health.ok("the configuration is valid")
  end
  local config = require("agentchat.config").get()
  if config.permissions_broken then
    health.warn("while a rule of `permissions` is wrong, nothing is allowed without asking you", "Correct the rule")
  end
  for _, doubt in ipairs(require("agentchat.permission_rules").doubts(config.permissions)) do
    health.warn(doubt, "See :help agentchat-rules")
  end
end

local function check_binary()
  local binary = require("agentchat.binary")
  local wanted = require("agentchat.version").plugin
  local path, problem = binary.find()
  if not path then
    health.error(problem --[[@as string]])
    return
  end
  local ok, result = pcall(function()
    return vim.system({ path, "--version" }, { text = true, timeout = 5000 }):wait()
  end)
  local answer = ok and vim.trim(result.stdout or "") or ""
  local found = answer:match("(%d+%.%d+%.%d+%S*)")
  if found == wanted then
    health.ok(("helper %s: %s"):format(path, answer))
  else
    health.error(
      ("the helper %s answers %s, but the plugin is %s"):format(path, vim.inspect(answer), wanted),
      ("Run `%s` in %s"):format(binary.build_command(), binary.root())
    )
  end
end

local function check_helper()
  local helper = require("agentchat.helper")
  if helper.state == "failed" then
    health.error("the helper has failed: " .. helper.error, vim.list_slice(helper.stderr, #helper.stderr - 10))
  else
    health.info("the helper is " .. helper.state)
  end
end

--- How long the agents may take to answer, in milliseconds; the slowest seen took 22 s on a busy machine.
local PATIENCE = 30000

---@param agent agentchat.ListedAgent
local function report_agent(agent)
  local name = agent.name .. (agent.is_default and " (default)" or "")
  local command = table.concat(agent.command, " ")
  if not agent.path then
    if agent.source == "configured" then
      health.error(("%s: %s"):format(name, agent.problem), ("Correct `agents.%s.command`"):format(agent.name))
    else
      health.info(("%s is not installed: %s"):format(name, agent.install or agent.problem))
    end
    return
  end
  local told = ("%s %s (`%s`)"):format(name, agent.version or "", command):gsub("  ", " ")
  local checked = agent.checked
  if not checked then
    health.warn(("%s did not answer within %d s"):format(told, PATIENCE / 1000), "Run it in a terminal to see why")
  elseif checked.problem then
    health.error(("%s: %s"):format(told, checked.problem), "Run it in a terminal to see why")
  elseif checked.starts_session == false then
    local ways = #checked.methods > 0 and ("it offers: " .. table.concat(checked.methods, ", ")) or nil
    health.warn(told .. " answers, but one has to sign in first", { agent.sign_in or ":AgentChat shows how", ways })
  else
    health.ok(told .. " answers and starts a session")
  end
end

local function check_agents()
  health.start("agentchat: agents")
  local found, order, finished = {}, {}, false
  local failure
  local process, problem = require("agentchat.agents").look(true, function(agent)
    if not found[agent.name] then
      order[#order + 1] = agent.name
    end
    found[agent.name] = agent
  end, function(why)
    finished, failure = true, why
  end)
  if not process then
    health.error(problem --[[@as string]])
    return
  end
  vim.wait(PATIENCE, function()
    return finished
  end, 50)
  if not finished then
    process:kill("sigterm")
  end
  for _, name in ipairs(order) do
    report_agent(found[name])
  end
  if failure then
    health.error("the agents cannot be listed: " .. failure)
  end
end

local function check_terminal()
  health.start("agentchat: terminal and clipboard")
  if vim.o.termguicolors then
    health.ok("'termguicolors' is on: terminals of agents have all colours")
  else
    health.info("'termguicolors' is off: colours of agents' terminals are those of your terminal's palette")
  end
  if vim.env.TMUX then
    local ok, result = pcall(function()
      return vim.system({ "tmux", "show-options", "-gv", "focus-events" }, { text = true, timeout = 2000 }):wait()
    end)
    if ok and vim.trim(result.stdout or "") == "on" then
      health.ok("tmux tells Neovim when it has the focus")
    else
      health.warn(
        "tmux does not tell Neovim when it has the focus: you are not told of requests while you are elsewhere",
        "Add `set -g focus-events on` to your tmux.conf"
      )
    end
  end
  local command, problem = require("agentchat.paste").clipboard_command()
  if command then
    health.ok(("images are pasted with %s"):format(command[1]))
  else
    health.info("images cannot be pasted: " .. problem)
  end
end

local function check_folders()
  health.start("agentchat: files")
  local state = vim.fs.joinpath(vim.fn.stdpath("state") --[[@as string]], "agentchat")
  if vim.fn.isdirectory(state) == 0 then
    health.info(("state: %s (made with the first chat)"):format(state))
  elseif vim.fn.filewritable(state) == 2 then
    local kept = vim.uv.fs_stat(vim.fs.joinpath(state, "store.db"))
    health.ok(("state: %s%s"):format(state, kept and (", %.1f MB are kept"):format(kept.size / 1e6) or ""))
  else
    health.error(
      ("state: %s cannot be written: neither sessions nor answers are kept"):format(state),
      "Make the folder yours"
    )
  end
  health.info("log: " .. require("agentchat.log").folder())
end

function M.check()
  health.start("agentchat")
  check_neovim()
  check_config()
  check_binary()
  check_helper()
  check_agents()
  check_terminal()
  check_folders()
  local messages = require("agentchat.message").history
  if #messages > 0 then
    health.start("agentchat: last messages")
    for _, message in ipairs(messages) do
      health.info(message)
    end
  end
end

return M
