"""What a fact is, who may see it, and the statements that write it. A fact is never rewritten, only
closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from ..policy.information_flow import may_see
from ..store.base import Store
from ..types.commit import Change
from ..types.labels import Label
from ..types.messages import clean_text

Scope = Literal["user", "agent", "global"]
Writer = Literal["tool", "harvester", "cleaner", "reflection", "file", "import", "person"]
Retention = Literal["candidate", "durable"]

FACT_CHARS = 2_000
"""A longer text is cut here. Tools refuse it."""
DAY_S = 86_400.0
_encode = msgspec.json.encode


class Keeping(msgspec.Struct, frozen=True):
    """How many facts each owner may have (a person, an agent, or all), and for how many days a
    candidate is kept."""

    most: int = 10_000
    candidate_days: float = 14.0


KEEPING = Keeping()


class NewFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact to be written.

    `owner` is a person or an agent, '' for a global fact. A `key` is written at most once, ever.
    `session` and `n` are the event that the fact comes from. A `held` fact is told to nobody until
    a person accepts it. `replaces` are ids of facts of the same owner: they are closed together
    with the writing, or, if this fact is held, when it is accepted.
    """

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
    """A stored fact. Times are seconds since the epoch; `valid_to` is None while the fact is open.
    `closed_why` is superseded, forgotten, expired, or the words of what closed it; `superseded_by`
    is the id of the fact that replaced it, `replaces` are those that it was written to replace."""

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
    replaces: tuple[int, ...] = ()


class FactHit(msgspec.Struct, frozen=True):
    """A fact that a search found. `relevance` is between 0 and 1: the best of all rankings."""

    fact: Fact
    relevance: float


class Viewer(msgspec.Struct, frozen=True):
    """Who reads facts. With `private` nobody but `person` takes part, so facts about them may be
    told. `audience` are the names that the readers of a label are compared with. `held` also shows
    facts that no person has accepted yet; `all_seeing` shows everything. `agents` are further ones
    whose facts are shown."""

    person: str
    agent: str
    private: bool
    audience: tuple[str, ...] = ()
    held: bool = False
    all_seeing: bool = False
    agents: tuple[str, ...] = ()

    def owners(self, scope: str = "") -> tuple[tuple[str, str], ...] | None:
        """(scope, owner) of the facts that may be seen, of one scope if given. None for all."""
        if self.all_seeing and not scope:
            return None
        own = (("user", self.person),) if self.private and self.person else ()
        every = (("global", ""), ("agent", self.agent), *own)
        if self.agents:
            every = (*every, *(("agent", name) for name in self.agents))
        return tuple(each for each in every if scope in ("", each[0]))

    def sees(self, fact: Fact) -> bool:
        """Whether this fact may be shown to this viewer."""
        if self.all_seeing:
            return True
        if (fact.held and not self.held) or (fact.scope, fact.owner) not in (self.owners() or ()):
            return False
        return fact.scope == "user" or may_see(fact.label, self.audience)


def make_unrestricted_viewer() -> Viewer:
    """Sees all facts of everybody, as the owner does at the command line."""
    return Viewer("", "", private=False, held=True, all_seeing=True)


def add_fact(fact: NewFact, at: float, keeping: Keeping = KEEPING) -> tuple[Change, ...]:
    """The statements that write a fact and close those it replaces. Commit them together.

    Nothing is written when its key was written before, or when its owner has as many facts as
    `keeping` allows and it replaces none.
    """
    text = fit_fact_text(fact.text)
    if not text:
        return ()
    expires_at: float | None = None
    if fact.retention == "candidate" and not fact.pinned:
        expires_at = at + keeping.candidate_days * DAY_S

    row = (
        fact.key,
        text,
        fact.scope,
        "" if fact.scope == "global" else fact.owner,
        fact.session,
        fact.n,
        fact.writer,
        _encode(fact.label),
        min(max(fact.confidence, 0.0), 1.0),
        fact.retention,
        int(fact.pinned),
        int(fact.held),
        _encode_ids(fact.replaces),
        at,
        expires_at,
        int(bool(fact.replaces)),
        keeping.most,
    )
    changes = (Change("fact_add", row),)
    if fact.replaces:
        return (*changes, Change("fact_supersede", (fact.key, at)))
    return changes


def close_fact(id_: int, at: float, why: str, by: int | None = None) -> Change:
    """Close a fact, in favour of the fact `by` if one is given. It stays in the history and can be
    reopened."""
    return Change("fact_close", (id_, at, why, by))


