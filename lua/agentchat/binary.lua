--- Where the helper program is.

local M = {}

--- The plugin's folder.
---@return string
function M.root()
  local source = debug.getinfo(1, "S").source:sub(2)
  return vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(vim.fn.fnamemodify(source, ":p"))))
end

--- The command that builds the helper.
---@return string
function M.build_command()
  return "cargo build --release"
end

--- The helper: the option `binary`, else the plugin's own release build (in `$CARGO_TARGET_DIR` or `target/`), else
--- `$PATH`.
---@return string? path
---@return string? problem one sentence that says what to do
function M.find()
  local name = vim.fn.has("win32") == 1 and "agentchat.exe" or "agentchat"
  local configured = require("agentchat.config").get().binary
  if configured then
    local path = vim.fn.expand(configured)
    if vim.fn.executable(path) == 1 then
      return vim.fn.exepath(path)
    end
    return nil, ("the option `binary` names no program (%s): set it right"):format(path)
  end
  local elsewhere = vim.env.CARGO_TARGET_DIR
  local target = elsewhere and vim.fs.joinpath(elsewhere, "release", name)
  if target and vim.fn.executable(target) == 1 then
    return target
  end
  local built = vim.fs.joinpath(M.root(), "target", "release", name)
  if vim.fn.executable(built) == 1 then
    return built
  end
  local found = vim.fn.exepath(name)
  if found ~= "" then
    return found
  end
  return nil, ("the helper is missing: run `%s` in %s"):format(M.build_command(), M.root())
end

return M
