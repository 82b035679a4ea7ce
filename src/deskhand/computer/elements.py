"""What a screen or a page shows: a tree of elements, and the names by which a model calls them.

A ref (`e12`) stays with its element while that exists. Where a program has drawn an element anew,
the ref goes over to the new one only if nothing else could be meant; else it is stale, and says
what comes near.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import get_close_matches
from itertools import count

import msgspec

from ..types.errors import ToolError

INTERACTIVE_ROLES = frozenset(
    (
        *("button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch"),
        *("slider", "spinbutton", "menuitem", "menuitemcheckbox", "menuitemradio", "tab"),
        *("option", "treeitem", "clickable", "file", "date", "password"),
    )
)
"""Roles of what people use, by ARIA 1.2 (https://www.w3.org/TR/wai-aria-1.2/#role_definitions), and
four of ours: `clickable` for what only reacts to the mouse, `file`, `date` and `password` for such
fields."""
TARGET_ROLES = frozenset(("list", "listbox", "table", "grid", "gridcell", "tree", "dialog"))
"""Roles of what one looks into or drops something on."""
TARGET_STATES = frozenset(("clickable", "editable", "draggable"))
"""States of what is used though its role does not say so."""
MAX_ELEMENTS = 20_000
MAX_DEPTH = 200
MAX_NEAR = 3
MAX_COMPARED = 500


class Element(msgspec.Struct):
    """Something that is shown. `key` is the name that its program has for it, None for text. `ref`
    is '' for what nobody acts on. `states` are words as `focused` or `disabled`. `url` is where a
    link leads."""

    role: str
    name: str = ""
    value: str = ""
    states: tuple[str, ...] = ()
    key: Hashable = None
    ref: str = ""
    url: str = ""
    children: list[Element] = msgspec.field(default_factory=list)

    @property
    def is_target(self) -> bool:
        """Whether one may act on it."""
        return self.key is not None and (
            self.role in INTERACTIVE_ROLES
            or self.role in TARGET_ROLES
            or not TARGET_STATES.isdisjoint(self.states)
        )

    def walk(self) -> Iterator[Element]:
        """It and all beneath it, each before its children."""
        left = [self]
        while left:
            element = left.pop()
            yield element
            left.extend(reversed(element.children))


class StaleRef(ToolError):
    """The element of this ref is gone, or another one may stand in its place."""


_Identity = tuple[tuple[str, str], ...]
"""Role and name of an element and of what it is in: with no ordinals, so that two alike are never
taken for each other."""


class RefTable:
    """The refs of one window or page."""

    def __init__(self, numbers: Iterator[int] | None = None) -> None:
        """`numbers` are those of the refs: tables that share them have no ref twice."""
        self._numbers = numbers or count(1)
        self._by_key: dict[Hashable, str] = {}
        self._elements: dict[str, Element] = {}
        self._identities: dict[str, _Identity] = {}

    def assign(self, root: Element) -> None:
        """Give each element of the new tree that one may act on its ref."""
        found = list(_iter_identities(root))
        present = {element.key for element, _ in found}
        counts = Counter(identity for _, identity in found)
        before = Counter(self._identities.values())
        gone = {
            self._identities[ref]: ref
            for key, ref in self._by_key.items()
            if key not in present and before[self._identities[ref]] == 1
        }
        by_key: dict[Hashable, str] = {}
        for element, identity in found:
            ref = self._by_key.get(element.key, "")
            if not ref and counts[identity] == 1:
                ref = gone.pop(identity, "")
            if not ref:
                ref = f"e{next(self._numbers)}"
            element.ref = by_key[element.key] = ref
        self._by_key = by_key
        self._elements = {element.ref: element for element, _ in found}
        self._identities = {element.ref: identity for element, identity in found}

    def clear(self) -> None:
        """Forget what was shown: another document. Its numbers are not used again."""
        self._by_key, self._elements, self._identities = {}, {}, {}

    def knows(self, ref: str) -> bool:
        """Whether something is called so."""
        return _clean_ref(ref) in self._elements

    def find(self, ref: str) -> Element:
        """The element of this ref, as it was last seen. Raises StaleRef."""
        ref = _clean_ref(ref)
        element = self._elements.get(ref)
        if element is None:
            raise StaleRef(f"there is no {ref[:20]!r} now{self._name_near('')}")
        return element

    def explain_gone(self, element: Element) -> StaleRef:
        """That this one is no longer there, with what is most like it."""
        return StaleRef(
            f"{element.ref} ({describe(element)}) is gone{self._name_near(element.name)}"
        )

    def _name_near(self, name: str) -> str:
        named = [each for each in self._elements.values() if each.name]
        by_name = {each.name: each for each in named[:MAX_COMPARED]}
        near = get_close_matches(name[:80], [each[:80] for each in by_name], MAX_NEAR)
        found = [each for each in by_name.values() if each.name[:80] in near]
        if not found:
            return ": look again"
        return "; near it: " + ", ".join(f"{each.ref} {describe(each)}" for each in found)


def _clean_ref(ref: str) -> str:
    return ref.strip().strip("[]@")


def _iter_identities(root: Element) -> Iterator[tuple[Element, _Identity]]:
    left: list[tuple[Element, _Identity]] = [(root, ())]
    while left:
        element, above = left.pop()
        own = (*above[-6:], (element.role, element.name))
        if element.is_target:
            yield element, own
        beneath = own if element.name or element.is_target else above
        left.extend((each, beneath) for each in reversed(element.children))


def describe(element: Element) -> str:
    """It in a few words, as `button "Save"`."""
    return f"{element.role} {quote(element.name[:80])}" if element.name else element.role


def quote(text: str) -> str:
    """What others wrote, on one line between quotes: it cannot end them, nor begin a line."""
    line = " ".join(text.split())
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"') + '"'


def find_elements(root: Element, role: str = "", name: str = "", within: str = "") -> list[Element]:
    """Those that one may act on, of this role, whose name has these words in it; those with exactly
    this name first. With `within` those beside which these words stand, too."""
    wanted = " ".join(name.casefold().split())
    found = [
        each
        for each in root.walk()
        if each.ref
        and (not role or each.role == role)
        and wanted in " ".join(each.name.casefold().split())
    ]
    if within:
        found = [each for each, part in list_own_parts(root, found) if has_words(part, within)]
    return sorted(found, key=lambda each: " ".join(each.name.casefold().split()) != wanted)


def list_own_parts(root: Element, elements: Sequence[Element]) -> list[tuple[Element, Element]]:
    """Each of these with the largest part of what is shown in which no other of them is: of a
    button in a row of a list, that row."""
    ids = {id(each) for each in elements}
    above: dict[int, Element] = {}
    order = [*root.walk()]
    counts = {id(each): int(id(each) in ids) for each in order}
    for each in order:
        above.update((id(child), each) for child in each.children)
    for each in reversed(order):  # what is beneath comes before what it is in
        parent = above.get(id(each))
        if parent is not None:
            counts[id(parent)] += counts[id(each)]
    parts = []
    for each in elements:
        part = each
        while (parent := above.get(id(part))) is not None and counts[id(parent)] == 1:
            part = parent
        parts.append((each, part))
    return parts


def has_words(root: Element, words: str) -> bool:
    """Whether an element shows these words."""
    wanted = " ".join(words.casefold().split())
    return any(
        wanted in " ".join(f"{each.name} {each.value}".casefold().split()) for each in root.walk()
    )


def list_paths(root: Element, wanted: Sequence[Element]) -> list[list[Element]]:
    """For each of these, the named elements that it is in, from the outside."""
    ids = {id(each) for each in wanted}
    found: dict[int, list[Element]] = {}
    left: list[tuple[Element, list[Element]]] = [(root, [])]
    while left:
        element, above = left.pop()
        if id(element) in ids:
            found[id(element)] = above
        below = [*above, element] if element.name and element.role != "text" else above
        left.extend((each, below) for each in element.children)
    return [found.get(id(each), []) for each in wanted]
