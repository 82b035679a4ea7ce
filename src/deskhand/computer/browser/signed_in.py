"""What tabs in which a person is signed in do otherwise: they are opened with the sign-in, a person
is asked before anything is done there, and what the site renews of it is kept."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio.to_thread
import msgspec

from ...types.errors import ConfigError, ToolError
from ..elements import describe, quote
from . import page_scripts
from .arguments import BrowserArguments
from .browsers import Browser
from .sign_ins import (
    SignIn,
    SignIns,
    describe_origin,
    make_sign_in,
    make_stored_origin,
    render_storage_script,
)
from .tab import Tab

_HARMLESS_KEYS = frozenset(
    ("Tab", "Shift+Tab", "Escape", "PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown")
)
MAX_SHOWN_CHARS = 200


def describe_act(browser: Browser | None, given: BrowserArguments) -> str:
    """What a person is asked before this: what is done where they are signed in. '' for what is
    done elsewhere, and for what only looks or follows a link of the site."""
    tab = browser.current if browser is not None else None
    if tab is None or tab.sign_in is None or not _acts(tab, given):
        return ""
    element = describe(tab.refs.find(given.ref)) if tab.refs.knows(given.ref) else ""
    what = " ".join(each for each in (given.action, element) if each)
    return f"{what} on {tab.url[:MAX_SHOWN_CHARS]}, signed in as you"


def _acts(tab: Tab, given: BrowserArguments) -> bool:
    match given.action:
        case "click":
            return not _is_link_within(tab, given.ref)
        case "press":
            return not {*given.keys.split()} <= _HARMLESS_KEYS
        case "type":
            return given.submit
        case "dialog":
            return given.accept
        case action:
            return action in ("drag", "upload")


def _is_link_within(tab: Tab, ref: str) -> bool:
    """Whether it is a link to another page of the site: whoever writes to a person can have them
    follow one, so that sites do nothing for that alone."""
    if tab.sign_in is None or not tab.refs.knows(ref):
        return False
    url = tab.refs.find(ref).url
    here = tab.url.partition("#")[0]
    return tab.sign_in.holds_at(url) and url.partition("#")[0] != here


def describe_sign_in(sign_ins: SignIns, url: str) -> str:
    """What a person is asked before their sign-in is used for this address. Raises ToolError where
    there is none."""
    site = _require_site(sign_ins, url)
    return (
        f"Open {url[:MAX_SHOWN_CHARS]} with your sign-in at {site}, and read what your account "
        "shows, until this browser closes; each action there asks again"
    )


def _require_site(sign_ins: SignIns, url: str) -> str:
    site = sign_ins.find_site(url)
    if not site:
        there = ", ".join(sign_ins.list_sites()) or "no site"
        raise ToolError(
            f"nobody has given a sign-in for {quote(url[:MAX_SHOWN_CHARS])}; there are some for "
            f"{there}. A person gives one with: deskhand browser sign-in SITE"
        )
    return site


async def open_signed_in(browser: Browser, sign_ins: SignIns, url: str) -> Tab:
    """Open this address in a tab that is signed in there. Raises ToolError."""
    site = await anyio.to_thread.run_sync(_require_site, sign_ins, url)
    sign_in = await _load(sign_ins, site)
    if not sign_in.holds_at(url):
        raise ToolError(f"your person is signed in at {site} over https alone")
    tab = browser.current
    if not browser.is_signed_in(site):
        await browser.use_sign_in(sign_in)
    if tab is None or tab.sign_in is None or tab.sign_in.site != site:
        tab = await browser.open_tab(site)
    script = {"source": render_storage_script(sign_in)}
    added = await tab.call("Page.addScriptToEvaluateOnNewDocument", script)
    try:
        await tab.navigate(url)
    finally:
        identifier = {"identifier": added["identifier"]}
        await tab.call("Page.removeScriptToEvaluateOnNewDocument", identifier)
    return tab


async def require_sign_in(browser: Browser, sign_ins: SignIns, sign_in: SignIn) -> None:
    """Raises ToolError, and closes its tabs, where the person has taken it back or given another
    one."""
    try:
        now = await _load(sign_ins, sign_in.site)
    except ToolError:
        await browser.forget_sign_in(sign_in.site)
        raise
    if now.taken_at != sign_in.taken_at:
        await browser.forget_sign_in(sign_in.site)
        raise ToolError(f"another sign-in for {sign_in.site} was given: sign_in again")


async def _load(sign_ins: SignIns, site: str) -> SignIn:
    try:
        return await anyio.to_thread.run_sync(sign_ins.load, site)
    except ConfigError as error:
        raise ToolError(str(error)) from error


async def renew_sign_in(browser: Browser, tab: Tab, sign_ins: SignIns) -> None:
    """Keep what the site has renewed of the sign-in of this tab, so that it holds the next time
    too. Raises ToolError."""
    before = tab.sign_in
    if before is None:
        return
    cookies = await browser.read_cookies(before.site)
    origins = {each.origin: each for each in before.origins}
    if before.holds_at(tab.url):
        kept = make_stored_origin(describe_origin(tab.url), await _read_storage(tab))
        if kept is not None and (kept.local_storage or kept.origin in origins):
            origins[kept.origin] = kept
    try:
        now = make_sign_in(before.site, cookies, origins.values(), before.taken_at)
    except ConfigError:
        return  # signed out: a person is told so by the page
    if now != before:
        browser.note_sign_in(now)
        await anyio.to_thread.run_sync(partial(_save, sign_ins, now))


def _save(sign_ins: SignIns, sign_in: SignIn) -> None:
    """Unless it was taken back or replaced meanwhile."""
    try:
        if sign_ins.load(sign_in.site).taken_at == sign_in.taken_at:
            sign_ins.save(sign_in)
    except (ConfigError, OSError) as error:
        raise ToolError(f"what {sign_in.site} has renewed could not be kept: {error}") from error


async def _read_storage(tab: Tab) -> dict[str, Any]:
    """What the page keeps for its origin; nothing for one that does not let itself be asked."""
    if tab.dialog is not None:
        return {}
    text = await tab.run_script(page_scripts.READ_STORAGE)
    try:
        found = msgspec.json.decode(str(text).encode())
    except (msgspec.MsgspecError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
