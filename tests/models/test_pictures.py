"""Pictures that are too large are made smaller, by a real process, and what cannot be is said."""

from __future__ import annotations

import os
import random
import struct
import sys
import zlib
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from PIL import Image as Pillow

from deskhand.models.base import Request
from deskhand.models.pictures import (
    LIMIT_BYTES,
    LIMIT_SIDE,
    PictureStore,
    detect_media_type,
    read_picture_size,
)
from deskhand.models.pictures import shrink_in_process as in_a_process
from deskhand.models.shrink_picture import MAX_HALVINGS, ImageTooLarge, shrink_picture
from deskhand.models.transport import Transport
from deskhand.store.blobs import MIN_AGE_S, Blobs
from deskhand.types.errors import PictureRefused
from deskhand.types.messages import Image

from .tools import WIRES, ask, open_wire, user


def noise(width: int, height: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    """A picture that hardly compresses."""
    pixels = random.Random(7).randbytes(width * height * len(mode))
    made = BytesIO()
    Pillow.frombytes(mode, (width, height), pixels).save(made, kind)
    return made.getvalue()


def bomb(width: int, height: int) -> bytes:
    """A PNG that says it is very large, and has no pixels at all."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def opened(data: bytes) -> Pillow.Image:
    return Pillow.open(BytesIO(data))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("PNG", {}),
        ("JPEG", {}),
        ("GIF", {}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
        ("WEBP", {"exif": b"Exif"}),
    ],
)
def test_the_header_tells_the_size(kind: str, options: dict[str, object]) -> None:
    made = BytesIO()
    Pillow.new("RGB", (321, 123)).save(made, kind, **options)
    assert read_picture_size(made.getvalue()) == (321, 123)
    assert detect_media_type(made.getvalue()) == f"image/{kind.lower()}"
    for cut in (0, 3, 11, 20, 29):
        read_picture_size(made.getvalue()[:cut])


def test_what_is_no_picture_has_no_size() -> None:
    for data in (
        b"",
        b"%PDF-1.7",
        b"\xff\xd8\xff" + b"\0" * 50,
        b"\xff\xd8" + b"\xff" * 50,
        b"RIFF....WEBPVP9 " + b"\0" * 20,
    ):
        assert read_picture_size(data) is None


def test_as_much_quality_as_fits_then_half_the_size() -> None:
    data = noise(1024, 1024)
    picture = opened(data)

    def size(quality: int, halved: int = 0) -> int:
        smaller = picture
        for _ in range(halved):
            smaller = smaller.resize((smaller.width // 2, smaller.height // 2))
        made = BytesIO()
        smaller.save(made, "JPEG", quality=quality)
        return made.tell()

    for quality in (80, 60, 40, 25):
        assert len(shrink_picture(data, size(quality))) == size(quality)
    assert opened(shrink_picture(data, size(25) - 1)).size == (512, 512)
    assert len(shrink_picture(data, size(25) - 1)) == size(80, halved=1)
    assert opened(shrink_picture(data, size(25, MAX_HALVINGS))).size == (32, 32)
    with pytest.raises(ImageTooLarge, match="a 32nd of its size"):
        shrink_picture(data, size(25, MAX_HALVINGS) - 1)


def test_what_can_be_seen_through_is_white() -> None:
    made = BytesIO()
    Pillow.new("RGBA", (8, 8), (0, 0, 0, 0)).save(made, "PNG")
    assert opened(shrink_picture(made.getvalue())).getpixel((4, 4)) == (255, 255, 255)


async def kept(tmp_path: Path, data: bytes) -> tuple[PictureStore, Blobs, str]:
    blobs = Blobs(tmp_path)
    return PictureStore(blobs.get, blobs.path), blobs, await blobs.put(data)


async def test_a_large_picture_becomes_a_small_one_once(tmp_path: Path) -> None:
    data = noise(1400, 1300)
    assert len(data) > LIMIT_BYTES
    pictures, blobs, digest = await kept(tmp_path, data)
    made = await pictures.get(digest)
    assert len(made) <= LIMIT_BYTES and detect_media_type(made) == "image/jpeg"
    assert opened(made).size == (1400, 1300)
    beside = blobs.path(digest).with_suffix(".jpg")
    assert beside.read_bytes() == made
    beside.write_bytes(b"as it was kept")
    assert await pictures.get(digest) == b"as it was kept"
    assert await blobs.get(digest) == data, "the picture itself stays whole"
    for path in (beside, blobs.path(digest)):
        os.utime(path, (0, 0))
    assert blobs.collect(lambda name: name == digest, MIN_AGE_S) == 1
    assert not beside.exists() and blobs.path(digest).exists()


async def test_a_wide_picture_is_made_narrow(tmp_path: Path) -> None:
    pictures, _, digest = await kept(tmp_path, noise(LIMIT_SIDE + 2, 8, "JPEG"))
    assert max(opened(await pictures.get(digest)).size) == LIMIT_SIDE


async def test_one_that_fits_is_not_touched(tmp_path: Path) -> None:
    for data in (noise(64, 64), b"no picture at all"):
        pictures, _, digest = await kept(tmp_path, data)
        assert await pictures.get(digest) == data
    assert list(tmp_path.glob("*/*.jpg")) == []


async def test_a_bomb_is_not_decoded(tmp_path: Path) -> None:
    pictures, _, digest = await kept(tmp_path, bomb(60_000, 60_000))
    with pytest.raises(PictureRefused, match="60000 x 60000 pixels, and at most 100 million"):
        await pictures.get(digest)
    with pytest.raises(PictureRefused, match="60000 x 60000 pixels"):
        await in_a_process(bomb(60_000, 60_000))


async def test_what_is_broken_is_said(tmp_path: Path) -> None:
    for data in (
        bomb(9000, 90),
        b"\xff\xd8\xff" + b"x" * LIMIT_BYTES,
        b"<svg/>" * LIMIT_BYTES,
        noise(1300, 1300, "BMP"),
    ):
        pictures, _, digest = await kept(tmp_path, data)
        with pytest.raises(PictureRefused, match="it is damaged, or not a PNG, JPEG, GIF or WebP"):
            await pictures.get(digest)


async def test_without_pillow_small_ones_go_and_large_ones_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    small = bomb(64, 64)
    large = bomb(64, 64) + b"\0" * LIMIT_BYTES
    pictures, blobs, digest = await kept(tmp_path, small)
    assert await pictures.get(digest) == small
    with pytest.raises(PictureRefused, match="60000 x 60000 pixels"):
        await pictures.get(await blobs.put(bomb(60_000, 60_000)))
    with pytest.raises(
        PictureRefused, match=r"it has 4\.8 MB, .* pip install 'deskhand\[images\]'"
    ):
        await pictures.get(await blobs.put(large))


async def sent(wire: str, request: Request) -> str:
    model = open_wire(wire, Transport(), "http://127.0.0.1:9/v1")
    return str(msgspec.json.decode(await model.encode_request(request)))


@pytest.mark.parametrize("wire", WIRES)
async def test_a_picture_that_is_not_shown_is_words_for_the_model(wire: str) -> None:
    async def refuse(digest: str) -> bytes:
        raise PictureRefused("it has 7.2 MB")

    asked = ask(user("Look", Image("sha256:a", "image/png", "a.png")), blob=refuse)
    assert "[image a.png is not shown: it has 7.2 MB]" in await sent(wire, asked)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_picture_is_what_its_bytes_say(wire: str) -> None:
    async def blob(digest: str) -> bytes:
        return b"\xff\xd8\xff small"

    body = await sent(wire, ask(user("Look", Image("sha256:a", "image/png", "a.png")), blob=blob))
    assert "image/jpeg" in body and "image/png" not in body
