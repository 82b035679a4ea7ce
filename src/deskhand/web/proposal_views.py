"""What the API shows of proposed skills. Times are seconds since the epoch."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta


class ProposalView(msgspec.Struct, frozen=True):
    """A proposed skill in a list. `source` names what had been read from outside before it was
    thought of, '' for nothing; `by` are the people below an owner on whose word it was written.
    `verdict` says in a sentence how it did in replays, '' before. `name` is what it wants to be
    called, `conversation` the name of that which it comes from."""

    id: int
    name: str
    description: str
    agent: str
    state: Literal["proposed", "refused", "accepted", "rejected", "reverted", "kept"]
    source: str
    verdict: str
    conversation: str
    at: float
    why: str
    by: list[str]


class FindingView(msgspec.Struct, frozen=True):
    """Something that stands in it: `bad` is never taken, `look` is for a person to look at."""

    severity: Literal["bad", "look"]
    words: str
    excerpt: str


class ScoreView(msgspec.Struct, frozen=True):
    """One recorded turn, replayed with it. `unknown` calls had no recorded result; `*_before` are
    those without it."""

    asked: str
    solved: bool
    read: bool
    calls: int
    calls_before: int
    tokens: int
    tokens_before: int
    unknown: int


class ProposalDetail(msgspec.Struct, frozen=True):
    """All that a person needs to decide. `file` is where it lies, or would. `uses` are the turns
    that read it since then, `bad_uses` those that ended badly."""

    proposal: ProposalView
    body: str
    file: str
    findings: list[FindingView]
    scores: list[ScoreView]
    spent: int
    decided_by: str
    decided_at: float | None
    uses: int
    bad_uses: int


class Yes(msgspec.Struct, frozen=True):
    """`untrusted`: also where something from outside had been read before, or somebody below an
    owner wrote it."""

    untrusted: bool = False


class No(msgspec.Struct, frozen=True):
    """`why` is for the record."""

    why: Annotated[str, Meta(max_length=1_000)] = ""
