-- The plugin under measurement, through its public interface. Same interface as reference.lua.
local M = {}

---Starts the client with this agent.
---@param command string[]
function M.open(command)
  require("agentchat").setup({
    agents = { bench = { command = command } },
    default_agent = "bench",
    binary = vim.env.AGENTCHAT_BENCH_BINARY,
  })
  require("agentchat").open({ agent = "bench" })
end

---The buffer that will show the answer, once a prompt can be sent.
---@return integer?
function M.ready()
  local status = require("agentchat").status()
  if status.state == "failed" then
    error(status.error or "the agent failed without an error")
  end
  if status.state ~= "idle" then
    return nil
  end
  return vim.iter(vim.api.nvim_list_bufs()):find(function(buf)
    return vim.bo[buf].filetype == "agentchat"
  end)
end

---@param text string
function M.submit(text)
  require("agentchat").prompt(text)
end

return M
