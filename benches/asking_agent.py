"""An ACP agent that asks for permission over and over while it goes on talking, and notes when each answer came.

    python asking_agent.py REPORT COUNT CHUNKS_PER_SECOND

In answer to a prompt it asks COUNT times, the next time once it has an answer, and says something CHUNKS_PER_SECOND times a
second all the while. REPORT is a FIFO that gets a JSON line for each answer: the time (`time.monotonic()`, the same clock for
all processes) at which its line was read from standard input.
"""

import json
import sys
import threading
import time

from stream import SESSION, chunk

OPTIONS = [
    {"optionId": "allow", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "reject", "name": "Reject", "kind": "reject_once"},
]


class Agent:
    """One client, until its standard input ends."""

    def __init__(self, report, count: int, rate: float) -> None:
        self.report = report
        self.count = count
        self.pause = 1 / rate
        self.prompt = None
        self.asked = 0
        self.lock = threading.Lock()

    def run(self) -> None:
        for line in sys.stdin.buffer:
            now = time.monotonic()
            message = json.loads(line)
            if "method" not in message:
                self.report.write(json.dumps({"answered": now, "result": message.get("result")}) + "\n")
                self.ask()
            elif message["method"] == "session/prompt":
                self.prompt = message["id"]
                threading.Thread(target=self.talk, daemon=True).start()
                self.ask()
            elif "id" in message:
                self.reply(message)

    def ask(self) -> None:
        if self.asked == self.count:
            prompt, self.prompt = self.prompt, None
            self.send({"id": prompt, "result": {"stopReason": "end_turn"}})
            return
        self.asked += 1
        call = {"toolCallId": f"call-{self.asked}", "title": f"Run number {self.asked}", "kind": "execute"}
        call["rawInput"] = {"command": f"make target-{self.asked}"}
        params = {"sessionId": SESSION, "toolCall": call, "options": OPTIONS}
        self.send({"id": self.asked, "method": "session/request_permission", "params": params})

    def talk(self) -> None:
        said = 0
        began = time.monotonic()
        while self.prompt is not None:
            said += 1
            self.write(chunk(f"word {said} of **many**, and some more of `them`.\n"))
            time.sleep(max(0.0, began + said * self.pause - time.monotonic()))

    def reply(self, message: dict) -> None:
        results = {
            "initialize": {"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []},
            "session/new": {"sessionId": SESSION},
        }
        self.send({"id": message["id"], "result": results.get(message["method"], {})})

    def send(self, message: dict) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, line: bytes) -> None:
        with self.lock:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def main() -> None:
    report_path, count, rate = sys.argv[1:]
    with open(report_path, "w", encoding="utf-8", buffering=1) as report:
        Agent(report, int(count), float(rate)).run()


if __name__ == "__main__":
    main()
