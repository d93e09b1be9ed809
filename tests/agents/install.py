#!/usr/bin/env python3
"""Installs the real agents below .deps/agents, each in a folder of its own. What is there already is left alone.

    install.py [AGENT...]
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from catalogue import AGENTS, INSTALLS, NODE_PACKAGE, Agent


def install(agents: Iterable[Agent]) -> None:
    """Raises `subprocess.CalledProcessError` when npm fails."""
    _install(INSTALLS / "node", NODE_PACKAGE)
    for agent in agents:
        _install(agent.install, agent.package)


def _install(folder: Path, package: str) -> None:
    done = folder / ".installed"
    if done.is_file() and done.read_text() == package:
        return
    print(f"installing {package} …", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    # Without a package.json of its own npm would look for one in the folders above.
    (folder / "package.json").write_text(json.dumps({"private": True}))
    subprocess.run(
        [
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
            "--loglevel=error",
            "--save-exact",
            package,
        ],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    done.write_text(package)


if __name__ == "__main__":
    install(AGENTS[name] for name in sys.argv[1:] or AGENTS)
