"""The branches of a conversation, as a tree beside it."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from .conftest import answer, say

pytestmark = pytest.mark.timeout(120)


def talk_with_branches(page: Page) -> None:
    """Three turns, a branch from the first of them, and one from that one."""
    for words in ("one", "two", "three"):
        say(page, words)
        expect(answer(page, f"You said: {words}")).to_be_visible()
    branch_from(page, 0)
    say(page, "the other way")
    expect(answer(page, "You said: the other way")).to_be_visible()
    branch_from(page, -1)


def branch_from(page: Page, turn: int) -> None:
    before = page.url
    page.get_by_role("button", name="Branch from here").nth(turn).click()
    page.wait_for_url(lambda url: url != before)
    expect(page.get_by_text("Branched here")).to_be_visible()


def tree(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Branches")


def titles(page: Page) -> list[str]:
    """Each with the number of those that it stands below."""
    found: list[str] = tree(page).evaluate(
        """nav => [...nav.querySelectorAll("strong")].map((title) => {
          let depth = -1;
          for (let at = title; at !== nav; at = at.parentElement) depth += at.matches("ul");
          return `${depth} ${title.textContent}`;
        })"""
    )
    return found


def test_the_family_is_a_tree_to_jump_in(page: Page) -> None:
    talk_with_branches(page)
    page.get_by_role("button", name="Branches").click()
    rows = tree(page).locator("a.branch")
    expect(rows).to_have_count(3)
    assert titles(page) == ["0 one", "1 one (2)", "2 one (3)"]
    current = tree(page).locator("[aria-current=page]")
    expect(current).to_have_count(1)
    expect(current).to_contain_text("one (3)")
    expect(current).to_contain_text("Nothing said in it yet")
    expect(current).to_contain_text(re.compile(r"now|this minute"))
    expect(rows.nth(1)).to_contain_text("“the other way”")
    forks = tree(page).locator("a.fork")
    expect(forks).to_have_text(["from message “one”", "from message “the other way”"])

    say(page, "further on")
    expect(current).to_contain_text("“further on”")  # and it goes on being true
    rows.nth(1).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("one (2)")
    expect(current).to_contain_text("one (2)")
    expect(current).to_be_focused()  # the keyboard goes on from there
    page.keyboard.press("Shift+Tab")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("one")
    expect(current).to_be_focused()
    expect(tree(page).get_by_role("listitem")).to_have_count(3)


def test_it_says_where_a_branch_left(page: Page) -> None:
    """The link leads to that message, also where it is far from the end."""
    page.goto("/#/c/long")
    expect(answer(page, "Answer 624")).to_be_visible()
    page.evaluate(
        "() => fetch('/api/sessions/long/branch', {method: 'POST', "
        "headers: {'X-Deskhand': '1', 'Content-Type': 'application/json'}, "
        "body: JSON.stringify({at_n: 801})}).then((made) => made.json())"
        ".then((made) => { location.hash = `#/c/${encodeURIComponent(made.name)}`; })"
    )
    note = page.locator(".log > .divider")
    expect(note).to_contain_text("A branch of")
    expect(note).to_contain_text("from message “")
    words = note.inner_text().split("“")[1].rstrip("”…")
    note.get_by_role("link").click()
    page.wait_for_url("**/#/c/long")
    expect(page.locator(".bubble", has_text=words).first).to_be_in_viewport()

    page.go_back()
    page.get_by_role("button", name="Branches").click()
    tree(page).locator("[aria-current] + a.fork").click()
    page.wait_for_url("**/#/c/long")
    expect(page.locator(".bubble", has_text=words).first).to_be_in_viewport()


def test_without_branches_it_says_what_they_are_for(page: Page) -> None:
    expect(page.get_by_role("button", name="Branches")).to_have_count(0)
    say(page, "alone")
    expect(answer(page, "You said: alone")).to_be_visible()
    page.get_by_role("button", name="Branches").click()
    panel = page.get_by_role("complementary", name="Branches")
    expect(panel).to_contain_text("No branches yet")
    expect(panel).to_contain_text("choose “Branch from here” below an answer")
    branch_from(page, 0)
    expect(tree(page).locator("a.branch")).to_have_count(2)


def test_an_origin_that_is_gone_is_no_link(page: Page) -> None:
    say(page, "soon gone")
    expect(answer(page, "You said: soon gone")).to_be_visible()
    name = page.url.rpartition("/")[2]
    branch_from(page, 0)
    page.evaluate(
        "(name) => fetch(`/api/sessions/${name}`, "
        "{method: 'DELETE', headers: {'X-Deskhand': '1'}})",
        name,
    )
    page.reload()
    note = page.locator(".log > .divider")
    expect(note).to_have_text("A branch of another conversation, which is not here for you")
    expect(note.get_by_role("link")).to_have_count(0)


def test_on_a_phone_the_tree_makes_room_for_what_is_opened(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    say(page, "small")
    expect(answer(page, "You said: small")).to_be_visible()
    branch_from(page, 0)
    page.get_by_role("button", name="What to do with this conversation").click()
    page.get_by_role("menuitem", name="Show").click()
    page.get_by_role("menuitem", name="Branches").click()
    tree(page).locator("a.branch").first.click()
    expect(tree(page)).to_have_count(0)
    expect(answer(page, "You said: small")).to_be_in_viewport()
    expect(page.get_by_role("heading", level=1)).to_have_text("small")
