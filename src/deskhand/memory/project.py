"""Files that show facts, and that people and agents write in: what was written comes back, and
nothing of it is lost.

What facts say stands between two marks; all else in the file is somebody's own. Both are compared
with what was there when the file was last looked at (`Base`), so that a line that went was taken
out by somebody, and one that came was written by somebody. Pure: text and rows in, text and rows
out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import SequenceMatcher

import msgspec

from .project_text import (
    Chunk,
    MemorySheetParts,
    Sheet,
    ShownFacts,
    read_entries,
    render_sheet,
    split_sheet,
)

MOST_ENTRIES = 500
"""So many entries of one file become facts; what comes behind them is only in the file."""
MIN_SIMILARITY = 0.6
COMPARED_CHARS = 300
MOST_PAIRS = 2_500
"""How alike two entries are of which one is an edit of the other, in their first characters. Where
somebody has written a file anew, that is not asked."""
MARKED_PART_BYTES = 4_096
"""No fact is put into the marked part beyond this size. What somebody wrote there may be longer."""


class MemoryEntry(msgspec.Struct, frozen=True):
    """Something that a file says, and the key of the fact that says it too. `own`: somebody wrote
    it there, not we. `held`: it was read while nobody had vouched for the file."""

    key: str
    text: str
    own: bool = True
    held: bool = False


class Base(msgspec.Struct, frozen=True):
    """What the file said when it was last looked at: in its marked part, and around it."""

    ours: tuple[MemoryEntry, ...] = ()
    theirs: tuple[MemoryEntry, ...] = ()
    version: int = 0


class New(msgspec.Struct, frozen=True):
    """A fact that somebody wrote into the file. `replaces` is the key of the one that they changed,
    or ''. `ours`: it stands in the marked part. `key` is new in this file."""

    key: str
    text: str
    replaces: str = ""
    ours: bool = False


class Merge(msgspec.Struct, frozen=True):
    """What is to be done: the file's `text` (None: leave it as it is), facts to add, keys of facts
    to close, and what the file says then. `left`: so many entries were too many."""

    text: str | None
    base: Base
    new: tuple[New, ...] = ()
    closed: tuple[str, ...] = ()
    dropped: int = 0


def merge_sheet(
    sheet: Sheet,
    text: str,
    base: Base,
    facts: Mapping[str, ShownFacts],
    open_: Collection[str],
    trusted: bool = True,
) -> Merge:
    """Bring a file and its facts together. `facts` are those that its marked part is to show, in
    order; `open_` the keys of all of its facts that still hold, of a log those that have not been
    erased. Of a file that is not `trusted` only what is new in it is taken, to be held: nothing is
    closed, replaced or written."""
    parts = split_sheet(sheet, text)
    chunks = [*parts.head, *parts.body, *parts.tail]
    gone = _match_entries(base, chunks, trusted)
    _adopt_known_facts(parts.body, facts)
    fresh = [chunk for chunk in chunks if chunk.text and not chunk.key]
    room = max(MOST_ENTRIES - sum(bool(chunk.key) for chunk in chunks), 0)
    fresh, left = fresh[:room], max(len(fresh) - room, 0)
    if not trusted:
        return _merge_untrusted(base, fresh, left)
    new = _find_new_facts(base, fresh, gone)
    replaced = {each.replaces for each in new}
    lost = [
        *(gone[True] if parts.marked else ()),
        *gone[False],
    ]  # who takes out the marks takes back no fact
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
    if (
        text_now is None
    ):  # it would be read as something else, behind the beginning of a comment, say
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
        return Merge(None, base, dropped=left)
    return Merge(text_now if text_now != text else None, now, tuple(new), closed, left)


def _make_entries(
    chunks: Iterable[Chunk], rendered: Collection[str] = ()
) -> tuple[MemoryEntry, ...]:
    return tuple(
        MemoryEntry(chunk.key, chunk.text, chunk.key not in rendered)
        for chunk in chunks
        if chunk.key
    )


def _render_merged(
    sheet: Sheet, parts: MemorySheetParts, body: Sequence[Chunk], wanted: Mapping[str, ShownFacts]
) -> str | None:
    """The file with this in its marked part; None where that would not be read from it again."""
    text = render_sheet(sheet, parts, body, [each.raw for each in wanted.values()])
    said = [(chunk.ours, chunk.text) for chunk in (*parts.head, *body) if chunk.text]
    said += [(True, each.text) for each in wanted.values()]
    said += [(False, chunk.text) for chunk in parts.tail if chunk.text]
    return text if read_entries(sheet, text) == said else None


def _match_entries(
    base: Base, chunks: Sequence[Chunk], trusted: bool
) -> dict[bool, list[MemoryEntry]]:
    """Give every entry that was there before its key, wherever it stands now. Returns what is there
    no more: of the marked part (True), and of the rest. What was held is new again, once somebody
    vouches for the file."""
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


def _adopt_known_facts(body: Sequence[Chunk], facts: Mapping[str, ShownFacts]) -> None:
    """What somebody wrote into the marked part while it became a fact elsewhere is that fact."""
    taken = {chunk.key for chunk in body}
    keys = {shown.text: key for key, shown in reversed(list(facts.items())) if key not in taken}
    for chunk in body:
        if chunk.text and not chunk.key:
            chunk.key = keys.pop(chunk.text, "")


def _merge_untrusted(base: Base, fresh: Sequence[Chunk], left: int) -> Merge:
    if not fresh:
        return Merge(None, base, dropped=left)
    new = tuple(New(f"{base.version + 1}:{at}", chunk.text) for at, chunk in enumerate(fresh))
    held = tuple(MemoryEntry(each.key, each.text, True, True) for each in new)
    return Merge(None, Base(base.ours, (*base.theirs, *held), base.version + 1), new, (), left)


def _find_new_facts(
    base: Base, fresh: Sequence[Chunk], gone: Mapping[bool, Sequence[MemoryEntry]]
) -> list[New]:
    """What somebody wrote: what is most like something that went from the same part is an edit of
    that."""
    before = {place: list(entries) for place, entries in gone.items()}
    held = {each.text: each for each in base.theirs if each.held}
    found: list[New] = []
    for at, chunk in enumerate(fresh):
        others = before[chunk.ours]
        near = held.pop(chunk.text, None)
        if (
            near is None
            and len(fresh) * len(others) <= MOST_PAIRS
            and (near := _find_similar(chunk.text, others))
        ):
            others.remove(near)
        chunk.key = f"{base.version + 1}:{at}"
        found.append(New(chunk.key, chunk.text, near.key if near else "", chunk.ours))
    return found


def _find_similar(text: str, others: Sequence[MemoryEntry]) -> MemoryEntry | None:
    best = None
    worth = MIN_SIMILARITY
    for each in others:
        matcher = SequenceMatcher(
            None, each.text[:COMPARED_CHARS], text[:COMPARED_CHARS], autojunk=False
        )
        if (
            matcher.real_quick_ratio() >= worth
            and matcher.quick_ratio() >= worth
            and matcher.ratio() >= worth
        ):
            best = each
            worth = matcher.ratio()
    return best


def _select_facts(
    facts: Mapping[str, ShownFacts], standing: Collection[str], body: Sequence[Chunk]
) -> list[str]:
    """The facts that come into the marked part: as many as there is room for, the first ones."""
    room = MARKED_PART_BYTES - sum(len(chunk.raw.encode()) for chunk in body)
    wanted: list[str] = []
    for key, shown in facts.items():
        if key not in standing:
            room -= len(shown.raw.encode()) + 2
            if room < 0:
                break
            wanted.append(key)
    return wanted
