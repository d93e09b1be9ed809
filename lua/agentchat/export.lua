--- `:AgentChat export`: the conversation as a Markdown file. The helper writes it.

local M = {}

--- Writes the current tab page's conversation.
---@param file? string its name, as of the current directory; by default one in the chat's folder with the time in it
---@param replace boolean whether a file of that name may be replaced
function M.run(file, replace)
  local chat = require("agentchat.chats").current()
  if not chat or not chat.opened then
    require("agentchat.message").show("info", "there is no conversation to export")
    return
  end
  local path
  if file then
    path = vim.fn.fnamemodify(vim.fs.normalize(file), ":p")
  else
    path = vim.fs.joinpath(chat.cwd, os.date("agentchat-%Y%m%d-%H%M%S.md"))
  end
  local title = chat.status.title
  if not title or title == "" then
    title = ("Conversation with %s"):format(chat.status.agent or chat.agent or "the agent")
  end
  require("agentchat.helper").notify("export", { chat = chat.id, path = path, title = title, replace = replace })
end

return M
