"""An ACP agent for measurements: it reads a file through the client, and then changes one line of it, over and over.

    python edit_agent.py FILE
"""

import json
import sys
from itertools import count
from typing import Any

SESSION = "bench"
LARGE = 100_000
"""Lines of the file."""
WRITES = 21
IDS = count(1000)


def main() -> None:
    """Serves one client until its standard input ends."""
    path = sys.argv[1]
    while message := _receive():
        method, result = message.get("method"), {}
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}
        elif method == "session/new":
            result = {"sessionId": SESSION}
        elif method == "session/prompt":
            text = _ask("fs/read_text_file", path=path)["content"]
            for number in range(WRITES):
                lines = text.split("\n")
                lines[row_of(number)] += f" // {number}"
                text = "\n".join(lines)
                _ask("fs/write_text_file", path=path, content=text)
            result = {"stopReason": "end_turn"}
        if "id" in message:
            _send({"id": message["id"], "result": result})


def row_of(number: int) -> int:
    """The row that a write changes: each another one."""
    return number * (LARGE // WRITES - 7) + 3


def _ask(method: str, **params: Any) -> dict:
    ident = next(IDS)
    _send({"id": ident, "method": method, "params": {"sessionId": SESSION, **params}})
    while message := _receive():
        if message.get("id") == ident and "method" not in message:
            if "error" in message:
                raise RuntimeError(message["error"])
            return message["result"] or {}
    raise EOFError


def _send(message: dict) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def _receive() -> dict:
    line = sys.stdin.readline()
    return json.loads(line) if line else {}


if __name__ == "__main__":
    main()
