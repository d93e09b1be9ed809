"""A minimal ACP client: enough to see what an agent does without any editor."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Message = dict[str, Any]
METHOD_NOT_FOUND, RESOURCE_NOT_FOUND = -32601, -32002


class AgentError(Exception):
    """The agent answered with an error, or not at all."""


def choose(*kinds: str) -> Callable[[Message], Message]:
    """A policy for permission requests: the first option of the first of these kinds."""

    def policy(params: Message) -> Message:
        for kind in kinds:
            for option in params["options"]:
                if option.get("kind") == kind:
                    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        return {"outcome": {"outcome": "cancelled"}}

    return policy


class Client:
    """A connection to one agent, which reads and writes files on the disk for it."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self.updates: queue.Queue[Message] = queue.Queue()
        self.on_permission: Callable[[Message], Message] = choose("allow_once")
        self.requests: list[str] = []
        """Methods that the agent asked for, in order."""
        self._ids = itertools.count(1)
        self._pending: dict[int, queue.SimpleQueue[Message]] = {}
        self._writing = threading.Lock()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def start(self, method: str, params: Message) -> queue.SimpleQueue[Message]:
        """Sends a request; its answer will be in the queue."""
        ident, answer = next(self._ids), queue.SimpleQueue()
        self._pending[ident] = answer
        self._send({"id": ident, "method": method, "params": params})
        return answer

    def call(self, method: str, params: Message, timeout: float = 90) -> Message:
        """Sends a request and waits for its result; raises `AgentError`."""
        return self.result(self.start(method, params), method, timeout)

    def result(self, answer: queue.SimpleQueue[Message], method: str, timeout: float = 90) -> Message:
        try:
            message = answer.get(timeout=timeout)
        except queue.Empty:
            raise AgentError(f"{method} was not answered within {timeout} s") from None
        if "error" in message:
            raise AgentError(f"{method}: {message['error']}")
        return message["result"]

    def notify(self, method: str, params: Message) -> None:
        self._send({"method": method, "params": params})

    def wait_update(self, kind: str, timeout: float = 90) -> Message:
        """The next update of this kind; the ones before it are gone then."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                update = self.updates.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AgentError(f"no {kind} within {timeout} s") from None
            if update.get("sessionUpdate") == kind:
                return update

    def close(self) -> None:
        """Closes the agent's stdin, and kills what has not ended 10 s later."""
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: Message) -> None:
        with self._writing:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        for line in self._process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" not in message:
                self._pending.pop(message["id"]).put(message)
            elif "id" in message:
                # A permission policy may wait, and meanwhile the agent may go on.
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()
            elif message["method"] == "session/update":
                self.updates.put(message["params"]["update"])
        for answer in list(self._pending.values()):
            answer.put({"error": "the agent has ended"})

    def _answer(self, request: Message) -> None:
        method, params = request["method"], request.get("params") or {}
        self.requests.append(method)
        if method == "session/request_permission":
            outcome = {"result": self.on_permission(params)}
        elif method == "fs/read_text_file":
            try:
                outcome = {"result": {"content": Path(params["path"]).read_text(encoding="utf-8")}}
            except OSError as problem:
                outcome = {"error": {"code": RESOURCE_NOT_FOUND, "message": str(problem)}}
        elif method == "fs/write_text_file":
            path = Path(params["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(params["content"], encoding="utf-8")
            outcome = {"result": {}}
        else:
            outcome = {"error": {"code": METHOD_NOT_FOUND, "message": f"no such method: {method}"}}
        self._send({"id": request["id"], **outcome})
