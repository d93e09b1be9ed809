--- What the prompt shows besides its text: a placeholder, and below the text what will go along with it, and in which
--- form if the agent does not take it as it is.

local M = {}

local api = vim.api
local mentions = require("agentchat.mentions")

local placeholder_ns = api.nvim_create_namespace("agentchat.hint")
local along_ns = api.nvim_create_namespace("agentchat.along")

--- How long to wait for more keys, in milliseconds.
local PAUSE = 80
--- How long it is known what a path is, in milliseconds.
local FRESH = 2000
--- What is larger goes as a link (`src/nvim/context.rs`), in bytes.
local MAX_BYTES = { file = 512 * 1024, image = 10 * 1024 * 1024 }
local MAX_KNOWN = 1000
local IMAGES = { png = true, jpg = true, jpeg = true, gif = true, webp = true }

---@class agentchat.PathKind
---@field kind "file"|"folder"|"image"|"missing"
---@field large boolean whether it is too large to go along
---@field at integer when that was so

---@type table<string, agentchat.PathKind> by absolute path
local known = {}
local known_count = 0
---@type table<integer, uv.uv_timer_t> by chat
local timers = {}

---@param chat agentchat.Chat
---@param buf integer
function M.placeholder(chat, buf)
  api.nvim_buf_clear_namespace(buf, placeholder_ns, 0, -1)
  if api.nvim_buf_line_count(buf) == 1 and api.nvim_buf_get_lines(buf, 0, 1, true)[1] == "" then
    local hint = #chat.waiting > 0 and "<C-p> takes back the queued prompt" or "Ask the agent. <CR> or <C-s> sends"
    api.nvim_buf_set_extmark(buf, placeholder_ns, 0, 0, {
      virt_text = { { hint, "AgentChatDim" } },
      virt_text_pos = "overlay",
    })
  end
end

--- Looks at a path without waiting for the disk.
---@param path string
---@param done fun()
---@return agentchat.PathKind? nil while that is not known
local function kind_of(path, done)
  local entry = known[path]
  if entry and vim.uv.now() - entry.at < FRESH then
    return entry
  end
  vim.uv.fs_stat(path, function(_, stat)
    local kind = "missing"
    if stat then
      local extension = (path:match("%.(%w+)$") or ""):lower()
      kind = stat.type == "directory" and "folder" or IMAGES[extension] and "image" or "file"
    end
    if known_count > MAX_KNOWN then
      known, known_count = {}, 0
    end
    known_count = known_count + 1
    local limit = MAX_BYTES[kind]
    known[path] = { kind = kind, large = limit ~= nil and stat.size > limit, at = vim.uv.now() }
    vim.schedule(done)
  end)
  return entry
end

---@class agentchat.Along
---@field counts table<string, integer>
---@field words string[]
---@field images string[] names
---@field large string[] names of what is too large to go along
---@field marks { [1]: integer, [2]: integer, [3]: integer }[] row, first byte, last byte

