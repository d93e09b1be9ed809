--- The sizes of a tab page's windows: giving the others what they had, as far as the room goes, when the chat comes
--- and when it goes.

local M = {}

local api = vim.api

--- What is left to a window, in columns or lines, before the next one has to give up something too.
local LEAST = { width = 20, height = 5 }
--- The node of |winlayout()| whose windows share a dimension.
local SHARED_BY = { width = "row", height = "col" }

---@alias agentchat.Dimension "width"|"height"
---@alias agentchat.Sizes table<agentchat.Dimension, table<integer, integer>> by window

--- What a window, or windows that share their room, are to have in one dimension.
---@class agentchat.SizedNode
---@field win? integer of a leaf
---@field children agentchat.SizedNode[] none of a leaf
---@field shares boolean whether the children stand one after the other in this dimension
---@field now integer what it has
---@field wanted integer what it should have
---@field fixed boolean whether the user wants it to keep that ('winfixwidth', 'winfixheight')
---@field pinned boolean whether it keeps what it has

--- The sizes of all windows of a tab page that are not floating.
---@param wins integer[]
---@return agentchat.Sizes
function M.take(wins)
  local sizes = { width = {}, height = {} }
  for _, win in ipairs(wins) do
    sizes.width[win] = api.nvim_win_get_width(win)
    sizes.height[win] = api.nvim_win_get_height(win)
  end
  return sizes
end

---@param tree table of |winlayout()|
---@param dimension agentchat.Dimension
---@param wanted table<integer, integer>
---@param pinned table<integer, boolean>
---@return agentchat.SizedNode
local function measure(tree, dimension, wanted, pinned)
  if tree[1] == "leaf" then
    local win = tree[2]
    local now = dimension == "width" and api.nvim_win_get_width(win) or api.nvim_win_get_height(win)
    return {
      win = win,
      children = {},
      shares = false,
      now = now,
      wanted = not pinned[win] and wanted[win] or now,
      fixed = vim.wo[win][dimension == "width" and "winfixwidth" or "winfixheight"],
      pinned = pinned[win] == true,
    }
  end
  local shares = tree[1] == SHARED_BY[dimension]
  -- Between two windows there is a line or a column that belongs to neither.
  ---@type agentchat.SizedNode
  local node = { children = {}, shares = shares, now = -1, wanted = -1, fixed = false, pinned = true }
  local fixed = 0
  for _, each in ipairs(tree[2]) do
    local child = measure(each, dimension, wanted, pinned)
    node.children[#node.children + 1] = child
    node.now = shares and node.now + child.now + 1 or math.max(node.now, child.now)
    node.wanted = shares and node.wanted + child.wanted + 1 or math.max(node.wanted, child.wanted)
    node.pinned = node.pinned and child.pinned
    fixed = fixed + (child.fixed and 1 or 0)
  end
  -- As Neovim sees it: a row is as fixed as all of it, a column as any of it.
  node.fixed = shares and fixed == #node.children or not shares and fixed > 0
  return node
end

--- Takes from the largest first, so that as many as possible keep what they have.
---@param nodes agentchat.SizedNode[]
---@param sizes integer[] what they have, changed in place
---@param too_much integer
---@param least integer what is left to each of them
---@return integer too_much what could not be taken
local function shrink(nodes, sizes, too_much, least)
  while too_much > 0 do
    local largest
    for i in ipairs(nodes) do
      if sizes[i] > least and (not largest or sizes[i] > sizes[largest]) then
        largest = i
      end
    end
    if not largest then
      break
    end
    sizes[largest] = sizes[largest] - 1
    too_much = too_much - 1
  end
  return too_much
end

--- Shares a room among nodes that stand one after the other.
---@param nodes agentchat.SizedNode[] that are not pinned
---@param room integer
---@param dimension agentchat.Dimension
---@return integer[]
local function share(nodes, room, dimension)
  local sizes, free, sum = {}, {}, 0
  for i, node in ipairs(nodes) do
    sizes[i] = node.wanted
    sum = sum + node.wanted
    if not node.fixed then
      free[#free + 1] = i
    end
  end
  local takes = #free > 0 and free or vim.tbl_keys(nodes)
  if sum < room then
    local largest = takes[1]
    for _, i in ipairs(takes) do
      largest = sizes[i] > sizes[largest] and i or largest
    end
    sizes[largest] = sizes[largest] + room - sum
    return sizes
  end
  local some = vim.tbl_map(function(i)
    return nodes[i]
  end, takes)
  local their = vim.tbl_map(function(i)
    return sizes[i]
  end, takes)
  local too_much = shrink(some, their, sum - room, LEAST[dimension])
  for at, i in ipairs(takes) do
    sizes[i] = their[at]
  end
  too_much = shrink(nodes, sizes, too_much, LEAST[dimension])
  shrink(nodes, sizes, too_much, 1)
  return sizes
end

--- What each window gets when the node gets `room`.
---@param node agentchat.SizedNode
---@param room integer
---@param dimension agentchat.Dimension
---@param result { [1]: integer, [2]: integer }[] window and size
local function assign(node, room, dimension, result)
  if node.win then
    result[#result + 1] = { node.win, room }
    return
  end
  if not node.shares then
    for _, child in ipairs(node.children) do
      assign(child, room, dimension, result)
    end
    return
  end
  local others = {}
  room = room - (#node.children - 1)
  for _, child in ipairs(node.children) do
    if child.pinned then
      room = room - child.now
    else
      others[#others + 1] = child
    end
  end
  local sizes = share(others, room, dimension)
  local at = 0
  for _, child in ipairs(node.children) do
    if child.pinned then
      assign(child, child.now, dimension, result)
    else
      at = at + 1
      assign(child, sizes[at], dimension, result)
    end
  end
end

--- Gives windows the sizes that they should have, as far as there is room: what is missing is taken from the largest
--- ones, what is left over goes to the largest. The user's fixed ones come last.
---@param tab integer
---@param dimension agentchat.Dimension
---@param wanted table<integer, integer> by window; others should keep what they have
---@param pinned table<integer, boolean> windows that keep what they have in any case
function M.fit(tab, dimension, wanted, pinned)
  local tree = vim.fn.winlayout(api.nvim_tabpage_get_number(tab))
  local root = measure(tree, dimension, wanted, pinned)
  local result = {}
  assign(root, root.now, dimension, result)
  local set = dimension == "width" and api.nvim_win_set_width or api.nvim_win_set_height
  -- Twice, as |winrestcmd()| does: setting one moves the next.
  for _ = 1, 2 do
    for _, each in ipairs(result) do
      set(each[1], math.max(1, each[2]))
    end
  end
end

return M
