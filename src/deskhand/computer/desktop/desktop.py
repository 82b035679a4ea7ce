"""The desktop as one acts on it: the meaning of an element first (its action, its text), real keys
and clicks where it has none, and a look at what came of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress

import anyio
import anyio.to_thread

from ...types.errors import ToolError
from ..elements import Element, RefTable, StaleRef, describe, find_elements, quote
from ..repeats import RepeatWatch
from ..snapshot import Line, list_lines
from .base import SPI, Bus, NoAnswer, NodeKey, Screen, ScreenWindow
from .window_tree import EDITABLE, PASSWORD_ROLE, Node, tidy_name
from .windows import Window, WindowReader

PRESS_ACTIONS = (
    *("click", "press", "activate", "invoke", "toggle", "open", "jump", "dodefault"),
    *("clickancestor", "check", "uncheck", "select"),
)
"""Names of what a click does, the first that an element has. Never simply its first action: that of
a text in GTK 4 deletes a line. (https://docs.gtk.org/atspi2/iface.Action.html)"""
SETTLE_S = 1.5
QUIET_S = 0.15
POLL_S = 0.05
FOCUS_S = 1.5
MAX_SET_CHARS = 100_000
_FOCUSED = 12
_COMPONENT = f"{SPI}.Component"
_TEXT_FIELD = f"{SPI}.EditableText"


class Desktop:
    """One desktop. `windows` are those that were listed last, `current` is the one that was looked
    at, and `lines` what it showed."""

    def __init__(self, bus: Bus, screen: Screen | None) -> None:
        self._bus = bus
        self._reader = WindowReader(bus)
        self._screen = screen
        self._numbers = itertools.count(1)
        self._tables: dict[NodeKey, RefTable] = {}
        self.windows: list[Window] = []
        self.current: Window | None = None
        self.root = Element("window")
        self.lines: list[Line] = []
        self.repeats = RepeatWatch()

    @property
    def is_connected(self) -> bool:
        return self._bus.is_connected

    # Looking

    async def list_windows(self) -> list[Window]:
        """The windows there are now; tells which were not there before."""
        before = {each.key for each in self.windows}
        self.windows = await self._reader.list_windows()
        known = {each.key for each in self.windows}
        self._tables = {key: table for key, table in self._tables.items() if key in known}
        return [each for each in self.windows if each.key not in before]

    async def find_window(self, name: str) -> Window:
        """The window whose program and title have these words; without any, the active one. Raises
        ToolError where there is none, or several."""
        await self.list_windows()
        wanted = " ".join(name.casefold().split())
        fitting = [each for each in self.windows if wanted in each.shown_name.casefold()]
        exact = [each for each in fitting if wanted in (each.title.casefold(), each.app.casefold())]
        if not wanted:
            fitting = [each for each in self.windows if each.is_active] or self.windows[:1]
        elif exact:
            fitting = exact
        if len(fitting) == 1:
            return fitting[0]
        names = ", ".join(quote(each.shown_name) for each in fitting or self.windows)
        if not fitting:
            raise ToolError(f"no window is called so; there are: {names or 'none'}")
        raise ToolError(f"several windows are called so: {names}")

    async def look(self, window: Window | None = None) -> Element:
        """What this window shows, or the current one. Raises ToolError."""
        window = window or self.current or await self.find_window("")
        if self.current is None or window.key != self.current.key:
            self.lines = []
        self.root = await self._reader.read_window(window)
        self.current = window
        self._tables.setdefault(window.key, RefTable(self._numbers)).assign(self.root)
        return self.root

    def remember_lines(self) -> list[Line]:
        """The lines of what it shows now, which are compared with later ones. Returns those
        before."""
        before = self.lines
        self.lines = list_lines(self.root)
        return before

    def peek(self, ref: str) -> tuple[Element, Window] | None:
        """The element of this ref as it was last seen, and its window."""
        ref = ref.strip().strip("[]@")
        for window in self.windows:
            table = self._tables.get(window.key)
            if table is not None and table.knows(ref):
                return table.find(ref), window
        return None

    def find(self, role: str, name: str) -> list[Element]:
        """Those of the current window that one may act on."""
        return find_elements(self.root, role, name)

    # Acting

    async def _find_node(self, ref: str) -> tuple[Element, Window, Node]:
        """The element of this ref as it is now. Raises StaleRef where it is gone, or has become
        something else."""
        found = self.peek(ref)
        if found is None:
            raise StaleRef(f"there is no {ref[:20]!r} now: look again")
        element, window = found
        key: NodeKey = element.key  # type: ignore[assignment]
        try:
            node = await self._reader.read_again(key)
        except NoAnswer:
            await self.look(window)
            moved = self.peek(ref)
            if moved is None or moved[0].key == key:
                raise StaleRef(f"{ref} ({describe(element)}) is gone: look again") from None
            element, key = moved[0], moved[0].key  # type: ignore[assignment]
            node = await self._reader.read_again(key)
        name = tidy_name(node.name, window.toolkit)
        if name and element.name and name != element.name:
            raise StaleRef(
                f"{ref} was {describe(element)} when it was shown, and is {quote(name)} now: look "
                "again"
            )
        return element, window, node

    async def press(self, ref: str) -> str:
        """Use it as a click would. Returns how that was done. Raises ToolError."""
        element, window, node = await self._find_node(ref)
        if "disabled" in element.states:
            raise ToolError(f"{ref} ({describe(element)}) is disabled")
        action = await self._find_action(node)
        if action is not None:
            done = (await self._bus.call(node.key, f"{SPI}.Action", "DoAction", "i", action))[0]
            if not done:
                raise ToolError(f"{window.app} did not do it")
            await self.settle()
            return "by its action"
        await self._click(node, window)
        await self.settle()
        return "by a click of the mouse"

    async def _find_action(self, node: Node) -> int | None:
        if not node.offers("Action"):
            return None
        count = int(await self._bus.get(node.key, f"{SPI}.Action", "NActions"))
        names = []
        for n in range(min(count, 20)):
            name = (await self._bus.call(node.key, f"{SPI}.Action", "GetName", "i", n))[0]
            names.append("".join(c for c in str(name).rpartition(".")[2].lower() if c.isalnum()))
        return next((names.index(each) for each in PRESS_ACTIONS if each in names), None)

    async def _click(self, node: Node, window: Window) -> None:
        screen = self._require_screen()
        place = await self._raise_window(window)
        kind = 1 if window.toolkit == "GTK" else 0  # GTK 4 knows places in its window alone
        left, top, width, height = (
            await self._bus.call(node.key, _COMPONENT, "GetExtents", "u", kind)
        )[0]
        if width <= 0 or height <= 0 or left < -10_000:
            raise ToolError("nothing of it can be seen")
        x, y = left + width // 2, top + height // 2
        if kind:
            x, y = x + place.left, y + place.top
        await anyio.to_thread.run_sync(screen.click, x, y)

    async def type_text(self, ref: str, text: str, *, append: bool) -> str:
        """Have it hold this text, and read it back. Returns how that was done. Raises ToolError
        where it holds something else then."""
        element, window, node = await self._find_node(ref)
        held = "" if not append else node.value
        if node.offers("EditableText") and node.has(EDITABLE) and node.role != PASSWORD_ROLE:
            if append:
                # Programs count characters in their own ways.
                end = int(await self._bus.get(node.key, f"{SPI}.Text", "CharacterCount"))
                body = (end, text, len(text.encode()))
                await self._bus.call(node.key, _TEXT_FIELD, "InsertText", "isi", *body)
            else:
                await self._bus.call(node.key, _TEXT_FIELD, "SetTextContents", "s", text)
            if await self._reads(node, held + text):
                await self.settle()
                return "set"
            if (await self._reader.read_again(node.key)).value != node.value:
                raise await self._explain_untaken(element, node)
        await self._focus(node, window)
        screen = self._require_screen()
        if not append:
            await anyio.to_thread.run_sync(screen.press_keys, "ctrl+a")
        await self._require_focus(node, window)
        await anyio.to_thread.run_sync(screen.type_text, text)
        await self._require_focus(node, window)
        await self.settle()
        if node.role == PASSWORD_ROLE:
            return "typed; a password field is not read back"
        if not await self._reads(node, held + text):
            raise await self._explain_untaken(element, node)
        return "typed"

    async def _explain_untaken(self, element: Element, node: Node) -> ToolError:
        now = await self._reader.read_again(node.key)
        return ToolError(
            f"{element.ref} ({describe(element)}) did not take it: it holds "
            f"{quote(now.value[:200])}"
        )

    async def _reads(self, node: Node, text: str) -> bool:
        """Whether it holds this text, or soon does."""
        if not node.offers("Text") or len(text) > MAX_SET_CHARS:
            return False
        with anyio.move_on_after(FOCUS_S / 3):
            while True:
                read = await self._bus.call(node.key, f"{SPI}.Text", "GetText", "ii", 0, -1)
                if str(read[0]).rstrip("\n") == text.rstrip("\n"):
                    return True
                await anyio.sleep(POLL_S)
        return False

    async def _focus(self, node: Node, window: Window) -> None:
        await self._raise_window(window)
        with suppress(NoAnswer):
            await self._bus.call(node.key, _COMPONENT, "GrabFocus")
        with anyio.move_on_after(FOCUS_S):
            while not (await self._reader.read_again(node.key)).has(_FOCUSED):  # noqa: ASYNC110
                await anyio.sleep(POLL_S)
            return
        await self._click(node, window)

    async def _require_focus(self, node: Node, window: Window) -> None:
        """Raises ToolError where keys would go elsewhere."""
        screen = self._require_screen()
        active = await anyio.to_thread.run_sync(screen.find_active)
        mine = await self._find_screen_window(window)
        if mine.id != active or not (await self._reader.read_again(node.key)).has(_FOCUSED):
            raise ToolError(
                f"something else has the keys now, and not {window.shown_name}: nothing more is "
                "typed. Look at what is in front"
            )

    async def press_keys(self, keys: str, window: Window | None = None) -> None:
        """Press these keys in a window. Raises ToolError."""
        window = window or self.current or await self.find_window("")
        screen = self._require_screen()
        await self._raise_window(window)
        await anyio.to_thread.run_sync(screen.press_keys, keys)
        await self.settle()

    async def raise_window(self, window: Window) -> None:
        """Bring it to the front. Raises ToolError."""
        await self._raise_window(window)
        self.current = window

    async def _raise_window(self, window: Window) -> ScreenWindow:
        screen = self._require_screen()
        mine = await self._find_screen_window(window)
        await anyio.to_thread.run_sync(screen.activate, mine.id)
        with anyio.move_on_after(FOCUS_S):
            while await anyio.to_thread.run_sync(screen.find_active) != mine.id:  # noqa: ASYNC110
                await anyio.sleep(POLL_S)
            return mine
        raise ToolError(f"{window.shown_name} cannot be brought to the front")

    async def _find_screen_window(self, window: Window) -> ScreenWindow:
        """The same window as the screen has it. Raises ToolError."""
        screen = self._require_screen()
        found = await anyio.to_thread.run_sync(screen.list_windows)
        pid = await self._find_pid(window.key[0])
        fitting = [each for each in found if each.pid == pid]
        titled = [each for each in fitting or found if each.title == window.title]
        chosen = titled or (fitting if len(fitting) == 1 else [])
        if not chosen:
            raise ToolError(f"{window.shown_name} is not on the screen")
        return chosen[-1]

    async def _find_pid(self, name: str) -> int:
        bus = ("org.freedesktop.DBus", "/org/freedesktop/DBus")
        answer = await self._bus.call(bus, bus[0], "GetConnectionUnixProcessID", "s", name)
        return int(answer[0])

    async def take_picture(self) -> tuple[int, int, bytes]:
        """The screen, as `Screen.take_picture`. Raises ToolError."""
        return await anyio.to_thread.run_sync(self._require_screen().take_picture)

    def _require_screen(self) -> Screen:
        if self._screen is None:
            raise ToolError("keys, clicks and pictures need an X11 screen; there is none here")
        return self._screen

    async def settle(self) -> None:
        """Wait until the current window shows the same twice, for SETTLE_S at most."""
        before: Sequence[Line] = ()
        with anyio.move_on_after(SETTLE_S):
            while self.current is not None:
                await anyio.sleep(QUIET_S)
                with suppress(NoAnswer):
                    now = list_lines(await self._reader.read_window(self.current))
                    if now == before:
                        return
                    before = now
