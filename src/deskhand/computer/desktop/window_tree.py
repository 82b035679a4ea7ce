"""The elements of a window, made of what its program says of them over AT-SPI."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..elements import INTERACTIVE_ROLES, MAX_DEPTH, Element
from .base import NodeKey

# https://gitlab.gnome.org/GNOME/at-spi2-core/-/blob/main/atspi/atspi-constants.h, AtspiRole
_ROLES = {
    2: "alert",
    7: "checkbox",
    8: "menuitemcheckbox",
    10: "columnheader",
    11: "combobox",
    12: "date",
    15: "slider",
    16: "dialog",
    19: "dialog",
    23: "window",
    26: "img",
    27: "img",
    29: "text",
    31: "list",
    32: "listitem",
    33: "menuitem",
    34: "menubar",
    35: "menuitem",
    37: "tab",
    38: "tablist",
    40: "password",
    41: "menu",
    42: "progressbar",
    43: "button",
    44: "radio",
    45: "menuitemradio",
    47: "rowheader",
    48: "skip",
    50: "skip",
    51: "slider",
    52: "spinbutton",
    54: "status",
    55: "table",
    56: "gridcell",
    57: "columnheader",
    58: "rowheader",
    60: "textbox",
    61: "textbox",
    62: "button",
    63: "toolbar",
    64: "tooltip",
    65: "tree",
    66: "tree",
    79: "textbox",
    80: "img",
    81: "text",
    83: "heading",
    87: "form",
    88: "link",
    90: "row",
    91: "treeitem",
    97: "text",
    98: "listbox",
    101: "alert",
    102: "alert",
    103: "progressbar",
    116: "text",
    73: "text",
    105: "blockquote",
    109: "article",
    113: "math",
    115: "timer",
}
PASSWORD_ROLE = 40
LABEL_ROLES = frozenset((29, 73, 81, 97, 116))
_TOGGLE_ROLE = 62
_LEAF_ROLES = LABEL_ROLES | frozenset((7, 26, 27, 43, 44, 62, 79, 88, 40))
# AtspiStateType, in the same file.
_SHOWING, _VISIBLE, _ENABLED, _SENSITIVE = 25, 30, 8, 24
_STATES = {
    4: "checked",
    9: "expandable",
    10: "expanded",
    12: "focused",
    16: "modal",
    20: "pressed",
    23: "selected",
    33: "required",
    36: "invalid",
}
EDITABLE, MANAGES_DESCENDANTS = 7, 31
_CLASS_NAME = re.compile(r"Gtk[A-Z]\w+|G[td]k\w*|Adw[A-Z]\w+")
_NAMED_ROLES = frozenset(
    ("img", "toolbar", "form", "article", "blockquote", "status", "menu", "tablist", "row")
)
MAX_NAME_CHARS = 500
MAX_ITEMS = 30_000


class Node(msgspec.Struct):
    """Something of a program, as it says it. `states` are the two words of its bits."""

    key: NodeKey
    role: int
    name: str = ""
    states: Sequence[int] = ()
    interfaces: Sequence[str] = ()
    value: str = ""
    child_count: int = 0
    index: int = 0
    children: list[Node] = []

    def has(self, state: int) -> bool:
        word, bit = divmod(state, 32)
        return word < len(self.states) and bool(int(self.states[word]) >> bit & 1)

    def offers(self, interface: str) -> bool:
        """Whether it has this interface, as `EditableText`."""
        return any(each.endswith(f".{interface}") for each in self.interfaces)


def is_shown(node: Node, toolkit: str) -> bool:
    """Whether it can be seen. GTK 4 says of what is in a window only that it is visible."""
    return node.has(_VISIBLE) if toolkit == "GTK" else node.has(_SHOWING)


def is_role(node: Node, role: str) -> bool:
    """Whether it is shown under this role."""
    return _ROLES.get(node.role, "") == role


def is_leaf(node: Node) -> bool:
    """Whether what is in it tells nothing more than its name."""
    return bool(node.name) and node.role in _LEAF_ROLES


def build_window(node: Node, toolkit: str) -> Element:
    """The window as elements."""
    window = Element("window", tidy_name(node.name, toolkit), key=node.key)
    window.children = _build_children(node, toolkit, 0)
    return window


def _build_children(node: Node, toolkit: str, depth: int) -> list[Element]:
    found: list[Element] = []
    for child in node.children:
        if depth < MAX_DEPTH and (is_shown(child, toolkit) or depth == 0):
            found += _build_node(child, toolkit, depth + 1)
    return _drop_labels(found)


def _build_node(node: Node, toolkit: str, depth: int) -> list[Element]:
    role = _ROLES.get(node.role, "")
    if role == "skip":
        return []
    name = tidy_name(node.name, toolkit)
    if role == "text":
        words = name or tidy_name(node.value, toolkit)
        return [Element("text", words)] if words.strip() else []
    children = _build_children(node, toolkit, depth)
    if not role or (role in _NAMED_ROLES and not name):
        return children
    element = Element(role, name, "" if role == "password" else node.value, key=node.key)
    element.states = _states_of(node, role)
    element.children = _inner_children(element, children)
    only = element.children[0] if len(element.children) == 1 else None
    if role == "gridcell" and only is not None and only.name == element.name:
        return [only]  # the cell of it tells nothing more
    if role == "gridcell" and not (element.name or element.value):
        return element.children
    return [element]


def _states_of(node: Node, role: str) -> tuple[str, ...]:
    found = [name for bit, name in _STATES.items() if node.has(bit) and name != "expandable"]
    if node.role == _TOGGLE_ROLE:
        found = ["pressed" if each == "checked" else each for each in found]
    if role in INTERACTIVE_ROLES and not (node.has(_SENSITIVE) or node.has(_ENABLED)):
        found.append("disabled")
    if node.has(9) and not node.has(10):
        found.append("collapsed")
    return tuple(found)


def _inner_children(element: Element, children: list[Element]) -> list[Element]:
    """Without the texts that are its name; they are that where it has none."""
    texts = [each for each in children if each.role == "text"]
    if element.role in INTERACTIVE_ROLES or element.role in ("gridcell", "listitem"):
        if not element.name and texts:
            element.name = " ".join(each.name for each in texts)[:MAX_NAME_CHARS]
        return [each for each in children if each.role not in ("text", "img")]
    return children


def _drop_labels(elements: list[Element]) -> list[Element]:
    """Without texts that are the name of what follows them."""
    kept = []
    for n, each in enumerate(elements):
        after = elements[n + 1] if n + 1 < len(elements) else None
        if (
            each.role == "text"
            and after is not None
            and after.role in INTERACTIVE_ROLES
            and after.name.strip(" :") == each.name.strip(" :")
        ):
            continue
        kept.append(each)
    return kept


def tidy_name(name: str, toolkit: str) -> str:
    """The name without what no person sees. GTK 4 before 4.10 names widgets by their class, and
    says some names twice."""
    name = " ".join(name.split())[:MAX_NAME_CHARS]
    if toolkit != "GTK":
        return name
    if _CLASS_NAME.fullmatch(name):
        return ""
    half, rest = name[: len(name) // 2], name[len(name) // 2 + 1 :]
    return half if half and half == rest and name[len(half)] == " " else name


def read_items(items: Sequence[Sequence[Any]], *, old: bool) -> dict[NodeKey, tuple[Node, NodeKey]]:
    """The nodes that a program has in its cache, each with its parent. `old` is the form that Qt 5
    has."""
    found: dict[NodeKey, tuple[Node, NodeKey]] = {}
    for n, item in enumerate(items[:MAX_ITEMS]):
        at = 4 if old else 5
        interfaces, name, role, _, states = item[at : at + 5]
        node = Node(_key(item[0]), int(role), str(name), states, interfaces)
        node.child_count = len(item[3]) if old else int(item[4])
        node.index = n if old else int(item[3])
        found[node.key] = (node, _key(item[2]))
    return found


def _key(pair: Sequence[Any]) -> NodeKey:
    return str(pair[0]), str(pair[1])


def link_items(items: Mapping[NodeKey, tuple[Node, NodeKey]]) -> None:
    """Put each into its parent."""
    for node, parent in items.values():
        if parent in items and items[parent][0] is not node:
            items[parent][0].children.append(node)
    for node, _ in items.values():
        node.children.sort(key=lambda child: child.index)
