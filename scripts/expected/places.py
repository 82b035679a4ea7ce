"""What people expect of the list of conversations and of the settings."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.page.conftest import answer, say
from tests.page.used import make_usage

from .houses import House
from .rows import Part, ask, open_list, open_menu, row


def _choose(page: Page, *labels: str) -> None:
    for label in labels:
        menu = page.get_by_role("menu")
        menu.get_by_role("menuitem", name=label).or_(
            menu.get_by_role("menuitemradio", name=label)
        ).click()


@row("desk")
def pins_and_folders(page: Page, house: House) -> Part:
    if not page.locator('[aria-label="Pinned"]').count():
        open_menu(page, "Birthday of Grandma")
        _choose(page, "Pin to the top")
        open_menu(page, "Which papers for the tax return?")
        _choose(page, "Move to folder", "New folder")
        page.get_by_role("dialog", name="New folder").get_by_label("Name").fill("Taxes")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Taxes 1").wait_for()
    open_list(page)
    folder = page.get_by_role("button", name="Taxes 1")
    if folder.get_attribute("aria-expanded") != "true":
        folder.click()
    open_menu(page, "Bread without kneading")
    return None


@row("desk")
def delete(page: Page, house: House) -> Part:
    open_menu(page, "Bread without kneading")
    _choose(page, "Erase")
    return None


@row("desk")
def share_and_export(page: Page, house: House) -> Part:
    ask(page, "Bread without kneading")
    page.get_by_role("button", name="What to do with this conversation").click()
    _choose(page, "Share")
    page.get_by_role("button", name="Create the link").click()
    page.get_by_role("list", name="Links that work").wait_for()
    return None


@row("desk")
def search(page: Page, house: House) -> Part:
    open_list(page)
    page.get_by_label("Search everything").fill("tent")
    found = page.get_by_role("region", name="What was found")
    found.locator("a.tall").first.wait_for()
    page.wait_for_timeout(400)
    found.locator("a.tall").first.click()
    page.locator(".answer").first.wait_for()
    return None


@row("desk")
def palette(page: Page, house: House) -> Part:
    page.keyboard.press("Control+k")
    page.get_by_role("dialog", name="Commands").wait_for()
    page.keyboard.type("s")
    return None


@row("crowded")
def many_conversations(page: Page, house: House) -> Part:
    open_list(page)
    links = page.get_by_role("navigation", name="Conversations").get_by_role("link")
    expect(links.filter(has_text="Talk 0 ")).to_have_count(1)
    box = page.locator(".side-list")
    for _ in range(8):
        box.evaluate("box => { box.scrollTop = box.scrollHeight }")
        page.wait_for_timeout(250)
    return None


@row("crowded")
def long_conversations(page: Page, house: House) -> Part:
    page.goto("/#/c/deep")
    answer(page, "Answer 4999").wait_for()
    page.keyboard.press("Control+f")
    find = page.locator(".find")
    find.get_by_label("Find in this").fill("Answer 1234")
    answer(page, "Answer 1234").wait_for()
    return None


@row("desk")
def notifications(page: Page, house: House) -> Part:
    say(page, "Invite Ada to the river on Saturday")
    page.get_by_role("region", name="Permission needed").wait_for()
    page.goto("/#/inbox")
    page.get_by_role("heading", name="Waits for you").wait_for()
    return None


@row("desk")
def memory(page: Page, house: House) -> Part:
    page.goto("/#/settings/memory")
    page.wait_for_timeout(500)
    fact = page.get_by_role("button", name=re.compile("a dog called Rex"))
    if not fact.count():
        page.goto("/#/")
        page.get_by_role("heading", name="What should we do").wait_for()
        ask(page, "Remember a few things about us")
        page.goto("/#/settings/memory")
    fact.first.click()
    return None


@row("desk")
def jobs(page: Page, house: House) -> Part:
    page.goto("/#/settings/jobs")
    page.get_by_role("button", name="New job").click()
    page.get_by_role("button", name="Morning brief").click()
    page.get_by_role("status").filter(has_text="Forecast").wait_for()
    return None


@row("desk")
def usage(page: Page, house: House) -> Part:
    """A month of it, as the API says it: nobody works a month for a picture."""
    page.route("**/api/usage?*", lambda route: route.fulfill(json=make_usage()))
    page.goto("/#/settings/usage")
    page.get_by_role("figure", name="By day").wait_for()
    return None
