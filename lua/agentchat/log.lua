--- The helper's log files.

local M = {}

---@return string
function M.folder()
  return vim.fs.joinpath(vim.fn.stdpath("log") --[[@as string]], "agentchat")
end

--- Opens the newest log file.
function M.open()
  local newest, newest_time = nil, -1
  for name, kind in vim.fs.dir(M.folder()) do
    local path = vim.fs.joinpath(M.folder(), name)
    local stat = kind == "file" and vim.uv.fs_stat(path)
    if stat and stat.mtime.sec + stat.mtime.nsec / 1e9 > newest_time then
      newest, newest_time = path, stat.mtime.sec + stat.mtime.nsec / 1e9
    end
  end
  if not newest then
    require("agentchat.message").show("info", "nothing has been logged in " .. M.folder())
    return
  end
  vim.cmd.split({ args = { newest }, magic = { file = false } })
  vim.bo.readonly = true
  vim.cmd("normal! G")
end

return M
