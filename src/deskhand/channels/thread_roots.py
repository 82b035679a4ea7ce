"""Which messages stand in a thread, for what tells of a message alone: a change, a reaction."""

from __future__ import annotations

MAX_REMEMBERED = 2_000


def remember_thread(roots: dict[str, str], name: str, root: str) -> None:
    """That this message stands in that thread; the oldest are forgotten."""
    if root:
        roots[name] = root
        if len(roots) > MAX_REMEMBERED:
            del roots[next(iter(roots))]
