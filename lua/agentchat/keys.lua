--- The keys of the transcript: `<Plug>` mappings, and default keys for them that are no commands of Neovim's that make
--- sense there.

local M = {}

---@class agentchat.Key
---@field plug string
---@field key string
---@field modes string[]
---@field rhs string|fun(): string keys, or what gives them
---@field desc string

---@param code string
local function lua(code)
  return ("<Cmd>lua require('agentchat.%s<CR>"):format(code)
end

---@param around boolean
local function code_block(around)
  return function()
    return require("agentchat.navigate").code_keys(around)
  end
end

local motion, object, normal = { "n", "x", "o" }, { "x", "o" }, { "n" }

---@type agentchat.Key[]
M.transcript = {
  { plug = "turn-next", key = "]]", modes = motion, rhs = lua("navigate').turn(1)"), desc = "Next turn" },
  { plug = "turn-prev", key = "[[", modes = motion, rhs = lua("navigate').turn(-1)"), desc = "Turn before" },
  { plug = "tool-next", key = "]x", modes = motion, rhs = lua("navigate').tool(1)"), desc = "Next tool call" },
  { plug = "tool-prev", key = "[x", modes = motion, rhs = lua("navigate').tool(-1)"), desc = "Tool call before" },
  { plug = "code-next", key = "]k", modes = motion, rhs = lua("navigate').code(1)"), desc = "Next code block" },
  { plug = "code-prev", key = "[k", modes = motion, rhs = lua("navigate').code(-1)"), desc = "Code block before" },
  { plug = "code-inner", key = "ic", modes = object, rhs = code_block(false), desc = "Code of a block" },
  { plug = "code-around", key = "ac", modes = object, rhs = code_block(true), desc = "Code block with its fences" },
  { plug = "file", key = "gf", modes = normal, rhs = lua("places').go()"), desc = "Go to the file" },
  { plug = "open", key = "<CR>", modes = normal, rhs = lua("places').go_or_down()"), desc = "Open the fold or file" },
  { plug = "link", key = "gx", modes = normal, rhs = lua("places').open_link()"), desc = "Open the link" },
  { plug = "inspect", key = "K", modes = normal, rhs = lua("inspect').open()"), desc = "All of the tool call" },
  { plug = "help", key = "g?", modes = normal, rhs = lua("keys').show()"), desc = "These keys" },
}

--- Maps the keys in a transcript buffer.
---@param buf integer
function M.map_transcript(buf)
  for _, key in ipairs(M.transcript) do
    local plug = ("<Plug>(agentchat-%s)"):format(key.plug)
    local expr = type(key.rhs) == "function"
    vim.keymap.set(key.modes, plug, key.rhs, { buffer = buf, desc = key.desc, expr = expr })
    vim.keymap.set(key.modes, key.key, plug, { buffer = buf, desc = key.desc })
  end
end

--- The keys of a buffer that come from the plugin, as lines.
---@param buf integer
---@param modes string[]
---@return string[]
local function list(buf, modes)
  local lines, seen = {}, {}
  for _, mode in ipairs(modes) do
    for _, map in ipairs(vim.api.nvim_buf_get_keymap(buf, mode)) do
      local lhs = map.lhs
      if map.desc and not vim.startswith(lhs, "<Plug>") and not seen[lhs] then
        seen[lhs] = true
        lines[#lines + 1] = ("  %-8s %s"):format(lhs:gsub("<lt>", "<"), map.desc)
      end
    end
  end
  table.sort(lines)
  return lines
end

--- Shows the keys of the transcript and of the prompt.
function M.show()
  local buf = vim.api.nvim_get_current_buf()
  local chat = require("agentchat.chats").of_buffer(buf)
  local lines = { "In the transcript" }
  vim.list_extend(lines, list(buf, { "n", "x" }))
  if chat and chat.prompt and vim.api.nvim_buf_is_loaded(chat.prompt) then
    vim.list_extend(lines, { "", "In the prompt" })
    vim.list_extend(lines, list(chat.prompt, { "n", "i" }))
  end
  vim.list_extend(lines, { "", "In this window", "  q        Close this window" })
  require("agentchat.inspect").float("Keys", lines, "agentchat_inspect")
end

return M
