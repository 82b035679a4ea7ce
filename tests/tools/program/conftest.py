"""The tools of programs, called as an agent on a small model calls them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from deskhand.tools.base import Done
from deskhand.tools.program.run_program import RehearseProgram, RunProgram, survey_files
from deskhand.types.labels import Label
from deskhand.types.messages import Text
from deskhand.types.programs import Purpose, Rehearsed

from ..conftest import Hands, text_of


class Programs:
    """Rehearses programs, and runs them, in the workspace of `hands`."""

    def __init__(self, hands: Hands) -> None:
        self.hands = hands
        self._rehearse, self._run = RehearseProgram("Europe/Berlin"), RunProgram("Europe/Berlin")

    async def rehearse(self, program: str, *answers: str) -> Rehearsed:
        return msgspec.json.decode(text_of(await self.rehearsed(program, *answers)), type=Rehearsed)

    async def rehearsed(self, program: str, *answers: str) -> Done:
        return await self.hands.done(self._rehearse, program=program, answers=answers)

    async def run(self, program: str, came: Rehearsed, *answers: str) -> Done:
        """Do what a rehearsal came to."""
        changes = msgspec.to_builtins(came.changes)
        return await self.hands.done(self._run, program=program, changes=changes, answers=answers)

    async def do(self, program: str) -> Done:
        """Rehearse, and then run."""
        came = await self.rehearse(program)
        assert not came.failed and not came.stopped, came
        return await self.run(program, came)

    async def survey(self, about: str, purpose: Purpose = "change") -> str:
        return await self.hands(survey_files, about=about, purpose=purpose)

    def files(self) -> dict[str, str]:
        """All files of the workspace."""
        found = sorted(path for path in self.hands.folder.rglob("*") if path.is_file())
        return {str(path.relative_to(self.hands.folder)): path.read_text() for path in found}


def label_of(done: Done) -> Label:
    (part,) = done.parts
    assert isinstance(part, Text)
    return part.label


def told(done: Done) -> Any:
    """What a result says as JSON."""
    return msgspec.json.decode(text_of(done))


@pytest.fixture
def programs(hands: Hands) -> Programs:
    return Programs(hands)
