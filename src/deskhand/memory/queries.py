"""Typed queries on the tables of memory: facts, vectors, files of notes, and what was processed.

What writes facts stands in `facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..store.base import Store, SyncStatementReader
from ..types.commit import Change
from ..types.events import MessageReceived, decode_event
from ..types.identity import responsible_person
from ..types.labels import Label
from .fact_extraction import ForgottenFact
from .facts import Fact, Scope

Owners = Sequence[tuple[str, str]] | None
"""(scope, owner) of the facts that are looked at; None for those of everybody."""

SOURCE_CHARS = 300

_encode = msgspec.json.encode
_decode_label = msgspec.json.Decoder(Label).decode
_decode_ids = msgspec.json.Decoder(tuple[int, ...]).decode
MAX_ID = (1 << 62) - 1


class FactText(msgspec.Struct, frozen=True):
    """The id of a fact and its text."""

    id: int
    text: str


class FactPage(msgspec.Struct, frozen=True, kw_only=True):
    """Which open facts to list. `now` is in seconds since the epoch; '' means any scope or owner.
    `held` also lists held facts, `only_held` lists nothing else. Those with an id below `before`
    are listed."""

    owners: Owners
    now: float
    limit: int
    offset: int = 0
    held: bool = False
    pinned: bool = False
    scope: str = ""
    owner: str = ""
    only_held: bool = False
    before: int = MAX_ID


class FactSource(msgspec.Struct, frozen=True):
    """What a person said last before a fact was written: its words, shortened, the number and the
    time of its event (seconds since the epoch), and who said it."""

    text: str
    n: int
    at: float
    person: str


class FactCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many facts an owner has. `open` counts those that hold, and the next three are among
    them."""

    scope: str
    owner: str
    open: int
    held: int
    pinned: int
    candidates: int
    closed: int


class KeyedFact(msgspec.Struct, frozen=True):
    """The fact that was written under a key. `holds` is False when it has been closed."""

    key: str
    id: int
    holds: bool


class FactChange(msgspec.Struct, frozen=True):
    """A fact that changed. `seq` is the number of its last change, `first_seq` of the first one
    that was looked at."""

    seq: int
    fact: int
    first_seq: int


class StoredVector(msgspec.Struct, frozen=True):
    """The vector of an open fact, as float16 bytes, and whose fact it is."""

    fact: int
    scope: str
    owner: str
    held: bool
    data: bytes


class UnprocessedSession(msgspec.Struct, frozen=True):
    """A session with something new after event number `after`."""

    session: str
    agent: str
    after: int


class OwnerWithNewFacts(msgspec.Struct, frozen=True):
    """An owner who has facts that were never cleaned: those with an id above `after`."""

    scope: Scope
    owner: str
    after: int


class Processed(msgspec.Struct, frozen=True, kw_only=True):
    """A job of `kind` has read `subject` up to number `n`, and has looked as far as `seen`. `at` is
    in seconds since the epoch; an empty `note` leaves the stored one."""

    kind: str
    subject: str
    n: int
    seen: int
    at: float
    status: str = "processed"
    note: str = ""


class ReflectedSession(msgspec.Struct, frozen=True):
    """What came of the last reflection on a session: processed, too_short or error."""

    session: str
    n: int
    at: float
    status: str
    note: str


class NotesVersion(msgspec.Struct, frozen=True):
    """Changes whenever something changes that decides what a file of notes shows: the last change
    of a fact, the labels of files, and the last reflection."""

    facts: int
    labels: int
    labelled_at: float
    reflected_at: float


# One fact, or the facts of one owner


async def get_facts(store: Store, ids: Sequence[int]) -> list[Fact]:
    """The facts with these ids that exist, also closed ones, in no particular order."""
    if not ids:
        return []
    return [_parse_fact(row) for row in await store.query("fact_get", (_json_list(ids),))]


def find_fact(store: Store, id_: int) -> Fact | None:
    """The fact with this id, also a closed one. Does not wait."""
    for row in store.query_sync("fact_get", (_json_list([id_]),)):
        return _parse_fact(row)
    return None


