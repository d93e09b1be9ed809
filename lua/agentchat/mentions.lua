--- What is written in a prompt and stands for something else: `@src/main.rs`, `@"a b.txt"`, `@lib.lua#L3-7`,
--- `@selection`. Only here is known how it is written.

---@class agentchat.Mention
---@field label string as written
---@field name string what follows the `@`, without quotes and lines
---@field quoted boolean
---@field first? integer 1-based first line
---@field last? integer
---@field start integer 0-based byte where it begins in its line
---@field stop integer 0-based byte where it ends, exclusive

local M = {}

--- The mention that begins at byte `at` (1-based) of a line, which is an `@`.
---@param line string
---@param at integer
---@return agentchat.Mention?
local function read(line, at)
  local name = line:match('^"([^"]+)"', at + 1)
  local quoted = name ~= nil
  local stop = at
  if name then
    stop = at + #name + 2
  else
    name = line:match('^[^%s"]+', at + 1)
    if not name then
      return nil
    end
    -- The sentence may end here.
    name = name:gsub("[.,;:!?)%]}>']+$", "")
    if name == "" then
      return nil
    end
    stop = at + #name
  end
  local first, last = nil, nil
  if quoted then
    local lines = line:match("^#L%d+%-?%d*", stop + 1)
    if lines then
      first, last = lines:match("^#L(%d+)%-?(%d*)")
      stop = stop + #lines
    end
  else
    local bare, from, to = name:match("^(.+)#L(%d+)%-?(%d*)$")
    if bare then
      name, first, last = bare, from, to
    end
  end
  first = tonumber(first)
  return {
    label = line:sub(at, stop),
    name = name,
    quoted = quoted,
    first = first,
    last = first and math.max(first, tonumber(last) or first),
    start = at - 1,
    stop = stop,
  }
end

--- The mentions in one line, from left to right.
---@param line string
---@return agentchat.Mention[]
function M.in_line(line)
  local found = {}
  local at = line:find("@", 1, true)
  while at do
    local next_from = at + 1
    -- Not the @ of a mail address.
    if at == 1 or line:find("^[%s(%[{<'\",;]", at - 1) then
      local mention = read(line, at)
      if mention then
        found[#found + 1] = mention
        next_from = mention.stop + 1
      end
    end
    at = line:find("@", next_from, true)
  end
  return found
end

--- Writes a mention.
---@param name string
---@param first? integer 1-based
---@param last? integer
---@return string
function M.write(name, first, last)
  local label = name:find("[%s]") and ('@"%s"'):format(name) or "@" .. name
  if not first then
    return label
  end
  return ("%s#L%d-%d"):format(label, first, last or first)
end

--- The mention that the cursor is at the end of, while it is being typed.
---@param before string the line before the cursor
---@return string? query what was typed of its name
---@return integer? start 0-based byte of the `@`
function M.being_typed(before)
  local start, query = before:match('^.*()@"([^"]*)$')
  if not start then
    start, query = before:match('^.*()@([^%s"@]*)$')
  end
  if start and (start == 1 or before:find("^[%s(%[{<'\",;]", start - 1)) then
    return query, start - 1
  end
end

--- The path that a mention names, absolute.
---@param name string
---@param cwd string
---@return string
function M.path(name, cwd)
  if name:find("^~/") then
    return vim.fs.normalize(name)
  elseif name:find("^/") or name:find("^%a:[/\\]") then
    return name
  end
  return vim.fs.joinpath(cwd, name)
end

--- How a path is written in a chat's prompt: from the chat's folder where it lies in there.
---@param path string absolute
---@param cwd string
---@return string
function M.name(path, cwd)
  local root = cwd:gsub("/+$", "") .. "/"
  return vim.startswith(path, root) and #path > #root and path:sub(#root + 1) or path
end

return M
