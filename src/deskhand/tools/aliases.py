"""What tools and their parameters are called elsewhere, so that a model trained on other names is
served.

A prompt never shows these names: they are taken where a call arrives, and in lists of tools that
people write.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from .base import Context, Outcome, Spec, Tool, Tools

TOOL_ALIASES = {
    "bash": "shell",
    "run_shell": "shell",
    "terminal": "shell",
    "execute_command": "shell",
    "read_file_range": "read_file",
    "view_file": "read_file",
    "create_file": "write_file",
    "patch_file": "edit_file",
    "str_replace": "edit_file",
    "apply_patch": "edit_file",
    "list_directory": "list_files",
    "list_dir": "list_files",
    "search_code": "search_files",
    "grep": "search_files",
    "intermediate_message": "send_message",
    "react_message": "react",
    "skill": "read_skill",
    "run_in_background": "background_run",
    "fetch": "web_fetch",
    "fetch_url": "web_fetch",
    "web_fetch_js": "web_fetch",
    "web_fetch_stealth": "web_fetch",
    "search_web": "web_search",
    "memory_search": "search_memories",
    "search_memory": "search_memories",
    "memory_save": "save_memory",
    "add_memory": "save_memory",
    "remember": "save_memory",
    "memory_delete": "forget_memory",
    "delete_memory": "forget_memory",
    "memory_list": "list_memories",
    "task": "spawn_agent",
    "delegate": "spawn_agent",
    "localagents": "subagents",
    "acpagents": "remote_agent",
    "run_program": "run_script",
    "execute_code": "run_script",
}
"""Names of tools elsewhere -> ours."""

_FILE_ALIASES = dict.fromkeys(("file_path", "filepath", "filename", "file"), "path")
_FOLDER_ALIASES = dict.fromkeys(("directory", "dir", "folder", "dir_path"), "path")
_OLD_ALIASES = dict.fromkeys(("old_text", "old_content", "old_string", "old_str", "search"), "old")
_NEW_ALIASES = dict.fromkeys(("new_text", "new_content", "new_string", "new_str", "replace"), "new")

_TASK_ALIASES = {
    "taskId": "task_id",
    "id": "task_id",
    "title": "subject",
    "activeForm": "active_form",
}

PARAMETER_ALIASES: dict[str, dict[str, str]] = {
    "shell": {
        "cmd": "command",
        "script": "command",
        "timeout": "timeout_s",
        "workdir": "cwd",
        "working_directory": "cwd",
    },
    "background_run": {"cmd": "command", "timeout": "timeout_s", "workdir": "cwd"},
    "check_background": {"task_id": "id"},
    "process": {
        "cmd": "command",
        "session_id": "id",
        "pid": "id",
        "text": "input",
        "timeout": "wait_s",
    },
    "read_file": {
        **_FILE_ALIASES,
        "start": "start_line",
        "end": "end_line",
        "line_start": "start_line",
        "line_end": "end_line",
    },
    "write_file": {**_FILE_ALIASES, "text": "content", "contents": "content"},
    "edit_file": {
        **_FILE_ALIASES,
        "diff": "patch",
        "unified_diff": "patch",
        "replacements": "edits",
        **_OLD_ALIASES,
        **_NEW_ALIASES,
    },
    "list_files": {**_FOLDER_ALIASES, "max_depth": "depth"},
    "search_files": {**_FOLDER_ALIASES, **dict.fromkeys(("query", "pattern", "q"), "text")},
    "send_message": {
        **dict.fromkeys(("content", "message"), "text"),
        "thread": "thread_id",
        "chat_id": "chat",
    },
    "send_file": {
        **_FILE_ALIASES,
        **dict.fromkeys(("caption", "message"), "text"),
        "thread": "thread_id",
        "chat_id": "chat",
    },
    "ask_user": {"options": "choices"},
    "browser": {
        "key": "keys",
        "file": "path",
        "expression": "text",
        "script": "text",
        "value": "text",
        "press_enter": "submit",
        "element": "ref",
    },
    "web_fetch": {
        **dict.fromkeys(("prompt", "query"), "question"),
        "css_selector": "selector",
        "max_chars": "limit",
        "wait_seconds": "wait_s",
        "timeout": "timeout_s",
    },
    "web_search": {
        **dict.fromkeys(("q", "text"), "query"),
        **dict.fromkeys(("count", "num_results"), "max_results"),
    },
    "save_memory": dict.fromkeys(("text", "memory", "fact"), "content"),
    "search_memories": {
        **dict.fromkeys(("q", "text"), "query"),
        **dict.fromkeys(("limit", "max_results"), "top_k"),
    },
    "forget_memory": {"id": "memory_id"},
    "read_skill": {
        **dict.fromkeys(("name", "skill_name"), "skill"),
        "file": "path",
        "file_path": "path",
    },
    "run_skill": {**dict.fromkeys(("name", "skill_name"), "skill"), "timeout": "timeout_s"},
    "manage_tasks": {
        "id": "task_id",
        "parent": "parent_id",
        "dependencies": "depends_on",
        "type": "node_type",
    },
    "spawn_agent": {
        "prompt": "task",
        "description": "label",
        **dict.fromkeys(("agent_type", "subagent_type", "name"), "agent"),
    },
    "message_teammate": {
        **dict.fromkeys(("text", "message"), "content"),
        **dict.fromkeys(("recipient", "teammate"), "to"),
        "type": "msg_type",
    },
    "run_script": dict.fromkeys(("program", "code", "python"), "script"),
    "shutdown_request": dict.fromkeys(("name", "to"), "teammate"),
    "subagents": {
        **dict.fromkeys(("task_id", "session_id"), "id"),
        **dict.fromkeys(("prompt", "message"), "task"),
        "description": "label",
        "name": "agent",
    },
    "task_create": _TASK_ALIASES,
    "task_get": _TASK_ALIASES,
    "task_update": {**_TASK_ALIASES, "addBlockedBy": "add_blocked_by", "addBlocks": "add_blocks"},
    "todo_write": {"todos": "items"},
    "todo_add": {"activeForm": "active_form"},
}
"""tool -> names of its parameters elsewhere -> ours."""
_ACTION_ALIASES = {
    "spawn": "start",
    "input": "write",
    "send": "write",
    "stop": "kill",
    "read": "poll",
}
_BROWSER_ACTIONS = {
    "goto": "open",
    "navigate": "open",
    "snapshot": "look",
    "key": "press",
    "fill": "type",
    "menu": "select",
    "scrape": "text",
    "download": "open",
    "tabs": "tab",
}
_SUBAGENT_ACTIONS = {"spawn": "create", "sessions": "list"}


IMPLIED_ARGUMENTS: dict[str, dict[str, Any]] = {
    "web_fetch_js": {"tier": "rendered"},
    "web_fetch_stealth": {"tier": "rendered"},
}
"""Names that say more than which tool: the arguments that they stand for."""


NO_ARGUMENTS = msgspec.Raw(b"{}")
_BY_ARGUMENT = {"send_message": (re.compile(rb'"to"\s*:'), "message_teammate")}
"""Tools that are another one where they are given an argument that they do not have."""


def find_tool(name: str, tools: Tools, arguments: msgspec.Raw = NO_ARGUMENTS) -> Tool | None:
    """The tool that a model calls by this name, ours or one from elsewhere; None where there is
    none."""
    if name in _BY_ARGUMENT:
        argument, other = _BY_ARGUMENT[name]
        if other in tools and (name not in tools or argument.search(bytes(arguments))):
            return tools[other]
    tool = tools.get(name) or tools.get(TOOL_ALIASES.get(name, "")) or _find_mcp(name, tools)
    if tool is None or name in tools or name not in IMPLIED_ARGUMENTS:
        return tool
    return _Meaning(tool, IMPLIED_ARGUMENTS[name])


def _find_mcp(name: str, tools: Tools) -> Tool | None:
    """The tool of an MCP server that operator-use calls `mcp_server_tool`; None where several could
    be meant."""
    if not name.startswith("mcp_") or name.startswith("mcp__"):
        return None
    meant = [
        tool
        for each, tool in tools.items()
        if each.startswith("mcp__") and each.replace("__", "_") == name.replace("__", "_")
    ]
    return meant[0] if len(meant) == 1 else None


class _Meaning:
    """A tool with arguments that its other name stands for. What the model wrote itself counts
    more."""

    def __init__(self, tool: Tool, meant: Mapping[str, Any]) -> None:
        self._tool = tool
        self._implied = meant

    @property
    def spec(self) -> Spec:
        return self._tool.spec

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        try:
            given = msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            given = None  # the tool says what is wrong with it
        if isinstance(given, dict) and self._implied.keys().isdisjoint(given):
            meant = msgspec.json.encode(self._implied)[1:-1]
            comma = b"," if given else b""
            written = bytes(arguments).lstrip()[1:]  # what is wrong in it stays wrong
            arguments = msgspec.Raw(b"{" + meant + comma + written)
        return await self._tool.run(arguments, context)


def normalize_arguments(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under our names. A name that stands beside its alias is left, and then refused
    as unknown."""
    names = PARAMETER_ALIASES.get(tool, {})
    ours: dict[str, Any] = {}
    for name, value in arguments.items():
        known = names.get(name, name)
        ours[name if known in arguments or known in ours else known] = value
    match tool:
        case "read_skill":
            ours.pop("args", None)  # what it is wanted for stands in the conversation
        case "read_file":
            _limit_to_end_line(ours)
        case "write_file" if isinstance(ours.get("overwrite"), bool) and "mode" not in ours:
            ours["mode"] = "overwrite" if ours.pop("overwrite") else "create"
        case "edit_file":
            _normalize_edits(ours)
        case "manage_tasks" | "task_get" | "task_update":
            _strip_id_prefixes(ours)
        case "subagents":
            _choose_subagent_action(ours)
        case "browser" if isinstance(action := ours.get("action"), str):
            ours["action"] = _BROWSER_ACTIONS.get(action, action)
        case "process" if isinstance(action := ours.get("action"), str):
            ours["action"] = _ACTION_ALIASES.get(action, action)
    return ours


