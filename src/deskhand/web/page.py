"""The page: files that come with Deskhand, served as they are. They hold no data, so nobody need
say who they are."""

from __future__ import annotations

import gzip
import mimetypes
from hashlib import sha256
from pathlib import Path

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ..languages.catalogue import all_languages, list_languages
from .app import CSP
from .errors import HttpProblem, error_response
from .frame import FRAME_PATH, frame_source, make_frame

STATIC = Path(__file__).parent / "static"
INDEX = "index.html"
FRAME_SCRIPT = "js/frame/document.js"
_NO_LANGUAGES = b'<meta name="languages" content="">'
TYPES = {
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
PACKED = frozenset({".png", ".woff2"})
"""Files that are compressed by their format: compressing them again saves nothing."""


MAX_EAGER_BYTES = 1_000_000
"""Larger files, which few pages load, are compressed when they are asked for the first time."""


class _StaticFile(msgspec.Struct):
    """A file as it is sent. `compressed` is b"" until it is known."""

    data: bytes
    media: str
    etag: str
    compressed: bytes = b""

    def compress(self) -> bytes:
        if not self.compressed:
            self.compressed = gzip.compress(self.data, mtime=0)
        return self.compressed


def _page_policy(host: str) -> str:
    return f"{CSP}; font-src 'self'; frame-src {frame_source(host)}"


def _load_static() -> dict[str, _StaticFile]:
    """The files by their path, read once."""
    found = dict[str, _StaticFile]()
    for file in sorted(STATIC.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            if file.name == INDEX:
                listed = _NO_LANGUAGES.replace(b'""', b'"%s"' % list_languages().encode())
                data = data.replace(_NO_LANGUAGES, listed)
            media = (
                TYPES.get(file.suffix)
                or mimetypes.guess_type(file.name)[0]
                or "application/octet-stream"
            )
            # A cached page keeps its policy, so a new policy makes it another page.
            known = data + _page_policy("").encode() if file.name == INDEX else data
            etag = f'W/"{sha256(known).hexdigest()[:32]}"'  # weak: the same file, compressed or not
            static = _StaticFile(data, media, etag)
            if file.suffix in PACKED:
                static.compressed = data
            elif len(data) <= MAX_EAGER_BYTES:
                static.compress()
            found[file.relative_to(STATIC).as_posix()] = static
    return found | _load_languages()


def _load_languages() -> dict[str, _StaticFile]:
    """Each language as two files: the first screen needs what the page says, and what the server
    writes comes behind it."""
    found = {}
    for language in all_languages()[1:]:
        page = {"name": language.name, "dir": language.dir, "texts": language.texts}
        for name, content in (
            (language.code, page),
            (f"{language.code}.server", language.sentences),
        ):
            data = msgspec.json.encode(content)
            etag = f'W/"{sha256(data).hexdigest()[:32]}"'
            static = found[f"languages/{name}.json"] = _StaticFile(data, "application/json", etag)
            static.compress()
    return found


def make_routes() -> list[BaseRoute]:
    """`/` and what it loads."""
    files = _load_static()
    script = files[FRAME_SCRIPT].data.decode()

    async def serve_frame(request: Request) -> Response:
        return make_frame(script, request)

    async def serve(request: Request) -> Response:
        path = request.path_params.get("path") or INDEX
        if path not in files:
            problem = HttpProblem(404, "not_found", "There is nothing at this address.")
            return error_response(problem, request.state.request_id, request.url.path)
        file = files[path]
        headers = {"etag": file.etag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if path == INDEX:
            headers["content-security-policy"] = _page_policy(request.headers["host"])
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            small = file.compressed or await anyio.to_thread.run_sync(file.compress)
            if len(small) < len(file.data):
                headers["content-encoding"] = "gzip"
                return Response(small, headers=headers, media_type=file.media)
        return Response(file.data, headers=headers, media_type=file.media)

    return [
        Route("/", serve),
        Route(FRAME_PATH, serve_frame),
        Route("/{path:path}", serve),
    ]
