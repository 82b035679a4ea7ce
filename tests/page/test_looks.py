"""Nothing serious stands in anybody's way: nine states in light, dark and on a phone, looked at by
axe-core 4.14.1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, StorageState

from .conftest import Desk
from .states import LOOKS, MORE_STATES, STATES, settle
from .test_reach import PANELS
from .used import make_usage

pytestmark = pytest.mark.timeout(180)
AXE = Path(__file__).parent / "data" / "axe.min.js"
PUBLISHED = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
RUN = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations
    .filter((rule) => ["serious", "critical"].includes(rule.impact))
    .map((rule) => `${rule.id}: ${rule.nodes.map((node) => `${node.target} ${node.failureSummary}`).join(" | ")}`);
}"""  # noqa: E501


def test_the_checker_is_the_published_one() -> None:
    assert sha256(AXE.read_bytes()).hexdigest() == PUBLISHED


@pytest.fixture(scope="package")
def looked_at(browser: Browser, shared: Desk, signed: StorageState) -> Iterator[Page]:
    """The checker needs to be put into the page past its policy, which the other tests leave in
    force."""
    context = browser.new_context(
        storage_state=signed,
        base_url=shared.url,
        reduced_motion="reduce",
        bypass_csp=True,
        service_workers="block",
    )
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("state", [*STATES, *MORE_STATES])
def test_nothing_serious_stands_in_the_way(
    looked_at: Page, desk: Desk, signed: StorageState, state: str
) -> None:
    page = looked_at
    for cookie in signed["cookies"]:
        page.context.add_cookies(
            [{"name": cookie["name"], "value": cookie["value"], "url": desk.url}]
        )
    page.set_viewport_size({"width": 1440, "height": 900})  # the one before left a phone
    page.goto("about:blank")
    page.goto(f"{desk.url}/#/")
    page.get_by_label("Message to Deskhand").wait_for()
    (STATES | MORE_STATES)[state](page, desk)
    settle(page)
    page.evaluate(AXE.read_text())
    found: dict[str, list[str]] = {}
    for look, (scheme, width, height) in LOOKS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
        found[look] = page.evaluate(RUN)
    assert not any(found.values()), found


ALL = RUN.replace('.filter((rule) => ["serious", "critical"].includes(rule.impact))', "")


def show_charts(page: Page, url: str) -> None:
    page.route("**/api/usage?*", lambda route: route.fulfill(json=make_usage()))
    page.goto(f"{url}/#/settings/usage")
    page.get_by_role("button", name="anna $0.70").click()
    for table in page.get_by_text("Show as a table").all():
        table.click()


def open_health(page: Page, url: str) -> None:
    page.goto(f"{url}/#/settings/health")
    page.get_by_text("checks passed").wait_for()
    for part in page.locator(".page summary").all():
        part.click()


def open_configuration(page: Page, url: str) -> None:
    page.goto(f"{url}/#/settings/settings")
    page.get_by_label("Find a setting").fill("web")
    page.get_by_label("web_fetch.pause_s", exact=True).fill("soon")
    page.get_by_role("listitem").filter(has_text="web_fetch.pause_s").get_by_role(
        "button", name="Save"
    ).click()
    page.locator(".failed").wait_for()


@pytest.mark.parametrize("show", [show_charts, open_health, open_configuration])
def test_nothing_at_all_in_charts_health_and_configuration(
    looked_at: Page, desk: Desk, signed: StorageState, show: Callable[[Page, str], None]
) -> None:
    page, found = looked_at, dict[str, list[str]]()
    for cookie in signed["cookies"]:
        page.context.add_cookies(
            [{"name": cookie["name"], "value": cookie["value"], "url": desk.url}]
        )
    page.goto("about:blank")
    page.set_viewport_size({"width": 1440, "height": 900})
    show(page, desk.url)
    settle(page)
    page.evaluate(AXE.read_text())
    for scheme in ("light", "dark"):
        for width, height in ((1440, 900), (390, 844)):
            page.set_viewport_size({"width": width, "height": height})
            page.evaluate("scheme => { document.documentElement.dataset.theme = scheme }", scheme)
            found[f"{scheme} {width}"] = page.evaluate(ALL)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            inside = "e => e.scrollWidth <= e.clientWidth"
            assert page.locator(".page").evaluate(inside), (scheme, width)
    page.unroute_all()
    assert not any(found.values()), found


def test_nothing_at_all_in_lists_and_settings(
    looked_at: Page, desk: Desk, signed: StorageState
) -> None:
    page, found = looked_at, dict[str, list[str]]()
    for cookie in signed["cookies"]:
        page.context.add_cookies(
            [{"name": cookie["name"], "value": cookie["value"], "url": desk.url}]
        )
    page.goto("about:blank")
    page.goto(f"{desk.url}/#/c/{desk.long}")
    page.locator(".answer", has_text="Answer 624").wait_for()
    page.evaluate(AXE.read_text())

    def look(name: str) -> None:
        settle(page)
        found[name] = page.evaluate(ALL)

    for width, height in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{desk.url}/#/c/{desk.long}")
        page.get_by_role("button", name="Find in this").click()
        page.keyboard.type("question 12")
        page.get_by_text("1 of ").wait_for()
        look(f"find {width}")
        page.keyboard.press("Escape")
        page.keyboard.press("Control+/")
        page.get_by_label("Search everything").fill("tent")
        page.locator("a.entry.tall").first.wait_for()
        look(f"search {width}")
        page.get_by_label("Search everything").fill("")
        page.keyboard.press("Control+k")
        look(f"palette {width}")
        page.keyboard.press("Escape")
        for panel in PANELS:
            page.goto(f"{desk.url}/#/settings/{panel}")
            page.locator(".page .section, .page .rows, .page .none, .page .steps").first.wait_for()
            look(f"{panel} {width}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width, panel
    assert not any(found.values()), found
