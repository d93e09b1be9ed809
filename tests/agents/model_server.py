#!/usr/bin/env python3
"""The scripted model server: an LLM for real agents on a machine without any network.

It speaks Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini on one loopback port, and answers
with the play that the prompt's cue names (`model/plays.py`). Standard library only.

    model_server.py [PORT] [LOG]

LOG gets one JSON object per request: path, model, the cue, the tools on offer, and what was answered.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import IO, Any
from urllib.parse import urlsplit

from model.anthropic import Anthropic
from model.dialects import Dialect
from model.gemini import Gemini
from model.openai_chat import OpenAiChat
from model.openai_responses import OpenAiResponses
from model.reply import Reply, reply_to

DIALECTS: tuple[Dialect, ...] = (Anthropic(), OpenAiChat(), OpenAiResponses(), Gemini())
TOKEN_COUNTERS = {"/messages/count_tokens": {"input_tokens": 100}, ":countTokens": {"totalTokens": 100}}


class ModelServer:
    """The server on a loopback port, in threads of its own. Use it as a context manager."""

    def __init__(self, port: int = 0, log: IO[str] | None = None) -> None:
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.log = log
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def join(self) -> None:
        self._thread.join()


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    # An answer that still counts must not hold up the end of the server.
    block_on_close = False
    log: IO[str] | None = None

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._log_lock = threading.Lock()

    def note(self, **fields: Any) -> None:
        if self.log is None:
            return
        with self._log_lock:
            self.log.write(json.dumps({"time": round(time.time(), 3), **fields}, ensure_ascii=False) + "\n")
            self.log.flush()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: Any) -> None:
        """Silences the access log; `note` writes a better one."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.note(get=self.path)
        if path.endswith("/models"):
            self._json({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "tests"}]})
        else:
            self._json({"error": {"message": "not found", "type": "not_found"}}, 404)

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        except ValueError as problem:
            self._json({"error": {"message": f"not JSON: {problem}", "type": "invalid_request_error"}}, 400)
            return
        for ending, count in TOKEN_COUNTERS.items():
            if path.endswith(ending):
                self._json(count)
                return
        dialect = next((d for d in DIALECTS if d.serves(path)), None)
        if dialect is None:
            self.server.note(unknown=self.path)
            self._json({"error": {"message": "not found", "type": "not_found"}}, 404)
            return
        self._answer(dialect, path, body)

    def _answer(self, dialect: Dialect, path: str, body: dict[str, Any]) -> None:
        conversation = dialect.conversation(body)
        reply = reply_to(conversation)
        self.server.note(
            path=path,
            model=body.get("model"),
            cue=conversation.cued_text[-200:],
            rounds=conversation.rounds,
            tools=[tool.name for tool in conversation.tools],
            **_summary(reply),
        )
        if not dialect.streams(path, body):
            self._json(dialect.whole(reply, body))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for event in dialect.stream(reply, body):
                name = f"event: {event.name}\n" if event.name else ""
                data = event.data if isinstance(event.data, str) else json.dumps(event.data)
                self.wfile.write(f"{name}data: {data}\n\n".encode())
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.server.note(path=path, hung_up=True)

    def _json(self, value: dict[str, Any], status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _summary(reply: Reply) -> dict[str, Any]:
    return {"says": reply.text[:80], "calls": [[call.tool.name, call.arguments] for call in reply.calls]}


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    log = open(sys.argv[2], "a", encoding="utf-8") if len(sys.argv) > 2 else sys.stderr
    with ModelServer(port, log) as server:
        print(server.url, flush=True)
        server.join()


if __name__ == "__main__":
    main()
