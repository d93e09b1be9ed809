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

local function check_agents()
  local config = require("agentchat.config").get()
  for name, spec in vim.spairs(config.agents) do
    if vim.fn.executable(spec.command[1]) == 1 then
      health.ok(("agent %s: %s"):format(name, table.concat(spec.command, " ")))
    else
      health.error(
        ("agent %s: there is no program %s"):format(name, spec.command[1]),
        "Correct `agents." .. name .. ".command`"
      )
    end
  end
  local info = require("agentchat.helper").info
  if info and info.agents then
    health.info("agents the helper knows: " .. table.concat(info.agents, ", "))
  else
    health.info("the built-in agents are looked for when the helper starts (:AgentChat)")
  end
  if config.default_agent then
    health.info("default agent: " .. config.default_agent)
  end
end

function M.check()
  health.start("agentchat")
  check_neovim()
  check_config()
  check_binary()
  check_helper()
  check_agents()
  health.info("log: " .. require("agentchat.log").folder())
  local messages = require("agentchat.message").history
  if #messages > 0 then
    health.start("agentchat: last messages")
    for _, message in ipairs(messages) do
      health.info(message)
    end
  end
end

return M
