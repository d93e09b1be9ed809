"""Reads a recording of `tap.py` while it grows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Recording:
    """What went over the wire so far. Every method reads the file anew, so it is always current."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for line in self.path.read_bytes().split(b"\n")[:-1]:
            yield json.loads(line)

    def messages(self, direction: str) -> Iterator[dict[str, Any]]:
        for entry in self.entries():
            if entry["dir"] == direction and isinstance(entry.get("msg"), dict):
                yield entry["msg"]

    def requests(self, direction: str, method: str | None = None) -> list[dict[str, Any]]:
        """Requests of one side, oldest first."""
        return [
            message
            for message in self.messages(direction)
            if "id" in message and "method" in message and method in (None, message["method"])
        ]

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The client's answer to the agent's newest request with this id; None as long as there is none."""
        answers = [m for m in self.messages("c2a") if "method" not in m and "id" in m and _key(m) == _key(request)]
        same = [r for r in self.requests("a2c") if _key(r) == _key(request)]
        return answers[-1] if len(answers) == len(same) else None

    def wrongly_answered(self) -> list[str]:
        """Where requests of the agent and answers of the client do not match one to one; empty is right."""
        answers = Counter(_key(m) for m in self.messages("c2a") if "method" not in m and "id" in m)
        requests = Counter(_key(request) for request in self.requests("a2c"))
        return [
            f"{requests[ident]} requests with the id {ident}, {answers[ident]} answers"
            for ident in sorted(requests | answers)
            if requests[ident] != answers[ident]
        ]

    def thoughts(self) -> str:
        """All that the agent thought so far."""
        updates = ((message.get("params") or {}).get("update") or {} for message in self.messages("a2c"))
        chunks = (update["content"] for update in updates if update.get("sessionUpdate") == "agent_thought_chunk")
        return "".join(chunk.get("text", "") for chunk in chunks)

    def tail(self, count: int = 12, width: int = 300) -> str:
        """The last entries, shortened: for a report of a failure."""
        lines = [json.dumps(entry, ensure_ascii=False) for entry in self.entries()]
        return "\n".join(line if len(line) <= width else line[:width] + " …" for line in lines[-count:])


def _key(message: dict[str, Any]) -> str:
    return json.dumps(message["id"])
