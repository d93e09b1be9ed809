-- How long an agent's writes keep Neovim's main thread, and the same done by hand.
local M = {}

local hrtime = vim.uv.hrtime

---@type table<string, integer[]> nanoseconds, of each write
local figures = { edit = {}, save = {}, ["all of the rest"] = {} }
local rest = 0

---Calls `after` with the time that each call of a function took, with its arguments before and its answer.
---@param module string
---@param name string
---@param after fun(taken: integer, ...)
local function wrap(module, name, after)
  local functions = require(module)
  local wrapped = functions[name]
  functions[name] = function(...)
    local start = hrtime()
    local answer, more = wrapped(...)
    after(hrtime() - start, answer)
    return answer, more
  end
end

---Measures from now on.
function M.listen()
  local save = 0
  wrap("agentchat.files", "write_as_is", function(taken)
    save = taken
  end)
  wrap("agentchat.files", "file_edit", function(taken, answer)
    if answer.ok then
      table.insert(figures.edit, taken - save)
      table.insert(figures.save, save)
      table.insert(figures["all of the rest"], rest)
      rest = 0
    end
  end)
  local others = {
    { "agentchat.files", "file_stat" },
    { "agentchat.files", "file_lines" },
    { "agentchat.mirror", "watch" },
    { "agentchat.mirror", "changed" },
    { "agentchat.changes", "get" },
  }
  for _, other in ipairs(others) do
    wrap(other[1], other[2], function(taken)
      rest = rest + taken
    end)
  end
end

---How many writes there were.
---@return integer
function M.count()
  return #figures.edit
end

function M.figures()
  return figures
end

---Appends to a line and saves the buffer; how long each of the two took, in ns.
---@param row integer
---@param col integer
---@param text string
---@return integer[]
function M.by_hand(row, col, text)
  local start = hrtime()
  vim.api.nvim_buf_set_text(0, row, col, row, col, { text })
  local edited = hrtime()
  vim.cmd("silent write")
  return { edited - start, hrtime() - edited }
end

return M
