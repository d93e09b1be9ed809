--- Completion in the prompt: the agent's commands after `/`, files and context after `@`.
---
--- It is a language server inside of Neovim, attached to prompt buffers only, so that Neovim's own completion and every
--- completion plugin can use it. Commands are known here; for files the helper is asked by a notification, and the answer
--- goes to whoever asked when it comes. No key waits for it.

local M = {}

local api = vim.api
local mentions = require("agentchat.mentions")

local NAME = "agentchat"
local MAX_FILES = 50

local kinds = vim.lsp.protocol.CompletionItemKind

---@class agentchat.Completion what is offered, before it becomes an item of the protocol
---@field label string
---@field text string what it writes
---@field kind lsp.CompletionItemKind
---@field detail? string
---@field doc? string

---@class agentchat.Question
---@field answer fun(files: string[])
---@field drop fun() nobody waits for the answer any more

---@type table<integer, agentchat.Question> what the helper was asked, by number; only the newest is open
local open = {}
local last_question = 0

---@type table<integer, boolean> for the buffers in which Neovim's own completion is on: whether it shows by itself
local own = {}

--- Whether another plugin shows completions by itself.
local function has_other_completion()
  return package.loaded["blink.cmp"] ~= nil or package.loaded["cmp"] ~= nil or package.loaded["mini.completion"] ~= nil
end

---@param range lsp.Range
---@param typed string what is there now; items pass the filters of whoever shows them because of it
---@param index integer
---@param item agentchat.Completion
---@return lsp.CompletionItem
local function completion_item(range, typed, index, item)
  return {
    label = item.label,
    kind = item.kind,
    detail = item.detail,
    documentation = item.doc,
    filterText = typed,
    sortText = ("%05d"):format(index),
    textEdit = { range = range, newText = item.text },
  }
end

---@param row integer 0-based
---@param from integer 0-based byte
---@param to integer
---@return lsp.Range
local function range_of(row, from, to)
  return { start = { line = row, character = from }, ["end"] = { line = row, character = to } }
end

---@param chat agentchat.Chat
---@param typed string the line before the cursor
---@return lsp.CompletionList
local function commands(chat, typed)
  local range = range_of(0, 0, #typed)
  local items = {}
  local wanted = typed:sub(2):lower()
  for _, command in ipairs(chat.commands) do
    if vim.startswith(command.name:lower(), wanted) then
      items[#items + 1] = completion_item(range, typed, #items + 1, {
        label = "/" .. command.name,
        text = "/" .. command.name .. (command.hint and " " or ""),
        -- Not a function: to those, plugins add brackets.
        kind = kinds.Keyword,
        detail = command.hint,
        doc = command.description,
      })
    end
  end
  return { isIncomplete = true, items = items }
end

--- The words that fit what was typed.
---@param query string
---@return agentchat.Completion[]
local function special_items(query)
  local context = require("agentchat.context")
  local names = vim.tbl_filter(function(name)
    return name ~= query and vim.startswith(name, query)
  end, vim.tbl_keys(context.specials))
  table.sort(names)
  return vim.tbl_map(function(name)
    local special = context.specials[name]
    return {
      label = "@" .. name,
      text = "@" .. name,
      kind = kinds.Keyword,
      detail = special.describe() or "nothing now",
      doc = special.doc,
    }
  end, names)
end

local function drop_open()
  for number, question in pairs(open) do
    open[number] = nil
    question.drop()
  end
end

--- Asks the helper for files; what was asked before is not wanted any more.
---@param chat agentchat.Chat
---@param query string
---@param question agentchat.Question
local function ask(chat, query, question)
  drop_open()
  last_question = last_question + 1
  open[last_question] = question
  require("agentchat.helper").notify("find_files", {
    id = last_question,
    cwd = chat.cwd,
    query = (query:gsub("^%./", "")),
    limit = MAX_FILES,
  })
end

--- The helper has found files.
---@param number integer the question's
---@param files string[]
function M.files_found(number, files)
  local question = open[number]
  if question then
    open[number] = nil
    question.answer(files)
  end
end

