"""A newcomer who does an errand: they know nothing, and may only click and write what they see."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from playwright.sync_api import Download, Locator, Page, expect

MAX_CLICKS = 5
ROLES: tuple[
    Literal["link", "menuitem", "menuitemradio", "switch", "radio", "option", "tab"], ...
] = ("link", "menuitem", "menuitemradio", "switch", "radio", "option", "tab")
"""What can be clicked on, besides buttons."""


class Newcomer:
    """Counts clicks, and takes a picture after each where there is a folder for `pictures`."""

    def __init__(self, page: Page, errand: str, pictures: Path | None = None) -> None:
        self.page = page
        self.clicks = 0
        self._errand = errand
        self._pictures = pictures

    def click(self, words: str, within: str = "") -> None:
        """Click on what says these words, or has them as its name: the only one, or the first in
        the part of the page with the name `within`. It has to be in sight."""
        target = self.find(words, within)
        expect(target).to_be_visible()
        target.scroll_into_view_if_needed()
        self._take_picture()
        target.click()
        self.clicks += 1
        assert self.clicks <= MAX_CLICKS, f"more than {MAX_CLICKS} clicks for: {self._errand}"

    def hover(self, words: str) -> None:
        """Point at what says these words: some buttons are shown only then."""
        self.find(words).hover()

    def find(self, words: str, within: str = "") -> Locator:
        place: Page | Locator = self.page
        if within:
            place = self.page.locator(f'[aria-label="{within}"]:not(button, a, input)').first
        found = place.get_by_role("button", name=words)
        for role in ROLES:
            found = found.or_(place.get_by_role(role, name=words))
        return found.first

    def write(self, text: str, into: str = "Message to Deskhand", *, enter: bool = True) -> None:
        """Write into the field with this label."""
        self.page.get_by_label(into).first.fill(text)
        if enter:
            self.page.keyboard.press("Enter")

    def ask(self, text: str) -> None:
        """Ask, and wait for the answer."""
        turns = self.page.locator(".did").count()
        self.write(text)
        expect(self.page.locator(".did")).to_have_count(turns + 1)

    def sees(self, text: str | re.Pattern[str]) -> None:
        """This is on the screen now, or soon."""
        expect(self.page.get_by_text(text).first).to_be_visible()
        self._take_picture()

    def save(self, words: str, within: str = "") -> Download:
        """Click on what saves a file."""
        with self.page.expect_download() as saved:
            self.click(words, within)
        return saved.value

    def _take_picture(self) -> None:
        if self._pictures is not None:
            name = re.sub(r"\W+", "-", self._errand.lower()).strip("-")[:50]
            self.page.screenshot(path=self._pictures / f"{name}-{self.clicks}.png")
