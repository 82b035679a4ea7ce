"""The elements of a page, made of what Chromium says of its accessibility tree and of its layout.

https://chromedevtools.github.io/devtools-protocol/tot/Accessibility/ and
https://chromedevtools.github.io/devtools-protocol/tot/DOMSnapshot/
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..elements import INTERACTIVE_ROLES, MAX_DEPTH, MAX_ELEMENTS, Element

COMPUTED_STYLES = ["cursor"]
_ROLES = {
    "StaticText": "text",
    "Iframe": "iframe",
    "IframePresentational": "iframe",
    "PopUpButton": "combobox",
    "MenuListOption": "option",
    "MenuListPopup": "",
    "Canvas": "canvas",
    "Video": "video",
    "Audio": "audio",
    "DisclosureTriangle": "button",
    "image": "img",
    "ColorWell": "button",
    "Date": "date",
    "DateTime": "date",
    "InputTime": "date",
    "InlineTextBox": "skip",
    "LineBreak": "skip",
    "ListMarker": "skip",
    "EmbeddedObject": "object",
    "PluginObject": "object",
}
_KEPT_ROLES = INTERACTIVE_ROLES | frozenset(
    (
        *("text", "iframe", "canvas", "video", "audio", "object", "img", "heading", "dialog"),
        *("alertdialog", "alert", "status", "list", "listitem", "listbox", "table", "grid", "row"),
        *("cell", "gridcell", "columnheader", "rowheader", "tree", "treegrid", "menu", "menubar"),
        *("navigation", "main", "banner", "contentinfo", "search", "form", "article", "region"),
        *("tablist", "tabpanel", "toolbar", "radiogroup", "group", "progressbar", "meter"),
        *("tooltip", "log", "timer", "figure", "code", "math", "term", "definition", "blockquote"),
    )
)
_NAMED_ROLES = frozenset(
    (
        *("group", "region", "img", "form", "figure", "article", "main", "banner", "contentinfo"),
        *("navigation", "search", "toolbar", "blockquote", "code", "log", "status", "listitem"),
        *("cell", "gridcell", "row", "complementary"),
    )
)
"""Without a name these tell nothing but what is in them."""
_PLAIN_WRAPPERS = _NAMED_ROLES - {"listitem", "row", "cell", "gridcell"}
_CONTENT_NAMED = frozenset(
    (
        *("button", "link", "option", "tab", "menuitem", "menuitemcheckbox", "menuitemradio"),
        *("heading", "treeitem", "switch", "checkbox", "radio", "tooltip", "columnheader"),
        *("rowheader", "clickable"),
    )
)
"""Their names are the words in them."""
_POINTER_CURSORS = frozenset(("pointer", "grab", "move"))
_INPUT_TYPES = {
    "password": "password",
    "file": "file",
    **dict.fromkeys(("date", "time", "month", "week", "datetime-local"), "date"),
}
_FLAGS = ("focused", "disabled", "selected", "required", "modal", "busy")
MAX_FRAMES = 40
MAX_OPTIONS = 12
"""So many options of a closed list are shown."""
MAX_CONTENT_NAME_CHARS = 200
MAX_TEXT_CHARS = 4_000


PageKey = tuple[str, int]
"""The frame of an element, and its backend node id."""


class Looks(msgspec.Struct):
    """What a page's layout says of a node: whether it reacts to the mouse, the type of an input,
    and the frame that it contains."""

    clickable: bool = False
    draggable: bool = False
    input_type: str = ""
    frame: str = ""


class AxNode(msgspec.Struct):
    """A node as Chromium describes it, with what is read here."""

    id: str
    role: str
    ignored: bool
    backend_id: int
    name: str = ""
    value: str = ""
    properties: dict[str, Any] = {}
    child_ids: Sequence[str] = ()


class PageFrame(msgspec.Struct, frozen=True):
    """A frame of a page: the address that it shows, and the ids of those that it is in."""

    id: str
    url: str
    above: tuple[str, ...] = ()


def flatten_frames(tree: Mapping[str, Any]) -> list[PageFrame]:
    """The frames of a page, the main one first."""
    found: list[PageFrame] = []
    left: list[tuple[Mapping[str, Any], tuple[str, ...]]] = [(tree, ())]
    while left and len(found) < MAX_FRAMES:
        each, above = left.pop(0)
        frame = PageFrame(str(each["frame"]["id"]), str(each["frame"].get("url", "")), above)
        found.append(frame)
        left.extend((child, (*above, frame.id)) for child in each.get("childFrames", ()))
    return found


def read_looks(captured: Mapping[str, Any]) -> dict[int, Looks]:
    """What DOMSnapshot.captureSnapshot says, by backend node id."""
    strings: Sequence[str] = captured.get("strings", ())
    documents = captured.get("documents", ())
    frames = [_string(strings, each.get("frameId", -1)) for each in documents]
    found: dict[int, Looks] = {}
    for document in documents:
        _read_document(document, strings, frames, found)
    return found


def _string(strings: Sequence[str], index: int) -> str:
    return strings[index] if 0 <= index < len(strings) else ""


def _read_document(
    document: Mapping[str, Any],
    strings: Sequence[str],
    frames: Sequence[str],
    found: dict[int, Looks],
) -> None:
    nodes = document["nodes"]
    ids: Sequence[int] = nodes["backendNodeId"]

    def looks(index: int) -> Looks:
        return found.setdefault(ids[index], Looks())

    for index in nodes.get("isClickable", {}).get("index", ()):
        looks(index).clickable = True
    content = nodes.get("contentDocumentIndex", {})
    for index, target in zip(content.get("index", ()), content.get("value", ()), strict=False):
        if 0 <= target < len(frames):
            looks(index).frame = frames[target]
    _read_attributes(nodes, strings, looks)
    layout = document.get("layout", {})
    cursors: dict[int, str] = {}
    for index, styles in zip(layout.get("nodeIndex", ()), layout.get("styles", ()), strict=False):
        if styles:
            cursors[index] = _string(strings, styles[0])
    parents: Sequence[int] = nodes.get("parentIndex", ())
    for index, cursor in cursors.items():
        parent = parents[index] if index < len(parents) else -1
        if cursor in _POINTER_CURSORS and cursors.get(parent, "") != cursor:
            looks(index).clickable = True


def _read_attributes(nodes: Mapping[str, Any], strings: Sequence[str], looks: Any) -> None:
    numbers = {text: number for number, text in enumerate(strings)}
    type_, draggable, true = (numbers.get(each, -2) for each in ("type", "draggable", "true"))
    input_ = numbers.get("INPUT", -2)
    names: Sequence[int] = nodes.get("nodeName", ())
    for index, attributes in enumerate(nodes.get("attributes", ())):
        if not attributes:
            continue
        pairs = dict(zip(attributes[::2], attributes[1::2], strict=False))
        if pairs.get(draggable) == true:
            looks(index).draggable = True
        if type_ in pairs and names[index] == input_:
            looks(index).input_type = _string(strings, pairs[type_]).lower()


def read_ax_nodes(nodes: Sequence[Mapping[str, Any]]) -> list[AxNode]:
    """The nodes of Accessibility.getFullAXTree."""
    return [
        AxNode(
            id=str(each.get("nodeId", "")),
            role=str(each.get("role", {}).get("value", "")),
            ignored=bool(each.get("ignored")),
            backend_id=int(each.get("backendDOMNodeId", 0)),
            name=str(each.get("name", {}).get("value", "")),
            value=str(each.get("value", {}).get("value", "")),
            properties={
                pair["name"]: pair.get("value", {}).get("value")
                for pair in each.get("properties", ())
            },
            child_ids=each.get("childIds", ()),
        )
        for each in nodes
    ]


class TreeBuilder:
    """Makes the elements of a page of the nodes of its `frames`, by frame id. `secret` are the
    fields that have been for passwords: what is in them is not shown, whatever they are now."""

    def __init__(
        self,
        frames: Mapping[str, Sequence[AxNode]],
        looks: Mapping[int, Looks],
        secret: set[PageKey],
    ) -> None:
        self._secret = secret
        self._frames = {frame: {each.id: each for each in nodes} for frame, nodes in frames.items()}
        self._roots = {frame: nodes[0].id for frame, nodes in frames.items() if nodes}
        self._looks = looks
        self._left = MAX_ELEMENTS

    def build(self, frame: str, title: str) -> Element:
        """The page whose main frame this is."""
        return Element("page", title, children=self._build_frame(frame, 0))

    def _build_frame(self, frame: str, depth: int) -> list[Element]:
        root = self._roots.get(frame)
        if root is None:
            return []
        return _join_texts(self._build_children(frame, self._frames[frame][root], depth))

    def _build_children(self, frame: str, node: AxNode, depth: int) -> list[Element]:
        found: list[Element] = []
        nodes = self._frames[frame]
        for child_id in node.child_ids:
            child = nodes.get(child_id)
            if child is not None and self._left > 0:
                found += self._build_node(frame, child, depth)
        return found

    def _build_node(self, frame: str, node: AxNode, depth: int) -> list[Element]:
        """The element of a node; of one that is nothing by itself what is in it."""
        self._left -= 1
        looks = self._looks.get(node.backend_id, _NO_LOOKS)
        key = (frame, node.backend_id)
        role = "password" if key in self._secret else _role_of(node, looks)
        if role == "password":
            self._secret.add(key)
        if role == "skip" or depth > MAX_DEPTH:
            return []
        if role == "text":
            return [Element("text", node.name)] if node.name.strip() else []
        if looks.frame:
            inner = self._build_frame(looks.frame, depth + 1)
            return [Element("iframe", node.name, children=inner)]
        children = _join_texts(self._build_children(frame, node, depth + 1))
        if not role:
            return _wrap_clickable(node, key, looks, children)
        element = Element(role, node.name, _value_of(node, role), key=key)
        element.states = _states_of(node, role, looks)
        element.url = str(node.properties.get("url", "")) if role == "link" else ""
        element.children = _inner_children(element, children)
        if _is_transparent(element):
            return element.children
        return [element]


_NO_LOOKS = Looks()


def _role_of(node: AxNode, looks: Looks) -> str:
    """Its role here; '' for what only holds others."""
    if node.ignored:
        return ""
    if looks.input_type in _INPUT_TYPES:
        return _INPUT_TYPES[looks.input_type]
    role = _ROLES.get(node.role, node.role)
    return role if role in _KEPT_ROLES or role == "skip" else ""


def _wrap_clickable(
    node: AxNode, key: PageKey, looks: Looks, children: list[Element]
) -> list[Element]:
    """What only the mouse makes use of, as an element with the words that are in it."""
    editable = node.properties.get("editable") == "richtext" and node.properties.get("focusable")
    if editable:
        return [Element("textbox", node.name, _text_of(children), ("editable",), key)]
    if not (looks.clickable or looks.draggable):
        return children
    if any(each.is_target for child in children for each in child.walk()):
        return children
    name = (node.name or _text_of(children))[:MAX_CONTENT_NAME_CHARS]
    if not name.strip() and not looks.draggable:
        return children
    states = ("draggable",) if looks.draggable else ()
    return [Element("clickable", name, states=states, key=key)]


def _value_of(node: AxNode, role: str) -> str:
    if role == "password":
        return "(filled)" if node.value else ""
    if role == "heading":
        return ""
    return node.value if node.value != node.name or role in INTERACTIVE_ROLES else ""


def _states_of(node: AxNode, role: str, looks: Looks) -> tuple[str, ...]:
    said = node.properties
    states = []
    if role == "heading" and isinstance(said.get("level"), int):
        states.append(f"level {said['level']}")
    states += [name for name in _FLAGS if said.get(name) in (True, "true")]
    for name in ("checked", "pressed"):
        if said.get(name) in ("true", True):
            states.append(name)
        elif said.get(name) == "mixed":
            states.append(f"partly {name}")
    if "expanded" in said:
        states.append("expanded" if said["expanded"] else "collapsed")
    if said.get("invalid") not in (None, "false", False):
        states.append("invalid")
    if said.get("readonly") is True and role in ("textbox", "searchbox", "spinbutton"):
        states.append("readonly")
    if looks.draggable:
        states.append("draggable")
    if looks.clickable and role not in INTERACTIVE_ROLES:
        states.append("clickable")
    return tuple(states)


def _inner_children(element: Element, children: list[Element]) -> list[Element]:
    role = element.role
    if role in ("date", "password", "file", "slider", "spinbutton"):
        return []
    if role == "combobox":
        options = [each for child in children for each in child.walk() if each.role == "option"]
        if "expanded" in element.states or not options:
            return options
        named = ", ".join(each.name for each in options[:MAX_OPTIONS])
        more = f" and {len(options) - MAX_OPTIONS:,} more" if len(options) > MAX_OPTIONS else ""
        return [Element("text", f"of {named}{more}")]
    if role in ("textbox", "searchbox"):
        return []
    if role in _CONTENT_NAMED or role in ("cell", "gridcell", "listitem", "row"):
        return _without_repeated(element, children)
    if children and children[0].role == "text" and children[0].name.split() == element.name.split():
        return children[1:]
    return children


def _without_repeated(element: Element, children: list[Element]) -> list[Element]:
    """The children without the texts that its name has; where only texts are in it, they are its
    name."""
    if not element.name and all(each.role == "text" for each in children):
        element.name = _text_of(children)[:MAX_CONTENT_NAME_CHARS]
        return [] if len(_text_of(children)) <= MAX_CONTENT_NAME_CHARS else children
    name = " ".join(element.name.split())
    kept = []
    for each in children:
        words = " ".join(each.name.split())
        if each.role in ("text", "img") and words in name:
            continue
        kept.append(each)
    if element.role == "row" and kept:
        element.name = ""
    return kept


def _is_transparent(element: Element) -> bool:
    """Whether it tells nothing beside what is in it."""
    if element.is_target or element.role not in _NAMED_ROLES:
        return False
    if element.role in _PLAIN_WRAPPERS:
        return not element.name
    return not element.name and len(element.children) <= 1


def _join_texts(elements: list[Element]) -> list[Element]:
    """Texts that follow each other, as one; without those that are the name of what stands beside
    them, as labels are."""
    joined: list[Element] = []
    words: list[str] = []

    def join() -> None:
        if words:
            joined.append(Element("text", " ".join(words)[:MAX_TEXT_CHARS]))
            words.clear()

    for n, each in enumerate(elements):
        beside = (*elements[n + 1 : n + 2], *elements[max(0, n - 1) : n])
        if each.role in ("text", "clickable") and any(_is_named(each, one) for one in beside):
            continue
        if each.role == "text":
            words.append(each.name)
            continue
        join()
        joined.append(each)
    join()
    return joined


def _is_named(text: Element, beside: Element) -> bool:
    is_field = beside.role in INTERACTIVE_ROLES and beside.role != "clickable"
    return is_field and text.name.split() == beside.name.split()


def _text_of(elements: Sequence[Element]) -> str:
    """The words of these and of all that is in them."""
    words = (each.name for element in elements for each in element.walk())
    return " ".join(" ".join(words).split())
