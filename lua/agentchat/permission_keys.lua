--- The keys inside of a permission request, and what is typed of an answer there: the digits of a number, or the first of
--- the two key presses that an option takes which will be remembered.

local M = {}

local options = require("agentchat.permission_options")

---@type string digits typed so far
local typed = ""
---@type integer? the option that the next press of its key answers with
local armed

--- Forgets what was typed.
function M.reset()
  typed, armed = "", nil
end

--- What was typed so far, for the border; nil if nothing was.
---@param request agentchat.Permission
---@return string?
function M.prompt(request)
  if typed ~= "" then
    return ("%s… another digit, or <CR> for %s"):format(typed, typed)
  end
  local option = armed and request.options[armed]
  if option then
    local rule = type(option.rule) == "string" and option.rule ~= "" and option.rule or option.name
    return ("again or <CR> remembers: %s"):format(rule)
  end
end

--- An option's key was pressed.
---@param n integer
---@param option agentchat.PermissionOption
local function press(n, option)
  local permission = require("agentchat.permission")
  typed = ""
  if armed == n or not options.lasts(option) then
    armed = nil
    permission.choose(n)
  else
    armed = n
    permission.refresh()
  end
end

--- Presses the key of the n-th option: once, or for what is remembered twice.
---@param n integer 1-based
function M.press(n)
  local request = require("agentchat.permission").readable_inside()
  if request and request.options[n] then
    press(n, request.options[n])
  end
end

---@param digit string
local function digit_typed(digit)
  local permission = require("agentchat.permission")
  local request = permission.readable_inside()
  if not request then
    return
  end
  local n, waits = options.read(request.options, typed .. digit)
  if n then
    press(n, request.options[n])
    return
  end
  local wrong = typed .. digit
  typed = waits and wrong or ""
  if not waits then
    require("agentchat.message").show("warn", ("the request has no option %s"):format(wrong))
  end
  armed = nil
  permission.refresh()
end

---@param letter "y"|"n"
local function letter_typed(letter)
  local request = require("agentchat.permission").readable_inside()
  if not request then
    return
  end
  local n = options.letters(request.options)[letter]
  if n then
    press(n, request.options[n])
    return
  end
  M.reset()
  require("agentchat.permission").decide(letter == "y" and "allow" or "deny")
end

--- <CR> completes what was begun, else it goes down, as it does anywhere.
---@return string keys
local function completed()
  local number = tonumber(typed)
  local n = number or armed
  if not n then
    return "<CR>"
  end
  vim.schedule(function()
    local request = require("agentchat.permission").readable_inside()
    local option = request and request.options[n]
    if option then
      press(n, option)
    end
  end)
  return "<Ignore>"
end

--- Maps the keys in the buffer of the request.
---@param buf integer
function M.map(buf)
  local function map(lhs, action, desc, expr)
    vim.keymap.set("n", lhs, action, { buffer = buf, desc = desc, nowait = true, expr = expr })
  end
  map("y", function()
    letter_typed("y")
  end, "Allow once")
  map("n", function()
    letter_typed("n")
  end, "Reject once")
  map("q", function()
    vim.api.nvim_win_close(0, true)
  end, "Put the request aside")
  for digit = 0, 9 do
    map(tostring(digit), function()
      digit_typed(tostring(digit))
    end, "Answer with the option of that number")
  end
  map("<CR>", completed, "Complete the number, or press the key again", true)
  map("<Esc>", function()
    M.reset()
    require("agentchat.permission").refresh()
  end, "Forget what was typed")
end

return M
