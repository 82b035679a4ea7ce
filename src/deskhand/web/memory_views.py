"""What the API shows of memory, and what it takes. Times are seconds since the epoch."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ..types.identity import Principal

MAX_NUMBER = 1 << 60
MAX_LISTED = 200
FACT_CHARS = 2_000
FactFilter = Literal["all", "own", "shared", "pinned", "held", "forgotten"]


class MemoryReader(msgspec.Struct, frozen=True):
    """Who asks, and the agents that they may talk to."""

    principal: Principal
    agents: tuple[str, ...]


class MemoryQuery(msgspec.Struct, frozen=True):
    """`q`: search for this; the best match comes first, and there is one page. `which` are all
    facts that hold, those about the caller, those that others are told too, those that are always
    in the prompt, those that wait for approval, or those that were forgotten. `before` is the
    `more` of the page before."""

    q: Annotated[str, Meta(max_length=1_000)] = ""
    which: FactFilter = "all"
    before: Annotated[int, Meta(ge=0, le=MAX_NUMBER)] = 0
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 50


class FactView(msgspec.Struct, frozen=True, kw_only=True):
    """A fact. `owner` is the person or the agent whose it is, '' for everybody. `outside` names
    what had been read before it was noted, '' for nothing from outside. `forgotten_at` is when a
    candidate is forgotten. `closed_at` is None while it holds; `replaces` and `replaced_by` are ids
    of facts. `may_change`: whether the caller decides about it."""

    id: int
    text: str
    scope: Literal["user", "agent", "global"]
    owner: str
    writer: str
    at: float
    outside: str
    pinned: bool
    held: bool
    forgotten_at: float | None
    closed_at: float | None
    closed_why: str
    replaces: list[int]
    replaced_by: int | None
    may_change: bool


class MemoriesView(msgspec.Struct, frozen=True):
    """A page of facts. `enabled` is False where memory is switched off and the facts are only kept.
    `more` is what the next page begins `before`, None after the last one."""

    enabled: bool
    facts: list[FactView]
    more: int | None


class FactDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A fact and where it comes from: event `n` of `conversation`, '' where there is none or the
    caller may not see it. `said` is what `said_by` said there last before it was noted, at event
    `said_n`. `file` is the file that it was read from. `uses` counts how often it was shown beside
    a message. `history` is all that it replaced and all that replaced it, the oldest first;
    `similar` are facts of the same owner that say something like it."""

    fact: FactView
    conversation: str
    n: int
    said: str
    said_by: str
    said_at: float | None
    said_n: int
    file: str
    readers: list[str]
    uses: int
    used_at: float | None
    history: list[FactView]
    similar: list[FactView]


class ContradictionView(msgspec.Struct, frozen=True):
    """Two facts that cannot both hold by their form. `about` says what they disagree on."""

    about: str
    older: FactView
    newer: FactView


class Correction(msgspec.Struct, frozen=True):
    """`text` is the fact as it should be."""

    text: Annotated[str, Meta(min_length=1, max_length=FACT_CHARS)]


class FactMerge(msgspec.Struct, frozen=True):
    """`other` is the fact that says the same; `text` says what both do, '' for the text of the
    first."""

    other: int
    text: Annotated[str, Meta(max_length=FACT_CHARS)] = ""


class Sharing(msgspec.Struct, frozen=True):
    """`shared`: everybody is told; else only the caller."""

    shared: bool


class Pinning(msgspec.Struct, frozen=True):
    """`pinned`: it is in the prompt of every conversation in which it may be shown."""

    pinned: bool


class FactDecision(msgspec.Struct, frozen=True):
    """`other` is the fact that contradicts this one. It is closed, unless `both` hold."""

    other: int
    both: bool = False
