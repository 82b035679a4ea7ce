"""What an editor is told of a conversation: events and progress as updates of the Agent Client
Protocol (https://agentclientprotocol.com). Pure, but for what it remembers of one conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import acp
import msgspec
from acp.schema import (
    PermissionOption,
    PlanEntryStatus,
    ToolCallLocation,
    ToolKind,
)

from ..tools.aliases import TOOL_ALIASES
from ..types.diffs import CallDiff, FileDiff
from ..types.door import Progress
from ..types.events import (
    CallClosed,
    MessageReceived,
    ModelReplied,
    Recorded,
    ToolFinished,
    ToolStarted,
)
from ..types.messages import ToolCall
from ..types.tasks import Task, TaskStatus

MAX_RESULT_CHARS = 8_000
MAX_TITLE_CHARS = 80
KINDS: dict[str, ToolKind] = {
    "read_file": "read",
    "list_files": "read",
    "read_skill": "read",
    "list_symbols": "search",
    "find_references": "search",
    "search_files": "search",
    "write_file": "edit",
    "edit_file": "edit",
    "shell": "execute",
    "run_script": "execute",
    "run_skill": "execute",
    "process": "execute",
    "web_fetch": "fetch",
    "web_search": "fetch",
    "think": "think",
}
APPROVALS = (
    PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    PermissionOption(option_id="always", name="Always allow exactly this", kind="allow_always"),
    PermissionOption(option_id="no", name="Refuse", kind="reject_once"),
    PermissionOption(option_id="never", name="Never allow this", kind="reject_always"),
)
_STATUS: dict[TaskStatus, PlanEntryStatus] = {
    "in_progress": "in_progress",
    "completed": "completed",
}
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)


class Updates:
    """The updates of one conversation, in its order. `folder` is what paths are relative to."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._said = ""
        self._printed: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._paths: dict[str, str] = {}

    def id_of(self, call_id: str) -> str:
        """What the editor calls this call: no other of the conversation has its name."""
        return self._ids.get(call_id, call_id)

    def of(self, item: Recorded | Progress, diff: CallDiff | None = None) -> Iterator[Any]:
        """What an editor is told of this."""
        if isinstance(item, Progress):
            yield from self._of_progress(item)
            return
        match item.event:
            case ModelReplied(message=message):
                yield from self._say_rest(message.text)
                for call in message.calls:
                    self._ids[call.id] = f"{item.n}.{call.id}"
                    yield self._start_call(call)
            case ToolStarted(call_id=call_id):
                yield acp.update_tool_call(self.id_of(call_id), status="in_progress")
            case ToolFinished(result=result):
                text = result.text[:MAX_RESULT_CHARS]
                content: list[Any] = [acp.tool_content(acp.text_block(text))] if text else []
                if diff is not None and result.call_id in self._paths:
                    content += make_diffs(diff, self._paths[result.call_id])
                yield acp.update_tool_call(
                    self.id_of(result.call_id),
                    status="completed" if result.status == "ok" else "failed",
                    content=content,
                )
            case CallClosed(call_id=call_id, reason=reason):
                content = [acp.tool_content(acp.text_block(reason))]
                yield acp.update_tool_call(self.id_of(call_id), status="failed", content=content)
            case _:
                pass

    def of_earlier(self, recorded: Recorded) -> Iterator[Any]:
        """The same for what was said before, with the words of people."""
        match recorded.event:
            case MessageReceived(message=message) if message.text:
                yield acp.update_user_message_text(message.text)
            case _:
                yield from self.of(recorded)

    def _of_progress(self, item: Progress) -> Iterator[Any]:
        match item.kind:
            case "text" if item.offset == len(self._said):
                self._said += item.text
                yield acp.update_agent_message_text(item.text)
            case "snapshot":
                yield from self._say_rest(item.text, is_whole=False)
            case "reset":
                if self._said:
                    yield acp.update_agent_message_text("\n\n")
                self._said = ""
            case "thinking":
                yield acp.update_agent_thought_text(item.text)
            case "tool_output":
                printed = self._printed.get(item.call_id, "") + item.text
                self._printed[item.call_id] = printed[-MAX_RESULT_CHARS:]
                content = [acp.tool_content(acp.text_block(self._printed[item.call_id]))]
                yield acp.update_tool_call(self.id_of(item.call_id), content=content)
            case _:
                pass

    def _say_rest(self, text: str, *, is_whole: bool = True) -> Iterator[Any]:
        """What of a reply was not streamed yet."""
        if text.startswith(self._said) and len(text) > len(self._said):
            yield acp.update_agent_message_text(text[len(self._said) :])
            self._said = text
        if is_whole:
            self._said = ""
            self._printed.clear()

    def _start_call(self, call: ToolCall) -> Any:
        arguments = read_arguments(call)
        name = TOOL_ALIASES.get(call.name, call.name)
        path = arguments.get("path")
        locations = None
        if isinstance(path, str) and name.endswith("_file"):
            self._paths[call.id] = str(Path(self._folder) / path)
            locations = [ToolCallLocation(path=self._paths[call.id])]
        return acp.start_tool_call(
            self.id_of(call.id),
            make_title(call.name, arguments),
            kind=KINDS.get(name, "other"),
            status="pending",
            locations=locations,
            raw_input=arguments,
        )


def read_arguments(call: ToolCall) -> dict[str, Any]:
    """Those of a call, as far as they can be read."""
    try:
        found = msgspec.json.decode(call.arguments)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def make_title(name: str, arguments: dict[str, Any]) -> str:
    """A call in a few words: its tool, and the first thing that it was given."""
    first = next((value for value in arguments.values() if isinstance(value, str)), "")
    words = " ".join(first.split())
    shown = words if len(words) <= MAX_TITLE_CHARS else f"{words[:MAX_TITLE_CHARS]} …"
    return f"{name} {shown}".strip()


def make_diffs(diff: CallDiff, path: str) -> Iterator[Any]:
    """A difference for each piece of the file that was changed."""
    for file in diff.files:
        for old, new in iter_hunks(file):
            yield acp.tool_diff_content(path, new, old)


def iter_hunks(file: FileDiff) -> Iterator[tuple[str, str]]:
    """The lines of each hunk of a unified diff: before, and after."""
    for hunk in _HUNK.split(file.diff)[1:]:
        lines = hunk.split("\n")[1:]
        old = [line[1:] for line in lines if line[:1] in ("-", " ")]
        new = [line[1:] for line in lines if line[:1] in ("+", " ")]
        yield "\n".join(old), "\n".join(new)


def make_plan(tasks: dict[int, Task]) -> Any:
    """The task list of the conversation, as the plan that editors show."""
    entries = [
        acp.plan_entry(task.title, status=_STATUS.get(task.status, "pending"))
        for task in tasks.values()
        if task.status != "deleted"
    ]
    return acp.update_plan(entries)
