"""What the scripts that take pictures of the page share: the browser, a window, and how a picture
is kept."""

from __future__ import annotations

import shutil
import sys
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402
from playwright.sync_api import (  # noqa: E402
    Browser,
    BrowserContext,
    Playwright,
    StorageState,
)

from tests.page.conftest import ARGUMENTS  # noqa: E402


def launch(playwright: Playwright, *more: str) -> Browser:
    """The Chromium of this machine."""
    return playwright.chromium.launch(
        executable_path=shutil.which("chromium") or "/usr/bin/chromium", args=[*ARGUMENTS, *more]
    )


def open_window(
    browser: Browser,
    url: str,
    signed: StorageState | None,
    size: tuple[int, int],
    scheme: str = "light",
    **more: object,
) -> BrowserContext:
    """A window of this size on the Deskhand at `url`, signed in, in which nothing moves."""
    return browser.new_context(
        storage_state=signed,
        base_url=url,
        viewport={"width": size[0], "height": size[1]},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
        **more,
    )


def save(picture: bytes, file: Path) -> None:
    """With 256 colours, which are enough for a page and make a third of the bytes."""
    taken = Image.open(BytesIO(picture))
    taken.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
