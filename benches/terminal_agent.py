#!/usr/bin/env python3
"""An agent that does one thing: with a prompt it runs a command, the first argument, in a terminal, or in as many as the
second argument says."""

import json
import sys


def send(message: dict) -> None:
    """One line on stdout."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Serves until stdin ends."""
    for line in sys.stdin:
        message = json.loads(line)
        method, ident = message.get("method"), message.get("id")
        if method == "initialize":
            send({"id": ident, "result": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}})
        elif method == "session/new":
            send({"id": ident, "result": {"sessionId": "s"}})
        elif method == "session/prompt":
            params = {"sessionId": "s", "command": "sh", "args": ["-c", sys.argv[1]]}
            for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
                send({"id": f"create-{number}", "method": "terminal/create", "params": params})


if __name__ == "__main__":
    main()
