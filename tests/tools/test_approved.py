"""What a file or folder was when it was approved: every change of it is seen, however it is
hidden."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deskhand.tools.approved import (
    MAX_BYTES,
    MAX_FILES,
    SETTLED_NS,
    Approvals,
    digest_of_files,
    read_content,
)

from ..examples import examples


def skill(folder: Path) -> Path:
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("Do it.")
    (folder / "scripts" / "run.sh").write_text("echo hello")
    return folder


def digest(path: Path) -> bytes:
    found = read_content(str(path))
    assert found is not None
    return found.digest


def in_place(path: Path) -> None:
    """Another byte, with the same size and the time of before."""
    before = path.stat()
    with path.open("r+b") as file:
        file.write(b"X")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def mapped(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = b"Y"


def added(path: Path) -> None:
    (path.parent / "more.py").write_text("")


def renamed(path: Path) -> None:
    path.rename(path.with_name("other"))


def swapped(path: Path) -> None:
    path.rename(path.with_name("old"))
    path.write_text("Do that.")


def linked(path: Path) -> None:
    kept = path.parent.parent / "kept"
    path.rename(kept)
    path.symlink_to(kept)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES = [in_place, mapped, added, renamed, swapped, linked, pipe]


@pytest.mark.parametrize(
    ("change", "settled_ns"),
    [
        *((each, SETTLED_NS) for each in CHANGES),
        *((each, -(10**15)) for each in CHANGES if each is not mapped),
    ],
)
@pytest.mark.parametrize("inner", ["SKILL.md", "scripts/run.sh"])
def test_a_change_of_what_is_in_a_folder(
    tmp_path: Path, change: Callable[[Path], None], settled_ns: int, inner: str
) -> None:
    """Whether it is read again at every look, or only where it looks changed."""
    folder = skill(tmp_path / "s")
    approvals = Approvals(settled_ns)
    approved = {str(folder): digest(folder)}
    assert approvals.check_files(approved).covers(f"{folder}/{inner}")
    change(folder / inner)
    bound = approvals.check_files(approved)
    assert (
        bound.is_changed(str(folder))
        and bound.is_changed(f"{folder}/{inner}")
        and not bound.covers(f"{folder}/{inner}")
    )
    assert not bound.allows(f"{folder}/{inner}", b"")


def test_a_second_change_of_mapped_memory(tmp_path: Path) -> None:
    """The kernel notes the first one alone, until it has written it back."""
    folder = skill(tmp_path / "s")
    approvals = Approvals()
    approved = {str(folder): digest(folder)}
    with (folder / "SKILL.md").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        memory[0:1] = memory[0:1]
        assert not approvals.check_files(approved).changed
        memory[0:1] = b"Y"
        assert approvals.check_files(approved).changed == {str(folder)}


def test_a_folder_in_the_place_of_another(tmp_path: Path) -> None:
    folder = skill(tmp_path / "s")
    other = skill(tmp_path / "t")
    (other / "SKILL.md").write_text("Do that.")
    approvals = Approvals()
    approved = {str(folder): digest(folder)}
    assert not approvals.check_files(approved).changed
    folder.rename(tmp_path / "old")
    other.rename(folder)
    assert approvals.check_files(approved).changed == {str(folder)}
    folder.rename(other)
    (tmp_path / "old").rename(folder)
    assert not approvals.check_files(approved).changed


def test_a_link_in_the_place_of_the_folder_around(tmp_path: Path) -> None:
    """What is read there then lies elsewhere, by its real path: that is held back too."""
    folder = skill(tmp_path / "skills" / "s")
    evil = skill(tmp_path / "other" / "s")
    (evil / "SKILL.md").write_text("Do that.")
    approvals = Approvals()
    approved = {str(folder): digest(folder)}
    (tmp_path / "skills").rename(tmp_path / "kept")
    (tmp_path / "skills").symlink_to("other")
    assert approvals.check_files(approved).is_changed(f"{evil}/SKILL.md")


def test_bytes_of_another_moment_are_not_allowed(tmp_path: Path) -> None:
    folder = skill(tmp_path / "s")
    bound = Approvals().check_files({str(folder): digest(folder)})
    (content,) = [read_content(str(folder))]
    assert content is not None
    assert bound.allows(f"{folder}/SKILL.md", content.files["SKILL.md"])
    assert not bound.allows(f"{folder}/SKILL.md", content.files["scripts/run.sh"])
    assert not bound.allows(f"{folder}/new.md", content.files["SKILL.md"]), (
        "what came after the look"
    )
    assert bound.allows(f"{tmp_path}/elsewhere", b"")


def test_what_is_too_much_or_no_file_cannot_be_approved(tmp_path: Path) -> None:
    assert read_content(str(tmp_path / "none")) is None
    many = skill(tmp_path / "many")
    for n in range(MAX_FILES):
        (many / f"{n}").write_text("")
    large = skill(tmp_path / "large")
    (large / "large").write_bytes(b"x" * (MAX_BYTES + 1))
    deep = tmp_path / "deep"
    (deep / "/".join("abcdefghijk")).mkdir(parents=True)
    link = skill(tmp_path / "link")
    (link / "l").symlink_to("SKILL.md")
    assert [read_content(str(each)) for each in (many, large, deep, link)] == [None] * 4


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    """What we read ourselves must not be taken for what a command reads."""
    folder = skill(tmp_path / "s")
    places = [folder, folder / "SKILL.md", folder / "scripts"]
    for each in places:
        os.utime(each, ns=(1_000_000_000, each.stat().st_mtime_ns))
    digest(folder)
    assert [each.stat().st_atime_ns for each in places] == [1_000_000_000] * 3


names = st.text(st.sampled_from("ab/0 1\n"), min_size=1, max_size=6)


@settings(max_examples=examples(500))
@given(
    st.dictionaries(names, st.binary(min_size=32, max_size=32)),
    st.dictionaries(names, st.binary(min_size=32)),
)
def test_two_folders_that_differ_have_two_digests(
    one: dict[str, bytes], other: dict[str, bytes]
) -> None:
    other = {name: (digest + bytes(32))[:32] for name, digest in other.items()}
    assert (digest_of_files(one) == digest_of_files(other)) == (one == other)
