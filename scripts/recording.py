#!/usr/bin/env python3
"""Takes doc/follow.svg from a real session: one window follows the guide through a project, an edit is asked for, allowed, and
accepted, all while the user stays in the prompt.

    make recording

Runs with the Python of `scripts/deps.py python`; the Neovim is $AGENTCHAT_NVIM, the helper $AGENTCHAT_BINARY or the
release build.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from screen_animation import Shot, animate

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.nvim import Nvim  # noqa: E402 (its place is known only now)

SIZE = (132, 34)
TARGET = ROOT / "doc/follow.svg"
TITLE = "~/featherweight – nvim"
DESCRIPTION = (
    "A recording of Neovim with a file on the left and the chat on the right: the window on the left follows the agent "
    "through the files that it reads, a float asks for an edit that is previewed there, and after the answer the change is "
    "drawn in the file, while the user goes on writing in the prompt."
)

SETUP = """
local root, binary = ...
vim.opt.runtimepath:prepend(root)
vim.g.agentchat = { binary = binary, default_agent = "tour", layout = { width = 0.46 } }
for key, plug in pairs({ aa = "toggle", ay = "allow", an = "deny", ap = "permission", af = "follow" }) do
  vim.keymap.set("n", "<leader>" .. key, ("<Plug>(agentchat-%s)"):format(plug))
end
vim.cmd.runtime("plugin/agentchat.lua")
vim.o.ruler, vim.o.showcmd = false, false
vim.opt.fillchars = { eob = " " }
"""

# Seconds between two looks at the screen, and the longest that nothing happens in the recording.
LOOK, LULL = 0.1, 1.6
# The end is looked at for longer.
REST = 2.0


class Camera:
    """Looks at the screen over and over."""

    def __init__(self, nvim):
        self.nvim = nvim
        self.shots = []
        self.time = 0.0
        self.last = None

    def look(self):
        screen = [
            [("⠋" if "⠀" <= text <= "⣿" else text, attrs) for text, attrs in row]
            for row in self.nvim.screen_cells()
        ]
        cursor, mode = self.nvim.cursor(), self.nvim.mode()["mode"]
        mode = "insert" if mode.startswith("i") else "normal"
        now = time.monotonic()
        if self.shots and (screen, cursor, mode) == self.shots[-1][1:]:
            return
        if self.last is not None:
            self.time += min(now - self.last, LULL)
        self.last = now
        self.shots.append(Shot(self.time, screen, cursor, mode))

    def until(self, condition, what):
        def met():
            self.look()
            time.sleep(LOOK)
            return condition()

        self.nvim.wait(met, what=what, timeout=120)

    def pause(self, seconds):
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() >= end, "the time")

    def type(self, keys):
        for key in keys:
            self.nvim.input(key)
            self.pause(0.05)


def shows(nvim, text):
    return any(text in row for row in nvim.screen())


def play(nvim, camera):
    """What is recorded; returns the number of the shot for those who see only one."""
    helper = os.environ.get("AGENTCHAT_BINARY") or str(ROOT / "target/release/agentchat")
    nvim.lua(SETUP, str(ROOT), helper)
    nvim.command("edit README.md")
    nvim.command("set number nowrap | AgentChat")
    nvim.wait(lambda: shows(nvim, "idle"), what="the agent")
    camera.pause(0.8)
    nvim.input("<Esc>")
    camera.type(["\\", "a", "f"])
    camera.pause(0.8)
    camera.type([*"iedit", "<C-s>"])
    camera.until(lambda: shows(nvim, "asks"), "the question")
    camera.type(list("and then run the checks"))
    camera.pause(2.0)
    poster = len(camera.shots) - 1
    camera.type(["<Esc>", "\\", "a", "y"])
    camera.until(lambda: shows(nvim, "idle"), "the end of the turn")
    camera.pause(2.5)
    camera.type(["\\", "a", "f"])
    camera.pause(1.0)
    return poster


def main():
    with tempfile.TemporaryDirectory(prefix="agentchat-recording-") as folder:
        project = Path(folder) / "featherweight"
        shutil.copytree(ROOT / "assets/sample-project", project)
        with Nvim(args=["--clean"], cwd=project, size=SIZE, env={"AGENTCHAT_TOUR_PACE": "1"}) as nvim:
            camera = Camera(nvim)
            poster = play(nvim, camera)
    recording = animate(camera.shots, camera.time + REST, poster, TITLE, DESCRIPTION)
    TARGET.write_text(recording, encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(camera.shots)} screens, {camera.time:.0f} s, {len(recording) // 1024} KiB")


if __name__ == "__main__":
    main()
