"""What another app shares with the installed page: it is put into the message that is written, once
the person has said so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, expect

from .conftest import Desk, answer, comes_true

pytestmark = pytest.mark.timeout(120)
FORM = """<form method=post enctype=multipart/form-data action="{url}/shared">
<input name=title value="A page"><input name=url value="https://example.org/a">
<input type=file name=files><button>Share</button></form>"""
"""As the browser sends it for another app. Any site can send the same."""


@pytest.fixture
def elsewhere(desk: Desk) -> Iterator[str]:
    """The address of another site, which shares something."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = FORM.replace("{url}", desk.url).encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def share(page: Page, elsewhere: str, desk: Desk) -> None:
    page.evaluate("navigator.serviceWorker.ready")
    comes_true(page, "navigator.serviceWorker.controller !== null")
    page.goto(elsewhere)
    page.locator("[type=file]").set_input_files(
        {"name": "list.txt", "mimeType": "text/plain", "buffer": b"milk\n"}
    )
    page.get_by_role("button", name="Share").click()
    page.wait_for_url(f"{desk.url}/#/")


def test_what_is_shared_is_put_into_the_message(page: Page, desk: Desk, elsewhere: str) -> None:
    share(page, elsewhere, desk)
    asked = page.get_by_role("dialog", name="Shared with Deskhand")
    expect(asked).to_contain_text("https://example.org/a")
    expect(asked).to_contain_text("list.txt")
    field = page.get_by_label("Message to Deskhand")
    expect(field).to_have_value("")
    asked.get_by_role("button", name="Put it into the message").click()
    expect(field).to_have_value("A page\nhttps://example.org/a")
    expect(page.locator(".composer")).to_contain_text("list.txt")
    page.get_by_role("button", name="Send").click()
    expect(answer(page, "You said: A page")).to_be_visible()
    page.reload()
    expect(answer(page, "You said: A page")).to_be_visible()
    expect(asked).to_have_count(0)


def test_what_is_discarded_is_gone(page: Page, desk: Desk, elsewhere: str) -> None:
    share(page, elsewhere, desk)
    asked = page.get_by_role("dialog", name="Shared with Deskhand")
    asked.get_by_role("button", name="Discard").click()
    expect(asked).to_have_count(0)
    expect(page.get_by_label("Message to Deskhand")).to_have_value("")
    comes_true(page, "caches.has('deskhand-shared').then((has) => !has)")
