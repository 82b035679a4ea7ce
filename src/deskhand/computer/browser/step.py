"""One action in a tab of a browser, and what is told of it."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from ...net.url import parse_url
from ...tools.base import Context, Done, Outcome, call_label
from ...tools.define import list_given
from ...tools.documents.invisible_characters import escape_invisible
from ...tools.label_marks import OWNER_READERS, load_marks
from ...tools.output import make_bounded_result
from ...tools.watch import change_file
from ...types.commit import Change
from ...types.errors import NetError, ToolError
from ...types.labels import LOCAL, Label, join_labels
from ...types.messages import Image, ResultPart, clean_text
from ...types.subagents import is_subagent_session
from ..done_steps import DoneStep, describe_step, list_headings
from ..elements import has_words, quote
from ..snapshot import (
    DEFAULT_CHARS,
    render_changes,
    render_element,
    render_found,
    render_snapshot,
)
from . import actions
from .arguments import (
    MAX_WAIT_S,
    RECORDED,
    SENDING,
    WITH_ELEMENT,
    BrowserArguments,
)
from .browsers import Browser, Download
from .hosts import find_host
from .keys import types_words
from .launch import DOWNLOADS, UPLOADS
from .sign_ins import SignIns
from .signed_in import (
    find_free_link,
    open_signed_in,
    renew_sign_in,
    require_sign_in,
)
from .tab import Tab, describe_dialog, wait_until

BROWSER = "browser"
MAX_TEXT_CHARS = 10_000
MAX_ALIKE = 100
FIRST_PAGE_S = 1.0
DOWNLOAD_S = 20.0
MAX_FILE_BYTES = 200 << 20
MAX_SCRIPT_ANSWER_CHARS = 8_000


def page_label(tab: Tab) -> Label:
    """That of all that a page says. Where somebody is signed in, it is theirs."""
    readers = OWNER_READERS if tab.sign_in is not None else None
    return Label("untrusted", readers, tab.url if "://" in tab.url else "")


class BrowserStep:
    """One action in one tab. `find_refusal` says of an address why nothing may be sent there."""

    def __init__(
        self,
        find_refusal: Callable[[str], Awaitable[str]],
        sign_ins: SignIns,
        browser: Browser,
        tab: Tab,
        context: Context,
    ) -> None:
        self._find_refusal = find_refusal
        self._sign_ins = sign_ins
        self._browser = browser
        self.tab = tab
        self._context = context
        self._notes: list[str] = []
        self._rows: list[Change] = []
        self._is_led_away = False
        self._has_not_come = False

    @property
    def label(self) -> Label:
        """That of all that is told: it may name other tabs, too."""
        own = Label(LOCAL.integrity, self._browser.label.readers)
        return join_labels((call_label(self._context), page_label(self.tab), own))

    async def do(self, given: BrowserArguments) -> Outcome:
        """Do it, and tell what the page shows then."""
        if given.action == "script" and self.tab.sign_in is not None:
            raise ToolError("no script is run in a page where your person is signed in")
        if (
            given.action in SENDING
            or (given.action == "press" and types_words(given.keys))
            or (given.action == "dialog" and given.text)
        ):
            await self._require_sendable(given.ref)
        await self._enter_allowed()
        if given.action not in ("dialog", "tab", "look", "wait", "screenshot", "console", "close"):
            self.tab.require_no_dialog()
        match given.action:
            case "look":
                return await self._finish(await self._look(given))
            case "find":
                return await self._finish(await self._find(given))
            case "text":
                text = self._browser.hide(await self.tab.read_text())[given.offset :]
                more = len(text) - MAX_TEXT_CHARS
                end = f"\n… {more:,} more characters: offset" if more > 0 else ""
                return await self._finish(text[:MAX_TEXT_CHARS] + end)
            case "screenshot":
                return await self._take_screenshot()
            case "pdf":
                self._record_unplayable(given)
                return await self._print_pdf(given.path)
            case "console":
                await self.tab.call("Runtime.enable")
                return await self._finish("\n".join(map(quote, self.tab.console)) or "nothing")
            case "script":
                self._record_unplayable(given)
                return await self._finish(await self._run_script(given.text))
            case _:
                return await self._finish(await self._act(given))

    async def _act(self, given: BrowserArguments) -> str:
        """Do what changes something; what has changed, with a word where it goes in circles."""
        mark = msgspec.json.encode(given).decode()
        before = list_headings(self.tab.root)
        try:
            begun = self._describe_step(given)
            await self._change(given)
            changes = await self._show_changes()
        except ToolError as error:
            said = self._browser.repeats.add(mark, self._state, failed=True)
            raise type(error)("; ".join([str(error), *said])) from error
        self._notes += self._browser.repeats.add(mark, self._state)
        self._record(begun, before)
        return changes

    def _describe_step(self, given: BrowserArguments) -> DoneStep:
        """What is about to be done, for who wants to do it again."""
        tab = self.tab
        element = onto = None
        if given.ref and given.action in WITH_ELEMENT:
            element = tab.refs.find(given.ref)
        if given.to and given.action == "drag":
            onto = tab.refs.find(given.to)
        step = describe_step(list_given(given), tab.root, element, onto)
        return msgspec.structs.replace(
            step, host=find_host(tab.url), place=str(tab.number), label=self.label
        )

    def _record_unplayable(self, given: BrowserArguments) -> None:
        step = DoneStep(
            arguments={"action": given.action},
            place=str(self.tab.number),
            problem=f"{given.action} is not done again: keep fewer steps",
        )
        self._browser.steps.append(step)

    def _record(self, step: DoneStep, before: Sequence[str]) -> None:
        """It was done. What a macro or a sub-agent waits for is its own."""
        action = step.arguments["action"]
        waits_alone = self._has_not_come or is_subagent_session(self._context.session)
        if action not in RECORDED or (action == "wait" and waits_alone):
            return
        if action in ("open", "sign_in"):
            step = msgspec.structs.replace(step, place=str(self.tab.number))
        if self._is_led_away:
            step = msgspec.structs.replace(step, problem="it led to a page that is not allowed")
        came = tuple(each for each in list_headings(self.tab.root) if each not in before)
        label = join_labels((step.label, self.label))
        self._browser.steps.append(msgspec.structs.replace(step, headings=came, label=label))

    @property
    def _state(self) -> str:
        """What is shown, as far as a later look can be compared with it."""
        lines = "\n".join(each.text for each in self.tab.lines)
        return sha256(f"{self.tab.url}\n{lines}".encode()).hexdigest()

    async def _change(self, given: BrowserArguments) -> None:
        match given.action:
            case "open":
                await self._open(given.url)
            case "sign_in":
                url = str(parse_address(given.url))
                self.tab = await open_signed_in(self._browser, self._sign_ins, url)
                await self.tab.navigate(url)
            case "back" | "forward":
                await self.tab.go(-1 if given.action == "back" else 1)
            case "dialog":
                await actions.answer_dialog(self.tab, given.text, accept=given.accept)
            case "tab" | "close":
                await self._switch(given)
            case "wait":
                await self._wait(given)
            case "press":
                await actions.press(self.tab, _need(given.keys, "keys"), given.ref)
            case "scroll":
                down = {"down": 1, "up": -1}.get(given.direction, 0) * given.pages
                right = {"right": 1, "left": -1}.get(given.direction, 0) * given.pages
                await actions.scroll(self.tab, given.ref, down, right)
            case _:
                await self._use(given, _need(given.ref, "ref"))

    async def _open(self, url: str) -> None:
        url = str(parse_address(url))
        if self.tab.sign_in is not None and not self.tab.sign_in.holds_at(url):
            self.tab = await self._leave_sign_in()
        self._browser.entered.add(find_host(url))
        refused = self._browser.network.refused
        refused.pop(find_host(url), "")
        await self.tab.navigate(url)
        if why := refused.get(find_host(self.tab.url)):
            raise ToolError(f"{url[:200]} could not be opened: {why}")
        self._browser.entered.add(find_host(self.tab.url))

    async def _leave_sign_in(self) -> Tab:
        """A tab in which nobody is signed in."""
        others = [each for each in self._browser.tabs if each.sign_in is None]
        if not others:
            return await self._browser.open_tab()
        await self._browser.show(others[-1])
        return others[-1]

    async def _enter_allowed(self) -> None:
        """Take in which of the hosts that were held back a person has allowed since."""
        for host, url in [*self._browser.blocked.items()]:
            if not await self._find_refusal(url):
                self._browser.entered.add(host)
                del self._browser.blocked[host]

    async def _note_blocked(self) -> None:
        told = self._browser.told
        for host, url in self._browser.blocked.items():
            if host in told:
                continue
            told.add(host)
            why = await self._find_refusal(url)
            self._is_led_away = True
            self._notes.append(
                f"it leads to {quote(host)}, where nobody has sent you, and was not followed: {why}"
            )

    def _note_stay(self) -> None:
        """A page where somebody is signed in led elsewhere."""
        tab = self.tab
        if tab.sign_in is None:
            return
        site = tab.sign_in.site
        if tab.frames_left_out:
            hosts = ", ".join(sorted(map(quote, tab.frames_left_out)))
            tab.frames_left_out.clear()
            self._notes.append(
                f"frames of {hosts} are left out: where somebody is signed in, only "
                f"pages of {site} are loaded"
            )
        if tab.leads_away:
            url, tab.leads_away = tab.leads_away[:200], ""
            self._is_led_away = True
            self._notes.append(
                f"it leads to {quote(url)}, which is not part of {site} and was not followed: open "
                "it by itself; if this is a page to sign in, your person gives the sign-in anew: "
                f"deskhand browser sign-in {site}"
            )

    async def _use(self, given: BrowserArguments, ref: str) -> None:
        tab = self.tab
        match given.action:
            case "click" if url := find_free_link(tab, given):
                await tab.navigate(url)  # what else a click would do there, nobody was asked about
            case "click":
                await actions.click(tab, ref, given.button, given.clicks)
            case "type":
                await actions.type_text(
                    tab, ref, given.text, keep=given.append, submit=given.submit
                )
            case "select":
                await actions.select(tab, ref, given.text.split("\n"))
            case "hover":
                await actions.hover(tab, ref)
            case "drag":
                await actions.drag(tab, ref, _need(given.to, "to"))
            case "upload":
                await self._upload(ref, _need(given.path, "path"))
            case _:
                raise ToolError(f"there is no action {given.action!r}")

    # What is shown

    async def _look(self, given: BrowserArguments) -> str:
        if self.tab.dialog is not None:
            return ""
        root = await self.tab.look()
        self.tab.remember_lines()
        if not given.ref:
            return render_snapshot(root, offset=given.offset)
        element = self.tab.refs.find(given.ref)
        beneath = render_snapshot(element, offset=given.offset)
        return f"{render_element(element)}\n{beneath}"

    async def _find(self, given: BrowserArguments) -> str:
        root = await self.tab.look()
        self.tab.mark_shown()
        return render_found(root, given.role, given.text, given.within)

    async def _show_changes(self) -> str:
        for each in await self._browser.open_new_tabs():
            self._notes.append(f"tab {each.number} was opened by the page")
            await wait_until(lambda each=each: each.has_begun, FIRST_PAGE_S)  # type: ignore[misc]
            await each.settle()
        if self.tab.is_over:
            self._notes.append(f"tab {self.tab.number} was closed by the page")
        self.tab = self._browser.current or await self._browser.open_tab()
        await self._note_blocked()
        self._note_stay()
        try:
            await renew_sign_in(self._browser, self.tab, self._sign_ins)
        except ToolError as error:
            self._notes.append(f"what the site has renewed of the sign-in is not kept: {error}")
        await self._keep_downloads()
        if self.tab.dialog is not None:
            return ""
        root = await self.tab.look()
        before = self.tab.remember_lines()
        if not before:
            return render_snapshot(root)
        return render_changes(before, self.tab.lines, DEFAULT_CHARS) or "nothing has changed"

    async def _finish(self, text: str) -> Done:
        if self.tab.dialog is not None:
            self._notes.append(f"the page shows {describe_dialog(self.tab.dialog)}: answer it")
        head = self._render_head()
        label = self.label
        shown = self._browser.hide(f"{head}\n{text}".rstrip())
        done = await make_bounded_result(shown, self._context, label)
        return msgspec.structs.replace(done, changes=(*done.changes, *self._rows))

    def _render_head(self) -> str:
        tab, tabs = self.tab, self._browser.tabs
        number = f"tab {tab.number}, one of {len(tabs)}: " if len(tabs) > 1 else ""
        title = f" {quote(tab.title[:120])}" if tab.title else ""
        url = escape_invisible("".join(clean_text(tab.url[:500]).split()))
        lines = [f"[{number}{url}{title}]"]
        lines += [f"[{each}]" for each in self._notes]
        return "\n".join(lines)

    # What leaves

    async def _require_sendable(self, ref: str) -> None:
        """Raises ToolError where words of this conversation may not go to this page: to the frame
        of the element and to those that it is in, or to all where no element is named."""
        for url in {*self._list_readers(ref)}:
            if not url.startswith(("http://", "https://")):
                raise ToolError("nothing is typed or given to a page without an address")
            if why := await self._find_refusal(url):
                raise ToolError(f"nothing is typed or given to this page yet: {why}")

    def _list_readers(self, ref: str) -> Iterator[str]:
        """The addresses of those frames that hear of what is given to this element."""
        yield self.tab.url
        frames = self.tab.frames
        key: Any = self.tab.refs.find(ref).key if ref else None
        if key is None:
            yield from (each.url for each in frames.values() if "://" in each.url)
        elif key[0] in frames:
            frame = frames[key[0]]
            inside = (frames[each].url for each in (*frame.above, frame.id) if each in frames)
            # One without an address of its own is what the frame around it has made of it.
            yield from (url for url in inside if not url.startswith("about:"))

    async def _upload(self, ref: str, path: str) -> None:
        read = partial(self._context.reach.files.read_opened, path, MAX_FILE_BYTES + 1)
        opened = await anyio.to_thread.run_sync(read)
        marks = await load_marks(self._context)
        if marks.is_hidden_from(opened.place, self._context) or (
            marks.file_label(opened.place).readers is not None
        ):
            raise ToolError(f"{path!r} is only for its owner: it is not given to a page")
        if len(opened.data) > MAX_FILE_BYTES:
            raise ToolError(f"{path!r} is larger than {MAX_FILE_BYTES >> 20} MB")
        staged = self._browser.exchange / UPLOADS / Path(path).name
        await anyio.to_thread.run_sync(staged.write_bytes, opened.data)
        await actions.upload(self.tab, ref, [str(staged)])
        self._notes.append(f"gave {quote(Path(path).name)} to the page")

    async def _run_script(self, script: str) -> str:
        asked = {
            "expression": _need(script, "text"),
            "returnByValue": True,
            "awaitPromise": True,
            "userGesture": True,
        }
        answer: dict[str, Any] = {}

        async def run() -> None:
            answer.update(await self.tab.call("Runtime.evaluate", asked, MAX_WAIT_S))

        await self.tab.until_asked(run)
        if "result" not in answer:
            return ""  # it has asked something, or closed the page
        if "exceptionDetails" in answer:
            thrown = answer["exceptionDetails"].get("exception", {})
            raise ToolError(f"the script failed: {str(thrown.get('description', ''))[:500]}")
        value = answer["result"].get("value")
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        return text[:MAX_SCRIPT_ANSWER_CHARS]

    # What comes

    async def _keep_downloads(self) -> None:
        for download in await self._browser.finish_downloads(DOWNLOAD_S):
            if download.state != "completed":
                self._notes.append(f"{quote(download.name)} was not downloaded")
                continue
            try:
                data = await anyio.to_thread.run_sync(_take_file, self._browser.exchange, download)
                path = await anyio.to_thread.run_sync(self._free_path, _safe_name(download.name))
                await self._write(path, data, download.url)
            except ToolError as error:
                self._notes.append(str(error))
        if running := self._browser.downloads:
            self._notes.append(f"{len(running)} downloads go on")

    def _free_path(self, name: str) -> str:
        """Where a download of this name is kept: nothing that is there is replaced."""
        stem, dot, ending = name.rpartition(".")
        for n in range(1, MAX_ALIKE + 1):
            numbered = f"{stem} ({n}){dot}{ending}" if stem else f"{name} ({n})"
            path = f"downloads/{name if n == 1 else numbered}"
            try:
                self._context.reach.files.stat(path)
            except ToolError:
                return path
        raise ToolError(f"downloads/ has too many files called {quote(name)}")

    async def _write(self, path: str, data: bytes, url: str) -> None:
        label = join_labels((Label("untrusted", None, url), self.label))
        write = partial(self._context.reach.files.write, path, data)
        self._rows += await change_file(self._context, BROWSER, path, write, label)
        self._notes.append(f"saved as {path}, {len(data):,} bytes")

    async def _print_pdf(self, path: str) -> Done:
        path = _need(path, "path")
        printed = await self.tab.call("Page.printToPDF", {"printBackground": True}, MAX_WAIT_S)
        await self._write(path, _decode_data(printed), self.tab.url)
        return await self._finish("")

    async def _take_screenshot(self) -> Done:
        asked = {"format": "jpeg", "quality": 70, "optimizeForSpeed": True}
        data = _decode_data(await self.tab.call("Page.captureScreenshot", asked, MAX_WAIT_S))
        blob = await self._context.reach.host.put_blob(data)
        done = await self._finish("")
        label = self.label
        parts: tuple[ResultPart, ...] = (*done.parts, Image(blob, "image/jpeg", "page.jpg", label))
        return msgspec.structs.replace(done, parts=parts)

    # Tabs, and waiting

    async def _switch(self, given: BrowserArguments) -> None:
        if given.tab == 0 and given.action == "tab":
            self.tab = await self._browser.open_tab()
            if given.url:
                await self._open(given.url)
            return
        tabs = {each.number: each for each in self._browser.tabs}
        if given.tab > 0:
            if given.tab not in tabs:
                raise ToolError(f"there is no tab {given.tab}; there are: {[*tabs]}")
            await require_sign_in(self._browser, self._sign_ins, tabs[given.tab], self._context)
            self.tab = tabs[given.tab]
            if given.action == "close":
                await self._browser.close_tab(self.tab)
                self.tab = self._browser.current or await self._browser.open_tab()
            else:
                await self._browser.show(self.tab)
        for number, each in tabs.items():
            if not each.is_over:
                self._notes.append(f"tab {number}: {quote(each.url[:200])}")

    async def _wait(self, given: BrowserArguments) -> None:
        if not given.text:
            await wait_until(lambda: self.tab.dialog is not None, given.seconds)
            return
        with anyio.move_on_after(given.seconds) as limit:
            while self.tab.dialog is None:
                if has_words(await self.tab.look(), given.text):
                    return
                await anyio.sleep(0.2)
        if limit.cancelled_caught:
            self._has_not_come = True
            self._notes.append(f"{quote(given.text[:80])} has not come in {given.seconds:.0f} s")


def _need(value: str, name: str) -> str:
    if not value:
        raise ToolError(f"this action needs {name}")
    return value


def parse_address(url: str) -> object:
    """Raises ToolError for what is no address of the web."""
    url = _need(url.strip(), "url")
    try:
        return parse_url(url if "://" in url else f"https://{url}")
    except NetError as error:
        raise ToolError(str(error)) from error


def _decode_data(answer: dict[str, object]) -> bytes:
    try:
        return base64.b64decode(str(answer.get("data", "")))
    except binascii.Error as error:
        raise ToolError("the browser gave no picture") from error


def _take_file(exchange: Path, download: Download) -> bytes:
    """The file, which is gone from the exchange then. Raises ToolError. The browser may have put
    anything there, so nothing is followed."""
    shown = quote(download.name)
    try:
        folder = os.open(exchange / DOWNLOADS, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            name = Path(download.guid).name
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as opened:
                data = opened.read(MAX_FILE_BYTES + 1)
            os.unlink(name, dir_fd=folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise ToolError(f"{shown} was not kept: {error.strerror}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ToolError(f"{shown} is larger than {MAX_FILE_BYTES >> 20} MB")
    return data


def _safe_name(name: str) -> str:
    """A name of a file that a page has chosen, as one of ours."""
    kept = "".join(c if c.isalnum() or c in " ._-()" else "_" for c in Path(name).name)
    return kept.strip(" .")[-100:] or "download"
