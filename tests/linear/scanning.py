"""Runs every regular expression of the code, as it is used, over strings that make it work hard.

`python -m tests.linear.scanning [whole]` prints those whose time grows faster than the text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec

from deskhand.skills.scan import rules

from .feeding import Finding, Measure
from .outside import CAPPED, KEPT_OFF, MADE, SHORT
from .patterns import Make, patterns
from .pumps import pumps
from .source import Use, uses

LARGE, RATIO, FEW_PUMPS = 4_000, 6.0, 80
WORTH_S, EXPONENTIAL_S, SLOW_S = 0.0006, 0.005, 0.05
TAILS = ("", "\0", "\n!")
BRIEF = 24
"""Whatever takes long for so few characters doubles with each of them."""


def main(whole: str = "") -> None:
    measure, done = Measure(), dict[Any, Finding | None]()
    table = (Use("skills/scan.py", 0, "searched", "search", rule.pattern, rule.name) for rule in rules())
    for use in [*uses(), *table]:
        if use.path.startswith(tuple(KEPT_OFF)):
            continue
        place = f"{use.path}:{use.said}"
        if use.pattern is None:
            if f"{use.path}:{use.function}" not in MADE:
                _print(Finding(f"{use.path}:{use.function}", "heavy", f"made at run time: {use.said}"))
            continue
        key = (use.pattern, use.method, cap_of(use))
        if key not in done:
            done[key] = scanned(measure, use, bool(whole))
        if (found := done[key]) is not None:
            _print(msgspec.structs.replace(found, function=f"{place} .{use.method} line {use.line}"))


def _print(finding: Finding) -> None:
    print(msgspec.json.encode(finding).decode(), flush=True)


def cap_of(use: Use) -> int:
    """The most characters that get to it; 0 for any number."""
    limits = {**SHORT, **{start: limit for start, limit in CAPPED.items() if not start.startswith("skills/")}}
    fitting = [limit for start, (limit, _) in limits.items() if f"{use.path}:{use.said}".startswith(start)]
    return min(fitting, default=0)


def scanned(measure: Measure, use: Use, whole: bool) -> Finding | None:
    """The first text for which it takes too long; None for none. `whole`: among the usual patterns too."""
    pattern, cap = use.pattern, cap_of(use)
    assert pattern is not None
    own = pumps(pattern) if whole else pumps(pattern)[:FEW_PUMPS]
    made = [(head, _run(head, unit, tail)) for head, unit in own for tail in (TAILS if whole else TAILS[1:2])]
    made += patterns(few=not whole)

    def took(make: Make, chars: int, times: int) -> float:
        text = make(chars)
        given: Any = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
        return min(measure.seconds(lambda: _use(pattern, use.method, given))[0] for _ in range(times))

    for name, make in made:
        if took(make, BRIEF, 1) > EXPONENTIAL_S and took(make, BRIEF, 3) > EXPONENTIAL_S:
            return Finding("", "grows", f"{name!r}: {make(BRIEF)!r}")
        if cap:
            if took(make, cap, 1) > SLOW_S and (seconds := took(make, cap, 3)) > SLOW_S:
                return Finding("", "heavy", f"{make(BRIEF)!r}", 0.0, seconds)
            continue
        if took(make, LARGE, 1) < WORTH_S:
            continue
        for chars, times in ((LARGE, 3), (4 * LARGE, 3), (4 * LARGE, 5)):
            large, small = took(make, chars, times), took(make, chars // 4, times)
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


def findings(lines: Iterator[str]) -> list[Finding]:
    return [msgspec.json.decode(line, type=Finding) for line in lines]


if __name__ == "__main__":
    main(*sys.argv[1:])
