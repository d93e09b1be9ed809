--- A file beside what it was without the pending changes, or beside the agent's version of it, in a tab page of its own with 'diff' on.

local M = {}

local api = vim.api
local hunks_of = require("agentchat.changes.hunks")

--- The text without the pending changes.
---@param file agentchat.ChangedFile
---@param buf integer
---@return string[]
local function base(file, buf)
  local now = api.nvim_buf_get_lines(buf, 0, -1, true)
  if file.facts.deleted then
    return file.hunks[1] and file.hunks[1].old or {}
  end
  local lines, row = {}, 0
  for _, hunk in ipairs(file.hunks) do
    vim.list_extend(lines, now, row + 1, hunk.first)
    local last = hunks_of.last(hunk)
    vim.list_extend(lines, hunks_of.rejected(hunk, vim.list_slice(now, hunk.first + 1, last)))
    row = last
  end
  return vim.list_extend(lines, now, row + 1, #now)
end

--- Opens it. Closing one of its windows closes the tab page.
---@param file agentchat.ChangedFile
function M.open(file)
  local buf = file.buf or vim.fn.bufadd(file.path)
  vim.cmd("tab split")
  local right = api.nvim_get_current_win()
  vim.wo[right].winfixbuf = false
  vim.cmd("buffer " .. buf)
  require("agentchat.changes.buffer").loaded(buf)
  local before = file.offer and file.offer.scratch
  if not before or not api.nvim_buf_is_valid(before) then
    before = api.nvim_create_buf(false, true)
    api.nvim_buf_set_lines(before, 0, -1, true, base(file, buf))
    vim.bo[before].bufhidden = "wipe"
    vim.bo[before].modifiable = false
    vim.bo[before].filetype = vim.bo[buf].filetype
  end
  vim.cmd("leftabove vsplit")
  local left = api.nvim_get_current_win()
  api.nvim_win_set_buf(left, before)
  vim.wo[left].winbar = file.offer and "the agent's version, on disk" or "before the pending changes"
  vim.cmd("diffthis")
  api.nvim_set_current_win(right)
  vim.cmd("diffthis")
  local tab = api.nvim_get_current_tabpage()
  api.nvim_create_autocmd("WinClosed", {
    pattern = { tostring(left), tostring(right) },
    once = true,
    callback = function()
      vim.schedule(function()
        if api.nvim_tabpage_is_valid(tab) and #api.nvim_list_tabpages() > 1 then
          for _, win in ipairs({ left, right }) do
            if api.nvim_win_is_valid(win) then
              api.nvim_win_call(win, function()
                vim.cmd("diffoff")
              end)
            end
          end
          vim.cmd(api.nvim_tabpage_get_number(tab) .. "tabclose")
        end
      end)
    end,
  })
end

return M
