"""A shared conversation that is continued on the page."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from .conftest import answer, say


def test_a_shared_conversation_is_continued(page: Page) -> None:
    say(page, "the first words")
    expect(page.get_by_text("What I did:")).to_be_attached()
    page.get_by_role("button", name="What to do with this conversation").click()
    page.get_by_role("menuitem", name="Share").click()
    page.get_by_role("button", name="Create the link").click()
    address = page.get_by_label("The link", exact=True).input_value()
    page.goto(address)
    page.get_by_role("link", name="Continue this conversation").click()
    page.get_by_label("Your first message").fill("and now?")
    page.get_by_role("button", name="Send", exact=True).last.click()
    expect(answer(page, "You said: and now?")).to_be_visible()
    expect(answer(page, "You said: the first words")).to_be_visible()
    assert "continue" not in page.url
