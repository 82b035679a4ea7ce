"""The demonstration: it really kills, and really comes back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DESKHAND = str(Path(sys.executable).with_name("deskhand"))


@pytest.mark.timeout(90)
def test_it_is_killed_and_comes_back() -> None:
    done = subprocess.run(
        [DESKHAND, "demo", "--yes"], capture_output=True, text=True, check=False, timeout=80
    )
    assert done.returncode == 0, done.stderr
    order = [
        "ideas.txt",
        "shopping.txt",
        "needs your approval",
        "kill -9",
        "started again",
        "interrupted",
        "chain is intact",
    ]
    places = [done.stdout.index(words) for words in order]
    assert places == sorted(places), done.stdout
    assert "posted.txt" not in done.stdout, "the letter was posted although its process was killed"
