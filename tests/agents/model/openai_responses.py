"""OpenAI Responses, as codex uses it. Codex only streams."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

from .dialects import ServerSentEvent, newest_cue, text_of
from .reply import Conversation, Reply, fresh_id
from .tools import Invocation, Tool

USAGE = {
    "input_tokens": 1500,
    "input_tokens_details": {"cached_tokens": 600},
    "output_tokens": 40,
    "output_tokens_details": {"reasoning_tokens": 8},
    "total_tokens": 1540,
}
TOOL_RESULTS = ("function_call_output", "custom_tool_call_output")


class OpenAiResponses:
    """See `dialects.Dialect`."""

    def serves(self, path: str) -> bool:
        return path.endswith("/responses")

    def streams(self, path: str, body: dict[str, Any]) -> bool:
        return bool(body.get("stream"))

    def conversation(self, body: dict[str, Any]) -> Conversation:
        items = body.get("input") or []
        start, text = newest_cue(text_of(i.get("content")) if i.get("role") == "user" else "" for i in items)
        # The results of one round follow each other.
        results = (item.get("type") in TOOL_RESULTS for item in items[start + 1 :])
        rounds = sum(is_result for is_result, _ in itertools.groupby(results))
        return Conversation(text, rounds, list(_tools(body.get("tools") or ())))

    def whole(self, reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
        message = {"type": "message", "id": fresh_id("msg_"), "role": "assistant", "status": "completed"}
        message["content"] = [{"type": "output_text", "text": reply.text, "annotations": []}]
        return {**_response(body), "status": "completed", "output": [message], "usage": USAGE}

    def stream(self, reply: Reply, body: dict[str, Any]) -> Iterator[ServerSentEvent]:
        sequence = itertools.count()

        def event(kind: str, **fields: Any) -> ServerSentEvent:
            return ServerSentEvent({"type": kind, "sequence_number": next(sequence), **fields}, kind)

        response = _response(body)
        yield event("response.created", response=response)
        output: list[dict[str, Any]] = []
        parts = []
        if reply.thought:
            parts.append(_reasoning(reply))
        if reply.has_text:
            parts.append(_message(reply))
        parts.extend(_call(call) for call in reply.calls)
        for index, part in enumerate(parts):
            for kind, fields in part:
                yield event(kind, output_index=index, **fields)
                if kind == "response.output_item.done":
                    output.append(fields["item"])
        done = {**response, "status": "completed", "output": output, "usage": USAGE}
        yield event("response.completed", response=done)


Part = Iterator[tuple[str, dict[str, Any]]]


def _tools(declared: Any, namespace: str = "") -> Iterator[Tool]:
    for tool in declared:
        if tool.get("type") == "function":
            yield Tool(tool["name"], tool.get("parameters") or {}, namespace=namespace)
        elif tool.get("type") == "custom":
            yield Tool(tool["name"], freeform=True, namespace=namespace)
        elif tool.get("type") == "namespace":
            yield from _tools(tool.get("tools") or (), tool.get("name", ""))


def _response(body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": fresh_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "model": body.get("model", "scripted"),
        "status": "in_progress",
        "output": [],
        "error": None,
    }


def _reasoning(reply: Reply) -> Part:
    item = {"id": fresh_id("rs_"), "type": "reasoning", "summary": []}
    at = {"item_id": item["id"], "summary_index": 0}
    yield "response.output_item.added", {"item": item}
    yield "response.reasoning_summary_part.added", {**at, "part": {"type": "summary_text", "text": ""}}
    for piece in reply.thought_pieces():
        yield "response.reasoning_summary_text.delta", {**at, "delta": piece}
    part = {"type": "summary_text", "text": reply.thought}
    yield "response.reasoning_summary_text.done", {**at, "text": reply.thought}
    yield "response.reasoning_summary_part.done", {**at, "part": part}
    yield "response.output_item.done", {"item": {**item, "summary": [part]}}


def _message(reply: Reply) -> Part:
    item = {"id": fresh_id("msg_"), "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    at = {"item_id": item["id"], "content_index": 0}
    yield "response.output_item.added", {"item": item}
    yield "response.content_part.added", {**at, "part": {"type": "output_text", "text": "", "annotations": []}}
    said = []
    for piece in reply.text_pieces():
        said.append(piece)
        yield "response.output_text.delta", {**at, "delta": piece}
    text = "".join(said)
    part = {"type": "output_text", "text": text, "annotations": []}
    yield "response.output_text.done", {**at, "text": text}
    yield "response.content_part.done", {**at, "part": part}
    yield "response.output_item.done", {"item": {**item, "status": "completed", "content": [part]}}


def _call(call: Invocation) -> Part:
    if isinstance(call.arguments, str):
        kind, key, arguments, prefix = "custom_tool_call", "input", call.arguments, "ctc_"
        delta = "response.custom_tool_call_input"
    else:
        kind, key, arguments, prefix = "function_call", "arguments", json.dumps(call.arguments), "fc_"
        delta = "response.function_call_arguments"
    item = {"id": fresh_id(prefix), "type": kind, "call_id": fresh_id("call_"), "name": call.tool.name}
    if call.tool.namespace:
        item["namespace"] = call.tool.namespace
    yield "response.output_item.added", {"item": {**item, key: "", "status": "in_progress"}}
    yield f"{delta}.delta", {"item_id": item["id"], "delta": arguments}
    yield f"{delta}.done", {"item_id": item["id"], key: arguments}
    yield "response.output_item.done", {"item": {**item, key: arguments, "status": "completed"}}
