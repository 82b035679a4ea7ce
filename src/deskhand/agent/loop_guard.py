"""Notices a model that goes astray, and what it is then told. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..types.events import Hinted, Turn
from ..types.limits import Limits

SAME_HINT = 3
SAME_STOP = 5
ALTERNATING_STOP = 8
WRAP_UP_STEPS = 3


def detect_loop(marks: Sequence[bytes]) -> Literal["hint", "stop"] | None:
    """`hint` when the last call had the same arguments and result three times running, `stop` at
    five, and also when two calls took turns for eight."""
    if not marks:
        return None
    same = 0
    for mark in reversed(marks):
        if mark != marks[-1]:
            break
        same += 1
    if same >= SAME_STOP:
        return "stop"
    tail = marks[-ALTERNATING_STOP:]
    turns = [tail[i % 2] for i in range(ALTERNATING_STOP)] if len(tail) == ALTERNATING_STOP else []
    if tail == turns and tail[0] != tail[1]:
        return "stop"
    return "hint" if same == SAME_HINT else None


def make_hints(turn: Turn, limits: Limits, guard: str | None) -> tuple[Hinted, ...]:
    """What the model is to be told with its next call. `guard` is what `detect_loop` said."""
    left = limits.steps - turn.steps
    found = []
    if left <= 0:
        found.append(
            Hinted(
                "final",
                "You have no steps left. Say in words what you did, and what is still open.",
            )
        )
    elif left <= WRAP_UP_STEPS < limits.steps:
        found.append(
            Hinted("wrap_up", f"You have {left} steps left: finish what matters most, then answer.")
        )
    if guard == "hint":
        found.append(
            Hinted(
                "loop",
                "You have made this very call with this very result before. Do something else.",
            )
        )
    if turn.pieces and turn.finish == "length":
        found.append(
            Hinted(
                "continue",
                "Your reply was cut off. Go on exactly where it stopped; repeat nothing.",
            )
        )
    elif turn.empty:
        found.append(Hinted("empty", "Your last reply was empty. Answer in words, or call a tool."))
    return tuple(hint for hint in found if hint.why not in turn.hinted)
