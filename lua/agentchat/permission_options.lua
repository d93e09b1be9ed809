--- The ways to answer a permission request: their kinds, their keys inside of the card, and what was typed of a key.
---
--- Every option has a number. Where there are more than nine, a number that others begin with is completed by <CR>:
--- nothing is answered because somebody typed the second digit too late. An option that is remembered takes its key twice.

local M = {}

--- What a kind of the protocol means to the user; agents may send others.
---@type table<string, { verb: "allow"|"reject", lasts: boolean }>
local kinds = {
  allow_once = { verb = "allow", lasts = false },
  allow_always = { verb = "allow", lasts = true },
  reject_once = { verb = "reject", lasts = false },
  reject_always = { verb = "reject", lasts = true },
}

--- Whether an option would be remembered. A kind that is not known might be, if it says so.
---@param option agentchat.PermissionOption
---@return boolean
function M.lasts(option)
  local kind = kinds[option.kind]
  if kind then
    return kind.lasts
  end
  return type(option.kind) == "string" and option.kind:find("always", 1, true) ~= nil
end

---@param options agentchat.PermissionOption[]
---@param kind string
---@return integer? n its place, 1-based
function M.of_kind(options, kind)
  for n, option in ipairs(options) do
    if option.kind == kind then
      return n
    end
  end
end

--- The options that `y` and `n` stand for: allowing never lasts; where one can only reject for ever, that is what `n` is.
---@param options agentchat.PermissionOption[]
---@return { y?: integer, n?: integer }
function M.letters(options)
  return {
    y = M.of_kind(options, "allow_once"),
    n = M.of_kind(options, "reject_once") or M.of_kind(options, "reject_always"),
  }
end

--- Whether typing more digits could still mean another option.
---@param options agentchat.PermissionOption[]
---@param typed string digits
---@return boolean
local function has_longer(options, typed)
  local n = tonumber(typed)
  return n ~= nil and n > 0 and n * 10 <= #options
end

--- What the digits typed so far mean.
---@param options agentchat.PermissionOption[]
---@param typed string
---@return integer? n the option that they are, and no other
---@return boolean waits whether more digits may follow
function M.read(options, typed)
  local n = tonumber(typed)
  if not n or n < 1 or n > #options then
    return nil, false
  elseif has_longer(options, typed) then
    return nil, true
  end
  return n, false
end

--- The key of an option, as it is written.
---@param options agentchat.PermissionOption[]
---@param n integer
---@return string
function M.number(options, n)
  return has_longer(options, tostring(n)) and n .. "<CR>" or tostring(n)
end

---@class agentchat.OptionRow
---@field text string
---@field n integer the option that it is about
---@field keys integer bytes of the keys at its beginning

--- The options as rows, each with its keys.
---@param options agentchat.PermissionOption[]
---@return agentchat.OptionRow[]
function M.rows(options)
  local letters = M.letters(options)
  local rows = {}
  local width = 0
  for n = 1, #options do
    width = math.max(width, #M.number(options, n))
  end
  for n, option in ipairs(options) do
    local letter = letters.y == n and "y" or letters.n == n and "n" or " "
    local number = M.number(options, n)
    local twice = M.lasts(option) and " (twice)" or ""
    local keys = ("%s %s%s"):format(letter, (" "):rep(width - #number), number)
    rows[#rows + 1] = { text = ("%s %s%s"):format(keys, option.name, twice), n = n, keys = #keys }
    if M.lasts(option) and type(option.rule) == "string" and option.rule ~= "" then
      rows[#rows + 1] = { text = (" "):rep(width + 3) .. "remembers: " .. option.rule, n = n, keys = 0 }
    end
  end
  return rows
end

--- The keys in one line of at most `room` columns: every key, and as much of the names as there is room for.
---@param options agentchat.PermissionOption[]
---@param room integer
---@return string
function M.summary(options, room)
  local letters = M.letters(options)
  local keys = {}
  for n = 1, #options do
    keys[n] = letters.y == n and "y" or letters.n == n and "n" or M.number(options, n)
  end
  local function line(longest)
    local parts = {}
    for n, option in ipairs(options) do
      local name = vim.fn.strcharpart(option.name, 0, longest)
      if name ~= option.name and longest > 0 then
        name = name .. "…"
      end
      parts[n] = longest > 0 and keys[n] .. " " .. name or keys[n]
    end
    return table.concat(parts, longest > 0 and " · " or " ")
  end
  for longest = 40, 1, -1 do
    local text = line(longest)
    if vim.fn.strdisplaywidth(text) <= room then
      return text
    end
  end
  local text = line(0)
  if vim.fn.strdisplaywidth(text) <= room then
    return text
  end
  -- So many that not even their keys have room: the first and the last one.
  return ("%s … %s"):format(keys[1] or "", keys[#keys] or "")
end

return M
