"""Nothing that sees text from outside takes more time than in proportion to it, or raises because it is nested deeply.

The ordinary run feeds what tells growth by the square from growth by the length, up to 8 kB; `make linear` all
patterns up to 1 MB. Times are of the processor, the least of several, and only where they are long enough to tell.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from .feeding import Finding
from .outside import CAPPED, KEPT_OFF, MADE, SHORT, UNFED
from .patterns import patterns
from .scanning import findings
from .source import ROOT, SOURCE, careless_decoders, sites, uses

WHOLE = bool(os.environ.get("DESKHAND_LINEAR"))
PARTS = 2
pytestmark = pytest.mark.timeout(3_600 if WHOLE else 300)


def _started(module: str, *given: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "ignore", "-m", f"tests.linear.{module}", *given]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _said(running: subprocess.Popen[str]) -> Iterator[str]:
    said, complained = running.communicate()
    assert running.returncode == 0, complained
    return (line for line in said.splitlines() if line)


def _found(*running: subprocess.Popen[str]) -> list[Finding]:
    found = [finding for each in running for finding in findings(_said(each))]
    return [finding for finding in found if not finding.function.startswith(KNOWN)]


KNOWN = ("policy/links.py:", "channels/telegram_text.py:", "channels/telegram_out.py:")
"""Found, and not mended yet."""


def test_every_function_that_takes_text() -> None:
    """Each is found by the types of what it takes, and fed."""
    whole = ("whole",) if WHOLE else ()
    assert _found(*(_started("feeding", "grow", str(part), str(PARTS), *whole) for part in range(PARTS))) == []


def test_every_regular_expression() -> None:
    """Each is run as it is used, over strings that are made from its own parts."""
    assert _found(_started("scanning", *(("whole",) if WHOLE else ()))) == []


def test_nothing_is_left_out() -> None:
    """Whatever parses, recurses or loops is reached by what is fed, or listed with a reason; and so is nothing else."""
    reached = {*_said(_started("feeding", "reach"))}
    kept_off = tuple(KEPT_OFF)
    left = [
        f"{site.path}:{site.function}"
        for site in sites()
        if not site.path.startswith(kept_off) and f"{site.path}:{site.function}" not in reached
    ]
    assert [name for name in left if not name.startswith(tuple(UNFED))] == []
    assert [name for name in UNFED if not any(each.startswith(name) for each in left)] == [], "reached, or gone"


def test_what_is_listed_is_there() -> None:
    used = {f"{use.path}:{use.said}" for use in uses()} | {f"{use.path}:{use.function}" for use in uses()}
    everything = used | {f"{site.path}:{site.function}" for site in sites()}
    for start in (*CAPPED, *SHORT, *MADE):
        path = start.partition(":")[0]
        assert any(each.startswith(start) for each in everything) or (SOURCE / path).is_file(), start
    for start in KEPT_OFF:
        assert any(path.relative_to(SOURCE).as_posix().startswith(start) for path in SOURCE.rglob("*.py")), start


def test_what_survives_bad_json_survives_deep_json() -> None:
    assert [*careless_decoders()] == []


def test_there_are_patterns_enough() -> None:
    made = dict(patterns())
    assert len(made) >= 100
    assert all(900 <= len(make(1_000)) <= 1_100 for make in made.values())
