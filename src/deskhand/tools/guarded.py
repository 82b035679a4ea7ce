"""Files that steer us or programs outside the sandbox: a command may write them, but not keep them changed."""

from __future__ import annotations

from typing import Self

import anyio.to_thread

from ..types.errors import ToolError
from .base import Reach

STEERING = ("SYSTEM.md", "AGENT.md", "RULES.md")
HOOKS = ".git/hooks"
"""What git runs outside the sandbox, when a person commits. Its samples are never run."""
_MOST = 100


class Guarded:
    """How these files were before a command. When it is over, nothing that it started is left to change them again."""

    def __init__(self, reach: Reach, before: dict[str, bytes]) -> None:
        self._reach, self._before = reach, before

    @classmethod
    async def of(cls, reach: Reach) -> Self:
        return cls(reach, await anyio.to_thread.run_sync(_contents, reach))

    async def put_back(self) -> str:
        """Undo what the command did to them, and say so; '' when it did nothing."""
        return await anyio.to_thread.run_sync(self._put_back)

    def _put_back(self) -> str:
        after = _contents(self._reach)
        changed = sorted(
            name for name in self._before.keys() | after.keys() if self._before.get(name) != after.get(name)
        )
        said = []
        for name in changed:
            try:
                if name in after:
                    self._reach.files.remove(name, approved=True)
                if name in self._before:
                    self._reach.files.write(name, self._before[name], approved=True)
                said.append(f"\n[{name} is protected, so it was put back; ask the person to change it]")
            except ToolError as error:
                said.append(f"\n[{name} is protected, but could not be put back: {error}]")
        return "".join(said)


def _contents(reach: Reach) -> dict[str, bytes]:
    """What each of them holds; a link or a folder in the place of one counts as something else."""
    found: dict[str, bytes] = {}
    names = list(STEERING)
    try:
        hooks = reach.files.list(HOOKS, _MOST)
        names += [
            f"{HOOKS}/{each.name}" for each in hooks if not each.name.endswith(".sample") and each.name.isprintable()
        ]
    except ToolError:
        pass
    kinds = {each.name: each.kind for each in reach.files.list(".", 100_000) if each.name in STEERING}
    for name in names:
        if name in STEERING and name not in kinds:
            continue
        try:
            found[name] = b"\0link" if kinds.get(name) == "link" else reach.files.read(name)
        except ToolError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                found[name] = b"\0" + str(error).encode()
    return found
