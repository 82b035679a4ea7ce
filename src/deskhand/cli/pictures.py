"""Pictures within the chat, in terminals that show them: the graphics protocol of kitty, and the
inline images of iTerm2. All others see the names of the files."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable

from ..models.pictures import (
    detect_media_type,
    make_thumbnail_in_process,
    read_picture_size,
)
from ..types.errors import DeskhandError
from ..types.events import MessageReceived, Recorded, ToolFinished
from ..types.messages import Image
from .terminal_traits import Pictures

MAX_ROWS = 15
MAX_COLUMNS = 60
CELL_WIDTH = 9
CELL_HEIGHT = 2 * CELL_WIDTH
"""A cell in pixels, as it is nearly everywhere."""
MAX_SHOWN = 4
"""So many pictures of one message are shown."""
MAX_BYTES = 300_000
MAX_SIDE = 640
FAR_MAX_BYTES = 40_000
FAR_MAX_SIDE = 240
"""Larger ones are made smaller first; still more so where the terminal is at the other end of an
ssh connection."""
_CHUNK = 4096

ReadBlob = Callable[[str], Awaitable[bytes]]


class PicturePrinter:
    """Makes the lines that show the pictures of an event, by `protocol`. `width` tells the columns
    of the screen now, `far` that each byte takes its time."""

    def __init__(
        self, protocol: Pictures, read: ReadBlob, width: Callable[[], int], *, far: bool
    ) -> None:
        self._protocol = protocol
        self._read = read
        self._width = width
        self._max_bytes = FAR_MAX_BYTES if far else MAX_BYTES
        self._max_side = FAR_MAX_SIDE if far else MAX_SIDE

    async def render(self, recorded: Recorded) -> list[str]:
        """A line for each picture, which takes as many rows as that needs; none where nothing can
        be shown."""
        if not self._protocol:
            return []
        found = [part for part in _list_parts(recorded) if isinstance(part, Image)]
        return [line for image in found[:MAX_SHOWN] if (line := await self._render_one(image))]

    async def _render_one(self, image: Image) -> str:
        try:
            data = await self._read(image.blob)
            takes = detect_media_type(data) == "image/png" or self._protocol == "iterm"
            if not takes or len(data) > self._max_bytes:
                data = await make_thumbnail_in_process(data, self._max_side)
        except (DeskhandError, OSError):
            return ""
        size = read_picture_size(data)
        if size is None or 0 in size or len(data) > MAX_BYTES:
            return ""
        rows = count_rows(size, self._width())
        draw = draw_kitty if self._protocol == "kitty" else draw_iterm
        return place(draw(data, rows), rows)


def _list_parts(recorded: Recorded) -> tuple[object, ...]:
    match recorded.event:
        case MessageReceived(message=message):
            return message.parts
        case ToolFinished(result=result):
            return result.parts
        case _:
            return ()


def count_rows(size: tuple[int, int], columns: int) -> int:
    """How many rows a picture of this size takes at most, in its own proportions."""
    width, height = size
    columns = max(1, min(MAX_COLUMNS, columns - 2, -(-width // CELL_WIDTH)))
    return max(1, min(MAX_ROWS, round(columns * CELL_WIDTH * height / width / CELL_HEIGHT)))


def place(drawing: str, rows: int) -> str:
    """The drawing in as many rows. They are made first, so that nothing scrolls while it is drawn,
    and the cursor ends in the last of them, wherever the terminal leaves it."""
    down = "\n" * (rows - 1)
    up = f"\x1b[{rows - 1}A" if rows > 1 else ""
    back = f"\x1b[{rows - 1}B" if rows > 1 else ""
    return f"{down}{up}\x1b7{drawing}\x1b8{back}"


def draw_kitty(png: bytes, rows: int) -> str:
    """https://sw.kovidgoyal.net/kitty/graphics-protocol/: q=2 keeps the terminal from answering,
    C=1 leaves the cursor where it is."""
    data = b64encode(png).decode()
    chunks = [data[at : at + _CHUNK] for at in range(0, len(data), _CHUNK)]
    said = []
    for number, chunk in enumerate(chunks, 1):
        keys = f"a=T,f=100,q=2,C=1,r={rows}," if number == 1 else ""
        said.append(f"\x1b_G{keys}m={int(number < len(chunks))};{chunk}\x1b\\")
    return "".join(said)


def draw_iterm(data: bytes, rows: int) -> str:
    """https://iterm2.com/documentation-images.html"""
    keys = f"inline=1;size={len(data)};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={keys}:{b64encode(data).decode()}\x07"
