--- Images from the clipboard, and files that are dragged onto the terminal (which pastes their paths).

local M = {}

local api = vim.api

local IMAGE_NAMES = { png = true, jpg = true, jpeg = true, gif = true, webp = true }

--- The programs that write the clipboard's image to standard output.
---@type { program: string, arguments: string[], here: fun(): boolean }[]
local programs = {
  {
    program = "pngpaste",
    arguments = { "-" },
    here = function()
      return vim.fn.has("mac") == 1
    end,
  },
  {
    program = "wl-paste",
    arguments = { "--no-newline", "--type", "image/png" },
    here = function()
      return vim.env.WAYLAND_DISPLAY ~= nil
    end,
  },
  {
    program = "xclip",
    arguments = { "-selection", "clipboard", "-target", "image/png", "-out" },
    here = function()
      return vim.env.DISPLAY ~= nil
    end,
  },
}

--- The command that writes the clipboard's image to standard output.
---@return string[]? command
---@return string? problem what to do about it
function M.clipboard_command()
  local missing
  for _, entry in ipairs(programs) do
    if entry.here() then
      if vim.fn.executable(entry.program) == 1 then
        return vim.list_extend({ entry.program }, entry.arguments)
      end
      missing = missing or entry.program
    end
  end
  if missing then
    return nil, ("install %s to paste images"):format(missing)
  end
  return nil, "there is no clipboard with images here (neither macOS, nor Wayland, nor X11)"
end

---@return string
local function new_path()
  local folder = vim.fs.joinpath(vim.fn.stdpath("cache") --[[@as string]], "agentchat", "images")
  vim.fn.mkdir(folder, "p", tonumber("700", 8))
  return vim.fs.joinpath(folder, ("%s-%d.png"):format(os.date("%Y%m%d-%H%M%S"), vim.uv.hrtime() % 1000000))
end

--- Adds the clipboard's image to the current tab page's next prompt. Returns at once.
function M.image()
  local message = require("agentchat.message")
  local command, problem = M.clipboard_command()
  if not command then
    message.show("error", problem --[[@as string]])
    return
  end
  local chat = require("agentchat.chats").current()
  local path = new_path()
  -- Into the file, not through Neovim: images are large.
  local shell = { "sh", "-c", 'umask 077; file=$1; shift; exec "$@" > "$file"', "sh", path }
  local ok, reason = pcall(vim.system, vim.list_extend(shell, command), { timeout = 10000 }, function(result)
    vim.uv.fs_stat(path, function(_, stat)
      vim.schedule(function()
        if result.code ~= 0 or not stat or stat.size == 0 then
          vim.uv.fs_unlink(path)
          message.show("warn", "the clipboard holds no image")
        elseif chat and require("agentchat.chats").get(chat.id) then
          require("agentchat.prompt").insert(chat, require("agentchat.mentions").write(path))
        else
          require("agentchat").add(path)
        end
      end)
    end)
  end)
  if not ok then
    message.show("error", ("the clipboard cannot be read: %s"):format(reason))
  end
end

--- The words of a pasted line as a shell would read them: terminals quote the paths of dragged files in different ways.
---@param line string
---@return string[]? words nil when quotes are left open
local function words_of(line)
  local words, word, quote = {}, nil, nil
  local i = 1
  while i <= #line do
    local char = line:sub(i, i)
    if quote then
      if char == quote then
        quote = nil
      else
        word = word .. char
      end
    elseif char == "'" or char == '"' then
      quote, word = char, word or ""
    elseif char == "\\" and i < #line then
      i = i + 1
      word = (word or "") .. line:sub(i, i)
    elseif char:find("%s") then
      if word then
        words[#words + 1] = word
      end
      word = nil
    else
      word = (word or "") .. char
    end
    i = i + 1
  end
  if quote then
    return nil
  end
  words[#words + 1] = word
  return words
end

---@param word string
---@return string? path of an image that is there
local function image_path(word)
  local ok, path = pcall(vim.uri_to_fname, word)
  if not ok or not word:find("^file://") then
    path = word
  end
  local extension = path:match("%.(%w+)$")
  if extension and IMAGE_NAMES[extension:lower()] and path:find("^[/~]") then
    path = vim.fs.normalize(path)
    local stat = vim.uv.fs_stat(path)
    return stat and stat.type == "file" and path or nil
  end
end

--- The images that a pasted text names, if it names nothing else.
---@param lines string[]
---@return string[]? paths
local function dragged(lines)
  local filled = vim.tbl_filter(function(line)
    return line:find("%S") ~= nil
  end, lines)
  if #filled == 0 or #filled > 20 or #filled[1] > 4096 then
    return nil
  end
  local paths = {}
  for _, line in ipairs(filled) do
    -- A path with bare spaces is one path.
    local whole = image_path(vim.trim(line))
    local words = whole and { whole } or words_of(line)
    for _, word in ipairs(words or { "" }) do
      local path = image_path(word)
      if not path then
        return nil
      end
      paths[#paths + 1] = path
    end
  end
  return paths
end

local watching = false

--- Turns the path of an image that is pasted into a prompt into a mention; everything else is pasted as ever.
function M.watch()
  if watching then
    return
  end
  watching = true
  local paste = vim.paste
  ---@diagnostic disable-next-line: duplicate-set-field
  vim.paste = function(lines, phase)
    if phase == -1 then
      local chat, kind = require("agentchat.chats").of_buffer(api.nvim_get_current_buf())
      local paths = chat and kind == "prompt" and dragged(lines)
      if paths then
        local mentions = require("agentchat.mentions")
        local labels = vim.tbl_map(function(path)
          return mentions.write(mentions.name(path, chat.cwd))
        end, paths)
        require("agentchat.prompt").insert(chat --[[@as agentchat.Chat]], table.concat(labels, " "))
        return true
      end
    end
    return paste(lines, phase)
  end
end

return M
