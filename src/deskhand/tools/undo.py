"""Takes back what a call did: makes files and key-values what they were before it, if they still are what it made them.

An undo is an effect itself: what it overwrites is kept, and it can be undone. It may be cut off anywhere: what it has
put back already is found to be so the next time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ..store.blobs import PREFIX
from ..types.commit import Change
from . import tree
from .notes import By
from .states import Changed, digest_of
from .watch import Ground, rows_of

KV = "kv:"
"""The `folder` of effects on key-values."""
UNKNOWN = "?"
"""The state after a change of which only the state before was noted."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """What an effect changed: a path in its folder, or a key-value as JSON. `blob` holds the bytes of before."""

    place: bytes
    before: str | None
    after: str | None
    blob: str | None = None

    @property
    def path(self) -> str:
        return os.fsdecode(self.place)

    @property
    def shown(self) -> str:
        """For people."""
        text = self.place.decode(errors="backslashreplace")
        return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Left(msgspec.Struct, frozen=True, gc=False):
    """What was not put back, and why."""

    place: str
    why: Literal["changed", "lost", "failed"]
    words: str = ""


class Taken(msgspec.Struct, frozen=True):
    """What came of taking back an effect: the places that are as before, those that are not, and the rows to commit.
    Without rows nothing was done: something has changed since."""

    back: tuple[str, ...]
    left: tuple[Left, ...]
    rows: tuple[Change, ...] = ()

    @property
    def refused(self) -> bool:
        return not self.rows


def take_back(ground: Ground, items: Sequence[Item], by: By, force: bool) -> Taken:
    """Make the paths of an effect what they were before it. All or nothing where something was changed since, unless
    by `force`. It blocks."""
    shadow, root = ground.shadow, ground.root
    paths = [each.path for each in items]
    with shadow.lock:
        ground.look_at(paths)
        now = {path: seen.state for path in paths if (seen := shadow.seen.get(path)) is not None}
        changed = [each for each in items if now.get(each.path) not in (each.after, each.before)]
        if changed and not force:
            return Taken((), tuple(Left(each.shown, "changed") for each in changed))
        wanted, left = _wanted(ground, items, now)
        shadow.into_blobs([digest for path in wanted if (digest := digest_of(now.get(path)))])
        failed = tree.put(root, wanted, shadow.open)
        ground.look_at(list(wanted))
        left += [Left(_shown(path), "failed", why) for path, why in failed.items() if path not in _added(wanted, paths)]
        done = [Changed(path, now.get(path), _state(ground, path)) for path in wanted]
        # What a cut-off undo had put back already is of this one.
        done += [Changed(each.path, each.after, each.before) for each in items if _already(each, now, wanted)]
        effective = [each for each in done if each.before != each.after]
        rows = [*rows_of(by, ground.real, effective, shadow.has), *_labels(ground, effective, by.at)]
        missed = {each.place for each in left}
        back = tuple(each.shown for each in items if each.shown not in missed)
        return Taken(back, tuple(left), (*rows, *marked(by)))


def _wanted(ground: Ground, items: Sequence[Item], now: Mapping[str, str]) -> tuple[dict[str, str | None], list[Left]]:
    """What has to be made so, and what cannot be, as it was not kept."""
    wanted, left = dict[str, str | None](), list[Left]()
    for each in items:
        if now.get(each.path) == each.before:
            continue
        heavy = each.before is None and now[each.path][0] == "h"
        if heavy or (each.before is not None and not _kept(ground, each)):
            left.append(Left(each.shown, "lost"))
        else:
            wanted[each.path] = each.before
    for path in [path for path, state in wanted.items() if state is not None]:
        for above in _above(path):
            if above not in wanted and tree.status(ground.root, above) is None:
                wanted[above] = "d0755"
    return wanted, left


def _kept(ground: Ground, item: Item) -> bool:
    state = item.before or ""
    if state[:1] == "f":
        try:
            ground.shadow.open(digest_of(state)).close()
        except OSError:
            return False
    return state[:1] in "fld"


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _added(wanted: Mapping[str, str | None], paths: Sequence[str]) -> set[str]:
    return {*wanted} - {*paths}


def _already(item: Item, now: Mapping[str, str], wanted: Mapping[str, str | None]) -> bool:
    as_before = now.get(item.path) == item.before and item.before != item.after and item.after != UNKNOWN
    return as_before and item.path not in wanted


def _state(ground: Ground, path: str) -> str | None:
    seen = ground.shadow.seen.get(path)
    return None if seen is None else seen.state


def _labels(ground: Ground, changed: Sequence[Changed], at: float) -> list[Change]:
    """Whose word these bytes are: what it was when they were there."""
    rows = []
    for each in changed:
        if each.path.isprintable():
            rows.append(Change("file_label_drop", (f"{ground.real}/{each.path}",)))
            if digest := digest_of(each.after):
                rows.append(Change("file_label_restore", (f"{ground.real}/{each.path}", PREFIX + digest, at)))
    return rows


def _shown(path: str) -> str:
    return Item(os.fsencode(path), None, None).shown


def marked(by: By) -> tuple[Change, ...]:
    """The row that says that this undo has happened."""
    return (Change("effect_undone", (by.undoes, by.at)),)


def take_back_values(items: Sequence[Item], now: Mapping[bytes, str | None], by: By, force: bool) -> Taken:
    """The same for key-values, of which `now` holds the states. Pure: the rows do it."""
    changed = [each for each in items if now[each.place] not in (each.after, each.before)]
    if changed and not force:
        return Taken((), tuple(Left(each.shown, "changed") for each in changed))
    rows = [Change("effect_add", (by.key, by.agent, by.session, by.person, by.tool, KV, by.what, by.at, by.undoes))]
    for each in items:
        namespace, key = msgspec.json.decode(each.place, type=tuple[str, str])
        place = (by.key, each.place, namespace, key)
        rows.append(Change("effect_kv_before", place))
        if each.before is None:
            rows.append(Change("kv_delete", (by.agent, namespace, key)))
        else:
            value, expires_at, label = msgspec.json.decode(each.before[2:], type=tuple[str, float | None, str])
            row = (by.agent, namespace, key, value, expires_at, bytes.fromhex(label) or None)
            rows.append(Change("effect_kv_put", row))
        rows.append(Change("effect_kv_after", place))
    return Taken(tuple(each.shown for each in items), (), (*rows, *closing(by.key), *marked(by)))


def closing(key: str) -> tuple[Change, ...]:
    """The rows that drop what an effect did not change."""
    return (Change("effect_same", (key,)), Change("effect_none", (key,)))
