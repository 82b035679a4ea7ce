"""Whether a request speaks of losing what stands in a file."""

from __future__ import annotations

import pytest

from deskhand.types.intended_loss import is_loss_requested
from deskhand.types.programs import FileChange


@pytest.mark.parametrize(
    ("path", "said", "is_meant"),
    [
        ("old.txt", "delete old.txt", True),
        ("a.tmp", "delete the tmp files", True),
        ("a.tmp", "delete all .tmp files", True),
        ("a.tmp", "remove *.tmp", True),
        ("a.tmp", "delete every tmp file, but not keep.tmp", True),
        ("plan.txt", "delete notes.txt", False),
        ("work/plan.txt", "empty the folder work, delete all of it", True),
        ("work/plan.txt", "delete work/old.txt", False),
        ("work/plan.txt", "delete all files in work but old.txt", True),
    ],
)
def test_what_may_be_deleted(path: str, said: str, is_meant: bool) -> None:
    assert is_loss_requested(FileChange(path, "deleted"), said) is is_meant


@pytest.mark.parametrize(
    ("said", "is_meant"),
    [
        ("overwrite a.txt with hello", True),
        ("replace everything in a.txt with hello", True),
        ("replace the text of a.txt with hello", True),
        ("replace a.txt by a new one", True),
        ("replace Kim with Ann in a.txt", False),
        ("put tea on a.txt instead of coffee", False),
        ("overwrite it", False),
    ],
)
def test_what_may_be_overwritten(said: str, is_meant: bool) -> None:
    assert is_loss_requested(FileChange("a.txt", "changed"), said) is is_meant
