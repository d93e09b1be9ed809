--- Whether Neovim knows the file that a buffer with unsaved changes stands for, or somebody else has changed it since.

local M = {}

local api = vim.api

--- Buffers whose file somebody else changed. Neovim itself forgets that once it has told the user.
---@type table<integer, boolean>
local behind = {}

local group = api.nvim_create_augroup("agentchat.disk_state", {})
api.nvim_create_autocmd("FileChangedShellPost", {
  group = group,
  callback = function(args)
    behind[args.buf] = vim.bo[args.buf].modified or nil
  end,
})
api.nvim_create_autocmd({ "BufReadPost", "BufWritePost", "BufWipeout" }, {
  group = group,
  callback = function(args)
    behind[args.buf] = nil
  end,
})

--- Lets an autocommand of ours answer an event, and raises it.
---@param buf integer
---@param event string
---@param answer fun()
---@param raise fun()
local function answered(buf, event, answer, raise)
  local id = api.nvim_create_autocmd(event, { group = group, buffer = buf, callback = answer })
  local ok, reason = pcall(raise)
  api.nvim_del_autocmd(id)
  if not ok then
    error(reason, 0)
  end
end

--- Whether somebody else changed the file since the buffer, which has unsaved changes, was read or saved.
---@param buf integer
---@return boolean
function M.is_behind(buf)
  if not vim.bo[buf].modified or vim.bo[buf].buftype ~= "" then
    return false
  end
  -- Neovim compares what it remembers of the file and says why it would ask. It is told that all is settled.
  answered(buf, "FileChangedShell", function()
    behind[buf] = true
    vim.v.fcs_choice = ""
  end, function()
    vim.cmd("silent checktime " .. buf)
  end)
  return behind[buf] == true
end

--- Neovim takes the file as it is for written by the buffer, which stays as it is: no question at the next `:write` or
--- `:checktime`. (Whatever an autocommand for `FileAppendCmd` does counts as written; this one does nothing.)
---@param buf integer
function M.synced(buf)
  answered(buf, "FileAppendCmd", function() end, function()
    api.nvim_buf_call(buf, function()
      vim.cmd("silent keepalt lockmarks write! >>")
    end)
  end)
  behind[buf] = nil
end

--- A buffer got the name that its file has got: Neovim would not write over a file that it has not read under this name.
--- (Whatever an autocommand for `BufWriteCmd` does counts as written.)
---@param buf integer
function M.renamed(buf)
  answered(buf, "BufWriteCmd", function() end, function()
    api.nvim_buf_call(buf, function()
      -- It says that the buffer is still modified.
      pcall(vim.cmd, "silent! keepalt lockmarks write!")
    end)
  end)
  M.synced(buf)
end

return M
