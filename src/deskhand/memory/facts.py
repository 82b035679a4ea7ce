"""A fact: what is known, whose it is, where it comes from, and since when. Never rewritten, only
closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ..policy.gate import may_see
from ..store.base import Store
from ..store.sql import load_sql
from ..types.commit import Change
from ..types.labels import Label
from ..types.messages import clean_text

Scope = Literal["user", "agent", "global"]
Writer = Literal["tool", "harvester", "cleaner", "reflection", "file", "import", "person"]
Retention = Literal["candidate", "durable"]

STATEMENTS = load_sql(__package__, "facts.sql")
FACT_CHARS = 2_000
"""A longer text is no fact: it is cut here, and tools refuse it."""
DAY_S = 86_400.0
_encode = msgspec.json.encode
_decode_label = msgspec.json.Decoder(Label).decode


class Keeping(msgspec.Struct, frozen=True):
    """How much is kept: so many facts of each owner (of a person, of an agent, of all), and
    candidates for so long."""

    most: int = 10_000
    candidate_days: float = 14.0


KEEPING = Keeping()


class NewFact(msgspec.Struct, frozen=True):
    """A fact that is to be written. `owner` is the person or the agent whose it is, '' where it is
    global. `key` names this writing for ever: what has been written under it is not written again.
    `session` and `n` are the event that it comes from. `held`: it is told nobody before a person
    said yes. `replaces` are the ids of facts of the same owner that it comes in place of: they are
    closed with it, or, where it is held, once it is promoted."""

    text: str
    scope: Scope
    owner: str
    label: Label
    writer: Writer
    key: str
    session: str = ""
    n: int = 0
    confidence: float = 1.0
    retention: Retention = "durable"
    pinned: bool = False
    held: bool = False
    replaces: tuple[int, ...] = ()


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact as it is kept. Times are seconds since the epoch; `valid_to` is None while it holds.
    `closed_why` is superseded, forgotten, expired, or what closed it said; `superseded_by` is the
    id of what came in its place."""

    id: int
    key: str
    text: str
    scope: Scope
    owner: str
    session: str
    n: int
    writer: Writer
    label: Label
    confidence: float
    retention: Retention
    pinned: bool
    held: bool
    at: float
    valid_from: float
    valid_to: float | None
    expires_at: float | None
    superseded_by: int | None
    closed_why: str
    used_at: float | None
    uses: int


class FactHit(msgspec.Struct, frozen=True):
    """A fact that answers a search. `relevance` is between 0 and 1: how near its meaning is, or 1
    where only words were compared."""

    fact: Fact
    relevance: float


class Viewer(msgspec.Struct, frozen=True):
    """Who looks. `private`: nobody but `person` takes part, so that facts of theirs may be told.
    `audience` are the names by which the readers of a label mean them. `held`: also what waits for
    a person's yes."""

    person: str
    agent: str
    private: bool
    audience: tuple[str, ...] = ()
    held: bool = False
    all_seeing: bool = False

    def owners(self, scope: str = "") -> tuple[tuple[str, str], ...] | None:
        """(scope, owner) of all that may be seen, or of one scope; None: whatever there is."""
        if self.all_seeing and not scope:
            return None
        own = (("user", self.person),) if self.private and self.person else ()
        every = (("global", ""), ("agent", self.agent), *own)
        return tuple(each for each in every if scope in ("", each[0]))

    def sees(self, fact: Fact) -> bool:
        """Whether this fact may be shown here, in whatever way it was found."""
        if self.all_seeing:
            return True
        if (fact.held and not self.held) or (fact.scope, fact.owner) not in (self.owners() or ()):
            return False
        return fact.scope == "user" or may_see(fact.label, self.audience)


def make_unrestricted_viewer() -> Viewer:
    """The owner at the command line: sees all, of everybody."""
    return Viewer("", "", private=False, held=True, all_seeing=True)


def add_fact(fact: NewFact, at: float, keeping: Keeping = KEEPING) -> tuple[Change, ...]:
    """The rows that write a fact, once by its key, and close what it replaces. Where its owner has
    as many as are kept, and it replaces none, nothing is written. To be committed together."""
    expires = (
        at + keeping.candidate_days * DAY_S
        if fact.retention == "candidate" and not fact.pinned
        else None
    )
    owner = "" if fact.scope == "global" else fact.owner
    text = fit_fact_text(fact.text)
    what = (
        fact.key,
        text,
        fact.scope,
        owner,
        fact.session,
        fact.n,
        fact.writer,
        _encode(fact.label),
    )
    how = (min(max(fact.confidence, 0.0), 1.0), fact.retention, int(fact.pinned), int(fact.held))
    rest = (_encode_ids(fact.replaces), at, expires, int(bool(fact.replaces)), keeping.most)
    if not text:
        return ()
    instead = (Change("fact_supersede", (fact.key, at)),) if fact.replaces else ()
    return (Change("fact_add", (*what, *how, *rest)), *instead)


