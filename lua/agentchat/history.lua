--- The prompts that were sent, to go through from the prompt buffer. Each chat walks on its own; what is changed on the
--- way stays until the next prompt is sent.

---@class agentchat.Walk
---@field index integer position; one above the newest entry is the draft
---@field texts table<integer, string> what the user made of an entry, by position

local M = {}

local LIMIT = 200

---@type string[] oldest first
local entries = {}
---@type table<integer, agentchat.Walk> by chat
local walks = {}

---@param text string
function M.add(text)
  if entries[#entries] ~= text then
    entries[#entries + 1] = text
    if #entries > LIMIT then
      table.remove(entries, 1)
    end
  end
  walks = {}
end

--- Whether there is an entry in that direction.
---@param chat integer
---@param step -1|1
function M.can(chat, step)
  local walk = walks[chat]
  local index = (walk and walk.index or #entries + 1) + step
  return index >= 1 and index <= #entries + 1
end

--- Moves in the history.
---@param chat integer
---@param step -1|1
---@param text string what is in the prompt now
---@return string? text what to show; nil at the end
function M.move(chat, step, text)
  if not M.can(chat, step) then
    return nil
  end
  local walk = walks[chat] or { index = #entries + 1, texts = {} }
  walks[chat] = walk
  walk.texts[walk.index] = text
  walk.index = walk.index + step
  return walk.texts[walk.index] or entries[walk.index] or ""
end

return M
