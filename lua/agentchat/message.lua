--- Messages for the user. One line that fits, so that no message can bring up the hit-enter prompt, in which Neovim
--- answers the helper only after a key.

local M = {}

local levels = { info = vim.log.levels.INFO, warn = vim.log.levels.WARN, error = vim.log.levels.ERROR }

local highlights = { warn = "WarningMsg", error = "ErrorMsg" }

--- The last messages in full, newest last; the message area may have had room for a part only.
---@type string[]
M.history = {}

local HISTORY_LIMIT = 50

--- The beginning of a line, as much as has room.
---@param line string
---@param room integer columns
---@return string
function M.cut(line, room)
  if vim.fn.strdisplaywidth(line) <= room then
    return line
  end
  local kept = vim.fn.strcharpart(line, 0, room - 1)
  while vim.fn.strdisplaywidth(kept) > room - 1 do
    kept = vim.fn.strcharpart(kept, 0, vim.fn.strchars(kept) - 1)
  end
  return kept .. "…"
end

--- Columns that what happened and what to do keep at least when there is no room for both.
local LEAST = 30

--- One line that fits. The sentences are "what happened; what to do": of a long one the end of the first part goes, not
--- all of the second.
---@param text string
---@return string
local function fit(text)
  local line = text:gsub("%s*\n%s*", " ")
  local room = vim.v.echospace
  local happened, advice = line:match("^(.-); (.*)$")
  if not happened or vim.fn.strdisplaywidth(happened) + LEAST <= room then
    return M.cut(line, room)
  end
  local left = math.max(LEAST, room - vim.fn.strdisplaywidth(advice) - 2)
  return M.cut(M.cut(happened, left) .. "; " .. advice, room)
end

--- Whether `vim.notify` is Neovim's own, which writes to the message area.
local function is_default_notify()
  local source = debug.getinfo(vim.notify, "S").source
  -- 0.12 has Neovim's own Lua without the names of its files.
  return vim.startswith(source, "@vim/_") or source == "?" or source == "=?"
end

local shown_now = false

--- A second message before the screen was drawn again would bring up the hit-enter prompt.
local function make_room()
  if shown_now then
    pcall(vim.cmd, "redraw")
    return
  end
  shown_now = true
  vim.schedule(function()
    shown_now = false
  end)
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
  make_room()
  if is_default_notify() then
    -- Not through `vim.notify`: its errors are exceptions for whoever runs a command of ours.
    vim.api.nvim_echo({ { fit(text), highlights[level] } }, true, {})
    return
  end
  local ok, reason = pcall(vim.notify, text, levels[level] or levels.info, { title = "agentchat" })
  if not ok then
    vim.api.nvim_echo({ { fit(("%s (vim.notify failed: %s)"):format(text, reason)), "ErrorMsg" } }, true, {})
  end
end

return M
