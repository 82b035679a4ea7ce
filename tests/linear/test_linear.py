"""Nothing that sees text from outside takes more time than in proportion to it, or raises because it is nested deeply.

The ordinary run feeds what tells growth by the square from growth by the length, up to 8 kB; `make linear` all
patterns up to 32 kB, and some of them up to 1 MB. Times are of the processor, the least of several, and only where
they are long enough to tell.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .feeding import Finding
from .outside import CAPPED, KEPT_OFF, MADE, SHORT, UNFED
from .patterns import patterns
from .scanning import findings
from .source import ROOT, SOURCE, careless_decoders, sites, uses

WHOLE = bool(os.environ.get("DESKHAND_LINEAR"))
PARTS = 2
pytestmark = pytest.mark.timeout(3_600 if WHOLE else 300)


class Running:
    """The processes, all at once: each of them takes one processor."""

    def __init__(self, folder: Path) -> None:
        whole = ("whole",) if WHOLE else ()
        self._folder = folder
        self._running = {
            "reach": self._started("reach", "feeding", "reach"),
            "scan": self._started("scan", "scanning", *whole),
            **{
                f"grow {n}": self._started(f"grow {n}", "feeding", "grow", str(n), str(PARTS), *whole)
                for n in range(PARTS)
            },
        }

    def _started(self, name: str, module: str, *given: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-W", "ignore", "-m", f"tests.linear.{module}", *given]
        with (self._folder / name).open("wb") as said, (self._folder / f"{name} log").open("wb") as complained:
            return subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=complained)

    def said(self, name: str) -> list[str]:
        """The lines that it has printed in the end."""
        ended = self._running[name].wait()
        assert ended == 0, (self._folder / f"{name} log").read_text()[-2_000:]
        return [line for line in (self._folder / name).read_text().splitlines() if line]

    def found(self, *names: str) -> list[Finding]:
        return [finding for name in names for finding in findings(iter(self.said(name)))]

    def end(self) -> None:
        for each in self._running.values():
            each.kill()
            each.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    processes = Running(tmp_path_factory.mktemp("linear"))
    yield processes
    processes.end()


def test_every_function_that_takes_text(running: Running) -> None:
    """Each is found by the types of what it takes, and fed."""
    assert running.found(*(f"grow {part}" for part in range(PARTS))) == []


def test_every_regular_expression(running: Running) -> None:
    """Each is run as it is used, over strings that are made from its own parts."""
    assert running.found("scan") == []


def test_nothing_is_left_out(running: Running) -> None:
    """Whatever parses, recurses or loops is reached by what is fed, or listed with a reason; and so is nothing else."""
    reached = {*running.said("reach")}
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
