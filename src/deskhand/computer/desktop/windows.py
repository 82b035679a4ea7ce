"""Reads the windows of a desktop over the accessibility bus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
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
MAX_APPS = 200
MAX_WINDOWS = 50
READ_S = 20.0
APP_S = 4.0
WRONG_SHAPES = (TypeError, ValueError, IndexError, KeyError, OverflowError, AttributeError)
"""What comes of answers that are not what they should be."""
PICTURED = "picture"
"""Who shows a window of which nobody on the bus knows; behind it stands its id on the screen."""
_PID_OF = "GetConnectionUnixProcessID"
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
    """A window: who shows it, and its title. `program` is the file that runs there, '' where that
    cannot be told: a program may call itself what it likes."""

    key: NodeKey
    app: str
    title: str
    toolkit: str
    is_active: bool = False
    pid: int = 0
    program: str = ""

    @property
    def is_pictured(self) -> bool:
        """Whether its program does not say what it shows."""
        return self.key[0] == PICTURED

    @property
    def shown_name(self) -> str:
        return f"{self.app}: {self.title}" if self.title else self.app


async def gather(work: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R | None]:
    """What comes of this for each; None where a program does not answer, or nothing sensible."""
    found: list[R | None] = [None] * len(items)

    async def run(n: int, item: T) -> None:
        with suppress(NoAnswer, *WRONG_SHAPES):
            found[n] = await work(item)

    async with anyio.create_task_group() as tasks:
        for n, item in enumerate(items):
            tasks.start_soon(run, n, item)
    return found


class _Gaps(msgspec.Struct):
    """What a program had in its cache, what was `seen` of it, and how many nodes may still be read
    beside it."""

    known: dict[NodeKey, Node]
    seen: set[NodeKey]
    left: int = MAX_NODES


class WindowReader:
    """Reads them. What programs answer is their word: it is cut, and nothing is taken in twice."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def list_windows(self) -> list[Window]:
        """All windows that programs show. Raises NoAnswer where nobody answers at all."""
        apps = await self._children((REGISTRY, ROOT))
        found = await gather(self._list_of_app, apps[:MAX_APPS])
        return [window for windows in found if windows for window in windows]

    async def _list_of_app(self, app: NodeKey) -> list[Window]:
        with anyio.move_on_after(APP_S):
            name = tidy_name(str(await self._bus.get(app, ACCESSIBLE, "Name")), "")
            if name not in _UNWANTED_APPS:
                return await self._list_windows_of(app, name)
        return []

    async def _list_windows_of(self, app: NodeKey, name: str) -> list[Window]:
        toolkit = ""
        with suppress(NoAnswer):
            toolkit = str(await self._bus.get(app, f"{SPI}.Application", "ToolkitName"))
        pid = await self._find_pid(app[0])
        program = await anyio.to_thread.run_sync(find_program, pid)
        windows = []
        for node in await gather(self._read_node, (await self._children(app))[:MAX_WINDOWS]):
            if node is None or not (node.role in _WINDOW_ROLES or node.child_count):
                continue
            is_active = node.has(_ACTIVE)
            if is_shown(node, toolkit) or is_active:
                title = tidy_name(node.name, toolkit)
                windows.append(Window(node.key, name, title, toolkit, is_active, pid, program))
        return windows

    async def _find_pid(self, name: str) -> int:
        bus = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
        with suppress(NoAnswer):
            return int((await self._bus.call(bus, bus[0], _PID_OF, "s", name))[0])
        return 0

    async def read_window(self, window: Window) -> Element:
        """What it shows. Raises NoAnswer."""
        try:
            with anyio.move_on_after(READ_S):
                node = await self._read_tree(window)
                return build_window(node, window.toolkit)
        except WRONG_SHAPES as error:
            raise NoAnswer(f"what {window.app} says of its window cannot be read") from error
        raise NoAnswer(f"{window.app} does not say what it shows in {READ_S:.0f} s")

    async def _read_tree(self, window: Window) -> Node:
        items = await self._read_cache(window.key[0])
        link_items(items)
        known = items.get(window.key)
        node = known[0] if known is not None else await self._read_node(window.key)
        gaps = _Gaps({key: each for key, (each, _) in items.items()}, {node.key})
        await self._complete(node, window.toolkit, gaps)
        await self._read_values(node)
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

    async def _complete(self, root: Node, toolkit: str, gaps: _Gaps) -> None:
        """Read the children that the program did not have in its cache, of all that is shown."""
        level = [root]
        while level:
            await gather(lambda each: self._complete_node(each, gaps), level)
            below = []
            for node in level:
                # Each once: what a program says may go round in circles.
                node.children = [each for each in node.children if _is_new(each, gaps.seen)]
                for child in node.children:
                    if is_leaf(child) or not (node is root or is_shown(child, toolkit)):
                        child.children = []
                    else:
                        below.append(child)
            level = below

    async def _complete_node(self, node: Node, gaps: _Gaps) -> None:
        if 0 <= node.child_count <= len(node.children) or gaps.left <= 0:
            return
        if node.child_count < 0:  # it was not counted for the cache
            node.child_count = int(await self._bus.get(node.key, ACCESSIBLE, "ChildCount"))
        can_choose = node.offers("Collection") and not node.has(MANAGES_DESCENDANTS)
        if node.child_count > MANY_CHILDREN and can_choose:
            keys = await self._list_shown(node.key)
        elif node.child_count <= MAX_CHILDREN:
            keys = await self._children(node.key)
        else:
            return
        keys = list(dict.fromkeys(keys))[: max(0, gaps.left)]
        gaps.left -= len(keys)
        known = {each.key: each for each in node.children}
        known |= {key: gaps.known[key] for key in keys if key in gaps.known}
        missing = [key for key in keys if key not in known and key not in gaps.seen]
        for child in await gather(self._read_node, missing):
            if child is not None:
                known[child.key] = child
        node.children = [known[key] for key in keys if key in known]

    async def _list_shown(self, node: NodeKey) -> list[NodeKey]:
        """Its children that can be seen."""
        any_role, no_interface = [0, 0, 0, 0], list[str]()
        rule = [[1 << _SHOWING, 0], 1, {}, 1, any_role, 1, no_interface, 1, False]
        found = await self._bus.call(
            node, f"{SPI}.Collection", "GetMatches", _MATCHES, rule, 1, MAX_SHOWN, False
        )
        return [(str(name), str(path)) for name, path in found[0][:MAX_SHOWN]]

    async def _children(self, node: NodeKey) -> list[NodeKey]:
        found = (await self._bus.call(node, ACCESSIBLE, "GetChildren"))[0]
        return [(str(name), str(path)) for name, path in found[:MAX_CHILDREN]]

    async def _read_node(self, key: NodeKey) -> Node:
        name = str(await self._bus.get(key, ACCESSIBLE, "Name"))
        role = int((await self._bus.call(key, ACCESSIBLE, "GetRole"))[0])
        states = (await self._bus.call(key, ACCESSIBLE, "GetState"))[0]
        interfaces = (await self._bus.call(key, ACCESSIBLE, "GetInterfaces"))[0]
        count = int(await self._bus.get(key, ACCESSIBLE, "ChildCount"))
        return Node(key, role, name, states, interfaces, child_count=count)

    async def _read_values(self, root: Node) -> None:
        wanted = []
        left = [root]
        while left:
            node = left.pop()
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
            node.value = str(read[0])[:MAX_TEXT_CHARS]
        elif node.offers("Value"):
            number = await self._bus.get(node.key, f"{SPI}.Value", "CurrentValue")
            node.value = format(float(number), "g")
        return node.value

    async def read_again(self, key: NodeKey) -> Node:
        """One element as it is now, with its value. Raises NoAnswer."""
        try:
            node = await self._read_node(key)
            await self.read_value(node)
        except WRONG_SHAPES as error:
            raise NoAnswer("what the program says of it cannot be read") from error
        return node


def _is_new(node: Node, seen: set[NodeKey]) -> bool:
    if node.key in seen:
        return False
    seen.add(node.key)
    return True


def find_program(pid: int) -> str:
    """The file that this process runs."""
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def _has_value(node: Node) -> bool:
    if node.role in LABEL_ROLES:
        return node.offers("Text") and not node.name
    if node.role in (61, 60, 79, 52) or node.has(EDITABLE):
        return node.offers("Text")
    return node.role in (51, 15, 42, 52, 103) and node.offers("Value")
