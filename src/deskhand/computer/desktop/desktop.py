"""The desktop as one acts on it: the meaning of an element first (its action, its text), real keys
and clicks where it has none, and a look at what came of it."""

from __future__ import annotations

import itertools
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import anyio
import anyio.to_thread
import msgspec

from ...types.errors import ToolError
from ...types.labels import LOCAL, Label, join_labels
from ..done_steps import MAX_STEPS, DoneStep
from ..elements import TARGET_ROLES, Element, RefTable, StaleRef, describe, quote
from ..repeats import RepeatWatch
from ..snapshot import SnapshotLine, list_lines
from .base import SPI, Bus, DesktopScreen, NoAnswer, NodeKey, ScreenWindow
from .clipboard import Clipboard
from .picture import Mark
from .picture_text import Picture
from .pictured_windows import PicturedWindows, PictureKey, is_pictured
from .window_tree import EDITABLE, PASSWORD_ROLE, Node, is_role, tidy_name
from .windows import WRONG_SHAPES, Window, WindowReader

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
READ_BACK_S = 1.5
MAX_SET_CHARS = 100_000
MAX_KEYED_CHARS = 2_000
MAX_KEYS = 50
KEYS_AT_ONCE = 10
"""So many keys are pressed between two looks at where they go."""
MAX_VIEWS = 50
MAX_MARKS = 150
MARKS_S = 5.0
_FOCUSED, _SELECTED = 12, 23
MouseButton = Literal["left", "middle", "right"]
BUTTONS: dict[MouseButton, int] = {"left": 1, "middle": 2, "right": 3}
Direction = Literal["up", "down", "left", "right"]
WHEEL: dict[Direction, int] = {"up": 4, "down": 5, "left": 6, "right": 7}
"""The buttons of X11: https://www.x.org/releases/current/doc/libXi/inputproto.html, "Button"."""
_ROW_ROLES = frozenset(("gridcell", "row", "treeitem", "listitem"))
_COMPONENT = f"{SPI}.Component"
_TEXT_FIELD = f"{SPI}.EditableText"


class WindowView(msgspec.Struct):
    """What one conversation looks at: the window that is `current`, what it showed, and the `steps`
    that were done. `used_at` is when it was used last, by the clock of the event loop, and 0.0
    before that. `label` is that of all that was done."""

    current: Window | None = None
    root: Element = msgspec.field(default_factory=lambda: Element("window"))
    lines: list[SnapshotLine] = []
    repeats: RepeatWatch = msgspec.field(default_factory=RepeatWatch)
    steps: deque[DoneStep] = msgspec.field(default_factory=partial(deque, maxlen=MAX_STEPS))
    used_at: float = 0.0
    label: Label = LOCAL

    def note_use(self, label: Label) -> None:
        """Something is done that has this label."""
        self.used_at = anyio.current_time()
        self.label = join_labels((self.label, label))


class Chosen(msgspec.Struct, frozen=True):
    """What an action is about: a window, and an element of it or None. `onto` is the one on which
    it is dropped."""

    window: Window
    element: Element | None = None
    onto: Element | None = None

    @property
    def identity(self) -> tuple[object, ...]:
        """What must be the same when it is done as when it was asked about."""
        named = [
            None if element is None else (element.role, element.name, element.key)
            for element in (self.element, self.onto)
        ]
        window = self.window
        return window.key, window.title, window.program, window.pid, *named


