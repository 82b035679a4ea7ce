"""Nothing that sees text from outside takes more time than in proportion to it, or raises because
it is nested deeply.

The ordinary run feeds what tells growth by the square from growth by the length, up to 8 kB; `make
linear` all patterns up to 32 kB, and some of them up to 1 MB. Times are of the processor, the least
of several, and only where they are long enough to tell.
"""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from .feeding import Finding
from .outside import CAPPED, KEPT_OFF, MADE, SHORT, UNFED
from .patterns import patterns
from .source import ROOT, SOURCE, careless_decoders, sites, uses

WHOLE = bool(os.environ.get("DESKHAND_LINEAR"))
PARTS = 2
pytestmark = pytest.mark.timeout(3_600 if WHOLE else 600)


class Looked(msgspec.Struct):
    """What the processes say in the end."""

    found: list[Finding]
    reached: set[str]


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    """All at once, each with a part of the work: it takes one processor."""
    folder = tmp_path_factory.mktemp("linear")
    whole = ("whole",) if WHOLE else ()
    running = list[subprocess.Popen[bytes]]()
    for part in range(PARTS):
        command = [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.linear.look",
            str(part),
            str(PARTS),
            *whole,
        ]
        with (
            (folder / f"said {part}").open("wb") as said,
            (folder / f"log {part}").open("wb") as complained,
        ):
            running.append(subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=complained))
    try:
        for part, each in enumerate(running):
            assert each.wait() == 0, (folder / f"log {part}").read_text()[-2_000:]
    finally:
        for each in running:
            each.kill()
            each.wait()
    lines = [
        line for part in range(PARTS) for line in (folder / f"said {part}").read_text().splitlines()
    ]
    found = [msgspec.json.decode(line, type=Finding) for line in lines if line.startswith("{")]
    return Looked(found, {line for line in lines if not line.startswith("{")})


def test_every_function_that_takes_text_and_every_regular_expression(looked: Looked) -> None:
    """Functions are found by the types of what they take, and fed; expressions are run as they are
    used, over strings that are made from their own parts."""
    assert looked.found == []


def test_nothing_is_left_out(looked: Looked) -> None:
    """Whatever parses, recurses or loops is reached by what is fed, or listed with a reason; and so
    is nothing else."""
    kept_off = tuple(KEPT_OFF)
    left = [
        f"{site.path}:{site.function}"
        for site in sites()
        if not site.path.startswith(kept_off)
        and f"{site.path}:{site.function}" not in looked.reached
    ]
    assert [name for name in left if not name.startswith(tuple(UNFED))] == []
    assert [name for name in UNFED if not any(each.startswith(name) for each in left)] == [], (
        "reached, or gone"
    )


def test_what_is_listed_is_there() -> None:
    used = {f"{use.path}:{use.said}" for use in uses()} | {
        f"{use.path}:{use.function}" for use in uses()
    }
    everything = used | {f"{site.path}:{site.function}" for site in sites()}
    for start in (*CAPPED, *SHORT, *MADE):
        path = start.partition(":")[0]
        assert any(each.startswith(start) for each in everything) or (SOURCE / path).is_file(), (
            start
        )
    for start in KEPT_OFF:
        assert any(
            path.relative_to(SOURCE).as_posix().startswith(start) for path in SOURCE.rglob("*.py")
        ), start


def test_what_survives_bad_json_survives_deep_json() -> None:
    assert [*careless_decoders()] == []


def test_there_are_patterns_enough() -> None:
    made = dict(patterns())
    assert len(made) >= 100
    assert all(900 <= len(make(1_000)) <= 1_100 for make in made.values())
