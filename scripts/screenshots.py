"""Takes the pictures of docs/screenshots: the nine states of tests/page/states.py in light, dark
and on a phone, and how each kind of channel is connected."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pictures import ROOT, launch, open_window, save
from playwright.sync_api import Browser, StorageState, sync_playwright

from tests.page.conftest import desk_at, state_of
from tests.page.states import LOOKS, STATES, open_step, settle


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        (Path(home) / "long").touch()
        desk = desk_at(Path(home))
        browser = launch(playwright)
        signed = state_of(browser, desk)
        for look, (scheme, width, height) in LOOKS.items():
            for name, reach in STATES.items():
                context = open_window(browser, desk.url, signed, (width, height), scheme)
                page = context.new_page()
                page.goto("/")
                page.get_by_label("Message to Deskhand").wait_for()
                desk.hold()
                reach(page, desk)
                settle(page)
                save(page.screenshot(), folder / f"{name}-{look}.png")
                desk.release()
                context.close()
        take_channels(browser, signed, desk.url, folder)
        browser.close()
        desk.kill()


def take_channels(browser: Browser, signed: StorageState, url: str, folder: Path) -> None:
    """The form of each kind, as it stands on the page."""
    context = open_window(browser, url, signed, (1280, 1200))
    page = context.new_page()
    page.goto("/#/settings/setup")
    open_step(page, "channel")
    kinds = page.get_by_role("radiogroup", name="Kind of channel").get_by_role("radio")
    kinds.first.wait_for()
    for kind in kinds.all():
        kind.click()
        step = page.get_by_role("listitem").filter(has=kind)
        settle(page)
        save(step.screenshot(), folder / f"channel-{kind.inner_text().lower()}.png")
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots")
