--- `:AgentChat`: the subcommands as a table, from which they are run and completed.

---@class agentchat.Subcommand
---@field run fun(args: string, opts: vim.api.keyset.create_user_command.command_args)
---@field complete? fun(lead: string, typed: string): string[] `typed`: all behind the subcommand
---@field bang? boolean whether it knows `:AgentChat!`
---@field takes "nothing"|"argument"|"text"

local M = {}

---@return table
local function chat()
  return require("agentchat")
end

---@return string[]
local function agent_names()
  local names = vim.tbl_keys(require("agentchat.config").get().agents)
  local info = require("agentchat.helper").info
  for _, name in ipairs(info and info.agents or {}) do
    if not vim.list_contains(names, name) then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

---@param prefix string kind of the options
---@return fun(): string[]
local function option_ids(prefix)
  return function()
    local ids = {}
    for _, option in ipairs(require("agentchat.permission").options()) do
      local opposite = prefix == "allow" and "reject" or "allow"
      if not vim.startswith(option.kind or "", opposite) then
        ids[#ids + 1] = option.id
      end
    end
    return ids
  end
end

--- The file names that may be added.
---@param lead string
---@return string[]
local function file_names(lead)
  return vim.fn.getcompletion(lead, "file")
end

--- File names with wildcards, `~` and `%` replaced, unless a file has that very name.
---@param names string[]
---@return string[]
local function expanded(names)
  local files = {}
  for _, name in ipairs(names) do
    vim.list_extend(files, vim.uv.fs_stat(name) and { name } or vim.fn.expand(name, false, true))
  end
  return files
end

---@param name string
---@return string?
local function given(name)
  return name ~= "" and name or nil
end

---@param words string[]
---@return fun(): string[]
local function one_of(words)
  return function()
    return words
  end
end

--- A subcommand that decides about pending changes.
---@param verb "accept"|"reject"
---@return agentchat.Subcommand
local function decision(verb)
  local scopes = { "hunk", "file", "all" }
  return {
    takes = "argument",
    complete = one_of(scopes),
    run = function(args)
      if args ~= "" and not vim.list_contains(scopes, args) then
        require("agentchat.message").show("error", (":AgentChat %s takes hunk, file or all"):format(verb))
        return
      end
      require("agentchat.changes.review").decide(verb, given(args))
    end,
  }
end

--- A subcommand that goes to a pending change; a count comes as its argument.
---@param direction 1|-1
---@return agentchat.Subcommand
local function motion(direction)
  return {
    takes = "argument",
    run = function(args)
      local count = args == "" and 1 or tonumber(args)
      if not count or count < 1 or count % 1 ~= 0 then
        require("agentchat.message").show("error", "that is no count")
        return
      end
      require("agentchat.changes.review").go(direction * count)
    end,
  }
end

--- A subcommand that sets an option of the session.
---@param name string
---@return agentchat.Subcommand
local function setting(name)
  return {
    takes = "text",
    complete = function()
      return require("agentchat.choices").values(name)
    end,
    run = function(args)
      require("agentchat.choices").set(name, given(args))
    end,
  }
end

---@type table<string, agentchat.Subcommand>
M.subcommands = {
  next = motion(1),
  prev = motion(-1),
  accept = decision("accept"),
  reject = decision("reject"),
  review = {
    takes = "argument",
    complete = one_of({ "diff", "list" }),
    run = function(args)
      if args ~= "" and args ~= "diff" and args ~= "list" then
        require("agentchat.message").show("error", ":AgentChat review takes list or diff")
        return
      end
      chat().review(given(args))
    end,
  },
  open = {
    takes = "argument",
    complete = agent_names,
    run = function(args)
      chat().open({ agent = given(args) })
    end,
  },
  new = {
    takes = "argument",
    complete = agent_names,
    run = function(args)
      chat().new({ agent = given(args) })
    end,
  },
  close = {
    takes = "nothing",
    run = function()
      chat().close()
    end,
  },
  toggle = {
    takes = "nothing",
    run = function()
      chat().toggle()
    end,
  },
  prompt = {
    takes = "text",
    run = function(args, opts)
      if args == "" then
        require("agentchat.message").show("error", ":AgentChat prompt needs a text")
        return
      end
      chat().prompt(args, opts.range > 0 and { range = { opts.line1, opts.line2 } } or nil)
    end,
  },
  add = {
    takes = "text",
    complete = file_names,
    run = function(args, opts)
      if opts.range > 0 then
        chat().add({ first = opts.line1, last = opts.line2 })
      end
      local files = expanded(vim.list_slice(opts.fargs, 2))
      if #files > 0 or opts.range == 0 then
        chat().add(unpack(files))
      end
    end,
  },
  cancel = {
    takes = "nothing",
    run = function()
      chat().cancel()
    end,
  },
  follow = {
    takes = "argument",
    complete = function()
      return { "on", "off", "toggle" }
    end,
    run = function(args)
      local wanted = given(args) or "toggle"
      if vim.list_contains({ "on", "off", "toggle" }, wanted) then
        chat().follow(wanted)
      else
        require("agentchat.message").show("error", ":AgentChat follow takes on, off or toggle")
      end
    end,
  },
  trail = {
    takes = "nothing",
    run = function()
      require("agentchat.follow.trail").fill()
    end,
  },
  allow = {
    takes = "text",
    complete = option_ids("allow"),
    run = function(args)
      require("agentchat.permission").decide("allow", given(args))
    end,
  },
  deny = {
    takes = "text",
    complete = option_ids("reject"),
    run = function(args)
      require("agentchat.permission").decide("deny", given(args))
    end,
  },
  permissions = {
    takes = "argument",
    complete = one_of({ "list" }),
    run = function(args)
      local permission = require("agentchat.permission")
      if args ~= "" and args ~= "list" then
        require("agentchat.message").show("error", ":AgentChat permissions takes list")
      elseif args == "list" or #permission.open() == 0 then
        require("agentchat.permission_list").open()
      else
        permission.show()
      end
    end,
  },
  undo = {
    takes = "argument",
    complete = function()
      return require("agentchat.undo").turns()
    end,
    run = function(args)
      if args ~= "" and not args:find("^%d+$") then
        require("agentchat.message").show("error", ":AgentChat undo takes the number of a turn")
        return
      end
      require("agentchat.undo").run(tonumber(args))
    end,
  },
  agents = {
    takes = "nothing",
    run = function()
      require("agentchat.agents").open()
    end,
  },
  answer = {
    takes = "nothing",
    run = function()
      require("agentchat.questions").answer()
    end,
  },
  signin = {
    takes = "nothing",
    run = function()
      require("agentchat.sign_in").run()
    end,
  },
  signout = {
    takes = "nothing",
    run = function()
      require("agentchat.sign_in").out()
    end,
  },
  mode = setting("mode"),
  model = setting("model"),
  set = {
    takes = "text",
    complete = function(_, typed)
      local name = typed:match("^%s*(%S+)%s")
      if name then
        return require("agentchat.choices").values(name)
      end
      return vim.tbl_map(function(option)
        return option.id
      end, require("agentchat.choices").list())
    end,
    run = function(args)
      local name, value = args:match("^(%S*)%s*(.-)$")
      require("agentchat.choices").set(given(name), given(value))
    end,
  },
  terminals = {
    takes = "argument",
    bang = true,
    complete = function()
      return require("agentchat.terminals").numbers()
    end,
    run = function(args, opts)
      local terminals = require("agentchat.terminals")
      if opts.bang then
        terminals.kill(args)
      elseif args == "" then
        terminals.list()
      else
        terminals.open_number(args)
      end
    end,
  },
  sessions = {
    takes = "nothing",
    run = function()
      require("agentchat.sessions").pick()
    end,
  },
  resume = {
    takes = "argument",
    complete = function()
      return require("agentchat.sessions").ids()
    end,
    run = function(args)
      require("agentchat.sessions").resume(given(args))
    end,
  },
  fork = {
    takes = "nothing",
    run = function()
      require("agentchat.sessions").fork()
    end,
  },
  delete = {
    takes = "argument",
    complete = function()
      return require("agentchat.sessions").ids()
    end,
    run = function(args)
      require("agentchat.sessions").delete(given(args))
    end,
  },
  restart = {
    takes = "nothing",
    run = function()
      chat().restart()
    end,
  },
  export = {
    takes = "text",
    bang = true,
    complete = function(lead)
      return vim.fn.getcompletion(lead, "file")
    end,
    run = function(args, opts)
      require("agentchat.export").run(given(args), opts.bang)
    end,
  },
  log = {
    takes = "nothing",
    run = function()
      require("agentchat.log").open()
    end,
  },
}

--- Runs one command line.
---@param opts vim.api.keyset.create_user_command.command_args
function M.run(opts)
  local message = require("agentchat.message")
  local name, args = opts.args:match("^(%S*)%s*(.-)%s*$")
  if name == "" then
    chat().toggle()
    return
  end
  local subcommand = M.subcommands[name]
  if not subcommand then
    local names = vim.tbl_keys(M.subcommands)
    table.sort(names)
    message.show("error", ("there is no :AgentChat %s; there are %s"):format(name, table.concat(names, ", ")))
  elseif opts.bang and not subcommand.bang then
    message.show("error", (":AgentChat %s takes no !"):format(name))
  elseif subcommand.takes == "nothing" and args ~= "" then
    message.show("error", (":AgentChat %s takes no argument"):format(name))
  elseif subcommand.takes == "argument" and args:find("%s") then
    message.show("error", (":AgentChat %s takes one argument"):format(name))
  else
    subcommand.run(args, opts)
  end
end

--- Completes a command line.
---@param lead string
---@param line string
---@param cursor integer
---@return string[]
function M.complete(lead, line, cursor)
  local before = line:sub(1, cursor)
  local typed = before:match("AgentChat!?%s+(.*)$") or ""
  local name = typed:match("^(%S+)%s")
  local candidates
  if name then
    local subcommand = M.subcommands[name]
    candidates = subcommand and subcommand.complete and subcommand.complete(lead, typed:sub(#name + 1)) or {}
  else
    candidates = vim.tbl_keys(M.subcommands)
    table.sort(candidates)
  end
  return vim.tbl_filter(function(candidate)
    return vim.startswith(candidate, lead)
  end, candidates)
end

return M