def _choose_subagent_action(arguments: dict[str, Any]) -> None:
    """Another name of an action; one that begins a task waits for it where that is not detached."""
    action = arguments.get("action")
    if isinstance(action, str):
        arguments["action"] = _SUBAGENT_ACTIONS.get(action, action)
    if isinstance(arguments.get("detached"), bool):
        is_detached = arguments.pop("detached")
        if not is_detached and arguments.get("action") == "create":
            arguments["action"] = "run"


def _strip_id_prefixes(arguments: dict[str, Any]) -> None:
    """`#3` and `task_3` as 3."""
    for name, value in arguments.items():
        if name in ("task_id", "parent_id") and isinstance(value, str):
            arguments[name] = _strip_id_prefix(value)
        elif name in ("depends_on", "add_blocks", "add_blocked_by"):
            listed = decode_if_json(value) if isinstance(value, str) else value
            if isinstance(listed, list):
                arguments[name] = [
                    _strip_id_prefix(each) if isinstance(each, str) else each for each in listed
                ]


def _strip_id_prefix(id_: str) -> str:
    return id_.strip().removeprefix("#").removeprefix("task_")


def _limit_to_end_line(arguments: dict[str, Any]) -> None:
    """A number of lines as the last line."""
    name = next((name for name in ("limit", "max_lines") if name in arguments), "")
    try:
        if name and "end_line" not in arguments:
            first = max(int(arguments.get("start_line") or 1), 1)
            arguments["end_line"] = first + max(int(arguments[name]), 1) - 1
            del arguments[name]
    except (TypeError, ValueError):
        pass  # what is no number is refused by its name


def _normalize_edits(arguments: dict[str, Any]) -> None:
    """A single replacement beside the path, or a list written as text, as a list under our
    names."""
    if "old" in arguments and "edits" not in arguments:
        arguments["edits"] = [{"old": arguments.pop("old"), "new": arguments.pop("new", "")}]
    edits = arguments.get("edits")
    if isinstance(edits, str):
        edits = decode_if_json(edits)
    if isinstance(edits, dict):
        edits = [edits]
    if isinstance(edits, list):
        arguments["edits"] = [_rename_edit_fields(edit) for edit in edits]


def _rename_edit_fields(edit: Any) -> Any:
    if not isinstance(edit, dict):
        return edit
    names = _OLD_ALIASES | _NEW_ALIASES
    return {names.get(key, key): value for key, value in edit.items()}


def decode_if_json(text: str) -> Any:
    """What JSON in a text stands for, or the text itself; an empty text stands for nothing."""
    if not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
