#!/usr/bin/env python3
"""Drives one agent through the scenarios in Neovim; one JSON object per scenario on stdout. `run` starts it.

The exit code is 0 when every scenario was reported, however it went.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import sandbox
from catalogue import AGENTS, Agent
from editor import Chat
from model_server import ModelServer
from nvim import NvimError, NvimGone, NvimTimeout
from scenarios import SCENARIOS, Failed, tidy

Expected = (Failed, AssertionError, NvimError, NvimGone, NvimTimeout, OSError)


class Drive:
    """Runs scenarios in one chat, and in a new one after each failure."""

    def __init__(self, agent: Agent, box: sandbox.Sandbox, binary: Path, logs: Path) -> None:
        self.agent, self.box, self.binary, self.logs = agent, box, binary, logs
        self.chat: Chat | None = None
        self.chats = 0

    def run(self, names: Sequence[str]) -> None:
        for name in names:
            if self.chat is None:
                self._report("startup", self._start)
            if name != "startup":
                self._report(name, lambda name=name: self._scenario(name))
        if self.chat:
            self._report("quit", self._quit)
            self._report("startup", self._start)
        if self.chat:
            self._report("kill", lambda: self._quit(killed=True))

    def _scenario(self, name: str) -> str:
        if self.chat is None:
            raise Failed("the agent did not start")
        return SCENARIOS[name](self.chat)

    def _start(self) -> str:
        self.chats += 1
        self.box.reset_project()
        self.chat = Chat(self.agent, self.box, self.binary, self.logs / f"traffic-{self.chats}.jsonl")
        return SCENARIOS["startup"](self.chat)

    def _quit(self, killed: bool = False) -> str:
        """Neovim ends, by itself or by SIGKILL, and nothing that it started outlives it."""
        chat, self.chat = self.chat, None
        self._keep_helper_log(chat)
        if left := chat.quit(killed):
            raise Failed(f"still there two seconds after Neovim: {left}")
        return ""

    def _report(self, name: str, scenario: Callable[[], str]) -> None:
        start = time.monotonic()
        try:
            detail, passed = scenario(), True
            if self.chat:
                tidy(self.chat)
        except Expected as problem:
            detail, passed = f"{type(problem).__name__}: {problem}".split("\n")[0], False
            self._keep_failure(name, traceback.format_exc())
        seconds = round(time.monotonic() - start, 1)
        print(json.dumps({"scenario": name, "passed": passed, "seconds": seconds, "detail": detail}), flush=True)

    def _keep_failure(self, name: str, trace: str) -> None:
        chat, self.chat = self.chat, None
        text = trace if chat is None else f"{trace}\n{chat.circumstances()}"
        (self.logs / f"failure-{name}.txt").write_text(text, encoding="utf-8")
        if chat:
            self._keep_helper_log(chat)
            chat.quit(killed=True)

    def _keep_helper_log(self, chat: Chat) -> None:
        with suppress(*Expected):
            source = Path(chat.nvim.call("nvim_call_function", "stdpath", ["log"]), "agentchat")
            if source.is_dir():
                shutil.copytree(source, self.logs / f"helper-{self.chats}", dirs_exist_ok=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("agent", choices=AGENTS)
    arguments.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    arguments.add_argument("--binary", type=Path, required=True)
    arguments.add_argument("--logs", type=Path, required=True)
    arguments.add_argument("--raise-loopback", action="store_true")
    options = arguments.parse_args()
    if options.raise_loopback:
        sandbox.raise_loopback()
    agent = AGENTS[options.agent]
    with open(options.logs / "model.jsonl", "w", encoding="utf-8") as log, ModelServer(log=log) as model:
        with sandbox.sandbox(agent, model.url) as box:
            Drive(agent, box, options.binary, options.logs).run(options.scenarios or list(SCENARIOS))


if __name__ == "__main__":
    main()
