"""The page at 200 and 400 % zoom, and as a screen reader has it: every panel and the states of a
conversation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from deskhand.web.page import STATIC

from .conftest import Desk
from .states import approval, error, formatted, settle, tool_running

pytestmark = pytest.mark.timeout(180)
PANELS = re.findall(
    r"^  (\w+): async", (STATIC / "js" / "settings-pages.js").read_text(), re.MULTILINE
)
PLACES = ["#/", "#/inbox", *(f"#/settings/{name}" for name in PANELS)]
ZOOMED = {"200 %": (720, 450), "400 %": (320, 480)}
"""A window of 1440 by 900, and one of 1280 by 1920, as the page sees them then."""
STICKS_OUT = """() => {
  const isClipped = (element) => {
    for (let above = element.parentElement; above; above = above.parentElement)
      if (/auto|scroll|hidden|clip/.test(getComputedStyle(above).overflowX) &&
          above.getBoundingClientRect().right <= innerWidth + 1) return true;
    return false;
  };
  const found = [...document.querySelectorAll("#app *")].filter((element) => {
    const place = element.getBoundingClientRect();
    return place.width && place.right > innerWidth + 1 && !isClipped(element);
  });
  const wide = [...document.querySelectorAll(".page, .scroll, .settings-view, html")].filter(
    (area) => area.scrollWidth > area.clientWidth + 1);
  return [...found, ...wide].map((element) => `${element.tagName}.${element.className}`);
}"""
STATES: list[Callable[[Page, Desk], None]] = [formatted, tool_running, approval, error]
NAMED = {
    *("button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch"),
    *("tab", "menuitem", "slider", "spinbutton", "img", "region", "dialog", "navigation"),
}
"""What nobody can use without a name. Parts of what a model wrote are its own."""


def go_to(page: Page, place: str) -> None:
    page.goto("about:blank")
    page.goto(f"/{place}")
    page.locator("h1").first.wait_for()
    settle(page)


@pytest.mark.parametrize("zoom", ZOOMED)
def test_nothing_sticks_out_when_it_is_zoomed(page: Page, desk: Desk, zoom: str) -> None:
    width, height = ZOOMED[zoom]
    page.set_viewport_size({"width": width, "height": height})
    out = {}
    for place in PLACES:
        go_to(page, place)
        out[place] = page.evaluate(STICKS_OUT)
    for state in STATES:
        page.goto("/#/")
        state(page, desk)
        out[state.__name__] = page.evaluate(STICKS_OUT)
        desk.release()
        desk.hold()
    assert {place: found for place, found in out.items() if found} == {}


def nameless(page: Page) -> list[str]:
    """What a screen reader cannot call by a name."""
    tools = page.context.new_cdp_session(page)
    nodes: list[dict[str, Any]] = tools.send("Accessibility.getFullAXTree")["nodes"]
    tools.detach()
    return [
        f"{node['role']['value']} {node.get('backendDOMNodeId')}"
        for node in nodes
        if not node.get("ignored")
        and node["role"]["value"] in NAMED
        and not node.get("name", {}).get("value", "").strip()
    ]


def outline(page: Page) -> list[int]:
    """The levels of the headings that are seen, without those in answers."""
    levels: list[int] = page.evaluate(
        """() => [...document.querySelectorAll("h1, h2, h3, h4, h5, h6")]
          .filter((each) => each.checkVisibility() && !each.closest(".answer"))
          .map((each) => Number(each.tagName[1]))"""
    )
    return levels


def test_a_screen_reader_has_a_name_for_everything(page: Page, desk: Desk) -> None:
    without, heads = {}, {}
    for place in PLACES:
        go_to(page, place)
        without[place], heads[place] = nameless(page), outline(page).count(1)
    for state in STATES:
        page.goto("/#/")
        state(page, desk)
        without[state.__name__], heads[state.__name__] = nameless(page), outline(page).count(1)
        desk.release()
        desk.hold()
    assert {place: found for place, found in without.items() if found} == {}
    assert {place: count for place, count in heads.items() if count != 1} == {}


def test_landmarks_lead_through_the_page(page: Page) -> None:
    conversations = page.get_by_role("navigation", name="Conversations", exact=True)
    conversation = page.get_by_role("region", name="Conversation", exact=True)
    for landmark in (conversations, page.get_by_role("main"), conversation):
        assert landmark.count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    assert "Deskhand" in page.title()
