--- The helper process: started when it is first needed, spoken to with notifications only.

---@class agentchat.HelperInfo
---@field version string
---@field interface integer
---@field agents string[]
---@field default_agent? string

local M = {}

--- Names this Neovim, for what one helper of it leaves to the next.
local instance = ("%d-%x"):format(vim.uv.os_getpid(), vim.uv.hrtime())

---@alias agentchat.HelperState "stopped"|"starting"|"ready"|"failed"

---@type agentchat.HelperState
M.state = "stopped"
--- Why the state is "failed".
---@type string?
M.error = nil
--- What the helper answered to `hello`.
---@type agentchat.HelperInfo?
M.info = nil
--- The last lines that the helper wrote to stderr.
---@type string[]
M.stderr = {}
--- The program that runs, or was last tried.
---@type string?
M.path = nil

local STDERR_LINES = 200

---@type integer?
local channel
---@type { [1]: string, [2]: table }[] notifications that wait for `ready`
local outbox = {}
---@type uv.uv_timer_t?
local deadline
---@type boolean whether the job was told to end
local stopping = false
--- Counts starts, so that a callback of an earlier process is told apart.
local generation = 0

--- Sends at once. A channel that is gone is no error here: `on_exit` reports it.
---@param method string
---@param arg table
local function send(method, arg)
  if channel then
    pcall(vim.rpcnotify, channel, method, arg)
  end
end

local function clear_deadline()
  if deadline then
    deadline:stop()
    deadline:close()
    deadline = nil
  end
end

--- Ends in the state "failed", tells the user once, and lets the chats give back what was not sent.
---@param reason string one sentence that says what to do
local function fail(reason)
  if M.state == "failed" then
    return
  end
  M.state, M.error = "failed", reason
  clear_deadline()
  if channel then
    local job = channel
    channel, stopping = nil, true
    pcall(vim.fn.jobstop, job)
  end
  outbox = {}
  require("agentchat.lifecycle").helper_failed(reason)
  require("agentchat.message").show("error", reason)
end

--- Joins the arbitrary pieces in which stderr arrives to lines.
---@param data string[]
local function take_stderr(data)
  local lines = M.stderr
  if #lines == 0 then
    lines[1] = ""
  end
  lines[#lines] = lines[#lines] .. data[1]
  for i = 2, #data do
    lines[#lines + 1] = data[i]
  end
  while #lines > STDERR_LINES do
    table.remove(lines, 1)
  end
end

--- The last line of stderr with text in it.
---@return string?
local function last_words()
  for i = #M.stderr, 1, -1 do
    local line = vim.trim(M.stderr[i])
    if line ~= "" then
      return line
    end
  end
end

---@param code integer
local function describe_exit(code)
  local how = code > 128 and ("signal %d"):format(code - 128) or ("exit code %d"):format(code)
  local words = last_words()
  return ("the helper ended (%s); :AgentChat restart starts it again%s"):format(how, words and ". " .. words or "")
end

--- Makes the folders that the helper's are in, before the helper does: Neovim makes `stdpath("log")` when it loads its
--- language client, and takes it for an error that somebody else was a moment faster.
local function make_folders()
  for _, name in ipairs({ "log", "state" }) do
    -- Where that is not possible, the helper says so.
    pcall(vim.fn.mkdir, vim.fn.stdpath(name), "p")
  end
end

---@param path string
local function spawn(path)
  make_folders()
  generation = generation + 1
  local mine = generation
  M.stderr, M.path, M.info, stopping = {}, path, nil, false
  local ok, job = pcall(vim.fn.jobstart, { path, "nvim", "--log", require("agentchat.log").folder() }, {
    rpc = true,
    on_stderr = function(_, data)
      if mine == generation then
        take_stderr(data)
      end
    end,
    on_exit = function(_, code)
      if mine == generation and not stopping and vim.v.exiting == vim.NIL then
        channel = nil
        fail(describe_exit(code))
      end
    end,
  })
  if not ok or job <= 0 then
    fail(
      ("the helper cannot be started: %s (%s); check the option `binary`"):format(path, ok and "not executable" or job)
    )
    return
  end
  channel = job
  M.state, M.error = "starting", nil
  local version = require("agentchat.version")
  local config = require("agentchat.config")
  send("hello", {
    version = version.plugin,
    interface = version.interface,
    config = config.for_helper(),
    cwd = vim.fn.getcwd(),
    instance = instance,
  })
  deadline = vim.defer_fn(function()
    deadline = nil
    if mine == generation and M.state == "starting" then
      fail("the helper does not answer; :AgentChat restart tries again, :AgentChat log shows why")
    end
  end, config.get().timeouts.spawn)
end

--- Starts the helper unless it runs or has failed; returns at once.
function M.ensure()
  if M.state ~= "stopped" then
    return
  end
  local path, problem = require("agentchat.binary").find()
  if path then
    spawn(path)
  else
    fail(problem .. ", then :AgentChat restart")
  end
end

--- Starts the helper again after it failed.
function M.restart()
  M.state, M.error = "stopped", nil
  M.ensure()
end

--- Sends one notification, or keeps it until the helper is ready.
---@param method string
---@param arg table
function M.notify(method, arg)
  if M.state == "ready" then
    send(method, arg)
  elseif M.state ~= "failed" then
    outbox[#outbox + 1] = { method, arg }
  end
end

--- Removes the notifications that still wait and satisfy `test`.
---@param test fun(method: string, arg: table): boolean
---@return table[] args their arguments, in order
function M.withdraw(test)
  local kept, taken = {}, {}
  for _, message in ipairs(outbox) do
    if test(message[1], message[2]) then
      taken[#taken + 1] = message[2]
    else
      kept[#kept + 1] = message
    end
  end
  outbox = kept
  return taken
end

--- The helper's answer to `hello`.
---@param info agentchat.HelperInfo
function M.ready(info)
  if M.state ~= "starting" then
    return
  end
  clear_deadline()
  M.info = info
  local version = require("agentchat.version")
  if info.version ~= version.plugin or info.interface ~= version.interface then
    local binary = require("agentchat.binary")
    fail(
      ("run `%s` in %s, then :AgentChat restart: the plugin is %s/%d, but the helper %s is %s/%s"):format(
        binary.build_command(),
        binary.root(),
        version.plugin,
        version.interface,
        M.path,
        tostring(info.version),
        tostring(info.interface)
      )
    )
    return
  end
  M.state = "ready"
  require("agentchat.disk").watch_saves()
  local waiting = outbox
  outbox = {}
  for _, message in ipairs(waiting) do
    send(message[1], message[2])
  end
  -- One that took the place of another does not know.
  for _, file in ipairs(require("agentchat.changes.store").all()) do
    send("changes_pending", { path = file.path, pending = 1 })
  end
end

--- Neovim is going away: the helper's end is no failure any more.
function M.leaving()
  if M.state == "ready" then
    -- A helper that ends for another reason keeps what can be undone.
    send("leaving", {})
  end
  stopping = true
  clear_deadline()
end

return M
