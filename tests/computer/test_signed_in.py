"""Pages on which a person is signed in, by a sign-in that they gave: a real Chromium, a real
site."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from anyio.abc import SocketStream
from msgspec.structs import replace

from deskhand.computer.browser.sign_ins import Cookie, SignIns, SiteSignIn, StoredItem, StoredOrigin
from deskhand.runtime.app import OWNER as OWNER_PRINCIPAL
from deskhand.testing.site import plain
from deskhand.testing.temporary_home import TemporaryHome, results, until, wait_for
from deskhand.tools.base import CallPreview
from deskhand.types.errors import ToolError
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER
from deskhand.types.options import SessionOptions
from tests.tools.conftest import text_of

from .conftest import Surfer

FIRST, SECOND = "first7f3a9c1e8b2d4f60", "second0b6e4d2c8a1f3e5d"
ACCOUNT = """<title>Account</title><h1>Hello Ann</h1><p id=key></p><a href="/orders">Orders</a>
<a href="#">Buy again</a> <a href="http://other.test/away">Away</a>
<a href="/orders?2" onclick="document.title = 'deleted'; return false">Delete</a>
<label>Note <input name=note></label>
<label>Kind <select><option>Own<option>Gift</select></label>
<button onclick="confirm('Really close it?')">Close the account</button>
<button onclick="document.title = 'bought'">Buy</button>
<iframe src="http://other.test:PORT/frame"></iframe>
<script>document.getElementById('key').textContent = 'theme ' + localStorage.getItem('theme') +
  ', key ' + document.cookie</script>"""


@pytest.fixture
def account(surfer: Surfer) -> Surfer:
    """A site that knows Ann by her cookie, renews it at /orders, and sends all others away."""
    site = surfer.site

    def serve(path: str, html: str, headers: Mapping[str, str] | None = None) -> None:
        signed_in = plain(html.encode(), 200, {"Content-Type": "text/html", **(headers or {})})
        other = {"Location": f"http://other.test:{site.port}/login"}

        async def answer(stream: SocketStream, query: str) -> None:
            cookie = site.requests[-1].headers.get("cookie", "")
            is_known = FIRST in cookie or SECOND in cookie
            await (signed_in if is_known else plain(b"", 302, other))(stream, query)

        site.pages[path] = answer

    serve("/account", ACCOUNT.replace("PORT", str(site.port)))
    site.page("/frame", "<p>an advertisement")
    serve("/orders", "<h1>One tent</h1>", {"Set-Cookie": f"sid={SECOND}; Path=/"})
    site.page("/login", "<h1>Sign in</h1>")
    site.page("/away", "<h1>Away</h1>")
    surfer.sign_ins.save(
        SiteSignIn(
            (Cookie("sid", FIRST, site.host),),
            (StoredOrigin(f"http://{site.host}:{site.port}", (StoredItem("theme", "dark"),)),),
            site.host,
            7.0,
        )
    )
    return surfer


def preview(surfer: Surfer, action: str, **arguments: Any) -> CallPreview | None:
    raw = msgspec.Raw(msgspec.json.encode({"action": action, **arguments}))
    return surfer.tool.preview(raw, surfer.hands.session, SessionOptions(), OWNER)


def kept(surfer: Surfer) -> list[str]:
    return [each.value for each in surfer.sign_ins.load(surfer.site.host).cookies]


async def test_a_page_is_read_as_the_person(account: Surfer) -> None:
    done = await account.done("sign_in", url=account.site.url("/account"))
    shown = text_of(done)
    assert "Hello Ann" in shown and "theme dark" in shown
    assert FIRST not in shown and "[sign-in at site.test]" in shown
    assert done.parts[0].label.readers == ("role:owner",)
    words = text_of(await account.done("text", offset=40))
    assert not any(FIRST[n : n + 8] in words for n in range(len(FIRST) - 8)), "not a part of it"
    browser = account.browsers.peek(account.hands.session)
    assert browser is not None and browser.label.readers == ("role:owner",), "who watches it too"


async def test_other_tabs_are_not_signed_in(account: Surfer) -> None:
    await account("sign_in", url=account.site.url("/account"))
    await account("tab", tab=0)
    shown = await account("open", url=account.site.url("/account"))
    assert "Sign in" in shown and "Hello" not in shown


async def test_it_leads_nowhere_else(account: Surfer) -> None:
    await account("sign_in", url=account.site.url("/account"))
    said = await account("click", ref=await account.ref("Away"))
    assert "not part of site.test and was not followed" in said
    assert not any(seen.target == "/away" for seen in account.site.requests)
    shown = await account("open", url=f"http://other.test:{account.site.port}/away")
    assert "tab 1, one of 2" in shown and "Away" in shown, "in a tab where nobody is signed in"
    last = next(seen for seen in account.site.requests if seen.target == "/away")
    assert "cookie" not in last.headers


async def test_frames_of_others_are_left_out(account: Surfer) -> None:
    said = await account("sign_in", url=account.site.url("/account"))
    assert 'frames of "other.test" are left out' in said and "advertisement" not in said
    assert not any(seen.target == "/frame" for seen in account.site.requests)
    account.site.page("/page", f"<iframe src='http://other.test:{account.site.port}/frame'>")
    assert "advertisement" in await account("tab", tab=0, url=account.site.url("/page"))


async def test_one_that_has_ended_says_so(account: Surfer) -> None:
    account.sign_ins.save(replace(account.sign_ins.load("site.test"), cookies=(), taken_at=8.0))
    said = await account("sign_in", url=account.site.url("/account"))
    assert "deskhand browser sign-in site.test" in said and "/login" in said
    assert not any(seen.target == "/login" for seen in account.site.requests)


async def test_what_the_site_renews_is_kept(account: Surfer) -> None:
    await account("sign_in", url=account.site.url("/account"))
    assert kept(account) == [FIRST]
    await account("click", ref=await account.ref("Orders"))
    assert kept(account) == [SECOND]
    assert account.sign_ins.load("site.test").taken_at == 7.0


@pytest.mark.parametrize("other", ["none", "another"])
async def test_one_that_was_taken_back_is_used_no_more(account: Surfer, other: str) -> None:
    await account("sign_in", url=account.site.url("/account"))
    given = account.sign_ins.load("site.test")
    account.sign_ins.remove("site.test")
    if other == "another":
        account.sign_ins.save(replace(given, taken_at=9.0))
    said = await account.fails("click", ref=shown_ref(account, "Orders"))
    assert ("another sign-in" if other == "another" else "there is no sign-in") in said
    assert not any(seen.target == "/orders" for seen in account.site.requests)
    browser = account.browsers.peek(account.hands.session)
    assert browser is not None and not any(tab.sign_in for tab in browser.tabs)
    assert len(account.sign_ins.list_sites()) == (1 if other == "another" else 0)


def shown_ref(surfer: Surfer, name: str) -> str:
    """The ref of what was shown with this name."""
    browser = surfer.browsers.peek(surfer.hands.session)
    assert browser is not None and browser.current is not None
    return next(each.ref for each in browser.current.root.walk() if each.name == name)


async def test_what_is_asked_before_it(account: Surfer) -> None:
    url = account.site.url("/account")
    asked = preview(account, "sign_in", url=url)
    assert asked is not None and asked.effect == "network" and "site.test" in asked.shown
    unknown = preview(account, "sign_in", url="https://bank.example/")
    assert unknown is not None and unknown.effect == "none", "it fails, without a question"

    await account("sign_in", url=url)
    again = preview(account, "sign_in", url=account.site.url("/orders"))
    assert again is not None and again.effect == "fetch", "one yes holds while it is open"
    names = ("Buy", "Buy again", "Orders", "Note", "Kind", "Delete")
    refs = {name: shown_ref(account, name) for name in names}
    bought = preview(account, "click", ref=refs["Buy"])
    assert bought == CallPreview("send_other", f'click button "Buy" on {url}, signed in as you')
    acts: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("click", {"ref": refs["Buy again"]}, 'click link "Buy again"'),
        ("click", {"ref": f"[{refs['Buy']}]"}, 'click button "Buy"'),
        ("click", {"ref": refs["Orders"], "button": "right"}, 'click link "Orders"'),
        ("click", {"ref": refs["Orders"], "clicks": 2}, 'click link "Orders"'),
        ("press", {"keys": "Enter", "ref": refs["Buy"]}, 'press Enter on button "Buy"'),
        ("press", {"keys": " ", "ref": refs["Buy"]}, 'on button "Buy"'),
        ("press", {"keys": "ArrowDown", "ref": refs["Kind"]}, 'on combobox "Kind"'),
        ("type", {"ref": refs["Note"], "text": "x", "submit": True}, 'type textbox "Note"'),
        ("type", {"ref": refs["Buy"], "text": " "}, 'type button "Buy"'),
        ("select", {"ref": refs["Kind"], "text": "Gift"}, 'select combobox "Kind"'),
        ("type", {"ref": refs["Kind"], "text": "Gift"}, 'type combobox "Kind"'),
        ("drag", {"ref": refs["Note"], "to": refs["Buy"]}, 'to button "Buy"'),
        ("upload", {"ref": refs["Buy"], "path": "x"}, 'upload button "Buy"'),
    )
    for action, more, shown in acts:
        found = preview(account, action, **more)
        assert found is not None and found.effect == "send_other", action
        assert shown in found.shown, found
    free: tuple[tuple[str, dict[str, Any]], ...] = (
        ("click", {"ref": refs["Orders"]}),
        ("click", {"ref": refs["Delete"]}),
        ("press", {"keys": "Tab"}),
        ("type", {"ref": refs["Note"], "text": "x"}),
        ("dialog", {"accept": False}),
        ("look", {}),
        ("scroll", {}),
    )
    for action, more in free:
        assert preview(account, action, **more) is None, action
    refused: tuple[tuple[str, dict[str, Any], str], ...] = (
        ("press", {"keys": "Enter"}, "name its ref"),
        ("press", {"keys": " "}, "name its ref"),
        ("press", {"keys": "Tab PageDown"}, "name its ref"),
        ("press", {"keys": "Tab Enter", "ref": refs["Note"]}, "press it by itself"),
        ("click", {"ref": "e999"}, "there is no"),
        ("dialog", {"accept": True}, "asks nothing"),
    )
    for action, more, why in refused:
        found = preview(account, action, **more)
        assert found is not None and found.effect == "none" and why in found.shown
        assert why in await account.fails(action, **more), "it fails, without a question"


async def test_what_a_dialog_asks_is_shown(account: Surfer) -> None:
    await account("sign_in", url=account.site.url("/account"))
    await account("click", ref=shown_ref(account, "Close the account"))
    asked = preview(account, "dialog", accept=True)
    assert asked is not None and 'accept the confirm "Really close it?"' in asked.shown
    stored = account.sign_ins.load("site.test")
    assert stored.origins[0].local_storage == (StoredItem("theme", "dark"),), "it stays"
    await account("dialog", accept=False)


async def test_a_link_is_opened_and_not_clicked(account: Surfer) -> None:
    await account("sign_in", url=account.site.url("/account"))
    said = await account("click", ref=shown_ref(account, "Delete"))
    assert "One tent" in said and "deleted" not in await account.title()


async def test_what_was_judged_on_another_tab_is_not_done(account: Surfer) -> None:
    await account("sign_in", url=account.site.url("/account"))
    browser = account.browsers.peek(account.hands.session)
    assert browser is not None
    signed_in = browser.current
    assert signed_in is not None
    ref = shown_ref(account, "Buy")
    await account("tab", tab=1)
    assert preview(account, "click", ref=ref) is None
    await browser.show(signed_in)  # as a sub-agent does that has the same browser
    assert "changed since" in await account.fails("click", ref=ref)
    assert await account.title() == "Account"
    assert preview(account, "click", ref=ref) is not None
    await account("click", ref=ref)
    assert await account.title() == "bought", "what was judged as it is now is done"


async def test_another_sign_in_is_asked_about_and_used(account: Surfer) -> None:
    await account("sign_in", url=account.site.url("/account"))
    await account("tab", tab=1)
    given = account.sign_ins.load("site.test")
    cookies = (Cookie("sid", SECOND, "site.test"),)
    account.sign_ins.save(replace(given, cookies=cookies, taken_at=9.0))
    asked = preview(account, "sign_in", url=account.site.url("/account"))
    assert asked is not None and asked.effect == "network"
    shown = await account("sign_in", url=account.site.url("/account"))
    assert "Hello Ann" in shown and FIRST not in account.site.requests[-1].headers["cookie"]


async def test_a_cookie_that_no_browser_takes_is_left_out(account: Surfer) -> None:
    given = account.sign_ins.load("site.test")
    wrong = (
        Cookie("", "", "site.test"),
        Cookie("a\nb", "1", "site.test"),
        Cookie("late", "1", "site.test", same_site="None"),
    )
    account.sign_ins.save(replace(given, cookies=(*wrong, *given.cookies)))
    assert "Hello Ann" in await account("sign_in", url=account.site.url("/account"))


async def test_what_is_shown_afterwards_is_the_owners_too(account: Surfer) -> None:
    """Other tabs of the browser name those that are signed in."""
    await account("sign_in", url=account.site.url("/account"))
    done = await account.done("tab", tab=1)
    assert "/account" in text_of(done) and done.parts[0].label.readers == ("role:owner",)


async def test_where_others_read_along_it_is_not_used(account: Surfer) -> None:
    account.hands.audience = ("bob",)
    said = await account.fails("sign_in", url=account.site.url("/account"))
    assert "others read along" in said
    assert not account.site.requests


async def test_no_script_is_run_there(account: Surfer) -> None:
    await account("sign_in", url=account.site.url("/account"))
    said = await account.fails("script", text="document.cookie")
    assert "no script" in said


async def test_only_an_owner_has_it_used(account: Surfer) -> None:
    context = await account.context()
    guest = replace(context, principal=Principal("bob", ("member",)))
    raw = msgspec.Raw(
        msgspec.json.encode({"action": "sign_in", "url": account.site.url("/account")})
    )
    with pytest.raises(ToolError, match="only an owner"):
        await account.tool.run(raw, guest)


async def test_a_person_is_asked_before_their_sign_in_is_used(tmp_path: Path) -> None:
    home = TemporaryHome(tmp_path, defaults={"models": ["scripted/x"]})
    given = SiteSignIn((Cookie("sid", FIRST, "shop.test"),), (), "shop.test", 1.0)
    SignIns(home.settings.home.sign_ins).save(given)
    async with home.running() as app:
        call = ["browser", {"action": "sign_in", "url": "https://shop.test/orders"}]
        await home.say(app, msgspec.json.encode([call]).decode())
        (asked,) = await wait_for(lambda: app.store.open_asks(OWNER_PRINCIPAL))
        assert "Open https://shop.test/orders with your sign-in at shop.test" in asked.question
        assert FIRST not in asked.question
        await home.say(app, "no")
        await until(app, lambda found: bool(found), "default/terminal:1")
        (said,) = await results(app, "default/terminal:1")
        assert "denied" in said or "no" in said
        assert app.features.browsers.peek("default/terminal:1") is None

        unknown = await home.call(app, "browser", action="sign_in", url="https://bank.test/")
        assert "nobody has given a sign-in" in unknown and "shop.test" in unknown
