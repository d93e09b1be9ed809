"""Anthropic Messages, as claude-agent-acp uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .dialects import ServerSentEvent, newest_cue, text_of
from .reply import Conversation, Reply, fresh_id
from .tools import Tool

USAGE = {"input_tokens": 900, "output_tokens": 40, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 600}


class Anthropic:
    """See `dialects.Dialect`."""

    def serves(self, path: str) -> bool:
        return path.endswith("/messages")

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    def conversation(self, body: dict[str, Any]) -> Conversation:
        messages = body.get("messages", [])
        start, text = newest_cue(text_of(m["content"]) if m["role"] == "user" else "" for m in messages)
        rounds = sum(
            m["role"] == "assistant"
            and isinstance(m["content"], list)
            and any(part.get("type") == "tool_use" for part in m["content"])
            for m in messages[start + 1 :]
        )
        tools = [Tool(t["name"], t["input_schema"]) for t in body.get("tools") or () if "input_schema" in t]
        return Conversation(text, rounds, tools)

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        message = _message(body)
        message["content"] = [{"type": "text", "text": reply.text or "."}]
        message["stop_reason"] = "end_turn"
        return message

    def stream(self, reply: Reply, body: dict[str, Any]) -> Iterator[ServerSentEvent]:
        yield _event("message_start", message=_message(body))
        index = 0
        if reply.thought and body.get("thinking", {}).get("type") in ("enabled", "adaptive"):
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in reply.thought_pieces()]
            deltas.append({"type": "signature_delta", "signature": "c2lnbmVk"})
            yield from _block(index, {"type": "thinking", "thinking": "", "signature": ""}, iter(deltas))
            index += 1
        if reply.has_text:
            deltas = ({"type": "text_delta", "text": piece} for piece in reply.text_pieces())
            yield from _block(index, {"type": "text", "text": ""}, deltas)
            index += 1
        for call in reply.calls:
            block = {"type": "tool_use", "id": fresh_id("toolu_"), "name": call.tool.name, "input": {}}
            text = json.dumps(call.arguments)
            # In two halves, so that the agent sees arguments that are not JSON yet.
            halves = (text[: len(text) // 2], text[len(text) // 2 :])
            yield from _block(index, block, ({"type": "input_json_delta", "partial_json": half} for half in halves))
            index += 1
        reason = "tool_use" if reply.calls else "end_turn"
        yield _event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=USAGE)
        yield _event("message_stop")


def _message(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": fresh_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }


def _event(kind: str, **fields: Any) -> ServerSentEvent:
    return ServerSentEvent({"type": kind, **fields}, kind)


def _block(index: int, block: dict[str, Any], deltas: Iterator[dict[str, Any]]) -> Iterator[ServerSentEvent]:
    yield _event("content_block_start", index=index, content_block=block)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)
