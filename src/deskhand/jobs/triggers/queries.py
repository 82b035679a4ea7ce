"""The table of triggers: what each watched file, page or broker was like when it was last seen."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ...store.base import Store
from ...types.commit import Change


class OwnChange(msgspec.Struct, frozen=True):
    """When a job last changed a file (seconds since the epoch), and whether it removed it."""

    at: float
    removed: bool


async def load_state(store: Store, job: str, line: str) -> str:
    """What `save_state` stored for this line of the job, or ''."""
    rows = await store.query("trigger_seen", (job, line))
    return str(rows[0][0]) if rows else ""


def save_state(job: str, line: str, value: str, at: float) -> Change:
    """Store what this line of the job has seen last."""
    return Change("trigger_saw", (job, line, value, at))


def forget_states(keep: Collection[str], before: float) -> Change:
    """Delete what is stored for other jobs than these, where it is older than `before`."""
    return Change("trigger_forget", (msgspec.json.encode(list(keep)).decode(), before))


async def own_changes(
    store: Store, folder: str, paths: Sequence[str], session_prefix: str
) -> dict[str, OwnChange]:
    """Of these files in the workspace `folder`, those that a session whose key begins so changed
    last. Raises UnicodeEncodeError for a path that is no text."""
    listed = msgspec.json.encode(paths).decode()
    rows = await store.query("trigger_own", (folder, listed, session_prefix))
    return {path: OwnChange(at, bool(gone)) for path, at, gone in rows}


async def last_message_at(store: Store, agent: str) -> float:
    """When something was last said to this agent in a conversation that is not a job's, or 0."""
    ((at,),) = await store.query("session_latest", (agent,))
    return float(at)
