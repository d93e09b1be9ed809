--- The terminals of agents, and those of commands that the user runs: a buffer each, fed by the helper.

local api = vim.api
local buffers = require("agentchat.terminal_buffer")

local M = {}

---@class agentchat.Terminal
---@field id integer
---@field buf integer
---@field channel integer
---@field chat integer 0 if it is about none
---@field name string the agent's name for it
---@field title string the command
---@field running boolean
---@field state string
---@field can_type boolean whether the command runs here, and not in the agent
---@field run? integer the number of a command of the user's
---@field columns integer of the buffer's terminal
---@field rows integer
---@field sequence integer of the newest item that was taken

---@class agentchat.CommandEnd
---@field code? integer exit code
---@field signal? string name of the signal that ended it
---@field error? string why it could not be started

--- So many buffers of commands that have ended are kept, besides those that a window shows.
local KEPT = 50

---@type table<integer, agentchat.Terminal>
local terminals = {}
---@type table<integer, boolean> those whose buffer the user has wiped
local wiped = {}
---@type table<integer, { on_end: fun(how: agentchat.CommandEnd) }> commands that the user runs, by number
local runs = {}
local last_run = 0
local group = api.nvim_create_augroup("agentchat_terminals", {})

---@param method string
---@param id integer
---@param more? table
local function notify(method, id, more)
  require("agentchat.helper").notify(method, vim.tbl_extend("force", { terminal = id }, more or {}))
end

--- Tells the helper which size a terminal has, unless it knows.
---@param terminal agentchat.Terminal
---@param is_asked? boolean tell it all the same
local function tell_size(terminal, is_asked)
  local columns, rows = buffers.shown_size(terminal.buf)
  columns, rows = columns or terminal.columns, rows or terminal.rows
  if is_asked or columns ~= terminal.columns or rows ~= terminal.rows then
    terminal.columns, terminal.rows = columns, rows
    notify("terminal_size", terminal.id, { columns = columns, rows = rows })
  end
end

--- Ends the command of a terminal.
---@param terminal agentchat.Terminal
local function kill(terminal)
  local message = require("agentchat.message")
  if not terminal.running then
    message.show("info", ("that command has ended: %s"):format(terminal.state))
  elseif terminal.can_type then
    notify("terminal_kill", terminal.id)
  else
    message.show("info", "the agent runs that command itself; :AgentChat cancel stops the turn")
  end
end

---@param terminal agentchat.Terminal
local function set_up(terminal)
  local buf = terminal.buf
  vim.keymap.set("n", "<Plug>(agentchat-terminal-kill)", function()
    kill(terminal)
  end, { buffer = buf, desc = "End the command" })
  vim.keymap.set("n", "<C-c>", "<Plug>(agentchat-terminal-kill)", { buffer = buf, desc = "End the command" })
  local is_new = true
  api.nvim_create_autocmd({ "BufWinEnter", "WinEnter" }, {
    group = group,
    buffer = buf,
    callback = function()
      if is_new and api.nvim_get_current_buf() == buf then
        is_new = false
        buffers.to_end(api.nvim_get_current_win())
      end
      tell_size(terminal)
    end,
  })
  api.nvim_create_autocmd("BufWipeout", {
    group = group,
    buffer = buf,
    callback = function()
      terminals[terminal.id] = nil
      wiped[terminal.id] = terminal.running or nil
    end,
  })
end

---@param id integer
---@param info table
---@return agentchat.Terminal
local function create(id, info)
  ---@type agentchat.Terminal
  local terminal = vim.tbl_extend("force", { id = id }, info, { sequence = 0 })
  local name = ("agentchat://terminal/%d/%s"):format(id, (info.title:gsub("[%c%s]+", " ")))
  terminal.buf, terminal.channel = buffers.create(name, info, function(data)
    if terminal.running and terminal.can_type then
      notify("terminal_input", id, { data = data })
    end
  end)
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

--- How many commands run in terminals.
---@param chat? integer of which chat; of all if nil
---@return integer
function M.running(chat)
  local count = 0
  for _, terminal in pairs(terminals) do
    if terminal.running and (not chat or terminal.chat == chat) then
      count = count + 1
    end
  end
  return count
end

--- Wipes the oldest buffers of commands that have ended, if there are too many and no window shows them.
local function forget_old()
  local ended = vim.tbl_filter(function(terminal)
    return not terminal.running and #vim.fn.win_findbuf(terminal.buf) == 0
  end, M.all())
  for i = 1, #ended - KEPT do
    pcall(api.nvim_buf_delete, ended[i].buf, { force = true })
  end
end

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

