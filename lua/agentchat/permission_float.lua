--- The float that displays a permission request. It takes no focus: keys typed elsewhere never reach it.
---
--- When all of a request has no room, what is asked and the keys are in view from the start, the rest is scrolled to, and
--- the border repeats the keys.

local M = {}

local api = vim.api
local card_of = require("agentchat.permission_card")
local ns = api.nvim_create_namespace("agentchat.hint")
local draw_ns = api.nvim_create_namespace("agentchat.permission")

local MAX_WIDTH = 72
--- A chat that is at least this wide has the card in its own column, off the user's text.
local MIN_COLUMN = 40
--- The part of the screen's height that a long request takes at most, unless that is next to nothing: it is to be
--- noticed, not to be in the way.
local MAX_SHARE, LEAST_HEIGHT = 0.6, 10
--- Rows that the card needs at least: what it is about, and a beginning of the rest.
local LEAST_ROWS = 2
--- Rows of the command or the diff that stand below the options at least, when both are to be seen at once.
local LEAST_DETAIL = 4

---@class agentchat.Card
---@field request agentchat.Permission
---@field place integer
---@field total integer
---@field prompt? string what is typed of an answer so far, said in the border

---@type agentchat.Card? what should be displayed
local card
---@type integer?
local buf
---@type integer?
local win
--- Whether we are closing the window ourselves.
local closing = false
---@type table? the window's configuration as it was last set
local placed

---@return boolean
local function is_here()
  return win ~= nil and api.nvim_win_is_valid(win) and api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage()
end

---@return boolean
local function is_inside()
  return win ~= nil and api.nvim_get_current_win() == win
end

--- Rows that the lines take when they are wrapped.
---@param rows agentchat.CardRow[]
---@param width integer
local function height_of(rows, width)
  local height = 0
  for _, row in ipairs(rows) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(row[1]) / width))
  end
  return height
end

