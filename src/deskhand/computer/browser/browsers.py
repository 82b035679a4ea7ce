"""The browsers of this process: one for each conversation that uses one, ended when it no longer
does."""

from __future__ import annotations

import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from ...sandbox.line_process import LineProcess
from ...tools.base import Context
from ...tools.command_network import CommandNetwork, NetworkUser
from ...tools.render import INSTALL_COMMAND, find_browser
from ...types.errors import SandboxError, ToolError
from ...types.labels import LOCAL, Label, join_labels
from ..done_steps import MAX_STEPS, DoneStep
from ..repeats import RepeatWatch
from .hosts import find_host, is_beneath
from .launch import DOWNLOADS, UPLOADS, make_command
from .protocol import WRONG_SHAPES, BrowserGone, CommandRefused, Protocol
from .sign_ins import MIN_KEY_CHARS, Cookie, SiteSignIn, cookies_of_chromium
from .tab import POLL_S, Tab, wait_until

IDLE_S = 600.0
LOOK_S = 5.0
START_S = 30.0
MAX_BROWSERS = 4
"""One more ends the one that was not used for longest."""
MAX_TABS = 20
MAX_WAITING_TABS = 50
MAX_DOWNLOADS = 50
MAX_HOSTS = 500
MAX_MESSAGE_BYTES = 96 << 20
"""A page of ten thousand elements takes some 20 MB to describe."""


class Download(msgspec.Struct):
    """A file that a page has given. `state` is `inProgress`, `completed` or `canceled`."""

    guid: str
    url: str
    name: str
    state: str = "inProgress"


class _NewTab(msgspec.Struct, frozen=True):
    """A tab that has come: the session in which it is spoken to, its target and that of the tab
    that opened it, and what it shares cookies with."""

    session: str
    target: str
    opener: str
    context: str


