"""Gemini's generateContent and streamGenerateContent, as gemini-cli uses them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .dialects import ServerSentEvent, newest_cue, text_of
from .reply import Conversation, Reply, fresh_id
from .tools import Tool, conforming

USAGE = {"promptTokenCount": 1500, "candidatesTokenCount": 40, "thoughtsTokenCount": 8, "totalTokenCount": 1548}


class Gemini:
    """See `dialects.Dialect`."""

    def serves(self, path: str) -> bool:
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return path.endswith(":streamGenerateContent")

    def conversation(self, body: dict[str, Any]) -> Conversation:
        contents = body.get("contents", [])
        start, text = newest_cue(text_of(c.get("parts")) if c.get("role") == "user" else "" for c in contents)
        rounds = sum(
            c.get("role") == "model" and any("functionCall" in part for part in c.get("parts") or ())
            for c in contents[start + 1 :]
        )
        functions = (f for tool in body.get("tools") or () for f in tool.get("functionDeclarations") or ())
        tools = [Tool(f["name"], f.get("parametersJsonSchema") or f.get("parameters") or {}) for f in functions]
        return Conversation(text, rounds, tools)

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        config = body.get("generationConfig") or {}
        text = reply.text
        if config.get("responseMimeType") == "application/json":
            # gemini-cli asks which model to route to, and what was said next, in JSON.
            text = json.dumps(conforming(config.get("responseJsonSchema") or config.get("responseSchema") or {}))
        return _chunk([{"text": text}], "STOP")

    def stream(self, reply: Reply, body: dict[str, Any]) -> Iterator[ServerSentEvent]:
        if reply.thought:
            # A thought is one chunk here: its headline in bold, then the text.
            yield ServerSentEvent(_chunk([{"text": f"**Blanks** {reply.thought}", "thought": True}]))
        for piece in reply.text_pieces():
            yield ServerSentEvent(_chunk([{"text": piece}]))
        for call in reply.calls:
            function = {"name": call.tool.name, "args": call.arguments, "id": fresh_id("call_")}
            yield ServerSentEvent(_chunk([{"functionCall": function, "thoughtSignature": "c2lnbmVk"}]))
        yield ServerSentEvent(_chunk([{"text": ""}], "STOP"))


def _chunk(parts: list[dict[str, Any]], finish: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "scripted", "responseId": fresh_id("")}
