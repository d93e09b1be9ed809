#!/usr/bin/env python3
"""Drives real agents without Neovim, and records the traffic: shows what an agent does before the plugin comes into it.

    probe.py [--into FOLDER] [--play PLAY]... [AGENT...]

Recordings go to FOLDER (default: .deps/agents/recordings) as AGENT-VERSION-PLAY.jsonl.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import sandbox
from catalogue import AGENTS, INSTALLS, REPOSITORY, Agent
from install import install
from model import plays
from model_server import ModelServer
from recording import Recording

from acp import AgentError, Client, choose

TAP = Path(__file__).with_name("tap.py")


class Session:
    """One session of one agent."""

    def __init__(self, client: Client, project: Path) -> None:
        self.client, self.project = client, project
        capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": False}
        info = {"name": "agentchat-probe", "version": "0.1.0"}
        client.call("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info})
        self.id = client.call("session/new", {"cwd": str(project), "mcpServers": []})["sessionId"]

    def prompt(self, play: str, words: str) -> str:
        """Sends a prompt and returns its stop reason."""
        return self.wait(self.begin(play, words))

    def begin(self, play: str, words: str):
        text = f"{words} {plays.cue(play, str(self.project))}"
        return self.client.start("session/prompt", {"sessionId": self.id, "prompt": [{"type": "text", "text": text}]})

    def wait(self, answer) -> str:
        return self.client.result(answer, "session/prompt")["stopReason"]

    def cancel(self) -> None:
        self.client.notify("session/cancel", {"sessionId": self.id})


def play_text(session: Session) -> str:
    return session.prompt("text", "How are words counted?")


def play_edit(session: Session) -> str:
    stop = session.prompt("edit", "Count runs of blanks once.")
    changed = plays.NEW_LINE in (session.project / plays.SOURCE).read_text(encoding="utf-8")
    return f"{stop}, file {'changed' if changed else 'NOT CHANGED'}"


def play_create(session: Session) -> str:
    stop = session.prompt("create", "Write the notes.")
    return f"{stop}, file {'there' if (session.project / plays.NOTES).exists() else 'NOT THERE'}"


def play_reject(session: Session) -> str:
    session.client.on_permission = choose("reject_once", "reject_always")
    stop = session.prompt("edit", "Count runs of blanks once.")
    kept = plays.OLD_LINE in (session.project / plays.SOURCE).read_text(encoding="utf-8")
    return f"{stop}, file {'kept' if kept else 'CHANGED'}"


def play_shell(session: Session) -> str:
    stop = session.prompt("shell", "Run the command.")
    return f"{stop}, command {'ran' if (session.project / plays.SHELL_FILE).exists() else 'DID NOT RUN'}"


def play_cancel_stream(session: Session) -> str:
    answer = session.begin("count", "Count for a long time.")
    session.client.wait_update("agent_message_chunk")
    session.cancel()
    return f"{session.wait(answer)}, then {session.prompt('hello', 'Still there?')}"


def play_cancel_permission(session: Session) -> str:
    cancelled = threading.Event()

    def policy(params):
        session.cancel()
        cancelled.set()
        return {"outcome": {"outcome": "cancelled"}}

    session.client.on_permission = policy
    stop = session.prompt("edit", "Count runs of blanks once.")
    return f"{stop}{'' if cancelled.is_set() else ', NEVER ASKED'}, then {session.prompt('hello', 'Still there?')}"


PLAYS: dict[str, Callable[[Session], str]] = {
    "text": play_text,
    "edit": play_edit,
    "create": play_create,
    "reject": play_reject,
    "shell": play_shell,
    "cancel-stream": play_cancel_stream,
    "cancel-permission": play_cancel_permission,
}


def probe(agent: Agent, play: str, folder: Path) -> bool:
    """Runs one play in a session of its own and prints one line; false when the agent failed."""
    path = folder / f"{agent.name}-{agent.version}-{play}.jsonl"
    path.unlink(missing_ok=True)
    with ModelServer() as model:
        with sandbox.sandbox(agent, model.url) as box:
            command = [sys.executable, str(TAP), str(path), *agent.command]
            client = Client(command, {**os.environ, **box.agent_env}, box.project)
            start = time.monotonic()
            try:
                outcome, failed = PLAYS[play](Session(client, box.project)), False
            except AgentError as problem:
                outcome, failed = str(problem), True
            finally:
                client.close()
            seconds = time.monotonic() - start
    asked = ", ".join(dict.fromkeys(client.requests)) or "nothing"
    print(f"{agent.name:18} {play:18} {seconds:5.1f} s  {outcome}; asked the client for: {asked}", flush=True)
    for problem in Recording(path).wrongly_answered():
        print(f"    {problem}")
    return not failed


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("agents", nargs="*", metavar="AGENT", choices=[[], *AGENTS])
    arguments.add_argument("--into", type=Path, default=INSTALLS / "recordings")
    arguments.add_argument("--play", action="append", choices=list(PLAYS))
    arguments.add_argument("--raise-loopback", action="store_true", help=argparse.SUPPRESS)
    options = arguments.parse_args()
    agents = [AGENTS[name] for name in options.agents or AGENTS]
    if not options.raise_loopback:
        install(agents)
        if prefix := sandbox.seclusion():
            command = sandbox.enter(__file__, sys.argv[1:], prefix)
            return subprocess.run(command, env=sandbox.clean_environment(), cwd=REPOSITORY, check=False).returncode
        print("unshare does not work here: the agents can reach the network", file=sys.stderr)
    else:
        sandbox.raise_loopback()
    options.into.mkdir(parents=True, exist_ok=True)
    results = [probe(agent, play, options.into) for agent in agents for play in options.play or PLAYS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
