"""Takes back what a call did: makes files and key-values what they were before it, if they still
are what it made them.

An undo is an effect itself: what it overwrites is kept, and it can be undone. It may be cut off
anywhere: what it wants is noted first, and brought about at the next start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ..types.commit import Change
from ..types.labels import LOCAL, Label
from . import tree
from .journal import (
    KV_FOLDER,
    UndoItem,
    add_entry,
    drop_unchanged,
    note_value_change,
)
from .notes import By, RunningEffect
from .path_states import ChangedPath, parse_digest
from .queries import drop_value, restore_value
from .watched_folder import WatchedFolder, make_undone_rows
from .written import make_review_rows


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
    def is_refused(self) -> bool:
        return not self.rows


def undo_files(
    ground: WatchedFolder, items: Sequence[UndoItem], by: By, force: bool, label: Label = LOCAL
) -> UndoneEffect:
    """Make the paths of an effect what they were before it. All or nothing where something was
    changed since, unless by `force`. What comes back counts as of this label until its marks are
    written. It blocks."""
    shadow = ground.shadow
    paths = [each.path for each in items]
    with shadow.lock:
        ground.scan_paths(paths)
        now = {path: shadow.entries[path].state for path in paths if path in shadow.entries}
        changed = [each for each in items if now.get(each.path) not in (each.after, each.before)]
        if changed and not force:
            return UndoneEffect((), tuple(_describe_changed(each, now) for each in changed))

        wanted, left = _plan_states(ground, items, now)
        planned = [ChangedPath(path, now.get(path), state) for path, state in wanted.items()]
        digests = [parse_digest(each.before) for each in planned]
        shadow.move_to_blobs([digest for digest in digests if digest])
        one = ground.register(by, label)
        one.add(planned)
        failed = ground.apply_planned(one)
        known = set(paths)
        for path, why in failed.items():
            if path in known:
                left.append(LeftUndone(_display_path(path), "failed", why))
        ground.mark_ended(one, by.at)

        missed = {each.place for each in left}
        back = tuple(each.display_name for each in items if each.display_name not in missed)
        rows = ground.effect_rows(one) or make_undone_rows(by)
        if ground.owned:
            rows += make_review_rows(
                by, ground.real, ground.list_for_review(one), outside=False, has=shadow.has_blob
            )
        return UndoneEffect(back, tuple(left), rows, one)


def _describe_changed(item: UndoItem, now: Mapping[str, str]) -> LeftUndone:
    return LeftUndone(item.display_name, "changed", now.get(item.path, ""))


def _plan_states(
    ground: WatchedFolder, items: Sequence[UndoItem], now: Mapping[str, str]
) -> tuple[dict[str, str | None], list[LeftUndone]]:
    """What has to be made so, and what cannot be, as it was not kept."""
    wanted = dict[str, str | None]()
    left = list[LeftUndone]()
    for each in items:
        if now.get(each.path) == each.before:
            continue
        heavy = each.before is None and now[each.path][0] == "h"
        if heavy or (each.before is not None and not _is_kept(ground, each)):
            left.append(LeftUndone(each.display_name, "lost"))
        else:
            wanted[each.path] = each.before
    made = [path for path, state in wanted.items() if state is not None]
    for path in made:
        for folder in parent_folders(path):
            if folder not in wanted and tree.stat_path(ground.root, folder) is None:
                wanted[folder] = "d0755"
    return wanted, left


def _is_kept(ground: WatchedFolder, item: UndoItem) -> bool:
    state = item.before or ""
    if state[:1] == "f":
        try:
            ground.shadow.open(parse_digest(state)).close()
        except OSError:
            return False
    return state[:1] in "fld"


def parent_folders(path: str) -> list[str]:
    """The folders around a path, the outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def _display_path(path: str) -> str:
    return UndoItem(os.fsencode(path), None, None).display_name


def undo_values(
    items: Sequence[UndoItem], now: Mapping[bytes, str | None], by: By, force: bool
) -> UndoneEffect:
    """The same for key-values, of which `now` holds the states. Pure: the rows do it."""
    changed = [each for each in items if now[each.place] not in (each.after, each.before)]
    if changed and not force:
        return UndoneEffect(
            (),
            tuple(
                LeftUndone(each.display_name, "changed", now[each.place] or "") for each in changed
            ),
        )
    rows = [add_entry(by, KV_FOLDER)]
    for each in items:
        namespace, key = msgspec.json.decode(each.place, type=tuple[str, str])
        if each.before is None:
            change = drop_value(by.agent, namespace, key)
        else:
            change = restore_value(by.agent, namespace, key, each.before)
        rows += note_value_change(by.key, namespace, key, change)
    return UndoneEffect(
        tuple(each.display_name for each in items),
        (),
        (*rows, *drop_unchanged(by.key), *make_undone_rows(by)),
    )
