-- The reference: the least that a client in Lua can do. It decodes and appends, and highlights nothing.
-- 35 lines with the interface of plugin.lua. The plugin is measured as ratios to this, so it must stay this small.
local M, rest, texts, buf, job, session = {}, "", {}, nil, nil, nil
local function send(id, method, params)
  vim.fn.chansend(job, vim.json.encode({ jsonrpc = "2.0", id = id, method = method, params = params }) .. "\n")
end
local function append()
  if #texts > 0 then
    vim.api.nvim_buf_set_text(buf, -1, -1, -1, -1, vim.split(table.concat(texts), "\n", { plain = true }))
    vim.api.nvim_win_set_cursor(vim.fn.bufwinid(buf), { vim.api.nvim_buf_line_count(buf), 0 })
    texts = {}
  end
end
local function on_stdout(_, lines)
  lines[1] = rest .. lines[1]
  rest = table.remove(lines)
  for _, line in ipairs(lines) do
    local message = vim.json.decode(line)
    local update = message.params and message.params.update or {}
    table.insert(texts, (update.content or {}).text or update.title and "\n[tool] " .. update.title .. "\n" or nil)
    session = session or message.result and message.result.sessionId
  end
end
function M.open(command)
  vim.api.nvim_open_win(vim.api.nvim_create_buf(false, true), true, { split = "right" })
  buf, job = vim.api.nvim_get_current_buf(), vim.fn.jobstart(command, { on_stdout = on_stdout })
  send(1, "initialize", { protocolVersion = 1, clientCapabilities = vim.empty_dict() })
  send(2, "session/new", { cwd = vim.fn.getcwd(), mcpServers = {} })
  vim.fn.timer_start(30, append, { ["repeat"] = -1 })
end
function M.ready()
  return session and buf
end
function M.submit(text)
  send(3, "session/prompt", { sessionId = session, prompt = { { type = "text", text = text } } })
end
return M
