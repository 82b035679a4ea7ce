"""What agents see now, for people who watch: pages and the screen, with a picture of each when
somebody asks. Nothing is opened, and nothing that an agent does is changed or waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, Protocol

import anyio
import anyio.to_thread
import msgspec

from ..tools.documents.invisible_characters import escape_invisible
from ..types.errors import ToolError
from ..types.labels import Label, join_labels
from ..types.messages import clean_text
from .browser.browsers import Browser, Browsers
from .browser.tab import Tab
from .browser.tab_picture import TabCamera
from .desktop.host import DesktopHost
from .desktop.picture import encode_picture
from .desktop.tool import WINDOWS

MAX_WIDTH = 1280
TIMEOUT_S = 5.0
"""So long a picture may take."""
REST_S = 0.5
"""So long a picture, or that there is none, is what everybody gets who asks."""
MAX_TEXT_CHARS = 10_000

ViewKind = Literal["browser", "desktop"]


class Camera(Protocol):
    async def take(self, timeout_s: float) -> bytes:
        """A JPEG. Raises ToolError where there is none now."""
        ...


class LiveView(msgspec.Struct, frozen=True, kw_only=True):
    """A tab of a browser (`url`), or the screen with the window that is looked at (`program`).
    `used_at` is when an agent used it last, by the clock of the event loop. `label` is that of the
    picture. What it says of itself is from outside."""

    id: str
    kind: ViewKind
    title: str
    used_at: float
    label: Label
    camera: Callable[[], Camera]
    url: str = ""
    program: str = ""


class _Last(msgspec.Struct):
    """The last picture of a view, or why there is none; both are empty before the first."""

    camera: Camera
    lock: anyio.Lock = msgspec.field(default_factory=anyio.Lock)
    at: float = 0.0
    picture: bytes = b""
    problem: str = ""


class LiveViews:
    """Those of this process. `root_of` is the conversation of people that a sub-agent works for;
    any other conversation is its own. A picture that takes longer than `timeout_s` is given up."""

    def __init__(
        self,
        browsers: Browsers,
        desktop: DesktopHost,
        root_of: Callable[[str], str] = str,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._browsers = browsers
        self._desktop = desktop
        self._root_of = root_of
        self._timeout_s = timeout_s
        self._last: dict[str, _Last] = {}

    @property
    def is_running(self) -> bool:
        """Whether agents of this process can use anything that is watched."""
        return self._browsers.is_running

    def list_views(self, session: str) -> list[LiveView]:
        """What this conversation has open, and what its sub-agents have: first what was used last,
        and of a browser the tab that is looked at."""
        views = [*self._list_tabs(session), *self._list_screens(session)]
        return sorted(views, key=lambda view: -view.used_at)

    def _list_tabs(self, session: str) -> Iterator[LiveView]:
        owner = self._browsers.owner_of(session)
        for used_by, browser in self._browsers.list_open():
            if used_by in (session, owner) or self._root_of(used_by) == session:
                yield from _list_tabs_of(browser)

    def _list_screens(self, session: str) -> Iterator[LiveView]:
        desktop = self._desktop.peek()
        if desktop is None or not desktop.is_connected:
            return
        views = [
            view
            for used_by, view in desktop.list_views()
            if used_by == session or self._root_of(used_by) == session
        ]
        if not views:
            return
        latest = max(views, key=lambda view: view.used_at)
        window = latest.current
        yield LiveView(
            id="desktop",
            kind="desktop",
            title=_clean(window.shown_name) if window else "",
            program=_clean(window.program) if window else "",
            used_at=latest.used_at,
            label=join_labels((WINDOWS, *(view.label for _, view in desktop.list_views()))),
            camera=lambda: _ScreenCamera(self._desktop),
        )

    async def take_picture(self, view: LiveView) -> bytes:
        """A picture of it, at most MAX_WIDTH wide and REST_S old. Raises ToolError where there is
        none now."""
        last = self._last.get(view.id)
        if last is None:
            self._forget_closed()
            last = self._last[view.id] = _Last(view.camera())
        async with last.lock:
            if not last.at or anyio.current_time() - last.at >= REST_S:
                await _renew(last, self._timeout_s)
            if last.problem:
                raise ToolError(last.problem)
            return last.picture

    def _forget_closed(self) -> None:
        """Let go of the pictures of what is open no more."""
        tabs = (tab for _, each in self._browsers.list_open() for tab in _list_tabs_of(each))
        open_now = {*(each.id for each in tabs), "desktop"}
        self._last = {id_: last for id_, last in self._last.items() if id_ in open_now}


async def _renew(last: _Last, timeout_s: float) -> None:
    last.picture = b""
    last.problem = f"no picture came in {timeout_s:.0f} s: what is shown is busy"
    try:
        with anyio.move_on_after(timeout_s):
            last.picture = await last.camera.take(timeout_s)
            last.problem = ""
    except ToolError as error:
        last.problem = str(error)
    last.at = anyio.current_time()


def _list_tabs_of(browser: Browser) -> Iterator[LiveView]:
    """Its tabs, the one that is looked at first."""
    tabs = sorted(browser.tabs, key=lambda tab: tab is not browser.current)
    for tab in tabs:
        yield LiveView(
            id=f"browser-{browser.number}-{tab.number}",
            kind="browser",
            title=_clean(tab.title),
            url=_clean(tab.url),
            used_at=browser.used_at,
            label=browser.label,
            camera=partial(TabCamera, tab, partial(_is_in_front, browser, tab)),
        )


def _is_in_front(browser: Browser, tab: Tab) -> bool:
    return browser.current is tab


def _clean(text: str) -> str:
    """What a page or a program says, on one line, with what nobody sees written out."""
    return escape_invisible(" ".join(clean_text(text[:MAX_TEXT_CHARS]).split()))


class _ScreenCamera:
    def __init__(self, host: DesktopHost) -> None:
        self._host = host

    async def take(self, timeout_s: float) -> bytes:
        desktop = self._host.peek()
        if desktop is None:
            raise ToolError("the screen has ended")
        width, height, pixels = await desktop.take_picture()
        return await anyio.to_thread.run_sync(encode_picture, width, height, pixels, MAX_WIDTH)
