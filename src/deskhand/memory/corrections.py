"""What people change by hand: a fact is corrected, merged with another, told to others or to nobody
else, or preferred to one that contradicts it.

A fact is never rewritten. Each change writes a new fact that replaces the old one, or closes one of
two, so `undo_last_change` takes it back.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
from .queries import Processed, mark_processed

BOTH_HOLD = "both_hold"
"""The kind of mark under which pairs are kept that a person said both hold."""


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a person makes, `at` seconds since the epoch. The fact that it writes is found
    under `key`, and comes from the event `n` of `session`, as those before it do."""

    who: Principal
    at: float
    key: str
    session: str
    n: int
    keeping: Keeping = KEEPING


def make_edit_key(facts: Sequence[Fact], unique: str) -> str:
    """The key of a fact that replaces these. It begins with their kind, by which files of notes
    show them."""
    return f"{common_kind(fact.key for fact in facts) or 'person'}:{unique}"


def correct_fact(fact: Fact, text: str, edit: Edit) -> tuple[Change, ...]:
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


def merge_facts(facts: Sequence[Fact], text: str, edit: Edit) -> tuple[Change, ...]:
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
    fact: Fact, scope: Scope, owner: str, edit: Edit, *, held: bool = False
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
