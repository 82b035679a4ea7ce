"""The register of what people expect, and what its rows have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import say

from .houses import House

Part = Locator | None
"""What the picture is cut to; None: the whole window."""
Way = Callable[[Page, House], Part]
Place = Literal["new", "desk", "crowded"]
ROWS: dict[str, tuple[Place, Way]] = {}
PHONES: set[str] = set()
"""Rows that are about phones: their one picture is taken there."""


def row(place: Place, *, phone: bool = False) -> Callable[[Way], Way]:
    """This function reaches what a row of the table is about, in a new conversation."""

    def keep(way: Way) -> Way:
        name = way.__name__.replace("_", "-")
        ROWS[name] = (place, way)
        if phone:
            PHONES.add(name)
        return way

    return keep


def ask(page: Page, text: str) -> None:
    """Say this, and wait for the end of the turn."""
    turns = page.locator(".did").count()
    say(page, text)
    expect(page.locator(".did")).to_have_count(turns + 1)


def open_list(page: Page) -> None:
    """On a phone the list of conversations is a drawer."""
    button = page.get_by_role("button", name="Show the conversations")
    if button.is_visible():
        button.click()


def open_panel(page: Page, name: str) -> None:
    """A panel beside the conversation; on a phone its button is in a menu."""
    button = page.get_by_role("button", name=name)
    if button.first.is_visible():
        button.first.click()
        return
    page.get_by_role("button", name="What to do with this conversation").click()
    page.get_by_role("menuitem", name="Show").click()
    page.get_by_role("menuitem", name=name).click()


def open_menu(page: Page, conversation: str) -> None:
    """The menu of a conversation in the list."""
    open_list(page)
    link = page.get_by_role("link", name=re.compile(re.escape(conversation)))
    entry = page.locator(".entry-row", has=link).first
    entry.hover()
    entry.get_by_role("button", name="Conversation menu").click()
    page.get_by_role("menu").wait_for()
