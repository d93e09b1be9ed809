"""Neovim with the plugin, in a chat with one real agent: what a user can do and see."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from catalogue import REPOSITORY, Agent
from model import plays
from recording import Recording
from sandbox import Sandbox

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
from nvim import Nvim  # noqa: E402

TAP = Path(__file__).with_name("tap.py")
# A turn of an agent on a busy machine: seconds.
TURN = 120.0
# `:AgentChat allow` is refused when the request was displayed less than 500 ms ago.
READING = 0.6
# How soon nothing of a session may be left after Neovim is gone: seconds.
AFTERLIFE = 2.0

INIT = """
vim.opt.runtimepath:prepend({repository})
vim.o.swapfile = false
vim.g.agentchat = vim.json.decode({config})
_G.agentchat_events = {{}}
vim.api.nvim_create_autocmd("User", {{
  pattern = "AgentChat*",
  callback = function(event)
    table.insert(_G.agentchat_events, {{ name = event.match, data = event.data }})
  end,
}})
"""

# The text of the first buffer with this filetype, or nothing; `shown` only looks at the windows of this tab.
BUFFER_TEXT = """
local filetype, shown = ...
local buffers = shown and vim.tbl_map(vim.api.nvim_win_get_buf, vim.api.nvim_tabpage_list_wins(0))
  or vim.api.nvim_list_bufs()
for _, buffer in ipairs(buffers) do
  if vim.api.nvim_buf_is_loaded(buffer) and vim.bo[buffer].filetype == filetype then
    return vim.api.nvim_buf_get_lines(buffer, 0, -1, false)
  end
end
return vim.NIL
"""

ENTER_WINDOW = """
for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  if vim.bo[vim.api.nvim_win_get_buf(window)].filetype == ... then
    vim.api.nvim_set_current_win(window)
    return true
  end
end
return false
"""

FILE_STATE = """
local buffer = vim.fn.bufnr("^" .. ... .. "$")
if buffer < 0 or not vim.api.nvim_buf_is_loaded(buffer) then
  return vim.NIL
end
return { text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\\n") .. "\\n",
  modified = vim.bo[buffer].modified }
