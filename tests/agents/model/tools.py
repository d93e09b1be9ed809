"""Turns what a play wants done into a call of a tool that the agent really offers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .plays import Call, Create, Edit, Read, Shell


@dataclass(frozen=True)
class Tool:
    """A tool as the agent declared it in its request to the model."""

    name: str
    schema: dict[str, Any] = field(default_factory=dict)
    freeform: bool = False
    """Takes plain text instead of a JSON object (OpenAI's custom tools)."""
    namespace: str = ""


@dataclass(frozen=True)
class Invocation:
    """One call, ready to be worded in an API: a dict for function tools, a str for freeform ones."""

    tool: Tool
    arguments: dict[str, Any] | str


class NoSuchTool(Exception):
    """The agent offers no tool for what the play wants."""


def _patch(call: Edit | Create) -> str:
    """The change in the patch language of codex."""
    if isinstance(call, Create):
        body = "".join(f"+{line}\n" for line in call.text.splitlines())
        header = f"*** Add File: {call.path}\n"
    else:
        body = "".join(f"-{line}\n" for line in call.old.splitlines())
        body += "".join(f"+{line}\n" for line in call.new.splitlines())
        header = f"*** Update File: {call.path}\n@@\n"
    return f"*** Begin Patch\n{header}{body}*** End Patch\n"


Form = Callable[[Any], "dict[str, Any] | str"]

# Per kind of call: the tools that do it, best first, with their arguments.
# claude-agent-acp: Read Edit Write Bash; gemini-cli: read_file replace write_file run_shell_command;
# opencode: read edit write bash; codex-acp: exec_command apply_patch.
FORMS: dict[type, tuple[tuple[str, Form], ...]] = {
    Read: (
        ("Read", lambda c: {"file_path": c.path}),
        ("read_file", lambda c: {"file_path": c.path}),
        ("read", lambda c: {"filePath": c.path}),
        ("exec_command", lambda c: {"cmd": f"cat {c.path}"}),
    ),
    Edit: (
        ("Edit", lambda c: {"file_path": c.path, "old_string": c.old, "new_string": c.new}),
        ("replace", lambda c: {"file_path": c.path, "old_string": c.old, "new_string": c.new}),
        ("edit", lambda c: {"filePath": c.path, "oldString": c.old, "newString": c.new}),
        ("apply_patch", _patch),
    ),
    Create: (
        ("Write", lambda c: {"file_path": c.path, "content": c.text}),
        ("write_file", lambda c: {"file_path": c.path, "content": c.text}),
        ("write", lambda c: {"filePath": c.path, "content": c.text}),
        ("apply_patch", _patch),
    ),
    Shell: (
        ("Bash", lambda c: {"command": c.command, "description": c.purpose}),
        ("run_shell_command", lambda c: {"command": c.command, "description": c.purpose}),
        ("bash", lambda c: {"command": c.command, "description": c.purpose}),
        # Only a command that wants out of the sandbox makes codex ask.
        (
            "exec_command",
            lambda c: {"cmd": c.command, "sandbox_permissions": "require_escalated", "justification": c.purpose},
        ),
    ),
}


def _placeholder(schema: dict[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = (next(k for k in kind if k != "null") if isinstance(kind, list) else kind).lower()
    return {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}.get(kind, "as asked")


def conforming(schema: dict[str, Any]) -> Any:
    """The smallest value of `schema`: for an agent that wants JSON instead of words."""
    if schema.get("properties") is None:
        return _placeholder(schema)
    return {name: conforming(part) for name, part in schema["properties"].items()}


def invocation(call: Call, offered: Sequence[Tool]) -> Invocation:
    """The call worded for one of the tools on offer; raises `NoSuchTool`."""
    by_name = {tool.name: tool for tool in offered}
    for name, form in FORMS[type(call)]:
        tool = by_name.get(name)
        if tool is None:
            continue
        arguments = form(call)
        if isinstance(arguments, str):
            return Invocation(tool, arguments if tool.freeform else {_only_property(tool): arguments})
        properties = tool.schema.get("properties", {})
        for required in tool.schema.get("required", ()):
            arguments.setdefault(required, _placeholder(properties.get(required, {})))
        return Invocation(tool, arguments)
    raise NoSuchTool(f"no tool for {type(call).__name__} among {', '.join(sorted(by_name))}")


def _only_property(tool: Tool) -> str:
    return next(iter(tool.schema.get("properties", {})), "input")
