-- Fails when the tags of the help files clash, or when a |reference| in them leads nowhere.

local folder = vim.fn.fnamemodify(debug.getinfo(1, "S").source:sub(2), ":p:h:h") .. "/doc"
local faults = {} ---@type string[]

local made, message = pcall(vim.cmd.helptags, vim.fn.fnameescape(folder))
if not made then
  table.insert(faults, tostring(message))
end

---@param file string
---@return string[] lines none when the file does not exist
local function lines_of(file)
  return vim.fn.filereadable(file) == 1 and vim.fn.readfile(file) or {}
end

local known = {} ---@type table<string, boolean>
for _, file in ipairs({ folder .. "/tags", vim.env.VIMRUNTIME .. "/doc/tags" }) do
  for _, line in ipairs(lines_of(file)) do
    known[line:match("^[^\t]+")] = true
  end
end

for _, file in ipairs(vim.fn.glob(folder .. "/*.txt", true, true)) do
  for number, line in ipairs(lines_of(file)) do
    for reference in line:gmatch("|([^%s|]+)|") do
      if not known[reference] then
        table.insert(faults, ("%s:%d: |%s| leads nowhere"):format(vim.fs.basename(file), number, reference))
      end
    end
  end
end

for _, fault in ipairs(faults) do
  io.stderr:write(fault, "\n")
end
os.exit(#faults == 0 and 0 or 1)
