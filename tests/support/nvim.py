"""A real Neovim with a UI attached, driven from Python through msgpack-RPC.

    with Nvim(args=["--clean", "file.txt"]) as nvim:
        nvim.input("ihello<Esc>")
        nvim.wait(lambda: "hello" in nvim.screen()[0], what="the text on the screen")

Needs only the package `msgpack`. The binary is `nvim=`, else $AGENTCHAT_NVIM, else `nvim` on $PATH. Every instance has
its own HOME and XDG directories, so that nothing of the user's configuration is seen or touched. Nothing waits
without a deadline. Rows and columns are 0-based.
"""

import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgpack

DEFAULT_TIMEOUT = 30.0  # seconds; generous, because the machines that run tests are shared

Attrs = dict[str, Any]
"""A cell's look as `:help ui-event-hl_attr_define` names it; `foreground` and `background` are always present."""


class NvimError(Exception):
    """Neovim answered a call with an error."""


class NvimGone(Exception):
    """Neovim ended, or closed the channel, before it answered."""


class NvimTimeout(Exception):
    """No answer, or a condition did not come true, before the deadline."""


class Screen:
    """The grid that a UI with `ext_linegrid` would show, as of the last `flush` (so never half a redraw)."""

    def __init__(self) -> None:
        self.cursor = (0, 0)
        self.mode = ""
        self.flushes = 0
        self._attrs: dict[int, Attrs] = {0: {}}
        self._default: Attrs = {"foreground": 0xFFFFFF, "background": 0x000000}
        self._live: list[list[tuple[str, int]]] = []
        self._shown: list[list[tuple[str, int]]] = []
        self._dirty: set[int] = set()
        self._live_cursor = (0, 0)

    def apply(self, batch: Sequence[Sequence[Any]]) -> bool:
        """Applies one `redraw` notification; true when it completed a screen."""
        flushed = False
        for name, *calls in batch:
            handler = getattr(self, f"_on_{name}", None)
            if name == "flush":
                self._flush()
                flushed = True
            elif handler:
                for call in calls:
                    handler(*call)
        return flushed

    def rows(self) -> list[list[tuple[str, Attrs]]]:
        """Every cell as (text, look). The right half of a double-width character has the text ""."""
        looks = {ident: {**self._default, **attrs} for ident, attrs in self._attrs.items()}
        return [[(text, looks.get(ident, self._default)) for text, ident in row] for row in self._shown]

    def text(self) -> list[str]:
        """One string per row, without the blanks at its end."""
        return ["".join(text for text, _ in row).rstrip() for row in self._shown]

    def _flush(self) -> None:
        if len(self._shown) != len(self._live):
            self._shown = [list(row) for row in self._live]
        else:
            for row in self._dirty:
                self._shown[row] = list(self._live[row])
        self._dirty.clear()
        self.cursor = self._live_cursor
        self.flushes += 1

    def _on_grid_resize(self, grid: int, width: int, height: int) -> None:
        if grid == 1:
            kept = [row[:width] + [(" ", 0)] * (width - len(row)) for row in self._live[:height]]
            self._live = kept + [[(" ", 0)] * width for _ in range(height - len(kept))]
            self._dirty = set(range(height))

    def _on_grid_clear(self, grid: int) -> None:
        if grid == 1:
            self._live = [[(" ", 0)] * len(row) for row in self._live]
            self._dirty = set(range(len(self._live)))

    def _on_grid_line(self, grid: int, row: int, column: int, cells: Sequence[Sequence[Any]], *_: Any) -> None:
        if grid != 1:
            return
        line, ident = self._live[row], 0
        for cell in cells:
            if len(cell) > 1:
                ident = cell[1]
            for _repeat in range(cell[2] if len(cell) > 2 else 1):
                line[column] = (cell[0], ident)
                column += 1
        self._dirty.add(row)

    def _on_grid_scroll(self, grid: int, top: int, bottom: int, left: int, right: int, rows: int, _cols: int) -> None:
        if grid != 1:
            return
        moves = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in moves:
            self._live[row][left:right] = self._live[row + rows][left:right]
            self._dirty.add(row)

    def _on_grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        if grid == 1:
            self._live_cursor = (row, column)

    def _on_hl_attr_define(self, ident: int, rgb: Attrs, *_: Any) -> None:
        self._attrs[ident] = rgb

    def _on_default_colors_set(self, foreground: int, background: int, *_: Any) -> None:
        # -1 means that the UI shall choose.
        self._default = {
            "foreground": foreground if foreground >= 0 else 0xFFFFFF,
            "background": background if background >= 0 else 0x000000,
        }

    def _on_mode_change(self, mode: str, _index: int) -> None:
        self.mode = mode