def close_moved_fact(id_: int, at: float, why: str, key: str) -> Change:
    """Close a fact in favour of the one that was written under this key, for whichever owner.
    Nothing is closed if that is held or was not written."""
    return Change("fact_moved", (id_, key, at, why))


def reopen_fact(id_: int) -> tuple[Change, ...]:
    """Open a closed fact again, with its old beginning."""
    return (Change("fact_reopen", (id_,)),)


def undo_fact(id_: int, at: float) -> tuple[Change, ...]:
    """Undo the writing of a fact: it is closed, and the facts that it replaced are opened again."""
    return (close_fact(id_, at, "undone"), Change("fact_reopen_replaced", (id_,)))


def undo_last_change(fact: Fact, at: float, *, successor: Fact | None) -> tuple[Change, ...]:
    """Undo the last thing that happened to a fact: that it was written, replaced, or closed.

    `successor` is the fact that it names as `superseded_by`. If that was written to replace it, it
    is closed; if it was there before, it stays.
    """
    if fact.valid_to is None:
        return undo_fact(fact.id, at)
    if successor is None or fact.id not in successor.replaces:
        return reopen_fact(fact.id)
    return undo_fact(successor.id, at)


class FactChoice(msgspec.Struct, frozen=True):
    """Chooses facts by scope, owner and writer; '' means any."""

    scope: str = ""
    owner: str = ""
    writer: str = ""


def restore_facts(then: float, now: float, some: FactChoice) -> tuple[Change, ...]:
    """Put these facts back to how they were `then` (seconds since the epoch): facts closed since
    are opened again, and facts written since are closed. Expired ones stay closed. With a writer
    only its facts are closed, and what they replaced is opened again."""
    choice = (then, some.scope, some.owner, some.writer)
    return (Change("fact_since_open", choice), Change("fact_since_close", (*choice, now)))


def promote_fact(fact: Fact, at: float) -> tuple[Change, ...]:
    """A person accepts a fact that was held or a candidate: it is told from now on, and the facts
    that it replaces are closed."""
    label = mark_vouched(fact.label)
    return (
        Change("fact_promote", (fact.id, _encode(label))),
        Change("fact_supersede_by", (fact.id, at)),
    )


def keep_fact(id_: int) -> Change:
    """Keep a candidate that turned out to be useful. If it is held, it stays held."""
    return Change("fact_keep", (id_,))


def mark_vouched(label: Label) -> Label:
    """The label of something that a person has accepted: no longer untrusted, with the same
    readers."""
    if label.integrity == "untrusted":
        return replace(label, integrity="tool_local")
    return label


def pin_fact(id_: int, on: bool) -> Change:
    """Tell a fact in every conversation from now on, or with `on` False only where it fits."""
    return Change("fact_pin", (id_, int(on)))


def erase_fact(id_: int) -> tuple[Change, ...]:
    """Delete a fact for good, from the bytes of the database too."""
    return (Change("fact_erase", (id_,)), Change("fact_words_tidy", ()))


def add_fact_source(id_: int, session: str, n: int) -> Change:
    """Note that a fact was also said in this event. It then stays when the session that it comes
    from is erased."""
    return Change("fact_also", (id_, session, n))


def forget_session(session: str, person: str = "") -> tuple[Change, ...]:
    """Delete the facts that come from this session alone, from the bytes of the database too, and
    what was noted about the session. Facts that were also said elsewhere, or merged with such
    facts, stay. With a `person` only facts of theirs are deleted."""
    return (
        Change("fact_sources_forget", (session,)),
        Change("fact_source_instead", (session,)),
        Change("fact_erase_of", (session, int(not person), person)),
        Change("fact_part_instead", (session,)),
        Change("gathered_forget", (session,)),
        Change("fact_words_tidy", ()),
    )


def common_kind(keys: Iterable[str]) -> str:
    """`knowledge` or `learning` if all of these keys of facts are of that kind, else ''."""
    kinds = {key.partition(":")[0] for key in keys}
    kind = kinds.pop() if len(kinds) == 1 else ""
    return kind if kind in ("knowledge", "learning") else ""


def fit_fact_text(text: str) -> str:
    """The text in one line, cut to FACT_CHARS."""
    text = " ".join(clean_text(text).split())
    return text if len(text) <= FACT_CHARS else f"{text[: FACT_CHARS - 1].rstrip()}…"


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
