"""Downloads against a real server on loopback that breaks in every way that matters."""

from __future__ import annotations

import hashlib
import random
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from deskhand.net.download import DownloadTarget, Pace, copy_file, download, hash_file, join_files
from deskhand.testing.files import FileServer
from deskhand.types.errors import NetError

DATA = random.Random(1).randbytes(3_000_000)
HASH = hashlib.sha256(DATA).hexdigest()
QUICK = Pace(0.5, 0.3, 0.01)


@pytest.fixture
async def server() -> AsyncIterator[FileServer]:
    async with FileServer(DATA) as running:
        yield running


@pytest.fixture
def wanted(tmp_path: Path) -> DownloadTarget:
    return DownloadTarget(tmp_path / "models" / "file.gguf", HASH, len(DATA))


async def test_it_comes_with_progress_and_is_verified(
    server: FileServer, wanted: DownloadTarget
) -> None:
    seen: list[tuple[int, int]] = []
    path = await download(server.url, wanted, lambda done, size: seen.append((done, size)))
    assert path.read_bytes() == DATA
    assert seen[0] == (0, len(DATA)) and seen[-1] == (len(DATA), len(DATA))
    assert not wanted.partial_path.exists()


async def test_it_goes_on_where_it_was_stopped(server: FileServer, wanted: DownloadTarget) -> None:
    wanted.path.parent.mkdir()
    wanted.partial_path.write_bytes(DATA[:1_000_000])
    await download(server.url, wanted)
    assert server.ranges == ["bytes=1000000-"]
    assert hash_file(wanted.path) == HASH


async def test_cut_connections_are_taken_up_again(
    server: FileServer, wanted: DownloadTarget
) -> None:
    server.cut_after = 400_000
    await download(server.url, wanted, pace=QUICK)
    assert wanted.path.read_bytes() == DATA
    assert len(server.ranges) >= 7 and server.ranges[0] == ""
    assert server.ranges[1].startswith("bytes=")


async def test_a_server_without_ranges_starts_anew(
    server: FileServer, wanted: DownloadTarget
) -> None:
    wanted.path.parent.mkdir()
    wanted.partial_path.write_bytes(DATA[:1_000_000])
    server.ranges_work = False
    await download(server.url, wanted)
    assert wanted.path.read_bytes() == DATA


async def test_a_wrong_file_is_never_used(server: FileServer, wanted: DownloadTarget) -> None:
    wrong = DownloadTarget(wanted.path, "0" * 64, len(DATA))
    with pytest.raises(NetError, match=r"not the expected one.*It was deleted"):
        await download(server.url, wrong)
    assert not wanted.path.exists() and not wanted.partial_path.exists()


async def test_a_part_of_something_else_is_found_out_and_forgotten(
    server: FileServer, wanted: DownloadTarget
) -> None:
    wanted.path.parent.mkdir()
    wanted.partial_path.write_bytes(b"x" * 1000)
    with pytest.raises(NetError, match="sha256"):
        await download(server.url, wanted)
    await download(server.url, wanted)
    assert wanted.path.read_bytes() == DATA


async def test_what_came_is_kept_when_the_server_goes_away(
    server: FileServer, wanted: DownloadTarget
) -> None:
    server.cut_after = 100_000
    server.dies_after = 3
    with pytest.raises(
        NetError, match="0 MB of 3 MB are downloaded; run the command again to resume"
    ):
        await download(server.url, wanted, pace=QUICK)
    assert wanted.partial_path.read_bytes() == DATA[: wanted.partial_path.stat().st_size] != b""


async def test_statuses_and_silence_say_what_to_do(
    server: FileServer, wanted: DownloadTarget
) -> None:
    server.status = 404
    with pytest.raises(NetError, match=r"status 404.*another mirror"):
        await download(server.url, wanted)
    server.status = 200
    server.silent = True
    with pytest.raises(NetError, match="run the command again"), anyio.fail_after(30):
        await download(server.url, wanted, pace=QUICK)


async def test_a_disk_that_becomes_full(server: FileServer, wanted: DownloadTarget) -> None:
    wanted.path.parent.mkdir()
    wanted.partial_path.symlink_to("/dev/full")
    with pytest.raises(NetError, match=r"the disk became full.*run the command again to resume"):
        await download(server.url, wanted)


async def test_a_disk_that_is_too_small_is_known_before(
    server: FileServer, wanted: DownloadTarget
) -> None:
    with pytest.raises(NetError, match=r"not enough disk space.*DESKHAND_CACHE"):
        await download(server.url, DownloadTarget(wanted.path, HASH, 10**18))
    assert server.ranges == []


async def test_two_at_once_do_not_mix(server: FileServer, wanted: DownloadTarget) -> None:
    server.silent = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(download, server.url, wanted)
        while not wanted.partial_path.exists():
            await anyio.sleep(0.01)
        with pytest.raises(NetError, match="another process is downloading"):
            await download(server.url, wanted)
        tasks.cancel_scope.cancel()


async def test_from_a_file_without_any_network(wanted: DownloadTarget, tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_bytes(DATA)
    assert (await copy_file(given, wanted)).read_bytes() == DATA
    given.write_bytes(DATA[:-1])
    with pytest.raises(NetError, match="it is a different file"):
        await copy_file(given, wanted)
    with pytest.raises(NetError, match="cannot be read"):
        await copy_file(tmp_path / "missing", wanted)


async def test_from_pieces(wanted: DownloadTarget, tmp_path: Path) -> None:
    pieces = [tmp_path / str(i) for i in range(3)]
    for i, piece in enumerate(pieces):
        piece.write_bytes(DATA[i * 1_000_000 : (i + 1) * 1_000_000])
    assert (await join_files(pieces, wanted)).read_bytes() == DATA
