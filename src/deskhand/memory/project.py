"""Merges a file of notes with the facts that it shows. Pure functions.

The facts stand between two marks, and everything else in the file belongs to people and agents.
Both parts are compared with what was there at the last merge (`Base`): an entry that is gone was
deleted by somebody, and a new one was written by somebody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher

import msgspec

from .project_text import (
    Chunk,
    MemorySheetParts,
    RenderedFact,
    Sheet,
    read_entries,
    render_sheet,
    split_sheet,
)

MOST_ENTRIES = 500
"""At most so many entries of a file become facts. The rest is only in the file."""
MIN_SIMILARITY = 0.6
COMPARED_CHARS = 300
MOST_PAIRS = 2_500
"""An entry counts as an edit of another one when they are so similar, in their first characters.
Not checked when more than MOST_PAIRS pairs would have to be compared."""
MARKED_PART_BYTES = 4_096
"""No fact is added to the marked part beyond this size. What people wrote there may be longer."""


class MemoryEntry(msgspec.Struct, frozen=True):
    """An entry of a file, and the key of the fact that says the same. `own`: somebody else than
    Deskhand wrote it. `held`: it was read while the file was not trusted."""

    key: str
    text: str
    own: bool = True
    held: bool = False


class Base(msgspec.Struct, frozen=True):
    """The entries of a file at the last merge: in its marked part (`ours`) and around it."""

    ours: tuple[MemoryEntry, ...] = ()
    theirs: tuple[MemoryEntry, ...] = ()
    version: int = 0


class NewEntry(msgspec.Struct, frozen=True):
    """An entry that somebody wrote into the file, under a new key. `replaces` is the key of the
    entry that they edited, or ''. `ours`: it is in the marked part."""

    key: str
    text: str
    replaces: str = ""
    ours: bool = False


class Merge(msgspec.Struct, frozen=True):
    """What to do: the new `text` of the file (None to leave it), the entries that become facts, the
    keys of facts to close, and the base of the next merge. `dropped` entries were too many."""

    text: str | None
    base: Base
    new: tuple[NewEntry, ...] = ()
    closed: tuple[str, ...] = ()
    dropped: int = 0


def merge_sheet(
    sheet: Sheet,
    text: str,
    base: Base,
    facts: Mapping[str, RenderedFact],
    open_: Collection[str],
    trusted: bool = True,
) -> Merge:
    """Merge a file with its facts.

    `facts` are those that the marked part is to show, in order. `open_` are the keys of all facts
    of the file that are open; for a log, of all that were not erased. Of a file that is not
    `trusted` only new entries are taken, as held facts: nothing is closed, replaced or written.
    """
    parts = split_sheet(sheet, text)
    chunks = [*parts.head, *parts.body, *parts.tail]
    gone = _match_entries(base, chunks, trusted)
    _adopt_known_facts(parts.body, facts)
    fresh = [chunk for chunk in chunks if chunk.text and not chunk.key]
    room = max(MOST_ENTRIES - sum(bool(chunk.key) for chunk in chunks), 0)
    dropped = max(len(fresh) - room, 0)
    fresh = fresh[:room]
    if not trusted:
        return _merge_untrusted(base, fresh, dropped)
    new = _find_new_facts(base, fresh, gone)
    replaced = {each.replaces for each in new}
    # Removing the marks deletes no fact.
    lost = [*gone[True], *gone[False]] if parts.marked else gone[False]
    closed = tuple(
        each.key
        for each in lost
        if each.key in open_ and each.key not in replaced and not each.held
    )
    over = {each.key for each in base.ours if each.key not in open_ and not each.own}
    body = [chunk for chunk in parts.body if chunk.key not in over]
    standing = {chunk.key for chunk in chunks} | replaced | {each.key for each in lost}
    wanted = {key: facts[key] for key in _select_facts(facts, standing, body)}
    text_now = _render_merged(sheet, parts, body, wanted)
    if text_now is None:  # it would be read differently, say behind the start of a comment
        wanted = {}
        text_now = _render_merged(sheet, parts, body, {})
    if text_now is None:
        body = list(parts.body)
        text_now = text
    rendered = {each.key for each in base.ours if not each.own} - replaced
    now = Base(
        (
            *_make_entries(body, rendered),
            *(MemoryEntry(key, shown.text, own=False) for key, shown in wanted.items()),
        ),
        _make_entries([*parts.head, *parts.tail]),
        base.version + 1,
    )
    if (now.ours, now.theirs, text_now) == (base.ours, base.theirs, text) and not closed:
        return Merge(None, base, dropped=dropped)
    return Merge(text_now if text_now != text else None, now, tuple(new), closed, dropped)


def _make_entries(
    chunks: Iterable[Chunk], rendered: Collection[str] = ()
) -> tuple[MemoryEntry, ...]:
    return tuple(
        MemoryEntry(chunk.key, chunk.text, chunk.key not in rendered)
        for chunk in chunks
        if chunk.key
    )


def _render_merged(
    sheet: Sheet, parts: MemorySheetParts, body: Sequence[Chunk], wanted: Mapping[str, RenderedFact]
) -> str | None:
    """The file with this marked part, or None when it could not be read back the same."""
    text = render_sheet(sheet, parts, body, [each.raw for each in wanted.values()])
    said = [(chunk.ours, chunk.text) for chunk in (*parts.head, *body) if chunk.text]
    said += [(True, each.text) for each in wanted.values()]
    said += [(False, chunk.text) for chunk in parts.tail if chunk.text]
    return text if read_entries(sheet, text) == said else None


def _match_entries(
    base: Base, chunks: Sequence[Chunk], trusted: bool
) -> dict[bool, list[MemoryEntry]]:
    """Give entries that were there before their keys, wherever they stand now. Returns the entries
    that are gone, from the marked part (True) and from the rest (False). Held entries count as new
    once the file is trusted."""
    left = {
        True: list(base.ours),
        False: [each for each in base.theirs if not (each.held and trusted)],
    }
    for same_place in (True, False):
        for place in (True, False):
            keys: dict[str, list[MemoryEntry]] = defaultdict(list)
            for each in reversed(left[place]):
                keys[each.text].append(each)
            for chunk in chunks:
                if (
                    chunk.text
                    and not chunk.key
                    and (chunk.ours == place) == same_place
                    and keys.get(chunk.text)
                ):
                    chunk.key = keys[chunk.text].pop().key
            left[place] = [
                each for each in left[place] if any(each is other for other in keys[each.text])
            ]
    return left


def _adopt_known_facts(body: Sequence[Chunk], facts: Mapping[str, RenderedFact]) -> None:
    """An entry in the marked part that says the same as a known fact is that fact."""
    taken = {chunk.key for chunk in body}
    keys = {shown.text: key for key, shown in reversed(list(facts.items())) if key not in taken}
    for chunk in body:
        if chunk.text and not chunk.key:
            chunk.key = keys.pop(chunk.text, "")


def _merge_untrusted(base: Base, fresh: Sequence[Chunk], dropped: int) -> Merge:
    if not fresh:
        return Merge(None, base, dropped=dropped)
    new = tuple(NewEntry(f"{base.version + 1}:{at}", chunk.text) for at, chunk in enumerate(fresh))
    held = tuple(MemoryEntry(each.key, each.text, True, True) for each in new)
    now = Base(base.ours, (*base.theirs, *held), base.version + 1)
    return Merge(None, now, new, (), dropped)


def _find_new_facts(
    base: Base, fresh: Sequence[Chunk], gone: Mapping[bool, Sequence[MemoryEntry]]
) -> list[NewEntry]:
    """The new entries. One that is similar to an entry that is gone from the same part is an edit
    of it."""
    before = {place: list(entries) for place, entries in gone.items()}
    held = {each.text: each for each in base.theirs if each.held}
    found: list[NewEntry] = []
    for at, chunk in enumerate(fresh):
        others = before[chunk.ours]
        near = held.pop(chunk.text, None)
        if near is None and len(fresh) * len(others) <= MOST_PAIRS:
            near = _find_similar(chunk.text, others)
            if near is not None:
                others.remove(near)
        chunk.key = f"{base.version + 1}:{at}"
        found.append(NewEntry(chunk.key, chunk.text, near.key if near else "", chunk.ours))
    return found


def _find_similar(text: str, others: Sequence[MemoryEntry]) -> MemoryEntry | None:
    best = None
    worth = MIN_SIMILARITY
    for each in others:
        matcher = SequenceMatcher(
            None, each.text[:COMPARED_CHARS], text[:COMPARED_CHARS], autojunk=False
        )
        if matcher.real_quick_ratio() < worth or matcher.quick_ratio() < worth:
            continue  # both are cheap upper bounds
        if matcher.ratio() >= worth:
            best = each
            worth = matcher.ratio()
    return best


def _select_facts(
    facts: Mapping[str, RenderedFact], standing: Collection[str], body: Sequence[Chunk]
) -> list[str]:
    """The keys of the facts to add to the marked part: the first ones, as many as fit."""
    room = MARKED_PART_BYTES - sum(len(chunk.raw.encode()) for chunk in body)
    wanted: list[str] = []
    for key, shown in facts.items():
        if key not in standing:
            room -= len(shown.raw.encode()) + 2
            if room < 0:
                break
            wanted.append(key)
    return wanted