"""

COMPLAINT = re.compile(r"\b[EW]\d+:|error|traceback", re.IGNORECASE)


Key = tuple[int, str]
"""A process id and when the process started, which together name it for good."""


class Chat:
    """One Neovim, one chat. Every wait has a deadline; a failed one raises `NvimTimeout` with the screen."""

    def __init__(self, agent: Agent, box: Sandbox, binary: Path, traffic: Path) -> None:
        self.agent, self.box = agent, box
        self.recording = Recording(traffic)
        # Everything that the agent needs comes from the plugin's own options, as it would for a user.
        command = [sys.executable, str(TAP), str(traffic), *agent.command]
        config = {
            "binary": str(binary),
            "default_agent": agent.name,
            "agents": {agent.name: {"command": command, "env": box.agent_env}},
        }
        init = box.home / "init.lua"
        init.write_text(INIT.format(repository=_lua_string(str(REPOSITORY)), config=_lua_string(json.dumps(config))))
        self._before_prompt = 0
        self._turns_before_prompt = 0
        self.nvim = Nvim(args=["-u", str(init), "-i", "NONE"], cwd=box.project, size=(140, 45))

    def open(self) -> float:
        """`:AgentChat open`; the seconds until there is a prompt to type in."""
        start = time.monotonic()
        self.nvim.command("AgentChat open")
        self.wait(lambda: self.buffer("agentchat_prompt", shown=True) is not None, "a prompt window", 10)
        return time.monotonic() - start

    def type_prompt(self, play: str, words: str) -> None:
        """Types a prompt into the prompt window and sends it with <C-s>."""
        self._remember()
        window = self.nvim.call("nvim_get_current_win")
        assert self.nvim.lua(ENTER_WINDOW, "agentchat_prompt"), "no prompt window in this tab"
        self.nvim.input(f"<Esc>Go{self._words(play, words)}<C-s><Esc>")
        self.wait(lambda: not any(self.buffer("agentchat_prompt") or []), "the prompt window to be empty again", 10)
        self.nvim.call("nvim_set_current_win", window)

    def prompt(self, play: str, words: str) -> None:
        """`:AgentChat prompt`."""
        self._remember()
        self.nvim.command(f"AgentChat prompt {self._words(play, words)}")

    def _remember(self) -> None:
        self._before_prompt = len(self.transcript())
        self._turns_before_prompt = self.turns_ended()

    def _words(self, play: str, words: str) -> str:
        return f"{words} {plays.cue(play, str(self.box.project))}"

    def turn_end(self) -> str:
        """Waits until the turn of the last prompt has ended and the chat is idle; its stop reason."""
        self.wait(lambda: self._turn_ended() or self.status()["state"] == "failed", "the end of the turn", TURN)
        assert self.status()["state"] != "failed", f"the chat failed: {self.status()}"
        self.wait(lambda: self.status()["state"] == "idle", "the chat to be idle", 10)
        return (self.events("AgentChatTurnEnd")[-1] or {}).get("stop_reason", "none")

    def turns_ended(self) -> int:
        return len(self.events("AgentChatTurnEnd"))

    def _turn_ended(self) -> bool:
        return self.turns_ended() > self._turns_before_prompt

    def permission(self) -> str:
        """Waits until a permission request is displayed; its text."""
        self.wait(lambda: self.permission_shown() or self._turn_ended(), "a permission request", TURN)
        lines = self.buffer("agentchat_permission", shown=True)
        assert lines is not None, "the agent ended the turn without asking for permission"
        return "\n".join(lines)

    def permission_shown(self) -> bool:
        return self.buffer("agentchat_permission", shown=True) is not None

    def answer(self, command: str) -> None:
        """`:AgentChat allow` or `deny`, once the request has been displayed long enough to be read."""
        since, seen = time.monotonic(), self.permission()

        def settled() -> bool:
            nonlocal since, seen
            text = "\n".join(self.buffer("agentchat_permission", shown=True) or [])
            if text != seen:
                since, seen = time.monotonic(), text
            return time.monotonic() - since >= READING

        self.wait(settled, "the permission request to stay the same", 10)
        self.nvim.command(f"AgentChat {command}")
        self.wait(lambda: not self.permission_shown(), f"the permission request to go after `{command}`", 10)

    def revoke_answers(self) -> None:
        """Revokes every answer that is remembered, in the list of `:AgentChat permissions`."""
        window = self.nvim.call("nvim_get_current_win")
        self.nvim.command("AgentChat permissions list")

        def remembered() -> list[str]:
            lines = self.buffer("agentchat_permissions", shown=True)
            return [line for line in lines or [] if f" {self.agent.name}: " in line]

        self.wait(remembered, "the remembered answers", 10)
        while left := remembered():
            self.nvim.input("x")
            self.wait(lambda left=left: len(remembered()) < len(left), "an answer to be revoked", 10)
        self.nvim.input("q")
        self.wait(lambda: self.buffer("agentchat_permissions", shown=True) is None, "the list to close", 10)
        self.nvim.call("nvim_set_current_win", window)

    def cancel(self) -> None:
        self.nvim.command("AgentChat cancel")

    def restart(self) -> None:
        self.nvim.command("AgentChat restart")

    def agent_processes(self) -> dict[Key, str]:
        """The agent, as the helper started it, and what the agent has started: command lines."""
        agents = [key for key, line in _descendants(self.nvim.pid).items() if str(self.recording.path) in line]
        return {key: line for agent in agents for key, line in {agent: str(TAP), **_descendants(agent[0])}.items()}

    def kill_agent(self) -> None:
        """SIGKILL for the process that the helper started as the agent."""
        agent = next(key for key, line in self.agent_processes().items() if line == str(TAP))
        os.kill(agent[0], signal.SIGKILL)

    def status(self) -> dict[str, Any]:
        return self.nvim.lua('return require("agentchat").status()')

    def events(self, name: str) -> list[Any]:
        """The data of every `User` event of that name so far."""
        seen = self.nvim.lua("return agentchat_events")
        return [event.get("data") for event in seen if event["name"] == name]

    def transcript(self) -> list[str]:
        return self.buffer("agentchat") or []

    def since_prompt(self) -> list[str]:
        """The lines of the transcript since the last prompt, and the one before, which may have been rewritten."""
        return self.transcript()[max(0, self._before_prompt - 1) :]

    def buffer(self, filetype: str, shown: bool = False) -> list[str] | None:
        """The lines of the buffer with this filetype; None without one."""
        return self.nvim.lua(BUFFER_TEXT, filetype, shown)

    def edit(self, path: Path) -> None:
        """Opens a file in the window that is not the chat's."""
        self.nvim.lua('vim.cmd("1wincmd w") vim.cmd.edit(vim.fn.fnameescape(...))', str(path))

    def file(self, path: Path) -> dict[str, Any] | None:
        """`text` and `modified` of a file's buffer; None when it is not loaded."""
        return self.nvim.lua(FILE_STATE, str(path))

    def forget(self, path: Path) -> None:
        """Drops a file's buffer with whatever is unsaved in it."""
        if self.file(path) is not None:
            self.nvim.lua('vim.cmd.bwipeout({ vim.fn.bufnr("^" .. ... .. "$"), bang = true })', str(path))

    def complaints(self) -> list[str]:
        """The lines of `:messages` that look like something went wrong."""
        messages = self.nvim.call("nvim_exec2", "messages", {"output": True})["output"]
        return [line for line in messages.splitlines() if COMPLAINT.search(line)]

    def wait(self, condition: Callable[[], Any], what: str, timeout: float) -> Any:
        return self.nvim.wait(condition, timeout, what)

    def circumstances(self) -> str:
        """All that someone who looks into a failure needs."""
        parts = {"traffic": self.recording.tail(30, 600)}
        try:
            parts["status"] = json.dumps(self.status(), indent=2)
            parts["transcript"] = "\n".join(self.transcript())
            parts["messages"] = self.nvim.call("nvim_exec2", "messages", {"output": True})["output"]
            parts["events"] = json.dumps(self.nvim.lua("return agentchat_events"), indent=1)
        except Exception as problem:  # a report of a failure must not fail itself
            parts["Neovim"] = f"does not answer: {problem}"
        parts["screen"] = "\n".join(self.nvim.screen())
        return "\n\n".join(f"== {name}\n{text}" for name, text in parts.items())

    def quit(self, killed: bool = False) -> list[str]:
        """Quits Neovim, or kills it with SIGKILL; the command lines of what it started and what outlives it."""
        started = _descendants(self.nvim.pid)
        if killed:
            self.nvim.kill()
        self.nvim.close()
        return outliving(started)


