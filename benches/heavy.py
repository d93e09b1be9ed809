"""Turns that are hard to show: much output, much code, a wide table, a long history. Keys must stay quick in all."""

import random

from stream import MARKER, Stream, chunk, update

CODE = {
    "lua": "local value_{n} = {{ name = 'n{n}', list = {{ 1, 2, {n} }} }} -- a comment",
    "c": "static int function_{n}(const char *text) {{ return text[{n}] + 0x{n:x}; }} /* a comment */",
    "vim": "let s:value_{n} = get(g:, 'name_{n}', [1, 2, {n}]) \" a comment",
    "python": "value_{n} = dict(name='n{n}', list=[1, 2, {n}])  # a comment",
}


def growing_output(updates: int = 2_000) -> Stream:
    """One tool call whose every update repeats all of its output so far, a line more each time."""
    ident = {"toolCallId": "make"}
    lines = [update({"sessionUpdate": "tool_call", **ident, "title": "make all", "kind": "execute", "status": "pending"})]
    output = ""
    for number in range(updates):
        output += f"[{number:4}/{updates}] CC file_{number}.o\n"
        content = [{"type": "content", "content": {"type": "text", "text": output}}]
        lines.append(update({"sessionUpdate": "tool_call_update", **ident, "status": "in_progress", "content": content}))
    lines.append(update({"sessionUpdate": "tool_call_update", **ident, "status": "completed"}))
    lines.append(chunk(f"{MARKER}\n"))
    return Stream("output", b"".join(lines), ("make all", MARKER))


def code_blocks(blocks: int = 20, lines: int = 200) -> Stream:
    """Fenced code in languages whose parsers Neovim has, and in one whose parser it has not."""
    text = ""
    for block in range(blocks):
        language, line = list(CODE.items())[block % len(CODE)]
        body = "\n".join(line.format(n=number) for number in range(lines))
        text += f"Block {block}:\n\n```{language}\n{body}\n```\n\n"
    return _in_pieces("code", text)


def table(rows: int = 500, columns: int = 8) -> Stream:
    """A table, a cell at a time."""
    rng = random.Random(7)
    cells = ["".join(f"| column {column} " for column in range(columns)) + "|\n", "|---" * columns + "|\n"]
    for row in range(rows):
        cells += [f"| {row}.{column} {'x' * rng.randint(0, 12)} " for column in range(columns)]
        cells[-1] += "|\n"
    text = "".join(cells)
    messages = b"".join(map(chunk, [*cells, f"\n{MARKER}\n"]))
    return Stream("table", messages, (text.strip("\n"), MARKER))


def replay(messages: int = 2_800, lines: int = 87_000) -> Stream:
    """A history, as an agent replays it: the user and the agent in turn, each message whole."""
    said: list[bytes] = []
    shown: list[str] = []
    for number in range(messages):
        count = lines // messages + (number < lines % messages)
        text = "\n".join(f"line {line} of message {number}, with `code` and **more**" for line in range(count))
        speaker = "agent" if number % 2 else "user"
        content = {"type": "text", "text": text}
        said.append(
            update({"sessionUpdate": f"{speaker}_message_chunk", "messageId": f"m{number}", "content": content})
        )
        shown.append(text)
    said.append(chunk(f"{MARKER}\n"))
    return Stream("replay", b"".join(said), (*shown, MARKER))


def _in_pieces(name: str, text: str, seed: int = 7) -> Stream:
    rng = random.Random(seed)
    pieces, at = [], 0
    while at < len(text):
        size = rng.randint(50, 200)
        pieces.append(chunk(text[at : at + size]))
        at += size
    return Stream(name, b"".join([*pieces, chunk(f"\n{MARKER}\n")]), (text.strip("\n"), MARKER))
