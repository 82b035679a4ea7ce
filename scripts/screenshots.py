"""Takes the pictures of docs/screenshots: the nine states of tests/page/states.py in light, dark
and on a phone, and how each kind of channel is connected."""

from __future__ import annotations

import shutil
import sys
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402
from playwright.sync_api import Browser, StorageState, sync_playwright  # noqa: E402

from tests.page.conftest import ARGUMENTS, desk_at, state_of  # noqa: E402
from tests.page.states import LOOKS, STATES, settle  # noqa: E402


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        (Path(home) / "long").touch()
        desk = desk_at(Path(home))
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium") or "/usr/bin/chromium", args=[*ARGUMENTS]
        )
        signed = state_of(browser, desk)
        for look, (scheme, width, height) in LOOKS.items():
            for name, reach in STATES.items():
                context = browser.new_context(
                    storage_state=signed,
                    base_url=desk.url,
                    viewport={"width": width, "height": height},
                    color_scheme="dark" if scheme == "dark" else "light",
                    reduced_motion="reduce",
                )
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
    context = browser.new_context(
        storage_state=signed,
        base_url=url,
        viewport={"width": 1280, "height": 1200},
        color_scheme="light",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto("/#/settings/setup")
    kinds = page.get_by_role("radiogroup", name="Kind of channel").get_by_role("radio")
    kinds.first.wait_for()
    for kind in kinds.all():
        kind.click()
        section = page.locator("section", has=kind)
        settle(page)
        save(section.screenshot(), folder / f"channel-{kind.inner_text().lower()}.png")
    context.close()


def save(picture: bytes, file: Path) -> None:
    taken = Image.open(BytesIO(picture))
    taken.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots")
