"""Notices a model that goes round in circles. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

SAME_HINT, SAME_STOP, ALTERNATING_STOP = 3, 5, 8


def loop_guard(marks: Sequence[bytes]) -> Literal["hint", "stop"] | None:
    """`hint` when the last call had the same arguments and result three times running, `stop` at five, and also when
    two calls took turns for eight."""
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
