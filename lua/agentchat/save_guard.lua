--- Stops a save that would write over an agent's text which is in the file and not in the buffer. Neovim does not ask then:
--- it was told to take the file for known, so that it does not ask in the middle of what the user types.
---
--- An autocommand for `BufWriteCmd` that leaves the buffer modified makes `:w`, `:wq`, `:x` and `:wall` fail, and quitting with
--- them.

local M = {}

local api = vim.api

---@alias agentchat.HeldWhy
---| "ahead" the agent's text comes into the buffer as soon as the user is free
---| "offer" the user has to decide
---| "back" the user has rejected it, and the file from before is being put back

---@class agentchat.Held
---@field why agentchat.HeldWhy
---@field wanted boolean the user wanted to save
---@field group integer

---@type table<integer, agentchat.Held>
local held = {}

---@param buf integer
---@param name string
---@return string
local function reason(buf, name)
  local why = held[buf].why
  if why ~= "offer" and require("agentchat.helper").state ~= "ready" then
    return name .. " is not saved: the agent's text in the file is not in the buffer; :w! writes over it"
  elseif why == "ahead" then
    return name .. ": the agent's text in the file comes into the buffer first; then it is saved"
  elseif why == "back" then
    return name .. ": the agent's text in the file goes first; then it is saved"
  end
  return name .. " is not saved: the agent changed the same lines; :AgentChat review diff compares, :w! keeps yours"
end

---@param args { buf: integer, file: string }
local function on_write(args)
  local buf, name = args.buf, api.nvim_buf_get_name(args.buf)
  if vim.fn.fnamemodify(args.file, ":p") ~= vim.fn.fnamemodify(name, ":p") then
    vim.cmd("noautocmd keepalt write! " .. vim.fn.fnameescape(args.file))
  elseif vim.v.cmdbang == 1 then
    M.release(buf)
    vim.cmd("keepalt write!")
  else
    held[buf].wanted = true
    require("agentchat.message").show("warn", reason(buf, vim.fs.basename(name)))
  end
end

--- Stops saves of a buffer from now on.
---@param buf integer
---@param why agentchat.HeldWhy
function M.hold(buf, why)
  if held[buf] then
    held[buf].why = why
    return
  end
  local group = api.nvim_create_augroup("agentchat.save_guard." .. buf, {})
  held[buf] = { why = why, wanted = false, group = group }
  api.nvim_create_autocmd("BufWriteCmd", { group = group, buffer = buf, nested = true, callback = on_write })
  api.nvim_create_autocmd("BufUnload", {
    group = group,
    buffer = buf,
    callback = function()
      M.release(buf)
    end,
  })
end

--- Saves go through again.
---@param buf integer
---@return boolean wanted whether the user wanted to save meanwhile
function M.release(buf)
  local known = held[buf]
  if not known then
    return false
  end
  held[buf] = nil
  api.nvim_del_augroup_by_id(known.group)
  return known.wanted
end

return M
