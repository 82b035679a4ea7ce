"""Whose word it is what a process has printed: also that of who wanted it, for it may say its own
command again."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from deskhand.tools.base import Done, Heard, Processes
from deskhand.tools.process import ProcessTool
from deskhand.types.labels import LOCAL, Label
from deskhand.types.process import Process

from .conftest import Hands, OtherHost, text_of

PAGE = Label(source="https://evil.example/")
RUNS = Process(
    "p1", "s", "default", "session", "echo words", "", "running", 0.0, 60.0, label=LOCAL, began=PAGE
)


class Held:
    """Has one process, which has read nothing itself."""

    async def start(self, wanted: object, context: object) -> str:
        return RUNS.id

    async def list_processes(self, session: str) -> list[Process]:
        return [RUNS]

    async def read_new_output(self, id_: str, session: str, wait_s: float) -> Heard:
        return Heard(b"words", 0, 5, label=LOCAL)

    async def read_output(self, id_: str, session: str, at: int | None, size: int) -> Heard:
        return Heard(b"words", 0, 5, label=LOCAL)

    async def send_input(self, id_: str, session: str, typed: bytes, label: Label) -> int:
        return len(typed)

    async def stop(self, id_: str, session: str, by: str) -> str:
        return "words"


@pytest.mark.parametrize("action", ["list", "start", "poll", "write", "log", "kill"])
async def test_what_a_process_prints_is_also_the_word_of_who_wanted_it(
    hands: Hands, action: str
) -> None:
    context = await hands.context()
    host = OtherHost(context.reach.host, processes=cast("Processes", Held()))
    reach = replace(context.reach, host=host)
    given: dict[str, Any] = {
        "action": action,
        "id": "p1",
        "input": "x",
        "command": "echo words",
        "wait_s": 0,
    }
    done = await ProcessTool().run(
        msgspec.Raw(msgspec.json.encode(given)), replace(context, reach=reach)
    )
    assert isinstance(done, Done) and "words" in text_of(done)
    assert [part.label.source for part in done.parts] == [PAGE.source]
