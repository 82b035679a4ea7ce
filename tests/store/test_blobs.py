"""Files under the hash of their bytes: kept once, never half, never another's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from deskhand.store.blobs import MIN_AGE_S, Blobs
from deskhand.types.errors import BlobMissing, StoreFull


def kept(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_what_is_put_can_be_got(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path / "blobs")
    for data in (b"", b"x", os.urandom(3_000_000)):
        digest = await blobs.put(data)
        assert digest == f"sha256:{sha256(data).hexdigest()}"
        assert await Blobs(tmp_path / "blobs").get(digest) == data


async def test_same_bytes_are_kept_once_however_many_put_them(tmp_path: Path) -> None:
    blobs, data = Blobs(tmp_path), os.urandom(400_000)
    names: list[str] = []

    async def put() -> None:
        names.append(await blobs.put(data))
        assert await blobs.get(names[0]) == data, "promised, and not whole yet"

    for _ in range(20):
        data = os.urandom(400_000)
        names.clear()
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(put)
        assert len(names) == 8 and len(set(names)) == 1
    assert len(kept(tmp_path)) == 20


@pytest.mark.parametrize(
    "name",
    [
        "",
        "sha256:",
        "sha256:" + "a" * 63,
        "sha256:" + "A" * 64,
        "../../etc/passwd",
        "sha256:" + "../" * 21 + "x",
        "x\0",
    ],
)
async def test_a_name_that_is_no_digest_reaches_no_file(name: str, tmp_path: Path) -> None:
    with pytest.raises(BlobMissing, match="not the name"):
        await Blobs(tmp_path).get(name)


async def test_changed_or_gone_bytes_are_not_given_out(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    digest = await blobs.put(b"the truth")
    blobs.path(digest).write_bytes(b"the trutH")
    with pytest.raises(BlobMissing, match="changed on disk"):
        await blobs.get(digest)
    blobs.path(digest).unlink()
    with pytest.raises(BlobMissing, match="no longer there"):
        await blobs.get(digest)


async def test_only_what_is_old_and_unused_is_collected(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    used, old, young, again = [
        await blobs.put(name) for name in (b"used", b"old", b"young", b"again")
    ]
    part = blobs.path(old).with_suffix(".77-1.part")
    part.write_bytes(b"half")
    now = blobs.path(young).stat().st_mtime
    for path in (*map(blobs.path, (used, old, again)), part):
        os.utime(path, (now - 2 * MIN_AGE_S, now - 2 * MIN_AGE_S))
    await blobs.put(b"again")  # its commit is on its way
    assert blobs.collect(lambda digest: digest == used, now) == 2
    assert {path.name for path in kept(tmp_path)} == {
        d.removeprefix("sha256:") for d in (used, young, again)
    }
    assert Blobs(tmp_path / "none").collect(lambda digest: False, now) == 0


async def test_put_while_it_is_collected(tmp_path: Path) -> None:
    """The bytes are asked for again between the question whether they are used and the removal."""
    blobs = Blobs(tmp_path)
    digest = await blobs.put(b"data")
    now = blobs.path(digest).stat().st_mtime
    os.utime(blobs.path(digest), (0, 0))

    def used(name: str) -> bool:
        blobs._put(b"data")
        return False

    assert blobs.collect(used, now) == 0
    assert await blobs.get(digest) == b"data"


async def test_killed_in_the_middle_of_a_put(tmp_path: Path) -> None:
    """The child dies between writing the part and giving it its name."""
    child = (
        "import os, sys; from pathlib import Path; from deskhand.store.blobs import Blobs;"
        "sys.addaudithook(lambda event, args: os.kill(os.getpid(), 9) if event == "
        "'os.rename' else None);"
        "Blobs(Path(sys.argv[1]))._put(b'data' * 100000)"
    )
    killed = subprocess.run([sys.executable, "-c", child, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (part,) = kept(tmp_path)
    assert part.suffix == ".part"
    blobs = Blobs(tmp_path)
    with pytest.raises(BlobMissing):
        await blobs.get(f"sha256:{sha256(b'data' * 100000).hexdigest()}")
    assert await blobs.get(await blobs.put(b"data" * 100000)) == b"data" * 100000
    assert blobs.collect(lambda digest: True, part.stat().st_mtime + MIN_AGE_S) == 1


async def test_no_room_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("a file where the folder should be")
    with pytest.raises(StoreFull, match="could not be written"):
        await Blobs(tmp_path / "blobs").put(b"data")