def close_fact(id_: int, at: float, why: str, by: int | None = None) -> Change:
    """It holds no longer, since `by` (an id) says better what it said. It stays in the history, and
    can be opened again."""
    return Change("fact_close", (id_, at, why, by))


def reopen_fact(id_: int) -> tuple[Change, ...]:
    """A closed fact holds again, from its own beginning on."""
    return (Change("fact_reopen", (id_,)),)


def undo_fact(id_: int, at: float) -> tuple[Change, ...]:
    """As if this fact had not been written: it is closed, and what it replaced holds again."""
    return (close_fact(id_, at, "undone"), Change("fact_reopen_replaced", (id_,)))


def undo_last_change(fact: Fact, at: float) -> tuple[Change, ...]:
    """Take back the last thing that happened to a fact: that it was written, that another came in
    its place, or that it was closed."""
    if fact.valid_to is None:
        return undo_fact(fact.id, at)
    return reopen_fact(fact.id) if fact.superseded_by is None else undo_fact(fact.superseded_by, at)


class Some(msgspec.Struct, frozen=True):
    """A choice among facts: of a scope, of one owner, by one writer; '' is any."""

    scope: str = ""
    owner: str = ""
    writer: str = ""


def restore_facts(then: float, now: float, some: Some) -> tuple[Change, ...]:
    """Put these facts back to how they were `then`: what held holds again, and what was written
    since is taken back. What had its time is over all the same. Of a writer also what its facts had
    come in place of."""
    choice = (then, some.scope, some.owner, some.writer)
    return (Change("fact_since_open", choice), Change("fact_since_close", (*choice, now)))


def promote_fact(fact: Fact, at: float) -> tuple[Change, ...]:
    """A person has seen what was held, or is only a candidate, and stands for it: it is told from
    now on, and what it replaces is closed."""
    label = mark_vouched(fact.label)
    return (
        Change("fact_promote", (fact.id, _encode(label))),
        Change("fact_supersede_by", (fact.id, at)),
    )


def keep_fact(id_: int) -> Change:
    """A candidate has turned out to be useful: it stays. What is held stays held."""
    return Change("fact_keep", (id_,))


def mark_vouched(label: Label) -> Label:
    """The label of what a person has seen and allowed: no longer untrusted, and for the same
    readers."""
    return replace(label, integrity="tool_local") if label.integrity == "untrusted" else label


def pin_fact(id_: int, on: bool) -> Change:
    """Always told from now on, or only where it fits."""
    return Change("fact_pin", (id_, int(on)))


def erase_fact(id_: int) -> tuple[Change, ...]:
    """Gone, from the bytes of the database too."""
    return (Change("fact_erase", (id_,)), Change("fact_words_tidy", ()))


def add_fact_source(id_: int, session: str, n: int) -> Change:
    """What it says was also said in this event: it stays when the conversation that it comes from
    is erased."""
    return Change("fact_also", (id_, session, n))


def forget_session(session: str, person: str = "") -> tuple[Change, ...]:
    """For a conversation that is erased: what was made of it alone is gone with its history, also
    from the bytes of the database, and so is what was noted about it. What was said elsewhere too,
    or put together with what was, stays. With a `person` only facts of theirs go."""
    return (
        Change("fact_sources_forget", (session,)),
        Change("fact_source_instead", (session,)),
        Change("fact_erase_of", (session, int(not person), person)),
        Change("fact_part_instead", (session,)),
        Change("gathered_forget", (session,)),
        Change("fact_words_tidy", ()),
    )


def fit_fact_text(text: str) -> str:
    """A text as facts have it: one line, no longer than FACT_CHARS."""
    text = " ".join(clean_text(text).split())
    return text if len(text) <= FACT_CHARS else f"{text[: FACT_CHARS - 1].rstrip()}…"


def parse_fact_row(row: tuple[Any, ...]) -> Fact:
    """A fact from the columns that facts.sql reads."""
    values = dict(zip(Fact.__struct_fields__, row, strict=True))
    values["label"], values["pinned"], values["held"] = (
        _decode_label(row[8]),
        bool(row[11]),
        bool(row[12]),
    )
    return Fact(**values)


def encode_owners(owners: Iterable[tuple[str, str]] | None) -> str | None:
    """Owners as the statements take them."""
    return None if owners is None else _encode(list(owners)).decode()


def _encode_ids(ids: Iterable[int]) -> str:
    return _encode(list(ids)).decode()


async def facts_of_session(store: Store, session: str) -> list[int]:
    """The ids of the facts that were made of this session, alone or among others."""
    return [id_ for (id_,) in await store.query("fact_of_session", (session,))]


async def existing_facts(store: Store, ids: Sequence[int]) -> list[int]:
    """Which of these facts there are."""
    if not ids:
        return []
    return [row[0] for row in await store.query("fact_get", (_encode_ids(ids),))]
