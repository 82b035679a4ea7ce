"""Plays a macro: the steps with which something was done in a browser or on the desktop, without a
model. Elements are found by role and name as they are shown now."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Any, NamedTuple

WAIT_S = 10
"""So long an element, or the words that are expected, may take to come."""
ALIKE = 0.6
"""How like each other two names must be, of 1, for one to stand for the other."""
CLEAR = 0.1
"""So much more than the next one."""
_OURS = frozenset({"element", "within", "drop_on", "expect"})
"""What of a step is not an argument of the tool."""
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_SELECTOR = re.compile(rf"(?P<role>[a-z]+)(?: (?P<name>{_QUOTED}))?")
_FOUND = re.compile(rf"(?P<ref>e\d+) {_SELECTOR.pattern}(?P<more>.*)")
_HAS_NOT_COME = "has not come in"
NOT_YET = "to this page yet"
"""Stands in the refusal to type on a page whose host nobody has allowed."""


class Mismatch(Exception):
    """What is shown is not what the macro expects."""


class Shown(NamedTuple):
    """An element as `find` shows it. `path` is the rest of its line: value, states, and what it is
    in."""

    ref: str
    role: str
    name: str
    path: str

    def __str__(self) -> str:
        return f'{self.role} "{self.name}"'


Call = Callable[..., str]


def play_macro(
    call: Call,
    failed: type[Exception],
    tool: str,
    steps: list[dict[str, Any]],
    hosts: list[str],
) -> str:
    """Take these steps with this tool, which raises `failed`. Where nothing may be typed yet, a
    person is asked for the `hosts`. Returns what was done and what the last step showed; where one
    cannot be taken, which and why."""
    healed: list[str] = []
    unasked = [*hosts]
    shown = ""
    for number, step in enumerate(steps, 1):
        finder = _Finder(call, tool, step, healed)
        try:
            try:
                shown = _take(finder, call, tool, step)
            except failed as error:
                if NOT_YET not in str(error) or not unasked:
                    raise
                while unasked:
                    call("request_host", host=unasked.pop())
                shown = _take(finder, call, tool, step)
        except (Mismatch, failed) as error:
            done = f"{number - 1} of {len(steps)} steps were taken"
            why = f"the next one, {describe_step(step)}, failed: {error}"
            what_next = "Go on from here yourself: look at what is shown now."
            return "\n".join([f"[the macro stopped: {done}; {why}]", *healed, what_next])
    return "\n".join([f"[all {len(steps)} steps were taken]", *healed, shown])


def describe_step(step: dict[str, Any]) -> str:
    """A step in a few words."""
    words = [str(step["action"]), *(str(step[key]) for key in ("element", "url") if key in step)]
    return " ".join(words)[:200]


def _take(finder: _Finder, call: Call, tool: str, step: dict[str, Any]) -> str:
    arguments = {key: value for key, value in step.items() if key not in _OURS}
    if "element" in step:
        arguments["ref"] = finder.find(str(step["element"]))
    if "drop_on" in step:
        arguments["to"] = finder.find(str(step["drop_on"]))
    shown = call(tool, **arguments)
    if expected := str(step.get("expect", "")):
        came = call(tool, action="wait", text=expected, seconds=WAIT_S)
        if _HAS_NOT_COME in came:
            raise Mismatch(f"it was done, but {expected!r} is not shown afterwards")
        shown = f"{shown}\n{came}"
    return shown


class _Finder:
    """Finds the elements of one step. What it takes in the place of another is noted in
    `healed`."""

    def __init__(self, call: Call, tool: str, step: dict[str, Any], healed: list[str]) -> None:
        self._call = call
        self._tool = tool
        self._within = str(step.get("within", ""))
        self._healed = healed

    def find(self, selector: str) -> str:
        """The ref of the one element that this names. Raises Mismatch where there is none, or
        several."""
        role, name = parse_selector(selector)
        found = self._list(role, name)
        if not _choose_exact(found, role, name) and name:
            self._call(self._tool, action="wait", text=_searched(name), seconds=WAIT_S)
            found = self._list(role, name)
        exact = _choose_exact(found, role, name)
        if len(exact) > 1:
            raise Mismatch(f"{len(exact)} elements are {selector}: add `within`")
        if exact:
            return exact[0].ref
        other = _choose_like(self._list(role, ""), name)
        if other is None:
            raise Mismatch(f"nothing is {selector}" + (f" in {self._within}" * bool(self._within)))
        self._healed.append(f"{other} was taken for {selector}")
        return other.ref

    def _list(self, role: str, name: str) -> list[Shown]:
        said = self._call(self._tool, action="find", role=role, text=_searched(name))
        found = [shown for line in said.splitlines() if (shown := parse_found(line)) is not None]
        return [each for each in found if self._within in each.path]


def _choose_exact(found: list[Shown], role: str, name: str) -> list[Shown]:
    return [each for each in found if (each.role, each.name) == (role, name)]


def _choose_like(found: list[Shown], name: str) -> Shown | None:
    """The one whose name is most like this one, where it is clear which; those with the same name
    are none."""
    rated = sorted(
        (
            (SequenceMatcher(None, name.casefold(), each.name.casefold()).ratio(), n)
            for n, each in enumerate(found)
        ),
        reverse=True,
    )
    if not rated or rated[0][0] < ALIKE:
        return None
    if len(rated) > 1 and rated[0][0] - rated[1][0] < CLEAR:
        return None
    return found[rated[0][1]]


def parse_selector(selector: str) -> tuple[str, str]:
    """The role and the name. Raises Mismatch."""
    found = _SELECTOR.fullmatch(selector.strip())
    if found is None:
        raise Mismatch(f'{selector!r} names no element: write it as it is shown, button "Save"')
    return found["role"], _unquote(found["name"] or '""')


def parse_found(line: str) -> Shown | None:
    """The element of a line that `find` shows; None for another line."""
    found = _FOUND.fullmatch(line.strip())
    if found is None:
        return None
    return Shown(found["ref"], found["role"], _unquote(found["name"] or '""'), found["more"])


def _unquote(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted[1:-1])


def _searched(name: str) -> str:
    """The words of a name by which it is looked for: one that is long is shown cut."""
    return name.removesuffix("…")
