"""What is to be done in a conversation: one graph of tasks, whatever a tool or a surface calls
it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from .labels import LOCAL, Label

TaskStatus = Literal["pending", "in_progress", "completed", "blocked", "deleted"]
STATUS_MARKS: dict[TaskStatus, str] = {
    "pending": "[ ]",
    "in_progress": "[>]",
    "completed": "[x]",
    "blocked": "[!]",
}
"""How a task is shown in a list."""


class TaskComment(msgspec.Struct, frozen=True, gc=False):
    """What `by` said of a task at `at` (seconds since the epoch)."""

    by: str
    text: str
    at: float


class Task(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One task. Ids begin with 1 in each conversation and are never given twice.

    It is done after its children (those with it as `parent`, 0 for none) and after what it
    `depends_on`. `result` is what came of it, or what is needed while it is blocked. `node` says
    who does it: the `agent`, a `tool` with `config` as its call, or it gathers the results of
    others (`gather`). `active` is what is said while it is being done. `todo` is its place in the
    flat list, 0 outside of it. `owner` is who has it, `lease` the sub-agent's task in which a
    teammate works on it. `label` is that of what went into its words.
    """

    id: int
    title: str
    description: str = ""
    status: TaskStatus = "pending"
    parent: int = 0
    depends_on: tuple[int, ...] = ()
    result: str = ""
    node: str = "agent"
    config: dict[str, Any] = {}
    active: str = ""
    owner: str = ""
    metadata: dict[str, Any] = {}
    todo: int = 0
    lease: str = ""
    comments: tuple[TaskComment, ...] = ()
    label: Label = LOCAL

    @property
    def is_closed(self) -> bool:
        """Nothing is left to be done of it."""
        return self.status in ("completed", "deleted")


TaskGraph = Mapping[int, Task]
"""All tasks of one conversation by id, those that were deleted included."""
