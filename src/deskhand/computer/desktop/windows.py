"""Reads the windows of a desktop over the accessibility bus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import anyio
import msgspec

from ..elements import Element
from .base import ACCESSIBLE, REGISTRY, ROOT, SPI, Bus, NoAnswer, NodeKey
from .window_tree import (
    EDITABLE,
    LABEL_ROLES,
    MANAGES_DESCENDANTS,
    PASSWORD_ROLE,
    Node,
    build_window,
    is_leaf,
    is_shown,
    link_items,
    read_items,
    tidy_name,
)

MAX_NODES = 4_000
MANY_CHILDREN = 100
"""Of a node with more only those children are read that can be seen, where it can tell."""
MAX_CHILDREN = 1_000
"""A node with more is not looked into: a sheet has 2^20 rows."""
MAX_TEXT_CHARS = 2_000
READ_S = 20.0
_ACTIVE, _SHOWING = 1, 25
_MATCHES = "(aiia{ss}iaiiasib)uib"
"""What is to match, in which order, how many at most, and whether to look deeper."""
MAX_SHOWN = 600
_CACHE = "/org/a11y/atspi/cache"
_WINDOW_ROLES = frozenset((2, 16, 19, 23, 69))
_UNWANTED_APPS = frozenset(("", "at-spi2-registryd", "at-spi-registryd"))

T = TypeVar("T")
R = TypeVar("R")


class Window(msgspec.Struct, frozen=True):
    """A window: who shows it, and its title."""

    key: NodeKey
    app: str
    title: str
    toolkit: str
    is_active: bool = False

    @property
    def shown_name(self) -> str:
        return f"{self.app}: {self.title}" if self.title else self.app


async def gather(work: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R | None]:
    """What comes of this for each; None where a program does not answer."""
    found: list[R | None] = [None] * len(items)

    async def run(n: int, item: T) -> None:
        with suppress(NoAnswer):
            found[n] = await work(item)

    async with anyio.create_task_group() as tasks:
        for n, item in enumerate(items):
            tasks.start_soon(run, n, item)
    return found


class _Gaps(msgspec.Struct):
    """What a program had in its cache, and how many nodes may still be read beside it."""

    known: dict[NodeKey, Node]
    left: int = MAX_NODES


class WindowReader:
    """Reads them."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def list_windows(self) -> list[Window]:
        """All windows that programs show. Raises NoAnswer where nobody answers at all."""
        apps = await self._children((REGISTRY, ROOT))
        found = await gather(self._list_of_app, apps)
        return [window for windows in found if windows for window in windows]

    async def _list_of_app(self, app: NodeKey) -> list[Window]:
        name = str(await self._bus.get(app, ACCESSIBLE, "Name"))
        if name in _UNWANTED_APPS:
            return []
        toolkit = ""
        with suppress(NoAnswer):
            toolkit = str(await self._bus.get(app, f"{SPI}.Application", "ToolkitName"))
        windows = []
        for node in await gather(self._read_node, await self._children(app)):
            if node is None or not (node.role in _WINDOW_ROLES or node.child_count):
                continue
            if is_shown(node, toolkit) or node.has(_ACTIVE):
                title = tidy_name(node.name, toolkit)
                windows.append(Window(node.key, name, title, toolkit, node.has(_ACTIVE)))
        return windows

    async def read_window(self, window: Window) -> Element:
        """What it shows. Raises NoAnswer."""
        with anyio.move_on_after(READ_S):
            node = await self._read_tree(window)
            return build_window(node, window.toolkit)
        raise NoAnswer(f"{window.shown_name} does not say what it shows in {READ_S:.0f} s")

    async def _read_tree(self, window: Window) -> Node:
        items = await self._read_cache(window.key[0])
        link_items(items)
        known = items.get(window.key)
        node = known[0] if known is not None else await self._read_node(window.key)
        gaps = _Gaps({key: each for key, (each, _) in items.items()})
        await self._complete(node, window.toolkit, gaps)
        await self._read_values(node, window.toolkit)
        return node

    async def _read_cache(self, app: str) -> dict[NodeKey, tuple[Node, NodeKey]]:
        try:
            body = await self._bus.call((app, _CACHE), f"{SPI}.Cache", "GetItems")
        except NoAnswer:
            return {}
        items = body[0]
        if not items:
            return {}
        return read_items(items, old=isinstance(items[0][3], list))

    async def _complete(self, node: Node, toolkit: str, gaps: _Gaps) -> None:
        """Read the children that the program did not have in its cache, of all that is shown."""
        level = [node]
        while level and gaps.left > 0:
            await gather(lambda each: self._complete_node(each, gaps), level)
            level = [
                child
                for each in level
                for child in each.children
                if each is node or (is_shown(child, toolkit) and not is_leaf(child))
            ]

    async def _complete_node(self, node: Node, gaps: _Gaps) -> None:
        if 0 <= node.child_count <= len(node.children):
            return
        if node.child_count < 0 and node.has(MANAGES_DESCENDANTS):
            return
        if gaps.left <= 0:
            return
        can_choose = node.offers("Collection") and not node.has(MANAGES_DESCENDANTS)
        if node.child_count > MANY_CHILDREN and can_choose:
            keys = await self._list_shown(node.key)
        elif node.child_count <= MAX_CHILDREN:
            keys = await self._children(node.key)
        else:
            return
        known = {each.key: each for each in node.children}
        known |= {key: gaps.known[key] for key in keys if key in gaps.known}
        missing = [key for key in keys if key not in known]
        gaps.left -= len(missing)
        for child in await gather(self._read_node, missing):
            if child is not None:
                known[child.key] = child
        node.children = [known[key] for key in keys if key in known]
        node.child_count = len(node.children)

    async def _list_shown(self, node: NodeKey) -> list[NodeKey]:
        """Its children that can be seen."""
        any_role, no_interface = [0, 0, 0, 0], list[str]()
        rule = [[1 << _SHOWING, 0], 1, {}, 1, any_role, 1, no_interface, 1, False]
        found = await self._bus.call(
            node, f"{SPI}.Collection", "GetMatches", _MATCHES, rule, 1, MAX_SHOWN, False
        )
        return [(str(name), str(path)) for name, path in found[0]]

    async def _children(self, node: NodeKey) -> list[NodeKey]:
        found = (await self._bus.call(node, ACCESSIBLE, "GetChildren"))[0]
        return [(str(name), str(path)) for name, path in found]

    async def _read_node(self, key: NodeKey) -> Node:
        name = str(await self._bus.get(key, ACCESSIBLE, "Name"))
        role = int((await self._bus.call(key, ACCESSIBLE, "GetRole"))[0])
        states = (await self._bus.call(key, ACCESSIBLE, "GetState"))[0]
        interfaces = (await self._bus.call(key, ACCESSIBLE, "GetInterfaces"))[0]
        count = int(await self._bus.get(key, ACCESSIBLE, "ChildCount"))
        return Node(key, role, name, states, interfaces, child_count=count)

    async def _read_values(self, root: Node, toolkit: str) -> None:
        wanted = []
        left = [root]
        while left:
            node = left.pop()
            is_top = node is root or any(node is each for each in root.children)
            if is_top or is_shown(node, toolkit):
                left.extend(node.children)
                if _has_value(node):
                    wanted.append(node)
        await gather(self.read_value, wanted)

    async def read_value(self, node: Node) -> str:
        """The text in it, or its number; never that of a password field. Raises NoAnswer."""
        if node.role == PASSWORD_ROLE:
            return ""
        if node.offers("Text"):
            text = f"{SPI}.Text"
            # Qt gives nothing for more characters than there are.
            size = min(int(await self._bus.get(node.key, text, "CharacterCount")), MAX_TEXT_CHARS)
            read = await self._bus.call(node.key, text, "GetText", "ii", 0, size)
            node.value = str(read[0])
        elif node.offers("Value"):
            number = await self._bus.get(node.key, f"{SPI}.Value", "CurrentValue")
            node.value = format(float(number), "g")
        return node.value

    async def read_again(self, key: NodeKey) -> Node:
        """One element as it is now, with its value. Raises NoAnswer."""
        node = await self._read_node(key)
        await self.read_value(node)
        return node


def _has_value(node: Node) -> bool:
    if node.role in LABEL_ROLES:
        return node.offers("Text") and not node.name
    if node.role in (61, 60, 79, 52) or node.has(EDITABLE):
        return node.offers("Text")
    return node.role in (51, 15, 42, 52, 103) and node.offers("Value")
