"""The programs that a small model is shown because they are like what it is asked for. Pure."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import cache
from importlib import resources
from math import log, sqrt

import msgspec

from .shim_prompts import Shots

SHOWN = 2
LEAST = 0.15
"""Below this likeness (0 to 1) a program has nothing to do with the request."""
BESIDE = 0.75
"""A second one is shown where it is at least so like as the first."""
STEM = 5
_WORD = re.compile(r"[a-z]+|\d")


class Example(msgspec.Struct, frozen=True):
    """What is asked, how the files are listed, and the program that does it."""

    files: str
    asked: str
    program: str

    @property
    def shot(self) -> tuple[str, str]:
        """As a turn of a chat."""
        return f"Files here:\n- {self.files}\nRequest: {self.asked}", f"```python\n{self.program}\n```"


@cache
def _examples() -> tuple[Example, ...]:
    text = resources.files(__package__).joinpath("shim_library.toml").read_text("utf-8")
    return tuple(msgspec.convert(tomllib.loads(text)["example"], list[Example]))


def stems(text: str) -> Counter[str]:
    """The beginnings of its words; numbers are all one."""
    return Counter("0" if word.isdigit() else word[:STEM] for word in _WORD.findall(text.lower()))


@cache
def _weights() -> dict[str, float]:
    """How much a stem tells: the less often it stands in the examples, the more."""
    found = [stems(f"{each.asked} {each.files}") for each in _examples()]
    seen = Counter(stem for each in found for stem in each)
    return {stem: log(1 + len(found) / count) for stem, count in seen.items()}


def _vector(text: str) -> dict[str, float]:
    weights = _weights()
    found = {stem: (1 + log(count)) * weights[stem] for stem, count in stems(text).items() if stem in weights}
    length = sqrt(sum(value * value for value in found.values())) or 1.0
    return {stem: value / length for stem, value in found.items()}


@cache
def _known() -> tuple[dict[str, float], ...]:
    return tuple(_vector(each.asked) for each in _examples())


def likest(request: str, count: int = SHOWN) -> Shots:
    """The examples that are most like the request, the likest last: what stands near is followed most."""
    asked = _vector(request)
    scores = [sum(value * known.get(stem, 0.0) for stem, value in asked.items()) for known in _known()]
    best = sorted(range(len(scores)), key=lambda n: scores[n], reverse=True)[:count]
    least = max(LEAST, BESIDE * scores[best[0]])
    return tuple(_examples()[n].shot for n in reversed(best) if scores[n] >= least)
