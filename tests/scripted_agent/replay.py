#!/usr/bin/env python3
"""An ACP agent that says again what a real one said in a recording (tests/recordings/).

    replay.py RECORDING.jsonl LOG.jsonl

What the recorded agent sent is sent in the recorded order, at full speed, with these adaptations:

* an answer goes to the id of the client's own request, and waits until that request came;
* after a recorded `session/prompt` or `session/cancel`, or an answer of the recorded client, the replay waits until the
  client under test does the same. What it waits for is in the log, as an entry `expects`, so that the test can act as
  the recorded user did. A prompt that was recorded while another ran is only waited for once its answer is due and no
  other is running: clients that queue prompts send it later;
* a cancel that was recorded after the turn's end, or a second one in a turn, is not waited for;
* requests of the recorded client that the one under test need not send (`session/set_mode`, a second `session/new`, one
  that failed before another succeeded, …) are passed over together with their answers;
* of a recording of several processes only the first is replayed;
* the recorded project folder is replaced by the folder of the client's session.

The entry `replayed` follows the last message. Then, like most agents, it waits for the end of stdin.
"""

import json
import os
import sys
import threading

from wire import Log, Wire, id_key

RECORDED_FOLDER = "/home/user/project"
REPLAYED_METHODS = {"initialize", "session/new", "session/prompt"}


class Replay:
    def __init__(self, recording, log):
        self.log = log
        self.wire = Wire(log)
        with open(recording, encoding="utf-8") as lines:
            self.entries = first_process([json.loads(line) for line in lines])
        self.passed_over = set()  # ids of recorded requests that the client under test need not send
        self.waiting_prompts = {}  # recorded id -> text, of prompts sent while another ran
        self.held_answers = []  # recorded answers to such prompts, while another still runs
        self.actual = {}  # recorded id of the client's request -> the client's own request
        self.running = False
        self.cancelled = False
        self.session_request = self.chosen_session_request()
        self.folder = RECORDED_FOLDER
        self.taken = {}  # method -> how many of the client's messages of it were matched
        self.calls = {}  # method -> the client's messages in order
        self.session_asked = False

    def run(self):
        threading.Thread(target=self.play, daemon=True).start()
        for message in self.wire.receive():
            with self.wire.changed:
                self.calls.setdefault(message["method"], []).append(message)
                self.wire.changed.notify_all()
            if "id" in message and message["method"] not in REPLAYED_METHODS:
                self.wire.reply(message["id"], {"error": {"code": -32601, "message": "not replayed"}})
        os._exit(0)

    def play(self):
        try:
            for entry in self.entries:
                self.play_entry(entry)
        except (BrokenPipeError, ValueError) as error:
            self.log.write("cannot_send", error=str(error))
            return
        self.log.write("replayed")

    def play_entry(self, entry):
        direction, message = entry["dir"], entry.get("msg")
        if direction == "stderr":
            print(entry["raw"], file=sys.stderr, flush=True)
        elif direction == "a2c" and "raw" in entry:
            self.wire.send_bytes(entry["raw"].encode() + b"\n")
        elif direction == "a2c":
            self.agent_said(message)
        elif direction == "c2a" and isinstance(message, dict):
            self.client_said(message)

    def chosen_session_request(self):
        """The id of the first `session/new` that succeeded, else of the first."""
        asked = [
            id_key(entry["msg"]["id"])
            for entry in self.entries
            if entry["dir"] == "c2a" and entry.get("msg", {}).get("method") == "session/new"
        ]
        succeeded = {
            id_key(entry["msg"].get("id"))
            for entry in self.entries
            if entry["dir"] == "a2c" and isinstance((entry.get("msg") or {}).get("result"), dict)
            and "sessionId" in entry["msg"]["result"]
        }  # fmt: skip
        return next((key for key in asked if key in succeeded), asked[0] if asked else None)

    # -- what the recorded client did

    def client_said(self, message):
        method = message.get("method")
        if method is None:
            self.expect_answer(message)
        elif method == "session/cancel" and self.running and not self.cancelled:
            self.cancelled = True
            self.log.write("expects", act="cancel")
            self.next_call(method)
        elif "id" in message:
            self.expect_request(method, message)

    def expect_answer(self, message):
        key = id_key(message.get("id"))
        if key not in self.wire.asked and key not in self.wire.answers:
            return
        self.log.write("expects", act="answer", id=message.get("id"), answer=message)
        self.wire.wait(lambda: key in self.wire.answers)

    def expect_request(self, method, message):
        key = id_key(message["id"])
        other = {
            "initialize": method in self.taken,
            "session/new": key != self.session_request,
            "session/prompt": not self.session_asked,
        }
        if other.get(method, True):
            self.passed_over.add(key)
        elif method == "session/prompt" and self.running:
            self.waiting_prompts[key] = message
        else:
            self.take_request(method, message)

    def take_request(self, method, message):
        if method == "session/prompt":
            text = "".join(block.get("text", "") for block in message["params"]["prompt"])
            self.log.write("expects", act="prompt", text=text)
            self.running = True
        actual = self.next_call(method)
        if method == "session/new":
            self.session_asked = True
            self.folder = actual["params"]["cwd"]
        self.actual[id_key(message["id"])] = actual

    def next_call(self, method):
        index = self.taken.get(method, 0)
        self.taken[method] = index + 1
        self.wire.wait(lambda: len(self.calls.get(method, [])) > index)
        return self.calls[method][index]

    # -- what the recorded agent did

    def agent_said(self, message):
        if "method" in message or message.get("id") is None:
            self.wire.send(self.relocated(message))
            return
        key = id_key(message["id"])
        if key in self.waiting_prompts and self.running:
            self.held_answers.append(message)
        elif key not in self.passed_over:
            self.answer(key, message)

    def answer(self, key, message):
        if key in self.waiting_prompts:
            self.take_request("session/prompt", self.waiting_prompts.pop(key))
        actual = self.actual.get(key)
        if actual is None:
            return
        body = {part: self.relocated(message[part]) for part in ("result", "error") if part in message}
        self.wire.reply(actual["id"], body)
        if actual["method"] == "session/prompt":
            self.running = self.cancelled = False
            held, self.held_answers = self.held_answers, []
            for later in held:
                self.answer(id_key(later["id"]), later)

    def relocated(self, value):
        return json.loads(json.dumps(value).replace(RECORDED_FOLDER, json.dumps(self.folder)[1:-1]))


def first_process(entries):
    starts = [index for index, entry in enumerate(entries) if "spawn" in entry]
    return entries[: starts[1]] if len(starts) > 1 else entries


def main():
    log = Log(sys.argv[2])
    Replay(sys.argv[1], log).run()


if __name__ == "__main__":
    main()
