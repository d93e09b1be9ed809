"""What the scripted model says, turn by turn.

A prompt carries a cue, for example `[play edit in /tmp/project]`. The model answers with the turns of that play: its
first answer is turn 0, and every round of tool results moves it one turn on. The position follows from the conversation
that the agent sends, so the server remembers nothing and an agent's side requests (titles, routing) disturb nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

CUE = re.compile(r"\[play (?P<play>[a-z-]+) in (?P<folder>[^\]\n]+)\]")


def cue(play: str, folder: str) -> str:
    """The words that make the model play `play` in the project at `folder`."""
    return f"[play {play} in {folder}]"


@dataclass(frozen=True)
class Read:
    """The agent's tool that reads a file."""

    path: str


@dataclass(frozen=True)
class Edit:
    """The agent's tool that replaces `old`, which occurs once in the file, with `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Create:
    """The agent's tool that writes a whole file."""

    path: str
    text: str


@dataclass(frozen=True)
class Shell:
    """The agent's tool that runs a command line."""

    command: str
    purpose: str


Call = Read | Edit | Create | Shell


@dataclass(frozen=True)
class Turn:
    """One answer of the model: thought, then text, then tool calls."""

    thought: str = ""
    text: str = ""
    calls: tuple[Call, ...] = ()
    endless: bool = False
    """Counts until the agent hangs up."""


SOURCE = "words.py"
OLD_LINE = '    return len(text.split(" "))\n'
NEW_LINE = "    return len(text.split())\n"
NOTES = "notes.md"
NOTES_TEXT = "# Notes\n\nRuns of blanks count once.\n"
SHELL_FILE = "from-shell.txt"
SHELL_COMMAND = f"echo shell-was-here > {SHELL_FILE} && cat {SHELL_FILE}"

COLOURS = 6
"""Lines of the colourful command, one every half second."""
COLOURS_COMMAND = (
    f"for i in {' '.join(map(str, range(1, COLOURS + 1)))}; do printf '\\033[3%dmcolour %d\\033[0m\\n' $i $i; sleep 0.5; done"
)
# Not `sleep`: claude-agent-acp blocks one that stands alone.
SLEEPER = "import time; time.sleep(41.5)"
SLEEP = f"python3 -c '{SLEEPER}'"

HELLO = "Yes, still here."
THOUGHT = "The question is about blanks."
ANSWER = """Two things about **counting words**:

1. `split(" ")` sees an empty word in every run of blanks.
2. `split()` does not.

| call | words |
|---|---|
| `"a  b".split(" ")` | 3 |
| `"a  b".split()` | 2 |

```python
print(len("žluťoučký  🐎 漢字".split()))
```

That is all."""


def turns(play: str, folder: str) -> tuple[Turn, ...] | None:
    """The turns of `play` in the project at `folder`, or None when there is no such play."""
    source = f"{folder}/{SOURCE}"
    edit = Turn(
        thought="Runs of blanks count as words here. split() without an argument is what is meant.",
        text="Runs of blanks are counted as words; I will change that line.",
        calls=(Edit(source, OLD_LINE, NEW_LINE),),
    )
    return {
        "text": (Turn(thought=THOUGHT, text=ANSWER),),
        "hello": (Turn(text=HELLO),),
        "edit": (Turn(calls=(Read(source),)), edit, Turn(text="The line is changed.")),
        "create": (
            Turn(text="I will write the notes.", calls=(Create(f"{folder}/{NOTES}", NOTES_TEXT),)),
            Turn(text="The notes are written."),
        ),
        "shell": (
            Turn(text="I will run a command.", calls=(Shell(SHELL_COMMAND, "Leave a mark"),)),
            Turn(text="The command has run."),
        ),
        "colours": (
            Turn(text="I will run a colourful command.", calls=(Shell(COLOURS_COMMAND, "Print in colour"),)),
            Turn(text="The command has run."),
        ),
        "sleep": (
            Turn(text="I will run a slow command.", calls=(Shell(SLEEP, "Wait"),)),
            Turn(text="The command has run."),
        ),
        "count": (Turn(endless=True),),
    }.get(play)