class Desktop:
    """One desktop. `windows` are those that were listed last."""

    def __init__(self, bus: Bus, screen: DesktopScreen | None, clipboard: Clipboard) -> None:
        self.clipboard = clipboard
        self._bus = bus
        self._reader = WindowReader(bus)
        self._screen = screen
        self._pictured = PicturedWindows(self._on_screen)
        self._turn = anyio.Lock()
        self._numbers = itertools.count(1)
        self._tables: dict[NodeKey, RefTable] = {}
        self._views: dict[str, WindowView] = {}
        self.windows: list[Window] = []

    @property
    def is_connected(self) -> bool:
        return self._bus.is_connected and (self._screen is None or self._screen.is_connected)

    def view_of(self, session: str) -> WindowView:
        """What this conversation looks at."""
        view = self._views.pop(session, None) or WindowView()
        self._views[session] = view  # the latest last
        while len(self._views) > MAX_VIEWS:
            del self._views[next(iter(self._views))]
        return view

    def list_views(self) -> list[tuple[str, WindowView]]:
        """What each conversation looks at that has used it."""
        return [(session, each) for session, each in self._views.items() if each.used_at]

    # Looking

    async def list_windows(self) -> list[Window]:
        """List the windows there are now. Returns those which were not there before."""
        before = {each.key for each in self.windows}
        windows = await self._reader.list_windows()
        if self._screen is not None:
            pids = {each.pid for each in windows}
            windows += await self._pictured.list_windows(pids)
        self.windows = windows
        known = {each.key for each in self.windows}
        self._tables = {key: table for key, table in self._tables.items() if key in known}
        return [each for each in self.windows if each.key not in before]

    def find_window(self, name: str) -> Window:
        """The window whose program and title have these words, of those that were listed last;
        without any, the active one. Raises ToolError where there is none, or several."""
        wanted = " ".join(name.casefold().split())
        fitting = [each for each in self.windows if wanted in each.shown_name.casefold()]
        exact = [each for each in fitting if wanted in (each.title.casefold(), each.app.casefold())]
        if not wanted:
            fitting = [each for each in self.windows if each.is_active]
        elif exact:
            fitting = exact
        if len(fitting) == 1:
            return fitting[0]
        names = ", ".join(quote(each.shown_name) for each in fitting or self.windows)
        if not fitting:
            raise ToolError(f"no window is meant by that; there are: {names or 'none'}")
        raise ToolError(f"several windows are meant by that: {names}")

    def choose(self, view: WindowView, ref: str, window: str, to: str = "") -> Chosen:
        """What an action on this ref, or in this window, is about, by what was seen last; with
        neither in the window that is looked at. `to` is the ref on which it is dropped. Raises
        ToolError."""
        chosen = self._choose_one(view, ref, window)
        if not to:
            return chosen
        onto = self._choose_one(view, to, "")
        if chosen.element is None or onto.window.key != chosen.window.key:
            raise ToolError("an element is dragged to another one of its window")
        return Chosen(chosen.window, chosen.element, onto.element)

    def _choose_one(self, view: WindowView, ref: str, window: str) -> Chosen:
        if ref and window:
            raise ToolError("a ref says which window is meant: leave out the window")
        if ref:
            found = self.peek(ref)
            if found is None:
                raise StaleRef(f"there is no {ref[:20]!r} now: look again")
            return Chosen(found[1], found[0])
        if window:
            return Chosen(self.find_window(window))
        keys = {each.key: each for each in self.windows}
        if view.current is None or view.current.key not in keys:
            raise ToolError("say which window is meant")
        return Chosen(keys[view.current.key])

    async def look(self, view: WindowView, window: Window) -> Element:
        """What this window shows. Raises ToolError."""
        if view.current is None or window.key != view.current.key:
            view.lines = []
        view.root = await self._read_window(window)
        view.current = window
        self._tables.setdefault(window.key, RefTable(self._numbers)).assign(view.root)
        return view.root

    async def _read_window(self, window: Window) -> Element:
        """What it shows; the words in its picture where its program does not say it."""
        if window.is_pictured:
            return await self._pictured.read_window(await self._find_screen_window(window))
        return await self._reader.read_window(window)

    def peek(self, ref: str) -> tuple[Element, Window] | None:
        """The element of this ref as it was last seen, and its window."""
        ref = ref.strip().strip("[]@")
        for window in self.windows:
            table = self._tables.get(window.key)
            if table is not None and table.knows(ref):
                return table.find(ref), window
        return None

    # Acting

    async def _read_now(self, chosen: Chosen) -> Node:
        """The element as it is now. Raises StaleRef where it is gone, or has become something
        else."""
        element = chosen.element
        if element is None:
            raise ToolError("this action needs a ref")
        key: NodeKey = element.key  # type: ignore[assignment]
        try:
            node = await self._reader.read_again(key)
        except NoAnswer:
            raise StaleRef(f"{element.ref} ({describe(element)}) is gone: look again") from None
        name = tidy_name(node.name, chosen.window.toolkit)
        if (name and element.name and name != element.name) or not is_role(node, element.role):
            raise StaleRef(
                f"{element.ref} was {describe(element)} when it was shown, and is {quote(name)} "
                "now: look again"
            )
        return node

    async def press(self, chosen: Chosen) -> str:
        """Use it as a click would. Returns how that was done. Raises ToolError."""
        if is_pictured(chosen.element):
            await self.click(chosen, "left", 1)
            return "by a click of the mouse"
        node = await self._read_now(chosen)
        if chosen.element is not None and "disabled" in chosen.element.states:
            raise ToolError(f"{describe(chosen.element)} is disabled")
        if chosen.element is not None and chosen.element.role in _ROW_ROLES:
            return await self._select(node, chosen.window)
        action = await self._find_action(node)
        if action is not None:
            done = (await self._bus.call(node.key, f"{SPI}.Action", "DoAction", "i", action))[0]
            if not done:
                raise ToolError(f"{chosen.window.app} did not do it")
            return "by its action"
        await self._click(node, chosen.window)
        return "by a click of the mouse"

    async def _select(self, node: Node, window: Window) -> str:
        """Choose a row or a cell. Never by its action: that of GTK 3 is done to the row that was
        chosen before."""
        with suppress(NoAnswer):
            await self._bus.call(node.key, _COMPONENT, "GrabFocus")
        with anyio.move_on_after(FOCUS_S):
            while True:
                now = await self._reader.read_again(node.key)
                if now.has(_SELECTED) or now.has(_FOCUSED):
                    return "selected; Enter opens it"
                await anyio.sleep(POLL_S)
        await self._click(node, window)
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

    async def click(self, chosen: Chosen, button: MouseButton, times: int) -> None:
        """Click it with the mouse, whatever it offers. Raises ToolError."""
        place = await self._raise_window(chosen.window)
        point = await self._find_point(chosen.window, chosen.element, place)
        inside = place.id if is_pictured(chosen.element) else 0
        await self._on_screen("click", *point, BUTTONS[button], times, inside)

    async def scroll(self, chosen: Chosen, direction: Direction, clicks: int) -> None:
        """Turn the wheel over an element, or over the middle of a window. Raises ToolError."""
        place = await self._raise_window(chosen.window)
        point = place.left + place.width // 2, place.top + place.height // 2
        if chosen.element is not None:
            point = await self._find_point(chosen.window, chosen.element, place)
        inside = place.id if chosen.window.is_pictured else 0
        await self._on_screen("click", *point, WHEEL[direction], clicks, inside)

    async def drag(self, chosen: Chosen) -> None:
        """Drag an element to the one that it is dropped onto. Raises ToolError."""
        place = await self._raise_window(chosen.window)
        start = await self._find_point(chosen.window, chosen.element, place)
        end = await self._find_point(chosen.window, chosen.onto, place)
        inside = place.id if is_pictured(chosen.element) else 0
        await self._on_screen("drag", start, end, inside)

    async def close_window(self, window: Window) -> None:
        """Ask it to close; it may ask something first. Raises ToolError."""
        mine = await self._find_screen_window(window)
        if mine.title and not window.title:  # a menu: what would be closed is its window
            raise ToolError("this is not closed like a window: press Escape in it")
        await self._on_screen("close_window", mine.id)

    async def _click(self, node: Node, window: Window) -> None:
        place = await self._raise_window(window)
        await self._on_screen("click", *await self._find_middle(node, window, place))

    async def _find_point(
        self, window: Window, element: Element | None, place: ScreenWindow
    ) -> tuple[int, int]:
        """Where this element is on the screen. Raises ToolError where it is not what it was, or
        cannot be seen."""
        if element is not None and is_pictured(element):
            point = await self._pictured.find_middle(element, place)
            if await self._find_screen_window(window) != place:
                raise ToolError("the window has moved meanwhile: look again")
            return point
        node = await self._read_now(Chosen(window, element))
        return await self._find_middle(node, window, place)

    async def _find_middle(
        self, node: Node, window: Window, place: ScreenWindow
    ) -> tuple[int, int]:
        """The middle of it on the screen. Raises ToolError where nothing of it can be seen."""
        left, top, width, height = await self._find_bounds(node.key, window, place)
        x, y = left + width // 2, top + height // 2
        inside_x = place.left <= x < place.left + place.width
        inside_y = place.top <= y < place.top + place.height
        if width <= 0 or height <= 0 or not (inside_x and inside_y):
            raise ToolError("nothing of it can be seen in its window: scroll first")
        return x, y

    async def _find_bounds(
        self, key: NodeKey, window: Window, place: ScreenWindow
    ) -> tuple[int, int, int, int]:
        """Its left, top, width and height on the screen. Raises NoAnswer."""
        kind = 1 if window.toolkit == "GTK" else 0  # GTK 4 knows places in its window alone
        extents = (await self._bus.call(key, _COMPONENT, "GetExtents", "u", kind))[0]
        left, top, width, height = map(int, extents)
        if kind:
            left, top = left + place.left, top + place.top
        return left, top, width, height

    async def type_text(self, chosen: Chosen, text: str, *, append: bool) -> str:
        """Have it hold this text, and read it back. Returns how that was done. Raises ToolError
        where it holds something else then: it is never tried in a second way."""
        if chosen.window.is_pictured or is_pictured(chosen.element):
            return await self._type_unread(chosen, text)
        node = await self._read_now(chosen)
        held = await self._read_text(node) if append else ""
        if node.offers("EditableText") and node.has(EDITABLE) and node.role != PASSWORD_ROLE:
            if append:
                # Programs count characters in their own ways.
                end = int(await self._bus.get(node.key, f"{SPI}.Text", "CharacterCount"))
                body = (end, text, len(text.encode()))
                await self._bus.call(node.key, _TEXT_FIELD, "InsertText", "isi", *body)
            else:
                await self._bus.call(node.key, _TEXT_FIELD, "SetTextContents", "s", text)
            if not await self._reads(node, held + text):
                raise await self._explain_untaken(chosen, node)
            return "set"
        await self._type_keys(chosen, node, text, append=append)
        if node.role == PASSWORD_ROLE:
            return "typed; a password field is not read back"
        if not await self._reads(node, held + text):
            raise await self._explain_untaken(chosen, node)
        return "typed"

    async def _type_unread(self, chosen: Chosen, text: str) -> str:
        """Type it into a window of which nothing tells what it holds then."""
        if len(text) > MAX_KEYED_CHARS:
            raise ToolError(f"at most {MAX_KEYED_CHARS:,} characters are typed here at once")
        if chosen.element is not None:
            await self.click(chosen, "left", 1)
        else:
            await self._raise_window(chosen.window)
        for start in range(0, len(text), KEYS_AT_ONCE):
            await self._require_active(chosen.window)
            await self._on_screen("type_text", text[start : start + KEYS_AT_ONCE])
        return "typed behind what was there; this program does not say whether it has taken it"

    async def _type_keys(self, chosen: Chosen, node: Node, text: str, *, append: bool) -> None:
        """Type it a few keys at a time, each time only if they go to this element."""
        if len(text) > MAX_KEYED_CHARS:
            raise ToolError(
                f"this field takes keys alone, and at most {MAX_KEYED_CHARS:,} characters at once"
            )
        await self._focus(node, chosen.window)
        await self._require_focus(node, chosen.window)
        if not append:
            await self._on_screen("press_keys", "ctrl+a")
        for start in range(0, len(text), KEYS_AT_ONCE):
            await self._require_focus(node, chosen.window)
            await self._on_screen("type_text", text[start : start + KEYS_AT_ONCE])
        await self._require_focus(node, chosen.window)

    async def _explain_untaken(self, chosen: Chosen, node: Node) -> ToolError:
        now = await self._reader.read_again(node.key)
        which = describe(chosen.element) if chosen.element is not None else "it"
        return ToolError(f"{which} did not take it: it holds {quote(now.value[:200])}")

    async def _read_text(self, node: Node) -> str:
        """All that it holds, up to MAX_SET_CHARS."""
        if not node.offers("Text"):
            return ""
        text = f"{SPI}.Text"
        size = min(int(await self._bus.get(node.key, text, "CharacterCount")), MAX_SET_CHARS)
        return str((await self._bus.call(node.key, text, "GetText", "ii", 0, size))[0])

    async def _reads(self, node: Node, text: str) -> bool:
        """Whether it holds this text, or soon does."""
        wanted = text[:MAX_SET_CHARS].rstrip("\n")
        with anyio.move_on_after(READ_BACK_S):
            while (await self._read_text(node)).rstrip("\n") != wanted:  # noqa: ASYNC110
                await anyio.sleep(POLL_S)
            return True
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
        await self._require_active(window)
        if not (await self._reader.read_again(node.key)).has(_FOCUSED):
            raise ToolError("something else in the window has the keys now: nothing more is typed")

    async def _require_active(self, window: Window) -> None:
        mine = await self._find_screen_window(window)
        if mine.id != await self._on_screen("find_active"):
            raise ToolError(
                f"something else has the keys now, and not {quote(window.shown_name)}: nothing "
                "more is typed. Look at what is in front"
            )

    async def press_keys(self, chosen: Chosen, keys: str) -> None:
        """Press these keys in a window, each only if it is in front. Raises ToolError."""
        each_key = keys.split()
        if len(each_key) > MAX_KEYS:
            raise ToolError(f"at most {MAX_KEYS} keys are pressed at once")
        await self._raise_window(chosen.window)
        if is_pictured(chosen.element):
            await self.click(chosen, "left", 1)
        elif chosen.element is not None:
            await self._focus(await self._read_now(chosen), chosen.window)
        for key in each_key:
            await self._require_active(chosen.window)
            await self._on_screen("press_keys", key)

    async def raise_window(self, window: Window) -> None:
        """Bring it to the front. Raises ToolError."""
        await self._raise_window(window)

    async def _raise_window(self, window: Window) -> ScreenWindow:
        mine = await self._find_screen_window(window)
        await self._on_screen("activate", mine.id)
        with anyio.move_on_after(FOCUS_S):
            while await self._on_screen("find_active") != mine.id:  # noqa: ASYNC110
                await anyio.sleep(POLL_S)
            return mine
        raise ToolError(f"{quote(window.shown_name)} cannot be brought to the front")

    async def _find_screen_window(self, window: Window) -> ScreenWindow:
        """The same window as the screen has it: of the same process, and by its title where that
        has several. Raises ToolError where that is not certain."""
        found: list[ScreenWindow] = await self._on_screen("list_windows")
        if window.is_pictured:
            same = [
                each for each in found if (str(each.id), each.pid) == (window.key[1], window.pid)
            ]
            if not same:
                raise ToolError(f"{quote(window.shown_name)} is closed")
            return same[0]
        own = [each for each in found if each.pid and each.pid == window.pid]
        titled = [each for each in own if each.title == window.title]
        chosen = own if len(own) == 1 else titled
        if len(chosen) != 1:
            raise ToolError(f"{quote(window.shown_name)} cannot be told from others on the screen")
        return chosen[0]

    async def take_picture(self) -> tuple[int, int, bytes]:
        """The screen, as `DesktopScreen.take_picture`. Raises ToolError."""
        picture: tuple[int, int, bytes] = await self._on_screen("take_picture")
        return picture

    async def take_marked_picture(
        self, view: WindowView, window: Window
    ) -> tuple[Picture, list[Mark]]:
        """This window, and where in the picture the elements are that one may act on: MAX_MARKS at
        most, and those that are found within MARKS_S. Raises ToolError where a window of another
        process covers any of it."""
        root = await self.look(view, window)
        place = await self._find_screen_window(window)
        picture = await self._pictured.take_picture(place)
        marks: list[Mark] = []
        with anyio.move_on_after(MARKS_S):
            for element in root.walk():
                if element.ref and element.role not in TARGET_ROLES:
                    marks += await self._find_mark(element, picture, window, place)
                if len(marks) >= MAX_MARKS:
                    break
        return picture, marks

    async def _find_mark(
        self, element: Element, picture: Picture, window: Window, place: ScreenWindow
    ) -> list[Mark]:
        """Its mark, or none where it is not to be seen in the picture."""
        if isinstance(key := element.key, PictureKey):
            left, top, width, height = place.left + key.left, place.top + key.top, 0, 0
        else:
            try:
                bounds = await self._find_bounds(element.key, window, place)  # type: ignore[arg-type]
            except (NoAnswer, *WRONG_SHAPES):
                return []
            left, top, width, height = bounds
            if width <= 0 or height <= 0:
                return []
        mark = Mark(element.ref, left - picture.left, top - picture.top, width, height)
        return [mark] if mark.is_within(picture.width, picture.height) else []

    async def _on_screen(self, name: str, *arguments: Any) -> Any:
        """What this method of the screen returns. Raises ToolError."""
        if self._screen is None:
            raise ToolError("keys, clicks and pictures need an X11 screen; there is none here")
        act = partial(getattr(self._screen, name), *arguments)
        async with self._turn:  # one after the other, in the order in which they ask
            # A screen that hangs must not hold up who stops this.
            return await anyio.to_thread.run_sync(act, abandon_on_cancel=True)

    async def settle(self, window: Window) -> None:
        """Wait until this window shows the same twice, for SETTLE_S at most."""
        before: object = None
        with anyio.move_on_after(SETTLE_S), suppress(ToolError):
            while True:
                await anyio.sleep(QUIET_S)
                now = await self._read_quickly(window)
                if now == before:
                    return
                before = now

    async def _read_quickly(self, window: Window) -> object:
        """What it shows, only to be compared. Raises ToolError."""
        if window.is_pictured:
            return await self._pictured.take_picture(await self._find_screen_window(window))
        return list_lines(await self._reader.read_window(window))
