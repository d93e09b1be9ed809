--- Whether the user has a hand in a window: they enter it, scroll it from elsewhere, or close it.
---
--- Not the user are: our own jumps, what Neovim scrolls after one of them, resizing, changes of the text, and windows that
--- a plugin enters and leaves again at once.

local M = {}

local api = vim.api
local uv = vim.uv

--- How long Neovim may take to draw a jump, in milliseconds.
local SETTLE = 150
--- A scroll so soon after a key is taken for its effect, in milliseconds.
local BY_KEY = 300

---@class agentchat.Hands
---@field win integer
---@field settled_at integer when the last jump is drawn
---@field tick integer of the buffer when the window was last looked at
---@field on_hand fun(what: "enter"|"scroll"|"close")

---@type agentchat.Hands?
local watched
local group = api.nvim_create_augroup("agentchat.follow.hands", {})
local keys = api.nvim_create_namespace("agentchat.follow.keys")
local last_key = 0

--- A jump of ours: what the window does now is not the user's.
function M.expect()
  if watched then
    watched.settled_at = uv.now() + SETTLE
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
  local now = uv.now()
  if has_moved and not is_other_reason and now > watched.settled_at and now - last_key <= BY_KEY then
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
  last_key = uv.now()
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
  watched = { win = win, settled_at = 0, tick = 0, on_hand = on_hand }
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
end

--- Watches nothing.
function M.stop()
  watched = nil
  api.nvim_clear_autocmds({ group = group })
  vim.on_key(nil, keys)
end

return M
