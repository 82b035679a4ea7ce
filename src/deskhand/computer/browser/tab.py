"""One tab: what it shows as elements, and what has happened in it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from ...types.errors import ToolError
from ..elements import Element, RefTable, StaleRef, quote
from ..snapshot import SnapshotLine, list_lines
from . import page_scripts
from .hosts import find_host
from .page_tree import (
    COMPUTED_STYLES,
    MAX_CONTENT_NAME_CHARS,
    PageFrame,
    PageKey,
    TreeBuilder,
    flatten_frames,
    read_ax_nodes,
    read_looks,
)
from .protocol import CALL_S, WRONG_SHAPES, BrowserGone, CommandRefused, PendingCall, Protocol
from .sign_ins import SiteSignIn, render_storage_script

START_URL = "about:blank"
LOAD_S = 30.0
SETTLE_S = 4.0
QUIET_S = 0.12
FIRST_LOOK_S = 0.05
POLL_S = 0.02
MAX_CONSOLE = 60
MAX_REQUESTS = 1_000
MAX_LEFT_OUT = 20
_WAITED_FOR = frozenset(("Document", "XHR", "Fetch", "Script", "Stylesheet"))
"""Kinds of requests whose answers change what a page shows."""
_MAIN_FRAME_EVENTS = frozenset(
    ("Page.frameStartedLoading", "Page.frameStoppedLoading", "Page.navigatedWithinDocument")
)
_WORLD = "deskhand"

MayEnter = Callable[["Tab", str], bool]


class Dialog(msgspec.Struct, frozen=True):
    """What a page asks in a window of its own; nothing else goes on in it until that is
    answered."""

    kind: str
    message: str
    default: str = ""


class Tab:
    """A page target of the browser, with the session over which it is spoken to. `refs` and `lines`
    are of what was last shown. `may_enter` says of an address to which the page leads by itself
    whether it may be gone to. One with a `sign_in` stays at its site, whoever leads where:
    `leads_away` is where it was to go instead, `frames_left_out` the hosts of frames that were not
    loaded, and `hide` takes keys of the sign-in out of a text."""

    def __init__(
        self,
        protocol: Protocol,
        session: str,
        target: str,
        number: int,
        may_enter: MayEnter,
        numbers: Iterator[int],
    ) -> None:
        self._protocol = protocol
        self._session = session
        self.target = target
        self.number = number
        self._may_enter = may_enter
        self._is_opening = False
        self.sign_in: SiteSignIn | None = None
        self.hide: Callable[[str], str] = str
        self.leads_away = ""
        self.frames_left_out: set[str] = set()
        self.url = START_URL
        self.title = ""
        self.refs = RefTable(numbers)
        self.frames: dict[str, PageFrame] = {}
        self.opener_url = ""
        self._shown: dict[str, tuple[str, str]] = {}
        self._secret: set[PageKey] = set()
        self.root = Element("page")
        self.lines: list[SnapshotLine] = []
        self.dialog: Dialog | None = None
        self.chooser = 0
        self.drag_data: Any = None
        self.console: deque[str] = deque(maxlen=MAX_CONSOLE)
        self.is_over = False
        self.failure = ""
        self._is_loading = False
        self._loads = 0
        self._frame = target  # the main frame of a page has its name
        self._worlds: dict[str, int] = {}
        self._requests: dict[str, float] = {}
        self._changed_at = 0.0
        self._interrupted = anyio.Event()

    # What it says

    async def open_session(self) -> None:
        """Have it tell what happens. Raises BrowserGone, CommandRefused."""
        if self.sign_in is not None:
            stored = {"source": render_storage_script(self.sign_in), "worldName": _WORLD}
            self._protocol.post("Page.addScriptToEvaluateOnNewDocument", stored, self._session)
        # Without waiting for answers: a tab that a page has opened gives some of them only when it
        # is let go on.
        for method, params in (
            ("Page.enable", {}),
            ("Network.enable", {}),
            ("Page.setInterceptFileChooserDialog", {"enabled": True}),
            ("Fetch.enable", {"patterns": [{"resourceType": "Document"}]}),
            ("Runtime.runIfWaitingForDebugger", {}),
        ):
            self._protocol.post(method, params, self._session)
        frames = await self.call("Page.getFrameTree")
        if self.url == START_URL:  # it may have gone on while this was answered
            self.url = str(frames["frameTree"]["frame"].get("url", ""))

    def take_event(self, method: str, said: dict[str, Any]) -> None:
        """Take in what has happened."""
        if method.startswith("Network."):
            self._take_request(method, said)
        elif said.get("frameId") == self._frame and method in _MAIN_FRAME_EVENTS:
            self._take_main_frame(method, said)
        else:
            self._take_other(method, said)

    def _take_request(self, method: str, said: dict[str, Any]) -> None:
        id_ = str(said.get("requestId"))
        if method == "Network.requestWillBeSent" and said.get("type") in _WAITED_FOR:
            if len(self._requests) < MAX_REQUESTS:
                self._requests[id_] = time.monotonic()
        elif method in ("Network.loadingFinished", "Network.loadingFailed") and (
            self._requests.pop(id_, None) is not None
        ):
            self._changed_at = time.monotonic()

    def _take_main_frame(self, method: str, said: dict[str, Any]) -> None:
        if method == "Page.frameStartedLoading":
            self._is_loading = True
        elif method == "Page.frameStoppedLoading":
            self._is_loading = False
            self._loads += 1
            self._changed_at = time.monotonic()
        else:
            self.url = str(said.get("url", ""))

    def _take_other(self, method: str, said: dict[str, Any]) -> None:
        match method:
            case "Fetch.requestPaused":
                self._judge_navigation(said)
            case "Page.frameNavigated":
                self._take_navigation(said.get("frame", {}))
            case "Page.javascriptDialogOpening" if said.get("type") == "beforeunload":
                answer = {"accept": True}  # whoever leads away from a page means it
                self._protocol.post("Page.handleJavaScriptDialog", answer, self._session)
            case "Page.javascriptDialogOpening":
                self.dialog = Dialog(
                    str(said.get("type", "")),
                    str(said.get("message", ""))[:2000],
                    str(said.get("defaultPrompt", ""))[:200],
                )
                self.interrupt()
            case "Page.javascriptDialogClosed":
                self.dialog = None
            case "Page.fileChooserOpened":
                self.chooser = int(said.get("backendNodeId", 0))
            case "Input.dragIntercepted":
                self.drag_data = said.get("data")
            case "Runtime.consoleAPICalled":
                self.console.append(_format_console(said))
            case "Inspector.targetCrashed":
                self.failure = "the page has crashed"
            case _:
                pass

    def _judge_navigation(self, said: dict[str, Any]) -> None:
        """A document is about to be asked for: let it go on, or stay where we are."""
        answered = {"requestId": said.get("requestId")}
        url = str(said.get("request", {}).get("url", ""))
        if self._may_load(url, is_frame=said.get("frameId") != self._frame):
            self._protocol.post("Fetch.continueRequest", answered, self._session)
        else:
            answered["errorReason"] = "Aborted"
            self._protocol.post("Fetch.failRequest", answered, self._session)

    def _may_load(self, url: str, *, is_frame: bool) -> bool:
        if self.sign_in is None:
            return is_frame or self._is_opening or self._may_enter(self, url)
        if self.sign_in.holds_at(url):
            return True
        if not is_frame:
            self.leads_away = url
        elif len(self.frames_left_out) < MAX_LEFT_OUT:
            # All frames of a page share a process, which knows who is signed in.
            self.frames_left_out.add(find_host(url))
        return False

    def _take_navigation(self, frame: dict[str, Any]) -> None:
        self._worlds.clear()
        if frame.get("id") == self._frame and not frame.get("parentId"):
            self.url = str(frame.get("url", ""))
            self.refs.clear()
            self.lines = []
            self._shown.clear()
            self._secret.clear()
            self._requests.clear()

    @property
    def has_begun(self) -> bool:
        """Whether it shows something else than nothing, or never will."""
        return self._is_held_up or self.url not in ("", ":", START_URL)

    # What it is told

    async def call(
        self, method: str, params: dict[str, Any] | None = None, timeout_s: float = CALL_S
    ) -> dict[str, Any]:
        """Raises CommandRefused, BrowserGone."""
        if self.failure:
            raise BrowserGone(f"{self.failure}: close the tab and open the page again")
        return await self._protocol.call(method, params, self._session, timeout_s)

    def begin(self, method: str, params: dict[str, Any]) -> PendingCall:
        """Say this. Raises BrowserGone where nothing is answered any more."""
        if self.failure:
            raise BrowserGone(self.failure)
        return self._protocol.begin(method, params, self._session)

    async def finish(self, call: PendingCall, timeout_s: float) -> dict[str, Any]:
        """The answer to what was begun. Raises CommandRefused, BrowserGone."""
        return await self._protocol.finish(call, timeout_s)

    async def until_asked(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do what may make the page ask something, open another or close itself: it answers no more
        then, so come back. Raises ToolError."""
        self._interrupted = anyio.Event()
        failed: ToolError | None = None
        async with anyio.create_task_group() as tasks:

            async def wait() -> None:
                await self._interrupted.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(wait)
            try:
                await work()
            except ToolError as error:
                failed = error
            tasks.cancel_scope.cancel()
        if failed is not None and not (isinstance(failed, BrowserGone) and self.is_over):
            raise failed

    def release_mouse(self, x: float, y: float, button: str = "left") -> None:
        """Let go of the button, and of a drag, whatever has become of what was done with it."""
        event = {"type": "mouseReleased", "x": x, "y": y, "button": button, "clickCount": 1}
        self._protocol.post("Input.dispatchMouseEvent", event, self._session)
        self._protocol.post("Input.setInterceptDrags", {"enabled": False}, self._session)

    def interrupt(self) -> None:
        """What is being done in it waits no longer for an answer."""
        self._interrupted.set()

    async def navigate(self, url: str) -> None:
        """Open this address, wherever it leads on to, and wait until it has loaded. Raises
        ToolError."""
        self._is_opening = True
        try:
            await self._navigate(url)
        finally:
            self._is_opening = False

    async def _navigate(self, url: str) -> None:
        loads = self._loads
        begun: dict[str, Any] = {}

        async def begin() -> None:
            begun.update(await self.call("Page.navigate", {"url": url}, LOAD_S))

        try:
            await self.until_asked(begin)
        except CommandRefused as error:
            raise ToolError(f"{url[:200]} cannot be opened: {error}") from error
        error_text = str(begun.get("errorText", ""))
        if begun.get("isDownload") or error_text == "net::ERR_ABORTED":
            return
        if error_text:
            raise ToolError(f"{url[:200]} could not be opened: {explain_load_error(error_text)}")
        if begun.get("loaderId"):
            await wait_until(lambda: self._loads > loads or self._is_held_up, LOAD_S)
        await self.settle()

    async def go(self, by: int) -> None:
        """Back (-1) or on (1) in its history. Raises ToolError where there is nothing."""
        history = await self.call("Page.getNavigationHistory")
        index = int(history["currentIndex"]) + by
        if not 0 <= index < len(history["entries"]):
            raise ToolError("there is no page before this one" if by < 0 else "there is none after")
        entry = history["entries"][index]["id"]
        await self.until_asked(lambda: self.call("Page.navigateToHistoryEntry", {"entryId": entry}))
        await self.settle()

    async def settle(self) -> None:
        """Wait until what was begun has come to rest: nothing loads, and nothing has come for
        QUIET_S; for SETTLE_S at most."""
        self._changed_at = max(self._changed_at, time.monotonic() - QUIET_S + FIRST_LOOK_S)
        await wait_until(lambda: self._is_held_up or self._is_quiet(), SETTLE_S)

    @property
    def _is_held_up(self) -> bool:
        return bool(self.dialog or self.failure or self.is_over)

    def _is_quiet(self) -> bool:
        now = time.monotonic()
        # What takes longer is a stream, which never ends by itself.
        self._requests = {id_: at for id_, at in self._requests.items() if now - at <= SETTLE_S}
        is_busy = self._is_loading or bool(self._requests)
        return not is_busy and now - self._changed_at >= QUIET_S

    # What it shows

    async def look(self) -> Element:
        """What it shows now, with refs. Raises BrowserGone; ToolError while it asks something."""
        self.require_no_dialog()
        try:
            await self.until_asked(self._read_page)
        except WRONG_SHAPES as error:
            raise ToolError("what the browser says of the page cannot be read") from error
        self.require_no_dialog()
        return self.root

    async def _read_page(self) -> None:
        tree = await self.call("Page.getFrameTree")
        frames = flatten_frames(tree["frameTree"])
        captured = await self.call(
            "DOMSnapshot.captureSnapshot", {"computedStyles": COMPUTED_STYLES}, LOAD_S
        )
        nodes = {}
        for frame in frames:
            with suppress(CommandRefused):  # it has gone meanwhile
                asked = {"frameId": frame.id}
                found = await self.call("Accessibility.getFullAXTree", asked, LOAD_S)
                nodes[frame.id] = read_ax_nodes(found.get("nodes", ()))
        target = await self.call("Target.getTargetInfo", {"targetId": self.target})
        self.title = str(target["targetInfo"].get("title", ""))[:300]
        self.frames = {frame.id: frame for frame in frames}
        looks = read_looks(captured)
        build = partial(TreeBuilder(nodes, looks, self._secret).build, frames[0].id, self.title)
        root = await anyio.to_thread.run_sync(build)
        if self.sign_in is not None:
            for each in root.walk():
                each.name, each.value = self.hide(each.name), self.hide(each.value)
        self.root = root
        self.refs.assign(self.root)

    @property
    def secret_nodes(self) -> frozenset[PageKey]:
        """The password fields that were seen on this page, also those that have become other fields
        since."""
        return frozenset(self._secret)

    def mark_shown(self) -> None:
        """What its elements are called now is what has been told of them."""
        for each in self.root.walk():
            if each.ref:
                self._shown[each.ref] = (each.role, each.name)

    def remember_lines(self) -> list[SnapshotLine]:
        """The lines of what it shows now, which are compared with later ones. Returns those
        before."""
        before = self.lines
        self.mark_shown()
        self.lines = list_lines(self.root)
        return before

    def require_no_dialog(self) -> None:
        """Raises ToolError while the page asks something."""
        if self.dialog is not None:
            raise ToolError(f"the page shows {describe_dialog(self.dialog)}: answer it first")

    # Its nodes

    async def find_key(self, ref: str) -> PageKey:
        """The node of this ref. Raises StaleRef where it has gone."""
        element = self.refs.find(ref)
        key = _key_of(element)
        words = None
        with suppress(CommandRefused):
            words = await self.run_on(key, page_scripts.READ_WORDS)
        if words is None:
            await self.look()  # it may have been drawn anew
            moved = next((each for each in self.root.walk() if each.ref == element.ref), None)
            if moved is None:
                raise self.refs.explain_gone(element) from None
            return _key_of(moved)
        asked = {"backendNodeId": key[1], "fetchRelatives": False}
        nodes = await self.call("Accessibility.getPartialAXTree", asked)
        node = next(iter(read_ax_nodes(nodes.get("nodes", ())[:1])), None)
        name = node.name if node is not None else ""
        role, shown = self._shown.get(element.ref, (element.role, element.name))
        if role != element.role or not is_same(shown, [name, *map(str, words)]):
            raise StaleRef(
                f"{element.ref} was {role} {quote(shown[:80])} when it was shown, and holds "
                "something else now: look again"
            )
        return key

    async def run_on(self, key: PageKey, script: str, *arguments: Any) -> Any:
        """What this function returns of the node, in a world of its own. Raises ToolError."""
        frame, backend_id = key
        for fresh in (False, True):
            world = await self._find_world(frame, fresh=fresh)
            asked = {"backendNodeId": backend_id, "executionContextId": world}
            try:
                found = await self.call("DOM.resolveNode", asked)
                break
            except CommandRefused:
                if fresh:
                    raise
        called = {
            "functionDeclaration": script,
            "objectId": found["object"]["objectId"],
            "arguments": [{"value": each} for each in arguments],
            "returnByValue": True,
        }
        answer = await self.call("Runtime.callFunctionOn", called)
        if "exceptionDetails" in answer:
            raise ToolError("the page did not let it be done by script")
        return answer["result"].get("value")

    async def _find_world(self, frame: str, *, fresh: bool) -> int:
        if fresh or frame not in self._worlds:
            made = await self.call(
                "Page.createIsolatedWorld", {"frameId": frame, "worldName": _WORLD}
            )
            self._worlds[frame] = int(made["executionContextId"])
        return self._worlds[frame]

    async def read_text(self) -> str:
        """The words of the main frame, as a person sees them."""
        words = "(document.body && document.body.innerText || '').slice(0, 2000000)"
        return str(await self.run_script(words) or "")

    async def run_script(self, expression: str) -> Any:
        """What this is in the main frame, in a world of its own. Raises ToolError."""
        world = await self._find_world(self._frame, fresh=True)
        asked = {"expression": expression, "contextId": world, "returnByValue": True}
        answer = await self.call("Runtime.evaluate", asked)
        return answer["result"].get("value")


