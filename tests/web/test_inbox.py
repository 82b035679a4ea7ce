"""The inbox: what failed, and what finished while nobody was waiting."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from deskhand.config.clock import SystemClock
from deskhand.testing.scripted import ScriptedModel
from deskhand.types import events as e
from deskhand.types.commit import Commit
from deskhand.types.identity import Address, Principal
from deskhand.types.messages import Message, Text

from .served import Client, Served, serving

OWNER = Principal("owner", ("owner",))
EVE = Principal("eve", ("member",))
NOW = SystemClock().now()
DONE = e.TurnEnded("done")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path, ScriptedModel()) as found:
        await found.people.add_user("eve", "member")
        yield found


async def turn(
    served: Served,
    session: str,
    who: Principal,
    took_s: float = 1.0,
    ended: e.TurnEnded = DONE,
    at: float = NOW,
) -> None:
    """One more turn of this session."""
    store = served.app.store
    n = (await store.heads()).get(session, (0, b""))[0] + 1
    asked = Message("user", (Text(f"asked by {who.id}"),))
    answer = Message("assistant", (Text(f"the answer\nto  {who.id}"),))
    began = e.MessageReceived(0, who, Address("web"), asked)
    await store.commit(Commit(session, n, at, (began,)))
    replied = e.ModelReplied(answer, "m")
    await store.commit(Commit(session, n + 1, at + took_s, (replied, ended)))


async def items(client: Client, **page: Any) -> list[dict[str, Any]]:
    query = "&".join(f"{name}={value}" for name, value in page.items())
    return list((await client.get(f"/api/inbox?{query}"))["items"])


async def test_what_a_person_missed_is_listed(served: Served) -> None:
    session = "default/web:owner:talk"
    job = Principal("job:tea", kind="clock", on_behalf_of="owner")
    await turn(served, session, OWNER)
    await turn(served, session, OWNER, took_s=61.0)
    await turn(served, session, OWNER, ended=e.TurnEnded("failed", said="The key is wrong."))
    await turn(served, session, OWNER, took_s=90.0, ended=e.TurnEnded("stopped"))
    await turn(served, session, job)
    await turn(served, "default/subagent:1", Principal("default", kind="agent"))
    found = await items(served.owner)
    assert [(one["kind"], one["by"], one["text"]) for one in found] == [
        ("finished", "agent", "the answer to default"),
        ("finished", "job", "the answer to job:tea"),
        ("failed", "you", "The key is wrong."),
        ("finished", "you", "the answer to owner"),
    ], "not what was answered at once, or stopped by them"
    assert (found[-1]["took_s"], found[-1]["name"]) == (61.0, "talk")
    assert found[-1]["title"] == "asked by owner"


async def test_what_was_seen_is_not_new(served: Served) -> None:
    session = "default/web:owner:talk"
    for n in range(7):
        await turn(served, session, OWNER, took_s=61.0 + n)
    page = await served.owner.get("/api/inbox?limit=3")
    assert [one["took_s"] for one in page["items"]] == [67.0, 66.0, 65.0]
    assert all(one["is_new"] for one in page["items"])
    counted = await served.owner.get("/api/inbox/count")
    assert counted["unseen"] == 7
    since = f"/api/inbox/count?after={counted['seq']}"
    assert await served.owner.get(since) == {"unseen": 0, "seq": counted["seq"]}
    await turn(served, session, OWNER, ended=e.TurnEnded("failed"))
    assert (await served.owner.get(since))["unseen"] == 1
    rest = await served.owner.get(f"/api/inbox?limit=30&before={page['more']}")
    assert [one["took_s"] for one in rest["items"]] == [64.0, 63.0, 62.0, 61.0]
    assert "more" not in rest

    third = page["items"][2]["seq"]
    assert await served.owner.ask("PUT", "/api/inbox/seen", {"seq": third}) == (200, {"seq": third})
    assert [one["is_new"] for one in await items(served.owner)] == [True] * 3 + [False] * 5
    assert (await served.owner.get("/api/inbox/count"))["unseen"] == 3
    earlier = {"seq": third - 1}
    assert (await served.owner.ask("PUT", "/api/inbox/seen", earlier))[1] == {"seq": third}
    assert (await served.owner.ask("PUT", "/api/inbox/seen", {"seq": -1}))[0] == 400


async def test_each_person_has_their_own(served: Served) -> None:
    _, eve = await served.token("eve")
    hers = Principal("job:hers", kind="clock", on_behalf_of="eve")
    await turn(served, "default/web:eve:hers", EVE, took_s=100.0)
    await turn(served, "default/web:eve:hers", hers)
    await turn(served, "default/web:owner:his", OWNER, took_s=100.0)
    await turn(served, "default/subagent:2", Principal("default", kind="agent"))
    assert [one["by"] for one in await items(eve)] == ["job", "you"]
    assert [one["by"] for one in await items(served.owner)] == ["agent", "you"]
    await eve.ask("PUT", "/api/inbox/seen", {"seq": 10_000})
    assert (await eve.get("/api/inbox/count"))["unseen"] == 0
    assert (await served.owner.get("/api/inbox/count"))["unseen"] == 2
    await served.people.remove_user("eve")
    await served.people.add_user("eve", "member")
    _, again = await served.token("eve")
    counted = await again.get("/api/inbox/count")
    assert counted["unseen"] == 2, "somebody else of that name"


async def test_what_is_old_is_in_its_conversation_alone(served: Served) -> None:
    session = "default/web:owner:talk"
    await turn(served, session, OWNER, took_s=90.0, at=NOW - 15 * 24 * 3600.0)
    await turn(served, session, OWNER, took_s=91.0)
    assert [one["took_s"] for one in await items(served.owner)] == [91.0]
