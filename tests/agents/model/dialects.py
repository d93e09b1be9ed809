"""The shape that every vendor's API gets here, and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from .plays import CUE
from .reply import Conversation, Reply


@dataclass(frozen=True)
class ServerSentEvent:
    """One event of a stream. `data` is JSON, or a str that is sent as it is."""

    data: dict[str, Any] | str
    name: str | None = None


class Dialect(Protocol):
    """A vendor's API: reads a request into a `Conversation`, words a `Reply`."""

    def serves(self, path: str) -> bool:
        """Whether a POST to this path (without its query) asks the model for an answer."""

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        """Whether the answer is wanted as server-sent events."""

    def conversation(self, body: dict[str, Any]) -> Conversation: ...

    def stream(self, reply: Reply, body: dict[str, Any]) -> Iterator[ServerSentEvent]: ...

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]: ...


def text_of(content: Any) -> str:
    """The text of a message, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def newest_cue(texts: Iterable[str]) -> tuple[int, str]:
    """Index and text of the last text that holds a cue; (-1, "") without one."""
    found = (-1, "")
    for index, text in enumerate(texts):
        if CUE.search(text):
            found = (index, text)
    return found
