"""Notifications in this browser, also with the page closed. There is no push service of a browser
maker here: one of ours takes its place on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import Browser, BrowserContext, Page, expect

from deskhand.config.clock import SystemClock
from deskhand.testing.push_server import PushBrowser, PushServer, open_push_server

from .conftest import WAIT_MS, Desk, comes_true, desk_at, say, state_of, watched

pytestmark = pytest.mark.timeout(120)
SUBSCRIBED = """(given) => {
  const made = { endpoint: given.endpoint, toJSON: () => given, unsubscribe };
  let current = JSON.parse(localStorage.getItem("test.push") ?? "false");
  function keep(on) { current = on; localStorage.setItem("test.push", String(on)); }
  function unsubscribe() { keep(false); return Promise.resolve(true); }
  PushManager.prototype.subscribe = async ({ applicationServerKey, userVisibleOnly }) => {
    if (applicationServerKey.length !== 87 || !userVisibleOnly) throw new TypeError("no key");
    keep(true);
    return made;
  };
  PushManager.prototype.getSubscription = async () => (current ? made : null);
}"""
"""What a browser of a maker does: it gives the address at its push service."""
SHOWN = "navigator.serviceWorker.ready.then((it) => it.getNotifications())"
PRESS = """async () => {
  const [notification] = await registration.getNotifications();
  dispatchEvent(new NotificationEvent("notificationclick", { notification }));
}"""


@pytest.fixture(scope="module")
def portal() -> Iterator[BlockingPortal]:
    with start_blocking_portal() as opened:
        yield opened


@pytest.fixture(scope="module")
def service(portal: BlockingPortal) -> Iterator[PushServer]:
    with portal.wrap_async_context_manager(open_push_server(SystemClock().now)) as opened:
        yield opened


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, service: PushServer) -> Iterator[Desk]:
    home = tmp_path_factory.mktemp("push")
    (home / "push").write_text(service.url.removeprefix("http://"))
    found = desk_at(home)
    yield found
    found.kill()


@pytest.fixture
def context(browser: Browser, desk: Desk) -> Iterator[BrowserContext]:
    state = state_of(browser, desk)
    made = browser.new_context(storage_state=state, base_url=desk.url, reduced_motion="reduce")
    made.set_default_timeout(WAIT_MS)
    yield made
    made.close()


@pytest.fixture
def told(service: PushServer) -> PushBrowser:
    return service.subscribe()


@pytest.fixture
def page(context: BrowserContext, told: PushBrowser) -> Iterator[Page]:
    context.add_init_script(f"({SUBSCRIBED})({json.dumps(told.subscription())})")
    opened = context.new_page()
    broken = watched(opened)
    opened.goto("/")
    opened.get_by_label("Message to Deskhand").wait_for()
    yield opened
    assert broken == []


def allow(page: Page) -> None:
    page.context.grant_permissions(["notifications"])


def turn_on(page: Page) -> None:
    allow(page)
    page.goto("/#/inbox")
    page.get_by_role("button", name="Turn on here").click()
    page.get_by_role("button", name="Turn off here").wait_for()


def test_a_browser_is_told_tried_and_told_no_more(page: Page, service: PushServer) -> None:
    turn_on(page)
    rows = page.get_by_role("list", name="Browsers with notifications").get_by_role("listitem")
    expect(rows).to_contain_text("Chrome on Linux")
    expect(rows).to_contain_text("this one")
    before = len(service.pushed)
    test = page.get_by_role("button", name="Send a test")
    test.click()
    expect(page.get_by_text("Sent", exact=True)).to_be_attached()
    expect(test).to_be_enabled()
    assert service.pushed[before].said["body"] == "Notifications work in this browser."
    page.get_by_role("button", name="Turn off here").click()
    page.get_by_role("button", name="Turn on here").wait_for()
    expect(rows).to_have_count(0)


def test_what_waits_is_pushed_shown_and_opened(page: Page, service: PushServer) -> None:
    turn_on(page)
    worker = Worker(page)
    before = len(service.pushed)
    page.goto("/#/")
    say(page, "post it")
    page.get_by_role("button", name="Allow once").first.wait_for()
    conversation = page.evaluate("location.hash")
    waited_s = 0.0
    while len(service.pushed) == before and waited_s < 30:
        page.wait_for_timeout(100)
        waited_s += 0.1
    notice = service.pushed[before].said
    assert notice["hash"] == conversation and notice["is_question"]

    page.goto("/#/inbox")
    page.bring_to_front()
    worker.deliver(notice)
    page.wait_for_timeout(500)
    assert worker.shown() == [], "who looks at the page sees it there"
    page.context.new_page().bring_to_front()
    worker.look_away()
    worker.deliver(notice)
    worker.shows([[notice["title"], notice["body"]]])
    worker.deliver({**notice, "body": "newer"})
    worker.shows([[notice["title"], "newer"]])
    worker.press()
    comes_true(page, f"location.hash === {json.dumps(conversation)}")
    assert worker.shown() == []


class Worker:
    """The service worker of the page, and its browser's side of a push service."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._devtools = page.context.new_cdp_session(page)
        found: list[dict[str, Any]] = []
        self._devtools.on(
            "ServiceWorker.workerRegistrationUpdated",
            lambda said: found.extend(said["registrations"]),
        )
        self._devtools.send("ServiceWorker.enable")
        while not found:
            page.wait_for_timeout(50)
        self._id = found[0]["registrationId"]

    def look_away(self) -> None:
        """Give up the focus that Playwright pretends for each of its pages."""
        self._devtools.send("Emulation.setFocusEmulationEnabled", {"enabled": False})

    def deliver(self, notice: dict[str, Any]) -> None:
        """Push this."""
        origin = self._page.evaluate("location.origin")
        said = {"origin": origin, "registrationId": self._id, "data": json.dumps(notice)}
        self._devtools.send("ServiceWorker.deliverPushMessage", said)

    def shows(self, wanted: list[list[str]]) -> None:
        """Wait until this is shown, and nothing else."""
        waited_s = 0.0
        while self.shown() != wanted:
            assert waited_s < 20, self.shown()
            self._page.wait_for_timeout(50)
            waited_s += 0.05

    def shown(self) -> list[list[str]]:
        return list(
            self._page.evaluate(f"{SHOWN}.then((all) => all.map((n) => [n.title, n.body]))")
        )

    def press(self) -> None:
        (worker,) = self._page.context.service_workers
        worker.evaluate(PRESS)


def test_the_browser_says_no(page: Page) -> None:
    page.context.clear_permissions()
    page.goto("/#/inbox")
    page.get_by_role("button", name="Turn on here").click()
    expect(page.get_by_text("This browser blocks notifications of this page.")).to_be_visible()


def test_where_it_cannot_be_it_says_why(context: BrowserContext) -> None:
    context.add_init_script("delete globalThis.PushManager")
    page = context.new_page()
    page.goto("/#/inbox")
    expect(page.get_by_text("This browser cannot show notifications")).to_be_visible()


def test_who_signs_out_is_told_no_more(page: Page) -> None:
    turn_on(page)
    page.get_by_role("button", name="Sign out of this browser").click()
    comes_true(page, "localStorage.getItem('test.push') === 'false'")
