"""Takes the pictures of docs/screenshots: the nine states of tests/page/states.py in light, dark
and on a phone."""

from __future__ import annotations

import shutil
import sys
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402
from playwright.sync_api import sync_playwright  # noqa: E402

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
                taken = Image.open(BytesIO(page.screenshot()))
                taken.quantize(256, dither=Image.Dither.NONE).save(
                    folder / f"{name}-{look}.png", optimize=True
                )
                desk.release()
                context.close()
        browser.close()
        desk.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots")
