--- Pending hunks as they are seen in their buffers: the old lines as virtual lines above the new ones, which are coloured.
---
--- A mark costs about as much as the line it is about, so marks are set only for rows that some window shows: for a changed
--- table at once, for others when they come into view, before Neovim draws: virtual lines change what there is to draw. The
--- text of the window that the user is in stays where it is: old
--- lines that would push the cursor down are a word at the end of the line until the user moves.

local M = {}

local api = vim.api
local buffer = require("agentchat.changes.buffer")
local hunks_of = require("agentchat.changes.hunks")
local store = require("agentchat.changes.store")
local syntax = require("agentchat.changes.syntax")
local virtual = require("agentchat.changes.virtual")
local words = require("agentchat.changes.words")

local ns = api.nvim_create_namespace("agentchat.diff")

--- Below marks of others that are set without a priority.
local PRIORITY = 90
--- Lines of a hunk whose words are compared.
local MOST_PAIRS = 30

---@class agentchat.Drawn
---@field version integer of the table
---@field hunks table<agentchat.Hunk, true>
---@field short table<integer, true> ids of hunks whose old lines wait until the user moves
---@field full table<string, true> old lines that are shown
---@field hint? integer its extmark
---@field hint_row? integer
---@field signs boolean
---@field beside boolean whether a diff in the same tab page shows what the old lines were, row by row

---@type table<integer, agentchat.Drawn>
local drawn = {}

