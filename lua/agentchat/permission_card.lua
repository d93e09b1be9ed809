--- What is shown of a permission request, in rows: for the float and for the transcript alike.

local options = require("agentchat.permission_options")

local M = {}

---@class agentchat.CardRow
---@field [1] string
---@field [2] string highlight group, "" for none
---@field [3] integer bytes at its beginning that are in the group
---@field n? integer the option that the row shows

---@class agentchat.CardParts
---@field about agentchat.CardRow[] what is asked
---@field detail agentchat.CardRow[] the command, the change, the places
---@field options agentchat.CardRow[]

--- Lines of a diff, by their first character; a line that starts with "±" begins one.
local diff_groups = { ["+"] = "AgentChatAdded", ["-"] = "AgentChatRemoved" }

---@param text any
---@return string
function M.printable(text)
  return (tostring(text):gsub("[\r\n]", " "))
end

---@param text string
---@param group? string
---@return agentchat.CardRow
local function row(text, group)
  text = M.printable(text)
  return { text, group or "", group and #text or 0 }
end

---@param request agentchat.Permission
---@return agentchat.CardRow[]
local function about(request)
  local kind = request.kind and request.kind ~= "" and request.kind .. ": " or ""
  local rows = { row(kind .. request.title, "AgentChatPermissionTitle") }
  local marks = request.marks
  if type(marks) == "table" and #marks > 0 then
    rows[#rows + 1] = row("⚠ " .. table.concat(marks, ", "), "AgentChatPermissionDanger")
  end
  return rows
end

---@param request agentchat.Permission
---@return agentchat.CardRow[]
local function detail(request)
  local rows = {}
  for _, note in ipairs(request.notes or {}) do
    rows[#rows + 1] = row(note)
  end
  local in_diff = false
  for _, line in ipairs(request.detail or {}) do
    in_diff = in_diff or vim.startswith(line, "±")
    rows[#rows + 1] = row(line, in_diff and diff_groups[line:sub(1, 1)] or nil)
  end
  return rows
end

---@param request agentchat.Permission
---@return agentchat.CardParts
function M.parts(request)
  local choices = {}
  for _, each in ipairs(options.rows(request.options or {})) do
    choices[#choices + 1] = { M.printable(each.text), "AgentChatPermissionKey", each.keys, n = each.n }
  end
  if #choices == 0 then
    choices[1] = row("The agent offers no options; :AgentChat cancel ends the request.")
  end
  return { about = about(request), detail = detail(request), options = choices }
end

--- Who asks, and how many requests there are.
---@param request agentchat.Permission
---@param place integer
---@param total integer
---@return string
function M.heading(request, place, total)
  local count = total > 1 and (" (%d of %d)"):format(place, total) or ""
  return ("%s asks%s"):format(M.printable(request.agent or "The agent"), count)
end

--- The key that the user has mapped to a `<Plug>` mapping in a mode, in this buffer or everywhere.
---@param plug string
---@param mode "n"|"i"|"t"
---@return string?
local function mapped(plug, mode)
  for _, maps in ipairs({ vim.api.nvim_buf_get_keymap(0, mode), vim.api.nvim_get_keymap(mode) }) do
    for _, map in ipairs(maps) do
      if map.rhs and map.rhs:lower() == plug:lower() then
        return map.lhsraw and vim.fn.keytrans(map.lhsraw) or map.lhs
      end
    end
  end
end

--- The mode whose mappings answer where the user is, and what has to be typed before those of normal mode and commands.
---@return "n"|"i"|"t" mode
---@return string way_out
local function whereabouts()
  local mode = vim.api.nvim_get_mode().mode
  if mode:find("^[iR]") then
    return "i", "<Esc> "
  elseif mode:find("^t") then
    return "t", "<C-\\><C-n> "
  end
  return "n", ""
end

--- The same, of the forms in which it can be said, the longest first.
---@return string[]
local function ways()
  local mode, first = whereabouts()
  local allow, deny = mapped("<Plug>(agentchat-allow)", mode), mapped("<Plug>(agentchat-deny)", mode)
  if first ~= "" and (allow or deny) then
    local both = { allow and allow .. " allow", deny and deny .. " deny" }
    return { both[1] and both[2] and both[1] .. " · " .. both[2] or both[1] or both[2], both[1] or both[2] }
  end
  allow, deny = mapped("<Plug>(agentchat-allow)", "n"), mapped("<Plug>(agentchat-deny)", "n")
  local enter = mapped("<Plug>(agentchat-permission)", "n")
  local texts
  if not allow and not deny and not enter then
    local command = ":AgentChat allow"
    texts = { command .. " · deny · permissions", command .. " · deny", command }
  else
    local keys = {
      allow and allow .. " allow" or ":AgentChat allow",
      deny and deny .. " deny" or ":AgentChat deny",
      enter and enter .. " more" or ":AgentChat permissions",
    }
    texts = { table.concat(keys, " · "), keys[1] .. " · " .. keys[2], keys[1] }
  end
  return first ~= "" and { first .. texts[1], first .. texts[2], texts[2], texts[3] } or texts
end

--- How a request is answered from where the user is, in at most `room` columns.
---@param request agentchat.Permission
---@param room integer
---@return string
function M.how(request, room)
  if #(request.options or {}) == 0 then
    return mapped("<Plug>(agentchat-cancel)", "n") or ":AgentChat cancel"
  end
  local texts = ways()
  for _, text in ipairs(texts) do
    if vim.fn.strdisplaywidth(text) <= room then
      return text
    end
  end
  return texts[#texts]
end

return M
