"""How long a key takes to become an answer on the agent's standard input while the agent goes on talking."""

import json
import os
import random
import select
import sys
import time
from statistics import median

from measure import HERE, READY_SECONDS, UI_SIZE, MeasureError, Setup, project
from nvim import Nvim
from report import Promise

RATE = 100  # updates a second
GRACE = 0.5  # seconds in which a request that has just come into view is not answered
KEY = "<F2>"
ANSWER_SECONDS = 10.0

IS_DISPLAYED = """
local wanted = ...
for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
  local buf = vim.api.nvim_win_get_buf(win)
  if vim.bo[buf].filetype == "agentchat_permission" then
    return vim.api.nvim_buf_get_lines(buf, 0, 1, true)[1]:find(wanted, 1, true) ~= nil
  end
end
return false
"""


def answers(setup: Setup, runs: int) -> tuple[str, list[Promise]]:
    """Times from a key press to its answer on the agent's standard input. Raises MeasureError."""
    delays = _delays(20 * runs, setup)
    worst = max(delays)
    text = (
        f"key to answer on the agent's stdin, {RATE} updates/s  (worst of {len(delays)}, median)\n"
        f"  {worst:.1f} ms, {median(delays):.1f} ms"
    )
    return text, [Promise(f"key to answer on the agent's stdin while it talks: worst of {len(delays)} in ms", worst, 50.0)]


def _delays(count: int, setup: Setup) -> list[float]:
    """Answers `count` requests by a mapped key; ms, one figure for each."""
    fifo = setup.scratch / "answers"
    fifo.unlink(missing_ok=True)
    os.mkfifo(fifo)
    report = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    command = [sys.executable, str(HERE / "asking_agent.py"), str(fifo), str(count), str(RATE)]
    nvim = Nvim(
        nvim=setup.nvim,
        args=["--clean", "-n", "--cmd", f"set runtimepath^={setup.plugin} termguicolors", "README.md"],
        env={"AGENTCHAT_BENCH_BINARY": str(setup.binary)},
        cwd=project(setup.scratch),
        size=UI_SIZE,
        keep_screen=False,
    )
    try:
        nvim.lua("bench = { client = dofile((...)) }", str(HERE / "plugin.lua"))
        nvim.lua(f"vim.keymap.set('n', '{KEY}', '<Plug>(agentchat-allow)')")
        nvim.lua("bench.client.open(...)", command)
        nvim.wait(lambda: nvim.lua("return bench.client.ready()"), READY_SECONDS, "the client to be ready for a prompt")
        nvim.lua("bench.client.submit('Go.')")
        return [_answer(nvim, report, number) for number in range(1, count + 1)]
    finally:
        nvim.close()
        os.close(report)


def _answer(nvim: Nvim, report: int, number: int) -> float:
    nvim.wait(lambda: nvim.lua(IS_DISPLAYED, f"Run number {number}"), READY_SECONDS, f"request {number}")
    # Keys come at any moment between two frames.
    time.sleep(GRACE + 0.1 + random.random() / 20)
    pressed = time.monotonic()
    nvim.input(KEY)
    if not select.select([report], [], [], ANSWER_SECONDS)[0]:
        raise MeasureError(f"request {number} was not answered {ANSWER_SECONDS} s after its key")
    answer = json.loads(os.read(report, 4096).splitlines()[-1])
    if answer["result"] != {"outcome": {"outcome": "selected", "optionId": "allow"}}:
        raise MeasureError(f"request {number} got another answer: {answer['result']}")
    return (answer["answered"] - pressed) * 1000
