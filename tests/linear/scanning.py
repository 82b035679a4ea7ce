"""Runs every regular expression of the code, as it is used, over strings that make it work hard."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from deskhand.skills.scan import load_rules

from .feeding import Finding, Measure
from .outside import CAPPED, KEPT_OFF, MADE, SHORT
from .patterns import Make, patterns
from .pumps import pumps
from .source import Use, uses

LARGE = 4_000
RATIO = 6.0
FEW_PUMPS = 80
WORTH_S = 0.0006
EXPONENTIAL_S = 0.005
SLOW_S = 0.05
TAILS = ("", "\0", "\n!")
BRIEF = 24
"""Whatever takes long for so few characters doubles with each of them."""


def all_uses() -> list[Use]:
    """Those of the code, and of the table that skills are searched for."""
    table = (
        Use("skills/scan.py", 0, "searched", "search", rule.pattern, rule.name)
        for rule in load_rules()
    )
    return [use for use in (*uses(), *table) if not use.path.startswith(tuple(KEPT_OFF))]


def slow_ones(measure: Measure, some: Iterable[Use], whole: bool) -> Iterator[Finding]:
    """What is found among these. `whole`: with the usual patterns too, and with all that can be
    made of its parts."""
    done = dict[Any, Finding | None]()
    for use in some:
        if use.pattern is None:
            if f"{use.path}:{use.function}" not in MADE:
                yield Finding(
                    f"{use.path}:{use.function}", "heavy", f"made at run time: {use.said}"
                )
            continue
        key = (use.pattern, use.method, cap_of(use))
        if key not in done:
            done[key] = scanned(measure, use, whole)
        if (found := done[key]) is not None:
            place = f"{use.path}:{use.said} .{use.method} line {use.line}"
            yield msgspec.structs.replace(found, function=place)


def cap_of(use: Use) -> int:
    """The most characters that get to it; 0 for any number."""
    limits = {
        **SHORT,
        **{start: limit for start, limit in CAPPED.items() if not start.startswith("skills/")},
    }
    fitting = [
        limit for start, (limit, _) in limits.items() if f"{use.path}:{use.said}".startswith(start)
    ]
    return min(fitting, default=0)


def scanned(measure: Measure, use: Use, whole: bool) -> Finding | None:
    """The first text for which it takes too long; None for none. `whole`: among the usual patterns
    too."""
    pattern, cap = use.pattern, cap_of(use)
    assert pattern is not None
    own = pumps(pattern) if whole else pumps(pattern)[:FEW_PUMPS]
    made = [
        (head, _run(head, unit, tail))
        for head, unit in own
        for tail in (TAILS if whole else TAILS[1:2])
    ]
    made += patterns(few=not whole)

    def took(make: Make, chars: int, times: int) -> float:
        text = make(chars)
        given: Any = (
            text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
        )
        return min(
            measure.seconds(lambda: _use(pattern, use.method, given))[0] for _ in range(times)
        )

    for name, make in made:
        if took(make, BRIEF, 1) > EXPONENTIAL_S and took(make, BRIEF, 3) > EXPONENTIAL_S:
            return Finding("", "grows", f"{name!r}: {make(BRIEF)!r}")
        if cap:
            if (
                took(make, cap, 1) > SLOW_S
                and (seconds := took(make, cap, 3)) > SLOW_S * measure.slowness()
            ):
                return Finding("", "heavy", f"{make(BRIEF)!r}", 0.0, seconds)
            continue
        if took(make, LARGE, 1) < WORTH_S:
            continue
        for chars, times in ((LARGE, 3), (4 * LARGE, 3), (4 * LARGE, 5)):
            large = took(make, chars, times)
            small = took(make, chars // 4, times)
            if large <= WORTH_S or large <= RATIO * small:
                break
        else:
            return Finding("", "grows", f"{make(BRIEF)!r}", small, large)
    return None


def _run(head: str, unit: str, tail: str) -> Make:
    return lambda chars: f"{head}{unit * max(1, chars // len(unit))}{tail}"


def _use(pattern: re.Pattern[Any], method: str, text: Any) -> None:
    match method:
        case "sub" | "subn":
            pattern.sub(lambda found: found[0], text)
        case "finditer":
            for _ in pattern.finditer(text):
                pass
        case _:
            getattr(pattern, method)(text)
