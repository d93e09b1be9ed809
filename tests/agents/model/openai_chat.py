"""OpenAI Chat Completions, as opencode uses it for a provider of one's own."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from .dialects import ServerSentEvent, newest_cue, text_of
from .reply import Conversation, Reply, fresh_id
from .tools import Tool

USAGE = {"prompt_tokens": 1500, "completion_tokens": 40, "total_tokens": 1540}


class OpenAiChat:
    """See `dialects.Dialect`."""

    def serves(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    def conversation(self, body: dict[str, Any]) -> Conversation:
        messages = body.get("messages", [])
        start, text = newest_cue(text_of(m.get("content")) if m["role"] == "user" else "" for m in messages)
        rounds = sum(m["role"] == "assistant" and bool(m.get("tool_calls")) for m in messages[start + 1 :])
        functions = (t["function"] for t in body.get("tools") or () if t.get("function"))
        return Conversation(text, rounds, [Tool(f["name"], f.get("parameters") or {}) for f in functions])

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": reply.text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {**_envelope("chat.completion", body), "choices": [choice], "usage": USAGE}

    def stream(self, reply: Reply, body: dict[str, Any]) -> Iterator[ServerSentEvent]:
        envelope = _envelope("chat.completion.chunk", body)

        def chunk(delta: dict[str, Any], finish: str | None = None) -> ServerSentEvent:
            return ServerSentEvent({**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in reply.thought_pieces():
            yield chunk({"reasoning_content": piece})
        for piece in reply.text_pieces():
            yield chunk({"content": piece})
        for index, call in enumerate(reply.calls):
            function = {"name": call.tool.name, "arguments": ""}
            yield chunk(
                {"tool_calls": [{"index": index, "id": fresh_id("call_"), "type": "function", "function": function}]}
            )
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": json.dumps(call.arguments)}}]})
        yield chunk({}, "tool_calls" if reply.calls else "stop")
        yield ServerSentEvent({**envelope, "choices": [], "usage": USAGE})
        yield ServerSentEvent("[DONE]")


def _envelope(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": fresh_id("chatcmpl-"),
        "object": kind,
        "created": int(time.time()),
        "model": body.get("model", "scripted"),
    }