def outliving(processes: dict[Key, str]) -> list[str]:
    """Gives processes two seconds to end; the command lines of those that have not."""
    deadline = time.monotonic() + AFTERLIFE
    while left := [line for key, line in processes.items() if key in _processes()]:
        if time.monotonic() > deadline:
            return left
        time.sleep(0.05)
    return []


def _processes() -> dict[Key, tuple[int, str]]:
    """Parent and command line of every process that is not a zombie."""
    table = {}
    listing = subprocess.run(["ps", "-Ao", "pid=,ppid=,stat=,lstart=,args="], stdout=subprocess.PIPE, check=True)
    for line in listing.stdout.decode("utf-8", "replace").splitlines():
        pid, parent, state, *rest = line.split(None, 8)
        if not state.startswith("Z"):
            table[int(pid), " ".join(rest[:5])] = (int(parent), rest[5] if len(rest) > 5 else "")
    return table


def _descendants(root: int) -> dict[Key, str]:
    processes = _processes()
    found: dict[Key, str] = {}
    wanted = {root}
    while wanted:
        children = {key: line for key, (parent, line) in processes.items() if parent in wanted and key not in found}
        found.update(children)
        wanted = {pid for pid, _ in children}
    return found


def _lua_string(text: str) -> str:
    assert "]=]" not in text
    return f"[=[{text}]=]"
