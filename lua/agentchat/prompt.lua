--- The prompt buffer: an ordinary buffer whose text is sent to the agent.

local M = {}

local api = vim.api
local last_prompt = 0

--- Milliseconds after which a new prompt gets its completion: the chat is drawn by then, and nobody types yet.
local COMPLETION_DELAY = 30

--- Whether the user was told that there is no completion.
local told_of_completion = false

---@param chat agentchat.Chat
---@return string
function M.name(chat)
  return ("agentchat://prompt/%d"):format(chat.id)
end

--- The text in the prompt buffer.
---@param chat agentchat.Chat
---@return string
function M.text(chat)
  local buf = chat.prompt
  if not buf or not api.nvim_buf_is_loaded(buf) then
    return ""
  end
  return table.concat(api.nvim_buf_get_lines(buf, 0, -1, true), "\n")
end

---@param text string
local function is_blank(text)
  return text:find("%S") == nil
end

--- Shows the placeholder, what goes along, and the right height for what is in the buffer.
---@param chat agentchat.Chat
local function refresh(chat)
  local buf = chat.prompt
  if buf and api.nvim_buf_is_loaded(buf) then
    local hint = require("agentchat.prompt_hint")
    hint.placeholder(chat, buf)
    hint.along(chat)
    require("agentchat.layout_sizes").fit_prompt(chat)
    require("agentchat.draft").save_later(chat)
  end
end

--- Replaces the text of the prompt buffer, with the cursor at its end.
---@param chat agentchat.Chat
---@param text string
local function set_text(chat, text)
  local buf = M.ensure(chat)
  local lines = vim.split(text, "\n", { plain = true })
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    api.nvim_win_set_cursor(win, { #lines, #lines[#lines] })
  end
  refresh(chat)
end

---@param buf integer
local function map_keys(buf)
  local function map(modes, lhs, rhs, desc, expr)
    vim.keymap.set(modes, lhs, rhs, { buffer = buf, desc = desc, expr = expr, replace_keycodes = expr })
  end
  local call = "<Cmd>lua require('agentchat.prompt').%s<CR>"
  local send = call:format("send_current()")
  map("n", "<Plug>(agentchat-send)", send, "Send the prompt")
  map("i", "<Plug>(agentchat-send)", function()
    -- Any other key ends completion, also one whose menu is not drawn yet. It would keep <C-p> and <C-n> for itself.
    return (vim.fn.complete_info({ "mode" }).mode ~= "" and "<C-g>u" or "") .. send
  end, "Send the prompt", true)
  map({ "n", "i" }, "<Plug>(agentchat-history-prev)", call:format("recall(-1)"), "The prompt before")
  map({ "n", "i" }, "<Plug>(agentchat-history-next)", call:format("recall(1)"), "The prompt after")
  map("i", "<Plug>(agentchat-paste-image)", "<Cmd>lua require('agentchat.paste').image()<CR>", "Paste an image")
  map("n", "<CR>", "<Plug>(agentchat-send)", "Send the prompt")
  map({ "n", "i" }, "<C-s>", "<Plug>(agentchat-send)", "Send the prompt")
  map({ "n", "i" }, "<C-p>", function()
    return M.at_end(-1) and "<Plug>(agentchat-history-prev)" or "<C-p>"
  end, "The prompt before (in the first line)", true)
  map({ "n", "i" }, "<C-n>", function()
    return M.at_end(1) and "<Plug>(agentchat-history-next)" or "<C-n>"
  end, "The prompt after (in the last line)", true)
end

---@param chat agentchat.Chat
---@param buf integer
local function own(chat, buf)
  vim.b[buf].agentchat = chat.id
  map_keys(buf)
  local group = api.nvim_create_augroup("agentchat.prompt." .. buf, {})
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = callback })
  end
  on({ "TextChanged", "TextChangedI", "TextChangedP" }, function()
    refresh(chat)
  end)
  on({ "InsertLeave", "BufLeave", "BufHidden", "CursorHold" }, function()
    require("agentchat.draft").save(chat)
  end)
  local function complete()
    local ok, reason = pcall(function()
      require("agentchat.completion").attach(buf)
    end)
    if not ok and not told_of_completion then
      -- Raised here, an error of several lines would bring up the hit-enter prompt, and Neovim answers nobody then.
      told_of_completion = true
      local text = ("the prompt has no completion (%s); entering insert mode tries again"):format(tostring(reason))
      require("agentchat.message").show("warn", text)
    end
  end
  vim.defer_fn(complete, COMPLETION_DELAY)
  on("InsertEnter", complete)
  require("agentchat.paste").watch()
  on("BufUnload", function()
    require("agentchat.prompt_hint").forget(chat)
    require("agentchat.draft").keep(chat)
    api.nvim_del_augroup_by_id(group)
    vim.schedule(require("agentchat.lifecycle").sweep)
  end)
  vim.bo[buf].filetype = "agentchat_prompt"
