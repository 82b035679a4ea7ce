"""The page: files that come with Deskhand, served as they are. They hold no data, so nobody need
say who they are."""

from __future__ import annotations

import gzip
import mimetypes
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from .errors import HttpProblem, error_response

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".webmanifest": "application/manifest+json",
}


def _load_static() -> dict[str, tuple[bytes, bytes, str, str]]:
    """path -> (bytes, the same compressed, media type, etag), read once."""
    found = {}
    for file in sorted(STATIC.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            media = (
                TYPES.get(file.suffix)
                or mimetypes.guess_type(file.name)[0]
                or "application/octet-stream"
            )
            etag = f'W/"{sha256(data).hexdigest()[:32]}"'  # weak: the same file, compressed or not
            found[file.relative_to(STATIC).as_posix()] = (
                data,
                gzip.compress(data, mtime=0),
                media,
                etag,
            )
    return found


def make_routes() -> list[BaseRoute]:
    """`/` and what it loads."""
    files = _load_static()

    async def serve(request: Request) -> Response:
        path = request.path_params.get("path") or "index.html"
        if path not in files:
            problem = HttpProblem(404, "not_found", "There is nothing at this address.")
            return error_response(problem, request.state.request_id, request.url.path)
        data, small, media, etag = files[path]
        headers = {"etag": etag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", "") and len(small) < len(data):
            return Response(
                small, headers={**headers, "content-encoding": "gzip"}, media_type=media
            )
        return Response(data, headers=headers, media_type=media)

    return [Route("/", serve), Route("/{path:path}", serve)]
