"""From the first visit on: one signs in by a link, says something, and sees an answer grow."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from .conftest import Desk, answer, desk_at, say, watched

pytestmark = pytest.mark.timeout(120)


def test_from_the_first_visit_to_the_first_answer(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> None:
    desk = desk_at(tmp_path_factory.mktemp("first"))
    context = browser.new_context()
    try:
        page = context.new_page()
        broken = watched(page)
        page.goto(desk.url)
        expect(page.get_by_role("heading", name="Sign in to Deskhand")).to_be_visible()
        expect(page.get_by_text("deskhand login")).to_be_visible()
        page.goto(desk.login)
        expect(page.get_by_role("heading", name="What should we do?")).to_be_visible()
        assert "login" not in page.url, "the secret must leave the address"
        page.get_by_role("button", name="Look around").click()
        expect(answer(page, "You said: What is in my workspace?")).to_be_visible()
        expect(
            page.get_by_role("navigation", name="Conversations").get_by_role("link").nth(2)
        ).to_contain_text("What is in")
        page.goto(desk.login)
        page.get_by_text("What should we do").wait_for()
        assert page.get_by_role("alert").first.inner_text().startswith("This link was used")
        assert broken == []
    finally:
        context.close()
        desk.kill()


def test_an_answer_grows_and_its_markdown_is_drawn(page: Page, desk: Desk) -> None:
    say(page, "hold it")
    expect(answer(page, "The first half of it.")).to_be_visible()
    expect(page.locator(".bubble")).to_have_text("hold it")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.evaluate("document.querySelector('.md .block').dataset.mark = 'same'")
    desk.release()
    expect(answer(page, "The second half of it.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    assert page.locator(".md .block").first.get_attribute("data-mark") == "same", (
        "what stood was drawn anew"
    )
    expect(page.locator(".md")).to_have_count(1)
    say(page, "markdown")
    table = page.get_by_role("table")
    expect(table.get_by_role("cell", name="the truth")).to_be_visible()
    expect(page.get_by_role("heading", name="An example")).to_be_visible()
    link = page.get_by_role("link", name="the documentation")
    assert link.get_attribute("rel") == "noreferrer noopener"
    expect(page.locator(".host").last).to_have_text("example.org")


def test_two_tabs_show_the_same(context: BrowserContext, page: Page, desk: Desk) -> None:
    say(page, "hold for both")
    answer(page, "The first half of it.").wait_for()
    page.wait_for_url(re.compile("#/c/"))
    other = context.new_page()
    other.goto(page.url)
    expect(answer(other, "The first half of it.")).to_be_visible()
    desk.release()
    for tab in (page, other):
        expect(answer(tab, "The second half of it.")).to_be_visible()
        expect(tab.locator(".did")).to_have_count(1)
    say(other, "and from here")
    expect(answer(page, "You said: and from here")).to_be_visible()


def test_interrupt_turns_to_what_is_said_now(page: Page, desk: Desk) -> None:
    say(page, "hold it")
    answer(page, "The first half of it.").wait_for()
    page.get_by_role("radio", name="Interrupt").click()
    say(page, "something else")
    expect(page.get_by_text("Interrupted here")).to_be_visible()
    expect(answer(page, "You said: something else")).to_be_visible()


def test_stop_and_escape_stop(page: Page, desk: Desk) -> None:
    say(page, "hold it")
    answer(page, "The first half of it.").wait_for()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".did")).to_contain_text("Stopped")
    say(page, "hold it again")
    expect(answer(page, "The first half of it.")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.locator(".did").nth(1)).to_contain_text("Stopped")
    assert page.get_by_text(re.compile("Stopped|Interrupted here")).count() == 2, (
        "each is told once"
    )


def test_what_waits_its_turn_is_shown(page: Page, desk: Desk) -> None:
    say(page, "hold it")
    answer(page, "The first half of it.").wait_for()
    page.get_by_role("radio", name="Queue").click()
    say(page, "and then this")
    waiting = page.get_by_role("region", name="Messages that wait")
    expect(waiting).to_contain_text("and then this")
    expect(waiting).to_contain_text("after this")
    desk.release()
    expect(answer(page, "You said: and then this")).to_be_visible()
    expect(waiting).to_have_count(0)