---@param chat agentchat.Chat
---@param row integer
---@param before string the line before the cursor
---@param query string
---@param start integer 0-based byte of the `@`
---@param reply fun(err: table?, result: lsp.CompletionList?)
---@param drop fun()
local function complete_mention(chat, row, before, query, start, reply, drop)
  local typed = before:sub(start + 1)
  local range = range_of(row, start, #before)
  local found = special_items(query)
  local function list(files)
    for _, file in ipairs(files) do
      local text = mentions.write(file)
      -- What is typed already would only cover what is below it.
      if text ~= typed then
        local is_folder = file:sub(-1) == "/"
        found[#found + 1] = { label = file, text = text, kind = is_folder and kinds.Folder or kinds.File }
      end
    end
    local items = {}
    for i, item in ipairs(found) do
      items[i] = completion_item(range, typed, i, item)
    end
    return { isIncomplete = true, items = items }
  end
  if require("agentchat.helper").state ~= "ready" then
    reply(nil, list({}))
    return
  end
  ask(chat, query, {
    answer = function(files)
      reply(nil, list(files))
    end,
    drop = drop,
  })
end

---@param params lsp.CompletionParams
---@return agentchat.Chat? chat nil if this is no prompt
---@return string before the line before the cursor
local function place(params)
  local id = tonumber(params.textDocument.uri:match("prompt/(%d+)$"))
  local chat = id and require("agentchat.chats").get(id)
  if not chat or not chat.prompt or not api.nvim_buf_is_loaded(chat.prompt) then
    return nil, ""
  end
  local row = params.position.line
  local line = api.nvim_buf_get_lines(chat.prompt, row, row + 1, false)[1] or ""
  return chat, line:sub(1, params.position.character)
end

---@param params lsp.CompletionParams
---@param reply fun(err: table?, result: lsp.CompletionList?)
---@param drop fun() called instead of `reply`: nobody waits any more
local function complete(params, reply, drop)
  local nothing = { isIncomplete = false, items = {} }
  local chat, before = place(params)
  if not chat then
    reply(nil, nothing)
    return
  end
  local row = params.position.line
  local query, start = mentions.being_typed(before)
  if query then
    complete_mention(chat, row, before, query, start --[[@as integer]], reply, drop)
  elseif row == 0 and before:find("^/%S*$") then
    reply(nil, commands(chat, before))
  else
    reply(nil, nothing)
  end
end

--- Whether the answer to a question that is asked now is wanted when it comes. Neovim's own completion begins with every
--- answer, also with an empty one and with one to a prompt that has been sent meanwhile, and keeps <C-p> and <C-n> for
--- itself then. Others compare, and must be answered.
---@param params lsp.CompletionParams
---@return fun(result?: lsp.CompletionList): boolean
local function interest(params)
  local _, before = place(params)
  return function(result)
    local chat, now = place(params)
    if not chat or own[chat.prompt] == nil or has_other_completion() then
      return true
    end
    return result ~= nil and #result.items > 0 and now == before
  end
end

local capabilities = {
  positionEncoding = "utf-8",
  completionProvider = { triggerCharacters = { "/", "@" } },
  textDocumentSync = { openClose = false, change = 0 },
}

---@type table<string, fun(params: table, reply: fun(err: table?, result: any), drop: fun())>
local methods = {
  initialize = function(_, reply)
    reply(nil, { capabilities = capabilities, serverInfo = { name = NAME } })
  end,
  shutdown = function(_, reply)
    drop_open()
    reply(nil, vim.NIL)
  end,
  ["textDocument/completion"] = complete,
}

--- The server, as `vim.lsp.start()` takes it.
---@param dispatchers vim.lsp.rpc.Dispatchers
---@return vim.lsp.rpc.PublicClient
local function server(dispatchers)
  local closing = false
  local last_id = 0
  local function close()
    if not closing then
      closing = true
      dispatchers.on_exit(0, 0)
    end
  end
  return {
    request = function(method, params, callback, notify_reply)
      if closing then
        return false
      end
      last_id = last_id + 1
      local id = last_id
      local handler = methods[method]
      -- Never inside of the request: whoever asks does not expect the answer yet.
      -- Neovim's own transport does not pass the answer to a cancelled request on either.
      local drop = vim.schedule_wrap(function()
        if notify_reply then
          notify_reply(id)
        end
      end)
      local is_wanted = method == "textDocument/completion" and interest(params) or nil
      local reply = vim.schedule_wrap(function(err, result)
        if notify_reply then
          notify_reply(id)
        end
        if not is_wanted or is_wanted(result) then
          callback(err, result)
        end
      end)
      if handler then
        handler(params, reply, drop)
      else
        reply({ code = -32601, message = "Method not found: " .. method })
      end
      return true, id
    end,
    notify = function(method)
      if method == "exit" then
        close()
      end
      return not closing
    end,
    is_closing = function()
      return closing
    end,
    terminate = close,
  }
end

--- 'omnifunc' for Neovim 0.10, whose own offers only what begins with what was typed, and cuts at spaces.
---@param findstart integer
---@return integer|table
function M.omnifunc(findstart)
  if findstart == 0 then
    return {}
  end
  local buf = api.nvim_get_current_buf()
  local row, col = unpack(api.nvim_win_get_cursor(0))
  local line = api.nvim_get_current_line()
  local show = vim.schedule_wrap(function(_, result)
    local first = result and result.items[1]
    -- Who has typed on, or gone elsewhere, is not interrupted.
    local same = api.nvim_get_current_buf() == buf and api.nvim_get_current_line() == line
    if first and same and api.nvim_win_get_cursor(0)[2] == col and api.nvim_get_mode().mode:find("^i") then
      local words = vim.tbl_map(function(item)
        local info = item.documentation
        local kind = vim.lsp.protocol.CompletionItemKind[item.kind]
        return { word = item.textEdit.newText, abbr = item.label, menu = item.detail, info = info, kind = kind }
      end, result.items)
      vim.fn.complete(first.textEdit.range.start.character + 1, words)
    end
  end)
  complete({
    textDocument = { uri = vim.uri_from_bufnr(buf) },
    position = { line = row - 1, character = col },
  }, show, function() end)
  -- Not found yet, but stay in completion mode (|complete-functions|).
  return -2
end

--- Sets Neovim's own completion up. Another plugin may be loaded as late as insert mode, so this is decided anew each time.
---@param client_id integer
---@param buf integer
local function enable(client_id, buf)
  if not vim.lsp.completion or not vim.lsp.completion.enable then
    vim.bo[buf].omnifunc = "v:lua.require'agentchat.completion'.omnifunc"
    return
  end
  local auto = require("agentchat.config").get().completion.autotrigger and not has_other_completion()
  if own[buf] == auto then
    return
  end
  if own[buf] ~= nil then
    vim.lsp.completion.enable(false, client_id, buf)
  end
  own[buf] = auto
  vim.lsp.completion.enable(true, client_id, buf, {
    autotrigger = auto,
    convert = function(item)
      return { word = item.textEdit and item.textEdit.newText or item.label }
    end,
  })
  if auto then
    -- What is offered while typing must not be inserted before it is chosen.
    pcall(api.nvim_set_option_value, "completeopt", "menuone,noselect,popup", { buf = buf })
  end
end

--- cmp-nvim-lsp looks for servers only when insert mode begins, and may have looked before this one was there.
---@param buf integer
local function look_again(buf)
  local is_typing = api.nvim_get_current_buf() == buf and api.nvim_get_mode().mode:find("^i")
  if is_typing and package.loaded["cmp_nvim_lsp"] then
    pcall(api.nvim_exec_autocmds, "InsertEnter", { group = "cmp_nvim_lsp", modeline = false })
  end
end

---@param client_id integer
---@param buf integer
local function ready(client_id, buf)
  enable(client_id, buf)
  -- Insert mode may be just about to begin.
  vim.schedule(function()
    look_again(buf)
  end)
end

--- Attaches the server to a prompt buffer. Loading what Neovim needs for that takes some milliseconds, so this is not for
--- the moment in which a chat opens; but completion plugins must find the server when insert mode begins.
---@param buf integer
function M.attach(buf)
  if not api.nvim_buf_is_loaded(buf) then
    return
  end
  local attached = vim.lsp.get_clients({ name = NAME, bufnr = buf })[1]
  if attached then
    if attached.initialized then
      enable(attached.id, buf)
    end
    return
  end
  own[buf] = nil
  local client_id = vim.lsp.start({
    name = NAME,
    cmd = server,
    on_init = function(client)
      -- Neovim 0.10 does not take the server's word for it.
      client.offset_encoding = "utf-8"
    end,
  }, {
    bufnr = buf,
    reuse_client = function(client, config)
      return client.name == config.name
    end,
    silent = true,
  })
  if not client_id then
    return
  end
  local client = vim.lsp.get_client_by_id(client_id)
  if client and client.initialized then
    ready(client_id, buf)
    return
  end
  api.nvim_create_autocmd("LspAttach", {
    buffer = buf,
    callback = function(args)
      if args.data.client_id == client_id then
        ready(client_id, buf)
        return true
      end
    end,
  })
end

return M
