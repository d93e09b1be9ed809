"""What a change of a file costs: from two texts to hunks, beside git; a line written into a large buffer, beside Neovim's
own function and `:write`."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from edit_agent import LARGE, WRITES, row_of
from measure import MeasureError, Setup
from nvim import Nvim
from report import Promise

HERE = Path(__file__).resolve().parent
WORDS = "let fn if match for in return self value name list map text line start end into from with None Some Ok".split()


def hunks(setup: Setup, runs: int) -> tuple[str, list[Promise]]:
    """Times from two files to hunks, a process each; of git what it takes for two files of a line is taken off."""
    texts = {}
    for lines, count in ((10_000, 500), (50_000, 5_000)):
        texts[lines] = _two_files(setup.scratch, lines, count)
    tiny = setup.scratch / "one", setup.scratch / "other"
    for path in tiny:
        path.write_text(f"{path.name}\n")
    ours: dict[int, list[float]] = {lines: [] for lines in texts}
    gits: dict[int, list[float]] = {lines: [] for lines in texts}
    starts: list[float] = []
    found = {}
    for _ in range(2 * runs + 1):
        starts.append(_git(*tiny))
        for lines, pair in texts.items():
            gits[lines].append(_git(*pair))
            nanoseconds, found[lines] = map(int, _output([str(setup.binary), "hunks", *map(str, pair)]))
            ours[lines].append(nanoseconds / 1e9)
    start = median(starts)
    rows = [f"from two files to hunks  (median of {len(starts)}, in ms; git: --histogram, its start of {start * 1e3:.1f} taken off)"]
    for lines in texts:
        mine, git = median(ours[lines]), median(gits[lines]) - start
        rows.append(
            f"  {lines:,} lines, {found[lines]:,} hunks: {mine * 1e3:.2f}, git {git * 1e3:.2f}, ratio {mine / git:.2f}"
        )
    small, large = (median(ours[lines]) for lines in texts)
    git = median(gits[10_000]) - start
    return "\n".join(rows), [
        Promise("10,000 lines to 500 hunks, ratio to git", small / git, 0.6),
        Promise("50,000 lines to 5,000 hunks, times that", large / small, 10.0),
    ]


def writes(setup: Setup, runs: int) -> tuple[str, list[Promise]]:
    """Times in Neovim's main thread of an agent's writes of one changed line, and of the same by Neovim's own means."""
    own: dict[str, list[float]] = {}
    bare: dict[str, list[float]] = {}
    for run in range(runs):
        both = [(own, _by_agent), (bare, _by_hand)]
        for figures, measured in both if run % 2 == 0 else reversed(both):
            for name, values in measured(setup).items():
                figures.setdefault(name, []).append(median(values))
    middle = {name: median(values) * 1e6 for name, values in [*own.items(), *bare.items()]}
    rows = [f"a line written into a buffer of {LARGE:,} lines  (µs in Neovim's main thread, median of {runs} medians of {WRITES})"]
    rows += [f"  {name:44}{value:10.1f}" for name, value in middle.items()]
    return "\n".join(rows), [
        Promise("the edit, ratio to a bare nvim_buf_set_text", middle["edit"] / middle["nvim_buf_set_text"], 3.0),
        Promise("the save, ratio to a bare :silent write", middle["save"] / middle[":silent write"], 1.1),
    ]


def _line(rng: random.Random, lines: int) -> str:
    kind = rng.random()
    if kind < 0.12:
        return ""
    if kind < 0.25:
        return "    " * rng.randint(0, 3) + "}"
    words = " ".join(rng.choice(WORDS) for _ in range(rng.randint(2, 9)))
    return f"{'    ' * rng.randint(0, 4)}{words} {rng.randint(0, lines)};"


def _two_files(folder: Path, lines: int, hunks: int) -> tuple[Path, Path]:
    """A file that looks like code, and the same with lines replaced, added and taken out in so many places."""
    rng = random.Random(7)
    old = [_line(rng, lines) for _ in range(lines)]
    new = list(old)
    step = lines // hunks
    for number in reversed(range(hunks)):
        at = number * step + rng.randint(0, step - 4)
        added = [f"{_line(rng, lines)} // new" for _ in range(rng.randint(1, 3))]
        last = at + rng.randint(1, 3)
        new[at:last] = rng.choice([added, added + new[at:last], []])
    paths = folder / f"old-{lines}", folder / f"new-{lines}"
    for path, text in zip(paths, (old, new), strict=True):
        path.write_text("\n".join(text) + "\n")
    return paths


def _git(old: Path, new: Path) -> float:
    command = ["git", "diff", "--no-index", "--histogram", str(old), str(new)]
    start = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    taken = time.perf_counter() - start
    if done.returncode != 1:
        raise MeasureError(f"git ended with {done.returncode}")
    return taken


def _output(command: list[str]) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def _neovim(setup: Setup, plugin: bool) -> Nvim:
    path = setup.scratch / "large.txt"
    rng = random.Random(7)
    path.write_text("".join(f"{_line(rng, LARGE)} {number}\n" for number in range(LARGE)))
    # The same in both: with the colours of a language Neovim would have work of its own.
    args = ["--clean", "-n", "--cmd", f"set runtimepath^={setup.plugin}" if plugin else "set hidden", str(path)]
    env = {"AGENTCHAT_BENCH_BINARY": str(setup.binary)}
    nvim = Nvim(nvim=setup.nvim, args=args, env=env, cwd=setup.scratch, keep_screen=False)
    nvim.lua("bench = { client = dofile((...)), edits = dofile((select(2, ...))) }", *_lua())
    return nvim


def _lua() -> list[str]:
    return [str(HERE / name) for name in ("plugin.lua", "edits.lua")]


def _by_agent(setup: Setup) -> dict[str, list[float]]:
    with _neovim(setup, plugin=True) as nvim:
        agent = [sys.executable, str(HERE / "edit_agent.py"), str(setup.scratch / "large.txt")]
        nvim.lua("bench.client.open(...)", agent)
        nvim.wait(lambda: nvim.lua("return bench.client.ready()"), 30, "the agent to be ready")
        nvim.lua("bench.edits.listen()")
        nvim.lua("bench.client.submit('Go.')")
        ended = "return require('agentchat').status().state == 'idle' and bench.edits.count() > 0"
        nvim.wait(lambda: nvim.lua(ended), 120, "the agent to be done")
        figures = nvim.lua("return bench.edits.figures()")
    if len(figures["edit"]) != WRITES:
        raise MeasureError(f"{len(figures['edit'])} writes instead of {WRITES}: {json.dumps(figures)[:500]}")
    return {name: [value / 1e9 for value in values] for name, values in figures.items()}


def _by_hand(setup: Setup) -> dict[str, list[float]]:
    with _neovim(setup, plugin=False) as nvim:
        found: dict[str, list[float]] = {"nvim_buf_set_text": [], ":silent write": []}
        for number in range(WRITES):
            row = row_of(number)
            col = len(nvim.call("nvim_buf_get_lines", 0, row, row + 1, True)[0])
            edit, save = nvim.lua("return bench.edits.by_hand(...)", row, col, f" // {number}")
            found["nvim_buf_set_text"].append(edit / 1e9)
            found[":silent write"].append(save / 1e9)
        return found
