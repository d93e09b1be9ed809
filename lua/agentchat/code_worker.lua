--- What runs in the second Neovim (`code_process.lua` starts it): parses a code block and finds its colours. Compiling a
--- highlight query and parsing cannot be cut into slices; here they keep no key waiting.

local M = {}

--- Rows whose captures are looked for at a time.
local ROWS = 10
--- Captures after which a message is sent: about as many as the user's Neovim sets extmarks in one slice.
local CAPTURES = 1000

---@class agentchat.CodeBlockParsed
---@field ident integer
---@field language string
---@field text string
---@field root TSNode
---@field query vim.treesitter.Query
---@field row integer the first row whose captures were not sent
---@field rows integer

--- The one that is being coloured.
---@type agentchat.CodeBlockParsed?
local block

--- The query of each language whose captures' names were told.
---@type table<string, vim.treesitter.Query>
local told = {}

local has_predicates = false

--- nvim-treesitter's queries, and those made for it, use predicates of its own.
local function add_predicates()
  if has_predicates then
    return
  end
  has_predicates = true
  pcall(require, "nvim-treesitter.query_predicates")
  pcall(vim.cmd.runtime, "plugin/query_predicates.lua")
end

--- Loads what the first block of any language needs, while nobody waits for it.
function M.warm_up()
  require("vim.treesitter.languagetree")
  require("vim.treesitter.query")
end

---@param fields { ident: integer, language: string, lines: string[], row: integer }
---@return agentchat.CodeBlockParsed
local function parse(fields)
  add_predicates()
  local lines = fields.lines
  for i, line in ipairs(lines) do
    -- A NUL in a buffer is a line break in its lines.
    lines[i] = line:gsub("\n", " ")
  end
  local text = table.concat(lines, "\n") .. "\n"
  local query = assert(vim.treesitter.query.get(fields.language, "highlights"), "there is no highlight query")
  -- Languages within the language are not coloured: without this, a second query would be compiled for them.
  local options = { injections = { [fields.language] = "" } }
  local root = vim.treesitter.get_string_parser(text, fields.language, options):parse()[1]:root()
  return {
    ident = fields.ident,
    language = fields.language,
    text = text,
    root = root,
    query = query,
    row = fields.row,
    rows = #lines,
  }
end

--- The next captures, six numbers each: row, column, end row and end column, all 0-based in the block and the end
--- exclusive, the capture's index in the query, and 1 if it is above the others, else 0.
---@param of agentchat.CodeBlockParsed
---@return integer[] flat
local function next_captures(of)
  local flat, count = {}, 0
  while of.row < of.rows and count < CAPTURES * 6 do
    local first = of.row
    of.row = first + ROWS
    for id, node, metadata in of.query:iter_captures(of.root, of.text, first, of.row) do
      local name = of.query.captures[id]
      local row, col, end_row, end_col = node:range()
      -- What began in earlier rows was told with those.
      if name:sub(1, 1) ~= "_" and name ~= "spell" and name ~= "nospell" and (row >= first or first == 0) then
        flat[count + 1], flat[count + 2], flat[count + 3], flat[count + 4] = row, col, end_row, end_col
        flat[count + 5], flat[count + 6] = id, tonumber(metadata.priority) and 1 or 0
        count = count + 6
      end
    end
  end
  return flat
end

---@param name string a function of `agentchat.code`
---@param ... any
local function tell(name, ...)
  vim.rpcnotify(1, "nvim_exec_lua", ("require('agentchat.code').%s(...)"):format(name), { ... })
end

local function continue()
  if block then
    local flat = next_captures(block)
    local next_row = block.row < block.rows and block.row or vim.NIL
    local is_news = told[block.language] ~= block.query
    told[block.language] = block.query
    tell("take", block.ident, block.language, is_news and block.query.captures or vim.NIL, flat, next_row)
  end
end

---@param ident integer
---@param act fun()
local function guarded(ident, act)
  local ok, reason = pcall(act)
  if not ok then
    block = nil
    tell("failed", ident, tostring(reason))
  end
end

--- A block to be coloured from `row` on; it takes the place of the one before.
---@param fields { ident: integer, language: string, lines: string[], row: integer }
function M.colour(fields)
  block = nil
  guarded(fields.ident, function()
    block = parse(fields)
    continue()
  end)
end

--- The captures that were told last are extmarks now.
---@param ident integer
function M.more(ident)
  if block and block.ident == ident then
    guarded(ident, continue)
  end
end

return M
