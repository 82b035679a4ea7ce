"""What people change by hand: a fact is corrected, merged with another, told to others or to nobody
else, or preferred to one that contradicts it.

A fact is never rewritten. Each change writes a new fact that replaces the old one, or closes one of
two, so `undo_last_change` takes it back.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..store.base import Store
from ..types.commit import Change
from ..types.identity import Principal, principal_label
from ..types.labels import join_labels
from .facts import (
    KEEPING,
    Fact,
    Keeping,
    NewFact,
    Scope,
    add_fact,
    close_fact,
    close_moved_fact,
    common_kind,
    mark_vouched,
)
from .queries import Processed, is_source_erased, mark_processed
from .recall import Memory

BOTH_HOLD = "both_hold"
"""The kind of mark under which pairs are kept that a person said both hold."""


class FactEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a person makes, `at` seconds since the epoch. The fact that it writes is found
    under `key`, and comes from the event `n` of `session`, as those before it do."""

    who: Principal
    at: float
    key: str
    session: str
    n: int
    keeping: Keeping = KEEPING


async def begin_edit(
    store: Store, facts: Sequence[Fact], *, who: Principal, at: float, unique: str, keeping: Keeping
) -> FactEdit:
    """A change of these facts. What it writes comes from where the latest of them does, as far as
    that was not erased. `unique` is an id that was never used before."""
    session = ""
    n = 0
    for fact in sorted(facts, key=lambda fact: fact.at):
        if fact.session and not await is_source_erased(store, fact):
            session = fact.session
            n = fact.n
    key = make_edit_key(facts, unique)
    return FactEdit(who=who, at=at, key=key, session=session, n=n, keeping=keeping)


def find_obstacle(facts: Sequence[Fact]) -> str:
    """Why these facts cannot be replaced by one, '' if they can."""
    for fact in facts:
        if fact.valid_to is not None:
            instead = f", and #{fact.superseded_by} holds instead" if fact.superseded_by else ""
            return f"#{fact.id} is closed ({fact.closed_why}){instead}"
        if fact.held and len(facts) > 1:
            return f"#{fact.id} waits for approval: approve it first"
    if len({fact.id for fact in facts}) < len(facts):
        return "choose two different memories"
    if len({(fact.scope, fact.owner) for fact in facts}) > 1:
        return "choose two memories that are told to the same people"
    return ""


async def find_repeated(memory: Memory, text: str, replaced: Sequence[Fact]) -> str:
    """Why a fact with this text cannot replace these: another fact of the same owner says it in the
    same words. '' if none does."""
    known = {fact.id for fact in replaced}
    for same in await memory.find_exact(text, [(replaced[0].scope, replaced[0].owner)]):
        if same.id not in known:
            return f"#{same.id} says that already: merge the two, or forget one"
    return ""


def make_edit_key(facts: Sequence[Fact], unique: str) -> str:
    """The key of a fact that replaces these. It begins with their kind, by which files of notes
    show them."""
    return f"{common_kind(fact.key for fact in facts) or 'person'}:{unique}"


def correct_fact(fact: Fact, text: str, edit: FactEdit) -> tuple[Change, ...]:
    """Replace a fact by what this person says instead. It counts as their word, and is no longer
    held."""
    return add_fact(
        NewFact(
            text=text,
            scope=fact.scope,
            owner=fact.owner,
            label=principal_label(edit.who),
            writer="person",
            key=edit.key,
            session=edit.session,
            n=edit.n,
            pinned=fact.pinned,
            replaces=(fact.id,),
        ),
        edit.at,
        edit.keeping,
    )


def merge_facts(facts: Sequence[Fact], text: str, edit: FactEdit) -> tuple[Change, ...]:
    """Replace several facts of one owner by one that says the same. It is trusted as little as the
    least trusted of them that a person has accepted."""
    first = facts[0]
    return add_fact(
        NewFact(
            text=text,
            scope=first.scope,
            owner=first.owner,
            label=mark_vouched(join_labels(fact.label for fact in facts)),
            writer="person",
            key=edit.key,
            session=edit.session,
            n=edit.n,
            pinned=any(fact.pinned for fact in facts),
            replaces=tuple(fact.id for fact in facts),
        ),
        edit.at,
        edit.keeping,
    )


def move_fact(
    fact: Fact, scope: Scope, owner: str, edit: FactEdit, *, held: bool = False
) -> tuple[Change, ...]:
    """Tell a fact to others from now on, or no longer. If that is held, the fact stays as it is and
    a second one waits for an owner."""
    moved = NewFact(
        text=fact.text,
        scope=scope,
        owner=owner,
        label=mark_vouched(fact.label),
        writer="person",
        key=edit.key,
        session=edit.session,
        n=edit.n,
        pinned=fact.pinned and not held,
        held=held,
        replaces=() if held else (fact.id,),
    )
    why = "made private" if scope == "user" else "shared"
    return (
        *add_fact(moved, edit.at, edit.keeping),
        close_moved_fact(fact.id, edit.at, why, edit.key),
    )


def prefer_fact(kept: Fact, wrong: Fact, at: float) -> tuple[Change, ...]:
    """Close a fact that another one, which stays, contradicts. What was said of it before is not
    gathered again."""
    return (close_fact(wrong.id, at, "contradicted", kept.id),)


def keep_both(one: Fact, other: Fact, at: float) -> tuple[Change, ...]:
    """Note that two facts hold although they look as if they could not. They are not asked about
    again."""
    done = Processed(kind=BOTH_HOLD, subject=format_pair(one, other), n=1, seen=1, at=at)
    return (mark_processed(done),)


def format_pair(one: Fact, other: Fact) -> str:
    """The subject of the mark of two facts, in whatever order they are given."""
    return " ".join(str(id_) for id_ in sorted((one.id, other.id)))