--- The words that differ, of the old lines and of the agent's, by their numbers.
---@param hunk agentchat.Hunk
---@param lines string[]
---@return table<integer, integer[][]> of_old
---@return table<integer, integer[][]> of_new
local function changed_words(hunk, lines)
  local of_old, of_new = {}, {}
  for i = 1, math.min(#hunk.old, #lines, MOST_PAIRS) do
    of_old[i], of_new[i] = words.changed(hunk.old[i], lines[i])
  end
  return of_old, of_new
end

--- Where the old lines of a hunk are shown.
---@param hunk agentchat.Hunk
---@param count integer rows of the buffer
---@return integer row
---@return boolean above
local function anchor(hunk, count)
  if hunk.first < count then
    return hunk.first, true
  end
  return count - 1, false
end

--- Whether the old lines would move the text that the user looks at.
---@param buf integer
---@param row integer
---@param above boolean
local function pushes_cursor(buf, row, above)
  if not above or api.nvim_get_current_buf() ~= buf then
    return false
  end
  return vim.fn.line("w0") - 1 < row and row <= vim.fn.line(".") - 1
end

---@param count integer
local function lines_word(count)
  return count == 1 and "1 line" or count .. " lines"
end

--- Whether the agent deleted the file of a buffer that still has its text: there is no need to show it twice.
---@param buf integer
---@return boolean
local function is_deleted_below_text(buf)
  local file = buffer.file_of(buf)
  return file ~= nil and file.facts.deleted == true and api.nvim_buf_get_offset(buf, api.nvim_buf_line_count(buf)) > 1
end

---@param buf integer
---@param state agentchat.Drawn
---@param hunk agentchat.Hunk
---@param is_new boolean whether it appears while the user looks on
---@param of_old table<integer, integer[][]> words of its old lines that are no more
local function draw_old(buf, state, hunk, is_new, of_old)
  local row, above = anchor(hunk, api.nvim_buf_line_count(buf))
  local text_of_old = table.concat(hunk.old, "\n")
  if is_new and not state.full[text_of_old] and pushes_cursor(buf, row, above) then
    state.short[hunk.id] = true
  end
  local mark = { priority = PRIORITY, number_hl_group = "AgentChatDiffDeleteNumber" }
  if is_deleted_below_text(buf) then
    mark.virt_text, mark.virt_text_pos = { { " deleted on disk by the agent", "AgentChatDiffHint" } }, "eol"
    api.nvim_buf_set_extmark(buf, ns, row, 0, mark)
    return
  end
  if state.signs and #hunk.flags == 0 then
    mark.sign_text, mark.sign_hl_group = "_", "AgentChatDiffDeleteNumber"
  end
  -- Above the first row virtual lines are out of sight until the window is scrolled.
  if state.short[hunk.id] or (above and row == 0) then
    local text = (" −%s"):format(lines_word(#hunk.old))
    mark.virt_text, mark.virt_text_pos = { { text, "AgentChatDiffHint" } }, "eol"
  end
  if not state.short[hunk.id] and not state.beside then
    state.full[text_of_old] = true
    local lines = {}
    local tabstop = vim.bo[buf].tabstop
    local colours = syntax.groups(buf, hunk.old) or {}
    -- The new lines must have room on the same screen.
    local most = math.max(5, math.floor(vim.o.lines / 2))
    for i = 1, math.min(#hunk.old, most) do
      lines[i] = virtual.line(hunk.old[i], of_old[i] or {}, tabstop, colours[i])
    end
    if #hunk.old > most then
      lines[#lines + 1] = { { ("… and %s"):format(lines_word(#hunk.old - most)), "AgentChatDiffHint" } }
    end
    mark.virt_lines, mark.virt_lines_above = lines, above
    if vim.fn.has("nvim-0.11") == 1 then
      mark.virt_lines_overflow = "scroll"
    end
  end
  api.nvim_buf_set_extmark(buf, ns, row, 0, mark)
end

---@param buf integer
---@param state agentchat.Drawn
---@param hunk agentchat.Hunk
---@param is_new boolean
local function draw(buf, state, hunk, is_new)
  state.hunks[hunk] = true
  local lines = api.nvim_buf_get_lines(buf, hunk.first, hunks_of.last(hunk), false)
  local of_old, of_new = changed_words(hunk, lines)
  if #hunk.old > 0 then
    draw_old(buf, state, hunk, is_new, of_old)
  end
  for i, line in ipairs(lines) do
    if hunk.flags:byte(i) == 97 then
      local row = hunk.first + i - 1
      api.nvim_buf_set_extmark(buf, ns, row, 0, {
        line_hl_group = "AgentChatDiffAdd",
        number_hl_group = "AgentChatDiffAddNumber",
        sign_text = state.signs and "+" or nil,
        sign_hl_group = state.signs and "AgentChatDiffAddNumber" or nil,
        priority = PRIORITY,
      })
      for _, range in ipairs(of_new[i] or {}) do
        api.nvim_buf_set_extmark(buf, ns, row, range[1], {
          end_col = math.min(range[2], #line),
          hl_group = "AgentChatDiffAddWord",
          priority = PRIORITY + 1,
        })
      end
    end
  end
end

--- The hunks in some rows that have no marks yet.
---@param buf integer
---@param file agentchat.ChangedFile
---@param first integer
---@param last integer
---@return agentchat.Hunk[]
local function missing(buf, file, first, last)
  local state, list = drawn[buf], {}
  local at = hunks_of.after(file.hunks, first - 1)
  -- A deletion at the first row ends there.
  while at > 1 and hunks_of.last(file.hunks[at - 1]) >= first do
    at = at - 1
  end
  local hunk = file.hunks[at]
  while hunk and hunk.first <= last do
    if not state.hunks[hunk] then
      list[#list + 1] = hunk
    end
    at = at + 1
    hunk = file.hunks[at]
  end
  return list
end

--- Whether a column of signs is there without ours.
---@param buf integer
local function has_sign_column(buf)
  local wins = vim.fn.win_findbuf(buf)
  for _, win in ipairs(wins) do
    if not vim.startswith(vim.wo[win].signcolumn, "yes") then
      return false
    end
  end
  return #wins > 0
end

--- Whether the buffer is in a diff in the current tab page: rows of ours would have none beside them.
---@param buf integer
local function is_beside(buf)
  return vim.iter(api.nvim_tabpage_list_wins(0)):any(function(win)
    return vim.wo[win].diff and api.nvim_win_get_buf(win) == buf
  end)
end

--- The key that is mapped to a `<Plug>` mapping, else the command.
---@param verb "accept"|"reject"
---@return string
local function way(verb)
  local plug = ("<plug>(agentchat-%s)"):format(verb)
  for _, map in ipairs(api.nvim_get_keymap("n")) do
    if map.rhs and map.rhs:lower() == plug then
      return ("%s %s"):format(map.lhs, verb)
    end
  end
  return ":AgentChat " .. verb
end

---@param buf integer
---@param state agentchat.Drawn
---@param row integer?
local function move_hint(buf, state, row)
  if state.hint_row == row or drawn[buf] ~= state or not api.nvim_buf_is_loaded(buf) then
    return
  end
  if state.hint then
    api.nvim_buf_del_extmark(buf, ns, state.hint)
  end
  state.hint, state.hint_row = nil, row
  if row and row < api.nvim_buf_line_count(buf) then
    state.hint = api.nvim_buf_set_extmark(buf, ns, row, 0, {
      virt_text = { { (" %s · %s"):format(way("accept"), way("reject")), "AgentChatDiffHint" } },
      virt_text_pos = "eol",
      priority = PRIORITY + 2,
    })
  end
end

--- The row of the first hunk in view, where the hint goes.
---@param buf integer
---@param file agentchat.ChangedFile
---@param first integer
---@param last integer
---@return integer?
local function hint_row(buf, file, first, last)
  if not require("agentchat.config").get().changes.hint then
    return nil
  end
  local count = api.nvim_buf_line_count(buf)
  for at = hunks_of.after(file.hunks, first - 1), #file.hunks do
    local hunk = file.hunks[at]
    local row = math.max(math.min(hunk.first, count - 1), math.min(first, hunks_of.last(hunk) - 1))
    if hunk.first > last then
      return nil
    elseif row >= first and row <= last then
      return row
    end
  end
end

--- Sets the marks of the rows that a window shows, and the hint in the current one.
---@param win integer
---@param buf integer
---@param file agentchat.ChangedFile
---@param is_new boolean
local function draw_window(win, buf, file, is_new)
  local first = vim.fn.line("w0", win) - 1
  local last = first + api.nvim_win_get_height(win)
  for _, hunk in ipairs(missing(buf, file, first, last)) do
    draw(buf, drawn[buf], hunk, is_new)
  end
  if win == api.nvim_get_current_win() then
    move_hint(buf, drawn[buf], hint_row(buf, file, first, last))
  end
end

---@param buf integer
---@param file agentchat.ChangedFile
local function begin(buf, file)
  local before = drawn[buf]
  if before then
    api.nvim_buf_clear_namespace(buf, ns, 0, -1)
  end
  local short = {}
  for _, hunk in ipairs(before and next(before.short) and file.hunks or {}) do
    short[hunk.id] = before.short[hunk.id]
  end
  drawn[buf] = {
    version = file.version,
    hunks = {},
    short = short,
    full = before and before.full or {},
    signs = has_sign_column(buf),
    beside = is_beside(buf),
  }
end

--- Draws a table anew wherever it is visible.
---@param file agentchat.ChangedFile
---@param is_new? boolean whether the hunks appear while the user looks on
local function redraw(file, is_new)
  local buf = file.buf
  if not buf or not api.nvim_buf_is_loaded(buf) then
    return
  end
  if #file.hunks == 0 then
    if drawn[buf] then
      api.nvim_buf_clear_namespace(buf, ns, 0, -1)
      drawn[buf] = nil
    end
    return
  end
  local state = drawn[buf]
  if state and state.version == file.version and state.beside == is_beside(buf) then
    return
  end
  begin(buf, file)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    draw_window(win, buf, file, is_new or false)
  end
end

--- Old lines that waited are shown once they do not push the cursor any more, or the user is among the hunk's lines.
---@param buf integer
local function lengthen(buf)
  local file, state = buffer.file_of(buf), drawn[buf]
  if not file or not state or next(state.short) == nil then
    return
  end
  local row = vim.fn.line(".") - 1
  local changed = false
  for _, hunk in ipairs(file.hunks) do
    if state.short[hunk.id] then
      local at, above = anchor(hunk, api.nvim_buf_line_count(buf))
      local inside = hunk.first <= row and row <= math.max(hunk.first, hunks_of.last(hunk) - 1)
      if inside or not pushes_cursor(buf, at, above) then
        state.short[hunk.id], changed = nil, true
      end
    end
  end
  if changed then
    state.version = -1
    redraw(file)
  end
end

--- Shows all of a hunk that the user goes to: also what is above the first row.
---@param buf integer
---@param hunk agentchat.Hunk
function M.reveal(buf, hunk)
  lengthen(buf)
  local view = vim.fn.winsaveview()
  if hunk.first == 0 and #hunk.old > 0 and view.topline == 1 and view.topfill == 0 then
    vim.fn.winrestview({ topfill = math.min(#hunk.old, math.floor(api.nvim_win_get_height(0) / 2)) })
  end
end

--- Hunks that a window's closed folds hide, as numbers of them by the row where the fold begins. In a closed fold neither
--- virtual lines nor colours are drawn.
---@param win integer
---@param file agentchat.ChangedFile
---@param first integer
---@param last integer
---@return table<integer, integer>
local function folded(win, file, first, last)
  local counts = {}
  if not vim.wo[win].foldenable then
    return counts
  end
  api.nvim_win_call(win, function()
    local at = hunks_of.after(file.hunks, first - 1)
    local hunk = file.hunks[at]
    while hunk and hunk.first <= last do
      local start = vim.fn.foldclosed(hunk.first + 1)
      if start > 0 then
        local after = hunks_of.after(file.hunks, vim.fn.foldclosedend(hunk.first + 1) - 1)
        counts[start - 1] = math.max(1, after - at)
        at = math.max(at, after - 1)
      end
      at = at + 1
      hunk = file.hunks[at]
    end
  end)
  return counts
end

---@type table<integer, table<integer, integer>> what `folded` found for each window that is drawn
local hidden = {}

---@param win integer
---@param buf integer
---@param row integer
local function on_line(win, buf, row)
  local count = hidden[win] and hidden[win][row]
  if count then
    local text = count == 1 and " 1 change " or (" %d changes "):format(count)
    api.nvim_buf_set_extmark(buf, ns, row, 0, {
      ephemeral = true,
      virt_text = { { text, "AgentChatDiffAdd" } },
      virt_text_pos = "right_align",
    })
  end
end

--- Sets the marks that are missing in the windows of the current tab page.
local function draw_windows()
  for _, win in ipairs(api.nvim_tabpage_list_wins(0)) do
    local buf = api.nvim_win_get_buf(win)
    local file = buffer.file_of(buf)
    if file and #file.hunks > 0 then
      redraw(file)
      draw_window(win, buf, file, false)
    end
  end
end

---@param win integer
---@param buf integer
---@param first integer
---@param last integer
---@return boolean whether the lines of the window are of interest
local function on_win(win, buf, first, last)
  local file = buffer.file_of(buf)
  if not file or #file.hunks == 0 then
    return false
  end
  local state = drawn[buf]
  if not state or state.version ~= file.version then
    return false
  end
  -- Closed folds and long lines make the rows of a window others than its height says.
  if #missing(buf, file, first, last) > 0 then
    vim.schedule(function()
      if drawn[buf] == state and state.version == file.version and api.nvim_buf_is_loaded(buf) then
        for _, hunk in ipairs(missing(buf, file, first, last)) do
          draw(buf, state, hunk, false)
        end
      end
    end)
  end
  hidden[win] = folded(win, file, first, last)
  return next(hidden[win]) ~= nil
end

---@type table<agentchat.ChangedFile, true>
local waiting = {}

local is_started = false

--- Draws from now on.
function M.start()
  if is_started or not require("agentchat.config").get().changes.preview then
    return
  end
  is_started = true
  require("agentchat.highlight").set()
  store.listen(function(file, later)
    if not later then
      redraw(file, true)
      return
    end
    if next(waiting) == nil then
      vim.schedule(function()
        local files = vim.tbl_keys(waiting)
        waiting = {}
        for _, each in ipairs(files) do
          redraw(each, true)
        end
      end)
    end
    waiting[file] = true
  end)
  api.nvim_set_decoration_provider(ns, {
    on_win = function(_, win, buf, first, last)
      return on_win(win, buf, first, last)
    end,
    on_line = function(_, win, buf, row)
      on_line(win, buf, row)
    end,
  })
  local group = api.nvim_create_augroup("agentchat.diff", {})
  api.nvim_create_autocmd({ "WinScrolled", "WinResized", "WinEnter", "BufWinEnter", "TabEnter" }, {
    group = group,
    callback = draw_windows,
  })
  api.nvim_create_autocmd({ "CursorMoved", "WinScrolled", "WinLeave" }, {
    group = group,
    callback = function()
      lengthen(api.nvim_get_current_buf())
    end,
  })
  api.nvim_create_autocmd("OptionSet", { group = group, pattern = "diff", callback = vim.schedule_wrap(draw_windows) })
  api.nvim_create_autocmd("BufUnload", {
    group = group,
    callback = function(args)
      drawn[args.buf] = nil
    end,
  })
end

return M
