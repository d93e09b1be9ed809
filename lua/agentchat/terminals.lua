--- The terminals in which an agent's commands run: a buffer each, fed by the helper.

local api = vim.api

local M = {}

---@class agentchat.Terminal
---@field id integer
---@field buf integer
---@field channel integer
---@field chat integer
---@field name string the agent's name for it
---@field title string the command
---@field running boolean
---@field state string
---@field columns integer
---@field rows integer

--- So many buffers of commands that have ended are kept, besides those that a window shows.
local KEPT = 50

---@type table<integer, agentchat.Terminal>
local terminals = {}
local group = api.nvim_create_augroup("agentchat_terminals", {})

---@param method string
---@param terminal agentchat.Terminal
---@param more? table
local function notify(method, terminal, more)
  require("agentchat.helper").notify(method, vim.tbl_extend("force", { terminal = terminal.id }, more or {}))
end

--- Tells the helper the size of the largest window that shows a terminal: Neovim's own has that one too.
---@param terminal agentchat.Terminal
local function tell_size(terminal)
  local columns, rows = 0, 0
  for _, win in ipairs(vim.fn.win_findbuf(terminal.buf)) do
    columns = math.max(columns, api.nvim_win_get_width(win) - vim.fn.getwininfo(win)[1].textoff)
    rows = math.max(rows, api.nvim_win_get_height(win))
  end
  if columns > 0 and (columns ~= terminal.columns or rows ~= terminal.rows) then
    terminal.columns, terminal.rows = columns, rows
    notify("terminal_size", terminal, { columns = columns, rows = rows })
  end
end

--- Ends the command of a terminal.
---@param terminal agentchat.Terminal
local function kill(terminal)
  if terminal.running then
    notify("terminal_kill", terminal)
  else
    require("agentchat.message").show("info", ("that command has ended: %s"):format(terminal.state))
  end
end

---@param terminal agentchat.Terminal
local function set_up(terminal)
  local buf = terminal.buf
  vim.keymap.set("n", "<Plug>(agentchat-terminal-kill)", function()
    kill(terminal)
  end, { buffer = buf, desc = "End the command" })
  vim.keymap.set("n", "<C-c>", "<Plug>(agentchat-terminal-kill)", { buffer = buf, desc = "End the command" })
  api.nvim_create_autocmd({ "BufWinEnter", "WinEnter" }, {
    group = group,
    buffer = buf,
    callback = function()
      tell_size(terminal)
    end,
  })
  api.nvim_create_autocmd("BufWipeout", {
    group = group,
    buffer = buf,
    callback = function()
      terminals[terminal.id] = nil
    end,
  })
end

--- Opens the terminal of a buffer. Its size is that of the current window, so one of the right size is current for a
--- moment. `TermOpen` is not for it: many users go to insert mode then.
---@param buf integer
---@param info table
---@param on_input fun(data: string)
---@return integer channel
local function open_channel(buf, info, on_input)
  local ignored = vim.o.eventignore
  vim.o.eventignore = "all"
  local ok, channel = pcall(function()
    local win = api.nvim_open_win(buf, false, {
      relative = "editor",
      row = 0,
      col = 0,
      width = info.columns,
      height = info.rows,
      style = "minimal",
      hide = true,
      focusable = false,
    })
    local opened
    api.nvim_win_call(win, function()
      opened = api.nvim_open_term(buf, {
        on_input = function(_, _, _, data)
          on_input(data)
        end,
      })
    end)
    api.nvim_win_close(win, true)
    return opened
  end)
  vim.o.eventignore = ignored
  if not ok then
    error(channel, 0)
  end
  return channel
end

---@param id integer
---@param info table
---@return agentchat.Terminal
local function create(id, info)
  local buf = api.nvim_create_buf(true, true)
  vim.bo[buf].bufhidden = "hide"
  ---@type agentchat.Terminal
  local terminal = vim.tbl_extend("force", { id = id, buf = buf, channel = 0 }, info)
  terminal.channel = open_channel(buf, info, function(data)
    if terminal.running then
      notify("terminal_input", terminal, { data = data })
    end
  end)
  pcall(api.nvim_buf_set_name, buf, ("agentchat://terminal/%d/%s"):format(id, (info.title:gsub("[%c%s]+", " "))))
  vim.bo[buf].filetype = "agentchat_terminal"
  terminals[id] = terminal
  set_up(terminal)
  return terminal
end

---@return agentchat.Terminal[] oldest first
function M.all()
  local all = vim.tbl_values(terminals)
  table.sort(all, function(a, b)
    return a.id < b.id
  end)
  return all
end

--- Wipes the oldest buffers of commands that have ended, if there are too many and no window shows them.
local function forget_old()
  local ended = vim.tbl_filter(function(terminal)
    return not terminal.running and #vim.fn.win_findbuf(terminal.buf) == 0
  end, M.all())
  for i = 1, #ended - KEPT do
    api.nvim_buf_delete(ended[i].buf, { force = true })
  end
end

--- An item of a frame: what a terminal is, and what is to be fed to it.
---@param id integer
---@param info table
---@param bytes string
function M.receive(id, info, bytes)
  local terminal = terminals[id]
  if not terminal then
    if id <= M.newest then
      return -- the user wiped it
    end
    M.newest = id
    terminal = create(id, info)
  end
  if not api.nvim_buf_is_valid(terminal.buf) then
    return
  end
  terminal.running, terminal.state, terminal.title = info.running, info.state, info.title
  vim.b[terminal.buf].agentchat_terminal = { chat = info.chat, running = info.running, state = info.state }
  if bytes ~= "" then
    api.nvim_chan_send(terminal.channel, bytes)
  end
  if not terminal.running then
    forget_old()
  end
end

--- The newest terminal that there was.
M.newest = 0

--- Shows a terminal: in its window, if it has one on this tab page, else in a new one.
---@param terminal agentchat.Terminal
local function show(terminal)
  local win = vim.fn.bufwinid(terminal.buf)
  if win ~= -1 then
    api.nvim_set_current_win(win)
  else
    vim.cmd(("botright sbuffer %d"):format(terminal.buf))
  end
  tell_size(terminal)
end

--- Shows the terminal with the agent's name for it.
---@param name string
---@return boolean found
function M.open(name)
  for _, terminal in pairs(terminals) do
    if terminal.name == name and api.nvim_buf_is_valid(terminal.buf) then
      show(terminal)
      return true
    end
  end
  return false
end

--- Lets the user choose a terminal.
function M.list()
  local all = M.all()
  if #all == 0 then
    require("agentchat.message").show("info", "no agent has run a command in a terminal")
    return
  end
  vim.ui.select(all, {
    prompt = "Terminals of agents",
    format_item = function(terminal)
      return ("%d  %s  (%s)"):format(terminal.id, terminal.title, terminal.state)
    end,
  }, function(terminal)
    if terminal then
      show(terminal)
    end
  end)
end

--- Ends the command of the terminal with this number.
---@param number string
function M.kill(number)
  local terminal = terminals[tonumber(number)]
  if terminal then
    kill(terminal)
  else
    require("agentchat.message").show(
      "error",
      ("there is no terminal %s; :AgentChat terminals lists them"):format(number)
    )
  end
end

api.nvim_create_autocmd({ "WinResized", "VimResized" }, {
  group = group,
  callback = function()
    for _, terminal in pairs(terminals) do
      tell_size(terminal)
    end
  end,
})

return M
