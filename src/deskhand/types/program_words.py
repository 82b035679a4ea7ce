"""What a rehearsed program comes to, in a few words for one line."""

from __future__ import annotations

from collections.abc import Sequence

from .programs import ChangeKind, FileChange, Rehearsed

CHANGE_VERBS: dict[ChangeKind, str] = {
    "new": "make",
    "changed": "change",
    "deleted": "delete",
    "moved": "move",
    "folder": "make",
}


def summarize_changes(changes: Sequence[FileChange]) -> str:
    """What would be done: `change notes.txt`, `make 2 files, delete old.txt`."""
    kinds = dict.fromkeys(change.kind for change in changes)
    return (
        ", ".join(_summarize_kind(kind, [c for c in changes if c.kind == kind]) for kind in kinds)
        or "change nothing"
    )


def _summarize_kind(kind: ChangeKind, changes: Sequence[FileChange]) -> str:
    thing = "folder" if kind == "folder" else "file"
    if len(changes) > 1:
        return f"{CHANGE_VERBS[kind]} {len(changes)} {thing}s"
    (change,) = changes
    to = f" to {change.to}" if change.to else ""
    return f"{CHANGE_VERBS[kind]} {'the folder ' if kind == 'folder' else ''}{change.path}{to}"


def summarize_rehearsal(came: Rehearsed) -> str:
    """What a rehearsal showed: `would change notes.txt`, `says It is 4.`, `stopped: there is no
    a.txt`."""
    if came.stopped or came.failed:
        return f"stopped: {came.stopped}" if came.stopped else f"failed: {came.failed}"
    if came.needs is not None:
        return f"needs {came.needs.tool} first"
    used = " and ".join(dict.fromkeys(call.tool for call in came.calls))
    if came.changes:
        return f"would {summarize_changes(came.changes)}{f', and use {used}' if used else ''}"
    if used:
        return f"would use {used}"
    said = next((line.strip() for line in came.said.splitlines() if line.strip()), "")
    return f"says {said}" if said else "comes to nothing"
