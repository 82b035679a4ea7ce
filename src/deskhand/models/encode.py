"""What both wires do when they write a request: clean JSON, names and ids as every provider accepts
them."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

from ..types.errors import BlobMissing, PictureRefused
from ..types.messages import Audio, File, Image, Text, ToolCall, clean_text
from .pictures import detect_media_type

to_json = msgspec.json.Encoder().encode
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID_NINE = re.compile(r"[a-zA-Z0-9]{9}")
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

ReadBlob = Callable[[str], Awaitable[bytes]]


def encode_string(text: str) -> bytes:
    """`text`, cleaned, as a JSON string."""
    return to_json(clean_text(text))


def safe_tool_name(name: str) -> str:
    """`name` as providers accept it: a model may have called a tool that nobody has, and history
    repeats it."""
    return _NAME.sub("_", name)[:64] or "unnamed"


def safe_call_id(given: str, nine: bool = False) -> str:
    """`given`, or a stable substitute where another provider's id would be refused."""
    if (_ID_NINE if nine else _ID).fullmatch(given):
        return given
    digest = hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()
    return digest[:9] if nine else f"call_{digest[:24]}"


def encode_arguments(call: ToolCall) -> bytes:
    """The call's arguments as a JSON object: the model's own bytes, wrapped where they are
    something else."""
    raw = bytes(call.arguments)
    if raw.startswith(b"{"):
        return raw
    return b'{"malformed":' + (raw or b"null") + b"}"


class Pixels(NamedTuple):
    """A picture as it is sent: its kind is what its bytes say, whatever it was called."""

    mime: str
    data: bytes

    @property
    def base64(self) -> bytes:
        return b64encode(self.data)

    @property
    def data_url(self) -> bytes:
        return b"data:" + self.mime.encode() + b";base64," + self.base64


async def load_pixels(image: Image, blob: ReadBlob | None) -> Pixels | Text:
    """The picture; words for the model where it cannot be had, or no provider reads this kind."""
    if blob is None or image.mime not in _IMAGE_TYPES:
        return Text(render_placeholder(image))
    try:
        data = await blob(image.blob)
    except BlobMissing:
        return Text(render_placeholder(image))
    except PictureRefused as error:
        return Text(f"{render_placeholder(image)[:-1]} is not shown: {error}]")
    return Pixels(detect_media_type(data) or image.mime, data)


def render_as_text(part: Text | Image | Audio | File) -> str:
    """The words of a part; what stands for it where it has none."""
    return part.text if isinstance(part, Text) else render_placeholder(part)


def render_placeholder(part: Image | Audio | File) -> str:
    """What stands for a part that this model cannot take as it is."""
    match part:
        case Image():
            return f"[image {part.name}]" if part.name else "[image]"
        case Audio():
            if part.transcript is not None:
                return part.transcript
            return "[voice message, not transcribed]"
        case File():
            return part.shown or f"[file {part.name}, {part.mime}, {part.size_bytes} bytes]"
