"""A short soak of the real service, and what it judges by; `make soak` is the long one."""

from __future__ import annotations

import csv
import os
import random
from pathlib import Path

import pytest

from deskhand.testing.everyday.processes import tree
from deskhand.testing.soak import MORE, Soak, soak
from deskhand.testing.soak_day import KINDS, answered, kind_of, owed
from deskhand.testing.soak_gauge import ResourceUse, held, slope
from deskhand.testing.soak_truth import Truth


@pytest.mark.timeout(300)
async def test_nothing_is_lost_repeated_or_left_behind(tmp_path: Path) -> None:
    table = tmp_path / "soak.csv"
    report = await soak(minutes=0.4, seed=2, table=table)
    assert report.good, report.show()
    assert report.truth.messages > 5 and report.truth.web_messages > 3 and report.model_calls > 20
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert rows and all(int(row["anon"]) > 10_000 and int(row["tasks"]) > 20 for row in rows)


def test_how_fast_something_grows() -> None:
    flat = slope([(at_s, 300.0) for at_s in range(0, 3600, 5)])
    assert flat.per_hour == pytest.approx(0) and flat.error == pytest.approx(0)
    grows = slope([(at_s, 300.0 + 2 * at_s / 3600) for at_s in range(0, 3600, 5)])
    assert grows.per_hour == pytest.approx(2) and grows.error == pytest.approx(0)
    chance = random.Random(1)
    noisy = slope(
        [(at_s, 300.0 + 2 * at_s / 3600 + chance.gauss(0, 1)) for at_s in range(0, 3600, 5)]
    )
    assert abs(noisy.per_hour - 2) < 2 * noisy.error < 2
    assert slope([(0, 1), (1, 2)]).error == slope([(1, 1)] * 5).error == float("inf")


@pytest.mark.parametrize("minutes", [120.0, 20.0])
def test_what_grows_is_told(minutes: float, tmp_path: Path) -> None:
    """A short run says how fast memory grows, and does not judge that; whatever else there is more
    of, is a fault."""
    made = Soak(tmp_path, minutes, 1, tmp_path / "x.csv")
    made._samples = [
        ResourceUse(at_s, anon=int(1024 * (300 + 1.5 * at_s / 3600)))
        for at_s in range(0, int(60 * minutes), 60)
    ]
    report = made._judged(
        Truth(), ResourceUse(fds=40, tasks=70, threads=5), ResourceUse(fds=44, tasks=74, threads=9)
    )
    assert report.slope_mb_h == pytest.approx(1.5, abs=0.1)
    assert report.good == (minutes < 60)
    for name, more in MORE.items():
        made._faults.clear()
        many = made._judged(Truth(), ResourceUse(), ResourceUse(**{name: more + 1}))
        assert f"{name} were 0 when it was warm and are {more + 1}" in many.faults and not many.good
    assert not made._judged(Truth(lost=1), ResourceUse(), ResourceUse()).good


def test_what_the_model_of_that_day_owes() -> None:
    plain = next(number for number in range(1, 99) if kind_of(number) == "plain")
    effect = next(number for number in range(1, 99) if kind_of(number) == "effect")
    link = f"http://site.test:1/page?m{plain}"
    asked = [
        {"role": "user", "content": f"please do m{plain}"},
        {"role": "user", "content": f"please do m{effect}"},
    ]
    assert owed(asked) == ([f"m{plain}", f"m{effect}"], [f"m{effect}"], {})
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"arguments": f"m{effect}"}}],
    }
    assert owed([*asked, call]) == ([f"m{plain}", f"m{effect}"], [], {})
    said = {"role": "assistant", "content": f"done m{plain} m{effect}"}
    again = {"role": "user", "content": f"It is known of m7. please do m{plain} with {link}"}
    assert owed([*asked, call, said, again]) == ([f"m{plain}"], [f"m{plain}"], {f"m{plain}": link})
    assert answered(f"(may be a duplicate)\ndone m{plain} m{effect}") == [f"m{plain}", f"m{effect}"]
    assert {kind_of(number) for number in range(2000)} == set(KINDS)


def test_what_a_process_holds() -> None:
    found = held(os.getpid(), 1.0, tasks=2, answered=3)
    assert found.at_s == 1.0 and (found.tasks, found.answered) == (2, 3)
    assert found.rss >= found.anon > 1000 and found.fds > 2 and found.threads >= 1
    assert os.getpid() in tree(os.getppid())
