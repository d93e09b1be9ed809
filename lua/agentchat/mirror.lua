--- What changed in a buffer since the helper last had its text, so that it never needs to read all of it again. Nothing is
--- sent while the user types: rows are noted here, and asked for when an agent reads or writes.

local M = {}

local api = vim.api

--- Places of a buffer that are kept apart; beyond that the nearest two are one.
local MOST_REGIONS = 32

--- Rows that are not what they were: `now` rows from `first` on, where `before` were.
---@class agentchat.ChangedRows
---@field first integer
---@field now integer
---@field before integer

---@class agentchat.Watched
---@field id integer never used twice, so that nothing is taken for the same that is not
---@field tick integer `changedtick` of the text that the helper has
---@field regions agentchat.ChangedRows[] in order, with rows between them

---@type table<integer, agentchat.Watched>
local watched = {}
local last_id = 0

---@param regions agentchat.ChangedRows[]
---@param at integer
local function join_next(regions, at)
  local one, two = regions[at], regions[at + 1]
  local between = two.first - one.first - one.now
  one.now = one.now + between + two.now
  one.before = one.before + between + two.before
  table.remove(regions, at + 1)
end

---@param regions agentchat.ChangedRows[]
local function join_nearest(regions)
  local nearest, distance = 1, math.huge
  for i = 1, #regions - 1 do
    local gap = regions[i + 1].first - regions[i].first - regions[i].now
    if gap < distance then
      nearest, distance = i, gap
    end
  end
  join_next(regions, nearest)
end

--- Notes that the rows from `first` to `last` became those from `first` to `new_last`.
---@param regions agentchat.ChangedRows[]
---@param first integer
---@param last integer
---@param new_last integer
function M.note(regions, first, last, new_last)
  local at = 1
  while regions[at] and regions[at].first + regions[at].now < first do
    at = at + 1
  end
  -- All that touch these rows become one with them.
  while regions[at] and regions[at + 1] and regions[at].first <= last and regions[at + 1].first <= last do
    join_next(regions, at)
  end
  local shift = new_last - last
  local region = regions[at]
  if region and region.first <= last then
    local start = math.min(first, region.first)
    local stop = math.max(last, region.first + region.now)
    local grown = stop - start - region.now
    region.first, region.before, region.now = start, region.before + grown, stop - start + shift
  else
    table.insert(regions, at, { first = first, before = last - first, now = new_last - first })
  end
  if shift ~= 0 then
    for i = at + 1, #regions do
      regions[i].first = regions[i].first + shift
    end
  end
  if #regions > MOST_REGIONS then
    join_nearest(regions)
  end
end

---@param buf integer
---@param known agentchat.Watched
local function lose(buf, known)
  if watched[buf] == known then
    watched[buf] = nil
    require("agentchat.helper").notify("mirror_gone", { buf = buf })
  end
end

---@param buf integer
---@param tick integer
local function is_stale(buf, tick)
  return not api.nvim_buf_is_loaded(buf) or api.nvim_buf_get_changedtick(buf) ~= tick
end

--- Notes from now on what changes in a buffer, of which the helper is about to have the text.
---@param buf integer
---@param tick integer
---@return { id?: integer, stale?: true }
function M.watch(buf, tick)
  if is_stale(buf, tick) then
    return { stale = true }
  end
  last_id = last_id + 1
  if watched[buf] then
    local known = watched[buf]
    known.id, known.tick, known.regions = last_id, tick, {}
    return { id = last_id }
  end
  ---@type agentchat.Watched
  local known = { id = last_id, tick = tick, regions = {} }
  watched[buf] = known
  local ok = api.nvim_buf_attach(buf, false, {
    on_lines = function(_, _, _, first, last, new_last)
      if watched[buf] ~= known then
        return true
      end
      M.note(known.regions, first, last, new_last)
    end,
    -- Read anew: nothing tells which rows are the same.
    on_reload = function()
      lose(buf, known)
    end,
    on_detach = function()
      lose(buf, known)
    end,
  })
  if not ok then
    watched[buf] = nil
    return { stale = true }
  end
  return { id = last_id }
end

--- What changed in a buffer since the helper had its text at the changedtick `from`. With `rows` and `bytes` of the whole the
--- helper can tell that it knows the text.
---@param buf integer
---@param tick integer the changedtick that the text is wanted of
---@param id integer
---@param from integer
---@param max_bytes integer
---@return { stale?: true, unknown?: true, regions?: table[], rows?: integer, bytes?: integer }
function M.changed(buf, tick, id, from, max_bytes)
  if is_stale(buf, tick) then
    return { stale = true }
  end
  local known = watched[buf]
  if not known or known.id ~= id or known.tick ~= from then
    return { unknown = true }
  end
  local bytes, regions = 0, {}
  for i, region in ipairs(known.regions) do
    local last = region.first + region.now
    bytes = bytes + api.nvim_buf_get_offset(buf, last) - api.nvim_buf_get_offset(buf, region.first)
    if bytes > max_bytes then
      return { unknown = true }
    end
    regions[i] = { region.first, region.before, api.nvim_buf_get_lines(buf, region.first, last, true) }
  end
  known.tick, known.regions = tick, {}
  local rows = api.nvim_buf_line_count(buf)
  -- Without the last line, whose end counts or not, depending on options.
  return { regions = regions, rows = rows, bytes = api.nvim_buf_get_offset(buf, rows - 1) }
end

--- The helper does not have the text any more.
---@param buf integer
function M.forget(buf)
  watched[buf] = nil
end

--- There is no helper any more.
function M.forget_all()
  watched = {}
end

return M
