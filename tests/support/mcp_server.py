#!/usr/bin/env python3
"""A small MCP server for tests: on standard input and output, or with `--http` on a port that it prints.

Its tools are told in two pages. Every message that it gets is a line of the file in $MCP_LOG."""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LOG = os.environ.get("MCP_LOG")
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOLS = [
    {"name": "shout", "title": "Shout it", "description": "Shouts.", "inputSchema": TEXT},
    {"name": "fail", "description": "Never works.", "inputSchema": {"type": "object"}},
    {"name": "draw", "description": "A picture.", "inputSchema": {"type": "object"}},
    {"name": "wait", "description": "Never answers.", "inputSchema": {"type": "object"}},
    {"name": "grow", "description": "Adds a tool.", "inputSchema": {"type": "object"}},
    {"name": "die", "description": "Ends the server.", "inputSchema": {"type": "object"}},
]
PAGE = 4


def log(message):
    if LOG:
        with open(LOG, "a") as file:
            file.write(json.dumps(message) + "\n")


def text(said, is_error=False):
    return {"content": [{"type": "text", "text": said}], "isError": is_error}


def call(name, arguments):
    """The result of a tool, and a notification that follows; `None` for one that is never answered."""
    if name == "shout":
        return text(arguments["text"].upper() + os.environ.get("MCP_MARK", "")), None
    if name == "fail":
        return text("it does not work", True), None
    if name == "draw":
        return {"content": [{"type": "image", "data": "AQID", "mimeType": "image/png"}]}, None
    if name == "grow":
        TOOLS.append({"name": "grown", "description": "New.", "inputSchema": {"type": "object"}})
        return text("grown"), {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    if name == "grown":
        return text("it grew"), None
    if name == "die":
        os._exit(3)
    return None, None


def answer(message):
    """What a message is answered with, and what is said after that."""
    log(message)
    if "id" not in message:
        return None, None
    method, params = message["method"], message.get("params") or {}
    said = None
    if method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "test", "version": "1"},
        }
    elif method == "tools/list":
        start = int(params.get("cursor") or 0)
        result = {"tools": TOOLS[start : start + PAGE]}
        if start + PAGE < len(TOOLS):
            result["nextCursor"] = str(start + PAGE)
    elif method == "tools/call":
        result, said = call(params["name"], params.get("arguments") or {})
        if result is None:
            return None, None
    elif method == "ping":
        result = {}
    else:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": method}}, None
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}, said


def stdio():
    for line in sys.stdin:
        for reply in answer(json.loads(line)):
            if reply:
                print(json.dumps(reply), flush=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_error(405)

    do_DELETE = do_GET

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        log({"authorization": self.headers.get("Authorization")})
        if self.headers.get("Authorization") != "Bearer right":
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        reply, _ = answer(message)
        body = json.dumps(reply).encode() if reply else b""
        self.send_response(200 if reply else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    if "--http" in sys.argv:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print(server.server_address[1], flush=True)
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        server.serve_forever()
    else:
        stdio()
