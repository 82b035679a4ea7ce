"""What is too long to be looked at is as little trusted as can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskhand.testing.effort import least_cpu_s
from deskhand.tools.label_marks import MAX_DEPTH, TOO_LONG_LABEL, LabelMarks
from deskhand.types.labels import LOCAL, OWNER, Label


@pytest.mark.parametrize(
    "path", ["l/" * 121 + "a", "a" * 5_000, "../" * 50_000 + "a", "l/" * 500_000]
)
def test_a_path_that_is_too_long_is_untrusted(tmp_path: Path, path: str) -> None:
    """It may lead over links that are walked again for each of its folders."""
    marks = LabelMarks(str(tmp_path), {str(tmp_path / "b"): Label("untrusted")})
    assert marks.file_label(marks.resolve_place(path)) == TOO_LONG_LABEL
    assert marks.listing_label_by_name([path]).integrity == "untrusted"


def test_what_one_look_costs_does_not_grow(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to(".")
    (tmp_path / "a").write_text("a")
    (tmp_path / "k").symlink_to("a")
    marks = LabelMarks(str(tmp_path), {str(tmp_path / "b"): OWNER})
    depth = MAX_DEPTH - str(tmp_path).count("/") - 2
    assert marks.file_label(marks.resolve_place("l/" * depth + "k")) == LOCAL
    most = least_cpu_s(lambda: marks.file_label(marks.resolve_place("l/" * depth + "k")))
    assert least_cpu_s(lambda: marks.file_label(marks.resolve_place("l/" * 100_000 + "k"))) < most
