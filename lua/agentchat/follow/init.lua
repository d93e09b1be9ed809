--- Following an agent: one window shows where it is, until the user takes it into their hands.

local M = {}

local api = vim.api
local hands = require("agentchat.follow.hands")
local marks = require("agentchat.follow.marks")
local seats = require("agentchat.follow.seat")
local visited = require("agentchat.follow.visited")
local window = require("agentchat.follow.window")

---@class agentchat.SeenPlace
---@field path? string absolute, of a text file
---@field line? integer 1-based
---@field size? integer bytes
---@field terminal? integer instead of a file, the terminal that the agent waits for
---@field kind string of the tool call
---@field title string

---@class agentchat.Following
---@field chat integer
---@field tab integer the tab page whose window follows
---@field paused boolean
---@field wanted? agentchat.SeenPlace what is not shown yet
---@field seat? agentchat.FollowSeat
---@field hinted boolean whether the user was told that there is no window

---@type agentchat.Following?
local following
---@type table<integer, agentchat.SeenPlace> where each chat's agent was last
local latest = {}
local group = api.nvim_create_augroup("agentchat.follow", {})
local retrying = false

--- What a chat's status says.
---@param chat integer
---@return "on"|"off"|"paused"
local function state(chat)
  if not following or following.chat ~= chat then
    return "off"
  end
  return following.paused and "paused" or "on"
end

---@param chat integer
local function tell(chat)
  local each = require("agentchat.chats").get(chat)
  if each then
    each.status.follow = state(chat)
    require("agentchat.status").refresh(each)
    require("agentchat.events").fire("AgentChatFollow", { chat = chat, state = each.status.follow })
  end
  local seat = following and following.chat == chat and following.seat
  if seat then
    local name = marks.name(chat)
    seats.say(seat, following.paused and ("follow of %s paused"):format(name) or ("following %s"):format(name))
  end
end

local reasons = {
  enter = "you are in its window",
  scroll = "you scrolled its window",
  close = "its window was closed",
  exchange = "its window shows something else",
}

---@param why "enter"|"scroll"|"close"|"exchange"
local function pause(why)
  if not following or following.paused then
    return
  end
  following.paused = true
  if why == "close" then
    following.seat = nil
  end
  hands.stop()
  tell(following.chat)
  require("agentchat.message").show("info", ("follow paused, %s; :AgentChat follow resumes"):format(reasons[why]))
end

--- What keeps the window from jumping at the moment.
---@return boolean
local function is_inopportune()
  -- A command line may preview what it will do, and has the windows' state to put back.
  local mode = api.nvim_get_mode()
  return mode.blocking or vim.startswith(mode.mode, "c") or vim.fn.getcmdwintype() ~= "" or vim.fn.pumvisible() == 1
end

local jump

local function retry()
  if not retrying then
    retrying = true
    vim.defer_fn(function()
      retrying = false
      jump()
    end, require("agentchat.textlock").RETRY)
  end
end

--- The window for the jump: the one that there is, another one that is free, or a new one.
---@param now agentchat.Following
---@param buf integer
---@return agentchat.FollowSeat?
local function seat_for(now, buf)
  local seat = now.seat
  if seat and window.is_free(seat.win, now.tab, seat.shown) then
    return seat
  end
  local win = window.find(now.tab)
  local taken
  if win then
    taken = seats.take(win)
  else
    local opened, sizes = window.open(now.tab, buf)
    taken = opened and sizes and seats.take_new(opened, sizes) or nil
  end
  if not taken then
    return nil
  end
  if seat then
    seats.give_back(seat)
  end
  now.seat = taken
  hands.watch(taken.win, pause)
  tell(now.chat)
  return taken
end

---@param place agentchat.SeenPlace
---@return string
local function name_of(place)
  if place.terminal then
    return ("terminal %d"):format(place.terminal)
  end
  return ("%s:%d"):format(vim.fs.basename(place.path), place.line or 1)
end

---@param now agentchat.Following
local function hint(now)
  if now.hinted then
    return
  end
  now.hinted = true
  local place = now.wanted --[[@as agentchat.SeenPlace]]
  local where = ("%s is in %s"):format(marks.name(now.chat), name_of(place))
  local advice = window.is_only_fit(now.tab) and "it is shown here when you leave this window"
    or "open another window to see it"
  require("agentchat.message").show("info", ("%s; %s"):format(where, advice))
end