def list_facts(store: Store, page: FactPage) -> list[Fact]:
    """The open facts of this page, the latest first."""
    rows = store.query_sync(
        "fact_list",
        (
            encode_owners(page.owners),
            page.now,
            int(page.held),
            int(page.pinned),
            page.limit,
            page.offset,
            page.scope,
            page.owner,
            int(page.only_held),
            page.before,
        ),
    )
    return [_parse_fact(row) for row in rows]


async def closed_facts(
    store: Store, owners: Sequence[tuple[str, str]], *, words: str, before: int, limit: int
) -> list[Fact]:
    """The closed facts of these owners that nothing replaced, the last closed first. `words` stand
    in their text, in any case; '' for all. `before` is the id of the last one of the page before,
    or 0."""
    given = (encode_owners(owners), before, words.lower(), limit)
    return [_parse_fact(row) for row in await store.query("fact_closed", given)]


def find_successor(store: Store, fact: Fact) -> Fact | None:
    """The fact that a closed fact was closed in favour of, if any. Does not wait."""
    return find_fact(store, fact.superseded_by) if fact.superseded_by is not None else None


def pinned_facts(store: Store) -> list[Fact]:
    """All open facts that are pinned and not held, the oldest first."""
    return [_parse_fact(row) for row in store.query_sync("fact_pinned")]


def search_words(
    reader: SyncStatementReader, query: str, *, owners: Owners, now: float, held: bool, limit: int
) -> list[FactText]:
    """The open facts that match this full-text query, the best first."""
    rows = reader.query_sync("fact_find", (query, encode_owners(owners), now, int(held), limit))
    return [FactText(*row) for row in rows]


async def fact_history(store: Store, id_: int) -> list[Fact]:
    """The fact, all that it replaced and all that replaced it, the oldest first."""
    return [_parse_fact(row) for row in await store.query("fact_history", (id_,))]


async def facts_after(store: Store, scope: Scope, owner: str, after: int, limit: int) -> list[Fact]:
    """The next open facts of this owner with an id above `after`, without held ones and those that
    the cleaner wrote."""
    return [
        _parse_fact(row) for row in await store.query("fact_after", (scope, owner, after, limit))
    ]


async def facts_of_kind(store: Store, owners: Sequence[tuple[str, str]], kind: str) -> list[Fact]:
    """The open facts of these owners whose key begins with `kind`, without held ones. The oldest
    first."""
    return [
        _parse_fact(row) for row in await store.query("notes_kind", (encode_owners(owners), kind))
    ]


async def facts_by_key(store: Store, keys: Sequence[str]) -> list[KeyedFact]:
    """Which facts were written under these keys."""
    rows = await store.query("notes_known", (_json_list(keys),))
    return [KeyedFact(key, id_, bool(holds)) for key, id_, holds in rows]


async def forgotten_facts(store: Store, scope: Scope, owner: str) -> list[ForgottenFact]:
    """The last 200 facts of this owner that a person had forgotten, the latest first."""
    rows = await store.query("gathered_let_go", (scope, owner))
    return [ForgottenFact(text, at, bool(held)) for text, at, held in rows]


async def latest_fact(store: Store) -> int:
    """The id of the fact that changed last, or 0 when there is none."""
    return _first_number(await store.query("fact_latest", ()))


def latest_fact_of(store: Store, scope: Scope, owner: str) -> int:
    """The id of this owner's fact that changed last, or 0 when there is none."""
    return _first_number(store.query_sync("fact_latest_of", (scope, owner)))


def source_text(store: Store, fact: Fact) -> str:
    """What a person said last before this fact was written, shortened, or '' when that was
    erased."""
    source = find_source(store, fact)
    return source.text if source is not None else ""


def find_source(store: Store, fact: Fact) -> FactSource | None:
    """What a person said last before this fact was written, or None when that was erased. Does not
    wait."""
    for n, at, body in store.query_sync("fact_said", (fact.session, fact.n)):
        event = decode_event(body)
        if isinstance(event, MessageReceived):
            text = " ".join(event.message.text.split())[:SOURCE_CHARS]
            return FactSource(text, n, at, responsible_person(event.principal))
    return None


