"""Files that people send, as parts of a message. One that cannot be fetched is said in words, so
that no message waits for it for ever."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import msgspec

from ..types.errors import ChannelError, SendRefused
from ..types.labels import PASSED_ON_SOURCE, UNTRUSTED, Label
from ..types.messages import Audio, File, Image, Part, Text

MAX_DOWNLOAD_BYTES = 50 * 2**20
PAUSES_S = (1.0, 3.0)
"""Between the tries."""
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")

Download = Callable[[str], Awaitable[bytes]]
"""Downloads what is at an address of the platform's. Raises SendRefused where it is not there, and
ChannelError where it may be later."""
PutBlob = Callable[[bytes], Awaitable[str]]


class IncomingFile(msgspec.Struct, frozen=True):
    """A file as the platform tells of it. `size` is what it says; `is_voice`: somebody spoke it,
    and with `is_passed_on` that was not, or need not have been, who sends it."""

    name: str
    mime: str
    url: str
    size: int = 0
    is_voice: bool = False
    is_passed_on: bool = False


async def read_incoming_file(
    file: IncomingFile, fetch: Download, keep: PutBlob, platform: str
) -> Part:
    """The part that it becomes, kept under its digest."""
    passed_on = Label("untrusted", source=PASSED_ON_SOURCE.format(platform=platform))
    name = file.name or "file"
    if file.size > MAX_DOWNLOAD_BYTES:
        return Text(f"[{name} was not fetched: it is larger than 50 MB]\n", passed_on)
    try:
        data = await _fetch(file.url, fetch)
    except ChannelError as error:
        return Text(f"[{name} could not be fetched: {error}]\n", passed_on)
    blob = await keep(data)
    if file.is_voice:
        label = passed_on if file.is_passed_on else UNTRUSTED
        return Audio(blob, name_audio_type(file.mime), label=label)
    if file.mime in _PICTURES:
        return Image(blob, file.mime, name)
    return File(blob, name, file.mime, len(data))


def name_audio_type(mime: str) -> str:
    """The media type of a voice message. Some platforms take MP4 and WebM for videos whatever is in
    them; one of which nothing is known is OGG, which most record."""
    kind, _, form = mime.partition(";")[0].strip().lower().partition("/")
    return f"audio/{form}" if form and kind in ("audio", "video") else "audio/ogg"


async def _fetch(url: str, fetch: Download) -> bytes:
    """With a few tries. Raises ChannelError."""
    for pause_s in PAUSES_S:
        try:
            return await fetch(url)
        except SendRefused:
            raise
        except ChannelError:
            await anyio.sleep(pause_s)
    return await fetch(url)
