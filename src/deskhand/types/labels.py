"""Where content came from and who may see it, carried by every part and joined wherever content is
mixed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from .marked_texts import mark_text

Integrity = Literal["untrusted", "tool_local", "member", "owner"]
_RANK: dict[Integrity, int] = {"untrusted": 0, "tool_local": 1, "member": 2, "owner": 3}

UNNAMED_SOURCE = mark_text("content from outside")
"""Stands among the sources for what nobody named: no word of trust reaches it."""
MORE_SOURCES = mark_text("and others")
PASSED_ON_SOURCE = mark_text("something passed on in {platform}")
MAX_SOURCES = 8
"""So many sources are named; the last place is then that of all others."""


class Label(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Integrity says whose word this is, lowest first: untrusted, tool_local, member, owner.

    `readers` are the principals that may see it; None means anyone. `source` names where it came
    from, for people and for whoever trusts it: a URL, `file notes.txt`, or several of them, each on
    a line of its own. `by` are the people below an owner on whose word it was written, whatever
    else went into it. Content that nobody labelled is untrusted.
    """

    integrity: Integrity = "untrusted"
    readers: tuple[str, ...] | None = None
    source: str = ""
    by: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """Each of them; () where nobody named one."""
        return tuple(self.source.split("\n")) if self.source else ()


UNTRUSTED = Label()
OWNER = Label("owner")
LOCAL = Label("tool_local")


def join_labels(labels: Iterable[Label]) -> Label:
    """The label of content derived from all of these: the lowest integrity, and only the readers
    common to all.

    Nothing to join gives the highest label. `source` is that of the lowest integrity; of untrusted
    content it names all. `by` names everybody.
    """
    joined = OWNER
    for label in labels:
        readers = joined.readers if label.readers is None else label.readers
        if joined.readers is not None and label.readers is not None:
            readers = tuple(r for r in joined.readers if r in label.readers)
        below = _RANK[label.integrity] - _RANK[joined.integrity]
        if below == 0 and label.integrity == "untrusted":
            source = _join_sources(joined, label)
        else:
            source = (
                label.source if below < 0 or (below == 0 and not joined.source) else joined.source
            )
        by = (
            joined.by
            if label.by == joined.by or not label.by
            else tuple(sorted({*joined.by, *label.by}))
        )
        joined = Label(label.integrity if below < 0 else joined.integrity, readers, source, by)
    return joined


def _join_sources(one: Label, other: Label) -> str:
    """The sources of both, none left out in silence."""
    if one.source == other.source:
        return one.source
    named = list(
        dict.fromkeys([*(one.sources or (UNNAMED_SOURCE,)), *(other.sources or (UNNAMED_SOURCE,))])
    )
    if len(named) > MAX_SOURCES or MORE_SOURCES in named:
        named = [*[each for each in named if each != MORE_SOURCES][: MAX_SOURCES - 1], MORE_SOURCES]
    return "\n".join(named)
