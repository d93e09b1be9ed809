#!/usr/bin/env python3
"""Takes doc/picture.svg from a real session: the guided tour asks for an edit while the user writes their next prompt.

    make picture

Runs with the Python of `scripts/deps.py python`; the Neovim is $AGENTCHAT_NVIM, the helper $AGENTCHAT_BINARY or the
release build.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from screen_svg import draw

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.nvim import Nvim  # noqa: E402 (its place is known only now)

SIZE = (138, 42)
TARGET = ROOT / "doc/picture.svg"
TITLE = "~/featherweight – nvim"
DESCRIPTION = (
    "Neovim with a Python file on the left and the chat on the right: plan, a file that the agent has read, its "
    "proposed edit as a diff, and a float that asks for permission while the user writes the next prompt."
)
PROMPT = "How heavy would I be on the Moon?"
NEXT_PROMPT = "Thanks! Then run the checks."

SETUP = """
local root, binary = ...
vim.opt.runtimepath:prepend(root)
vim.g.agentchat = { binary = binary, default_agent = "tour", layout = { width = 0.46 } }
vim.keymap.set("n", "<leader>aa", "<Plug>(agentchat-toggle)")
vim.keymap.set("n", "<leader>ay", "<Plug>(agentchat-allow)")
vim.keymap.set("n", "<leader>an", "<Plug>(agentchat-deny)")
vim.keymap.set("n", "<leader>ap", "<Plug>(agentchat-permission)")
vim.cmd.runtime("plugin/agentchat.lua")
vim.o.ruler = false
vim.opt.fillchars = { eob = " " }
"""

# How long the screen has to stay as it is, in seconds, before it counts as finished.
SETTLED = 1.0


def play(nvim):
    """Brings the screen to the moment that is worth a picture."""
    helper = os.environ.get("AGENTCHAT_BINARY") or str(ROOT / "target/release/agentchat")
    nvim.lua(SETUP, str(ROOT), helper)
    nvim.command("edit gravity.py")
    nvim.command("setlocal number nowrap")
    nvim.command("AgentChat")
    nvim.wait(lambda: shows(nvim, "idle"), what="the agent")
    nvim.input(f"i{PROMPT}<C-s>")
    nvim.wait(lambda: shows(nvim, "Make this edit"), what="the question")
    nvim.input(NEXT_PROMPT)
    nvim.wait(lambda: shows(nvim, NEXT_PROMPT), what="the next prompt")
    wait_until_settled(nvim)


def shows(nvim, text):
    return any(text in row for row in nvim.screen())


def resting_cells(nvim):
    """The screen's cells, with the spinner in its first position: it turns as long as the question is open."""
    return [
        [("\u280b" if "\u2800" <= text <= "\u28ff" else text, attrs) for text, attrs in row]
        for row in nvim.screen_cells()
    ]


def wait_until_settled(nvim):
    last, since = None, time.monotonic()

    def settled():
        nonlocal last, since
        screen = resting_cells(nvim)
        if screen != last:
            last, since = screen, time.monotonic()
        return time.monotonic() - since >= SETTLED

    nvim.wait(settled, what="the screen to come to rest")


def main():
    with tempfile.TemporaryDirectory(prefix="agentchat-picture-") as folder:
        project = Path(folder) / "featherweight"
        shutil.copytree(ROOT / "assets/sample-project", project)
        with Nvim(args=["--clean"], cwd=project, size=SIZE, env={"AGENTCHAT_TOUR_PACE": "0"}) as nvim:
            play(nvim)
            mode = "insert" if nvim.mode()["mode"].startswith("i") else "normal"
            picture = draw(resting_cells(nvim), nvim.cursor(), mode, TITLE, DESCRIPTION)
    TARGET.write_text(picture, encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {len(picture) // 1024} KiB")


if __name__ == "__main__":
    main()
