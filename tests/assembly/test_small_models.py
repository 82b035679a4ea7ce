"""An agent on a small model, through the whole runtime: a program is rehearsed, and a loss that
nobody meant is asked about."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Request
from deskhand.policy.unnamed_files import find_unrequested_loss
from deskhand.runtime.app import OWNER, Parts, open_app
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import ApprovalAsked, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.types.programs import FileChange, RunArguments, parse_rehearsal


class Programmer:
    """A model that rehearses a program, and does what it came to."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.tools: set[str] = set()

    def __call__(self, request: Request) -> Message:
        self.tools |= {tool.name for tool in request.tools}
        results = [
            part
            for shown in request.messages
            for part in shown.message.parts
            if isinstance(part, ToolResult)
        ]
        if not results:
            return self._call("rehearse_program", {"program": self.program})
        came = parse_rehearsal(results[-1].text)
        if len(results) > 1 or came is None:
            return say("done")
        return self._call(
            "run_program", {"program": self.program, "changes": msgspec.to_builtins(came.changes)}
        )

    @staticmethod
    def _call(name: str, arguments: dict[str, object]) -> Message:
        return say("", ToolCall(f"c-{name}", name, msgspec.Raw(msgspec.json.encode(arguments))))


async def turn(
    home: Path, model: str, said: str, program: str
) -> tuple[ApprovalAsked | TurnEnded, Programmer]:
    config = msgspec.convert(
        {
            "defaults": {"models": [model], "workspace": str(home / "work")},
            "providers": {"weak": {"tools": "fenced"}},
        },
        Config,
    )
    programmer = Programmer(program)
    scripted = ScriptedModel(programmer)
    async with (
        open_app(Settings(Home(home), config), Parts(lambda name: scripted)) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        (home / "work" / "config.ini").write_text("port=1\n")
        body = Said(Message("user", (Text(said),)))
        receipt = await app.door.submit(
            Inbound("1", Address("terminal", chat=said), "owner", 0.0, body)
        )
        async with aclosing(app.door.follow(receipt.session, OWNER, receipt.after)) as items:
            async for item in items:
                event = getattr(item, "event", None)
                if isinstance(event, ApprovalAsked | TurnEnded):
                    tasks.cancel_scope.cancel()
                    return event, programmer
    raise AssertionError("the turn did not end")


async def test_a_loss_that_nobody_meant_is_asked_about(tmp_path: Path) -> None:
    event, _ = await turn(tmp_path, "weak/m", "tidy up please", "delete('config.ini')")
    assert isinstance(event, ApprovalAsked) and "deletes config.ini with its 1 line" in event.reason
    assert (tmp_path / "work" / "config.ini").read_text() == "port=1\n"


async def test_one_that_was_meant_is_not(tmp_path: Path) -> None:
    event, _ = await turn(tmp_path, "weak/m", "delete the config", "delete('config.ini')")
    assert isinstance(event, TurnEnded) and event.reason == "done"
    assert not (tmp_path / "work" / "config.ini").exists()


async def test_what_loses_nothing_is_done(tmp_path: Path) -> None:
    program = "replace('config.ini', 'port=1', 'port=2')\nwrite('new.txt', 'x')"
    event, programmer = await turn(tmp_path, "weak/m", "set the port to 2", program)
    assert isinstance(event, TurnEnded) and event.reason == "done"
    assert (tmp_path / "work" / "config.ini").read_text() == "port=2\n"
    assert {"survey_files", "rehearse_program", "run_program", "undo_change"} <= programmer.tools


async def test_strong_models_have_no_need_of_programs(tmp_path: Path) -> None:
    _, programmer = await turn(tmp_path, "strong/m", "set the port to 2", "say(1)")
    assert not {"survey_files", "rehearse_program", "run_program"} & programmer.tools


DELETED = FileChange("docs/old.tmp", "deleted", loses="deletes docs/old.tmp with its 2 lines")
OVERWRITTEN = FileChange("diary.md", "changed", loses="overwrites diary.md and its 9 lines")
HARMLESS = FileChange("diary.md", "changed")


@pytest.mark.parametrize(
    ("changes", "said", "loss"),
    [
        ((HARMLESS,), "tidy up", ""),
        ((DELETED,), "tidy up", DELETED.loses),
        ((DELETED,), "delete old.tmp", ""),
        ((DELETED,), "remove all tmp files", ""),
        ((DELETED,), "throw away what is in docs", ""),
        ((DELETED,), "delete the letters", DELETED.loses),
        ((DELETED,), "what does old.tmp say?", DELETED.loses),
        ((OVERWRITTEN,), "write a poem into diary.md", OVERWRITTEN.loses),
        ((OVERWRITTEN,), "replace my diary by a poem", ""),
        ((OVERWRITTEN,), "replace the poem", OVERWRITTEN.loses),
        ((OVERWRITTEN, DELETED), "do it", f"{OVERWRITTEN.loses}, and 1 more like it"),
        ((OVERWRITTEN, DELETED), "overwrite the diary", DELETED.loses),
    ],
)
def test_what_is_meant(changes: tuple[FileChange, ...], said: str, loss: str) -> None:
    given = msgspec.json.encode(RunArguments("x", changes))
    assert find_unrequested_loss("run_program", given, said) == loss
    assert (
        find_unrequested_loss("shell", given, said)
        == ""
        == find_unrequested_loss("run_program", b"{", said)
    )