--- The terminal of an item, made if it is new; nil while that is not possible.
---@param id integer
---@param info table
---@return agentchat.Terminal?
local function terminal_of(id, info)
  local ok, made = pcall(create, id, info)
  if ok then
    return made
  end
  -- Neovim allows no new window at the moment: the helper draws it once it hears of it again.
  vim.defer_fn(function()
    notify("terminal_size", id, { columns = info.columns, rows = info.rows })
  end, require("agentchat.textlock").RETRY)
end

--- An item of a frame: what a terminal is, and what is to be fed to it.
---@param id integer
---@param info table
---@param bytes string
---@return boolean taken false if nothing of it was: it is to be drawn again when its size is told
function M.receive(id, info, bytes)
  if wiped[id] then
    wiped[id] = info.running or nil
    return true
  end
  local is_new = not terminals[id]
  local terminal = terminals[id] or terminal_of(id, info)
  if not terminal then
    return false
  end
  if info.sequence <= terminal.sequence then
    return true -- the frame came twice
  end
  local columns, rows = buffers.shown_size(terminal.buf)
  if (columns or terminal.columns) ~= info.columns or (rows or terminal.rows) ~= info.rows then
    tell_size(terminal, true)
    return false
  end
  terminal.sequence, terminal.columns, terminal.rows = info.sequence, info.columns, info.rows
  terminal.running, terminal.state, terminal.title = info.running, info.state, info.title
  vim.b[terminal.buf].agentchat_terminal =
    { chat = info.chat, title = info.title, running = info.running, state = info.state }
  if bytes ~= "" then
    api.nvim_chan_send(terminal.channel, bytes)
  end
  if is_new and terminal.run and runs[terminal.run] then
    show(terminal)
  end
  if not terminal.running then
    forget_old()
  end
  return true
end

--- Shows the terminal with the agent's name for it.
---@param name string
---@param chat? integer of which chat
---@return boolean found
function M.open(name, chat)
  for _, terminal in pairs(terminals) do
    if terminal.name == name and (not chat or terminal.chat == chat) then
      show(terminal)
      return true
    end
  end
  return false
end

--- The buffer of a terminal.
---@param id integer
---@return integer?
function M.buffer(id)
  local terminal = terminals[id]
  return terminal and terminal.buf
end

---@param number string
---@param act fun(terminal: agentchat.Terminal)
local function with_number(number, act)
  local terminal = terminals[tonumber(number)]
  if terminal then
    act(terminal)
  else
    local text = "there is no terminal %s; :AgentChat terminals lists them"
    require("agentchat.message").show("error", text:format(number))
  end
end

--- Opens the terminal with this number.
---@param number string
function M.open_number(number)
  with_number(number, show)
end

--- Ends the command of the terminal with this number.
---@param number string
function M.kill(number)
  with_number(number, kill)
end

---@return string[]
function M.numbers()
  return vim.tbl_map(function(terminal)
    return tostring(terminal.id)
  end, M.all())
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

--- Runs a command for the user in a terminal in a normal window, such as the sign-in of an agent.
---@param command string[] the program and its arguments
---@param opts { env?: table<string, string>, cwd?: string, chat?: integer }
---@param on_end fun(how: agentchat.CommandEnd) called once
function M.run(command, opts, on_end)
  last_run = last_run + 1
  runs[last_run] = { on_end = on_end }
  local env = vim.empty_dict()
  for name, value in pairs(opts.env or {}) do
    env[name] = value
  end
  require("agentchat.helper").notify("run_command", {
    run = last_run,
    chat = opts.chat or 0,
    command = command[1],
    args = vim.list_slice(command, 2),
    env = env,
    cwd = opts.cwd or vim.fn.getcwd(),
  })
end

--- A command of the user's has ended, or could not be started.
---@param number integer
---@param how agentchat.CommandEnd
function M.ran(number, how)
  local run = runs[number]
  runs[number] = nil
  if run then
    run.on_end(how)
  end
end

--- The helper is gone, and with it all commands.
function M.helper_gone()
  for _, terminal in pairs(terminals) do
    if terminal.running then
      terminal.running, terminal.state = false, "killed"
      vim.b[terminal.buf].agentchat_terminal =
        { chat = terminal.chat, title = terminal.title, running = false, state = terminal.state }
    end
  end
  -- The next helper counts from one again.
  for id, terminal in pairs(terminals) do
    api.nvim_clear_autocmds({ group = group, buffer = terminal.buf })
    terminals[id] = nil
  end
  wiped = {}
  local ended = runs
  runs = {}
  for _, run in pairs(ended) do
    run.on_end({ error = "the helper has ended" })
  end
end

--- Windows may have another size, or show other terminals.
function M.resized()
  for _, terminal in pairs(terminals) do
    tell_size(terminal)
  end
end

api.nvim_create_autocmd({ "WinResized", "VimResized" }, { group = group, callback = M.resized })

return M
