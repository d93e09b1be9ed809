"""What every agent has to do in Neovim. Each scenario is a function that raises when it does not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from editor import TURN, Chat, outliving
from model import plays

KILLED = re.compile(r"\b9\b|KILL", re.IGNORECASE)
STARTING = re.compile(r"start|initiali[sz]|session", re.IGNORECASE)


# What the user types themselves.
MINE = "# from the user"


class Failed(Exception):
    """What was expected, and what was there instead."""


def expect(condition: object, what: str, seen: object = "") -> None:
    if not condition:
        raise Failed(f"{what}{f'; instead: {seen}' if seen != '' else ''}")


def startup(chat: Chat) -> str:
    """The window is usable at once, the start is visible, and a prompt typed meanwhile is answered."""
    seconds = chat.open()
    chat.type_prompt("hello", "Are you there?")
    states, words = set(), set()

    def ready() -> bool:
        states.add(chat.status()["state"])
        words.update(match.group(0).lower() for row in chat.nvim.screen() for match in STARTING.finditer(row))
        return states & {"idle", "running", "failed"}

    chat.wait(ready, "the agent to be ready", TURN)
    expect("failed" not in states, "the agent starts", chat.status())
    expect("starting" in states, "the state `starting`", states)
    expect(words, "words on the screen about the start")
    stop = chat.turn_end()
    expect(stop == "end_turn", "the prompt that was typed meanwhile ends with end_turn", stop)
    _expect_transcript(chat, plays.HELLO)
    return f"window in {seconds * 1000:.0f} ms"


def text(chat: Chat) -> str:
    """The whole answer is in the transcript, line for line, and its end on the screen; so are thoughts."""
    chat.type_prompt("text", "How are words counted?")
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn", stop)
    _expect_transcript(chat, plays.ANSWER)
    last = plays.ANSWER.splitlines()[-1]
    chat.wait(lambda: any(last in row for row in chat.nvim.screen()), "the end of the answer on the screen", 5)
    if plays.THOUGHT not in chat.recording.thoughts():
        return "no thought"
    _expect_transcript(chat, plays.THOUGHT, inside_lines=True)
    return ""


def edit(chat: Chat) -> str:
    """An edit is asked for, shown, allowed, and then in the file, and in its buffer when the client wrote it."""
    source = chat.box.source
    chat.edit(source)
    window = chat.nvim.call("nvim_get_current_win")
    chat.prompt("edit", "Count runs of blanks once.")
    shown = chat.permission()
    expect(plays.SOURCE in shown, f"a request that names {plays.SOURCE}", shown)
    expect(chat.nvim.call("nvim_get_current_win") == window, "the focus to stay where it was")
    expect(plays.OLD_LINE in source.read_text(encoding="utf-8"), "the file to be unchanged while the agent asks")
    expect(chat.status()["permissions"] == 1, "one open request in the status", chat.status())
    chat.answer("allow")
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn", stop)
    changed = source.read_text(encoding="utf-8")
    expect(plays.NEW_LINE in changed, "the change in the file", changed)
    _expect_transcript(chat, "The line is changed.")
    if chat.agent.writes_through_client:
        expect(chat.file(source) == {"text": changed, "modified": False}, "the change in the buffer", chat.file(source))
        chat.nvim.command("undo")
        undone = chat.file(source)["text"]
        expect(plays.OLD_LINE in undone, "one undo to take the whole change back", undone)
        return "through the buffer"
    return "on disk"


def create(chat: Chat) -> str:
    """A new file is asked for, allowed, and then there."""
    notes = chat.box.project / plays.NOTES
    chat.prompt("create", "Write the notes.")
    chat.permission()
    expect(not notes.exists(), "no file while the agent asks")
    chat.answer("allow")
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn", stop)
    expect(notes.exists() and notes.read_text(encoding="utf-8") == plays.NOTES_TEXT, "the notes on disk")
    chat.wait(lambda: str(notes) in chat.pending(), "the new file to be pending", 10)
    return ""


def reject(chat: Chat) -> str:
    """A denied edit changes nothing, and the turn ends."""
    source = chat.box.source
    before = source.read_bytes()
    chat.prompt("edit", "Count runs of blanks once.")
    chat.permission()
    chat.answer("deny")
    stop = chat.turn_end()
    expect(stop == chat.agent.stop_after_reject, chat.agent.stop_after_reject, stop)
    expect(source.read_bytes() == before, "the file to be unchanged")
    if stop != "end_turn":
        _expect_transcript(chat, stop, inside_lines=True)
    return stop


def edit_dirty(chat: Chat) -> str:
    """What the user types into the file, and does not save, while the agent asks: it and the edit are both in the buffer."""
    source = chat.box.source
    chat.edit(source)
    chat.prompt("edit", "Count runs of blanks once.")
    chat.permission()
    _type_line(chat)
    chat.answer("allow")
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn", stop)
    chat.wait(lambda: plays.NEW_LINE in chat.file(source)["text"], "the change in the buffer", 10)
    state, on_disk = chat.file(source), source.read_text(encoding="utf-8")
    expect(MINE in state["text"], "the typed line beside the change", state)
    expect(plays.NEW_LINE in on_disk, "the change on disk", on_disk)
    # An agent that read the buffer again, once it was allowed to edit, has written what the user typed.
    seen = chat.agent.writes_through_client and MINE in on_disk
    expect(seen or (state["modified"] and MINE not in on_disk), "the typed line still unsaved", (state, on_disk))
    chat.nvim.command("silent write")
    saved = source.read_text(encoding="utf-8")
    expect(plays.NEW_LINE in saved and MINE in saved, "both on disk once the user saves, without a question", saved)
    expect(len(chat.pending()) == 1, "one pending change", chat.pending())
    return "typed text read and written by the agent" if seen else ""


def edit_closed(chat: Chat) -> str:
    """A file that is not open is changed without being loaded, and the change is pending."""
    source = chat.box.source
    expect(chat.file(source) is None, "no buffer of the file")
    _edit(chat)
    expect(chat.file(source) is None, "no buffer of the file afterwards")
    pending = chat.pending()
    expect(pending == [str(source)], "one pending change, in the file", pending)
    return ""


def reject_hunk(chat: Chat) -> str:
    """The change is found by `next`, and `reject` brings the old bytes back; one undo makes it pending again."""
    source = chat.box.source
    before = source.read_bytes()
    chat.edit(source)
    _edit(chat)
    chat.wait(lambda: plays.NEW_LINE in chat.file(source)["text"], "the change in the buffer", 10)
    chat.nvim.command("AgentChat next")
    line = chat.nvim.call("nvim_get_current_line")
    expect(line == plays.NEW_LINE.rstrip("\n"), "the cursor at the change", line)
    chat.nvim.command("AgentChat reject")
    chat.wait(lambda: source.read_bytes() == before, "the old bytes on disk", 10)
    expect(not chat.pending(), "nothing pending", chat.pending())
    chat.nvim.command("undo")
    expect(len(chat.pending()) == 1, "the change pending again", chat.pending())
    return ""


def undo_turn(chat: Chat) -> str:
    """`:AgentChat undo` puts a changed file back and takes a new one away; what the user typed since stays."""
    source, notes = chat.box.source, chat.box.project / plays.NOTES
    before = source.read_text(encoding="utf-8")
    chat.edit(source)
    _edit(chat)
    chat.wait(lambda: plays.NEW_LINE in chat.file(source)["text"], "the change in the buffer", 10)
    _type_line(chat)
    chat.nvim.command("AgentChat undo")
    chat.wait(lambda: plays.OLD_LINE in chat.file(source)["text"], "the old line in the buffer", 10)
    text = chat.file(source)["text"]
    expect(text.rstrip("\n") == f"{before.rstrip(chr(10))}\n{MINE}", "the old text and the typed line", text)
    chat.forget(source)
    chat.prompt("create", "Write the notes.")
    chat.permission()
    chat.answer("allow")
    chat.turn_end()
    expect(notes.exists(), "the notes")
    chat.nvim.command("AgentChat undo")
    chat.wait(lambda: not notes.exists(), "the notes to be gone", 10)
    return ""


def shell(chat: Chat) -> str:
    """A command is asked for with its whole text, allowed, and runs."""
    mark = chat.box.project / plays.SHELL_FILE
    chat.prompt("shell", "Run the command.")
    shown = re.sub(r"\s+", "", chat.permission())
    expect(re.sub(r"\s+", "", plays.SHELL_COMMAND) in shown, "the whole command in the request", shown)
    expect(not mark.exists(), "nothing to run while the agent asks")
    chat.answer("allow")
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn", stop)
    expect(mark.exists(), "the command to have run")
    _expect_transcript(chat, plays.SHELL_COMMAND, inside_lines=True)
    return ""


def cancel_stream(chat: Chat) -> str:
    """Cancel ends a turn that streams, says so, and the next prompt is answered."""
    chat.prompt("count", "Count for a long time.")
    chat.wait(lambda: "number 3" in chat.since_prompt(), "numbers in the transcript", TURN)
    start = time.monotonic()
    chat.cancel()
    stop = chat.turn_end()
    seconds = time.monotonic() - start
    expect(stop == "cancelled", "cancelled", stop)
    _expect_transcript(chat, "cancelled", inside_lines=True)
    _still_there(chat)
    return f"after {seconds:.1f} s"


def cancel_permission(chat: Chat) -> str:
    """Cancel answers an open permission request, takes it away, and ends the turn."""
    source = chat.box.source
    before = source.read_bytes()
    chat.prompt("edit", "Count runs of blanks once.")
    chat.permission()
    request = chat.recording.requests("a2c", "session/request_permission")[-1]
    start = time.monotonic()
    chat.cancel()
    chat.wait(lambda: not chat.permission_shown(), "the request to go", 10)
    stop = chat.turn_end()
    seconds = time.monotonic() - start
    expect(stop == "cancelled", "cancelled", stop)
    expect(chat.status()["permissions"] == 0, "no open request in the status", chat.status())
    # The agent may end the turn before it has read the answer.
    answer = chat.wait(lambda: chat.recording.answer(request), "an answer to the request", 10)
    expect(answer.get("result") == {"outcome": {"outcome": "cancelled"}}, "the answer `cancelled`", answer)
    expect(source.read_bytes() == before, "the file to be unchanged")
    _still_there(chat)
    return f"after {seconds:.1f} s"


def shell_colours(chat: Chat) -> str:
    """A command that prints in colour for three seconds: its last line is in the transcript, without escapes, if the agent
    tells what was printed."""
    chat.prompt("colours", "Run the colourful command.")
    chat.permission()
    chat.answer("allow")
    number = re.compile(r"colour (\d)\b")

    def printed() -> set[str]:
        lines = [line for line in chat.since_prompt() if "printf" not in line]
        return set(number.findall("\n".join(lines)))

    ended = chat.turns_ended()
    chat.wait(lambda: printed() or chat.turns_ended() > ended, "output in the transcript, or the turn's end", TURN)
    live = str(plays.COLOURS) not in printed()
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn", stop)
    if not chat.agent.tells_output:
        return "the agent tells no output"
    _expect_transcript(chat, f"colour {plays.COLOURS}", inside_lines=True)
    odd = [line for line in chat.since_prompt() if "\x1b" in line]
    expect(not odd, "no escape sequence in the transcript", odd)
    expect(chat.status()["terminals"] == 0, "no terminal that runs", chat.status())
    return "live" if live else "at the end"


def cancel_shell(chat: Chat) -> str:
    """Cancel ends a command that runs: the turn ends as cancelled, and nothing of the command is left."""
    chat.prompt("sleep", "Run the slow command.")
    chat.permission()
    chat.answer("allow")

    def sleeping() -> list[str]:
        return [line for line in chat.agent_processes().values() if plays.SLEEPER in line]

    chat.wait(sleeping, "the command to run", TURN)
    start = time.monotonic()
    chat.cancel()
    stop = chat.turn_end()
    seconds = time.monotonic() - start
    expect(stop == "cancelled", "cancelled", stop)
    chat.wait(lambda: not sleeping(), "the command to be gone", 10)
    chat.wait(lambda: chat.status()["terminals"] == 0, "no terminal that runs", 10)
    _still_there(chat)
    return f"after {seconds:.1f} s"


def queue(chat: Chat) -> str:
    """A prompt that is sent while a turn runs waits for the end of the turn, and is answered then."""
    turns, prompts = chat.turns_ended(), len(chat.recording.requests("c2a", "session/prompt"))
    chat.prompt("shell", "Run the command.")
    chat.permission()
    chat.type_prompt("hello", "And after that, are you still there?")
    sent = len(chat.recording.requests("c2a", "session/prompt")) - prompts
    expect(sent == 1, "the second prompt to wait", f"{sent} prompts sent")
    chat.answer("allow")
    chat.wait(lambda: chat.turns_ended() == turns + 2, "the end of both turns", TURN)
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn", stop)
    _expect_transcript(chat, plays.HELLO)
    return ""


def restart(chat: Chat) -> str:
    """Restart ends the agent with all that it started, and the new one answers."""
    before = chat.agent_processes()
    expect(before, "an agent that runs")
    chat.restart()
    left = outliving(before)
    expect(not left, "nothing left of the old agent after two seconds", left)
    _answers_after_restart(chat)
    return f"{len(before)} processes ended"


def crash(chat: Chat) -> str:
    """When the agent dies, the chat says how, and restart brings it back."""
    before = chat.agent_processes()
    chat.kill_agent()
    chat.wait(lambda: chat.status()["state"] == "failed", "the state `failed`", 10)
    told = "\n".join([str(chat.status().get("error")), *chat.transcript()])
    expect(KILLED.search(told), "the signal that ended the agent in the status or the transcript", told[-500:])
    left = outliving(before)
    expect(not left, "nothing left of the dead agent after two seconds", left)
    # The death may be reported there.
    chat.nvim.command("messages clear")
    chat.restart()
    _answers_after_restart(chat)
    return ""


def remembered(chat: Chat) -> str:
    """An edit is allowed for always; after a restart the same is not asked again, until that is revoked."""
    source = chat.box.source
    chat.prompt("edit", "Count runs of blanks once.")
    chat.permission()
    chat.answer("allow allow_always")
    expect(chat.turn_end() == "end_turn", "end_turn")
    _expect_transcript(chat, "remembered for this project: allow changing files of this project", inside_lines=True)
    chat.box.reset_project()
    # What the agent itself remembers for its session ends with it.
    chat.restart()
    chat.wait(lambda: chat.status()["state"] == "idle", "the agent to start again", TURN)
    shown = len(chat.events("AgentChatPermission"))
    chat.prompt("edit", "Count runs of blanks once.")
    expect(chat.turn_end() == "end_turn", "end_turn")
    expect(len(chat.events("AgentChatPermission")) == shown, "no request to be shown")
    changed = source.read_text(encoding="utf-8")
    expect(plays.NEW_LINE in changed, "the change in the file", changed)
    decided = [event for event in chat.events("AgentChatPermissionResolved") if event.get("automatic")]
    if decided:
        _expect_transcript(chat, "allowed by your earlier answer", inside_lines=True)
        answer = chat.recording.answer(chat.recording.requests("a2c", "session/request_permission")[-1])
        expect(answer and answer["result"]["outcome"]["outcome"] == "selected", "an option to be selected", answer)
    chat.revoke_answers()
    return f"answered {len(decided)}x by itself" if decided else "the agent remembered it, too"


SCENARIOS: dict[str, Callable[[Chat], str]] = {
    "startup": startup,
    "text": text,
    "edit": edit,
    "create": create,
    "edit-dirty": edit_dirty,
    "edit-closed": edit_closed,
    "reject": reject,
    "reject-hunk": reject_hunk,
    "undo-turn": undo_turn,
    "shell": shell,
    "shell-colours": shell_colours,
    "cancel-shell": cancel_shell,
    "cancel-stream": cancel_stream,
    "cancel-permission": cancel_permission,
    "queue": queue,
    "restart": restart,
    "crash": crash,
    # The last one: an agent may remember for longer than its session.
    "remembered": remembered,
}


def tidy(chat: Chat) -> None:
    """After each scenario: every request answered once, nothing running, no error message; then a fresh project."""
    chat.wait(lambda: not chat.recording.wrongly_answered(), "every request of the agent to have one answer", 10)
    complaints = chat.complaints()
    expect(not complaints, "no error in `:messages`", complaints)
    chat.nvim.command("messages clear")
    chat.nvim.command("silent AgentChat accept all")
    # What changes in the moment after a turn ends, or before one begins, may be the agent's doing as well.
    over = time.monotonic()
    chat.wait(lambda: time.monotonic() - over > 0.2, "the turn to be over for a while", 5)
    chat.box.reset_project()
    chat.forget(chat.box.source)
    chat.wait(lambda: time.time() - chat.box.source.stat().st_ctime > 0.1, "the project to be older than a turn", 5)
    chat.nvim.command("messages clear")


def _type_line(chat: Chat) -> None:
    """A new last line, without the indent that a new line would get."""
    chat.nvim.input(f":call append('$', '{MINE}')<CR>")
    chat.wait(lambda: MINE in chat.file(chat.box.source)["text"], "the typed line", 5)


def _edit(chat: Chat) -> None:
    chat.prompt("edit", "Count runs of blanks once.")
    chat.permission()
    chat.answer("allow")
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn", stop)
    expect(plays.NEW_LINE in chat.box.source.read_text(encoding="utf-8"), "the change in the file")
    chat.wait(lambda: str(chat.box.source) in chat.pending(), "the change to be pending", 10)


def _answers_after_restart(chat: Chat) -> None:
    chat.wait(lambda: chat.status()["state"] in ("starting", "idle"), "the agent to start again", 10)
    _still_there(chat)


def _still_there(chat: Chat) -> None:
    chat.prompt("hello", "Still there?")
    stop = chat.turn_end()
    expect(stop == "end_turn", "end_turn for the prompt that follows", stop)
    _expect_transcript(chat, plays.HELLO)


def _expect_transcript(chat: Chat, wanted: str, inside_lines: bool = False) -> None:
    """`wanted` as whole lines of the transcript since the last prompt, or anywhere inside them, case ignored."""

    def there() -> bool:
        lines = chat.since_prompt()
        if inside_lines:
            return wanted.lower() in "\n".join(lines).lower()
        parts = wanted.split("\n")
        return any(lines[start : start + len(parts)] == parts for start in range(len(lines)))

    chat.wait(there, f"in the transcript: {wanted!r}", 10)
