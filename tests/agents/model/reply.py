"""One answer of the model, independent of any vendor's API."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .plays import CUE, turns
from .tools import Invocation, NoSuchTool, Tool, invocation

PIECE_CHARACTERS = 12
SECONDS_BETWEEN_PIECES = 0.01
SECONDS_BETWEEN_COUNTS = 0.1
MOST_COUNTS = 1200

_ids = itertools.count(1)


def fresh_id(prefix: str) -> str:
    """An id that is unique in this server."""
    return f"{prefix}{next(_ids):05}"


@dataclass(frozen=True)
class Conversation:
    """What an answer depends on: the newest text with a cue, the rounds of tool calls since, the tools on offer."""

    cued_text: str
    rounds: int
    tools: Sequence[Tool]


@dataclass(frozen=True)
class Reply:
    """Thought, text and calls of one answer."""

    thought: str = ""
    text: str = ""
    calls: tuple[Invocation, ...] = ()
    endless: bool = False

    def thought_pieces(self) -> Iterator[str]:
        return _pieces(self.thought)

    def text_pieces(self) -> Iterator[str]:
        """The text as it streams; paced, and without end when the play counts."""
        if not self.endless:
            yield from _pieces(self.text)
            return
        for number in range(MOST_COUNTS):
            yield f"number {number}\n"
            time.sleep(SECONDS_BETWEEN_COUNTS)

    @property
    def has_text(self) -> bool:
        return bool(self.text) or self.endless


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]
        time.sleep(SECONDS_BETWEEN_PIECES)


def reply_to(conversation: Conversation) -> Reply:
    """The turn of the cued play that is due; a few words where there is no cue or no tools (titles, routing)."""
    cues = list(CUE.finditer(conversation.cued_text))
    if not cues or not conversation.tools:
        return Reply(text="Counting words")
    name, folder = cues[-1]["play"], cues[-1]["folder"]
    play = turns(name, folder)
    if play is None:
        return Reply(text=f"There is no play named {name}.")
    turn = play[min(conversation.rounds, len(play) - 1)]
    try:
        calls = tuple(invocation(call, conversation.tools) for call in turn.calls)
    except NoSuchTool as missing:
        return Reply(text=f"Cannot play {name}: {missing}.")
    return Reply(turn.thought, turn.text, calls, turn.endless)