async def is_source_erased(store: Store, fact: Fact) -> bool:
    """Whether the event that this fact comes from has been erased. Nothing new can be written about
    it then."""
    rows = await store.query("fact_place_erased", (fact.session, fact.n))
    return _first_number(rows) > 0


# Counts


def count_open(reader: SyncStatementReader) -> dict[tuple[str, str], int]:
    """How many open facts each (scope, owner) has."""
    return {(scope, owner): count for scope, owner, count in reader.query_sync("fact_room")}


async def count_facts(store: Store) -> list[FactCounts]:
    """How many facts of which state each owner has."""
    return [
        FactCounts(
            scope=scope,
            owner=owner,
            open=open_,
            held=held,
            pinned=pinned,
            candidates=candidates,
            closed=closed,
        )
        for scope, owner, open_, held, pinned, candidates, closed in await store.query(
            "fact_counts", ()
        )
    ]


async def count_vectors(store: Store) -> dict[str, int]:
    """For how many open facts each embedding model has made a vector."""
    return dict(await store.query("vector_counts", ()))


async def count_expired(store: Store, now: float) -> int:
    """How many open candidates have reached their end."""
    return _first_number(await store.query("fact_expiring", (now,)))


# Upkeep of facts


def expire_facts(now: float) -> Change:
    """Close the candidates that have reached their end."""
    return Change("fact_expire", (now,))


def mark_used(ids: Iterable[int], at: float) -> Change:
    """These facts were recalled."""
    return Change("fact_used", (_json_list(sorted(set(ids))), at))


def give_way(id_: int, at: float, why: str, by: int = 0) -> Change:
    """Close a fact, in favour of the open fact `by` of the same owner if one is given. Pinned facts
    stay."""
    return Change("fact_give_way", (id_, at, why, by))


# What changed since when


def last_change(reader: SyncStatementReader) -> int:
    """The number of the last change of any fact, or 0."""
    return int(reader.query_sync("fact_last_change")[0][0])


def changes_since(reader: SyncStatementReader, seq: int, limit: int) -> list[FactChange]:
    """The facts that changed after change number `seq`, each once, in order of their last
    change."""
    return [FactChange(*row) for row in reader.query_sync("fact_changes", (seq, limit))]


def first_kept_change(reader: SyncStatementReader) -> int:
    """The number of the first change that is still recorded, or 0."""
    return int(reader.query_sync("fact_changes_from")[0][0])


def trim_changes(keep: int) -> Change:
    """Forget which facts changed, except for the last `keep` changes."""
    return Change("fact_changes_forget", (keep,))


# Vectors


def load_vectors(
    reader: SyncStatementReader, model: str, after: int, limit: int
) -> list[StoredVector]:
    """A page of this model's vectors of open facts with an id above `after`, by id."""
    return _parse_vectors(reader.query_sync("vector_load", (model, after, limit)))


def vectors_of(reader: SyncStatementReader, model: str, ids: Sequence[int]) -> list[StoredVector]:
    """This model's vectors of these facts, as far as they are open and have one."""
    return _parse_vectors(reader.query_sync("vector_state", (model, _json_list(ids))))


def vector_bytes(reader: SyncStatementReader, model: str, ids: Sequence[int]) -> dict[int, bytes]:
    """This model's vectors of these facts as float16 bytes, by the id of the fact."""
    return dict(reader.query_sync("vector_fetch", (model, _json_list(ids))))


def facts_without_vector(
    reader: SyncStatementReader, model: str, *, below: int, limit: int, size: int
) -> list[FactText]:
    """Open facts with an id under `below` that have no vector of `size` bytes of this model, the
    latest first. A `size` of 0 means any."""
    return [
        FactText(*row) for row in reader.query_sync("vector_missing", (model, below, limit, size))
    ]


