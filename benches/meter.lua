-- What the bench does inside Neovim: little, and the same for every client.
local M = {}

---Notifies `channel` of the time (`hrtime`, ns) at which `marker` is in the last lines of `buffer`, once.
---Started only when the agent has written everything, so that looking costs nothing while text streams.
---@param channel integer
---@param buffer integer
---@param marker string
function M.watch(channel, buffer, marker)
  local timer = assert(vim.uv.new_timer())
  local seen_tick = -1
  local function look()
    local tick = vim.api.nvim_buf_get_changedtick(buffer)
    if timer:is_closing() or tick == seen_tick then
      return
    end
    seen_tick = tick
    -- A client may put lines of its own (a stop reason, a queue) below the text.
    for _, line in ipairs(vim.api.nvim_buf_get_lines(buffer, -60, -1, false)) do
      if line:find(marker, 1, true) then
        local now = vim.uv.hrtime()
        timer:close()
        vim.rpcnotify(channel, "marker", now)
        return
      end
    end
  end
  local asked = false
  timer:start(0, 2, function()
    if not asked then
      asked = true
      vim.schedule(function()
        asked = false
        look()
      end)
    end
  end)
end

---@type number[] how long lines took to come, in ms
M.delays = {}

---Notes how long each line `at NS` took from the clock in it until it is in the buffer.
---@param buffer integer
function M.trickle(buffer)
  local known = {}
  local function look(_, _, _, first, _, last)
    local now = vim.uv.hrtime()
    for _, line in ipairs(vim.api.nvim_buf_get_lines(buffer, first, last, false)) do
      local at = line:match("^at (%d+)")
      if at and not known[at] then
        known[at] = true
        M.delays[#M.delays + 1] = (now - tonumber(at)) / 1e6
      end
    end
  end
  for _, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    known[line:match("^at (%d+)") or ""] = true
  end
  vim.api.nvim_buf_attach(buffer, false, { on_lines = look })
end

---How many highlights the client has put on the text.
---@param buffer integer
---@return integer
function M.marks(buffer)
  return #vim.api.nvim_buf_get_extmarks(buffer, -1, 0, -1, {})
end

return M
