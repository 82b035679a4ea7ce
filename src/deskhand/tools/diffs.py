"""What is different between two versions of a file, as people read it: a unified diff, cut where it
is long."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

MAX_TEXT_BYTES = 1 << 20
"""A larger file has no diff."""
MAX_DIRECT_PAIRS = 40_000
"""So many pairs of lines are compared one by one; what is larger is first split at lines that stand
once in both."""
MAX_PAIRS = 4_000_000
NOTE_CHARS = 40


class _Same(NamedTuple):
    """So many lines that are the same in both, and where they begin."""

    old: int
    new: int
    size: int


def unified_diff(
    path: str, old: bytes | None, new: bytes | None, *, lines: int, chars: int, around: int = 3
) -> str:
    """A unified diff of at most so many lines and characters, which says how many lines it leaves
    out. None stands for no file. '' where nothing is different; a sentence where there is no text
    to compare.

    The time that it takes grows with the files, whatever stands in them: where they are alike in
    too many ways, what lies between two safe places counts as replaced.
    """
    before = decode_text(old)
    after = decode_text(new)
    if before is None or after is None:
        return f"{len(old or b''):,} bytes before, {len(new or b''):,} after"
    was = _split_lines(before)
    now = _split_lines(after)
    found = list[str]()
    for hunk in _iter_hunks(was, now, around):
        found += hunk
    if not found:
        return ""
    heading = [
        f"--- {'/dev/null' if old is None else path}",
        f"+++ {'/dev/null' if new is None else path}",
    ]
    return _truncate([*heading, *found], lines, chars)


def decode_text(data: bytes | None) -> str | None:
    """What the bytes say; None where they are no text, or too much. No file says nothing."""
    if data is None:
        return ""
    try:
        return data.decode() if len(data) <= MAX_TEXT_BYTES and b"\0" not in data else None
    except UnicodeDecodeError:
        return None


def _split_lines(text: str) -> list[str]:
    """The lines with their ends. Only LF ends one: what else may end a line is to be seen in it."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _truncate(lines: Sequence[str], most: int, chars: int) -> str:
    kept: list[str] = []
    room = chars - NOTE_CHARS
    for line in lines[:most]:
        if room <= 0:
            break
        kept.append(line if len(line) <= room else f"{line[:room]}…")
        room -= len(line) + 1
    left_out = len(lines) - len(kept)
    if left_out:
        kept.append(f"… {left_out:,} more lines")
    return "\n".join(kept)


def _iter_hunks(old: Sequence[str], new: Sequence[str], around: int) -> Iterator[list[str]]:
    """Each change with the lines around it; changes that are near each other are one."""
    same = _matching_blocks(old, new)
    groups: list[list[tuple[int, int, int, int]]] = []
    at_old = at_new = 0
    for each in same:
        if at_old < each.old or at_new < each.new:
            change = (at_old, each.old, at_new, each.new)
            if groups and at_old - groups[-1][-1][1] <= 2 * around:
                groups[-1].append(change)
            else:
                groups.append([change])
        at_old = each.old + each.size
        at_new = each.new + each.size
    for group in groups:
        yield _render_hunk(old, new, group, around)


def _render_hunk(
    old: Sequence[str], new: Sequence[str], group: Sequence[tuple[int, int, int, int]], around: int
) -> list[str]:
    before = min(around, group[0][0])
    first_old = group[0][0] - before
    first_new = group[0][2] - before
    after = min(around, len(old) - group[-1][1])
    last_old = group[-1][1] + after
    last_new = group[-1][3] + after
    body: list[str] = []
    at = first_old
    for from_old, to_old, from_new, to_new in group:
        body += _prefix_lines(" ", old[at:from_old])
        body += _prefix_lines("-", old[from_old:to_old])
        body += _prefix_lines("+", new[from_new:to_new])
        at = to_old
    body += _prefix_lines(" ", old[at:last_old])
    return [
        f"@@ -{_format_range(first_old, last_old)} +{_format_range(first_new, last_new)} @@",
        *body,
    ]


def _prefix_lines(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield sign + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _format_range(first: int, last: int) -> str:
    count = last - first
    return f"{first + (count > 0)}" + (f",{count}" if count != 1 else "")


# ------------------------------------------------------------------ what is the same


def _matching_blocks(old: Sequence[str], new: Sequence[str]) -> list[_Same]:
    """Runs of lines that are the same, in order; the last is empty, at the end of both."""
    found: list[_Same] = []
    left = MAX_PAIRS
    at_old = at_new = 0
    for each in [*_anchors(old, new), _Same(len(old), len(new), 0)]:
        size = (each.old - at_old) * (each.new - at_new)
        if 0 < size <= min(MAX_DIRECT_PAIRS, left):
            left -= size
            matcher = SequenceMatcher(
                None, old[at_old : each.old], new[at_new : each.new], autojunk=False
            )
            found += [
                _Same(at_old + a, at_new + b, n) for a, b, n in matcher.get_matching_blocks() if n
            ]
        found.append(each)
        at_old = each.old + each.size
        at_new = each.new + each.size
    return found


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[_Same]:
    """What is the same at both ends, and between them the longest series of lines that stand once
    in each."""
    most = min(len(old), len(new))
    head = next((n for n in range(most) if old[n] != new[n]), most)
    tail = next((n for n in range(most - head) if old[-1 - n] != new[-1 - n]), most - head)
    inner = (head, len(old) - tail), (head, len(new) - tail)
    found = [_Same(0, 0, head)]
    if (inner[0][1] - head) * (inner[1][1] - head) > MAX_DIRECT_PAIRS:
        found += _longest_series(_unique_lines(old, *inner[0]), _unique_lines(new, *inner[1]))
    return [*found, _Same(inner[0][1], inner[1][1], tail)]


def _unique_lines(lines: Sequence[str], first: int, last: int) -> dict[str, int]:
    """Where each line stands that stands once between these."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    for at in range(first, last):
        if found.setdefault(lines[at], at) != at:
            twice.add(lines[at])
    return {line: at for line, at in found.items() if line not in twice}


def _longest_series(old: dict[str, int], new: dict[str, int]) -> list[_Same]:
    """The longest that is in order in both (patience sorting)."""
    tops: list[int] = []
    piles: list[tuple[int, int, int]] = []
    ends: list[int] = []
    for line, at_old in old.items():
        if (at_new := new.get(line)) is None:
            continue
        pile = bisect_left(tops, at_new)
        tops[pile : pile + 1] = [at_new]
        ends[pile : pile + 1] = [len(piles)]
        piles.append((at_old, at_new, ends[pile - 1] if pile else -1))
    found: list[_Same] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        at_old, at_new, at = piles[at]
        found.append(_Same(at_old, at_new, 1))
    return found[::-1]