def is_same(shown: str, now: Sequence[str]) -> bool:
    """Whether one of the names that a node has now is the one that was shown. Pages use nodes again
    for something else, as long lists do."""
    wanted = "".join(shown.split())
    if len(shown) >= MAX_CONTENT_NAME_CHARS:  # it was cut
        return any("".join(each.split()).startswith(wanted[:100]) for each in now)
    return not wanted or any("".join(each.split()) == wanted for each in now)


async def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    """Return when it is so, at the latest after these seconds."""
    with anyio.move_on_after(seconds):
        while not is_so():  # noqa: ASYNC110 -- events of several kinds change it
            await anyio.sleep(POLL_S)


def _key_of(element: Element) -> PageKey:
    key: Any = element.key
    return str(key[0]), int(key[1])


def describe_dialog(dialog: Dialog) -> str:
    """What stands in it, on one line."""
    more = f", which suggests {quote(dialog.default)}" if dialog.default else ""
    return f"the {dialog.kind} {quote(dialog.message)}{more}"


def _format_console(said: dict[str, Any]) -> str:
    values: Sequence[dict[str, Any]] = said.get("args", ())
    words = [str(each.get("value", each.get("description", ""))) for each in values]
    return f"{said.get('type', 'log')}: {' '.join(words)[:300]}"


def explain_load_error(error: str) -> str:
    """What the browser's word for it means,
    https://source.chromium.org/chromium/chromium/src/+/main:net/base/net_error_list.h"""
    if "CERT" in error or "SSL" in error:
        return "no encrypted connection, or its certificate is not valid"
    if "TUNNEL" in error or "PROXY" in error:
        return "it does not exist, does not answer, or is not on the public web"
    if "TIMED_OUT" in error:
        return "it did not answer in time"
    return error.removeprefix("net::")[:60].replace("_", " ").lower()
