"""A file of the home is replaced in one step, and only its owner reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.types.private_files import write_private_file


def test_a_file_is_replaced_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "deskhand.yaml"
    write_private_file(file, "timezone: UTC\n")
    file.chmod(0o644)
    write_private_file(file, "timezone: Asia/Tokyo\n")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.read_text() == "timezone: Asia/Tokyo\n"
    assert [path.name for path in file.parent.iterdir()] == [file.name], (
        "nothing half written is left"
    )


def test_what_was_left_half_written_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / ".x.part").write_text("half")
    write_private_file(tmp_path / "x", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_an_error_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError) as caught:
        write_private_file(tmp_path / "x", "text")
    assert caught.value.filename == str(tmp_path / "x")
