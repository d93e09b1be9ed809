--- Which words of two lines differ.

local M = {}

--- Lines longer than this are not compared.
local LONGEST = 1000

--- A line in runs of letters and digits, runs of blanks, and single other characters, each on a line of its own.
---@param line string
---@return string tokens
---@return integer[] ends the byte after each token
local function split(line)
  local tokens, ends = {}, {}
  local at = 1
  while at <= #line do
    local _, stop = line:find("^[%w_\128-\255]+", at)
    if not stop then
      _, stop = line:find("^%s+", at)
    end
    stop = stop or at
    tokens[#tokens + 1] = line:sub(at, stop):gsub("\n", " ")
    ends[#ends + 1] = stop
    at = stop + 1
  end
  return table.concat(tokens, "\n") .. "\n", ends
end

--- The bytes (0-based, without the end) that differ; nothing when the lines have little in common.
---@param old string
---@param new string
---@return integer[][] of_old
---@return integer[][] of_new
function M.changed(old, new)
  if old == "" or new == "" or old == new or math.max(#old, #new) > LONGEST then
    return {}, {}
  end
  local old_tokens, old_ends = split(old)
  local new_tokens, new_ends = split(new)
  local of_old, of_new, bytes = {}, {}, 0
  local function add(list, ends, first, count)
    if count > 0 then
      local from, to = ends[first - 1] or 0, ends[first + count - 1]
      list[#list + 1] = { from, to }
      bytes = bytes + to - from
    end
  end
  local diff = vim.diff(old_tokens, new_tokens, { result_type = "indices" }) --[[@as integer[][] ]]
  for _, change in ipairs(diff) do
    add(of_old, old_ends, change[1], change[2])
    add(of_new, new_ends, change[3], change[4])
  end
  if bytes * 4 > (#old + #new) * 3 then
    return {}, {}
  end
  return of_old, of_new
end

return M
