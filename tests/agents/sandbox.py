"""A clean environment for an agent: no network but loopback, a HOME and a project of its own, nothing of the user's."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from catalogue import NODE, Agent
from model import plays

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
README = "# words\n\nCounts the words of a text.\n"
SOURCE = f'''"""Counts words. Žluťoučký kůň 🐎."""


def count(text):
{plays.OLD_LINE}

if __name__ == "__main__":
    print(count("two  words"))
'''


def seclusion() -> list[str]:
    """The prefix of a command that gets a network and processes of its own; empty where the system does not allow it.

    With such a command ends all that it started, even what has left its process group.
    """
    if shutil.which("unshare"):
        for flags in ([], ["--map-root-user"]):
            command = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", *flags]
            if subprocess.run([*command, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
                return command
    return []


def raise_loopback() -> None:
    """In a network of one's own, loopback starts out down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", request)[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def clean_environment() -> dict[str, str]:
    """Enough to find programs; no keys, proxies or settings of the user."""
    kept = {
        name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ", "TMPDIR", "AGENTCHAT_NVIM") if name in os.environ
    }
    path = os.pathsep.join([str(NODE.parent), *os.get_exec_path()])
    return {"LANG": "C.UTF-8", **kept, "PATH": path, "SHELL": "/bin/sh", "TERM": "xterm-256color", "USER": "user"}


@dataclass(frozen=True)
class Sandbox:
    """The folders of one run, below a temporary one."""

    home: Path
    project: Path
    agent_env: dict[str, str]
    """What the agent needs beyond `clean_environment()`."""

    @property
    def source(self) -> Path:
        return self.project / plays.SOURCE

    def reset_project(self) -> None:
        """The project as it was in the beginning; a repository, so that no agent looks for one above it."""
        for child in self.project.iterdir():
            if child.name != ".git":
                shutil.rmtree(child) if child.is_dir() else child.unlink()
        self.source.write_text(SOURCE, encoding="utf-8")
        (self.project / "README.md").write_text(README, encoding="utf-8")


@contextmanager
def sandbox(agent: Agent, model_url: str) -> Iterator[Sandbox]:
    """Folders for one agent, removed in the end."""
    with tempfile.TemporaryDirectory(prefix="agentchat-", ignore_cleanup_errors=True) as root:
        home, project = Path(root, "home"), Path(root, "project")
        (home / "tmp").mkdir(parents=True)
        project.mkdir()
        for name, text in agent.home(model_url, str(project)).items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        env = {
            "HOME": str(home),
            "TMPDIR": str(home / "tmp"),
            # Neovim's own are in its environment, and would reach the agent.
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local/share"),
            "XDG_STATE_HOME": str(home / ".local/state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            **agent.env(model_url),
        }
        box = Sandbox(home, project, env)
        box.reset_project()
        identity = ["-c", "user.name=User", "-c", "user.email=user@example.org"]
        for step in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-q", "-m", "First"]):
            subprocess.run(["git", *step], cwd=project, check=True, env={**os.environ, "HOME": str(home)})
        yield box


def enter(script: str, arguments: list[str], prefix: list[str]) -> list[str]:
    """The command that runs one of these scripts behind the prefix from `seclusion()`."""
    return [*prefix, sys.executable, script, *(["--raise-loopback"] if prefix else []), *arguments]
