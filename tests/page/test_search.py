"""The search over all conversations: its filters, pressed and typed, and the way to a hit."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from .conftest import say
from .test_list import begin, choose

pytestmark = pytest.mark.timeout(120)


def look_for(page: Page, text: str) -> Locator:
    """Write this into the field. Returns the hits in conversations."""
    page.get_by_label("Search everything").fill(text)
    return found(page).locator("a.tall")


def found(page: Page) -> Locator:
    return page.get_by_role("region", name="What was found")


def press(page: Page, filter_: str, choice: str) -> None:
    filters = page.get_by_role("group", name="Filters of the search")
    filters.get_by_role("button", name=filter_).click()
    menu = page.get_by_role("menu", name=filter_.partition(":")[0])
    menu.get_by_text(choice, exact=True).click()


def field_of(page: Page) -> Locator:
    return page.get_by_label("Search everything")


def test_what_was_said_is_filtered_by_who_said_it(page: Page) -> None:
    begin(page, "the walnut tree")
    hits = look_for(page, "walnut")
    expect(hits).to_have_count(2)
    press(page, "Who said it: Anybody", "Me")
    expect(field_of(page)).to_have_value("walnut from:me")
    expect(hits).to_have_count(1)
    expect(hits.locator(".hit")).to_have_text("the walnut tree")
    expect(found(page).get_by_role("heading", name="Titles")).to_have_count(0)
    press(page, "Who said it: Me", "The agent")
    expect(hits.locator(".hit")).to_have_text("You said: the walnut tree")
    expect(hits).to_contain_text("The agent")
    press(page, "Who said it: The agent", "Anybody")
    expect(field_of(page)).to_have_value("walnut")
    expect(hits).to_have_count(2)


def test_what_was_said_is_filtered_by_time(page: Page) -> None:
    begin(page, "the almond tree")
    hits = look_for(page, "almond")
    expect(hits).to_have_count(2)
    for span in ("Today", "This week", "This month"):
        press(page, "When:", span)
        expect(page.get_by_role("button", name="When:")).to_have_accessible_name(f"When: {span}")
        expect(hits).to_have_count(2)

    press(page, "When:", "Before a date …")
    asked = page.get_by_role("dialog", name="What was said before")
    asked.get_by_label("Date").fill("2020-02-29")
    asked.get_by_role("button", name="Search").click()
    expect(page.get_by_role("button", name="When:")).to_contain_text("Feb 29, 2020")
    expect(found(page)).to_contain_text("No day is left between")
    press(page, "When:", "Any time")
    expect(field_of(page)).to_have_value("almond")
    look_for(page, "almond before:2020-02-29")
    expect(found(page)).to_contain_text("No results for “almond” with these filters.")
    found(page).get_by_role("button", name="Search without filters").click()
    expect(hits).to_have_count(2)


def test_what_is_archived_is_left_out(page: Page) -> None:
    begin(page, "the chestnut tree")
    choose(page, "the chestnut tree", "Move to archive")
    hits = look_for(page, "chestnut")
    expect(hits).to_have_count(2)
    with_archived = page.get_by_role("button", name="Also archived", pressed=True)
    with_archived.click()
    expect(field_of(page)).to_have_value("chestnut archived:no")
    expect(found(page)).to_contain_text("No results for “chestnut” with these filters.")
    expect(hits).to_have_count(0)
    page.get_by_role("button", name="Also archived", pressed=False).click()
    expect(hits).to_have_count(2)


def test_what_is_typed_wrong_is_said_in_words(page: Page) -> None:
    expect(page.get_by_text("You can also type from:me")).to_have_count(0)
    for typed, told in (
        ("tree from:bob", "Write from:me or from:agent, not “from:bob”."),
        ("tree after:yesterday", "“yesterday” is not a date. Write after:20"),
        ("tree before:2026-02-30", "“2026-02-30” is not a date. Write before:20"),
        ("tree agent:nobody", "There is no agent “nobody”. Choose one of: default."),
        ("tree archived:maybe", "Write archived:yes or archived:no."),
        ("from:me", "Add a word to look for."),
    ):
        look_for(page, typed)
        expect(found(page)).to_contain_text(told)
        expect(found(page).get_by_role("link")).to_have_count(0)
    expect(page.get_by_text("You can also type from:me")).to_be_visible()
    look_for(page, "FROM:Me agent:default tree")
    expect(page.get_by_role("button", name="Who said it: Me")).to_be_visible()
    expect(page.get_by_role("button", name="Which agent: default")).to_be_visible()


def test_a_hit_of_a_filtered_search_is_shown_in_its_place(page: Page) -> None:
    begin(page, "the hazel tree is from me")
    for n in range(12):
        say(page, f"line {n} of it")
        expect(page.locator(".did")).to_have_count(n + 2)
    page.goto("/#/")
    hits = look_for(page, "hazel from:me")
    hits.first.click()
    expect(page.locator(".bubble").get_by_text("the hazel tree is from me")).to_be_in_viewport()
    marks = "CSS.highlights.get('hit')?.size ?? 0"
    assert page.evaluate(marks) == 2, "in the question and in the answer, without the filters"
