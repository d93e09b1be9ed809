#!/usr/bin/env python3
"""An ACP agent that plays a scenario: whatever an agent can do right or wrong, a test can make this one do.

    agent.py SCENARIO.json LOG.jsonl

The scenario is written by `tests/support/scenario.rs`; this is its format. All parts are optional:

    {
      "on_start": [STEP, …],                           played to their end before anything is read
      "on": {"session/prompt": [[STEP, …], …], …},     per method: the first list for the first message, the second for
                                                       the second, the last one for all later ones
      "on_eof": "exit" | "ignore",                     what the end of stdin does; "exit" unless said otherwise
      "ignore_signals": [NUMBER, …]
    }

Lists under "on" run side by side, each in a thread of its own, so a prompt's steps go on while a cancel's are played.
A method that the scenario does not name is treated as a well-behaved agent would: `initialize`, `session/new`,
`session/prompt` and `session/cancel` have defaults below, another request is answered -32601.

A step is an object with one of these keys:

    send MESSAGE            any JSON-RPC message
    reply RESULT            answers the message that the steps are played for
    reply_error ERROR       the same with an error
    update UPDATE           a `session/update` notification for the session at hand
    request {method, params, id?, wait?}   asks the client; goes on when the answer is there unless wait is false
    raw TEXT                bytes as they are, no newline added
    bytes [NUMBER, …]       bytes that need not be text
    fill {text, times}      the text over and over, no newline added
    stderr TEXT             a line on stderr
    delay SECONDS           an agent that takes its time
    wait {method, count}    goes on once so many messages of that method have come
    gate NAME               goes on once the test has opened the gate: the file gate-NAME beside the scenario
    repeat {times, steps}   `$i` in the steps is 0, 1, 2, …; sent together, unless a delay, wait or gate is among them
    spawn {argv?, ignore?, session?, keep_pipes?}   a child process; its id is in the log
    disk {path, text}       writes the file itself, as most agents do; its folders are made
    run COMMAND             runs it by the shell in the session's folder, and waits for its end
    close_stdout true
    exit CODE               ends the process at once
    die SIGNAL              ends it by a signal

In every string `$session` and `$cwd` stand for the session at hand and its folder; a string that is `$id` alone stands
for the id of the message at hand, whatever its type.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from wire import Log, Wire, id_key

METHOD_NOT_FOUND = -32601
GATE_POLL_SECONDS = 0.005
CHILD_LIFE_SECONDS = "300"


class Stopped(Exception):
    """The default answer to `session/cancel` ends the steps of the session's prompts."""


class Agent:
    def __init__(self, scenario_path, log):
        self.scenario = json.loads(Path(scenario_path).read_text())
        self.folder = Path(scenario_path).parent
        self.wire = Wire(log)
        self.log = log
        self.sessions = {}  # session id -> cwd
        self.scripts = []
        self.next_request = 0

    def run(self):
        for number in self.scenario.get("ignore_signals", []):
            signal.signal(number, signal.SIG_IGN)
        Script(self, {}).play(self.scenario.get("on_start", []))
        for message in self.wire.receive():
            self.handle(message)
        if self.scenario.get("on_eof") == "ignore":
            threading.Event().wait()
        os._exit(0)

    def handle(self, message):
        method = message["method"]
        if method == "session/new":
            # Known before the steps run, so that an update may come before the answer.
            params = message.get("params") or {}
            session = f"session-{self.log.run}.{len(self.sessions) + 1}"
            self.sessions[session] = params.get("cwd", "")
            message = {**message, "params": {**params, "sessionId": session}}
        scripts = self.scenario.get("on", {}).get(method)
        if scripts:
            arrival = self.wire.seen[method]
            self.play(scripts[min(arrival, len(scripts)) - 1], message)
        else:
            self.play(self.default_steps(method, message), message)

    def default_steps(self, method, message):
        if method == "initialize":
            return [{"reply": {
                "protocolVersion": 1,
                "agentCapabilities": {},
                "agentInfo": {"name": "scripted", "version": "1.0.0"},
                "authMethods": [],
            }}]  # fmt: skip
        if method == "session/new":
            return [{"reply": {"sessionId": "$session"}}]
        if method == "session/prompt":
            return [{"reply": {"stopReason": "end_turn"}}]
        if method == "session/cancel":
            return [{"cancel_prompts": True}]
        if "id" in message:
            return [{"reply_error": {"code": METHOD_NOT_FOUND, "message": f"Method not found: {method}"}}]
        return []

    def cancel_prompts(self, session):
        for script in self.scripts:
            if script.method == "session/prompt" and script.session == session and not script.stopped:
                script.stopped = True
                self.wire.wake()
                self.wire.reply(script.identifier, {"result": {"stopReason": "cancelled"}})

    def play(self, steps, message):
        script = Script(self, message)
        self.scripts.append(script)
        threading.Thread(target=script.play, args=(steps,), daemon=True).start()

    def new_request_id(self):
        with self.wire.changed:
            self.next_request += 1
            return self.next_request


