"""An X11 screen: its windows, its picture, and real keys and clicks (XTEST). It blocks, so it is
called from a thread."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, TypeVar, cast

from Xlib import XK, X, display, error
from Xlib.ext import res, xtest
from Xlib.protocol import event as xevent
from Xlib.support import connect

from ...types.errors import ToolError
from .base import ScreenWindow

KEY_S = 0.004
REMAP_S = 0.02
"""So long slow programs take to see that a key means something else now."""
DRAG_STEPS = 12
DRAG_S = 0.02
MAX_SPARE_KEYS = 8
_MODIFIERS = {
    "ctrl": "Control_L",
    "control": "Control_L",
    "shift": "Shift_L",
    "alt": "Alt_L",
    "super": "Super_L",
    "meta": "Super_L",
    "cmd": "Control_L",
}
_KEYS = {
    "enter": "Return",
    "esc": "Escape",
    "escape": "Escape",
    "backspace": "BackSpace",
    "delete": "Delete",
    "tab": "Tab",
    "space": "space",
    "arrowup": "Up",
    "arrowdown": "Down",
    "arrowleft": "Left",
    "arrowright": "Right",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "home": "Home",
    "end": "End",
    "pageup": "Prior",
    "pagedown": "Next",
    **{f"f{n}": f"F{n}" for n in range(1, 13)},
}
ANSWER_S = 10.0
_HELD = X.ShiftMask | X.LockMask | X.ControlMask | X.Mod1Mask | X.Mod4Mask


C = TypeVar("C", bound=Callable[..., Any])


def _on_display(method: C) -> C:
    """The method, whose errors of the connection are ToolErrors. One thread at a time, also beside
    one that nobody waits for any more: of two that wait for an answer, python-xlib may let one wait
    for ever."""

    @wraps(method)
    def run(self: X11Screen, *arguments: Any) -> Any:
        if not self.is_connected:
            raise ToolError("the screen has ended")
        if not self.lock.acquire(timeout=ANSWER_S):
            raise ToolError("the screen does not answer")
        try:
            return method(self, *arguments)
        except (error.ConnectionClosedError, OSError) as problem:
            self.is_connected = False
            raise ToolError("the screen has ended") from problem
        except (error.XError, struct.error, AttributeError) as problem:
            raise ToolError(f"the screen did not do it: {type(problem).__name__}") from problem
        finally:
            self.lock.release()

    return cast("C", run)


class X11Screen:
    """A connection to one, with the cookie that it asks for. Raises ToolError where there is
    none."""

    def __init__(self, name: str, cookie: bytes = b"") -> None:
        self.is_connected = True
        self.lock = threading.RLock()
        try:
            with _given_cookie(cookie):
                self._display = display.Display(name)
        except (error.DisplayError, OSError) as problem:
            raise ToolError(f"there is no X11 screen {name!r}: {problem}") from problem
        self._root = self._display.screen().root

    def close(self) -> None:
        """Let go of it."""
        self.is_connected = False
        with suppress(error.ConnectionClosedError, OSError):
            self._display.close()

    # Windows

    def _atom(self, name: str) -> int:
        return int(self._display.intern_atom(name))

    def _property(self, window: Any, name: str) -> Any:
        try:
            found = window.get_full_property(self._atom(name), X.AnyPropertyType)
        except error.XError:
            return None
        return None if found is None else found.value

    @_on_display
    def list_windows(self) -> list[ScreenWindow]:
        """All that the window manager has, also those that are hidden, the lowest first."""
        found = []
        for id_ in self._property(self._root, "_NET_CLIENT_LIST_STACKING") or ():
            window = self._display.create_resource_object("window", id_)
            try:
                size = window.get_geometry()
                place = window.translate_coords(self._root, 0, 0)
            except error.XError:
                continue
            title = self._property(window, "_NET_WM_NAME")
            title = title or self._property(window, "WM_NAME") or b""
            found.append(
                ScreenWindow(
                    int(id_),
                    title if isinstance(title, str) else bytes(title).decode(errors="replace"),
                    self._find_pid(int(id_)),
                    -place.x,
                    -place.y,
                    size.width,
                    size.height,
                )
            )
        return found

    def _find_pid(self, id_: int) -> int:
        """The process that shows it. What a window says of that itself may be another one's.
        https://www.x.org/releases/current/doc/resourceproto/resproto.txt"""
        if not self._display.has_extension("X-Resource"):
            return 0
        asked = [{"client": id_, "mask": res.LocalClientPIDMask}]
        found = [list(each.value) for each in res.query_client_ids(self._display, asked).ids]
        return int(found[0][0]) if found and found[0] else 0

    # What covers what

    def _list_tops(self) -> list[tuple[int, int, int, int, int]]:
        """What lies on the screen, the lowest first: windows with their frames, menus and whatever
        else takes clicks. Id, left, top, width and height of each."""
        found = []
        for each in self._root.query_tree().children:
            try:
                if each.get_attributes().map_state == X.IsViewable:
                    size = each.get_geometry()
                    edge = 2 * size.border_width
                    place = size.x, size.y, size.width + edge, size.height + edge
                    found.append((int(each.id), *place))
            except error.XError:
                continue  # it has gone meanwhile
        return found

    def _require_on_top(
        self, id_: int, left: int, top: int, width: int, height: int, own: int = 0
    ) -> None:
        """Raises ToolError where something lies over this part of the screen that does not belong
        to the window, nor to the process `own`."""
        frame = self._display.create_resource_object("window", id_)
        while (parent := frame.query_tree().parent) != self._root:
            if not parent:
                raise ToolError("the window is not on the screen")
            frame = parent
        tops = self._list_tops()
        ids = [each[0] for each in tops]
        if frame.id not in ids:
            raise ToolError("the window is not on the screen: focus it first")
        for each, x, y, wide, high in tops[ids.index(frame.id) + 1 :]:
            covers = x < left + width and left < x + wide and y < top + height and top < y + high
            if covers and not (own and self._find_pid(each) == own):
                raise ToolError("something covers the window there: focus it first")

    @_on_display
    def take_window_picture(self, id_: int) -> tuple[int, int, int, int, bytes]:
        """What of this window is on the screen: its left, top, width and height there, and the
        pixels as BGRX. Raises ToolError where another window covers any of it."""
        window = self._display.create_resource_object("window", id_)
        size, place = window.get_geometry(), window.translate_coords(self._root, 0, 0)
        screen = self._root.get_geometry()
        left, top = max(0, -place.x), max(0, -place.y)
        width = min(screen.width, size.width - place.x) - left
        height = min(screen.height, size.height - place.y) - top
        if width <= 0 or height <= 0:
            raise ToolError("nothing of the window is on the screen")
        own = self._find_pid(id_)  # its tooltips and menus are of its picture
        self._require_on_top(id_, left, top, width, height, own)
        image = self._root.get_image(left, top, width, height, X.ZPixmap, 0xFFFFFFFF)
        self._require_on_top(id_, left, top, width, height, own)
        return left, top, width, height, bytes(image.data)

    @_on_display
    def find_active(self) -> int:
        """The id of the window that has the keys; 0 for none."""
        found = self._property(self._root, "_NET_ACTIVE_WINDOW")
        return int(found[0]) if found is not None and len(found) else 0

    @_on_display
    def activate(self, id_: int) -> None:
        """Bring it to the front, and give it the keys."""
        self._ask_manager(id_, "_NET_ACTIVE_WINDOW", [2, X.CurrentTime, 0, 0, 0])

    @_on_display
    def close_window(self, id_: int) -> None:
        """Ask it to close, as its button for that does."""
        self._ask_manager(id_, "_NET_CLOSE_WINDOW", [X.CurrentTime, 2, 0, 0, 0])

    def _ask_manager(self, id_: int, what: str, data: list[int]) -> None:
        """https://specifications.freedesktop.org/wm-spec/latest/ar01s03.html"""
        window = self._display.create_resource_object("window", id_)
        message = xevent.ClientMessage(window=window, client_type=self._atom(what), data=(32, data))
        mask = X.SubstructureRedirectMask | X.SubstructureNotifyMask
        self._root.send_event(message, event_mask=mask)
        self._display.sync()

    @_on_display
    def take_picture(self) -> tuple[int, int, bytes]:
        """Width, height, and the pixels as BGRX."""
        size = self._root.get_geometry()
        image = self._root.get_image(0, 0, size.width, size.height, X.ZPixmap, 0xFFFFFFFF)
        return size.width, size.height, bytes(image.data)

    # Keys and the mouse

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Raises ToolError while a person holds keys that would change what is typed."""
        while self._display.pending_events():
            self._display.next_event()  # nobody reads them, and they would pile up
        if self._root.query_pointer().mask & _HELD:
            raise ToolError("Shift, Control, Alt or Caps Lock is on: nothing was typed")
        try:
            yield
        finally:
            self._display.sync()
            self._display.get_input_focus()  # all has arrived before this is answered

    def _fake(self, kind: int, detail: int) -> None:
        xtest.fake_input(self._display, kind, detail)
        self._display.sync()
        _pause(KEY_S)

    @_on_display
    def press_keys(self, keys: str) -> None:
        """Press `ctrl+s`, `Enter`, or several with spaces between. Raises ToolError for a key that
        there is not."""
        combinations = [self._read_keys(each) for each in keys.split()]
        with self._undisturbed():
            for held, key in combinations:
                for each in held:
                    self._fake(X.KeyPress, each)
                try:
                    self._fake(X.KeyPress, key)
                    self._fake(X.KeyRelease, key)
                finally:
                    for each in reversed(held):
                        self._fake(X.KeyRelease, each)

    def _read_keys(self, pressed: str) -> tuple[list[int], int]:
        *held, name = pressed.split("+") if len(pressed) > 1 else [pressed]
        codes = []
        for each in held:
            if each.lower() not in _MODIFIERS:
                raise ToolError(f"{each!r} is no key that is held: use ctrl, shift, alt or super")
            codes.append(self._keycode(_MODIFIERS[each.lower()]))
        if len(name) == 1:
            code, level = self._find_char(name)
            if not code:
                raise ToolError(f"this keyboard has no key {name!r}: type it into a ref")
            return codes + ([self._keycode("Shift_L")] if level else []), code
        return codes, self._keycode(_KEYS.get(name.lower(), name))

    def _keycode(self, name: str) -> int:
        symbol = XK.string_to_keysym(name) or (ord(name) if len(name) == 1 else 0)
        code = self._display.keysym_to_keycode(symbol) if symbol else 0
        if not code:
            raise ToolError(f"this keyboard has no key {name!r}: use names such as Enter or ctrl+s")
        return int(code)

    @_on_display
    def type_text(self, text: str) -> None:
        """Type it key by key. Characters that the keyboard does not have are given to spare keys,
        which are put back afterwards."""
        with self._undisturbed(), self._spare_keys() as spare:
            shift = self._keycode("Shift_L")
            for char in text:
                code, level = self._find_char(char)
                if not code:
                    code, level = spare.give(_symbol_of(char)), 0
                if level:
                    self._fake(X.KeyPress, shift)
                try:
                    self._fake(X.KeyPress, code)
                    self._fake(X.KeyRelease, code)
                finally:
                    if level:
                        self._fake(X.KeyRelease, shift)

    def _find_char(self, char: str) -> tuple[int, int]:
        """The key that has it, and whether Shift is needed; 0 for none."""
        symbol = _symbol_of(char)
        code = int(self._display.keysym_to_keycode(symbol))
        for level in (0, 1):
            if code and self._display.keycode_to_keysym(code, level) == symbol:
                return code, level
        return 0, 0

    @contextmanager
    def _spare_keys(self) -> Iterator[_SpareKeys]:
        first, last = self._display.display.info.min_keycode, self._display.display.info.max_keycode
        table = self._display.get_keyboard_mapping(first, last - first + 1)
        free = [first + n for n, symbols in enumerate(table) if not any(symbols)]
        spare = _SpareKeys(self._display, free[-MAX_SPARE_KEYS:])
        try:
            yield spare
        finally:
            spare.put_back()

    @_on_display
    def click(self, x: int, y: int, button: int = 1, times: int = 1, inside: int = 0) -> None:
        """Move the mouse there, and click; with `inside` only where that window is on top."""
        if inside:
            self._require_on_top(inside, x, y, 1, 1)
        with self._undisturbed():
            self._move(x, y)
            for _ in range(times):
                self._fake(X.ButtonPress, button)
                self._fake(X.ButtonRelease, button)

    @_on_display
    def drag(self, start: tuple[int, int], end: tuple[int, int], inside: int = 0) -> None:
        """Press the left button at one place, and let it go at the other; with `inside` only where
        that window is on top."""
        for x, y in (start, end) if inside else ():
            self._require_on_top(inside, x, y, 1, 1)
        with self._undisturbed():
            self._move(*start)
            self._fake(X.ButtonPress, 1)
            try:
                for step in range(1, DRAG_STEPS + 1):
                    # Programs see a drag in how the mouse moves, not in where it ends.
                    x, y = (
                        a + (b - a) * step // DRAG_STEPS for a, b in zip(start, end, strict=True)
                    )
                    self._move(x, y)
                    _pause(DRAG_S)
            finally:
                self._fake(X.ButtonRelease, 1)

    def _move(self, x: int, y: int) -> None:
        xtest.fake_input(self._display, X.MotionNotify, x=x, y=y)
        self._display.sync()


class _SpareKeys:
    """Keys that mean nothing, and are given a character for a moment: one after the other, since
    slow programs look late at what a key means."""

    def __init__(self, connection: Any, codes: list[int]) -> None:
        self._display = connection
        self._codes = codes
        self._given: dict[int, int] = {}
        self._next = 0

    def give(self, symbol: int) -> int:
        """The key that types this now. Raises ToolError where there is none to spare."""
        if symbol in self._given:
            return self._given[symbol]
        if not self._codes:
            raise ToolError("this keyboard has no key to spare for such characters: paste the text")
        code = self._codes[self._next % len(self._codes)]
        self._next += 1
        self._given = {known: at for known, at in self._given.items() if at != code}
        self._given[symbol] = code
        self._set(code, symbol)
        return code

    def _set(self, code: int, symbol: int) -> None:
        self._display.change_keyboard_mapping(code, [[symbol] * 2])
        self._display.sync()
        _pause(REMAP_S)

    def put_back(self) -> None:
        if self._given:
            _pause(REMAP_S)
        for code in self._codes[: self._next]:
            self._set(code, 0)


@contextmanager
def _given_cookie(cookie: bytes) -> Iterator[None]:
    """A connection that is made now shows this cookie. The library would look for one in the
    environment of this process alone."""
    if not cookie:
        yield
        return
    usual = connect.get_auth
    connect.get_auth = lambda *_: (b"MIT-MAGIC-COOKIE-1", cookie)
    try:
        yield
    finally:
        connect.get_auth = usual


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _symbol_of(char: str) -> int:
    """https://www.x.org/releases/current/doc/xproto/x11protocol.html#keysym_encoding"""
    if char == "\n":
        return int(XK.XK_Return)
    if char == "\t":
        return int(XK.XK_Tab)
    number = ord(char)
    return number if 0x20 <= number <= 0x7E or 0xA0 <= number <= 0xFF else 0x01000000 | number
