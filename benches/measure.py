"""One measured turn: a fresh Neovim with a UI, one client in it, one agent, one prompt."""

import errno
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nvim import Nvim
from stream import MARKER, Stream, stored

HERE = Path(__file__).resolve().parent
UI_SIZE = (200, 50)
READY_SECONDS = 30.0
CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class MeasureError(Exception):
    """A run that gave no figures: the client failed, was too slow by far, or did not show what the agent said."""


@dataclass(frozen=True)
class Scenario:
    """A turn to be measured. `rate` is in chunks per second, 0 for a flood."""

    name: str
    title: str
    stream: Stream
    rate: float = 0.0
    timeout: float = 120.0
    probe_pause: float = 0.005
    """Seconds between two key presses. Each costs Neovim some 30 µs, so a slow stream is asked less often."""


@dataclass(frozen=True)
class Setup:
    """Where the things under measurement are."""

    nvim: str
    plugin: Path
    binary: Path
    scratch: Path


@dataclass
class Figures:
    """What one run cost. CPU, key presses and RSS count from the prompt until all is quiet again after the marker."""

    wall: float  # seconds from the prompt to the marker in the buffer
    nvim_cpu: float  # seconds
    helper_cpu: float  # seconds, all processes below Neovim except the agent
    key_max: float  # ms, the longest round trip of nvim_eval
    key_p99: float  # ms
    nvim_rss: float  # MB (10^6) above the start: the peak
    helper_rss: float  # MB above the start: the peak, summed over the processes
    agent_seconds: float  # until the agent's last write returned
    lines: int
    marks: int  # extmarks in the transcript
    redraw_bytes: int
    keys: int = field(default=0)  # how many round trips were measured

    @property
    def cpu(self) -> float:
        """CPU seconds of Neovim and of the helper."""
        return self.nvim_cpu + self.helper_cpu


def measure(client: str, scenario: Scenario, setup: Setup) -> Figures:
    """Runs `scenario` with the client `benches/<client>.lua`. Raises MeasureError."""
    with _Run(client, scenario, setup) as run:
        return run.measure()


class _Run:
    def __init__(self, client: str, scenario: Scenario, setup: Setup) -> None:
        self.scenario = scenario
        self.fifo = setup.scratch / "report"
        self.fifo.unlink(missing_ok=True)
        os.mkfifo(self.fifo)
        # Opened for both directions, so that it neither waits for the agent nor ends with it.
        self.report = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self.command = [sys.executable, str(HERE / "stream_agent.py"), str(stored(scenario.stream, setup.scratch))]
        self.command += [str(self.fifo), *([str(scenario.rate)] if scenario.rate else [])]
        self.nvim = Nvim(
            nvim=setup.nvim,
            args=["--clean", "-n", "--cmd", f"set runtimepath^={setup.plugin} termguicolors", "README.md"],
            env={"AGENTCHAT_BENCH_BINARY": str(setup.binary)},
            cwd=project(setup.scratch),
            size=UI_SIZE,
            keep_screen=False,
        )
        self.nvim.lua("bench = { client = dofile((...)), meter = dofile((select(2, ...))) }", *_lua(client))
        self.reported = b""

    def __enter__(self) -> "_Run":
        return self

    def __exit__(self, *_: object) -> None:
        self.nvim.close()
        os.close(self.report)

    def measure(self) -> Figures:
        buffer, agent = self._start()
        processes = _Processes(self.nvim.pid, agent)
        processes.wait_until_quiet()
        redraw_bytes = self.nvim.redraw_bytes
        start = processes.usage()
        keys = KeyPresses(self.nvim, self.scenario.probe_pause)
        submitted = self.nvim.lua("local now = vim.uv.hrtime(); bench.client.submit('Go.'); return now")
        sent = self._agent_says(self.scenario.timeout, "that the agent has written everything")
        self.nvim.lua("bench.meter.watch(...)", self.nvim.channel, buffer, MARKER, timeout=self.scenario.timeout)
        arrived = self.nvim.wait_notification("marker", timeout=self.scenario.timeout)[0]
        processes.wait_until_quiet()
        delays = keys.stop()
        cost = processes.usage() - start
        redraw_bytes = self.nvim.redraw_bytes - redraw_bytes
        return Figures(
            wall=(arrived - submitted) / 1e9,
            nvim_cpu=cost.nvim_cpu,
            helper_cpu=cost.helper_cpu,
            key_max=delays[-1],
            key_p99=delays[int(len(delays) * 0.99)],
            nvim_rss=cost.nvim_rss / 1e6,
            helper_rss=cost.helper_rss / 1e6,
            agent_seconds=sent["seconds"],
            lines=self._check_text(buffer),
            marks=self.nvim.lua("return bench.meter.marks(...)", buffer),
            redraw_bytes=redraw_bytes,
            keys=len(delays),
        )

    def _start(self) -> tuple[int, int]:
        """Opens the client and waits until it can take a prompt: its buffer, and the agent's process id."""
        self.nvim.lua("bench.client.open(...)", self.command)
        ready = "return bench.client.ready()"
        buffer = self.nvim.wait(lambda: self.nvim.lua(ready), READY_SECONDS, "the client to be ready for a prompt")
        return buffer, self._agent_says(READY_SECONDS, "which process the agent is")["pid"]

    def _agent_says(self, timeout: float, what: str) -> dict:
        """The next line of the agent's report."""
        deadline = time.monotonic() + timeout
        while b"\n" not in self.reported:
            if self.nvim.process.poll() is not None:
                raise MeasureError(f"Neovim ended with code {self.nvim.process.returncode} before it was known {what}")
            if time.monotonic() >= deadline:
                raise MeasureError(f"it was not known after {timeout} s {what}")
            if select.select([self.report], [], [], 0.1)[0]:
                self.reported += os.read(self.report, 4096)
        line, self.reported = self.reported.split(b"\n", 1)
        return json.loads(line)

    def _check_text(self, buffer: int) -> int:
        """Fails unless the buffer shows all that the agent said, in order; gives the number of lines."""
        lines: list[str] = []
        while part := self.nvim.call("nvim_buf_get_lines", buffer, len(lines), len(lines) + 20_000, False):
            lines += part
        if missing := self.scenario.stream.missing_from("\n".join(lines)):
            raise MeasureError(f"the transcript does not show this text (or not in its place): {missing[:200]!r}")
        return len(lines)


