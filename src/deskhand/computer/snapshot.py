"""A tree of elements as text for a model: indented, each element one line that no name can forge,
within a number of characters, or only what has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from ..tools.documents.invisible_characters import escape_invisible
from .elements import Element, find_elements, list_paths, quote

DEFAULT_CHARS = 14_000
"""About 4,000 tokens."""
_CAPS = (200, 80, 40, 20, 10, 6, 4, 2)
"""So many children of an element are shown: the first of these with which all fits."""
MAX_NAME_CHARS = 120
MAX_TEXT_CHARS = 600
MAX_DEPTH = 40
MAX_FOUND = 30
FOCUSED = " focused"
"""Ends the line of what has the focus. That it moves is no change that is told."""
_UNSHOWN_STATES = frozenset(("clickable", "editable", "focused"))


class SnapshotLine(msgspec.Struct, frozen=True):
    """A line without its indentation, and how deep it stands."""

    depth: int
    text: str


def render_snapshot(root: Element, limit: int = DEFAULT_CHARS, offset: int = 0) -> str:
    """The whole tree, with big containers cut so that it has at most about `limit` characters.
    `offset` children of the root are left out at its beginning."""
    lines: list[SnapshotLine] = []
    for cap in _CAPS:
        lines = list(_iter_lines(root, cap, offset))
        if sum(len(each.text) + each.depth + 1 for each in lines) <= limit:
            return render_lines(lines)
    return _cut(render_lines(lines), limit)


def render_lines(lines: list[SnapshotLine]) -> str:
    return "\n".join(" " * each.depth + each.text for each in lines)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    kept = text[:limit].rpartition("\n")[0]
    left = text[len(kept) :].count("\n")
    return f"{kept}\n… {left:,} more lines: look at one element"


def list_lines(root: Element) -> list[SnapshotLine]:
    """All lines, as a later snapshot is compared with them."""
    return list(_iter_lines(root, _CAPS[0], 0))


def render_changes(
    before: list[SnapshotLine], now: list[SnapshotLine], limit: int = DEFAULT_CHARS
) -> str:
    """The lines that were not there before, with the lines that they stand beneath, and the refs
    that are gone. '' for none; the whole where most has changed."""
    known = Counter(map(_without_focus, before))
    shown: list[SnapshotLine] = []
    above: list[SnapshotLine] = []
    fresh = 0
    for line in now:
        del above[_count_above(above, line.depth) :]
        if known[_without_focus(line)] > 0:
            known[_without_focus(line)] -= 1
            above.append(line)
            continue
        fresh += 1
        shown += [each for each in above if each not in shown[-MAX_DEPTH:]]
        shown.append(line)
        above.append(line)
    there = {_ref_of(each.text) for each in now} | {""}
    gone = [ref for text, n in known.items() if n > 0 and (ref := _ref_of(text)) not in there]
    if fresh > len(now) * 0.6:
        return _cut(render_lines(now), limit)
    text = _cut(render_lines(shown), limit) if shown else ""
    return "\n".join(filter(None, [text, f"gone: {' '.join(gone)}" if gone else ""]))


def _without_focus(line: SnapshotLine) -> str:
    return line.text.removesuffix(FOCUSED)


def _count_above(above: list[SnapshotLine], depth: int) -> int:
    return sum(1 for each in above if each.depth < depth)


def _ref_of(text: str) -> str:
    first = text.partition(" ")[0]
    return first if first[:1] == "e" and first[1:].isdigit() else ""


def _iter_lines(root: Element, cap: int, offset: int) -> Iterator[SnapshotLine]:
    left: list[tuple[Element | str, int]] = [
        (each, 0) for each in reversed(_shown_children(root, cap, offset))
    ]
    while left:
        element, depth = left.pop()
        if isinstance(element, str):
            yield SnapshotLine(min(depth, MAX_DEPTH), element)
            continue
        yield SnapshotLine(min(depth, MAX_DEPTH), render_element(element))
        beneath = _shown_children(element, cap, 0)
        left.extend((each, depth + 1) for each in reversed(beneath))


def _shown_children(element: Element, cap: int, offset: int) -> list[Element | str]:
    children = element.children[offset:]
    if len(children) <= cap:
        return [*children]
    where = f" in {element.ref}" if element.ref else ""
    return [*children[:cap], f"… {len(children) - cap:,} more{where}"]


def render_element(element: Element) -> str:
    """One line for it: ref, role, name, value and states."""
    if element.role == "text":
        return _quoted(element.name, MAX_TEXT_CHARS)
    pieces = [element.ref, render_name(element)]
    if element.value:
        pieces.append(f"= {_quoted(element.value, MAX_NAME_CHARS)}")
    pieces.extend(each for each in element.states if each not in _UNSHOWN_STATES)
    return " ".join(filter(None, pieces)) + (FOCUSED if "focused" in element.states else "")


def render_name(element: Element) -> str:
    """Its role and its name, as they stand in its line."""
    if not element.name:
        return element.role
    return f"{element.role} {_quoted(element.name, MAX_NAME_CHARS)}"


def render_found(root: Element, role: str, name: str, within: str = "") -> str:
    """The elements that one may act on, of this role and with these words in their names (and
    `within`, beside them), each with what it is in."""
    found = find_elements(root, role, name, within)
    shown = found[:MAX_FOUND]
    lines = []
    for element, path in zip(shown, list_paths(root, shown), strict=True):
        inside = " in ".join(f"{each.role} {quote(each.name[:60])}" for each in path[:0:-1][:3])
        lines.append(render_element(element) + (f" in {inside}" if inside else ""))
    if len(found) > MAX_FOUND:
        lines.append(f"… {len(found) - MAX_FOUND:,} more")
    return "\n".join(lines) or "nothing has this role and these words in its name"


def _quoted(text: str, limit: int) -> str:
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return escape_invisible(quote(cut))
