--- What lies where in a transcript buffer: where each entry begins, and what is folded. The helper tells both; they are
--- kept as extmarks, which move with the text. Folds belong to windows, so each window of the buffer gets its own.

local M = {}

local api = vim.api
local entry_ns = api.nvim_create_namespace("agentchat.entry")
local fold_ns = api.nvim_create_namespace("agentchat.fold")

---@class agentchat.Folds
---@field kinds table<integer, string> what an entry is, by its number
---@field labels table<integer, string> what a closed fold shows, by its id
---@field made table<integer, table<integer, boolean>> the folds that a window has, by window and id
---@field opened table<integer, boolean> folds that were open in the window that was closed last

---@alias agentchat.FoldStates table<integer, table<integer, boolean>> whether a fold is open, by window and id

---@type table<integer, agentchat.Folds> by buffer
local buffers = {}

---@type table<string, any>
local options = {
  foldmethod = "manual",
  foldenable = true,
  foldminlines = 1,
  foldtext = "v:lua.require'agentchat.folds'.text()",
}

---@param buf integer
---@param id integer
---@return integer? first 0-based
---@return integer? last 0-based
local function range_of(buf, id)
  local mark = api.nvim_buf_get_extmark_by_id(buf, fold_ns, id, { details = true })
  if #mark > 0 then
    return mark[1], mark[3].end_row
  end
end

--- Runs Ex commands in a window. They are ones that move nothing there.
---@param win integer
---@param commands string[]
local function run_in(win, commands)
  if #commands > 0 then
    api.nvim_win_call(win, function()
      api.nvim_exec2(table.concat(commands, "\n"), {})
    end)
  end
end

--- Whether a window shows some of these lines: its user would see a fold close before their eyes.
---@param win integer
---@param first integer 1-based
---@param last integer 1-based
local function shows(win, first, last)
  local info = vim.fn.getwininfo(win)[1]
  return info ~= nil and info.topline <= last and info.botline >= first
end

--- Which folds of a window are open.
---@param buf integer
---@param win integer
---@param ids integer[]
---@return table<integer, boolean>
local function states_in(buf, win, ids)
  local states = {}
  local known = buffers[buf]
  api.nvim_win_call(win, function()
    for _, id in ipairs(ids) do
      local first = range_of(buf, id)
      if first and known.made[win] and known.made[win][id] then
        states[id] = vim.fn.foldlevel(first + 1) > 0 and vim.fn.foldclosed(first + 1) == -1
      end
    end
  end)
  return states
end

--- Whether a normal mode command of ours would not become part of what the user is doing.
local function may_run_normal()
  return vim.fn.mode(1):find("^[vV\22sS\19]") == nil and vim.fn.mode(1):find("^no") == nil
end

--- Gives windows their folds once the user has done with what they select or are about to change.
---@param buf integer
local function prepare_later(buf)
  api.nvim_create_autocmd("ModeChanged", {
    once = true,
    callback = vim.schedule_wrap(function()
      for _, win in ipairs(buffers[buf] and vim.fn.win_findbuf(buf) or {}) do
        if not M.has(buf, win) then
          M.prepare(buf, win)
        end
      end
    end),
  })
end

--- Removes what is folded at these lines of a window.
---@param win integer
---@param lines integer[] 1-based
local function delete_folds(win, lines)
  api.nvim_win_call(win, function()
    local view
    for _, line in ipairs(lines) do
      if line <= api.nvim_buf_line_count(0) and vim.fn.foldlevel(line) > 0 then
        view = view or vim.fn.winsaveview()
        api.nvim_win_set_cursor(0, { line, 0 })
        vim.cmd("silent! normal! zd")
      end
    end
    if view then
      vim.fn.winrestview(view)
    end
  end)
end

