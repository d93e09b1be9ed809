"""The stdio of an agent, and the log of what happened on it that the tests read."""

import json
import os
import sys
import threading
import time


def id_key(identifier):
    """Ids of different JSON types are different ids: 1 is not "1"."""
    return json.dumps(identifier)


class Log:
    """One JSON object a line, appended whole, by any number of threads and processes.

    Every entry has `what` (its kind), `run` (1 for the first process that used the log, 2 for the next, …) and `t`
    (seconds on the system's monotonic clock).
    """

    def __init__(self, path):
        self.descriptor = os.open(path, os.O_APPEND | os.O_CREAT | os.O_RDWR, 0o600)
        with open(path, "rb") as earlier:
            self.run = 1 + sum(1 for line in earlier if b'"what": "started"' in line)
        self.write("started", pid=os.getpid(), argv=sys.argv, cwd=os.getcwd(), env=dict(os.environ))

    def write(self, what, **details):
        entry = {"what": what, "run": self.run, "t": time.monotonic(), **details}
        os.write(self.descriptor, json.dumps(entry).encode() + b"\n")


class Wire:
    """Sends and receives JSON-RPC lines, and keeps count of what is open in both directions."""

    def __init__(self, log):
        self.log = log
        self.output = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=1 << 16)
        self.changed = threading.Condition()
        self.seen = {}  # method -> how many messages of it came
        self.asked = {}  # id of a request of ours -> its method
        self.answers = {}  # id of a request of ours -> the client's response
        self.open = {}  # id of a request of the client -> its message

    # -- out

    def send(self, message, flush=True):
        if "method" in message and "id" in message:
            with self.changed:
                self.asked[id_key(message["id"])] = message["method"]
            self.log.write("asked", id=message["id"], method=message["method"])
        self.send_bytes(json.dumps(message, separators=(",", ":")).encode() + b"\n", flush)

    def send_bytes(self, data, flush=True):
        with self.changed:
            output = self.output
        # BufferedWriter is itself thread-safe: a message is one write and never interleaves with another.
        output.write(data)
        if flush:
            output.flush()

    def reply(self, identifier, body):
        """Answers a request of the client once; a second answer to the same request is not sent."""
        with self.changed:
            if self.open.pop(id_key(identifier), None) is None:
                return
        self.send({"jsonrpc": "2.0", "id": identifier, **body})

    def close_output(self):
        self.output.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        self.output.close()

    # -- in

    def receive(self):
        """Yields the client's requests and notifications until stdin ends; its responses are filed away."""
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                self.log.write("received_garbage", text=line.decode("utf-8", "replace"))
                continue
            if "method" in message:
                self.file_call(message)
                yield message
            else:
                self.file_answer(message)
        self.log.write("eof")

    def file_call(self, message):
        self.log.write("received", message=message)
        with self.changed:
            method = message["method"]
            self.seen[method] = self.seen.get(method, 0) + 1
            if "id" in message:
                self.open[id_key(message["id"])] = message
            self.changed.notify_all()

    def file_answer(self, message):
        key = id_key(message.get("id"))
        with self.changed:
            method = self.asked.pop(key, None)
            if method is not None:
                self.answers[key] = message
            self.changed.notify_all()
        if method is None:
            self.log.write("stray_answer", message=message)
        else:
            self.log.write("answered", id=message.get("id"), method=method, message=message)

    def wait(self, condition, stopped=lambda: False):
        """Blocks until `condition()` or `stopped()`; both are asked again whenever a message came."""
        with self.changed:
            while not condition() and not stopped():
                self.changed.wait()

    def wake(self):
        with self.changed:
            self.changed.notify_all()