---@param chat agentchat.Chat
---@param mention agentchat.Mention
---@param along agentchat.Along
---@param again fun()
---@return boolean stands whether it stands for something
local function count(chat, mention, along, again)
  local context = require("agentchat.context")
  local special = not mention.quoted and not mention.first and context.specials[mention.name]
  if special then
    local words = special.describe()
    along.words[#along.words + 1] = words or ("no %s"):format(mention.name)
    return words ~= nil
  end
  local buf, first, last = context.lines_of(mention)
  if buf then
    along.words[#along.words + 1] = ("%d lines"):format(last - first + 1):gsub("^1 lines", "1 line")
    return true
  end
  local path = mentions.path(mention.name, chat.cwd)
  local found = kind_of(path, again)
  local kind = found and found.kind
  if not kind or kind == "missing" then
    return false
  end
  along.counts[kind] = (along.counts[kind] or 0) + 1
  if found.large and not mention.first then
    along.large[#along.large + 1] = vim.fs.basename(path)
  end
  if kind == "image" then
    along.images[#along.images + 1] = vim.fs.basename(path)
  end
  return true
end

---@param chat agentchat.Chat
---@param buf integer
---@param again fun()
---@return agentchat.Along
local function collect(chat, buf, again)
  local along = { counts = {}, words = {}, images = {}, large = {}, marks = {} }
  for row, line in ipairs(api.nvim_buf_get_lines(buf, 0, -1, false)) do
    if line:find("@", 1, true) then
      for _, mention in ipairs(mentions.in_line(line)) do
        if count(chat, mention, along, again) then
          along.marks[#along.marks + 1] = { row - 1, mention.start, mention.stop }
        end
      end
    end
  end
  return along
end

---@param number integer
---@param one string
---@return string
local function counted(number, one)
  return ("%d %s%s"):format(number, one, number == 1 and "" or "s")
end

--- What goes along, and what the user should know about it.
---@param chat agentchat.Chat
---@param along agentchat.Along
---@return { [1]: string, [2]: string }[] words that stay together, and their highlight group; none when nothing goes along
local function phrases(chat, along)
  local parts = {}
  local files, folders, images = along.counts.file or 0, along.counts.folder or 0, along.counts.image or 0
  if files > 0 then
    parts[#parts + 1] = counted(files, "file")
  end
  if folders > 0 then
    parts[#parts + 1] = counted(folders, "folder")
  end
  vim.list_extend(parts, along.words)
  if images > 0 then
    parts[#parts + 1] = counted(images, "image")
  end
  local found = {}
  for i, part in ipairs(parts) do
    found[i] = { (i == 1 and "with " or "") .. part .. (i < #parts and "," or ""), "AgentChatDim" }
  end
  local takes = chat.status.prompt_capabilities
  local agent = chat.status.agent or chat.agent or "the agent"
  if takes and not takes.image and images > 0 then
    local what = images == 1 and along.images[1] or counted(images, "image")
    found[#found + 1] = { ("· %s takes no images:"):format(agent), "AgentChatStop" }
    found[#found + 1] = { ("%s as a link"):format(what), "AgentChatStop" }
  end
  if takes and not takes.embedded_context and files > 0 then
    found[#found + 1] = { ("· %s takes files as links"):format(agent), "AgentChatDim" }
  end
  for _, name in ipairs(along.large) do
    found[#found + 1] = { ("· %s is large: as a link"):format(name), "AgentChatStop" }
  end
  return found
end

--- Virtual lines do not wrap by themselves.
---@param found { [1]: string, [2]: string }[]
---@param width integer
---@return { [1]: string, [2]: string }[][] lines
local function wrapped(found, width)
  local lines = {}
  local used = 0
  for _, phrase in ipairs(found) do
    local room = vim.fn.strdisplaywidth(phrase[1]) + 1
    if #lines == 0 or used + room > width then
      lines[#lines + 1] = {}
      used = 0
    end
    used = used + room
    table.insert(lines[#lines], { phrase[1] .. " ", phrase[2] })
  end
  return lines
end

---@param chat agentchat.Chat
local function show(chat)
  local buf = chat.prompt
  if not buf or not api.nvim_buf_is_loaded(buf) then
    return
  end
  local along = collect(chat, buf, function()
    M.along(chat)
  end)
  local win = vim.fn.win_findbuf(buf)[1]
  local lines = wrapped(phrases(chat, along), win and api.nvim_win_get_width(win) or 40)
  api.nvim_buf_clear_namespace(buf, along_ns, 0, -1)
  for _, mark in ipairs(along.marks) do
    api.nvim_buf_set_extmark(buf, along_ns, mark[1], mark[2], { end_col = mark[3], hl_group = "AgentChatMention" })
  end
  if #lines > 0 then
    api.nvim_buf_set_extmark(buf, along_ns, api.nvim_buf_line_count(buf) - 1, 0, { virt_lines = lines })
  end
  if #lines ~= chat.lines_along then
    chat.lines_along = #lines
    require("agentchat.layout_sizes").fit_prompt(chat)
  end
end

--- Shows what will go along, once no key has come for a moment.
---@param chat agentchat.Chat
function M.along(chat)
  if not chat.prompt or not api.nvim_buf_is_loaded(chat.prompt) then
    return
  end
  local timer = timers[chat.id]
  if not timer then
    timer = assert(vim.uv.new_timer())
    timers[chat.id] = timer
  end
  timer:start(
    PAUSE,
    0,
    vim.schedule_wrap(function()
      local ok, problem = pcall(show, chat)
      if not ok then
        require("agentchat.message").show("error", ("what goes along cannot be shown: %s"):format(problem))
      end
    end)
  )
end

--- The chat is gone.
---@param chat agentchat.Chat
function M.forget(chat)
  local timer = timers[chat.id]
  if timer then
    timers[chat.id] = nil
    timer:stop()
    timer:close()
  end
end

return M
