"""The guards of an agent on a small model, through the whole runtime: a file that nobody named is asked about."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import anyio
import msgspec

from deskhand.models.base import Request
from deskhand.runtime.app import OWNER, Parts, open_app
from deskhand.runtime.config import Config, Home, Settings
from deskhand.runtime.small import names_in
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.events import ApprovalAsked, TurnEnded
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text, ToolCall


def script(request: Request) -> Message:
    if request.messages[-1].message.role == "tool":
        return say("done")
    arguments = msgspec.json.encode({"path": "config.ini", "content": "x"})
    return say("", ToolCall("c1", "write_file", msgspec.Raw(arguments)))


async def turn(home: Path, model: str, said: str) -> tuple[ApprovalAsked | TurnEnded, Request]:
    config = msgspec.convert(
        {"defaults": {"models": [model], "workspace": str(home / "work")}, "providers": {"weak": {"tools": "fenced"}}},
        Config,
    )
    scripted = ScriptedModel(script)
    parts = Parts(lambda name: scripted)
    async with open_app(Settings(Home(home), config), parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        (home / "work" / "config.ini").write_text("port=1\n")
        body = Said(Message("user", (Text(said),)))
        receipt = await app.door.submit(Inbound("1", Address("terminal", chat=said), "owner", 0.0, body))
        async with aclosing(app.door.follow(receipt.session, OWNER, receipt.after)) as items:
            async for item in items:
                event = getattr(item, "event", None)
                if isinstance(event, ApprovalAsked | TurnEnded):
                    tasks.cancel_scope.cancel()
                    return event, scripted.requests[0]
    raise AssertionError("the turn did not end")


async def test_an_unnamed_file_is_asked_about(tmp_path: Path) -> None:
    event, request = await turn(tmp_path, "weak/m", "rename the file")
    assert isinstance(event, ApprovalAsked) and "'config.ini', which nobody named" in event.reason
    assert (tmp_path / "work" / "config.ini").read_text() == "port=1\n"
    assert request.system[-1].splitlines()[-1].startswith("Files here: ")


async def test_a_named_one_is_not(tmp_path: Path) -> None:
    event, _ = await turn(tmp_path, "weak/m", "empty the config")
    assert isinstance(event, TurnEnded) and event.reason == "done"


async def test_strong_models_are_left_alone(tmp_path: Path) -> None:
    event, request = await turn(tmp_path, "strong/m", "rename the file")
    assert isinstance(event, TurnEnded) and event.reason == "done"
    assert "Files here" not in "".join(request.system)


def test_names(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "SOUL.md", ".hidden"):
        (tmp_path / name).touch()
    (tmp_path / "docs").mkdir()
    assert names_in(tmp_path) == "a.txt, b.txt, docs/"
    for n in range(200):
        (tmp_path / f"long_name_{n}").touch()
    assert len(names_in(tmp_path)) <= 300
    assert names_in(tmp_path / "missing") == ""
