"""What the agent sees is watched on the page: a real browser of the agent's, and what there may be
besides, answered by the test."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, StorageState, expect

from .conftest import WAIT_MS, Desk, answer, comes_true, say
from .states import LOOKS
from .test_files import png
from .test_looks import ALL, AXE

pytestmark = pytest.mark.timeout(120)
LIST = "**/api/sessions/*/screen"
PICTURES = "**/api/sessions/*/screen/*"
NOTHING = "Nothing is open. When Deskhand uses a browser or the desktop"


def call(**arguments: object) -> str:
    return f"call browser {json.dumps(arguments)}"


def open_panel(page: Page) -> Locator:
    page.get_by_role("button", name="Screen", exact=True).click()
    return page.get_by_role("complementary", name="Screen")


def view(id_: str, title: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "kind": "browser",
        "title": title,
        "url": f"https://{title.lower()}.example/",
        "program": "",
        "at": 1_760_000_000.0,
        **more,
    }


class Answers:
    """Answers of the server, as a test sets them, and which pictures were asked for."""

    def __init__(self, page: Page) -> None:
        self.views: list[dict[str, Any]] = []
        self.why_not = ""
        self.problem = ""
        self.asked: list[str] = []
        page.route(LIST, self._list)
        page.route(PICTURES, self._picture)

    def _list(self, route: Route) -> None:
        route.fulfill(json={"views": self.views, "why_not": self.why_not})

    def _picture(self, route: Route) -> None:
        self.asked.append(route.request.url.rpartition("/")[2])
        if self.problem:
            error = {"code": "no_picture", "message": self.problem}
            route.fulfill(status=503, json={"error": error})
        else:
            route.fulfill(body=png(640, 400), content_type="image/png")


def begun(page: Page) -> None:
    """A conversation that is there."""
    say(page, "hello")
    answer(page, "You said: hello").wait_for()


def test_an_agent_in_its_browser_is_watched_and_stopped(page: Page, desk: Desk) -> None:
    begun(page)
    panel = open_panel(page)
    expect(panel).to_contain_text(NOTHING)
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)

    say(page, call(action="tab", tab=0))
    answer(page, "That is done.").wait_for(timeout=60_000)
    say(page, call(action="wait", seconds=50))
    page.get_by_role("button", name="Watch").click()
    picture = panel.get_by_role("img", name="What Deskhand sees: about:blank")
    expect(picture).to_be_visible()
    comes_true(page, "document.querySelector('.screen-frame img').naturalWidth === 1280")
    expect(page.get_by_role("button", name="Watch")).to_have_count(0)
    expect(panel.get_by_role("group", name="What to watch").get_by_role("button")).to_have_count(2)
    panel.get_by_role("button", name="Stop").click()
    expect(page.locator(".did").last).to_contain_text("Stopped")
    expect(panel.get_by_role("button", name="Stop")).to_have_count(0)
    expect(picture).to_be_visible()
    say(page, call(action="close"))
    expect(panel).to_contain_text(NOTHING)


def test_it_is_looked_at_while_somebody_watches(routed_page: Page) -> None:
    page = routed_page
    begun(page)
    answers = Answers(page)
    answers.views = [view("browser-1-1", "Shop")]
    panel = open_panel(page)
    expect(panel.get_by_role("img", name="What Deskhand sees: Shop")).to_be_visible()
    expect(panel).to_contain_text("https://shop.example/")
    more_are_asked(page, answers)

    panel.get_by_role("button", name="Pause").click()
    expect(panel.get_by_role("status")).to_have_text("Paused")
    none_are_asked(page, answers)
    panel.get_by_role("button", name="Go on").click()
    more_are_asked(page, answers)

    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true});"
    changed = "document.dispatchEvent(new Event('visibilitychange'))"
    page.evaluate(hide % "true" + changed)
    none_are_asked(page, answers)
    page.evaluate(hide % "false" + changed)
    more_are_asked(page, answers)

    page.evaluate("document.querySelector('.panel').style.display = 'none'")
    none_are_asked(page, answers)
    page.evaluate("document.querySelector('.panel').style.display = ''")
    more_are_asked(page, answers)

    page.get_by_role("button", name="Close the panel").click()
    none_are_asked(page, answers)


def more_are_asked(page: Page, answers: Answers) -> None:
    before = len(answers.asked)
    for _ in range(100):
        page.wait_for_timeout(50)
        if len(answers.asked) >= before + 2:
            return
    raise AssertionError("no picture was asked for")


def none_are_asked(page: Page, answers: Answers) -> None:
    page.wait_for_timeout(300)  # what was under way
    before = len(answers.asked)
    page.wait_for_timeout(2_500)
    assert len(answers.asked) == before


def test_one_of_several_is_chosen_and_else_the_agent_is_followed(routed_page: Page) -> None:
    page = routed_page
    begun(page)
    answers = Answers(page)
    shop, bank = view("browser-1-1", "Shop"), view("browser-1-2", "Bank")
    window = view("desktop", "Mousepad: notes", kind="desktop", url="", program="/usr/bin/mousepad")
    answers.views = [shop, bank, window]
    panel = open_panel(page)
    tabs = panel.get_by_role("group", name="What to watch").get_by_role("button")
    expect(tabs).to_have_text(["Shop", "Bank", "Mousepad: notes"])
    expect(panel.get_by_role("button", name="Shop")).to_have_attribute("aria-pressed", "true")

    answers.views = [bank, shop, window]  # the agent goes on in another tab
    expect(panel.get_by_role("img", name="What Deskhand sees: Bank")).to_be_visible()
    expect(tabs).to_have_text(["Shop", "Bank", "Mousepad: notes"])
    panel.get_by_role("button", name="Mousepad: notes").click()
    expect(panel.get_by_role("img", name="What Deskhand sees: Mousepad: notes")).to_be_visible()
    expect(panel.locator("figcaption")).to_contain_text("/usr/bin/mousepad")
    answers.views = [shop, bank, window]
    none_but(page, answers, "desktop")

    answers.views = [shop, bank]
    expect(panel.get_by_role("img", name="What Deskhand sees: Shop")).to_be_visible()


def none_but(page: Page, answers: Answers, id_: str) -> None:
    answers.asked.clear()
    more_are_asked(page, answers)
    assert {*answers.asked} == {id_}


def test_what_is_in_the_way_is_said_and_the_last_picture_stays(routed_page: Page) -> None:
    page = routed_page
    begun(page)
    answers = Answers(page)
    answers.views = [view("browser-1-1", "Shop")]
    panel = open_panel(page)
    picture = panel.get_by_role("img", name="What Deskhand sees: Shop")
    expect(picture).to_be_visible()
    answers.problem = 'The page shows the alert "Sure?", and nothing else now.'
    expect(panel.locator(".note.warn")).to_have_text(answers.problem)
    expect(picture).to_be_visible()
    answers.problem = ""
    expect(panel.locator(".note.warn")).to_have_count(0)

    page.unroute(LIST)
    page.route(LIST, lambda route: route.abort())
    expect(panel.locator(".note.warn")).to_contain_text("Deskhand is not reached")
    expect(picture).to_be_visible()

    page.unroute(LIST)
    answers.views = []
    answers.why_not = "The agent of this conversation works in another process of Deskhand."
    page.route(LIST, answers._list)
    expect(panel).to_contain_text(answers.why_not)
    expect(panel).not_to_contain_text(NOTHING)


def test_it_is_there_for_everybody(browser: Browser, desk: Desk, signed: StorageState) -> None:
    """In light, dark and on a phone, by the checker of accessibility, and without a sideways
    scroll."""
    made = browser.new_context(
        storage_state=signed,
        base_url=desk.url,
        reduced_motion="reduce",
        bypass_csp=True,
        service_workers="block",
    )
    made.set_default_timeout(WAIT_MS)
    page = made.new_page()
    page.goto("/")
    begun(page)
    answers = Answers(page)
    long = view("browser-1-1", "A page with a long name " * 5, url="https://x.example/" + "a" * 400)
    answers.views = [long, view("browser-1-2", "Bank")]
    answers.problem = "The page shows the alert, and nothing else now."
    panel = open_panel(page)
    expect(panel.locator(".note.warn")).to_be_visible()
    page.evaluate(AXE.read_text())
    found: dict[str, list[str]] = {}
    for look, (scheme, width, height) in LOOKS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
        found[look] = page.evaluate(ALL)
        body = panel.locator(".panel-body")
        assert body.evaluate("e => e.scrollWidth <= e.clientWidth"), look
    assert not any(found.values()), found
    made.close()
