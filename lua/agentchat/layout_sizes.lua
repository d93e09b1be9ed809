--- How large the chat's two windows are, and what becomes of the others' sizes.

local M = {}

local api = vim.api
local windows = require("agentchat.windows")
local sizes = require("agentchat.window_sizes")

--- Lines of the transcript below which the pair is not opened smaller.
M.LEAST_TRANSCRIPT = 3

--- What the other windows of a tab page were before the chat came, and what they became by it.
---@class agentchat.SizesBefore: agentchat.ScreenSizes
---@field sizes agentchat.Sizes
---@field after? agentchat.Sizes

---@param tab integer
---@return agentchat.SizesBefore
function M.before(tab)
  local before = windows.sizes(tab) --[[@as agentchat.SizesBefore]]
  before.sizes = sizes.take(before.wins)
  return before
end

--- The chat's transcript window was opened: the others get back as much as there is room for.
---@param tab integer
---@param layout agentchat.Layout
---@param before agentchat.SizesBefore
function M.opened(tab, layout, before)
  local dimension = layout.below and "height" or "width"
  sizes.fit(tab, dimension, before.sizes[dimension], { [layout.transcript] = true })
end

--- Both windows are there, and nobody has changed a size since.
---@param tab integer
---@param before agentchat.SizesBefore
function M.settled(tab, before)
  before.after = sizes.take(windows.fixed(tab))
end

--- The chat's windows were closed: the others are again what they were before, unless the user has changed them since.
---@param tab integer
---@param before agentchat.SizesBefore
---@param at_close agentchat.Sizes what they were when it was closed
function M.closed(tab, before, at_close)
  local screen = { width = vim.o.columns / before.columns, height = vim.o.lines / before.lines }
  local untouched = true
  local wanted = { width = {}, height = {} }
  for dimension, now in pairs(at_close) do
    for win, size in pairs(now) do
      local was = before.sizes[dimension][win]
      if was and before.after and before.after[dimension][win] == size then
        wanted[dimension][win] = math.floor(was * screen[dimension] + 0.5)
      else
        wanted[dimension][win] = size
        untouched = untouched and was == nil
      end
    end
  end
  if untouched and windows.restore_sizes(tab, before) then
    return
  end
  sizes.fit(tab, "width", wanted.width, {})
  sizes.fit(tab, "height", wanted.height, {})
end

--- Whether the prompt is still right below its transcript. The user may have moved it; how high it is then is theirs to
--- say, and making it lower could only make the command line higher.
---@param tab integer
---@param layout agentchat.Layout
---@return boolean stacked
---@return boolean alone whether nothing else is above or below the two
local function is_stacked(tab, layout)
  local function column(node)
    for i, child in ipairs(node[2]) do
      if child[1] ~= "leaf" then
        local found = column(child)
        if found then
          return found
        end
      elseif node[1] == "col" and child[2] == layout.prompt and i > 1 and node[2][i - 1][2] == layout.transcript then
        return node[2]
      end
    end
  end
  local all = vim.fn.winlayout(api.nvim_tabpage_get_number(tab))
  local found = all[1] ~= "leaf" and column(all) or nil
  return found ~= nil, found ~= nil and #found == 2
end

---@param win integer
---@param fixed boolean
local function fix_height(win, fixed)
  api.nvim_set_option_value("winfixheight", fixed, { win = win, scope = "local" })
end

--- Sets the prompt's height to what its text takes, within the configured bounds.
---@param chat agentchat.Chat
function M.fit_prompt(chat)
  for tab, layout in require("agentchat.layout").of_chat(chat) do
    if not layout.busy and is_stacked(tab, layout) then
      local bounds = require("agentchat.config").get().layout
      local room = api.nvim_win_get_height(layout.transcript) + api.nvim_win_get_height(layout.prompt)
      local most = math.max(1, math.min(bounds.prompt_max, room - M.LEAST_TRANSCRIPT))
      local wanted = api.nvim_win_text_height(layout.prompt, {}).all
      local height = math.min(math.max(wanted, bounds.prompt_min), most)
      if height ~= api.nvim_win_get_height(layout.prompt) then
        windows.keeping_views(tab, function()
          fix_height(layout.transcript, false)
          api.nvim_win_set_height(layout.prompt, height)
          fix_height(layout.transcript, layout.below)
        end)
      end
    end
  end
end

--- Notes the part of the screen's width that the chat has.
---@param tab integer
---@param layout agentchat.Layout
function M.note_share(tab, layout)
  layout.wins = windows.fixed(tab)
  layout.share = api.nvim_win_get_width(layout.transcript) / vim.o.columns
end

--- Windows of the current tab page have other sizes: notes the width that the user gave the chat. When rather windows
--- came or went, the chat gets back what it had: 'winfixwidth' makes it grow with a window that is split off from it.
---@param layout agentchat.Layout
function M.resized(layout)
  local tab = api.nvim_get_current_tabpage()
  local _, alone = is_stacked(tab, layout)
  if not alone then
    layout.wins = {}
    return
  end
  local wins = windows.fixed(tab)
  if vim.deep_equal(wins, layout.wins) then
    M.note_share(tab, layout)
  elseif #wins > 2 then
    layout.wins = wins
    M.fit_width(tab)
  end
end

--- Gives the chat the same part of a screen that has another size now.
---@param tab integer
function M.fit_width(tab)
  local layout = require("agentchat.layout").complete(tab)
  if layout and not layout.below then
    api.nvim_win_set_width(layout.transcript, math.max(1, math.floor(vim.o.columns * layout.share + 0.5)))
  end
end

return M
