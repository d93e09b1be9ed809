#!/usr/bin/env python3
"""Stands between a client and an agent, passes every byte on, and records the traffic.

    tap.py RECORDING COMMAND [ARGUMENT...]

The recording holds one JSON object per line:
    {"t": ms, "dir": "c2a" | "a2c", "msg": {…}}     a message, client to agent or agent to client
    {"t": ms, "dir": "c2a" | "a2c", "raw": "…"}     a line that is not JSON
    {"t": ms, "dir": "stderr", "raw": "…"}
    {"t": ms, "dir": "note", …}
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import IO, Any


class Recording:
    """The file that the traffic is written to; safe to use from several threads."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "a", encoding="utf-8")
        self._start = time.monotonic()
        self._lock = threading.Lock()

    def line(self, direction: str, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if direction == "stderr":
            self._write(direction, raw=text)
            return
        try:
            message = json.loads(text)
        except ValueError:
            self._write(direction, raw=text)
            return
        self._write(direction, **({"msg": message} if isinstance(message, (dict, list)) else {"raw": text}))

    def note(self, **fields: Any) -> None:
        self._write("note", **fields)

    def _write(self, direction: str, **fields: Any) -> None:
        entry = {"t": int((time.monotonic() - self._start) * 1000), "dir": direction, **fields}
        with self._lock:
            self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            self._file.flush()


def _relay(source: IO[bytes], sink: IO[bytes], recording: Recording, direction: str) -> None:
    for line in source:
        recording.line(direction, line)
        try:
            sink.write(line)
            sink.flush()
        except OSError:
            recording.note(gone=f"reader of {direction}")
            return


def _relay_input(agent: subprocess.Popen[bytes], recording: Recording) -> None:
    _relay(sys.stdin.buffer, agent.stdin, recording, "c2a")
    recording.note(client="closed its side")
    try:
        agent.stdin.close()
    except OSError:
        recording.note(gone="agent")


def main() -> int:
    path, *command = sys.argv[1:]
    recording = Recording(path)
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    # A daemon, because the client may keep its side open for as long as it likes.
    threading.Thread(target=_relay_input, args=(agent, recording), daemon=True).start()
    outputs = [
        threading.Thread(target=_relay, args=(agent.stdout, sys.stdout.buffer, recording, "a2c")),
        threading.Thread(target=_relay, args=(agent.stderr, sys.stderr.buffer, recording, "stderr")),
    ]
    for output in outputs:
        output.start()
    for output in outputs:
        output.join()
    code = agent.wait()
    recording.note(exit=code)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