--- The rows of the card for a window of that width, and how many screen rows they take.
---@param width integer
---@param room integer screen rows there are
---@return agentchat.CardRow[] rows
---@return integer height
local function arrange(width, room)
  local parts = card_of.parts(assert(card).request)
  local line = ("─"):rep(width)
  local rule = { { line, "AgentChatDim", #line } }
  local function join(...)
    local rows = {}
    for _, part in ipairs({ ... }) do
      vim.list_extend(rows, part)
    end
    return rows
  end
  local rows = join(parts.about, parts.detail, rule, parts.options)
  local height = height_of(rows, width)
  if height > room then
    local head = join(parts.about, rule, parts.options, rule)
    local with_options = height_of(head, width) + math.min(height_of(parts.detail, width), LEAST_DETAIL) <= room
    rows = with_options and join(head, parts.detail) or rows
  end
  return rows, height
end

--- Where the card may be.
---@return integer row below its border, 0-based
---@return integer room screen rows within the border
local function space()
  local bottom = vim.o.lines - vim.o.cmdheight - (vim.o.laststatus > 0 and 1 or 0)
  local top = (vim.o.showtabline == 2 or (vim.o.showtabline == 1 and #api.nvim_list_tabpages() > 1)) and 1 or 0
  local row = require("agentchat.layout").prompt_area() or bottom
  -- Above the prompt if there is any room, so that the user sees what they type.
  if row - top < LEAST_ROWS + 2 then
    row = bottom
  end
  local most = math.max(LEAST_HEIGHT, math.floor(vim.o.lines * MAX_SHARE))
  return row, math.max(1, math.min(row - top - 2, most))
end

---@return integer
local function card_width()
  local _, column = require("agentchat.layout").prompt_area()
  local widest = column and column >= MIN_COLUMN and column or vim.o.columns
  return math.max(10, math.min(MAX_WIDTH, widest - 2))
end

---@param width integer
---@return string
local function footer(width)
  local current = assert(card)
  local room = width - 2
  if not is_inside() then
    return card_of.how(current.request, room)
  end
  if current.prompt then
    return require("agentchat.columns").cut(current.prompt, room)
  end
  return require("agentchat.permission_options").summary(current.request.options or {}, room)
end

---@param width integer
---@param height integer of all rows
---@param row integer
---@param room integer
---@return vim.api.keyset.win_config
local function configuration(width, height, row, room)
  local current = assert(card)
  local title = card_of.heading(current.request, current.place, current.total)
  title = height > room and title .. " ↓ more inside" or title
  return {
    relative = "editor",
    anchor = "SE",
    row = row,
    col = vim.o.columns,
    width = width,
    height = math.min(height, room),
    border = "rounded",
    title = " " .. title .. " ",
    title_pos = "left",
    footer = (" %s "):format(footer(width)),
    footer_pos = "left",
    focusable = is_inside(),
    zindex = 60,
  }
end

---@return integer
local function ensure_buffer()
  if buf and api.nvim_buf_is_loaded(buf) then
    return buf
  end
  buf = require("agentchat.chats").create_buffer("agentchat://permission")
  vim.bo[buf].undolevels = -1
  vim.bo[buf].modifiable = false
  require("agentchat.permission_keys").map(buf)
  vim.bo[buf].filetype = "agentchat_permission"
  return buf
end

---@param target integer
---@param rows agentchat.CardRow[]
---@return boolean changed whether its text is another
local function fill(target, rows)
  local lines = vim.tbl_map(function(row)
    return row[1]
  end, rows)
  local changed = not vim.deep_equal(lines, api.nvim_buf_get_lines(target, 0, -1, true))
  if changed then
    vim.bo[target].modifiable = true
    api.nvim_buf_set_lines(target, 0, -1, true, lines)
    vim.bo[target].modifiable = false
    vim.bo[target].modified = false
  end
  api.nvim_buf_clear_namespace(target, ns, 0, -1)
  for i, row in ipairs(rows) do
    if row[3] > 0 then
      api.nvim_buf_set_extmark(target, ns, i - 1, 0, { end_col = row[3], hl_group = row[2] })
    end
  end
  return changed
end

local function close_window()
  if win and api.nvim_win_is_valid(win) then
    closing = true
    local was_current = is_inside()
    local ok, reason = pcall(api.nvim_win_close, win, true)
    closing = false
    if not ok then
      error(reason, 0)
    end
    if was_current then
      vim.cmd("stopinsert")
    end
  end
  win, placed = nil, nil
end

---@param target integer
---@param config vim.api.keyset.win_config
local function open_window(target, config)
  local opening = vim.tbl_extend("force", config, { style = "minimal", noautocmd = true })
  win = api.nvim_open_win(target, false, opening)
  placed = config
  local options = {
    wrap = true,
    linebreak = false,
    list = false,
    spell = false,
    scrolloff = 0,
    winfixbuf = true,
    winhighlight = "FloatBorder:AgentChatPermissionBorder,FloatFooter:AgentChatPermissionHint",
  }
  for name, value in pairs(options) do
    api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
end

--- Neovim draws no windows while a command line is typed: the request would come into view only when it is run.
local function draw_under_command_line()
  local mode = api.nvim_get_mode()
  if mode.mode == "c" and not mode.blocking and vim.fn.wildmenumode() == 0 and vim.fn.pumvisible() == 0 then
    vim.cmd("redraw")
  end
end

--- Makes the screen show `card`.
local function draw()
  if not card then
    close_window()
    return
  end
  if win and not is_here() then
    close_window()
  end
  local width = card_width()
  local row, room = space()
  local rows, height = arrange(width, room)
  local config = configuration(width, height, row, room)
  local target = ensure_buffer()
  local changed = fill(target, rows)
  if not win then
    open_window(target, config)
    changed = true
  elseif not vim.deep_equal(config, placed) or not require("agentchat.windows").is_float(win) then
    placed = config
    api.nvim_win_set_config(win, config)
  end
  if changed then
    draw_under_command_line()
  end
end

local function draw_or_retry()
  require("agentchat.textlock").run(draw)
end

--- The border says how to answer from where the user is: that is another way when the mode or the buffer is another one.
local function refresh_footer()
  if not card or not placed or not is_here() then
    return
  end
  local text = (" %s "):format(footer(placed.width))
  if text ~= placed.footer then
    placed.footer = text
    pcall(api.nvim_win_set_config, win, { footer = text, footer_pos = "left" })
  end
end

--- What is displayed is on the screen only once Neovim has drawn it.
local function watch_drawing()
  api.nvim_set_decoration_provider(draw_ns, {
    on_win = function(_, drawn)
      if drawn == win then
        require("agentchat.permission").was_drawn()
      end
      return false
    end,
  })
end

--- A session file opens its first file in the window that it is sourced in.
---@param path string
---@return boolean
local function is_session(path)
  local ok, lines = pcall(vim.fn.readfile, path, "", 5)
  return ok and vim.list_contains(lines, "let SessionLoad = 1")
end

local watching = false

local function watch()
  if watching then
    return
  end
  watching = true
  watch_drawing()
  local group = api.nvim_create_augroup("agentchat.permission", {})
  local function redraw()
    if card then
      draw_or_retry()
    end
  end
  api.nvim_create_autocmd({ "VimResized", "WinResized" }, { group = group, callback = redraw })
  api.nvim_create_autocmd({ "ModeChanged", "BufEnter" }, { group = group, callback = refresh_footer })
  api.nvim_create_autocmd("OptionSet", {
    group = group,
    pattern = { "cmdheight", "laststatus", "showtabline" },
    callback = vim.schedule_wrap(redraw),
  })
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
      if tonumber(args.match) == win and not closing then
        win, placed = nil, nil
        vim.schedule(require("agentchat.permission").put_aside)
      end
    end,
  })
  api.nvim_create_autocmd("SourcePre", {
    group = group,
    callback = function(args)
      if is_inside() and is_session(args.file) then
        close_window()
        require("agentchat.permission").put_aside()
      end
    end,
  })
  api.nvim_create_autocmd("WinLeave", {
    group = group,
    callback = function()
      if is_inside() then
        api.nvim_win_set_config(win --[[@as integer]], { focusable = false })
        require("agentchat.permission").left()
        vim.schedule(redraw)
      end
    end,
  })
end

--- Displays a request.
---@param request agentchat.Permission
---@param place integer its place in the queue
---@param total integer how many are open
---@param prompt? string what is typed of an answer so far
function M.show(request, place, total, prompt)
  watch()
  card = { request = request, place = place, total = total, prompt = prompt }
  draw_or_retry()
end

--- Displays nothing.
function M.hide()
  if card or win then
    card = nil
    draw_or_retry()
  end
end

--- Whether the float can display a request at all: it can in any tab page.
---@return boolean
function M.can_show()
  return true
end

--- Brings a request into view that cannot be displayed in this tab page: there is none.
function M.reveal() end

--- Whether there is a float in the tab page where the user is.
---@return boolean
function M.is_shown()
  return is_here()
end

--- Whether the user is in the float.
M.is_inside = is_inside

--- Makes the float the current window.
---@return boolean entered
function M.enter()
  if not is_here() then
    return false
  end
  local target = win --[[@as integer]]
  api.nvim_win_set_config(target, { focusable = true })
  api.nvim_set_current_win(target)
  api.nvim_win_set_cursor(target, { 1, 0 })
  draw_or_retry()
  return true
end

return M
