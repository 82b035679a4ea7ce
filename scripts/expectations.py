"""Takes the pictures of docs/expectations.md: one for each row, in a window of 1440 by 900.

expectations.py [FOLDER] [--only ROW …]
expectations.py --all FOLDER [--only ROW …]     in three sizes, light and dark, uncut
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path

from expected import beginning, conversation, places  # noqa: F401 -- they fill ROWS
from expected.houses import House, open_crowded, open_desk, open_new
from expected.rows import PHONES, ROWS, Part
from expected.scenes import draw_hills
from pictures import ROOT, launch, open_window, save
from PIL import Image
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright
from record_terminal import LINE, TOP, Frame, draw

from tests.page.desk import make_tone
from tests.page.states import settle

SIZES = ((1440, 900), (1024, 768), (390, 844))
SCHEMES = ("light", "dark")
MARGIN = 16
WAIT_MS = 15_000
HOUSES = {"new": open_new, "desk": open_desk, "crowded": open_crowded}


class Studio:
    """The browser, and one Deskhand of each kind, opened when it is needed."""

    def __init__(self, browser: Browser, folder: Path, open_houses: ExitStack) -> None:
        self._browser = browser
        self._folder = folder
        self._open = open_houses
        self._houses: dict[str, House] = {}

    def house(self, place: str) -> House:
        if place not in self._houses:
            home = self._folder / place
            home.mkdir()
            draw_hills(1).save(home / "hills.png")
            self._houses[place] = self._open.enter_context(HOUSES[place](self._browser, home))
        return self._houses[place]

    @contextmanager
    def reach(self, row: str, size: tuple[int, int]) -> Iterator[tuple[Page, Part, House]]:
        """The row in a tab of its own; what the picture is cut to."""
        place, way = ROWS[row]
        house = self.house(place)
        with open_window(
            self._browser, house.url, house.signed, size, service_workers="block"
        ) as context:
            context.set_default_timeout(WAIT_MS)
            page = context.new_page()
            page.goto("/")
            page.get_by_label("Message to Deskhand").wait_for()
            try:
                yield page, way(page, house), house
            finally:
                if house.desk is not None:
                    house.desk.release()


def take(page: Page, part: Part) -> bytes:
    """A picture of the window, or of a part with some space around it."""
    settle(page)
    page.wait_for_timeout(250)
    box = part.first.bounding_box() if part is not None else None
    if box is None:
        return page.screenshot()
    size = page.viewport_size
    assert size is not None
    left, top = max(0, box["x"] - MARGIN), max(0, box["y"] - MARGIN)
    right = min(size["width"], box["x"] + box["width"] + MARGIN)
    bottom = min(size["height"], box["y"] + box["height"] + MARGIN)
    return page.screenshot(
        clip={"x": left, "y": top, "width": right - left, "height": bottom - top}
    )


def add_terminal(picture: bytes, house: House, browser: Browser) -> bytes:
    """The picture of the page below one of the terminal in which it was started."""
    assert house.terminal is not None
    page = browser.new_page(viewport={"width": 720, "height": 480})
    lines = house.terminal.look()
    page.set_content(f"<body style='margin:8px'>{draw([Frame(lines, 1.0)])}")
    terminal = Image.open(BytesIO(page.locator("svg").screenshot()))
    page.close()
    used = max(y for y, line in enumerate(lines) if line) + 1
    terminal = terminal.crop((0, 0, terminal.width, TOP + LINE * used + MARGIN))
    below = Image.open(BytesIO(picture))
    made = Image.new("RGB", (below.width, terminal.height + below.height + 24), "white")
    made.paste(terminal, ((below.width - terminal.width) // 2, 12))
    made.paste(below, (0, terminal.height + 24))
    kept = BytesIO()
    made.save(kept, "png")
    return kept.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "expectations")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    given = parser.parse_args()
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=WAIT_MS)
    failed = []
    for size in SIZES if given.all else SIZES[:1]:
        with tempfile.TemporaryDirectory() as kept, sync_playwright() as playwright:
            tone = Path(kept) / "tone.wav"
            tone.write_bytes(make_tone(440, 8.0))
            browser = launch(
                playwright,
                "--use-fake-device-for-media-stream",
                "--use-fake-ui-for-media-stream",
                f"--use-file-for-fake-audio-capture={tone}",
            )
            with ExitStack() as houses:
                studio = Studio(browser, Path(kept), houses)
                for row in given.only or ROWS:
                    began = time.monotonic()
                    try:
                        photograph(studio, browser, row, size, folder, given.all)
                    except (Error, AssertionError) as error:
                        failed.append(row)
                        sys.stdout.write(f"{row} {size[0]}: {error}\n")
                    sys.stdout.write(f"{row} {size[0]} {time.monotonic() - began:.1f} s\n")
                    sys.stdout.flush()
            browser.close()
    return len(failed)


def photograph(
    studio: Studio, browser: Browser, row: str, size: tuple[int, int], folder: Path, every: bool
) -> None:
    if not every:
        with studio.reach(row, SIZES[-1] if row in PHONES else size) as (page, part, house):
            picture = take(page, part)
        save(
            add_terminal(picture, house, browser) if row == "start" else picture,
            folder / f"{row}.png",
        )
        return
    with studio.reach(row, size) as (page, _, _):
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            (folder / f"{row}-{size[0]}-{scheme}.png").write_bytes(take(page, None))


if __name__ == "__main__":
    sys.exit(main())
