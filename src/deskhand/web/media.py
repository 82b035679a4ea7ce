"""What bytes are, by what they begin with and never by what somebody says, and how they are sent to
a browser."""

from __future__ import annotations

import mimetypes
import re
from urllib.parse import quote

from starlette.responses import Response

SANDBOXED = {
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
}
"""No browser runs what is sent with these headers, whatever it is."""
SVG_TYPE = "image/svg+xml"
PHOTO_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What models take as a picture."""
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_SVG = re.compile(
    (
        rb"\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--.{0,2000}?-->\s*)*(?:<!DOCTYPE "
        rb"svg[^>\[]{0,300}>\s*)?<svg[\s>]"
    ),
    re.S,
)
_HEAD_BYTES = 4096


def picture_type(data: bytes) -> str:
    """The media type of a picture that browsers show; '' for all else."""
    for start, kind in _SIGNATURES:
        if data.startswith(start):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if data[4:8] == b"ftyp" and data[8:12] in (b"avif", b"avis"):
        return "image/avif"
    return SVG_TYPE if _SVG.match(data[:_HEAD_BYTES].removeprefix(b"\xef\xbb\xbf")) else ""


def file_response(data: bytes, name: str) -> Response:
    """Bytes that somebody else chose. A picture is of its own type, so that an `<img>` shows it; it
    is shown by itself too, but for a drawing, which could be a page with scripts. All else is to be
    kept."""
    picture = picture_type(data)
    kind = picture or mimetypes.guess_type(name)[0] or "application/octet-stream"
    if not picture and (kind.startswith("image/") or not re.fullmatch(r"[\w.+-]+/[\w.+-]+", kind)):
        kind = "application/octet-stream"
    shown = "inline" if picture and picture != SVG_TYPE else "attachment"
    disposition = f"{shown}; filename*=utf-8''{quote(name or 'file', safe='')}"
    response = Response(
        data, media_type=None, headers={**SANDBOXED, "content-disposition": disposition}
    )
    response.headers["content-type"] = kind  # as it is: no charset is claimed
    return response
