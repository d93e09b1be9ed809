--- The sign in the bar that moves while a turn runs. No timer runs at any other time.

local M = {}

--- Between two pictures, in milliseconds.
local INTERVAL = 250

---@type string[]
local pictures = { "⠋", "⠙", "⠸", "⠴", "⠦", "⠇" }
local at = 1
---@type uv.uv_timer_t?
local timer
--- When the picture last changed, in milliseconds.
local moved_at = 0

---@param chat agentchat.Chat
function M.runs(chat)
  return chat.status.state == "running" or chat.status.state == "cancelling"
end

--- The picture of this moment.
---@return string
function M.picture()
  return pictures[at]
end

---@return agentchat.Chat[] those that are shown and whose turn runs
local function running()
  return vim.tbl_filter(M.runs, require("agentchat.layout").shown_chats())
end

local function stop()
  if timer then
    timer:stop()
    timer:close()
    timer = nil
  end
end

local function tick()
  local chats = running()
  if #chats == 0 then
    stop()
    return
  end
  at = at % #pictures + 1
  moved_at = vim.uv.now()
  for _, chat in ipairs(chats) do
    require("agentchat.layout").refresh_bar(chat)
  end
end

--- The screen is about to be drawn anew: what moves then costs no drawing of its own.
function M.beat()
  if timer and vim.uv.now() - moved_at >= INTERVAL then
    tick()
    if timer then
      timer:again()
    end
  end
end

--- Begins to move if there is something to move for; it ends by itself.
function M.update()
  if timer or not require("agentchat.config").get().winbar or #running() == 0 then
    return
  end
  timer = assert(vim.uv.new_timer())
  timer:start(INTERVAL, INTERVAL, vim.schedule_wrap(tick))
end

return M
