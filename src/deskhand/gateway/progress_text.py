"""Describes what tools do in one line of plain words, for people who wait in a chat. Content of
files is never shown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import msgspec

from ..types.marked_texts import mark_text
from ..types.messages import ToolCall, clean_text
from ..types.programs import REHEARSE_PROGRAM, RUN_PROGRAM, SURVEY_FILES

NAME_CHARS = 40
TOOL_PHRASES = {
    "read_file": "Reading {path_code}",
    "write_file": "Writing {path_code}",
    "edit_file": "Changing {path_code}",
    "list_files": "Looking through files",
    "search_files": "Searching files",
    "list_symbols": "Looking through code",
    "find_references": "Looking through code",
    "extract": "Reading a document",
    "shell": "Running a command",
    "background_run": "Starting a command",
    "check_background": "Checking on a command",
    "process": "Working with a command",
    "think": "Thinking",
    "web_fetch": "Reading a page of {url_code}",
    "web_search": "Searching the web",
    "spawn_agent": "Working with a sub-agent",
    "subagents": "Working with a sub-agent",
    "run_script": "Running a script",
    "spawn_teammate": "Taking a teammate in",
    "message_teammate": "Writing to the team",
    "broadcast": "Writing to the team",
    "send_message": "Sending a message",
    "send_file": "Sending {path_code}",
    "save_memory": "Noting something",
    "search_memories": "Looking into memory",
    "list_memories": "Looking into memory",
    "search_past": "Looking into earlier conversations",
    "read_past": "Looking into earlier conversations",
    "read_skill": "Reading instructions",
    "list_skills": "Reading instructions",
    "cron": "Seeing to jobs",
    "manage_job": "Seeing to jobs",
    SURVEY_FILES: "Looking through files",
    REHEARSE_PROGRAM: "Trying it out on a copy",
    RUN_PROGRAM: "Working on files",
} | dict.fromkeys(
    (
        "manage_tasks",
        "task_create",
        "task_get",
        "task_update",
        "task_list",
        "todo_write",
        "todo_add",
        "todo_complete",
    ),
    "Keeping the list of tasks",
)
"""What a tool does, by its name. `{path_code}` is the name of a file, `{url_code}` a host; other
arguments are never shown."""


_USING = mark_text("Using {name_code}")
_UNNAMED = "`…`"
_AND_ONE = mark_text("{first_text} and 1 more thing")
_AND_MORE = mark_text("{first_text} and {count_number} more things")


def render_progress(calls: Sequence[ToolCall]) -> str:
    """What these calls do, in one line of Markdown: the first of them, and how many more there
    are."""
    first, *more = dict.fromkeys(map(_describe_call, calls))
    if not more:
        return first
    told = _AND_MORE if len(more) > 1 else _AND_ONE
    return told.format(first_text=first, count_number=len(more))


def _describe_call(call: ToolCall) -> str:
    words = TOOL_PHRASES.get(call.name)
    if words is None:
        return _USING.format(name_code=quote_name(call.name.replace("_", " ")))
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        arguments = {}
    path = str(arguments.get("path") or "")
    url = str(arguments.get("url") or "")
    return words.format(
        path_code=quote_name(PurePosixPath(path).name) or _UNNAMED,
        url_code=quote_name(_host(url)) or _UNNAMED,
    )


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def quote_name(name: str) -> str:
    """A name as code, so that no platform turns it into a link; '' for none."""
    shown = " ".join(clean_text(name).replace("`", "'").split())
    cut = shown if len(shown) <= NAME_CHARS else f"{shown[: NAME_CHARS - 1]}…"
    return f"`{cut}`" if cut else ""
