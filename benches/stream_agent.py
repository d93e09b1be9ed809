"""An ACP agent for measurements: it answers a prompt with messages that were made beforehand.

    python stream_agent.py STREAM REPORT [CHUNKS_PER_SECOND]

STREAM is a file of JSON lines (stream.py), held in memory before the first message is answered, so that the agent's own
work while the turn runs is little more than `write`. REPORT is a FIFO that gets one JSON line with the agent's
process id at the start and one with its times at the end of a turn. Without a rate everything is written at once.
"""

import json
import os
import sys
import time

from stream import SESSION

# What a program's buffered standard output writes at a time.
BLOCK_BYTES = 8192


def main() -> None:
    """Serves one client until its standard input ends."""
    stream_path, report_path, *rest = sys.argv[1:]
    rate = float(rest[0]) if rest else 0.0
    with open(stream_path, "rb") as file:
        pieces = _by_chunk(file.read()) if rate else _by_block(file.read())
    with open(report_path, "w", encoding="utf-8", buffering=1) as report:
        report.write(json.dumps({"pid": os.getpid()}) + "\n")
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if message.get("method") == "session/prompt":
                started = time.monotonic()
                _write(pieces, rate)
                report.write(json.dumps({"seconds": time.monotonic() - started}) + "\n")
            if "method" in message and "id" in message:
                _reply(message)


def _reply(message: dict) -> None:
    results = {
        "initialize": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []},
        "session/new": {"sessionId": SESSION},
        "session/prompt": {"stopReason": "end_turn"},
    }
    answer: dict = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in results:
        answer["result"] = results[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": f"{message['method']} is not known here"}
    _write([json.dumps(answer).encode() + b"\n"], 0)


def _by_block(data: bytes) -> list[bytes]:
    return [data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES)]


def _by_chunk(data: bytes) -> list[bytes]:
    """One piece for each chunk of text, together with the messages that precede it."""
    pieces, piece = [], b""
    for line in data.splitlines(keepends=True):
        piece += line
        if b'"agent_message_chunk"' in line:
            pieces.append(piece)
            piece = b""
    return [*pieces, piece]


def _write(pieces: list[bytes], rate: float) -> None:
    started = time.monotonic()
    for index, piece in enumerate(pieces):
        if rate:
            time.sleep(max(0.0, started + index / rate - time.monotonic()))
        while piece:
            piece = piece[os.write(1, piece) :]


if __name__ == "__main__":
    main()
