--- The float that displays a permission request. It takes no focus: keys typed elsewhere never reach it.

local M = {}

local api = vim.api
local ns = api.nvim_create_namespace("agentchat.hint")

local MAX_WIDTH = 72
--- A chat that is at least this wide has the card in its own column, off the user's text.
local MIN_COLUMN = 40
--- Rows that the card needs at least: what it is about, and how to answer.
local LEAST_ROWS = 2

---@class agentchat.Card
---@field request agentchat.Permission
---@field place integer
---@field total integer

---@type agentchat.Card? what should be displayed
local card
---@type integer?
local buf
---@type integer?
local win
local closing = false

--- Lines of a diff, by their first character; a line that starts with "±" begins one.
local diff_groups = { ["+"] = "AgentChatAdded", ["-"] = "AgentChatRemoved" }

--- The key that the user has mapped to a `<Plug>` mapping.
---@param plug string
---@return string?
local function key_for(plug)
  for _, map in ipairs(api.nvim_get_keymap("n")) do
    if map.rhs and map.rhs:lower() == plug:lower() then
      return map.lhs
    end
  end
end

---@param text string
local function printable(text)
  return (text:gsub("[\r\n]", " "))
end

--- The lines of the card. A card that is too tall for the screen shows how to answer first, and the rest below.
---@param width integer
---@param tall boolean
---@return string[] lines
---@return { [1]: integer, [2]: string }[] marks rows (0-based) with their highlight group
local function render(width, tall)
  local request = assert(card).request
  local lines, marks = {}, {}
  local function add(text, group)
    lines[#lines + 1] = printable(text)
    if group then
      marks[#marks + 1] = { #lines - 1, group }
    end
  end
  local function add_detail()
    for _, note in ipairs(request.notes or {}) do
      add(note, "AgentChatNotice")
    end
    local in_diff = false
    for _, line in ipairs(request.detail or {}) do
      in_diff = in_diff or vim.startswith(line, "±")
      local group = in_diff and diff_groups[line:sub(1, 1)] or nil
      add(line, group)
    end
  end
  local kind = request.kind and request.kind ~= "" and request.kind .. ": " or ""
  local function add_keys()
    local allow = key_for("<Plug>(agentchat-allow)") or ":AgentChat allow"
    local deny = key_for("<Plug>(agentchat-deny)") or ":AgentChat deny"
    local enter = key_for("<Plug>(agentchat-permission)") or ":AgentChat permissions"
    add(("%s · %s"):format(allow, deny), "AgentChatDim")
    add(("%s, then y, n or a digit"):format(enter), "AgentChatDim")
  end
  add(kind .. request.title, "AgentChatPermissionTitle")
  if tall then
    add_keys()
  else
    add_detail()
  end
  add(("─"):rep(width), "AgentChatDim")
  for n, option in ipairs(request.options or {}) do
    add(("%d %s"):format(n, option.name))
  end
  if #(request.options or {}) == 0 then
    add("The agent offers no options; :AgentChat cancel ends the request.")
  end
  if tall then
    add(("─"):rep(width), "AgentChatDim")
    add_detail()
  else
    add_keys()
  end
  return lines, marks
end

---@return integer
local function ensure_buffer()
  if buf and api.nvim_buf_is_loaded(buf) then
    return buf
  end
  buf = require("agentchat.chats").create_buffer("agentchat://permission")
  local function map(lhs, action, desc)
    vim.keymap.set("n", lhs, action, { buffer = buf, desc = desc, nowait = true })
  end
  local permission = require("agentchat.permission")
  map("y", function()
    permission.decide("allow")
  end, "Allow once")
  map("n", function()
    permission.decide("deny")
  end, "Reject once")
  map("q", function()
    api.nvim_win_close(0, true)
  end, "Put the request aside")
  for n = 1, 9 do
    map(tostring(n), function()
      permission.choose(n)
    end, "Answer with option " .. n)
  end
  vim.bo[buf].filetype = "agentchat_permission"
  return buf
end

--- Rows that the lines take when they are wrapped.
---@param lines string[]
---@param width integer
local function wrapped_height(lines, width)
  local rows = 0
  for _, line in ipairs(lines) do
    rows = rows + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width))
  end
  return rows
end

