"""Where content came from and who may see it, carried by every part and joined wherever content is mixed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Integrity = Literal["untrusted", "tool_local", "member", "owner"]
_RANK: dict[Integrity, int] = {"untrusted": 0, "tool_local": 1, "member": 2, "owner": 3}


class Label(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Integrity says whose word this is, lowest first: untrusted, tool_local, member, owner.

    `readers` are the principals that may see it; None means anyone. `source` names where it came from, for people
    (`https://…`, `file notes.txt`). Content that nobody labelled is untrusted.
    """

    integrity: Integrity = "untrusted"
    readers: tuple[str, ...] | None = None
    source: str = ""


UNTRUSTED = Label()
OWNER = Label("owner")
LOCAL = Label("tool_local")


def join(labels: Iterable[Label]) -> Label:
    """The label of content derived from all of these: the lowest integrity, and only the readers common to all.

    Nothing to join gives the highest label. `source` is that of the lowest integrity.
    """
    joined = OWNER
    for label in labels:
        readers = joined.readers if label.readers is None else label.readers
        if joined.readers is not None and label.readers is not None:
            readers = tuple(r for r in joined.readers if r in label.readers)
        below = _RANK[label.integrity] - _RANK[joined.integrity]
        lower = below < 0 or (below == 0 and not joined.source)
        integrity = label.integrity if lower else joined.integrity
        joined = Label(integrity, readers, label.source if lower else joined.source)
    return joined
