"""`browser`: a real browser for the model, one action a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import msgspec

from ...net.url import parse_url
from ...tools.base import CallPreview, Context, Done, Outcome, Spec, call_label, label_errors
from ...tools.command_network import NetworkUser
from ...tools.define import decode_arguments, make_schema
from ...types.effects import Effect
from ...types.errors import NetError, ToolError
from ...types.identity import Address
from ...types.labels import Label, join_labels
from ...types.messages import Text
from ...types.options import SessionOptions
from .arguments import (
    LOOKING,
    MAX_WAIT_S,
    BrowserArguments,
)
from .browsers import Browser, Browsers
from .protocol import BrowserGone
from .sign_ins import SignIns
from .signed_in import (
    SIGNED_IN,
    describe_act,
    describe_sign_in,
    require_owner,
    require_sign_in,
)
from .step import BROWSER, BrowserStep, page_label, parse_address
from .tab import Tab

MAX_JUDGED = 500

FindRefusal = Callable[[NetworkUser, str, int], Awaitable[str]]
"""Why what a conversation knows may not be sent to this host and port, and what to do about it; ''
where it may."""


_DESCRIPTION = (
    "Use web pages in a real browser: open a url; sign_in: open it as your person, where they gave "
    "their sign-in; look (at one ref, or from an offset); find; "
    "text; click, type, select, press, hover, drag, scroll, upload on a ref; back; wait for a text "
    "or some seconds; answer a dialog; show or open a tab; screenshot, pdf, console, script; "
    "close. "
    "Each action tells what has changed. Refs (e12) are those that were shown last."
)


class BrowserTool:
    """One for all agents. `find_refusal` says where words of a conversation may not be sent,
    `sign_ins` where its owner has given agents a sign-in."""

    def __init__(self, browsers: Browsers, find_refusal: FindRefusal, sign_ins: SignIns) -> None:
        self._browsers = browsers
        self._find_refusal = find_refusal
        self._sign_ins = sign_ins
        self._judged: dict[tuple[str, bytes], CallPreview | None] = {}
        """What was said last of a call, by its conversation and its arguments."""
        self.spec = Spec(
            BROWSER,
            _DESCRIPTION,
            make_schema(BrowserArguments),
            "fetch",
            "never",
            timeout_s=2 * MAX_WAIT_S + 60,
        )

    def effect_of(self, arguments: msgspec.Raw, address: Address) -> Effect:
        try:
            given = decode_arguments(arguments, BrowserArguments, BROWSER)
        except ToolError:
            return "none"  # it will not be done
        if given.action in LOOKING:
            return "fetch" if given.url else "none"
        if given.action in ("open", "back", "forward"):
            return "fetch"
        # What a script sends, and where, nobody sees but who reads it.
        return "network" if given.action in ("script", "sign_in") else "local_write"

    def preview(
        self, arguments: msgspec.Raw, session: str, options: SessionOptions, label: Label
    ) -> CallPreview | None:
        """What a person is to be asked where they are signed in, or will be: nothing is done there
        in their name without a yes."""
        found = self._find_preview(arguments, session)
        self._judged[session, bytes(arguments)] = found
        if len(self._judged) > MAX_JUDGED:
            del self._judged[next(iter(self._judged))]
        return found

    def _find_preview(self, arguments: msgspec.Raw, session: str) -> CallPreview | None:
        try:
            given = decode_arguments(arguments, BrowserArguments, BROWSER)
            browser = self._browsers.peek(session)
            if given.action == "sign_in":
                url = str(parse_address(given.url))
                shown = describe_sign_in(self._sign_ins, browser, url)
                return CallPreview("network", shown) if shown else CallPreview("fetch")
            shown = describe_act(browser, given)
        except ToolError as error:
            return CallPreview("none", str(error))  # it will not be done
        return CallPreview("send_other", shown) if shown else None

    async def run(self, arguments: msgspec.Raw, context: Context) -> Outcome:
        given = decode_arguments(arguments, BrowserArguments, BROWSER)
        if given.action == "close" and given.tab < 0:
            closed = self._browsers.end(context.session)
            return Done((Text("closed" if closed else "no browser is open", call_label(context)),))
        if given.url:
            parse_address(given.url)
        if given.action == "sign_in":
            require_owner(context)
        open_now = self._browsers.peek(context.session)
        may_open = given.action in ("open", "sign_in", "tab")
        if (open_now is None or open_now.ended) and not may_open:
            raise ToolError("no page is open: open one with its url")
        judged = self._judged.get(
            (context.session, bytes(arguments)), self._find_preview(arguments, context.session)
        )
        browser = await self._browsers.open(context)
        browser.note_use(call_label(context))
        async with browser.lock:
            try:
                await browser.open_new_tabs()
                tab = browser.current or await browser.open_tab()
                await require_sign_in(browser, self._sign_ins, tab, context)
                with label_errors(page_label(tab)):
                    self._require_as_judged(judged, self._find_preview(arguments, context.session))
                return await self._act(given, browser, tab, context)
            finally:
                browser.used_at = anyio.current_time()

    def _require_as_judged(self, judged: CallPreview | None, now: CallPreview | None) -> None:
        """Raises ToolError where something else would be done than was judged."""
        if now is not None and now.effect == "none":
            raise ToolError(now.shown)
        if judged != now:
            raise ToolError("what is shown has changed since: look again")

    async def _act(
        self, given: BrowserArguments, browser: Browser, tab: Tab, context: Context
    ) -> Outcome:
        if given.action == "sign_in" or tab.sign_in is not None:
            browser.note_use(SIGNED_IN)
        find_refusal = partial(self._find_refusal_of, context)
        step = BrowserStep(find_refusal, self._sign_ins, browser, tab, context)
        try:
            return await step.do(given)
        except ToolError as error:
            labels = (call_label(context), step.label, page_label(tab))
            error.label = join_labels((error.label, *labels))
            error.args = (browser.hide(str(error)),)
            if isinstance(error, BrowserGone) and not (browser.ended or step.tab.is_over):
                await browser.close_tab(step.tab)  # it hangs, or has crashed: the others go on
            raise

    async def _find_refusal_of(self, context: Context, url: str) -> str:
        """Why what this conversation knows may not go to where this address leads."""
        try:
            target = parse_url(url)
        except NetError as error:
            return str(error)
        why = ""
        for session in {context.session, self._browsers.owner_of(context.session)}:
            user = NetworkUser(session, context.agent, context.principal, context.label)
            why = await self._find_refusal(user, target.host, target.port)
            if not why:
                return ""
        return why