class KeyPresses:
    """Asks Neovim for nothing, over and over, and notes how long each answer takes: what a key press would wait."""

    def __init__(self, nvim: Nvim, pause: float) -> None:
        self._nvim = nvim
        self._pause = pause
        self._stopping = threading.Event()
        self._delays: list[float] = []
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._press, name="key presses", daemon=True)
        self._thread.start()

    def stop(self) -> list[float]:
        """The delays in ms, sorted."""
        self._stopping.set()
        self._thread.join()
        if self._failure:
            raise self._failure
        return sorted(self._delays)

    def _press(self) -> None:
        try:
            while not self._delays or not self._stopping.wait(self._pause):
                asked = time.perf_counter()
                self._nvim.call("nvim_eval", "1", timeout=120)
                self._delays.append((time.perf_counter() - asked) * 1000)
        except Exception as failure:
            self._failure = failure


@dataclass
class _Usage:
    nvim_cpu: float
    helper_cpu: float
    nvim_rss: int
    helper_rss: int

    def __sub__(self, start: "_Usage") -> "_Usage":
        """What was used since `start`."""
        return _Usage(
            self.nvim_cpu - start.nvim_cpu,
            self.helper_cpu - start.helper_cpu,
            self.nvim_rss - start.nvim_rss,
            self.helper_rss - start.helper_rss,
        )


class _Processes:
    """Neovim and everything below it except the agent. Linux: the figures come from /proc and the CPU clocks."""

    def __init__(self, nvim: int, agent: int) -> None:
        self.nvim = nvim
        self.agent = agent

    def usage(self) -> _Usage:
        """CPU seconds so far; RSS in bytes: the peak since the last call, which starts the next peak."""
        helpers = self._helpers()
        usage = _Usage(
            _cpu(self.nvim), sum(map(_cpu, helpers)), _peak_rss(self.nvim), sum(map(_peak_rss, helpers))
        )
        for pid in [self.nvim, *helpers]:
            with suppress(*_ENDED):
                Path(f"/proc/{pid}/clear_refs").write_text("5")
        return usage

    def wait_until_quiet(self, timeout: float = 10.0) -> None:
        """Returns once Neovim and its processes have used no more than 3 % of a core for 0.2 s."""
        deadline = time.monotonic() + timeout
        before = self._cpu()
        while time.monotonic() < deadline:
            time.sleep(0.2)
            now = self._cpu()
            if now - before < 0.006:
                return
            before = now
        raise MeasureError(f"Neovim or the helper was still busy after {timeout} s of nothing to do")

    def _cpu(self) -> float:
        return sum(map(_cpu, [self.nvim, *self._helpers()]))

    def _helpers(self) -> list[int]:
        parents = dict(_parents())
        return [pid for pid in parents if pid != self.agent and self.nvim in _ancestors(pid, parents)]


# What reading about a process raises when it ended meanwhile. Its CPU then counts as its parent's (see `_cpu`).
_ENDED = (FileNotFoundError, ProcessLookupError)


def _parents() -> Iterable[tuple[int, int]]:
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(*_ENDED):
            yield int(name), int(_stat(int(name))[1])


def _ancestors(pid: int, parents: dict[int, int]) -> Iterable[int]:
    while pid := parents.get(pid, 0):
        yield pid


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from `state` (field 3 of proc(5)) on."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def _cpu(pid: int) -> float:
    """CPU seconds of a process with its ended threads, exact, and of the children it has waited for, in 10 ms steps."""
    with suppress(*_ENDED):
        fields = _stat(pid)
        try:
            # The id of another process's CPU clock: clock_getcpuclockid(3).
            own = time.clock_gettime((~pid << 3) | 2)
        except OSError as error:
            if error.errno == errno.EINVAL:  # it ended after its fields were read
                return 0.0
            raise
        return own + (int(fields[13]) + int(fields[14])) / CLOCK_TICKS
    return 0.0


def _peak_rss(pid: int) -> int:
    with suppress(*_ENDED):
        status = Path(f"/proc/{pid}/status").read_text()
        # A process that has ended but was not yet waited for has no memory left to report.
        if "VmHWM:" in status:
            return 1024 * int(status.split("VmHWM:")[1].split()[0])
    return 0


def _lua(client: str) -> tuple[str, str]:
    return str(HERE / f"{client}.lua"), str(HERE / "meter.lua")


def project(scratch: Path) -> Path:
    """A small repository for the agent to work in."""
    project = scratch / "project"
    if not project.exists():
        project.mkdir()
        (project / "README.md").write_text("".join(f"line {number}\n" for number in range(200)))
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project
