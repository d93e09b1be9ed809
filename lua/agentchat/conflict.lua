--- An agent's version of a file that is not in the user's buffer, because they changed the same lines: in a scratch buffer
--- beside the file, with one message that tells how to compare the two. What could not be written is only shown. What is in
--- the file on disk already is also pending: the user accepts or rejects it as a whole, and until then their save is stopped.

local M = {}

local api = vim.api

local ns = api.nvim_create_namespace("agentchat.conflict")

---@class agentchat.Offer a version that is in the file on disk, and not in the buffer
---@field scratch integer the buffer with the agent's version
---@field seen? agentchat.SeenFile the file that holds it
---@field eol boolean whether it ends in a newline

--- The name without the folder that the user is in, which they can type.
---@param path string
---@return string
local function buffer_name(path)
  return "agentchat://agent/" .. vim.fn.fnamemodify(path, ":.")
end

---@type table<string, integer> the scratch buffer of each file
local buffers = {}

---@param path string
---@return integer
local function buffer_for(path)
  local buf = buffers[path]
  if buf and api.nvim_buf_is_valid(buf) then
    return buf
  end
  buf = api.nvim_create_buf(false, true)
  buffers[path] = buf
  api.nvim_buf_set_name(buf, buffer_name(path))
  return buf
end

---@param text string
local function warn(text)
  require("agentchat.message").show("warn", text)
end

--- Offers a version as a pending change of the file's buffer.
---@param path string
---@param scratch integer
---@param opts table
local function offer(path, scratch, opts)
  local offered = { scratch = scratch, seen = opts.seen, eol = opts.eol }
  local buf = require("agentchat.changes").offer(path, offered, opts.chat)
  if not buf then
    return
  end
  api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  api.nvim_buf_set_extmark(buf, ns, math.min(opts.row, api.nvim_buf_line_count(buf) - 1), 0, {
    virt_text = {
      { " the agent's version differs: :AgentChat review diff, accept file, reject file", "AgentChatDiffHint" },
    },
    virt_text_pos = "eol",
  })
  require("agentchat.save_guard").hold(buf, "offer")
end

--- A piece of the agent's version; with the last one the user is told.
---@param path string absolute
---@param lines string[]
---@param is_first boolean
---@param is_last boolean
---@param opts? { chat: integer, seen: agentchat.SeenFile, eol: boolean, row: integer } it is on disk; `row` is where the
---user's lines are in its way
function M.piece(path, lines, is_first, is_last, opts)
  local buf = buffer_for(path)
  vim.bo[buf].modifiable = true
  api.nvim_buf_set_lines(buf, is_first and 0 or -1, -1, false, lines)
  vim.bo[buf].modifiable = false
  if not is_last then
    return
  end
  vim.bo[buf].filetype = vim.filetype.match({ filename = path, buf = buf }) or ""
  local name = vim.fn.fnameescape(api.nvim_buf_get_name(buf))
  if opts and opts ~= vim.NIL then
    offer(path, buf, opts)
  end
  warn(("%s: the agent changed what you changed; compare with :vert diffsplit %s"):format(vim.fs.basename(path), name))
end

---@param path string
local function drop_scratch(path)
  local buf = buffers[path]
  buffers[path] = nil
  -- Whoever looks at it keeps it.
  if buf and api.nvim_buf_is_valid(buf) and #vim.fn.win_findbuf(buf) == 0 then
    api.nvim_buf_delete(buf, { force = true })
  end
end

--- Nothing waits any more: the file has been written since, or the user has decided.
---@param path string
function M.put_away(path)
  local store = require("agentchat.changes.store")
  local file = store.get(path)
  if file and file.offer then
    if file.buf and api.nvim_buf_is_valid(file.buf) then
      api.nvim_buf_clear_namespace(file.buf, ns, 0, -1)
      require("agentchat.save_guard").release(file.buf)
    end
    store.set_offer(file, nil)
    if store.pending(file) == 0 and not file.buf then
      store.forget(file)
    end
  end
  drop_scratch(path)
