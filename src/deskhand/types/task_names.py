"""The names of the tasks that drive sessions: each line of the log says which it is about."""

from __future__ import annotations

_DRIVE = "drive "


def name_drive(session: str, depth: int) -> str:
    """The name of the task that drives this session. `depth` is 0 for a conversation of people, 1
    for their sub-agents."""
    return f"{_DRIVE}{session.replace('/', ':', 1)}:d{depth}"


def find_driven(task: str) -> str:
    """The session that the task of this name drives, as `agent:place:d0`; '' for none."""
    return task.removeprefix(_DRIVE) if task.startswith(_DRIVE) else ""
