"""How the log says that a conversation has a standing goal, and how what goes on by itself is
told."""

from __future__ import annotations

from typing import Literal

import msgspec

GOAL_COMMAND = "goal"
GOAL_REACHED = "goal_reached"
GOAL_ENDED = "goal_ended"
"""The command of a person, and the notes of ours that end what it began."""
GOAL_COMMANDS = frozenset({GOAL_COMMAND, GOAL_REACHED, GOAL_ENDED})
GOAL_OFF = "off"
DEEP_WORK_SPENT = "deep_work_spent"
"""The note that what a deep work may use is used up."""
DEEP_WORK_COMPACTED = "deep_work_compacted"
"""The note with which a deep work that has used much is summed up, and its tokens count anew."""


def parse_goal(name: str, args: str) -> str:
    """What the goal is from a command of this name on: `off` for none, '' where it stays what it
    was."""
    if name in (GOAL_REACHED, GOAL_ENDED):
        return GOAL_OFF
    wanted = args.strip()
    return GOAL_OFF if wanted.lower() == GOAL_OFF else wanted


LongWorkState = Literal[
    "planning", "working", "asking", "blocked", "stopped", "resting", "spent", "done"
]


class LongWork(msgspec.Struct, frozen=True):
    """How a conversation stands that goes on by itself: `done` of `tasks` are done, `doing` is the
    one that is worked on, `used` of `most` tokens are used since it was summed up, `compactions` of
    `max_compactions` times so far. Without `deep` it is no deep work. A `goal`, '' for none, was
    worked on again `round` of `rounds` times."""

    session: str
    state: LongWorkState
    deep: bool
    done: int
    tasks: int
    percent: int
    doing: str
    used: int
    most: int
    goal: str = ""
    goal_used: int = 0
    goal_most: int = 0
    round: int = 0
    rounds: int = 0
    compactions: int = 0
    max_compactions: int = 0

    @property
    def tokens_left(self) -> int:
        """How many tokens it may still use."""
        return max(self.most - self.used, 0)
