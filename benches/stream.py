"""What the scripted agent says in one turn, made as bytes before anything is measured."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

SESSION = "bench"
MARKER = "END-OF-THE-STREAM"
CHUNK_BYTES = (50, 200)

WORDS = (
    "the buffer agent edit file line cursor window render stream chunk diff hunk permission terminal output session "
    "update plan mode model token value result `code` **bold** *soft* naïve – größe 日本"
).split()


@dataclass(frozen=True)
class Stream:
    """A turn: the messages as lines of JSON, and the texts that a client must show, in this order."""

    name: str
    messages: bytes
    shown: tuple[str, ...]

    def missing_from(self, transcript: str) -> str | None:
        """The first text that the transcript does not show after the ones before it, or None if it shows all."""
        position = 0
        for text in self.shown:
            found = transcript.find(text, position)
            if found < 0:
                return text
            position = found + len(text)
        return None


def flood(chunks: int, tool_calls: int = 10, seed: int = 7) -> Stream:
    """`chunks` pieces of one Markdown answer with tool calls between them, and the marker as its last line."""
    rng = random.Random(seed)
    text = _markdown(rng)
    between = max(1, chunks // (tool_calls + 1))
    lines: list[bytes] = []
    shown: list[str] = []
    segment: list[str] = []

    def end_segment() -> None:
        # Whether a blank line stands between a text and a tool call is the client's choice.
        if whole := "".join(segment).strip("\n"):
            shown.append(whole)
        segment.clear()

    rest = ""
    tool = 0
    for index in range(chunks):
        size = rng.randint(*CHUNK_BYTES)
        while len(rest) < size:
            rest += next(text)
        segment.append(rest[:size])
        lines.append(chunk(rest[:size]))
        rest = rest[size:]
        if tool < tool_calls and index and index % between == 0:
            tool += 1
            end_segment()
            shown.append(_tool_title(tool))
            lines += _tool_call(tool)
    segment.append(f"\n\n{MARKER}\n")
    lines.append(chunk(segment[-1]))
    end_segment()
    return Stream(f"flood-{chunks}", b"".join(lines), tuple(shown))


def stored(stream: Stream, folder: Path) -> Path:
    """Writes the messages to a file, which the agent reads before the turn."""
    path = folder / f"stream-{stream.name}.jsonl"
    if not path.exists():
        path.write_bytes(stream.messages)
    return path


def _markdown(rng: random.Random):
    """An endless Markdown document, a block at a time."""
    while True:
        kind = rng.random()
        if kind < 0.06:
            yield f"\n## {_words(rng, 4)}\n\n"
        elif kind < 0.16:
            yield "\n" + "".join(f"- {_words(rng, rng.randint(4, 12))}\n" for _ in range(rng.randint(2, 5))) + "\n"
        elif kind < 0.20:
            body = "".join(f"local {rng.choice('abcxyz')} = {rng.randint(0, 999)}\n" for _ in range(rng.randint(3, 8)))
            yield f"\n```lua\n{body}```\n\n"
        else:
            yield _words(rng, rng.randint(8, 20)) + "\n"


def _words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(count))


def _line(message: dict) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def update(update: dict) -> bytes:
    """A `session/update` as a line."""
    return _line({"method": "session/update", "params": {"sessionId": SESSION, "update": update}})


def chunk(text: str) -> bytes:
    """A piece of the agent's message as a line."""
    return update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def _tool_title(number: int) -> str:
    return f"Read src/file_{number}.rs"


def _tool_call(number: int) -> list[bytes]:
    ident = {"toolCallId": f"tool-{number}"}
    output = "\n".join(f"line {line} of the output" for line in range(20))
    content = [{"type": "content", "content": {"type": "text", "text": output}}]
    call = {"title": _tool_title(number), "kind": "read", "status": "pending"}
    return [
        update({"sessionUpdate": "tool_call", **ident, **call}),
        update({"sessionUpdate": "tool_call_update", **ident, "status": "in_progress"}),
        update({"sessionUpdate": "tool_call_update", **ident, "status": "completed", "content": content}),
    ]
