--- `:AgentChat undo`: the files that an agent changed, as they were before a turn.

local M = {}

--- Takes back the turns of the current chat from this one on.
---@param turn? integer default: the newest in which the agent changed a file
function M.run(turn)
  local chat = require("agentchat.chats").current()
  if not chat or not chat.opened then
    require("agentchat.message").show("info", "there is nothing to undo")
    return
  end
  require("agentchat.helper").notify("undo", { chat = chat.id, turn = turn })
end

--- The numbers of the turns, newest first.
---@return string[]
function M.turns()
  local chat = require("agentchat.chats").current()
  local turns = {}
  for turn = chat and chat.status.turn or 0, 1, -1 do
    turns[#turns + 1] = tostring(turn)
  end
  return turns
end

local KEEP, RESTORE = "Keep what is there", "Restore the old text over it"

--- Asks about the files in which the user has changed what the agent had changed, one after the other.
---@param chat integer
---@param turn integer
---@param paths string[]
function M.conflicts(chat, turn, paths)
  local replace = {}
  local function ask(i)
    local path = paths[i]
    if not path then
      if #replace > 0 then
        require("agentchat.helper").notify("undo", { chat = chat, turn = turn, replace = replace })
      end
      return
    end
    local question = ("You changed %s where the agent did:"):format(vim.fn.fnamemodify(path, ":~:."))
    vim.ui.select({ KEEP, RESTORE }, { prompt = question, kind = "agentchat_undo" }, function(choice)
      if choice == RESTORE then
        replace[#replace + 1] = path
      end
      ask(i + 1)
    end)
  end
  vim.schedule(function()
    ask(1)
  end)
end

return M
