"""Large files whose hash is known beforehand: fetched with resumption, verified, and only then put
in their place."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import aiohttp  # noqa: TID251 -- only the hash is trusted
import anyio
import anyio.to_thread
import msgspec

from ..types.errors import NetError
from ..types.folders import make_private_folder

CHUNK_BYTES = 1 << 20
SPARE_BYTES = 64 << 20
"""What a download leaves free on the disk."""
TRIES = 5
"""How often a connection may break without a byte gained in between."""
UNREACHABLE_TRIES = 2
"""The same where there was no connection at all: another mirror is likelier to help."""
PAUSE_S = 1.0

OnProgress = Callable[[int, int], None]
"""(bytes that are here, bytes in all; 0 where that is not known yet)."""


def ignore_progress(done: int, size: int) -> None:
    """The OnProgress of who does not want to know."""


class DownloadTarget(msgspec.Struct, frozen=True):
    """A file by its content. `path` is where it belongs; until it is whole and verified it is
    `<path>.part`."""

    path: Path
    sha256: str
    size_bytes: int = 0

    @property
    def partial_path(self) -> Path:
        return self.path.with_name(self.path.name + ".part")


class Pace(msgspec.Struct, frozen=True):
    """How patient a download is, in seconds."""

    connect_s: float = 15.0
    idle_s: float = 60.0
    pause_s: float = PAUSE_S


async def download(
    url: str,
    wanted: DownloadTarget,
    progress: OnProgress = ignore_progress,
    pace: Pace | None = None,
) -> Path:
    """Fetch `wanted` from `url`, going on where an earlier attempt stopped, and verify it.

    Redirects are followed: only the hash is trusted. Raises NetError with what to do next; what has
    been fetched stays for the next attempt, unless its hash is wrong.
    """
    pace = pace or Pace()
    timeout = aiohttp.ClientTimeout(total=None, connect=pace.connect_s, sock_read=pace.idle_s)
    async with _open_partial(wanted) as part, aiohttp.ClientSession(timeout=timeout) as session:
        failures = 0
        while True:
            here = _size(part)
            try:
                await _fetch(session, url, wanted, part, progress)
                break
            except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
                failures = 1 if _size(part) > here else failures + 1
                is_unreachable = isinstance(error, aiohttp.ClientConnectorError)
                tries = UNREACHABLE_TRIES if is_unreachable else TRIES
                if failures >= tries:
                    raise _make_broken_error(url, part, wanted, error) from error
                await anyio.sleep(pace.pause_s * failures)
        return await _finish_download(part, wanted, url)


async def copy_file(
    source: Path, wanted: DownloadTarget, progress: OnProgress = ignore_progress
) -> Path:
    """Copy `wanted` from a file that is here already, and verify it. Raises NetError."""
    try:
        with source.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if wanted.size_bytes and size != wanted.size_bytes:
                raise NetError(
                    f"{str(source)!r} has {size} bytes, not {wanted.size_bytes}: it is a "
                    "different file."
                )
            async with _open_partial(wanted) as part:
                _truncate(part)
                while chunk := await anyio.to_thread.run_sync(file.read, CHUNK_BYTES):
                    await _write(part, chunk, wanted)
                    progress(_size(part), size)
                return await _finish_download(part, wanted, str(source))
    except OSError as error:
        raise NetError(f"{str(source)!r} cannot be read: {error.strerror}.") from error


async def join_files(
    pieces: list[Path], wanted: DownloadTarget, progress: OnProgress = ignore_progress
) -> Path:
    """Put `wanted` together from its pieces in order, and verify it. Raises NetError."""
    async with _open_partial(wanted) as part:
        _truncate(part)
        for piece in pieces:
            with piece.open("rb") as file:
                while chunk := await anyio.to_thread.run_sync(file.read, CHUNK_BYTES):
                    await _write(part, chunk, wanted)
                    progress(_size(part), wanted.size_bytes)
        return await _finish_download(part, wanted, f"the {len(pieces)} pieces")


def check_disk_space(folder: Path, size_bytes: int) -> None:
    """Raise NetError where the disk of `folder` has not this much space to spare."""
    free = shutil.disk_usage(folder).free
    if free < size_bytes + SPARE_BYTES:
        needed = _format_mb(size_bytes + SPARE_BYTES)
        raise NetError(
            f"not enough disk space in {str(folder)!r}: {needed} are needed and {_format_mb(free)} "
            "are free. Free some, or set DESKHAND_CACHE to a folder on another disk."
        )


@asynccontextmanager
async def _open_partial(wanted: DownloadTarget) -> AsyncIterator[BinaryIO]:
    """The unfinished file, at its end, which no other process has open in this way."""
    folder = wanted.path.parent
    make_private_folder(folder)
    with wanted.partial_path.open("ab") as part:
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise NetError(
                f"another process is downloading {wanted.path.name!r}: wait until it has finished."
            ) from None
        check_disk_space(folder, max(0, wanted.size_bytes - _size(part)))
        yield part


async def _fetch(
    session: aiohttp.ClientSession,
    url: str,
    wanted: DownloadTarget,
    part: BinaryIO,
    progress: OnProgress,
) -> None:
    """One connection. Returns when everything is here; raises what aiohttp raises when it broke
    before."""
    here = _size(part)
    if wanted.size_bytes and here >= wanted.size_bytes:
        return  # fetched before, and only the verification is missing
    # Compression would make the ranges those of another file.
    headers = {"Accept-Encoding": "identity", "User-Agent": "deskhand"}
    if here:
        headers["Range"] = f"bytes={here}-"
    async with session.get(url, headers=headers) as response:
        here = _prepare_partial(part, response, url)
        size = wanted.size_bytes or here + (response.content_length or 0)
        progress(here, size)
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            await _write(part, chunk, wanted)
            progress(_size(part), size)
            if wanted.size_bytes and _size(part) > wanted.size_bytes:
                break  # it is not the file; the verification says so
    if _size(part) < size:
        raise aiohttp.ClientPayloadError("the connection ended before the file did")


def _prepare_partial(part: BinaryIO, response: aiohttp.ClientResponse, url: str) -> int:
    """Throw away what the answer does not go on from; returns how many bytes stay. Raises NetError,
    ClientPayloadError."""
    if response.status == 416:
        _truncate(part)
        raise aiohttp.ClientPayloadError("the partial file does not match; starting again")
    if response.status not in (200, 206):
        raise NetError(
            f"{url} answered with status {response.status}. Try again later, or use another mirror."
        )

    # RFC 9110 section 14.4: a range that starts elsewhere, or a whole answer, must not be
    # appended.
    here = _size(part)
    start = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    if response.status == 206 and start == str(here):
        return here
    _truncate(part)
    if response.status == 206 and start != "0":
        raise aiohttp.ClientPayloadError("the server sent another range")
    return 0


async def _write(part: BinaryIO, chunk: bytes, wanted: DownloadTarget) -> None:
    try:
        await anyio.to_thread.run_sync(part.write, chunk)
        part.flush()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NetError(
                f"the disk became full while writing {str(wanted.partial_path)!r}. Free some "
                "space and run the command again to resume."
            ) from error
        raise NetError(
            f"{str(wanted.partial_path)!r} cannot be written: {error.strerror}."
        ) from error


async def _finish_download(part: BinaryIO, wanted: DownloadTarget, whence: str) -> Path:
    """Put the file in its place if it is the one that was wanted; else forget it."""
    await anyio.to_thread.run_sync(os.fsync, part.fileno())
    found = await anyio.to_thread.run_sync(hash_file, wanted.partial_path)
    if found != wanted.sha256:
        wanted.partial_path.unlink()
        raise NetError(
            f"the file from {whence} is not the expected one: its sha256 is {found}, not "
            f"{wanted.sha256}. It was deleted. Try again, or use another mirror."
        )
    wanted.partial_path.rename(wanted.path)
    return wanted.path


def hash_file(path: Path) -> str:
    """The file's sha256 in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(part: BinaryIO) -> int:
    return os.fstat(part.fileno()).st_size


def _truncate(part: BinaryIO) -> None:
    if _size(part):
        part.truncate(0)


def _make_broken_error(
    url: str, part: BinaryIO, wanted: DownloadTarget, error: Exception
) -> NetError:
    here = _format_mb(_size(part))
    if wanted.size_bytes:
        here = f"{here} of {_format_mb(wanted.size_bytes)}"
    why = str(error) or type(error).__name__
    return NetError(
        f"{url} could not be downloaded: {why}. {here} are downloaded; run the command again to "
        "resume, or use another mirror."
    )


def _format_mb(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"