---@param lines string[]
---@param width integer
---@return vim.api.keyset.win_config config
---@return boolean tall whether some of the lines are not visible
local function place_on_screen(lines, width)
  local bottom = vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0)
  local row = require("agentchat.layout").prompt_area()
  row = row or bottom
  local top = vim.o.showtabline == 2 and 1 or 0
  local height = wrapped_height(lines, width)
  -- Above the prompt if there is any room, so that the user sees what they type.
  if row - top < math.min(height, LEAST_ROWS) + 2 then
    row = bottom
  end
  local current = assert(card)
  local room = math.max(1, row - top - 2)
  local count = current.total > 1 and (" (%d of %d)"):format(current.place, current.total) or ""
  return {
    relative = "editor",
    anchor = "SE",
    row = row,
    col = vim.o.columns,
    width = width,
    height = math.min(height, room),
    style = "minimal",
    border = "rounded",
    title = (" %s asks%s "):format(printable(current.request.agent or "The agent"), count),
    title_pos = "left",
    footer = height > room and " more inside " or "",
    focusable = false,
    zindex = 60,
  },
    height > room
end

---@param target integer
---@param lines string[]
---@param marks { [1]: integer, [2]: string }[]
local function fill(target, lines, marks)
  vim.bo[target].modifiable = true
  api.nvim_buf_set_lines(target, 0, -1, true, lines)
  vim.bo[target].modifiable = false
  api.nvim_buf_clear_namespace(target, ns, 0, -1)
  for _, mark in ipairs(marks) do
    api.nvim_buf_set_extmark(target, ns, mark[1], 0, { end_col = #lines[mark[1] + 1], hl_group = mark[2] })
  end
end

local function close_window()
  if win and api.nvim_win_is_valid(win) then
    closing = true
    local was_current = api.nvim_get_current_win() == win
    api.nvim_win_close(win, true)
    closing = false
    if was_current then
      vim.cmd("stopinsert")
    end
  end
  win = nil
end

--- Makes the screen show `card`.
local function draw()
  if not card then
    close_window()
    return
  end
  if win and (not api.nvim_win_is_valid(win) or api.nvim_win_get_tabpage(win) ~= api.nvim_get_current_tabpage()) then
    close_window()
  end
  local _, column = require("agentchat.layout").prompt_area()
  local widest = column and column >= MIN_COLUMN and column or vim.o.columns
  local width = math.max(10, math.min(MAX_WIDTH, widest - 2))
  local lines, marks = render(width, false)
  local config, tall = place_on_screen(lines, width)
  if tall then
    lines, marks = render(width, true)
  end
  local target = ensure_buffer()
  fill(target, lines, marks)
  if win then
    config.focusable = api.nvim_get_current_win() == win
    api.nvim_win_set_config(win, config)
  else
    win = api.nvim_open_win(target, false, config)
    vim.wo[win][0].wrap = true
    vim.wo[win][0].winhighlight = "FloatBorder:AgentChatPermissionBorder"
  end
end

local function draw_or_retry()
  require("agentchat.textlock").run(draw)
end

local watching = false

local function watch()
  if watching then
    return
  end
  watching = true
  local group = api.nvim_create_augroup("agentchat.permission", {})
  api.nvim_create_autocmd("VimResized", { group = group, callback = draw_or_retry })
  api.nvim_create_autocmd("TabEnter", {
    group = group,
    callback = function()
      if card then
        require("agentchat.permission").display_again()
      end
    end,
  })
  api.nvim_create_autocmd("WinClosed", {
    group = group,
    callback = function(args)
      if tonumber(args.match) ~= win or closing then
        return
      end
      -- Whoever is in it and closes it, or wipes its buffer, does not want to see it. `:only` and `:tabclose` mean other
      -- windows.
      local is_meant = api.nvim_get_current_win() == win
      local tabs = #api.nvim_list_tabpages()
      win = nil
      vim.schedule(function()
        local permission = require("agentchat.permission")
        local is_wiped = not buf or not api.nvim_buf_is_loaded(buf)
        if is_wiped or (is_meant and #api.nvim_list_tabpages() == tabs) then
          permission.put_aside()
        else
          permission.display_again()
        end
      end)
    end,
  })
  api.nvim_create_autocmd("WinLeave", {
    group = group,
    callback = function()
      if win and api.nvim_get_current_win() == win then
        api.nvim_win_set_config(win, { focusable = false })
      end
    end,
  })
end

--- Displays a request.
---@param request agentchat.Permission
---@param place integer its place in the queue
---@param total integer how many are open
function M.show(request, place, total)
  watch()
  card = { request = request, place = place, total = total }
  draw_or_retry()
end

--- Displays nothing.
function M.hide()
  card = nil
  draw_or_retry()
end

--- Makes the float the current window.
---@return boolean entered
function M.enter()
  if not win or not api.nvim_win_is_valid(win) then
    return false
  end
  api.nvim_win_set_config(win, { focusable = true })
  api.nvim_set_current_win(win)
  return true
end

return M
