if vim.g.loaded_agentchat or vim.fn.has("nvim-0.10") == 0 then
  return
end
vim.g.loaded_agentchat = true

vim.api.nvim_create_user_command("AgentChat", function(opts)
  require("agentchat.command").run(opts)
end, {
  nargs = "*",
  range = true,
  bang = true,
  desc = "Talk to a coding agent",
  complete = function(...)
    return require("agentchat.command").complete(...)
  end,
})

local plugs = {
  ["agentchat-toggle"] = "require('agentchat').toggle()",
  ["agentchat-cancel"] = "require('agentchat').cancel()",
  ["agentchat-follow"] = "require('agentchat').follow('toggle')",
  ["agentchat-trail"] = "require('agentchat.follow.trail').fill()",
  ["agentchat-trail-next"] = "require('agentchat.follow.trail').walk(1)",
  ["agentchat-trail-prev"] = "require('agentchat.follow.trail').walk(-1)",
  ["agentchat-allow"] = "require('agentchat.permission').decide('allow')",
  ["agentchat-deny"] = "require('agentchat.permission').decide('deny')",
  ["agentchat-permission"] = "require('agentchat.permission').show()",
  ["agentchat-answer"] = "require('agentchat.questions').answer()",
  ["agentchat-mode"] = "require('agentchat.choices').set('mode')",
  ["agentchat-mode-next"] = "require('agentchat.choices').cycle('mode')",
  ["agentchat-model"] = "require('agentchat.choices').set('model')",
  ["agentchat-options"] = "require('agentchat.choices').set()",
  ["agentchat-paste-image"] = "require('agentchat.paste').image()",
  ["agentchat-next"] = "require('agentchat.changes.review').go(vim.v.count1)",
  ["agentchat-prev"] = "require('agentchat.changes.review').go(-vim.v.count1)",
  ["agentchat-review"] = "require('agentchat').review()",
  ["agentchat-take-back"] = "require('agentchat.prompt').take_back_current()",
}
-- A request is answered without leaving what one is doing.
local anywhere = { ["agentchat-allow"] = true, ["agentchat-deny"] = true }
for name, call in pairs(plugs) do
  local modes = anywhere[name] and { "n", "x", "i", "t" } or "n"
  vim.keymap.set(modes, "<Plug>(" .. name .. ")", "<Cmd>lua " .. call .. "<CR>")
end

for _, verb in ipairs({ "accept", "reject" }) do
  for _, scope in ipairs({ "hunk", "file", "all" }) do
    local name = scope == "hunk" and verb or verb .. "-" .. scope
    vim.keymap.set("n", "<Plug>(agentchat-" .. name .. ")", function()
      return require("agentchat.changes.review").keys(verb, scope)
    end, { expr = true })
  end
end

local group = vim.api.nvim_create_augroup("agentchat", {})
vim.api.nvim_create_autocmd("BufReadCmd", {
  group = group,
  pattern = "agentchat://*",
  callback = function(args)
    require("agentchat.restore").buffer(args.buf)
  end,
})
vim.api.nvim_create_autocmd("BufFilePost", {
  group = group,
  pattern = "agentchat://*",
  callback = function()
    -- A session file names our buffers with `:file`, having turned the messages about that on: several of them bring up
    -- the hit-enter prompt. It puts the option back at its end.
    if vim.g.SessionLoad == 1 then
      vim.opt.shortmess:append("F")
    end
  end,
})
vim.api.nvim_create_autocmd("SessionLoadPost", {
  group = group,
  callback = function()
    for _, buf in ipairs(vim.api.nvim_list_bufs()) do
      if vim.startswith(vim.api.nvim_buf_get_name(buf), "agentchat://") then
        require("agentchat.restore").session()
        return
      end
    end
  end,
})
vim.api.nvim_create_autocmd("SessionWritePost", {
  group = group,
  callback = function()
    if package.loaded["agentchat.chats"] then
      require("agentchat.session_file").written()
    end
  end,
})
vim.api.nvim_create_autocmd("ColorScheme", {
  group = group,
  callback = function()
    require("agentchat.highlight").set()
  end,
})
vim.api.nvim_create_autocmd("VimLeavePre", {
  group = group,
  callback = function()
    if package.loaded["agentchat.helper"] then
      require("agentchat.lifecycle").leaving()
    end
  end,
})
