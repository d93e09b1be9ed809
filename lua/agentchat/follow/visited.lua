--- The buffers of files that only the agent was in. They are loaded without autocommands and swap files, stay out of the
--- buffer list, and are dropped when they are no longer shown. One that the user enters becomes a buffer like any other.

local M = {}

local api = vim.api
local quiet = require("agentchat.follow.quiet")

--- Files larger than this are shown without colours, in bytes: older Neovims parse them at once.
local COLOURED = 1024 * 1024
--- Those larger than this stay without what file types bring along also when the user enters them.
local HUGE = 10 * 1024 * 1024
--- Buffers that are kept although they are not shown: agents go back and forth.
local KEPT = 10

---@class agentchat.VisitedBuffer
---@field was_known boolean whether the buffer was there before, not loaded
---@field adopted boolean whether the user has been in it
---@field huge boolean

---@type table<integer, agentchat.VisitedBuffer>
local visited = {}
---@type integer[] those loaded first come first
local order = {}

--- Colours for a buffer without a file type: that would start language servers, and whatever else there is.
---@param buf integer
---@param path string
local function colour(buf, path)
  local filetype = vim.filetype.match({ filename = path, buf = buf })
  if not filetype then
    return
  end
  local language = vim.treesitter.language.get_lang(filetype)
  if not (language and pcall(vim.treesitter.start, buf, language)) and vim.g.syntax_on then
    vim.bo[buf].syntax = filetype
  end
end

--- What the file becomes once the user is in it: what `:edit` would have made of it.
---@param buf integer
local function adopt(buf)
  local state = visited[buf]
  if not state or state.adopted or api.nvim_get_current_buf() ~= buf then
    return
  end
  state.adopted = true
  if state.huge then
    return
  end
  local shortmess = vim.o.shortmess
  vim.opt.shortmess:append("A")
  pcall(api.nvim_set_option_value, "swapfile", vim.go.swapfile, { buf = buf })
  vim.o.shortmess = shortmess
  local ok, reason = pcall(api.nvim_exec_autocmds, "BufReadPost", { buffer = buf, modeline = false })
  if not ok then
    require("agentchat.message").show("warn", ("an autocommand for a file failed: %s"):format(reason))
  end
end

local watching = false

local function watch()
  if watching then
    return
  end
  watching = true
  api.nvim_create_autocmd("BufEnter", {
    group = api.nvim_create_augroup("agentchat.follow.visited", {}),
    callback = function(args)
      if visited[args.buf] then
        vim.schedule(function()
          if api.nvim_buf_is_loaded(args.buf) then
            adopt(args.buf)
          end
        end)
      end
    end,
  })
end

--- The loaded buffer of a file.
---@param path string absolute
---@param size integer of the file, in bytes
---@return integer buf
function M.load(path, size)
  local was_known = vim.fn.bufexists(path) == 1
  local buf = quiet.run(function()
    -- The short name is the one that is shown.
    return vim.fn.bufadd(vim.fn.fnamemodify(path, ":."))
  end)
  if api.nvim_buf_is_loaded(buf) then
    return buf
  end
  local huge = size > HUGE
  visited[buf] = { was_known = was_known, adopted = false, huge = huge }
  order[#order + 1] = buf
  quiet.run(function()
    vim.cmd(("silent noswapfile call bufload(%d)"):format(buf))
  end)
  watch()
  -- Our own autocommand did not hear of it either.
  require("agentchat.changes.buffer").loaded(buf)
  if size <= COLOURED then
    colour(buf, path)
  end
  return buf
end

--- Whether nobody but the agent has anything to do with the buffer.
---@param buf integer
---@return boolean
local function is_only_visited(buf)
  local state = visited[buf]
  return state ~= nil
    and api.nvim_buf_is_loaded(buf)
    and not vim.bo[buf].modified
    and #vim.fn.win_findbuf(buf) == 0
    and (state.was_known and not state.adopted or not vim.bo[buf].buflisted)
end

---@param buf integer
local function drop(buf)
  local state = visited[buf]
  visited[buf] = nil
  local function delete()
    api.nvim_buf_delete(buf, { unload = state.was_known })
  end
  -- What the user was in may have a language server, which is to hear of its end; so are our own pending changes.
  local has_listeners = state.adopted or require("agentchat.changes.buffer").file_of(buf) ~= nil
  local ok, reason = pcall(has_listeners and delete or function()
    quiet.run(delete)
  end)
  if not ok then
    require("agentchat.message").show("warn", ("a buffer cannot be dropped: %s"):format(reason))
  end
end

--- Drops what is no longer shown, all of it or all but the newest.
---@param all boolean
function M.drop(all)
  local kept, hidden = {}, 0
  for i = #order, 1, -1 do
    local buf = order[i]
    if not is_only_visited(buf) then
      if visited[buf] and api.nvim_buf_is_loaded(buf) then
        table.insert(kept, 1, buf)
      else
        visited[buf] = nil
      end
    elseif not all and hidden < KEPT then
      hidden = hidden + 1
      table.insert(kept, 1, buf)
    else
      drop(buf)
    end
  end
  order = kept
end

--- The buffer stays: the user has it in front of them.
---@param buf integer
function M.keep(buf)
  if visited[buf] then
    visited[buf] = nil
    vim.bo[buf].buflisted = true
  end
end

return M
