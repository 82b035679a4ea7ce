"""What tabs in which a person is signed in do otherwise: they are opened with the sign-in, a person
is asked before anything is done there, and what the site renews of it is kept."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio.to_thread
import msgspec

from ...policy.information_flow import may_see
from ...tools.base import Context
from ...tools.label_marks import OWNER_READERS
from ...types.errors import ConfigError, ToolError
from ...types.labels import LOCAL, Label
from ..elements import Element, describe, quote
from . import page_scripts
from .arguments import BrowserArguments
from .browsers import Browser
from .sign_ins import SignIns, SiteSignIn, StoredOrigin, make_sign_in, make_stored_origin
from .tab import Tab, describe_dialog

SIGNED_IN = Label(LOCAL.integrity, OWNER_READERS)
"""That of what is theirs who are signed in, beside that of the page."""
_MOVING_KEYS = frozenset(("Tab", "Shift+Tab"))
_FREE_KEYS = _MOVING_KEYS | {"Escape"}
_TEXT_ROLES = frozenset(("textbox", "searchbox", "spinbutton"))
"""Of what words are typed into; a `combobox` may be a list, where they choose."""
_ACTING = frozenset(("click", "type", "select", "press", "drag", "upload", "dialog"))
MAX_SHOWN_CHARS = 200


def describe_act(browser: Browser | None, given: BrowserArguments) -> str:
    """What a person is asked before this: what is done where they are signed in. '' for what is
    done elsewhere, and for what only looks, follows a link of the site, or fills a text field.
    Raises ToolError for what is not there."""
    tab = browser.current if browser is not None else None
    if tab is None or tab.sign_in is None or given.action not in _ACTING:
        return ""
    element = tab.refs.find(given.ref) if given.ref else None
    if _is_free(tab, given, element):
        return ""
    what = [given.action, describe(element) if element is not None else ""]
    if given.action == "dialog":
        if tab.dialog is None:
            raise ToolError("the page asks nothing")
        what = ["accept", describe_dialog(tab.dialog)]
    if given.action == "press":
        if element is None:
            raise ToolError(
                "where your person is signed in, a key is pressed on an element: name its ref"
            )
        keys = given.keys.split()
        if len(keys) > 1 and not _MOVING_KEYS.isdisjoint(keys):
            raise ToolError("Tab moves on to another element: press it by itself")
        what = ["press", given.keys, "on", describe(element)]
    if given.action == "drag" and given.to:
        what += ["to", describe(tab.refs.find(given.to))]
    said = " ".join(each for each in what if each)
    return f"{said} on {tab.url[:MAX_SHOWN_CHARS]}, signed in as you"


def _is_free(tab: Tab, given: BrowserArguments, element: Element | None) -> bool:
    match given.action:
        case "click":
            return bool(find_free_link(tab, given))
        case "press":
            keys = given.keys.split()
            return element is None and bool(keys) and {*keys} <= _FREE_KEYS
        case "type":
            is_text = element is not None and (
                element.role in _TEXT_ROLES or "editable" in element.states
            )
            return is_text and not given.submit
        case "dialog":
            return not given.accept
        case _:
            return False


def find_free_link(tab: Tab, given: BrowserArguments) -> str:
    """The other page of the site to which a click on this link leads, where somebody is signed in;
    it is opened, and nothing is clicked. '' for every other click."""
    if tab.sign_in is None or given.button != "left" or given.clicks != 1 or not given.ref:
        return ""
    url = tab.refs.find(given.ref).url
    is_other = url.partition("#")[0] != tab.url.partition("#")[0]
    return url if is_other and tab.sign_in.holds_at(url) else ""


def describe_sign_in(sign_ins: SignIns, browser: Browser | None, url: str) -> str:
    """What a person is asked before their sign-in is used for this address; '' where it is in use
    already. Raises ToolError where there is none."""
    site = _find_site(sign_ins, url)
    used = browser.find_sign_in(site) if browser is not None and not browser.ended else None
    if used is not None and used.taken_at == _load(sign_ins, site).taken_at:
        return ""
    return (
        f"Open {url[:MAX_SHOWN_CHARS]} with your sign-in at {site}, and read what your account "
        "shows, until this browser closes; clicks, keys and choices there ask again, opening its "
        "pages and filling text fields do not"
    )


def _find_site(sign_ins: SignIns, url: str) -> str:
    site = sign_ins.find_site(url)
    if not site:
        there = ", ".join(sign_ins.list_sites()) or "no site"
        raise ToolError(
            f"nobody has given a sign-in for {quote(url[:MAX_SHOWN_CHARS])}; there are some for "
            f"{there}. A person gives one with: deskhand browser sign-in SITE"
        )
    return site


def _load(sign_ins: SignIns, site: str) -> SiteSignIn:
    try:
        return sign_ins.load(site)
    except ConfigError as error:
        raise ToolError(str(error)) from error


def require_owner(context: Context) -> None:
    """Raises ToolError where a sign-in may not be used: it is an owner's, and so is what its pages
    show."""
    if "owner" not in context.principal.roles:
        raise ToolError("only an owner may have their sign-in used: close this browser")
    if not may_see(SIGNED_IN, context.audience):
        raise ToolError(
            "others read along here: a sign-in is used in a conversation of its person alone"
        )


async def require_sign_in(browser: Browser, sign_ins: SignIns, tab: Tab, context: Context) -> None:
    """Raises ToolError where a tab that is signed in may not be used, and closes those of a site
    whose sign-in was taken back, or replaced by another one."""
    if tab.sign_in is None:
        return
    require_owner(context)
    site, taken_at = tab.sign_in.site, tab.sign_in.taken_at
    try:
        now = await anyio.to_thread.run_sync(_load, sign_ins, site)
    except ToolError:
        await browser.forget_sign_in(site)
        raise
    if now.taken_at != taken_at:
        await browser.forget_sign_in(site)
        raise ToolError(f"another sign-in for {site} was given: sign_in again")


async def open_signed_in(browser: Browser, sign_ins: SignIns, url: str) -> Tab:
    """A tab that is signed in at the site of this address, the current one then. Raises
    ToolError."""
    site = await anyio.to_thread.run_sync(_find_site, sign_ins, url)
    sign_in = await anyio.to_thread.run_sync(_load, sign_ins, site)
    if not sign_in.holds_at(url):
        raise ToolError(f"your person is signed in at {site} over https alone")
    used = browser.find_sign_in(site)
    if used is not None and used.taken_at != sign_in.taken_at:
        await browser.forget_sign_in(site)
        used = None
    if used is None:
        await browser.use_sign_in(sign_in)
    tab = browser.current
    if tab is None or tab.sign_in is None or tab.sign_in.site != site:
        tab = await browser.open_tab(site)
    return tab


async def renew_sign_in(browser: Browser, tab: Tab, sign_ins: SignIns) -> None:
    """Keep what the site has renewed of the sign-in of this tab, so that it holds the next time
    too. Raises ToolError."""
    before = tab.sign_in
    if before is None or tab.dialog is not None:
        return
    cookies = await browser.read_cookies(before.site)
    origins = {each.origin: each for each in before.origins}
    kept = await _read_storage(tab)
    if (
        kept is not None
        and before.holds_at(kept.origin)
        and (kept.local_storage or kept.origin in origins)
    ):
        origins[kept.origin] = kept
    try:
        now = make_sign_in(before.site, cookies, origins.values(), before.taken_at)
    except ConfigError:
        return  # signed out: the page says so
    if now == before:
        return
    browser.note_sign_in(now)
    try:
        await anyio.to_thread.run_sync(partial(sign_ins.renew, before, now))
    except (ConfigError, OSError) as error:
        raise ToolError(str(error)) from error


async def _read_storage(tab: Tab) -> StoredOrigin | None:
    """What the page keeps for its origin; None where that is not known."""
    found: list[Any] = []

    async def read() -> None:
        found.append(await tab.run_script(page_scripts.READ_STORAGE))

    await tab.until_asked(read)
    try:
        origin, items = msgspec.json.decode(str(found[0]).encode(), type=tuple[str, dict[str, str]])
    except (IndexError, ValueError, RecursionError):
        return None
    return make_stored_origin(origin, items)