end

---@param chat agentchat.Chat
---@param buf integer
---@param restored boolean whether a session file brought the buffer
local function begin(chat, buf, restored)
  chat.prompt = buf
  own(chat, buf)
  local draft = require("agentchat.draft").load(chat, restored)
  if draft and is_blank(M.text(chat)) then
    local lines = vim.split(draft, "\n", { plain = true })
    api.nvim_buf_set_lines(buf, 0, -1, true, lines)
    local last = { #lines, #lines[#lines] }
    chat.views.prompt = chat.views.prompt or { view = { lnum = last[1], col = last[2] }, at_end = true }
  end
  local hint = require("agentchat.prompt_hint")
  hint.placeholder(chat, buf)
  if draft then
    hint.along(chat)
  end
end

--- The chat's prompt buffer, made when it is not there (any more).
---@param chat agentchat.Chat
---@return integer buf
function M.ensure(chat)
  if not chat.prompt or not api.nvim_buf_is_loaded(chat.prompt) then
    begin(chat, require("agentchat.chats").create_buffer(M.name(chat)), false)
  end
  return chat.prompt --[[@as integer]]
end

--- Takes over a buffer that has the name of this chat's prompt (from a session file, say).
---@param chat agentchat.Chat
---@param buf integer
function M.adopt(chat, buf)
  require("agentchat.chats").prepare_buffer(buf)
  begin(chat, buf, true)
end

--- Sends a text and what it mentions to the chat's agent.
---@param chat agentchat.Chat
---@param text string
---@return boolean sent
function M.send(chat, text)
  require("agentchat.lifecycle").start(chat)
  local helper = require("agentchat.helper")
  if helper.state == "failed" then
    require("agentchat.message").show("error", "not sent, the helper is not running: :AgentChat restart")
    return false
  end
  last_prompt = last_prompt + 1
  chat.texts[last_prompt] = text
  require("agentchat.history").add(chat.texts[last_prompt])
  local parts = require("agentchat.context").parts(chat, text)
  helper.notify("prompt", { chat = chat.id, id = last_prompt, parts = parts })
  if helper.state ~= "ready" then
    chat.waiting[#chat.waiting + 1] = last_prompt
    chat.waiting_is_guess = true
    require("agentchat.status").refresh(chat)
  end
  return true
end

---@return agentchat.Chat?
local function current()
  local chat, kind = require("agentchat.chats").of_buffer(api.nvim_get_current_buf())
  return kind == "prompt" and chat or nil
end

--- Sends what is in the current prompt buffer.
function M.send_current()
  local chat = current()
  if not chat then
    return
  end
  local text = M.text(chat)
  if is_blank(text) then
    return
  end
  text = text:gsub("%s+$", "")
  if M.send(chat, text) then
    set_text(chat, "")
    require("agentchat.draft").save(chat)
  end
end

--- Whether a key at this end of the prompt goes through the history.
---@param step -1|1
function M.at_end(step)
  local chat = current()
  if not chat or vim.fn.pumvisible() == 1 or vim.v.count > 0 then
    return false
  end
  if api.nvim_win_get_cursor(0)[1] ~= (step < 0 and 1 or api.nvim_buf_line_count(0)) then
    return false
  end
  local takes_back = step < 0 and #chat.waiting > 0 and is_blank(M.text(chat))
  return takes_back or require("agentchat.history").can(chat.id, step)
end

--- Puts the prompt before or after into the current prompt buffer; before an empty one, the newest queued prompt.
---@param step -1|1
function M.recall(step)
  local chat = current()
  if not chat then
    return
  end
  local text = M.text(chat)
  if step < 0 and is_blank(text) and #chat.waiting > 0 then
    M.take_back(chat)
    return
  end
  local found = require("agentchat.history").move(chat.id, step, text)
  if found then
    set_text(chat, found)
  end
end

--- Adds text to the prompt, below what the user has typed.
---@param chat agentchat.Chat
---@param text string
local function put_back(chat, text)
  require("agentchat.textlock").run(function()
    local buf = M.ensure(chat)
    if is_blank(M.text(chat)) then
      set_text(chat, text)
    else
      api.nvim_buf_set_lines(buf, -1, -1, true, vim.split(text, "\n", { plain = true }))
      refresh(chat)
    end
  end)
end

---@param chat agentchat.Chat
---@param id integer
local function forget_waiting(chat, id)
  for i, waiting in ipairs(chat.waiting) do
    if waiting == id then
      table.remove(chat.waiting, i)
      break
    end
  end
  chat.texts[id] = nil
  require("agentchat.status").refresh(chat)
end

--- Takes the newest queued prompt back into the prompt buffer.
---@param chat agentchat.Chat
function M.take_back(chat)
  local id = chat.waiting[#chat.waiting]
  if not id then
    require("agentchat.message").show("info", "no prompt is queued")
    return
  end
  local helper = require("agentchat.helper")
  local unsent = helper.withdraw(function(method, arg)
    return method == "prompt" and arg.id == id
  end)
  if #unsent > 0 then
    M.taken_back(chat.id, id, chat.texts[id])
  else
    helper.notify("take_back", { chat = chat.id, id = id })
  end
end

--- Takes the newest queued prompt of the current tab page's chat back.
function M.take_back_current()
  local chat = require("agentchat.chats").current()
  if chat then
    M.take_back(chat)
  else
    require("agentchat.message").show("info", "no prompt is queued")
  end
end

--- Takes all prompts back that the helper has not seen, because it is still starting.
---@param chat agentchat.Chat
---@return boolean any
function M.withdraw_unsent(chat)
  local unsent = require("agentchat.helper").withdraw(function(method, arg)
    return method == "prompt" and arg.chat == chat.id
  end)
  for _, prompt in ipairs(unsent) do
    M.taken_back(chat.id, prompt.id, chat.texts[prompt.id])
  end
  return #unsent > 0
end

--- The helper has removed a queued prompt.
---@param chat_id integer
---@param id integer
---@param text string as it was written
function M.taken_back(chat_id, id, text)
  local chat = require("agentchat.chats").get(chat_id)
  if not chat then
    return
  end
  forget_waiting(chat, id)
  put_back(chat, text)
end

--- What the agent takes may be known now.
---@param chat agentchat.Chat
function M.status_changed(chat)
  if chat.lines_along > 0 then
    require("agentchat.prompt_hint").along(chat)
  end
end

--- Writes into the prompt: at the cursor if the user is in it, else at the end.
---@param chat agentchat.Chat
---@param words string
function M.insert(chat, words)
  local buf = M.ensure(chat)
  local win = api.nvim_get_current_win()
  local row, col = api.nvim_buf_line_count(buf) - 1, nil
  local here = api.nvim_win_get_buf(win) == buf
  if here then
    row, col = unpack(api.nvim_win_get_cursor(win))
    row = row - 1
  end
  local line = api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
  -- In normal mode the cursor is on a character, and what is added comes after it.
  local inserts = api.nvim_get_mode().mode:find("^i")
  col = math.min(#line, (not col or not here) and #line or inserts and col or col + 1)
  while col < #line and line:byte(col + 1) >= 0x80 and line:byte(col + 1) < 0xc0 do
    col = col + 1
  end
  local before = line:sub(1, col)
  local text = (before:find("%S$") and " " or "") .. words .. " "
  api.nvim_buf_set_text(buf, row, col, row, col, { text })
  if here then
    api.nvim_win_set_cursor(win, { row + 1, col + #text })
  end
  refresh(chat)
  require("agentchat.draft").save(chat)
end

--- The helper's list of the prompts that wait.
---@param chat_id integer
---@param ids integer[] oldest first
---@param shown integer the newest prompt of which the user sees what became of it
function M.queued(chat_id, ids, shown)
  local chat = require("agentchat.chats").get(chat_id)
  if not chat then
    return
  end
  local waits = {}
  for _, id in ipairs(ids) do
    waits[id] = true
  end
  for id in pairs(chat.texts) do
    if id <= shown and not waits[id] then
      chat.texts[id] = nil
    end
  end
  require("agentchat.draft").save_later(chat)
  chat.waiting, chat.waiting_is_guess = ids, false
  require("agentchat.status").refresh(chat)
  refresh(chat)
end

--- The prompts that would be lost with the helper: those that wait, and those of which it has not said what became of
--- them.
---@param chat agentchat.Chat
---@return string[] oldest first
function M.unconfirmed(chat)
  local ids = vim.tbl_keys(chat.texts)
  table.sort(ids)
  return vim.tbl_map(function(id)
    return chat.texts[id]
  end, ids)
end

--- The helper is gone: gives the prompts that were lost with it back to the prompt buffer.
---@param chat agentchat.Chat
function M.give_back(chat)
  local lost = M.unconfirmed(chat)
  chat.texts, chat.waiting = {}, {}
  for _, text in ipairs(lost) do
    put_back(chat, text)
  end
  require("agentchat.draft").save(chat)
end

return M
