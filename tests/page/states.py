"""The nine states of the page that are looked at: by the checker of accessibility, and by people on
pictures."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from .conftest import Desk, answer, say

State = Callable[[Page, Desk], None]


def first_visit(page: Page, desk: Desk) -> None:
    """Nobody is signed in."""
    page.context.clear_cookies()
    page.goto("/")
    page.get_by_role("heading", name="Sign in to Deskhand").wait_for()


def empty(page: Page, desk: Desk) -> None:
    page.get_by_role("heading", name="What should we do").wait_for()
    page.get_by_role("button", name="Look around").wait_for()
    expect(page.locator(".side").get_by_text("One moment")).to_have_count(0)


def streaming(page: Page, desk: Desk) -> None:
    say(page, "How does Deskhand remember what we did?")
    answer(page, "The page is a fold").wait_for()


def formatted(page: Page, desk: Desk) -> None:
    say(page, "What is the area under the bell curve?")
    page.locator("math").nth(2).wait_for()
    page.locator(".hljs-keyword").first.wait_for()


def tool_running(page: Page, desk: Desk) -> None:
    say(page, "Please count the letters in the archive")
    page.get_by_text("counted to 9").first.wait_for()


def approval(page: Page, desk: Desk) -> None:
    say(page, "Invite Ada to the river, please")
    page.get_by_role("region", name="Permission needed").wait_for()


def error(page: Page, desk: Desk) -> None:
    say(page, "What is the weather like?")
    page.get_by_role("button", name="Try again").wait_for()


def long_session(page: Page, desk: Desk) -> None:
    page.goto("/#/c/long")
    answer(page, "Answer 624").wait_for()


def open_step(page: Page, step: str) -> None:
    """Open a step of the setup, which may be the next one to do, and open by itself."""
    head = page.locator(f"#step-{step}")
    head.wait_for()
    if head.get_attribute("aria-expanded") == "false":
        head.click()


def settings(page: Page, desk: Desk) -> None:
    page.goto("/#/settings/setup")
    open_step(page, "permissions")
    page.get_by_role("radio", name="workspace-free").wait_for()


def inbox(page: Page, desk: Desk) -> None:
    error(page, desk)
    page.goto("/#/")
    page.get_by_role("heading", name="What should we do").wait_for()
    approval(page, desk)
    page.goto("/#/inbox")
    page.get_by_role("heading", name="Waits for you").wait_for()
    page.get_by_text("failed").first.wait_for()


def plan(page: Page, desk: Desk) -> None:
    page.get_by_role("button", name="Permissions").click()
    page.get_by_role("menuitemradio", name="Plan first").click()
    say(page, "Plan how we tidy the notes")
    page.get_by_role("heading", name="Approve this plan?").wait_for()


def row_menu(page: Page, desk: Desk) -> None:
    say(page, "What is in my notes?")
    answer(page, "You said").wait_for()
    page.get_by_role("button", name="What to do with this conversation").click()
    page.get_by_role("menuitem", name="Rename").wait_for()


def completion(page: Page, desk: Desk) -> None:
    page.get_by_label("Message to Deskhand").press_sequentially("/st")
    page.get_by_role("listbox", name="Commands").wait_for()


def waiting(page: Page, desk: Desk) -> None:
    streaming(page, desk)
    page.get_by_role("radio", name="Queue").click()
    say(page, "and then make it a PDF, with the chart on a page of its own")
    page.get_by_role("region", name="Messages that wait").wait_for()


def share(page: Page, desk: Desk) -> None:
    row_menu(page, desk)
    page.get_by_role("menuitem", name="Share").click()
    page.get_by_role("button", name="Create the link").click()
    page.get_by_role("list", name="Links that work").wait_for()


def branches(page: Page, desk: Desk) -> None:
    """A branch of a branch, beside the tree of them."""
    say(page, "Where is it warm in May?")
    for words in ("Somewhere near the sea", "And not too far by train"):
        before = page.url
        page.get_by_role("button", name="Branch from here").last.click()
        page.wait_for_url(lambda url, before=before: url != before)  # type: ignore[misc]
        page.get_by_text("Branched here").last.wait_for()
        say(page, words)
        answer(page, words).wait_for()
    page.get_by_role("button", name="Branches").click()
    page.get_by_role("navigation", name="Branches").get_by_text("And not too far").wait_for()


STATES: dict[str, State] = {
    state.__name__.replace("_", "-"): state
    for state in (
        first_visit,
        empty,
        streaming,
        formatted,
        tool_running,
        approval,
        error,
        long_session,
        settings,
    )
}
MORE_STATES: dict[str, State] = {
    state.__name__.replace("_", "-"): state
    for state in (inbox, plan, row_menu, completion, waiting, share, branches)
}
"""Looked at by the checker alone."""
LOOKS = {"light": ("light", 1280, 800), "dark": ("dark", 1280, 800), "phone": ("light", 390, 844)}


def settle(page: Page) -> None:
    """Until nothing changes any more but what is meant to."""
    expect(page.locator(".none .spin")).to_have_count(0)
    page.evaluate("() => Promise.all([...document.images].map((image) => image.decode()))")
