"""Notices an agent that goes round in circles: what it is then told, with the result of its
action."""

from __future__ import annotations

from collections import deque

WINDOW = 15
REPEATED = (3, 5, 8)
"""So often the same action among the last WINDOW is worth a word."""
UNCHANGED = 4
REVISITED = 3


class RepeatWatch:
    """The last actions in one browser or desktop."""

    def __init__(self) -> None:
        self._actions: deque[str] = deque(maxlen=WINDOW)
        self._states: deque[str] = deque(maxlen=WINDOW)
        self._failed = ""

    def add(self, action: str, state: str, *, failed: bool = False) -> list[str]:
        """Take in an action and what is shown after it. Returns what to say of it."""
        said = []
        if action == self._failed:
            said.append("the very same has failed just before: do something else")
        self._failed = action if failed else ""
        self._actions.append(action)
        times = self._actions.count(action)
        if times in REPEATED:
            said.append(f"this was done {times} times in the last {len(self._actions)} steps")
        before = [*self._states]
        self._states.append(state)
        unchanged = 0
        for each in reversed(before):
            if each != state:
                break
            unchanged += 1
        if unchanged >= UNCHANGED and unchanged % UNCHANGED == 0:
            said.append(f"nothing has changed for {unchanged} steps: try another way, or say so")
        elif unchanged == 0 and before.count(state) == REVISITED - 1:
            said.append(f"this is shown for the {REVISITED}rd time: you go round in circles")
        return said