class Browser:
    """One Chromium with its tabs, of which one is looked at. `exchange` is the folder through which
    files come and go. `label` is that of all that was done with it: what a conversation knows may
    stand on the pages. No other browser of this process has its `number`. `steps` were
    done in it."""

    def __init__(self, program: str, context: Context, number: int) -> None:
        self.number = number
        self.label: Label = LOCAL
        self._program = program
        self._context = context
        self.exchange = Path()
        self.scope = anyio.CancelScope()
        self.lock = anyio.Lock()
        self.used_at = anyio.current_time()
        self.tabs: list[Tab] = []
        self.current: Tab | None = None
        self.downloads: dict[str, Download] = {}
        self.entered: set[str] = set()
        self.blocked: dict[str, str] = {}
        self.told: set[str] = set()
        self.repeats = RepeatWatch()
        self.steps: deque[DoneStep] = deque(maxlen=MAX_STEPS)
        self.network = CommandNetwork()
        self.ended = ""
        self.started = anyio.Event()
        self._ready = anyio.Event()
        self._protocol: Protocol | None = None
        self._opening: list[_NewTab] = []
        self._sign_ins: dict[str, SiteSignIn] = {}
        self._contexts: dict[str, str] = {}
        self._hidden: dict[str, list[str]] = {}
        self._numbers = count(1)
        self._sessions: dict[str, Tab] = {}
        self._next_tab = 1

    def note_use(self, label: Label) -> None:
        """Something is done with it that has this label."""
        self.used_at = anyio.current_time()
        self.label = join_labels((self.label, label))

    async def run(self) -> None:
        """Hold the browser until it is ended. Raises OSError where it cannot be started."""
        host = self._context.reach.host
        user = NetworkUser(
            self._context.session, self._context.agent, self._context.principal, LOCAL, public=True
        )
        try:
            with self.scope:
                sandbox = await host.open_sandbox()
                if not sandbox.has_egress:
                    self.ended = (
                        "pages are only opened in the bubblewrap sandbox: "
                        "sudo apt-get install bubblewrap"
                    )
                    return
                async with host.open_network(user) as self.network:
                    command = make_command(self._program, self.exchange, self.network.path)
                    await self._hold(LineProcess(sandbox, command, b"\0", MAX_MESSAGE_BYTES))
        except SandboxError as error:
            self.ended = str(error)
        finally:
            self.end("it was closed")

    def end(self, why: str) -> None:
        """It has ended, for this reason unless another is known: all that wait are told."""
        self.ended = self.ended or why
        if self._protocol is not None:
            self._protocol.end()
        self._ready.set()
        self.started.set()

    async def _hold(self, process: LineProcess) -> None:
        self._protocol = Protocol(process, self._take_event)
        async with (
            process.open(),
            anyio.create_task_group() as tasks,
            aclosing(process.lines()) as lines,
        ):
            tasks.start_soon(self._protocol.run_sender)
            self._ready.set()
            async for line in lines:
                self._protocol.take(line)
            self.ended = process.describe_end()
            tasks.cancel_scope.cancel()

    def _take_event(self, session: str, method: str, said: dict[str, Any]) -> None:
        match method:
            case "Target.attachedToTarget":
                target = said.get("targetInfo", {})
                if target.get("type") == "page" and len(self._opening) < MAX_WAITING_TABS:
                    opened = _NewTab(
                        str(said.get("sessionId")),
                        str(target.get("targetId")),
                        str(target.get("openerId", "")),
                        str(target.get("browserContextId", "")),
                    )
                    self._opening.append(opened)
                    for each in self.tabs:
                        if each.target == opened.opener:
                            each.interrupt()
            case "Target.detachedFromTarget":
                self._forget(str(said.get("sessionId")))
            case "Browser.downloadWillBegin":
                guid = str(said.get("guid"))
                if len(self.downloads) >= MAX_DOWNLOADS:
                    return
                name = str(said.get("suggestedFilename", ""))
                self.downloads[guid] = Download(guid, str(said.get("url", "")), name)
            case "Browser.downloadProgress":
                if (download := self.downloads.get(str(said.get("guid")))) is not None:
                    download.state = str(said.get("state"))
            case _:
                if (tab := self._sessions.get(session)) is not None:
                    tab.take_event(method, said)

    def _may_enter(self, tab: Tab, url: str) -> bool:
        """Whether a page may lead on to this address: the site that it is on, or one that was
        entered with the knowledge of a person. What it leads to else is kept in `blocked`."""
        if not url.startswith(("http://", "https://")):
            return url.startswith(("about:", "blob:"))
        host = find_host(url)
        here = find_host(tab.url) or find_host(tab.opener_url)
        if is_beneath(host, here) or any(is_beneath(host, each) for each in self.entered):
            return True
        if len(self.blocked) < MAX_HOSTS:
            self.blocked[host] = url
            self.told.discard(host)
        return False

    def _forget(self, session: str) -> None:
        tab = self._sessions.pop(session, None)
        if tab is None:
            return
        tab.is_over = True
        if self._protocol is not None:
            self._protocol.end(session)
        tab.failure = tab.failure or "the tab was closed"
        self.tabs = [each for each in self.tabs if each is not tab]
        if self.current is tab:
            self.current = self.tabs[-1] if self.tabs else None

    async def start(self) -> None:
        """Wait until it runs, and set it up. Raises BrowserGone."""
        with anyio.move_on_after(START_S):
            await self._ready.wait()
        try:
            await self._call("Browser.getVersion")
            await self._call("Browser.setDownloadBehavior", self._download_behavior)
            attach = {"autoAttach": True, "waitForDebuggerOnStart": True, "flatten": True}
            await self._call("Target.setAutoAttach", attach)
        except CommandRefused as error:
            raise BrowserGone(f"the browser cannot be used: {error}") from error
        await self.open_new_tabs()
        if self.current is None:
            await self.open_tab()

    @property
    def _download_behavior(self) -> dict[str, Any]:
        folder = str(self.exchange / DOWNLOADS)
        return {"behavior": "allowAndName", "downloadPath": folder, "eventsEnabled": True}

    async def _call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        if self._protocol is None or self.ended:
            raise BrowserGone(f"the browser does not run: {self.ended or 'it did not start'}")
        return await self._protocol.call(method, params)

    async def open_tab(self, site: str = "") -> Tab:
        """A new tab, which is the current one then; signed in at `site`, where one is named. Raises
        BrowserGone, ToolError."""
        if len(self.tabs) >= MAX_TABS:
            raise ToolError(f"{MAX_TABS} tabs are open: close one first")
        asked = {"url": "about:blank"}
        if site:
            asked["browserContextId"] = self._contexts[site]
        made = await self._call("Target.createTarget", asked)
        target = str(made["targetId"])
        await wait_until(lambda: any(each.target == target for each in self._opening), START_S)
        await self.open_new_tabs()
        found = next((each for each in self.tabs if each.target == target), None)
        if found is None:
            raise BrowserGone("no tab could be opened")
        return found

    async def open_new_tabs(self) -> list[Tab]:
        """Take in the tabs that pages have opened; the last of them is the current one then."""
        found = []
        while self._opening:
            new = self._opening.pop(0)
            if self._protocol is None:
                continue
            if len(self.tabs) >= MAX_TABS:
                self._protocol.post("Target.closeTarget", {"targetId": new.target}, "")
                continue
            tab = Tab(
                self._protocol,
                new.session,
                new.target,
                self._next_tab,
                self._may_enter,
                self._numbers,
            )
            tab.opener_url = next((each.url for each in self.tabs if each.target == new.opener), "")
            sites = {context: site for site, context in self._contexts.items()}
            tab.sign_in = self.find_sign_in(sites.get(new.context, ""))
            tab.hide = self.hide
            self._next_tab += 1
            self._sessions[new.session] = tab
            self.tabs.append(tab)
            try:
                await tab.open_session()
            except (BrowserGone, CommandRefused):
                self._forget(new.session)
                continue
            self.current = tab
            found.append(tab)
        return found

    async def close_tab(self, tab: Tab) -> None:
        """Close it, whatever it does."""
        await self._call("Target.closeTarget", {"targetId": tab.target})
        await wait_until(lambda: tab.is_over, POLL_S * 100)
        if not tab.is_over:
            self._forget(next((s for s, each in self._sessions.items() if each is tab), ""))

    async def show(self, tab: Tab) -> None:
        """Make it the current one."""
        await self._call("Target.activateTarget", {"targetId": tab.target})
        self.current = tab

    # Sign-ins

    def find_sign_in(self, site: str) -> SiteSignIn | None:
        """The sign-in with which tabs can be opened there, as the site has renewed it."""
        return self._sign_ins.get(site)

    async def use_sign_in(self, sign_in: SiteSignIn) -> None:
        """Have tabs that can be opened signed in there. They share nothing with the others, and
        lead nowhere else. Raises BrowserGone, CommandRefused."""
        made = await self._call("Target.createBrowserContext", {"disposeOnDetach": True})
        context = {"browserContextId": str(made["browserContextId"])}
        try:
            await self._call("Browser.setDownloadBehavior", self._download_behavior | context)
            for cookie in sign_in.cookies:
                with suppress(CommandRefused):  # one that no browser takes
                    given = {"cookies": [cookie.to_chromium()], **context}
                    await self._call("Storage.setCookies", given)
        except ToolError:
            with suppress(ToolError):
                await self._call("Target.disposeBrowserContext", context)
            raise
        self._contexts[sign_in.site] = context["browserContextId"]
        self.note_sign_in(sign_in)

    def note_sign_in(self, sign_in: SiteSignIn) -> None:
        """This is what the tabs that are signed in there have by now."""
        before = self._sign_ins.get(sign_in.site)
        self._sign_ins[sign_in.site] = sign_in
        for tab in self.tabs:
            if tab.sign_in is not None and tab.sign_in.site == sign_in.site:
                tab.sign_in = sign_in
        keys = [key for each in (before, sign_in) if each is not None for key in each.list_keys()]
        self._hidden[sign_in.site] = sorted({*keys}, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """The text without the keys that sign-ins consist of."""
        if len(text) < MIN_KEY_CHARS:
            return text  # as most names of elements are
        for site, keys in self._hidden.items():
            for key in keys:
                text = text.replace(key, f"[sign-in at {site}]")
        return text

    async def read_cookies(self, site: str) -> tuple[Cookie, ...]:
        """What the tabs that are signed in there have by now. Raises BrowserGone,
        CommandRefused."""
        asked = {"browserContextId": self._contexts[site]}
        return cookies_of_chromium((await self._call("Storage.getCookies", asked))["cookies"])

    async def forget_sign_in(self, site: str) -> None:
        """Close the tabs that are signed in there, with all that they keep. Raises BrowserGone,
        CommandRefused."""
        context = self._contexts.pop(site, "")
        self._sign_ins.pop(site, None)
        for session, tab in [*self._sessions.items()]:
            if tab.sign_in is not None and tab.sign_in.site == site:
                self._forget(session)
        if context:
            await self._call("Target.disposeBrowserContext", {"browserContextId": context})

    async def finish_downloads(self, seconds: float) -> list[Download]:
        """Those that have ended, for which this waits; they are not given again."""
        running = [each for each in self.downloads.values() if each.state == "inProgress"]
        if running:
            await wait_until(lambda: all(each.state != "inProgress" for each in running), seconds)
        over = [each for each in self.downloads.values() if each.state != "inProgress"]
        for each in over:
            del self.downloads[each.guid]
        return over


class Browsers:
    """Those of this process, by conversation. `run` keeps them. `owner_of` is the conversation
    whose browser one uses: its own, or that of whoever gave it the task."""

    def __init__(
        self,
        find: Callable[[], str] = find_browser,
        owner_of: Callable[[str], str] = str,
    ) -> None:
        self._find = find
        self.owner_of = owner_of
        self._browsers: dict[str, Browser] = {}
        self._wanted: list[Browser] = []
        self._poke = anyio.Event()
        self._has_begun = anyio.Event()
        self._numbers = count(1)

    async def run(self) -> None:
        """Start browsers that are wanted, and end those that nobody uses, until cancelled."""
        self._has_begun.set()
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._poke = anyio.Event()
                    while self._wanted:
                        tasks.start_soon(self._keep, self._wanted.pop())
                    self._end_unused()
                    with anyio.move_on_after(LOOK_S if self._browsers else None):
                        await self._poke.wait()
        finally:
            self._browsers.clear()
            self._has_begun = anyio.Event()

    async def _keep(self, browser: Browser) -> None:
        try:
            made = await anyio.to_thread.run_sync(_make_exchange)
        except OSError as error:
            browser.end(f"there is no room for its files: {error.strerror}")
            return
        try:
            browser.exchange = made
            await browser.run()
        except (OSError, *WRONG_SHAPES) as error:
            browser.end(f"it could not be run: {error}")
        finally:
            remove = partial(shutil.rmtree, made, ignore_errors=True)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(remove)

    def _end_unused(self) -> None:
        now = anyio.current_time()
        for each in self._browsers.values():
            if len(each.network.refused) > MAX_HOSTS:
                each.network.refused.clear()
        free = [
            session for session, each in self._browsers.items() if not each.lock.statistics().locked
        ]
        free.sort(key=lambda session: self._browsers[session].used_at)
        for n, session in enumerate(free):
            browser = self._browsers[session]
            too_many = len(free) - n > MAX_BROWSERS
            if browser.ended or too_many or now - browser.used_at > IDLE_S:
                self.end(session)

    def end(self, session: str) -> bool:
        """End the browser of this conversation. Returns whether there was one."""
        browser = self._browsers.pop(self.owner_of(session), None)
        if browser is not None:
            browser.scope.cancel()
        return browser is not None

    def peek(self, session: str) -> Browser | None:
        """The browser that this conversation has now."""
        return self._browsers.get(self.owner_of(session))

    @property
    def is_running(self) -> bool:
        """Whether this process can have browsers."""
        return self._has_begun.is_set()

    def list_open(self) -> list[tuple[str, Browser]]:
        """Those that can be used now, each with the conversation whose it is."""
        return [
            (owner, each)
            for owner, each in self._browsers.items()
            if each.started.is_set() and not each.ended
        ]

    async def open(self, context: Context) -> Browser:
        """The browser of this conversation. Raises ToolError where there can be none."""
        if not self._has_begun.is_set():
            raise ToolError("there is no browser here: start Deskhand with `deskhand serve`")
        owner = self.owner_of(context.session)
        browser = self._browsers.get(owner)
        if browser is not None and not browser.ended:
            with anyio.move_on_after(2 * START_S):
                await browser.started.wait()  # somebody else has just asked for it
            return browser
        busy = [each for each in self._browsers.values() if each.lock.statistics().locked]
        if len(busy) >= MAX_BROWSERS:
            raise ToolError(f"{MAX_BROWSERS} browsers are in use: try again later")
        program = self._find()
        if not program:
            raise ToolError(f"Chromium is not installed on this machine: {INSTALL_COMMAND}")
        browser = Browser(program, context, next(self._numbers))
        self._browsers[owner] = browser
        self._wanted.append(browser)
        self._poke.set()
        try:
            await browser.start()
            browser.started.set()
        except BaseException:
            self.end(owner)
            raise
        return browser


def _make_exchange() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="deskhand-browser-")).resolve()
    for name in (UPLOADS, DOWNLOADS):
        (folder / name).mkdir(mode=0o700)
    return folder
