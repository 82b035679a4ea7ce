"""Takes back what a call did: makes files and key-values what they were before it, if they still
are what it made them.

An undo is an effect itself: what it overwrites is kept, and it can be undone. It may be cut off
anywhere: what it wants is noted first, and brought about at the next start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from ..policy.visible import escape_invisible
from ..types.commit import Change
from ..types.labels import LOCAL, Label
from . import tree
from .notes import By, RunningEffect
from .states import ChangedPath, digest_of
from .watched_folder import WatchedFolder, marked
from .written import rows_of_written

KV = "kv:"
TASKS = "task:"
"""The `folder` of effects on key-values, and of those on tasks."""
UNKNOWN = "?"
"""The state after a change of which only the state before was noted."""


class UndoItem(msgspec.Struct, frozen=True, gc=False):
    """What an effect changed: a path in its folder, or a key-value or a task as JSON. `blob` holds
    the bytes of before."""

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
        if text.startswith("["):
            with suppress(ValueError, RecursionError):
                text = "/".join(
                    part for part in msgspec.json.decode(text, type=tuple[str, str]) if part
                )
        return escape_invisible(text)


class LeftUndone(msgspec.Struct, frozen=True, gc=False):
    """What was not put back, and why. `words` say what the system said, or what state it is in that
    was changed."""

    place: str
    why: Literal["changed", "lost", "failed"]
    words: str = ""


class UndoneEffect(msgspec.Struct, frozen=True):
    """What came of taking back an effect: the places that are as before, those that are not, and
    the rows to commit. Without rows nothing was done: something has changed since. What is
    `running` is to leave when they are committed."""

    back: tuple[str, ...]
    left: tuple[LeftUndone, ...]
    rows: tuple[Change, ...] = ()
    running: RunningEffect | None = None

    @property
    def refused(self) -> bool:
        return not self.rows


def take_back(
    ground: WatchedFolder, items: Sequence[UndoItem], by: By, force: bool, label: Label = LOCAL
) -> UndoneEffect:
    """Make the paths of an effect what they were before it. All or nothing where something was
    changed since, unless by `force`. What comes back counts as of this label until its marks are
    written. It blocks."""
    shadow = ground.shadow
    paths = [each.path for each in items]
    with shadow.lock:
        ground.look_at(paths)
        now = {path: seen.state for path in paths if (seen := shadow.seen.get(path)) is not None}
        changed = [each for each in items if now.get(each.path) not in (each.after, each.before)]
        if changed and not force:
            return UndoneEffect(
                (),
                tuple(
                    LeftUndone(each.shown, "changed", now.get(each.path) or "") for each in changed
                ),
            )
        wanted, left = _wanted(ground, items, now)
        planned = [ChangedPath(path, now.get(path), state) for path, state in wanted.items()]
        shadow.into_blobs([digest for each in planned if (digest := digest_of(each.before))])
        one = ground.enter(by, label)
        one.add(planned)
        failed = ground.bring_about(one)
        known = {each.path for each in items}
        left += [
            LeftUndone(_shown(path), "failed", why) for path, why in failed.items() if path in known
        ]
        ground.end(one, by.at)
        missed = {each.place for each in left}
        back = tuple(each.shown for each in items if each.shown not in missed)
        rows = ground.rows(one) or marked(by)
        if ground.owned:
            rows += rows_of_written(
                by, ground.real, ground.for_review(one), outside=False, has=shadow.has
            )
        return UndoneEffect(back, tuple(left), rows, one)


def _wanted(
    ground: WatchedFolder, items: Sequence[UndoItem], now: Mapping[str, str]
) -> tuple[dict[str, str | None], list[LeftUndone]]:
    """What has to be made so, and what cannot be, as it was not kept."""
    wanted = dict[str, str | None]()
    left = list[LeftUndone]()
    for each in items:
        if now.get(each.path) == each.before:
            continue
        heavy = each.before is None and now[each.path][0] == "h"
        if heavy or (each.before is not None and not _kept(ground, each)):
            left.append(LeftUndone(each.shown, "lost"))
        else:
            wanted[each.path] = each.before
    for path in [path for path, state in wanted.items() if state is not None]:
        for folder in above(path):
            if folder not in wanted and tree.status(ground.root, folder) is None:
                wanted[folder] = "d0755"
    return wanted, left


def _kept(ground: WatchedFolder, item: UndoItem) -> bool:
    state = item.before or ""
    if state[:1] == "f":
        try:
            ground.shadow.open(digest_of(state)).close()
        except OSError:
            return False
    return state[:1] in "fld"


def above(path: str) -> list[str]:
    """The folders around a path, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _shown(path: str) -> str:
    return UndoItem(os.fsencode(path), None, None).shown


def take_back_values(
    items: Sequence[UndoItem], now: Mapping[bytes, str | None], by: By, force: bool
) -> UndoneEffect:
    """The same for key-values, of which `now` holds the states. Pure: the rows do it."""
    changed = [each for each in items if now[each.place] not in (each.after, each.before)]
    if changed and not force:
        return UndoneEffect(
            (), tuple(LeftUndone(each.shown, "changed", now[each.place] or "") for each in changed)
        )
    rows = [begun(by, KV)]
    for each in items:
        namespace, key = msgspec.json.decode(each.place, type=tuple[str, str])
        place = (by.key, each.place, namespace, key)
        rows.append(Change("effect_kv_before", place))
        if each.before is None:
            rows.append(Change("kv_delete", (by.agent, namespace, key)))
        else:
            value, expires_at, label = msgspec.json.decode(
                each.before[2:], type=tuple[str, float | None, str]
            )
            row = (by.agent, namespace, key, value, expires_at, bytes.fromhex(label) or None)
            rows.append(Change("effect_kv_put", row))
        rows.append(Change("effect_kv_after", place))
    return UndoneEffect(
        tuple(each.shown for each in items), (), (*rows, *closing(by.key), *marked(by))
    )


def begun(by: By, folder: str) -> Change:
    """The row of an effect on key-values or tasks; what it changes comes behind it."""
    return Change(
        "effect_add",
        (by.key, by.agent, by.session, by.person, by.tool, folder, by.what, by.at, by.undoes),
    )


def closing(key: str) -> tuple[Change, ...]:
    """The rows that drop what an effect did not change."""
    return (Change("effect_same", (key,)), Change("effect_none", (key,)))
