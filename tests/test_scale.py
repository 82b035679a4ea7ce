"""The estimate of what many people need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "bench" / "scale.py"


def needs(*options: str) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=True
    )
    return dict(line.strip().split("  ", 1) for line in done.stdout.splitlines())


def test_what_the_documentation_says() -> None:
    """Its table has these figures: see "Many thousands of people" in docs/workers.md."""
    page = (SCRIPT.parents[1] / "docs" / "workers.md").read_text()
    found = [needs("--people", str(people)) for people in (1_000, 50_000, 1_000_000)]
    cells = " | ".join(each["cells"] for each in found)
    assert f"| cells | {cells} |" in page
    late = " | ".join(each["added to a turn"].split(", ")[1].split(" (")[0] for each in found)
    assert f"| added to a turn, 95 % of them, at most | {late} |" in page


def test_a_database_that_is_further_away_carries_less() -> None:
    near, far = needs("--round-trip-ms", "0.1"), needs("--round-trip-ms", "2")
    assert int(near["cells"]) < int(far["cells"])
