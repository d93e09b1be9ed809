--- The colours of lines that are no more, in the language of their file, where that is cheap: the file's buffer is coloured by
--- tree-sitter, so that parser and query are loaded, and the lines are few.

local M = {}

--- Lines and bytes of a hunk that are coloured.
local LINES, BYTES = 50, 4096
--- Nanoseconds that may go into this until Neovim draws; hunks beyond that have one colour.
local BUDGET = 4e6
--- Texts whose colours are kept.
local KEPT = 64

---@type table<string, table<integer, table<integer, string>>|false> by language and text
local cache = {}
local kept = 0
local spent = 0

--- Whether a group has a background: without it a line in other colours would not look like one that is no more.
---@param group string
---@return boolean
local function has_background(group)
  local attributes = vim.api.nvim_get_hl(0, { name = group, link = false })
  return attributes.bg ~= nil or attributes.reverse == true
end

---@param text string
---@param language string
---@return table<integer, table<integer, string>>
local function parse(text, language)
  local query = vim.treesitter.query.get(language, "highlights")
  local groups = {}
  if not query then
    return groups
  end
  -- Languages within the language would need queries of their own.
  local parser = vim.treesitter.get_string_parser(text, language, { injections = { [language] = "" } })
  local root = parser:parse()[1]:root()
  for id, node in query:iter_captures(root, text) do
    local name = query.captures[id]
    if not vim.startswith(name, "_") and not vim.startswith(name, "spell") and name ~= "nospell" then
      local row, col, last_row, last_col = node:range()
      for at = row, last_row do
        local line = groups[at + 1] or {}
        groups[at + 1] = line
        for byte = at == row and col or 0, (at == last_row and last_col or BYTES) - 1 do
          line[byte + 1] = ("@%s.%s"):format(name, language)
        end
      end
    end
  end
  return groups
end

--- The group of each byte of some old lines, by line and byte, both 1-based; nothing if that is not cheap.
---@param buf integer
---@param lines string[]
---@return table<integer, table<integer, string>>?
function M.groups(buf, lines)
  local highlighter = vim.treesitter.highlighter.active[buf]
  if not highlighter or #lines > LINES or not has_background("AgentChatDiffDelete") then
    return nil
  end
  local language = highlighter.tree:lang()
  local text = table.concat(lines, "\n")
  if #text > BYTES then
    return nil
  end
  local key = language .. "\n" .. text
  local found = cache[key]
  if found == nil then
    if spent > BUDGET then
      return nil
    elseif spent == 0 then
      vim.schedule(function()
        spent = 0
      end)
    end
    local start = vim.uv.hrtime()
    local ok, groups = pcall(parse, text, language)
    spent = spent + vim.uv.hrtime() - start
    if kept >= KEPT then
      cache, kept = {}, 0
    end
    found = ok and groups or false
    cache[key], kept = found, kept + 1
  end
  return found or nil
end

return M