--- Shows what is wanted.
---@param now agentchat.Following
local function show(now)
  local place = now.wanted --[[@as agentchat.SeenPlace]]
  if now.seat and not seats.is_ours(now.seat) then
    pause(api.nvim_win_is_valid(now.seat.win) and "exchange" or "close")
    return
  end
  local buf
  if place.terminal then
    buf = require("agentchat.terminals").buffer(place.terminal)
  else
    buf = visited.load(place.path, place.size)
  end
  if not buf then
    now.wanted = nil -- the user has wiped that terminal
    return
  end
  local seat = seat_for(now, buf)
  if not seat then
    visited.drop(false)
    hint(now)
    return
  end
  hands.expect()
  if place.terminal then
    seats.show_end(seat, buf)
  else
    seats.show(seat, buf, place.line)
  end
  hands.expect()
  marks.refresh(buf)
  now.wanted, now.hinted = nil, false
  if seat.line and not place.terminal then
    marks.flash(buf, math.min(seat.line, api.nvim_buf_line_count(buf)))
  end
  visited.drop(false)
  local data = { chat = now.chat, state = "on", win = seat.win, buf = buf }
  data.path, data.line, data.terminal = place.path, place.line, place.terminal
  require("agentchat.events").fire("AgentChatFollow", data)
end

--- Shows what is wanted, now or as soon as that disturbs nobody.
function jump()
  local now = following
  if not now or now.paused or not now.wanted then
    return
  end
  if not api.nvim_tabpage_is_valid(now.tab) then
    now.tab = api.nvim_get_current_tabpage()
  end
  if is_inopportune() then
    retry()
    return
  end
  local ok, reason = pcall(show, now)
  if ok then
    return
  elseif require("agentchat.textlock").is_locked(reason) then
    retry()
    return
  end
  local place = now.wanted
  now.wanted = nil
  if place then
    require("agentchat.message").show("warn", ("%s cannot be shown: %s"):format(name_of(place), reason))
  end
end

--- Looks again for a window when there may be one.
local function watch()
  api.nvim_create_autocmd({ "WinEnter", "WinNew", "VimResized", "TabEnter", "BufWinEnter" }, {
    group = group,
    callback = function()
      if following and following.wanted then
        vim.schedule(jump)
      end
    end,
  })
  api.nvim_create_autocmd("User", {
    group = group,
    pattern = "AgentChatTurnStart",
    callback = function(args)
      local resumes = require("agentchat.config").get().follow.resume_on_prompt
      if resumes and following and following.paused and following.chat == args.data.chat then
        M.set("on")
      end
    end,
  })
end

--- Ends following; the window shows again what it showed.
local function stop()
  local now = following
  if not now then
    return
  end
  following = nil
  hands.stop()
  api.nvim_clear_autocmds({ group = group })
  if now.seat then
    require("agentchat.textlock").run(function()
      seats.give_back(now.seat)
      visited.drop(true)
    end)
  else
    visited.drop(true)
  end
  tell(now.chat)
end

---@param chat integer
local function start(chat)
  require("agentchat.highlight").set()
  local before = following
  if before and before.chat ~= chat then
    following = nil
    tell(before.chat)
  end
  following = {
    chat = chat,
    tab = api.nvim_get_current_tabpage(),
    paused = false,
    wanted = latest[chat],
    seat = before and before.seat,
    hinted = false,
  }
  local seat = following.seat
  if seat and (not api.nvim_win_is_valid(seat.win) or api.nvim_win_get_tabpage(seat.win) ~= following.tab) then
    seats.give_back(seat)
    following.seat = nil
  elseif seat then
    -- What is there now is what the user wants to come back to, if it is theirs.
    if not seats.is_ours(seat) then
      following.seat = seats.take(seat.win)
    end
    hands.watch(seat.win, pause)
  end
  if not before then
    watch()
  end
  tell(chat)
  jump()
end

--- Follows the agent of the current tab page's chat, or ends that. What is paused is resumed.
---@param wanted "on"|"off"|"toggle"
function M.set(wanted)
  local chat = require("agentchat.chats").current()
  if wanted == "off" then
    stop()
    return
  elseif not chat then
    require("agentchat.message").show("error", "there is no agent to follow; :AgentChat opens a chat")
    return
  end
  if wanted == "toggle" and state(chat.id) == "on" then
    stop()
  else
    start(chat.id)
  end
end

--- News of where an agent is.
---@param chat integer
---@param clear boolean whether its turn is over
---@param places agentchat.SeenPlace[]
---@param newest? agentchat.SeenPlace
function M.receive(chat, clear, places, newest)
  marks.update(chat, clear, places)
  if not newest then
    return
  end
  latest[chat] = newest
  if following and following.chat == chat then
    following.wanted = newest
    jump()
  end
end

--- A chat is gone, or its helper is.
---@param chat integer
function M.forget(chat)
  latest[chat] = nil
  marks.update(chat, true, {})
  if following and following.chat == chat then
    stop()
  end
end

return M
