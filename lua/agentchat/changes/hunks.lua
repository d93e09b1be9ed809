--- The hunks of one file, as pure functions; `src/changes/table.rs` is the specification. Rows are 0-based and count
--- lines of the text as it is now.

---@class agentchat.Hunk
---@field id integer unique in its table
---@field first integer its first row; of a deletion the row before which the deleted lines were
---@field flags string a letter for each of its lines: "a" is the agent's, "u" the user's; empty for a deletion
---@field old string[] the lines that the agent replaced or deleted; empty for an insertion

local M = {}

--- The row after its last one.
---@param hunk agentchat.Hunk
---@return integer
function M.last(hunk)
  return hunk.first + #hunk.flags
end

--- Whether the user typed into it.
---@param hunk agentchat.Hunk
function M.is_mixed(hunk)
  return hunk.flags:find("u", 1, true) ~= nil
end

--- The index of the first hunk that ends after a row.
---@param hunks agentchat.Hunk[]
---@param row integer
---@return integer index one more than there are hunks if there is none
function M.after(hunks, row)
  local low, high = 1, #hunks + 1
  while low < high do
    local middle = math.floor((low + high) / 2)
    if M.last(hunks[middle]) > row then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

--- What an edit leaves of the hunks that it overlaps.
---@param touched agentchat.Hunk[]
---@param first integer
---@param last integer
---@param new_last integer
---@return agentchat.Hunk? hunk nothing if nothing of the agent's is left
local function joined(touched, first, last, new_last)
  local top, bottom = touched[1], touched[#touched]
  local above = math.max(0, first - top.first)
  local below = math.max(0, M.last(bottom) - last)
  local flags = top.flags:sub(1, above) .. ("u"):rep(new_last - first) .. bottom.flags:sub(#bottom.flags - below + 1)
  local old = {}
  for _, hunk in ipairs(touched) do
    vim.list_extend(old, hunk.old)
  end
  if #old > 0 or flags:find("a", 1, true) then
    return { id = top.id, first = math.min(top.first, first), flags = flags, old = old }
  end
end

--- The hunks after the user replaced rows. An edit right above or below a hunk is outside of it; one at the row of a
--- deletion comes after what was deleted.
---@param hunks agentchat.Hunk[] not changed
---@param first integer
---@param last integer the row after the replaced ones
---@param new_last integer the row after what is there now
---@return agentchat.Hunk[] hunks the same list if nothing changed
function M.edited(hunks, first, last, new_last)
  local from = M.after(hunks, first)
  local to = from
  while hunks[to] and hunks[to].first < last do
    to = to + 1
  end
  local delta = new_last - last
  if from == to and (delta == 0 or from > #hunks) then
    return hunks
  end
  local result = {}
  for i = 1, from - 1 do
    result[i] = hunks[i]
  end
  if from < to then
    result[#result + 1] = joined(vim.list_slice(hunks, from, to - 1), first, last, new_last)
  end
  for i = to, #hunks do
    local hunk = hunks[i]
    if delta ~= 0 then
      hunk = { id = hunk.id, first = hunk.first + delta, flags = hunk.flags, old = hunk.old }
    end
    result[#result + 1] = hunk
  end
  return result
end

--- Whether nothing in a hunk is the agent's any more, and the old lines are there again: rejecting it would bring those a
--- second time.
---@param hunk agentchat.Hunk
---@param lines_of fun(first: integer, last: integer): string[] rows of the text as it is now
---@return boolean
local function is_restored(hunk, lines_of)
  return #hunk.flags == #hunk.old
    and not hunk.flags:find("a", 1, true)
    and vim.deep_equal(lines_of(hunk.first, M.last(hunk)), hunk.old)
end

--- The hunks without those that an edit has made void.
---@param hunks agentchat.Hunk[] not changed
---@param first integer
---@param last integer the row after what was edited
---@param lines_of fun(first: integer, last: integer): string[]
---@return agentchat.Hunk[] hunks the same list if nothing changed
function M.without_restored(hunks, first, last, lines_of)
  local index = math.max(1, M.after(hunks, first) - 1)
  local result = hunks
  while result[index] and result[index].first <= last do
    if is_restored(result[index], lines_of) then
      result = result == hunks and vim.list_slice(hunks) or result
      table.remove(result, index)
    else
      index = index + 1
    end
  end
  return result
end

--- What is in a hunk's place without the agent: the user's lines above the agent's first one, the old lines, and the
--- user's other lines.
---@param hunk agentchat.Hunk
---@param lines string[] its own, as they are now
---@return string[]
function M.rejected(hunk, lines)
  local above = (hunk.flags:find("a", 1, true) or 1) - 1
  local result = vim.list_slice(lines, 1, above)
  vim.list_extend(result, hunk.old)
  for i = above + 1, #hunk.flags do
    if hunk.flags:byte(i) == 117 then
      result[#result + 1] = lines[i]
    end
  end
  return result
end

--- The hunks without some, whose rows hold another number of lines now.
---@param hunks agentchat.Hunk[] not changed
---@param gone table<agentchat.Hunk, integer> how many lines are in the place of each hunk that goes
---@return agentchat.Hunk[]
function M.without(hunks, gone)
  local result, delta = {}, 0
  for _, hunk in ipairs(hunks) do
    local count = gone[hunk]
    if count then
      delta = delta + count - #hunk.flags
    else
      result[#result + 1] = delta == 0 and hunk
        or { id = hunk.id, first = hunk.first + delta, flags = hunk.flags, old = hunk.old }
    end
  end
  return result
end

--- The same hunks with nothing outside of a text of `count` rows: what a table that came for another text is left with.
---@param hunks agentchat.Hunk[]
---@param count integer
---@return agentchat.Hunk[]
function M.within(hunks, count)
  local kept = {}
  for _, hunk in ipairs(hunks) do
    if M.last(hunk) <= count then
      kept[#kept + 1] = hunk
    end
  end
  return #kept == #hunks and hunks or kept
end

return M
