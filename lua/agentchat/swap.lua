--- Files with a swap file of another Neovim or Vim, in which there may be text that is saved nowhere.

local M = {}

local uv = vim.uv

--- Swap files of one file are numbered backwards by this letter (|swap-file|).
local LETTERS = "ponmlkjihgfedcba"

--- Where the swap files of a file may be, without the last letter of their names: where this Neovim has its own, and
--- beside the file, where Vim does.
---@param path string absolute
---@return string[]
local function places(path)
  local folder, name = vim.fs.dirname(path), vim.fs.basename(path)
  local found = { ("%s/.%s.sw"):format(folder, name) }
  for _, dir in ipairs(vim.opt.directory:get()) do
    if vim.endswith(dir, "//") then
      found[#found + 1] = vim.fs.normalize(dir) .. "/" .. path:gsub("/", "%%") .. ".sw"
    elseif dir ~= "." and not vim.startswith(dir, "./") then
      found[#found + 1] = ("%s/%s.sw"):format(vim.fs.normalize(dir), name)
    end
  end
  return found
end

--- The process of another editor that has unsaved changes of a file.
---@param path string absolute, without links
---@return integer? pid
function M.editor(path)
  for _, place in ipairs(places(path)) do
    for letter in LETTERS:gmatch(".") do
      local file = place .. letter
      if uv.fs_stat(file) then
        local info = vim.fn.swapinfo(file)
        -- Of one that has crashed the process is 0: what it left can be recovered whatever is in the file.
        if info.dirty == 1 and info.pid ~= 0 and info.pid ~= uv.os_getpid() then
          return info.pid
        end
      end
    end
  end
end

return M
