--- What an agent wanted to write and could not, because the user changed the same lines: its version in a scratch buffer
--- beside the file, and one message that tells how to compare the two.

local M = {}

local api = vim.api

--- The name without the folder that the user is in, which they can type.
---@param path string
---@return string
local function buffer_name(path)
  return "agentchat://agent/" .. vim.fn.fnamemodify(path, ":.")
end

---@type table<string, integer> the buffer of each file
local buffers = {}

---@param path string
---@return integer
local function buffer_for(path)
  local buf = buffers[path]
  if buf and api.nvim_buf_is_valid(buf) then
    return buf
  end
  buf = api.nvim_create_buf(false, true)
  buffers[path] = buf
  api.nvim_buf_set_name(buf, buffer_name(path))
  return buf
end

--- A piece of the agent's version; with the last one the user is told.
---@param path string absolute
---@param lines string[]
---@param is_first boolean
---@param is_last boolean
function M.piece(path, lines, is_first, is_last)
  local buf = buffer_for(path)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, is_first and 0 or -1, -1, false, lines)
  vim.bo[buf].modifiable = false
  if is_last then
    vim.bo[buf].filetype = vim.filetype.match({ filename = path, buf = buf }) or ""
    local name = vim.fn.fnameescape(api.nvim_buf_get_name(buf))
    local text = "%s: the agent changed what you changed; compare with :vert diffsplit %s"
    require("agentchat.message").show("warn", text:format(vim.fs.basename(path), name))
  end
end

--- The file has been written since.
---@param path string
function M.put_away(path)
  local buf = buffers[path]
  buffers[path] = nil
  -- Whoever looks at it keeps it.
  if buf and api.nvim_buf_is_valid(buf) and #vim.fn.win_findbuf(buf) == 0 then
    api.nvim_buf_delete(buf, { force = true })
  end
end

return M