--- Gives a window all folds of its buffer, in place of what it had.
---@param buf integer
---@param win integer
local function rebuild(buf, win)
  local known = buffers[buf]
  if not may_run_normal() then
    known.made[win] = nil
    prepare_later(buf)
    return
  end
  local commands, made = {}, {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, fold_ns, 0, -1, { details = true })) do
    local id, first, last = mark[1], mark[2] + 1, mark[4].end_row + 1
    commands[#commands + 1] = ("%d,%dfold"):format(first, last)
    if known.opened[id] then
      commands[#commands + 1] = ("%dfoldopen"):format(first)
    end
    made[id] = true
  end
  api.nvim_win_call(win, function()
    vim.cmd("silent! normal! zE")
  end)
  run_in(win, commands)
  known.made[win] = made
end

--- Sets a window up for folds of ours and gives it those that there are.
---@param buf integer
---@param win integer
function M.prepare(buf, win)
  if not buffers[buf] then
    return
  end
  for name, value in pairs(options) do
    api.nvim_set_option_value(name, value, { win = win, scope = "local" })
  end
  vim.wo[win][0].fillchars = (vim.go.fillchars ~= "" and vim.go.fillchars .. "," or "") .. "fold: "
  local highlights = vim.wo[win].winhighlight
  if not highlights:find("Folded:", 1, true) then
    vim.wo[win][0].winhighlight = (highlights ~= "" and highlights .. "," or "") .. "Folded:AgentChatFold"
  end
  rebuild(buf, win)
end

--- Whether a window has the buffer's folds.
---@param buf integer
---@param win integer
function M.has(buf, win)
  return buffers[buf] ~= nil and buffers[buf].made[win] ~= nil
end

--- Begins to keep folds for a transcript buffer.
---@param buf integer
---@param group integer its autocommands, which go with it
function M.own(buf, group)
  buffers[buf] = { kinds = {}, labels = {}, made = {}, opened = {} }
  api.nvim_create_autocmd("BufWinEnter", {
    group = group,
    buffer = buf,
    callback = function()
      M.prepare(buf, api.nvim_get_current_win())
    end,
  })
  api.nvim_create_autocmd("WinNew", {
    group = group,
    callback = function()
      -- A split has the folds of the window it was split from.
      local win = api.nvim_get_current_win()
      local from = vim.fn.win_getid(vim.fn.winnr("#"))
      local made = buffers[buf] and buffers[buf].made[from]
      if made and api.nvim_win_get_buf(win) == buf then
        buffers[buf].made[win] = vim.deepcopy(made)
      end
    end,
  })
  api.nvim_create_autocmd("WinClosed", {
    group = group,
    callback = function(args)
      if buffers[buf] then
        buffers[buf].made[tonumber(args.match)] = nil
      end
    end,
  })
end

--- The buffer is no transcript any more.
---@param buf integer
function M.disown(buf)
  buffers[buf] = nil
end

--- Keeps which folds are open in a window, for when the buffer is shown again.
---@param buf integer
---@param win integer
function M.remember(buf, win)
  local known = buffers[buf]
  if known and known.made[win] then
    for id, open in pairs(states_in(buf, win, vim.tbl_keys(known.labels))) do
      known.opened[id] = open or nil
    end
  end
end

--- The buffer's text is about to be sent anew.
---@param buf integer
function M.clear(buf)
  local known = buffers[buf]
  if not known then
    return
  end
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    M.remember(buf, win)
    known.made[win] = known.made[win] and {}
  end
  api.nvim_buf_clear_namespace(buf, entry_ns, 0, -1)
  api.nvim_buf_clear_namespace(buf, fold_ns, 0, -1)
  known.kinds, known.labels = {}, {}
end

--- Which of the folds that marks are about are open, before the edits that the marks come with.
---@param buf integer
---@param marks table[]
---@return agentchat.FoldStates
function M.states(buf, marks)
  local known, states, ids = buffers[buf], {}, {}
  for _, mark in ipairs(known and marks or {}) do
    if mark[1] == "f" and known.labels[mark[2]] then
      ids[#ids + 1] = mark[2]
    end
  end
  if #ids > 0 then
    for _, win in ipairs(vim.fn.win_findbuf(buf)) do
      states[win] = states_in(buf, win, ids)
    end
  end
  return states
end

--- Makes, moves or removes folds in one window.
---@param buf integer
---@param win integer
---@param marks table[]
---@param before table<integer, boolean>
---@param gone integer[] lines of folds that are no more
---@param follows boolean whether the window goes on to the end of the text anyway
---@return boolean collapsed whether a fold was closed
local function fold_window(buf, win, marks, before, gone, follows)
  local known = buffers[buf]
  local made = known.made[win]
  local commands, stale, collapsed = {}, vim.list_extend({}, gone), false
  for _, mark in ipairs(marks) do
    if mark[1] == "f" then
      local id, first, last = mark[2], mark[3] + 1, mark[4] + 1
      if made[id] then
        vim.list_extend(stale, { first, last })
      end
      local open = before[id]
      if open == nil then
        open = known.opened[id] or not follows and shows(win, first, last)
      end
      commands[#commands + 1] = ("%d,%dfold"):format(first, last)
      if open then
        commands[#commands + 1] = ("%dfoldopen"):format(first)
      end
      collapsed = collapsed or not open
      made[id] = true
    elseif mark[1] == "u" then
      made[mark[2]] = nil
    end
  end
  if #stale > 0 and not may_run_normal() then
    M.remember(buf, win)
    rebuild(buf, win)
    return false
  end
  delete_folds(win, stale)
  run_in(win, commands)
  return collapsed
end

--- Takes what is new about the buffer's rows; after the edits, and before the windows that follow are moved.
---@param buf integer
---@param marks table[] doc/architecture.md, "Marks"
---@param before agentchat.FoldStates
---@param following integer[] windows
---@return integer[] collapsed those of `following` in which a fold was closed
function M.apply(buf, marks, before, following)
  local known = buffers[buf]
  if not known then
    return {}
  end
  local gone, any, collapsed = {}, false, {}
  for _, mark in ipairs(marks) do
    local kind, id = mark[1], mark[2]
    if kind == "e" then
      known.kinds[id] = mark[4]
      api.nvim_buf_set_extmark(buf, entry_ns, mark[3], 0, { id = id + 1 })
    elseif kind == "f" then
      any = true
      known.labels[id] = mark[5]
      api.nvim_buf_set_extmark(buf, fold_ns, mark[3], 0, { id = id, end_row = mark[4], end_col = 0 })
    elseif kind == "u" then
      any = true
      local first, last = range_of(buf, id)
      vim.list_extend(gone, first and { first + 1, last + 1 } or {})
      known.labels[id], known.opened[id] = nil, nil
      api.nvim_buf_del_extmark(buf, fold_ns, id)
    else
      error(("unknown mark %s"):format(vim.inspect(kind)))
    end
  end
  for _, win in ipairs(any and vim.fn.win_findbuf(buf) or {}) do
    local follows = vim.list_contains(following, win)
    if not known.made[win] then
      M.prepare(buf, win)
    elseif fold_window(buf, win, marks, before[win] or {}, gone, follows) and follows then
      collapsed[#collapsed + 1] = win
    end
  end
  return collapsed
end

--- Scrolls windows that follow back as far as their end stays in view: where a long thought was, a closed fold leaves
--- them half empty.
---@param wins integer[] those where folds were closed
function M.fill(wins)
  if #wins == 0 or not may_run_normal() then
    return
  end
  for _, win in ipairs(wins) do
    api.nvim_win_call(win, function()
      local height = api.nvim_win_text_height(win, { start_row = vim.fn.line("w0") - 1 }).all
      if vim.fn.line("w0") > 1 and height < api.nvim_win_get_height(win) - 1 then
        vim.cmd("normal! zb")
      end
    end)
  end
end

--- 'foldtext' of the transcript's windows.
---@return string
function M.text()
  local known = buffers[api.nvim_get_current_buf()]
  local row = vim.v.foldstart - 1
  local mark = known and api.nvim_buf_get_extmarks(0, fold_ns, { row, 0 }, { row, 0 }, { limit = 1 })[1]
  return mark and known.labels[mark[1]] or vim.fn.foldtext()
end

---@class agentchat.EntryPlace
---@field entry integer the helper's number of it
---@field kind "user"|"agent"|"thought"|"tool"|"plan"|"notice"
---@field row integer its first row, 0-based

---@param buf integer
---@param mark any[]
---@return agentchat.EntryPlace
local function place(buf, mark)
  return { entry = mark[1] - 1, kind = buffers[buf].kinds[mark[1] - 1], row = mark[2] }
end

--- The entry that a row belongs to.
---@param buf integer
---@param row integer 0-based
---@return agentchat.EntryPlace?
function M.entry_at(buf, row)
  local mark = buffers[buf] and api.nvim_buf_get_extmarks(buf, entry_ns, { row, -1 }, 0, { limit = 1 })[1]
  return mark and place(buf, mark) or nil
end

--- The row after the last one of the entry that a row belongs to; blank rows between entries count as part of it.
---@param buf integer
---@param row integer 0-based
---@return integer
function M.entry_end(buf, row)
  local mark = api.nvim_buf_get_extmarks(buf, entry_ns, { row + 1, 0 }, -1, { limit = 1 })[1]
  return mark and mark[2] or api.nvim_buf_line_count(buf)
end

--- The entries of these kinds below or above a row, nearest first.
---@param buf integer
---@param row integer 0-based
---@param step 1|-1
---@param kinds table<string, boolean>
---@return agentchat.EntryPlace[]
function M.entries_from(buf, row, step, kinds)
  if not buffers[buf] or (step < 0 and row == 0) then
    return {}
  end
  local from, to = { row + 1, 0 }, -1
  if step < 0 then
    from, to = { row - 1, -1 }, 0
  elseif row + 1 >= api.nvim_buf_line_count(buf) then
    return {}
  end
  local found = {}
  -- From a later place to an earlier one they come in that order.
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, entry_ns, from, to, {})) do
    local entry = place(buf, mark)
    if kinds[entry.kind] then
      found[#found + 1] = entry
    end
  end
  return found
end

return M
