--- Whether the user has a hand in a window: they enter it, scroll it from elsewhere, or close it.
---
--- Not the user are: our own jumps, what Neovim scrolls after one of them, resizing, changes of the text, and windows that
--- a plugin enters and leaves again at once.

local M = {}

local api = vim.api
local uv = vim.uv

--- How long after a jump was drawn what the window scrolls is of the jump, in milliseconds.
local SETTLE = 150
--- How long Neovim may take until it draws a jump, in milliseconds: a machine may be busy.
local DRAWN = 2000
--- A scroll so soon after a key is taken for its effect, in milliseconds.
local BY_KEY = 300

---@class agentchat.Hands
---@field win integer
---@field settled_at number when all that comes of the last jump has come, in milliseconds
---@field is_drawn boolean whether the last jump was drawn
---@field tick integer of the buffer when the window was last looked at
---@field on_hand fun(what: "enter"|"scroll"|"close")

---@type agentchat.Hands?
local watched
local group = api.nvim_create_augroup("agentchat.follow.hands", {})
local keys = api.nvim_create_namespace("agentchat.follow.keys")
local last_key = 0.0

--- Not `uv.now()`, which stands still while Neovim is busy.
---@return number
local function now()
  return uv.hrtime() / 1e6
end

--- A jump of ours: what the window does now is not the user's.
function M.expect()
  if watched then
    watched.settled_at, watched.is_drawn = now() + DRAWN, false
    watched.tick = api.nvim_buf_get_changedtick(api.nvim_win_get_buf(watched.win))
  end
end

---@param what "enter"|"scroll"|"close"
local function hand(what)
  if watched then
    watched.on_hand(what)
  end
end

local function scrolled()
  local delta = watched and vim.v.event[tostring(watched.win)]
  if not watched or not delta or not api.nvim_win_is_valid(watched.win) then
    return
  end
  local tick = api.nvim_buf_get_changedtick(api.nvim_win_get_buf(watched.win))
  local has_moved = delta.topline ~= 0 or delta.skipcol ~= 0
  local is_other_reason = delta.width ~= 0 or delta.height ~= 0 or tick ~= watched.tick
  watched.tick = tick
  local is_by_key = now() - last_key <= BY_KEY
  if has_moved and not is_other_reason and now() > watched.settled_at and is_by_key then
    hand("scroll")
  end
end

local wheel = {}
for _, key in ipairs({ "<ScrollWheelUp>", "<ScrollWheelDown>", "<ScrollWheelLeft>", "<ScrollWheelRight>" }) do
  wheel[vim.keycode(key)] = true
end

---@param key string
---@param typed? string
local function on_key(key, typed)
  if typed == "" then
    return
  end
  last_key = now()
  if watched and wheel[typed or key] and vim.fn.getmousepos().winid == watched.win then
    vim.schedule(function()
      hand("scroll")
    end)
  end
end

--- Watches a window, and no other.
---@param win integer
---@param on_hand fun(what: "enter"|"scroll"|"close")
function M.watch(win, on_hand)
  M.stop()
  watched = { win = win, settled_at = 0, is_drawn = false, tick = 0, on_hand = on_hand }
  M.expect()
  api.nvim_create_autocmd("WinEnter", {
    group = group,
    callback = function()
      vim.schedule(function()
        if watched and api.nvim_get_current_win() == watched.win then
          hand("enter")
        end
      end)
    end,
  })
  api.nvim_create_autocmd("WinScrolled", { group = group, callback = scrolled })
  api.nvim_create_autocmd("WinClosed", {
    group = group,
    callback = function(args)
      if watched and tonumber(args.match) == watched.win then
        hand("close")
      end
    end,
  })
  vim.on_key(on_key, keys)
  api.nvim_set_decoration_provider(keys, {
    on_win = function(_, drawn)
      if watched and drawn == watched.win and not watched.is_drawn then
        watched.settled_at, watched.is_drawn = now() + SETTLE, true
      end
      return false
    end,
  })
end

--- Watches nothing.
function M.stop()
  watched = nil
  api.nvim_clear_autocmds({ group = group })
  vim.on_key(nil, keys)
  api.nvim_set_decoration_provider(keys, {})
end

return M