def facts_without_vector_among(
    reader: SyncStatementReader, model: str, ids: Sequence[int], size: int
) -> list[FactText]:
    """As `facts_without_vector`, among these facts."""
    return [
        FactText(*row)
        for row in reader.query_sync("vector_missing_of", (model, _json_list(ids), size))
    ]


def add_vector(id_: int, model: str, data: bytes) -> Change:
    """Store the vector of a fact, as float16 bytes. Does nothing when the fact was erased."""
    return Change("vector_add", (id_, model, data))


# What was processed


async def unprocessed_sessions(
    store: Store, kind: str, *, quiet_since: float, now: float, limit: int
) -> list[UnprocessedSession]:
    """Sessions with something new for a job of this kind that nobody has written in since
    `quiet_since`, those that rest longest first. After a failure a session is left out for a
    while."""
    rows = await store.query("gathered_new", (kind, quiet_since, now, limit))
    return [UnprocessedSession(session, agent, after) for session, agent, after, _, _ in rows]


async def owners_with_new_facts(store: Store, now: float) -> list[OwnerWithNewFacts]:
    """The owners whose facts are to be cleaned. After a failure an owner is left out for a
    while."""
    rows = await store.query("fact_owners", (now,))
    return [OwnerWithNewFacts(scope, owner, after) for scope, owner, after, _, _ in rows]


async def processed_up_to(store: Store, kind: str, subject: str) -> int:
    """Up to which number a job of this kind has read the subject; 0 when it never did."""
    return _first_number(await store.query("gathered_get", (kind, subject)))


async def reflected_sessions(store: Store, agent: str, limit: int) -> list[ReflectedSession]:
    """The sessions of this agent that were reflected on, the latest first."""
    rows = await store.query("gathered_list", ("reflect", agent, limit))
    return [ReflectedSession(*row) for row in rows]


async def processed_subjects(store: Store, kind: str) -> list[str]:
    """All subjects that a job of this kind has read."""
    return [subject for (subject,) in await store.query("gathered_subjects", (kind,))]


def mark_processed(done: Processed) -> Change:
    """Note how far a job has read. Does nothing when it has read further already, or when what it
    read was erased."""
    return Change(
        "gathered_set",
        (done.kind, done.subject, done.n, done.seen, done.at, done.status, done.note),
    )


def mark_failed(kind: str, subject: str, at: float, why: str) -> Change:
    """A job could not read this subject: it is tried again later, after each failure a longer
    time."""
    return Change("gathered_failed", (kind, subject, at, why))


# Files of notes


async def notes_version(store: Store) -> NotesVersion:
    """A value that differs when a file of notes may have to be written again."""
    (row,) = await store.query("memory_files_moved", ())
    return NotesVersion(*row)


async def read_file_base(store: Store, path: str) -> bytes | None:
    """What was stored of a file of notes when it was last written or read, or None."""
    for (base,) in await store.query("memory_file_get", (path,)):
        return bytes(base)
    return None


def set_file_base(path: str, base: bytes, at: float) -> Change:
    """Remember the state of a file of notes, by its real path."""
    return Change("memory_file_set", (path, base, at))


def encode_owners(owners: Iterable[tuple[str, str]] | None) -> str | None:
    """Owners as the statements take them."""
    return None if owners is None else _encode(list(owners)).decode()


def _parse_fact(row: tuple[Any, ...]) -> Fact:
    """A fact from the columns that facts.sql reads."""
    values = dict(zip(Fact.__struct_fields__, row, strict=True))
    values["label"] = _decode_label(values["label"])
    values["pinned"] = bool(values["pinned"])
    values["held"] = bool(values["held"])
    values["replaces"] = _decode_ids(values["replaces"])
    return Fact(**values)


def _parse_vectors(rows: Iterable[tuple[Any, ...]]) -> list[StoredVector]:
    return [
        StoredVector(id_, scope, owner, bool(held), data) for id_, scope, owner, held, data in rows
    ]


def _first_number(rows: Sequence[tuple[Any, ...]]) -> int:
    return int(rows[0][0]) if rows else 0


def _json_list(values: Sequence[Any]) -> str:
    """A list as the statements with json_each() take it."""
    return _encode(list(values)).decode()