class Nvim:
    """One `nvim --embed`. Safe to call from several threads.

    `size` is (columns, rows), or None for no UI at all (`--headless`). `keep_screen=False` reads the redraw events of
    an attached UI without interpreting them, for measurements. `notifications` holds what `rpcnotify()` to `channel`
    sent.
    """

    def __init__(
        self,
        nvim: str | None = None,
        args: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        size: tuple[int, int] | None = (120, 40),
        keep_screen: bool = True,
    ) -> None:
        binary = nvim or os.environ.get("AGENTCHAT_NVIM") or shutil.which("nvim")
        if not binary:
            raise FileNotFoundError("no Neovim: put nvim on $PATH or its full path into $AGENTCHAT_NVIM")
        self.root = tempfile.mkdtemp(prefix="agentchat-nvim-")
        self.notifications: list[tuple[str, list[Any]]] = []
        self.redraw_bytes = 0
        self._screen = Screen() if keep_screen else None
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._waiting: dict[int, queue.SimpleQueue[tuple[str, Any]]] = {}
        self._last_id = 0
        self._gone = False
        self._stderr_path = os.path.join(self.root, "stderr")
        with open(self._stderr_path, "wb") as stderr:
            self.process = subprocess.Popen(
                [binary, "--embed", *([] if size else ["--headless"]), *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=self._environment(env or {}),
                cwd=cwd or self.root,
                start_new_session=True,
            )
        threading.Thread(target=self._read, name="nvim reader", daemon=True).start()
        try:
            if size:
                self.call("nvim_ui_attach", size[0], size[1], {"ext_linegrid": True, "rgb": True})
            self.channel: int = self.call("nvim_get_api_info")[0]
        except BaseException:
            self.kill()
            shutil.rmtree(self.root, ignore_errors=True)
            raise

    def __enter__(self) -> "Nvim":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of Neovim."""
        return self.process.pid

    def call(self, method: str, *args: Any, timeout: float = DEFAULT_TIMEOUT) -> Any:
        """Calls an API function and returns its answer.

        Raises NvimError, NvimGone or NvimTimeout (Neovim also answers nothing while it waits for the user at a
        hit-enter prompt; only `nvim_get_mode` and `nvim_input` work then).
        """
        answer: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        with self._writing:
            self._last_id += 1
            ident = self._last_id
            self._waiting[ident] = answer
            self._write([0, ident, method, list(args)])
        if self._gone:
            answer.put(("gone", None))
        try:
            kind, value = answer.get(timeout=timeout)
        except queue.Empty:
            self._waiting.pop(ident, None)
            raise NvimTimeout(f"{method} was not answered within {timeout} s\n{self._circumstances()}") from None
        if kind == "gone":
            raise NvimGone(f"Neovim went away during {method}\n{self._circumstances()}")
        if kind == "error":
            text = value[1] if isinstance(value, list) and len(value) > 1 else value
            raise NvimError(f"{method}: {text}")
        return value

    def lua(self, code: str, *args: Any, timeout: float = DEFAULT_TIMEOUT) -> Any:
        """Runs Lua with `...` = args and returns what it returns."""
        return self.call("nvim_exec_lua", code, list(args), timeout=timeout)

    def command(self, command: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Runs one Ex command."""
        self.call("nvim_command", command, timeout=timeout)

    def input(self, keys: str, timeout: float = DEFAULT_TIMEOUT) -> None:
        """Types keys in the notation of `:help key-notation`; a literal `<` is `<lt>`. They act after the answer."""
        while keys:
            taken = self.call("nvim_input", keys, timeout=timeout)
            keys = keys.encode()[taken:].decode()

    def mode(self) -> dict[str, Any]:
        """`nvim_get_mode()`: answered even while Neovim waits for the user."""
        return self.call("nvim_get_mode")

    def screen(self) -> list[str]:
        """The rows that the user sees, without the blanks at their ends."""
        with self._changed:
            return self._kept_screen().text()

    def screen_attrs(self) -> list[list[Attrs]]:
        """The look of every cell that the user sees."""
        return [[attrs for _, attrs in row] for row in self.screen_cells()]

    def screen_cells(self) -> list[list[tuple[str, Attrs]]]:
        """Text and look of every cell that the user sees."""
        with self._changed:
            return self._kept_screen().rows()

    def cursor(self) -> tuple[int, int]:
        """Where the cursor is on the screen: (row, column)."""
        with self._changed:
            return self._kept_screen().cursor

    def stderr(self) -> str:
        """What Neovim has written to its stderr so far."""
        with open(self._stderr_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait(self, condition: Callable[[], Any], timeout: float = DEFAULT_TIMEOUT, what: str = "a condition") -> Any:
        """Returns the first true value of `condition()`, which is asked again whenever something arrived.

        Raises NvimTimeout with the screen when the deadline has passed.
        """
        deadline = time.monotonic() + timeout
        while True:
            if value := condition():
                return value
            if time.monotonic() >= deadline:
                raise NvimTimeout(f"waited {timeout} s for {what}\n{self._circumstances()}")
            with self._changed:
                self._changed.wait(0.02)

    def wait_notification(self, name: str, timeout: float = DEFAULT_TIMEOUT) -> list[Any]:
        """The arguments of the oldest notification of that name, which is taken out of `notifications`."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for index, (found, args) in enumerate(self.notifications):
                    if found == name:
                        del self.notifications[index]
                        return args
                if self._gone:
                    raise NvimGone(f"Neovim went away before it sent {name}\n{self._circumstances()}")
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise NvimTimeout(f"waited {timeout} s for the notification {name}\n{self._circumstances()}")

    def kill(self) -> None:
        """SIGKILL, as a crash or the out-of-memory killer would do; `close()` still has to be called."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self, timeout: float = 5.0) -> None:
        """Quits without saving, kills Neovim if it does not, and removes the private directories."""
        try:
            if self.process.poll() is None:
                with self._writing:
                    self._write([2, "nvim_command", ["qall!"]])
                self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        finally:
            shutil.rmtree(self.root, ignore_errors=True)

    def _environment(self, extra: Mapping[str, str]) -> dict[str, str]:
        env = {key: value for key, value in os.environ.items() if key not in ("NVIM", "NVIM_LISTEN_ADDRESS", "MYVIMRC")}
        for kind in ("CONFIG", "DATA", "STATE", "CACHE"):
            env[f"XDG_{kind}_HOME"] = self._folder(kind.lower())
        env["XDG_RUNTIME_DIR"] = self._folder("run")
        env["HOME"] = self._folder("home")
        env["NVIM_LOG_FILE"] = os.path.join(self.root, "nvim.log")
        env.update(extra)
        return env

    def _folder(self, name: str) -> str:
        path = os.path.join(self.root, name)
        os.mkdir(path, 0o700)
        return path

    def _kept_screen(self) -> Screen:
        if self._screen is None:
            raise RuntimeError("this Nvim was started with keep_screen=False")
        return self._screen

    def _circumstances(self) -> str:
        """What someone who reads a failed test needs: the exit code, stderr and the screen. Never blocks on Neovim."""
        parts = []
        if (code := self.process.poll()) is not None:
            parts.append(f"exit code {code}")
        if stderr := self.stderr():
            parts.append(f"stderr:\n{stderr[-2000:]}")
        if self._screen:
            parts.append("screen:\n" + "\n".join(f"  |{row}" for row in self.screen()))
        return "\n".join(parts)

    def _write(self, message: list[Any]) -> None:
        """Only with `_writing` held. A closed pipe is noticed by the reader, which wakes whoever waits."""
        try:
            self.process.stdin.write(msgpack.packb(message, unicode_errors="surrogateescape"))
            self.process.stdin.flush()
        except OSError:
            self._gone = True

    def _read(self) -> None:
        unpacker = msgpack.Unpacker(
            raw=False,
            strict_map_key=False,
            unicode_errors="surrogateescape",
            max_buffer_size=1 << 30,
            # Buffers, windows and tabpages come as extension types that hold a msgpack integer.
            ext_hook=lambda _code, data: msgpack.unpackb(data),
        )
        stdout = self.process.stdout.fileno()
        while data := os.read(stdout, 1 << 16):
            unpacker.feed(data)
            self.redraw_bytes += len(data)
            for message in unpacker:
                self._receive(message)
        self._gone = True
        with self._changed:
            self._changed.notify_all()
        for answer in list(self._waiting.values()):
            answer.put(("gone", None))

    def _receive(self, message: list[Any]) -> None:
        if message[0] == 1:
            if answer := self._waiting.pop(message[1], None):
                answer.put(("error", message[2]) if message[2] is not None else ("ok", message[3]))
        elif message[0] == 0:
            # Nobody here serves requests, and an unanswered one would hang Neovim.
            with self._writing:
                self._write([1, message[1], f"{message[2]}: this client answers no requests", None])
        elif message[1] != "redraw":
            with self._changed:
                self.notifications.append((message[1], message[2]))
                self._changed.notify_all()
        elif self._screen:
            with self._changed:
                if self._screen.apply(message[2]):
                    self._changed.notify_all()
