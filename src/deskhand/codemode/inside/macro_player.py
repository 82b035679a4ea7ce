"""Plays a macro: the steps with which something was done in a browser or on the desktop, without a
model. Elements are found by role and name as they are shown now."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

WAIT_S = 10
"""So long an element, or the words that are expected, may take to come."""
MORE_S = 3
MAX_NAMED = 5
OURS = frozenset({"element", "within", "drop_on", "expect", "host", "fixed"})
"""What of a step is not an argument of the tool."""
_QUOTED = r'"(?:[^"\\]|\\.)*"'
SELECTOR = re.compile(rf"(?P<role>[a-z]+)(?: (?P<name>{_QUOTED}))?")
_FOUND = re.compile(rf"(?P<ref>e\d+) (?P<element>{SELECTOR.pattern})(?: .*)?")
_ESCAPED = re.compile(r"\\(?:u[0-9a-f]{4}|U[0-9a-f]{8}|x[0-9a-f]{2})", re.IGNORECASE)
_HEAD = re.compile(r"\[(?:tab \d+, one of \d+: )?https?://(?:www\.)?(?P<host>[^/:\s\]]+)")
_COUNTED = re.compile(r"\(\d+\)")
HAS_NOT_COME = "has not come in"
NOT_FOLLOWED = "was not followed"
NOT_YET = "is typed or given to this page yet"
ANSWER_IT = "answer it"
"""What the tools say (see `computer.browser.step`)."""

WHAT_NEXT = (
    "The steps before it were taken: do not repeat them. Look at what is shown and go on yourself, "
    "or play the rest from a later step (first_step)."
)


class Mismatch(Exception):
    """What is shown is not what the macro expects."""


Call = Callable[..., str]


def play_macro(
    call: Call, failed: type[Exception], tool: str, steps: list[dict[str, Any]], first: int = 1
) -> str:
    """Take these steps with this tool, which raises `failed`, from the step number `first` on.
    Returns what was done and what the last step showed; where one cannot be taken, which and
    why."""
    player = _Player(call, tool)
    for number in range(first, len(steps) + 1):
        step = steps[number - 1]
        try:
            player.take(step, failed)
        except (Mismatch, failed) as error:
            stopped = f"[the macro stopped at step {number} of {len(steps)}, {describe_step(step)}]"
            why = f"It was done, but then: {error}" if player.is_done else str(error)
            return "\n".join([stopped, why, *player.healed, WHAT_NEXT])
    return "\n".join([f"[all {len(steps)} steps were taken]", *player.healed, player.shown])


def describe_step(step: dict[str, Any]) -> str:
    """A step in a few words."""
    words = [str(step["action"]), *(str(step[key]) for key in ("element", "url") if key in step)]
    return " ".join(words)[:200]


class _Player:
    """Takes one step after the other. `shown` is what the last one showed, `is_done` whether the
    last one was done, `healed` what was taken in the place of something else."""

    def __init__(self, call: Call, tool: str) -> None:
        self._call = call
        self._tool = tool
        self._asked: set[str] = set()
        self.shown = ""
        self.is_done = False
        self.healed: list[str] = []

    def take(self, step: dict[str, Any], failed: type[Exception]) -> None:
        """Raises Mismatch, and what the tool raises."""
        self.is_done = False
        arguments = {key: value for key, value in step.items() if key not in OURS}
        if "element" in step:
            arguments["ref"] = self._find(step, "element")
        if "drop_on" in step:
            arguments["to"] = self._find(step, "drop_on")
        try:
            self.shown = self._call(self._tool, **arguments)
        except failed as error:
            host = str(step.get("host", ""))
            if NOT_YET not in str(error) or not host or host in self._asked:
                raise
            self._asked.add(host)
            self._call("request_host", host=host)
            self.shown = self._call(self._tool, **arguments)
        self.is_done = True
        self._check(str(step.get("expect", "")))

    def _check(self, expected: str) -> None:
        for note in _list_notes(self.shown):
            if NOT_FOLLOWED in note or HAS_NOT_COME in note:
                raise Mismatch(note)
        if not expected:
            return
        came = self._call(self._tool, action="wait", text=expected, seconds=WAIT_S)
        notes = _list_notes(came)
        if any(HAS_NOT_COME in note or ANSWER_IT in note for note in notes):
            raise Mismatch(f"{expected!r} is not shown")
        self.shown = f"{self.shown}\n{came}"

    # Elements

    def _find(self, step: dict[str, Any], key: str) -> str:
        """The ref of the one element that this step names. Raises Mismatch."""
        wanted = str(step[key])
        role, name = parse_selector(wanted)
        within = str(step.get("within", "")) if key == "element" else ""
        for attempt in range(3):
            said = self._call(
                self._tool, action="find", role=role, text=_plain_part(name), within=within
            )
            self._check_host(said, str(step.get("host", "")))
            exact = [ref for ref, element in _list_found(said) if element == wanted]
            if len(exact) == 1:
                return exact[0]
            if exact:
                raise Mismatch(f"{len(exact)} elements are {wanted}: `within` tells them apart")
            if attempt == 0 and name:
                self._call(self._tool, action="wait", text=_plain_part(name), seconds=WAIT_S)
            elif attempt < 2:
                self._call(self._tool, action="wait", seconds=MORE_S)
        return self._heal(step, wanted, within)

    def _heal(self, step: dict[str, Any], wanted: str, within: str) -> str:
        """The ref of the one element whose name has the same words, written otherwise. Raises
        Mismatch."""
        beside = f" beside {within!r}" if within else ""
        role, name = parse_selector(wanted)
        words = _words(name)
        if not words or "fixed" in step:
            raise Mismatch(f"nothing is {wanted}{beside}")
        said = self._call(self._tool, action="find", role=role, text="", within=within)
        found = _list_found(said)
        same = [(ref, each) for ref, each in found if _words(parse_selector(each)[1]) == words]
        if len(same) == 1 and not any(line.startswith("… ") for line in said.splitlines()):
            ref, element = same[0]
            self.healed.append(f"{element} was taken for {wanted}")
            return ref
        like = [each for _, each in found if {*_words(parse_selector(each)[1])} & {*words}]
        there = f"; there is {', '.join(like[:MAX_NAMED])}" if like else ""
        raise Mismatch(f"nothing is {wanted}{beside}{there}")

    def _check_host(self, said: str, host: str) -> None:
        head = _HEAD.match(said)
        here = head["host"] if head is not None else ""
        if host and here != host.removeprefix("www."):
            raise Mismatch(f"the page is one of {here or 'no host'}, and not of {host}")


def _words(name: str) -> list[str]:
    """The words of a name, without case, signs and counts in brackets: where they are the same, it
    is the same thing."""
    return re.findall(r"[\w']+", _COUNTED.sub(" ", name).casefold())


def parse_selector(selector: str) -> tuple[str, str]:
    """The role and the name. Raises Mismatch."""
    found = SELECTOR.fullmatch(selector.strip())
    if found is None:
        raise Mismatch(f'{selector!r} names no element: write it as it is shown, as button "Save"')
    return found["role"], (found["name"] or '""')[1:-1]


def _list_found(said: str) -> list[tuple[str, str]]:
    """The refs in what `find` says, each with its role and name."""
    found = (_FOUND.fullmatch(line.strip()) for line in said.splitlines())
    return [(each["ref"], each["element"]) for each in found if each is not None]


def _list_notes(said: str) -> list[str]:
    """What the tool itself says, in brackets behind the first line, which has the title of the
    page: other words of pages never stand so."""
    lines = said.splitlines()[1:]
    return [line for line in lines if line.startswith("[") and line.endswith("]")]


def _plain_part(name: str) -> str:
    """Words of a name by which it is looked for: without what is cut or written out."""
    parts = re.split("…", _ESCAPED.sub("…", name))
    return max((re.sub(r"\\(.)", r"\1", part) for part in parts), key=len)
