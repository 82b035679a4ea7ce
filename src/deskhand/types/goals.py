"""How the log says that a conversation has a standing goal."""

from __future__ import annotations

GOAL, REACHED, ENDED = "goal", "goal_reached", "goal_ended"
"""The command of a person, and the notes of ours that end what it began."""
GOALS = frozenset({GOAL, REACHED, ENDED})
OFF = "off"
SPENT = "deep_work_spent"
"""The note that what a deep work may use is used up."""


def goal_of(name: str, args: str) -> str:
    """What the goal is from a command of this name on: `off` for none, '' where it stays what it was."""
    if name in (REACHED, ENDED):
        return OFF
    wanted = args.strip()
    return OFF if wanted.lower() == OFF else wanted
