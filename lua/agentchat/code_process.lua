--- The second Neovim, in which code blocks are parsed: started ahead of them, ended when there was none for a while.
---
--- It runs without the user's configuration, and is only told things: nothing waits for it.

local M = {}

--- How long it lives without anything to do, and how long an answer may take, in milliseconds.
M.idle_time, M.answer_time = 60000, 10000

--- Run in it with each call. The modules of the current folder are none of ours.
local BOOT = [[
local runtimepath, packpath, name, argument = ...
package.path, package.cpath = "", ""
if vim.o.runtimepath ~= runtimepath then vim.o.runtimepath = runtimepath end
if vim.o.packpath ~= packpath then vim.o.packpath = packpath end
require("agentchat.code_worker")[name](argument)
]]

---@type integer?
local channel
---@type uv.uv_timer_t? runs while the process does
local timer
--- Tells a callback that was scheduled whether it is still wanted.
local turn = 0

local function forget()
  channel, turn = nil, turn + 1
  if timer then
    timer:stop()
    timer:close()
    timer = nil
  end
end

--- Ends it.
function M.stop()
  local job = channel
  forget()
  if job then
    pcall(vim.fn.jobstop, job)
  end
end

---@param time integer
---@param act fun()
local function after(time, act)
  turn = turn + 1
  local mine = turn
  local function if_wanted()
    if turn == mine then
      act()
    end
  end
  if timer then
    timer:start(time, 0, vim.schedule_wrap(if_wanted))
  end
end

---@return boolean
local function start()
  local ok, job = pcall(
    vim.fn.jobstart,
    { vim.v.progpath, "--embed", "--headless", "-u", "NONE", "-i", "NONE", "-n" },
    {
      rpc = true,
      on_exit = function(ended)
        if ended == channel and vim.v.exiting == vim.NIL then
          forget()
          require("agentchat.code").worker_gone()
        end
      end,
    }
  )
  if not ok or job <= 0 then
    return false
  end
  channel, timer = job, assert(vim.uv.new_timer())
  -- Its socket would be one more way into the user's session.
  pcall(vim.rpcnotify, channel, "nvim_exec_lua", "vim.fn.serverstop(vim.v.servername)", {})
  return true
end

--- Notifies it; false if that is not possible.
---@param name string
---@param argument any
---@return boolean
local function tell(name, argument)
  local arguments = { vim.o.runtimepath, vim.o.packpath, name, argument }
  return (pcall(vim.rpcnotify, channel, "nvim_exec_lua", BOOT, arguments))
end

--- Calls a function of `code_worker.lua` there, after starting the process if there is none. That it ends, or does not
--- answer in time, is told to `agentchat.code`.
---@param name string
---@param argument any
---@return boolean sent
function M.call(name, argument)
  if not channel and not start() then
    return false
  end
  if not tell(name, argument) then
    M.stop()
    return false
  end
  after(M.answer_time, function()
    M.stop()
    require("agentchat.code").worker_gone()
  end)
  return true
end

--- Code may come soon: starts it if there is none, so that the first block need not wait for that.
function M.prepare()
  if not channel and start() then
    tell("warm_up")
    M.rest()
  end
end

--- It has answered, and nothing else is wanted for now.
function M.rest()
  after(M.idle_time, M.stop)
end

return M
