"""Which tools an agent is offered: a profile, a list, what is also allowed, and what never is."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Literal

import msgspec

Profile = Literal["minimal", "small", "coding", "full"]

_TALK_TOOLS = (
    *("think", "ask_user", "send_message", "read_output", "list_skills", "read_skill"),
    *("enter_plan_mode", "exit_plan_mode"),
)
PROFILES: dict[Profile, tuple[str, ...]] = {
    "minimal": _TALK_TOOLS,
    "small": (
        *("think", "ask_user", "read_output", "list_skills", "read_skill", "compact", "restart"),
        *(
            "read_file",
            "write_file",
            "edit_file",
            "list_files",
            "search_files",
            "shell",
            "web_fetch",
            "web_search",
        ),
        *("save_memory", "search_memories", "search_past", "kv_get", "kv_set"),
    ),
    "coding": (
        *_TALK_TOOLS,
        *(
            "read_file",
            "write_file",
            "edit_file",
            "list_files",
            "search_files",
            "list_symbols",
            "find_references",
        ),
        *(
            "shell",
            "process",
            "background_run",
            "check_background",
            "undo*",
            "web_fetch",
            "web_search",
        ),
        "send_file",
    ),
    "full": ("*",),
}
"""`minimal` talks; `small` is what a model with little room can hold; `coding` also works on files,
with commands and looks things up; `full` is everything."""


TASK_VIEW_TOOLS = (
    *("task_create", "task_get", "task_update", "task_list"),
    *("todo_write", "todo_add", "todo_complete", "todo_list"),
)
"""The tasks of a conversation as another system's tools show them: `manage_tasks` is the one view
that is in `*`."""


BROWSER_VIEW_TOOLS = tuple(
    f"browser_{name}"
    for name in (
        *("navigate", "snapshot", "click", "type", "fill", "press"),
        *("scroll", "text", "screenshot", "tabs"),
    )
)
"""The browser as another system's tools show it: `browser` is the one that is in `*`."""
BROWSER_TOOLS = frozenset({"browser", "browser_task", *BROWSER_VIEW_TOOLS})
DESKTOP_TOOLS = frozenset({"desktop", "computer_task"})
NAMED_TOOLS = (
    *(*TASK_VIEW_TOOLS, *BROWSER_VIEW_TOOLS),
    *("browser_task", "computer_task", "control_center", "channel", "react"),
    *("list_channels", "read_channel", "read_thread"),
)
"""What only those are offered who name it."""

DEFERRED_TOOLS = (
    *(
        "list_symbols",
        "find_references",
        "extract",
        "process",
        "background_run",
        "check_background",
        "request_host",
        "send_file",
        "manage_tasks",
        "compact",
        "manage_users",
    ),
    *("think", "enter_plan_mode", "exit_plan_mode", "list_skills"),
    *("search_memories", "search_past", "read_past"),
    *(
        "kv_set",
        "kv_get",
        "kv_delete",
        "kv_list",
        "list_memories",
        "forget_memory",
        "restart",
        "cron",
        "manage_job",
    ),
    *(
        "propose_skill",
        "run_skill",
        "manage_skill",
        "image_gen",
        "list_changes",
        "undo_change",
        "subagents",
        "run_script",
        "macro",
        "mcp",
        "mcp_read",
        "remote_agent",
        "browser",
        "desktop",
    ),
)
"""Our own tools that most conversations never use: they wait for `tool_search`, unless somebody
named them."""
CORE_TOOLS = frozenset({*_TALK_TOOLS, *PROFILES["small"]} - {*DEFERRED_TOOLS})
"""What is never deferred, whoever wants it so."""


class Offered(msgspec.Struct, frozen=True):
    """What decides about it. `tools` and `also` are patterns, `deny` wins over all."""

    profile: Profile = "full"
    tools: tuple[str, ...] = ("*",)
    also: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


def is_offered(offered: Offered, name: str) -> bool:
    """Whether a tool of this name is offered: it is in the profile and in the list, or allowed
    beside them. One of `VIEWS` is not in `*`."""
    if is_name_matched(name, offered.deny):
        return False
    if is_name_matched(name, offered.also):
        return True
    if name in NAMED_TOOLS and not is_explicitly_offered(offered, name):
        return False
    return is_name_matched(name, PROFILES[offered.profile]) and is_name_matched(name, offered.tools)


def is_explicitly_offered(offered: Offered, name: str) -> bool:
    """Whether somebody wants this very tool: a pattern or a profile has it that does not have
    all."""
    lists = (offered.also, offered.tools, PROFILES[offered.profile])
    return any(
        is_name_matched(name, [each for each in patterns if each != "*"]) for patterns in lists
    )


def is_name_matched(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
