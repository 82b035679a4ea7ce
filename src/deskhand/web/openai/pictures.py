"""Pictures that a client sends with a message: in it as data, or as an address to fetch them
from."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

import anyio
from msgspec.structs import replace

from ...net.client import Fetched, Net
from ...net.url import parse_url
from ...store.blobs import Blobs
from ...types.errors import NetError, TooLarge
from ...types.labels import Label
from ...types.messages import Image
from ..errors import HttpProblem, bad_request, to_sentence
from ..media import PHOTO_TYPES, picture_type

PICTURE_BYTES = 20_000_000
"""So many bytes have all pictures of one request."""
PICTURES_S = 30.0
"""So long may it take to fetch all of them."""
MOST_PICTURES = 50
"""So many are taken in one request, those of its history included."""
DATA_SCHEME = "data:"


class Pictures:
    """Takes in the pictures of one request, until they have too many bytes or took too long. An
    address that stands there several times is fetched once."""

    def __init__(self, blobs: Blobs, net: Net) -> None:
        self._blobs = blobs
        self._net = net
        self._known: dict[str, Image] = {}
        self._left = PICTURE_BYTES
        self._left_s = PICTURES_S

    async def load(self, part: dict[str, Any], param: str) -> Image:
        """The picture of an `image_url` part. Raises HttpProblem that names `param`."""
        given = part.get("image_url")
        url = given.get("url") if isinstance(given, dict) else given
        if not isinstance(url, str) or not url:
            raise bad_request("`image_url` has a `url`.", param=param)
        if url not in self._known:
            if len(self._known) == MOST_PICTURES:
                raise bad_request(
                    f"At most {MOST_PICTURES} pictures are taken in one request.", param=param
                )
            self._known[url] = await self._read(url, param)
        return self._known[url]

    async def _read(self, url: str, param: str) -> Image:
        if url[: len(DATA_SCHEME)].lower() == DATA_SCHEME:
            data = _decode_data_url(url, self._left, param)
            source = "a picture from the client"
        else:
            began = anyio.current_time()
            found = await self._fetch(url, param)
            self._left_s -= anyio.current_time() - began
            data = found.body
            source = str(found.url)
        self._left -= len(data)
        mime = picture_type(data)
        if mime not in PHOTO_TYPES:
            raise bad_request("The picture is no PNG, JPEG, GIF or WebP.", param=param)
        digest = await self._blobs.put(data)
        return Image(digest, mime, "", Label("untrusted", source=source[:500]))

    async def _fetch(self, url: str, param: str) -> Fetched:
        if not url.lower().startswith("https://"):
            raise _scheme_problem(param)
        limits = replace(self._net.limits, body_bytes=max(0, self._left))
        try:
            with anyio.fail_after(max(0.0, self._left_s)):
                found = await self._net.get(parse_url(url), {"accept": "image/*"}, limits)
        except TooLarge as error:
            raise _size_problem(param) from error
        except NetError as error:
            raise bad_request(
                f"The picture could not be fetched: {to_sentence(str(error))}", param=param
            ) from error
        except TimeoutError as error:
            said = (
                f"The pictures of this request could not be fetched within {PICTURES_S:g} seconds."
            )
            raise bad_request(said, param=param) from error
        if found.url.scheme != "https":
            raise _scheme_problem(param)
        if found.status != 200:
            raise bad_request(
                f"The picture could not be fetched: its server answered {found.status}.",
                param=param,
            )
        return found


def _scheme_problem(param: str) -> HttpProblem:
    return bad_request("A picture is taken from an https address, or as a data: URL.", param=param)


def _size_problem(param: str) -> HttpProblem:
    said = f"The pictures of one request have at most {PICTURE_BYTES:,} bytes."
    return HttpProblem(413, "too_large", said, param=param)


def _decode_data_url(url: str, most: int, param: str) -> bytes:
    head, comma, encoded = url.partition(",")
    if not comma or not head.lower().endswith(";base64"):
        raise bad_request("A data: URL is base64, as in data:image/png;base64,….", param=param)
    if len(encoded) > most * 4 // 3 + 4:
        raise _size_problem(param)
    try:
        return b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_request("The data: URL is no base64.", param=param) from error
