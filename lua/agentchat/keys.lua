--- The keys of the transcript: `<Plug>` mappings, and default keys for them that are no commands of Neovim's that make
--- sense there.

local M = {}

---@class agentchat.Key
---@field plug string
---@field key string
---@field modes string[]
---@field call string Lua
---@field desc string

---@type agentchat.Key[]
M.transcript = {
  { plug = "turn-next", key = "]]", modes = { "n", "x", "o" }, call = "navigate').turn(1)", desc = "Next turn" },
  { plug = "turn-prev", key = "[[", modes = { "n", "x", "o" }, call = "navigate').turn(-1)", desc = "Turn before" },
  { plug = "tool-next", key = "]x", modes = { "n", "x", "o" }, call = "navigate').tool(1)", desc = "Next tool call" },
  { plug = "tool-prev", key = "[x", modes = { "n", "x", "o" }, call = "navigate').tool(-1)", desc = "Tool call before" },
  { plug = "code-next", key = "]k", modes = { "n", "x", "o" }, call = "navigate').code(1)", desc = "Next code block" },
  { plug = "code-prev", key = "[k", modes = { "n", "x", "o" }, call = "navigate').code(-1)", desc = "Code block before" },
  { plug = "code-inner", key = "ic", modes = { "x", "o" }, call = "navigate').select_code(false)", desc = "Code" },
  { plug = "code-around", key = "ac", modes = { "x", "o" }, call = "navigate').select_code(true)", desc = "Code block" },
  { plug = "open-fold-or-file", key = "<CR>", modes = { "n" }, call = "places').go_or_down()", desc = "Open fold or file" },
  { plug = "file", key = "gf", modes = { "n" }, call = "places').go()", desc = "Go to the file" },
  { plug = "link", key = "gx", modes = { "n" }, call = "places').open_link()", desc = "Open the link" },
  { plug = "inspect", key = "K", modes = { "n" }, call = "inspect').open()", desc = "All of the tool call" },
  { plug = "help", key = "g?", modes = { "n" }, call = "keys').show()", desc = "These keys" },
}

--- Maps the keys in a transcript buffer.
---@param buf integer
function M.map_transcript(buf)
  for _, key in ipairs(M.transcript) do
    local plug = ("<Plug>(agentchat-%s)"):format(key.plug)
    local call = ("<Cmd>lua require('agentchat.%s<CR>"):format(key.call)
    vim.keymap.set(key.modes, plug, call, { buffer = buf, desc = key.desc })
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
