"""Buttons of which one is chosen: the arrow keys, Home and End move, and Tab stops once."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from .conftest import Desk, answer, say
from .states import open_step


def stops(group: Locator) -> int:
    return group.locator('[tabindex="0"]').count()


def test_a_kind_of_channel_is_chosen_with_the_arrow_keys(page: Page) -> None:
    page.goto("/#/settings/setup")
    open_step(page, "channel")
    group = page.get_by_role("radiogroup", name="Kind of channel")
    chosen = group.get_by_role("radio", checked=True)
    expect(chosen).to_have_text("Telegram")
    page.locator("#step-channel").focus()
    page.keyboard.press("Tab")
    expect(chosen).to_be_focused()
    for key, name in (
        ("ArrowRight", "Discord"),
        ("ArrowDown", "Slack"),
        ("ArrowLeft", "Discord"),
        ("End", "Twitch"),
        ("ArrowDown", "Telegram"),
        ("ArrowUp", "Twitch"),
        ("Home", "Telegram"),
    ):
        page.keyboard.press(key)
        expect(chosen).to_have_text(name)
        expect(chosen).to_be_focused()
        assert stops(group) == 1
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).not_to_have_role("radio")
    expect(page.get_by_role("button", name="Connect Discord")).to_be_visible()
    page.keyboard.press("Shift+Tab")
    expect(chosen).to_be_focused()


def test_permissions_are_looked_at_before_one_is_chosen(page: Page) -> None:
    """It takes effect at once: the arrow keys alone open nothing."""
    page.goto("/#/settings/setup")
    open_step(page, "permissions")
    group = page.get_by_role("radiogroup", name="Permissions")
    group.get_by_role("radio").first.click()
    expect(group.get_by_role("radio").first).to_have_attribute("aria-checked", "true")
    chosen = group.get_by_role("radio", checked=True)
    before = chosen.inner_text()
    page.locator("#step-permissions").focus()
    page.keyboard.press("Tab")
    expect(chosen).to_be_focused()
    page.keyboard.press("Home")
    first = group.get_by_role("radio").first
    expect(first).to_be_focused()
    page.keyboard.press("ArrowUp")
    last = group.get_by_role("radio").last
    expect(last).to_be_focused()
    assert stops(group) == 1
    assert chosen.inner_text() == before
    page.keyboard.press("Space")
    expect(last).to_have_attribute("aria-checked", "true")
    expect(last).to_be_focused()
    group.get_by_role("radio").filter(has_text=before.split("\n")[0]).first.click()
    expect(last).to_have_attribute("aria-checked", "false")


def test_what_a_message_does_is_chosen_while_it_works(page: Page, desk: Desk) -> None:
    say(page, "hold it")
    answer(page, "The first half of it.").wait_for()
    chosen = page.locator(".modes").get_by_role("radio", checked=True)
    chosen.focus()
    page.keyboard.press("ArrowRight")
    expect(chosen).to_have_text("Queue")
    page.keyboard.press("End")
    expect(chosen).to_have_text("Interrupt")
    page.keyboard.press("ArrowRight")
    expect(chosen).to_have_text("Steer")
    expect(chosen).to_be_focused()


def test_tabs_are_moved_through_in_the_same_way(page: Page) -> None:
    page.goto("/#/settings/memory")
    tabs = page.get_by_role("tablist", name="Which memories")
    tabs.get_by_role("tab", name="All").focus()
    page.keyboard.press("ArrowRight")
    now = tabs.get_by_role("tab", selected=True)
    expect(now).to_have_text("About you")
    expect(now).to_be_focused()
    page.keyboard.press("End")
    expect(now).to_have_text("Forgotten")
    assert stops(tabs) == 1
