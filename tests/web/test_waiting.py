"""Messages that wait: listed, taken back, and nobody else's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from deskhand.models.base import Item, Request
from deskhand.testing.scripted import ScriptedModel
from deskhand.types import events as e

from .served import Client, Served, serving


class HeldModel:
    """A model that answers when `go` is set."""

    def __init__(self) -> None:
        self.go = anyio.Event()
        self.begun = anyio.Event()
        self._script = ScriptedModel()

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        self.begun.set()
        await self.go.wait()
        async for item in self._script.reply(request):
            yield item


@pytest.fixture
async def held(tmp_path: Path) -> AsyncIterator[tuple[Served, HeldModel]]:
    model = HeldModel()
    async with serving(tmp_path, model) as served:
        yield served, model
        model.go.set()


async def send(client: Client, text: str, when: str = "queue", **more: Any) -> int:
    body = {"text": text, "when": when, **more}
    status, receipt = await client.ask("POST", "/api/sessions/talk/messages", body)
    assert status == 202, receipt
    return int(receipt["inbox_id"])


async def texts(client: Client) -> list[str]:
    return [row["text"] for row in await client.get("/api/sessions/talk/waiting")]


async def test_what_waits_is_listed_and_taken_back(held: tuple[Served, HeldModel]) -> None:
    served, model = held
    owner = served.owner
    await send(owner, "begin", "steer")
    await model.begun.wait()
    assert await owner.get("/api/sessions/talk/waiting") == []
    first = await send(owner, "the first")
    second = await send(owner, "the second")
    rows = await owner.get("/api/sessions/talk/waiting")
    assert [(row["inbox_id"], row["text"], row["when"]) for row in rows] == [
        (first, "the first", "queue"),
        (second, "the second", "queue"),
    ]

    status, _ = await owner.ask("DELETE", f"/api/sessions/talk/waiting/{first}")
    assert status == 202
    assert await texts(owner) == ["the second"], "at once, while the model is still at it"
    for gone in (first, 12345, "x", "²"):
        status, problem = await owner.ask("DELETE", f"/api/sessions/talk/waiting/{gone}")
        assert (status, problem["error"]["code"]) == (409, "not_waiting")

    model.go.set()
    events = await ended(served, "the second")
    said = [one.message.own_text for one in events if isinstance(one, e.MessageReceived)]
    assert said == ["begin", "the second"]
    (taken,) = [one for one in events if isinstance(one, e.MessageDeleted)]
    assert (taken.withdrawn, taken.said) == (first, "the first")
    status, problem = await owner.ask("DELETE", f"/api/sessions/talk/waiting/{second}")
    assert status == 409 and "was read" in problem["error"]["message"]


async def test_what_others_wrote_is_theirs(held: tuple[Served, HeldModel]) -> None:
    served, model = held
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    await send(served.owner, "begin", "steer")
    await model.begun.wait()
    mine = await send(served.owner, "mine")
    session = "default~web:owner:talk"
    status, _ = await eve.ask("GET", f"/api/sessions/{session}/waiting")
    assert status == 404
    status, _ = await eve.ask("DELETE", f"/api/sessions/{session}/waiting/{mine}")
    assert status == 404

    await eve.ask("POST", "/api/sessions/talk/messages", {"text": "hers", "when": "steer"})
    await eve.ask("POST", "/api/sessions/talk/messages", {"text": "hers too", "when": "queue"})
    (row,) = [r for r in await eve.get("/api/sessions/talk/waiting") if r["text"] == "hers too"]
    theirs = "default~web:eve:talk"  # an owner may see it
    assert await served.owner.get(f"/api/sessions/{theirs}/waiting") == []
    status, _ = await served.owner.ask(
        "DELETE", f"/api/sessions/{theirs}/waiting/{row['inbox_id']}"
    )
    assert status == 409
    assert await texts(served.owner) == ["mine"]


async def ended(served: Served, last: str) -> list[e.AnyEvent]:
    """The events of the conversation once this message was answered."""
    found: list[e.AnyEvent] = []

    async def look() -> bool:
        rows = await served.app.store.events("default/web:owner:talk")
        found[:] = [row.event for row in rows]
        said = [one.message.own_text for one in found if isinstance(one, e.MessageReceived)]
        return last in said and isinstance(found[-1], e.TurnEnded)

    with anyio.fail_after(10):
        while not await look():
            await anyio.sleep(0.02)
    return found


async def test_commands_and_folders_are_listed(held: tuple[Served, HeldModel]) -> None:
    served, _ = held
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    of_owner = {row["name"] for row in await served.owner.get("/api/commands")}
    of_eve = {row["name"] for row in await eve.get("/api/commands")}
    assert "document" not in of_owner, "it is for chat programs"
    assert {"stop", "model"} <= of_eve and of_owner - of_eve == {"skills", "restart"}

    assert await served.owner.get("/api/folders") == {"folders": [], "archived": 0}
    for name in ("one", "two"):
        path = f"/api/sessions/{name}"
        assert (await served.owner.ask("PATCH", path, {"folder": "  The  house "}))[0] == 202
    await until_folders(served.owner, [{"name": "The house", "sessions": 2}])
    status, moved = await served.owner.ask("PATCH", "/api/folders/The%20house", {"name": "Home"})
    assert (status, moved) == (200, {"sessions": 2})
    await until_folders(served.owner, [{"name": "Home", "sessions": 2}])
    assert (await eve.get("/api/folders"))["folders"] == []
    for method, body in (("PATCH", {"name": "x"}), ("DELETE", None)):
        assert (await eve.ask(method, "/api/folders/Home", body))[0] == 404
    assert (await served.owner.ask("PATCH", "/api/folders/Home", {"name": " "}))[0] == 400
    assert (await served.owner.ask("DELETE", "/api/folders/Home"))[0] == 200
    await until_folders(served.owner, [])


async def until_folders(client: Client, wanted: list[dict[str, Any]]) -> None:
    with anyio.fail_after(10):
        while (await client.get("/api/folders"))["folders"] != wanted:
            await anyio.sleep(0.02)
