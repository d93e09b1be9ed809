--- Messages for the user. One line that fits, so that no message can bring up the hit-enter prompt, in which Neovim
--- answers the helper only after a key.

local M = {}

local levels = { info = vim.log.levels.INFO, warn = vim.log.levels.WARN, error = vim.log.levels.ERROR }

local highlights = { warn = "WarningMsg", error = "ErrorMsg" }

--- The last messages in full, newest last; the message area may have had room for a part only.
---@type string[]
M.history = {}

local HISTORY_LIMIT = 50

local columns = require("agentchat.columns")
local cut, width = columns.cut, columns.width

--- Columns that what happened and what to do keep at least when there is no room for both.
local LEAST = 30

--- One line that fits. The sentences are "what happened; what to do": of a long one the end of the first part goes, not
--- all of the second.
---@param text string
---@param room integer columns
---@return string
local function fit(text, room)
  local line = text:gsub("%s*\n%s*", " ")
  local happened, advice = line:match("^(.-); (.*)$")
  if not happened or width(happened) + LEAST <= room then
    return cut(line, room)
  end
  local left = math.max(LEAST, room - width(advice) - 2)
  return cut(cut(happened, left) .. "; " .. advice, room)
end

--- Whether `vim.notify` is Neovim's own, which writes to the message area.
local function is_default_notify()
  local source = debug.getinfo(vim.notify, "S").source
  -- 0.12 has Neovim's own Lua without the names of its files.
  return vim.startswith(source, "@vim/_") or source == "?" or source == "=?"
end

--- A message while another one is still shown, ours or anybody's, would bring up the hit-enter prompt.
local function make_room()
  pcall(vim.cmd, "redraw")
end

---@param text string
---@param highlight? string
local function put(text, highlight)
  if vim.o.cmdheight == 0 then
    local float = require("agentchat.message_float")
    -- While Neovim forbids windows (textlock), there is no other way than the one below.
    if pcall(float.show, fit(text, float.room()), highlight or "MsgArea") then
      return
    end
  end
  make_room()
  -- Not through `vim.notify`: its errors are exceptions for whoever runs a command of ours.
  vim.api.nvim_echo({ { fit(text, vim.v.echospace), highlight } }, true, {})
end

--- Shows one message.
---@param level "info"|"warn"|"error"
---@param text string one sentence that says what happened and what to do next
function M.show(level, text)
  text = "agentchat: " .. text
  M.history[#M.history + 1] = text
  if #M.history > HISTORY_LIMIT then
    table.remove(M.history, 1)
  end
  if is_default_notify() then
    put(text, highlights[level])
    return
  end
  make_room()
  local ok, reason = pcall(vim.notify, text, levels[level] or levels.info, { title = "agentchat" })
  if not ok then
    put(("%s (vim.notify failed: %s)"):format(text, reason), "ErrorMsg")
  end
end

return M
