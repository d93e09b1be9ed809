--- Whether the user is in the middle of something in a buffer that an edit would disturb, and telling when they are not.

local M = {}

local api = vim.api

local mode_names = {
  i = "insert",
  R = "replace",
  v = "visual",
  V = "visual",
  ["\22"] = "visual",
  s = "select",
  S = "select",
  ["\19"] = "select",
  c = "cmdline",
  r = "prompt",
}

--- Whether something of the user's runs when the buffer is saved. (Not Neovim's own for language servers, nor ours.)
---@param buf integer
---@return boolean
local function runs_on_save(buf)
  local name = api.nvim_buf_get_name(buf)
  local found = api.nvim_get_autocmds({ event = { "BufWriteCmd", "BufWritePre", "BufWritePost" } })
  return vim.iter(found):any(function(autocmd)
    local group = autocmd.group_name or ""
    local is_harmless = vim.iter({ "agentchat.", "nvim.", "lsp_c_" }):any(function(prefix)
      return vim.startswith(group, prefix)
    end)
    if is_harmless then
      return false
    elseif autocmd.buflocal then
      return autocmd.buffer == buf
    end
    local text = autocmd.pattern:find("/", 1, true) and name or vim.fs.basename(name)
    return vim.fn.match(text, vim.fn.glob2regpat(autocmd.pattern)) >= 0
  end)
end

--- What the user is doing that an edit of the buffer would disturb.
---@param buf integer
---@param saves boolean whether it is saved, too: an autocommand on that may end the insert mode that the user is in
---elsewhere
---@return string?
function M.with(buf, saves)
  local mode = api.nvim_get_mode().mode
  if api.nvim_get_current_buf() ~= buf then
    local inserts = mode:find("^[iR]") or mode:find("^ni")
    return saves and inserts and runs_on_save(buf) and "insert" or nil
  end
  if vim.fn.reg_recording() ~= "" or vim.fn.reg_executing() ~= "" then
    return "recording"
  end
  if mode == "n" then
    return nil
  elseif vim.startswith(mode, "no") then
    return "operator"
  elseif vim.startswith(mode, "ni") then
    return "insert"
  end
  return mode_names[mode:sub(1, 1)] or "prompt"
end

---@type table<integer, integer> the autocommand group that waits, by buffer
local waiting = {}

---@param buf integer
function M.tell_free(buf)
  require("agentchat.helper").notify("file_free", { buf = buf })
end

--- Notifies `file_free` as soon as an edit of the buffer would not disturb the user.
---@param buf integer
---@param saves boolean
function M.watch(buf, saves)
  if waiting[buf] then
    return
  end
  local group = api.nvim_create_augroup("agentchat.file_wait." .. buf, {})
  waiting[buf] = group
  local function look()
    if waiting[buf] == group and not (api.nvim_buf_is_valid(buf) and M.with(buf, saves)) then
      waiting[buf] = nil
      api.nvim_del_augroup_by_id(group)
      M.tell_free(buf)
    end
  end
  api.nvim_create_autocmd({ "ModeChanged", "SafeState", "BufEnter", "RecordingLeave", "BufWipeout" }, {
    group = group,
    callback = function()
      vim.schedule(look)
    end,
  })
  vim.schedule(look)
end

return M