class Script:
    """One list of steps being played for one message of the client."""

    def __init__(self, agent, message):
        params = message.get("params") or {}
        self.agent = agent
        self.wire = agent.wire
        self.method = message.get("method")
        self.identifier = message.get("id")
        self.session = params.get("sessionId") or next(reversed(agent.sessions), "")
        self.stopped = False

    def play(self, steps):
        try:
            self.steps(steps, None)
        except Stopped:
            pass
        except (BrokenPipeError, ValueError) as error:
            # The client is gone, or a step closed stdout: nothing more can be sent.
            self.agent.log.write("cannot_send", error=str(error))

    def steps(self, steps, index):
        for step in steps:
            if self.stopped:
                raise Stopped
            ((name, argument),) = step.items()
            if name == "repeat":
                self.repeat(argument)
            else:
                getattr(self, f"step_{name}")(self.fill_in(argument, index), index is None)

    def repeat(self, argument):
        for index in range(argument["times"]):
            self.steps(argument["steps"], index)
        self.wire.output.flush()

    def fill_in(self, value, index):
        if isinstance(value, str):
            if value == "$id":
                return self.identifier
            if "$" not in value:
                return value
            value = value.replace("$session", self.session).replace("$cwd", self.agent.sessions.get(self.session, ""))
            return value if index is None else value.replace("$i", str(index))
        if isinstance(value, list):
            return [self.fill_in(item, index) for item in value]
        if isinstance(value, dict):
            return {key: self.fill_in(item, index) for key, item in value.items()}
        return value

    def step_send(self, message, flush):
        self.wire.send(message, flush)

    def step_reply(self, result, _flush):
        self.wire.reply(self.identifier, {"result": result})

    def step_reply_error(self, error, _flush):
        self.wire.reply(self.identifier, {"error": error})

    def step_update(self, update, flush):
        params = {"sessionId": self.session, "update": update}
        self.wire.send({"jsonrpc": "2.0", "method": "session/update", "params": params}, flush)

    def step_request(self, request, _flush):
        identifier = request["id"] if "id" in request else self.agent.new_request_id()
        message = {"jsonrpc": "2.0", "id": identifier, "method": request["method"], "params": request["params"]}
        key = id_key(identifier)
        with self.wire.changed:
            self.wire.answers.pop(key, None)
        self.wire.send(message)
        if request.get("wait", True):
            self.wire.wait(lambda: key in self.wire.answers, lambda: self.stopped)

    def step_raw(self, text, flush):
        self.wire.send_bytes(text.encode("utf-8", "surrogateescape"), flush)

    def step_bytes(self, numbers, flush):
        self.wire.send_bytes(bytes(numbers), flush)

    def step_fill(self, fill, _flush):
        text = fill["text"].encode()
        batch = max(1, (1 << 20) // len(text))
        left = fill["times"]
        while left > 0:
            self.wire.send_bytes(text * min(batch, left))
            left -= batch

    def step_stderr(self, text, _flush):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def step_delay(self, seconds, _flush):
        # What was said before is said now, also in `repeat`, which collects otherwise.
        self.wire.output.flush()
        end = time.monotonic() + seconds
        while not self.stopped and time.monotonic() < end:
            time.sleep(min(0.01, max(0, end - time.monotonic())))

    def step_wait(self, wanted, _flush):
        self.wire.output.flush()
        self.wire.wait(
            lambda: self.wire.seen.get(wanted["method"], 0) >= wanted.get("count", 1), lambda: self.stopped
        )

    def step_gate(self, name, _flush):
        self.wire.output.flush()
        self.agent.log.write("at_gate", name=name)
        while not self.stopped and not (self.agent.folder / f"gate-{name}").exists():
            time.sleep(GATE_POLL_SECONDS)

    def step_spawn(self, child, _flush):
        def ignore_signals():
            # An ignored signal stays ignored across exec.
            for number in child.get("ignore", []):
                signal.signal(number, signal.SIG_IGN)

        pipes = None if child.get("keep_pipes") else subprocess.DEVNULL
        process = subprocess.Popen(
            child.get("argv") or ["sleep", CHILD_LIFE_SECONDS], preexec_fn=ignore_signals,
            start_new_session=child.get("session", False), stdin=pipes, stdout=pipes, stderr=pipes,
        )  # fmt: skip
        self.agent.log.write("spawned", pid=process.pid)

    def step_disk(self, file, _flush):
        path = Path(file["path"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file["text"].encode("utf-8", "surrogateescape"))

    def step_run(self, command, _flush):
        self.wire.output.flush()
        folder = self.agent.sessions.get(self.session)
        done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
        self.agent.log.write("ran", command=command, code=done.returncode, output=done.stdout + done.stderr)

    def step_cancel_prompts(self, _argument, _flush):
        self.agent.cancel_prompts(self.session)

    def step_close_stdout(self, _argument, _flush):
        self.wire.close_output()

    def step_exit(self, code, _flush):
        self.wire.output.flush()
        os._exit(code)

    def step_die(self, number, _flush):
        self.wire.output.flush()
        os.kill(os.getpid(), number)


def main():
    log = Log(sys.argv[2])
    Agent(sys.argv[1], log).run()


if __name__ == "__main__":
    main()