end

--- The edits that make the text of a buffer another one.
---@param buf integer
---@param lines string[]
---@return agentchat.Edit[] from the bottom up
local function edits_to(buf, lines)
  local function text(of)
    return table.concat(of, "\n") .. "\n"
  end
  local now = api.nvim_buf_get_lines(buf, 0, -1, true)
  local edits = {}
  local diff = vim.diff(text(now), text(lines), { result_type = "indices" }) --[[@as integer[][] ]]
  for i = #diff, 1, -1 do
    local first, count, new_first, new_count = unpack(diff[i])
    local start = count == 0 and first or first - 1
    local new = vim.list_slice(lines, new_first, new_first + new_count - 1)
    edits[#edits + 1] = require("agentchat.changes.decide").edit_of(buf, start, start + count, new)
  end
  return edits
end

--- The user takes the agent's version: their own text is one `u` away.
---@param file agentchat.ChangedFile with an offer, loaded
---@return boolean done
function M.accept(file)
  local offered, buf, chat = file.offer, file.buf, file.facts.chat
  if not offered or not buf or not api.nvim_buf_is_valid(offered.scratch) then
    M.put_away(file.path)
    return false
  end
  local files = require("agentchat.files")
  local problem = files.why_not_writable(buf)
  if problem then
    warn("nothing was accepted: " .. problem)
    return false
  end
  local lines = api.nvim_buf_get_lines(offered.scratch, 0, -1, true)
  require("agentchat.changes.buffer").replace(file, function()
    local edits = edits_to(buf, lines)
    if #edits > 0 then
      files.apply(buf, edits)
    end
    vim.bo[buf].eol = offered.eol
  end, { chat = chat }, {})
  M.put_away(file.path)
  require("agentchat.disk").is_as_seen(buf, offered.seen)
  require("agentchat.changes.decide").tell(file.path, chat, 1, {})
  return true
end

--- The user keeps their text: the agent's goes from the disk, too, where the helper puts back what was there before.
---@param file agentchat.ChangedFile with an offer, loaded
---@return boolean done
function M.reject(file)
  local offered, buf, path = file.offer, file.buf, file.path
  local lines = offered
    and api.nvim_buf_is_valid(offered.scratch)
    and api.nvim_buf_get_lines(offered.scratch, 0, -1, true)
  M.put_away(path)
  if buf and api.nvim_buf_is_loaded(buf) then
    if vim.bo[buf].modified then
      -- Their next save is what they have just decided.
      require("agentchat.disk_state").synced(buf)
    end
    if require("agentchat.helper").state == "ready" then
      -- A save while the helper puts the old file back would be taken for the agent's, or lost.
      require("agentchat.save_guard").hold(buf, "back")
    end
  end
  require("agentchat.helper").notify("offer_rejected", { path = path })
  local rejected = { { id = 0, first = 0, lines = lines or {}, old = {} } }
  require("agentchat.changes.decide").tell(path, file.facts.chat, 0, rejected)
  return true
end

--- The helper is done with a version that was rejected: what was in the file before is there again, unless somebody else has
--- written the file since or it cannot be written.
---@param path string
---@param is_back boolean
function M.taken_back(path, is_back)
  local buf = require("agentchat.changes.buffer").find(path)
  if not buf then
    return
  end
  if is_back then
    require("agentchat.disk").known(buf)
  end
  if require("agentchat.save_guard").release(buf) then
    require("agentchat.changes.decide").save(buf)
  end
end

-- Saved over, read anew, or gone: there is nothing to decide any more.
api.nvim_create_autocmd({ "BufWritePost", "BufReadPost", "BufUnload" }, {
  group = api.nvim_create_augroup("agentchat.conflict", {}),
  callback = function(args)
    local file = require("agentchat.changes.buffer").file_of(args.buf)
    if file and file.offer then
      M.put_away(file.path)
    end
  end,
})

return M
