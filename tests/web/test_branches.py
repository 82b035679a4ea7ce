"""The family of a conversation: who is told of which branch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deskhand.types.commit import Commit
from deskhand.types.events import Branched
from deskhand.types.identity import Principal
from deskhand.web.branches import MAX_BRANCHES

from .served import Client, Served, serving
from .test_guard import problem
from .test_lookup import settled

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


async def chat(client: Client, name: str, text: str) -> None:
    status, _ = await client.ask("POST", f"/api/chat/{name}", {"message": text})
    assert status == 200


async def branch(client: Client, name: str, at_n: int) -> str:
    status, made = await client.ask("POST", f"/api/sessions/{name}/branch", {"at_n": at_n})
    assert status == 201
    return str(made["name"])


async def last_event(client: Client, name: str) -> int:
    return int((await client.get(f"/api/sessions/{name}/log"))[-1]["n"])


async def family(client: Client, name: str) -> list[dict[str, Any]]:
    found = await client.get(f"/api/sessions/{name}/branches")
    assert found["more"] is False
    return list(found["branches"])


async def test_a_family_is_one_list(served: Served) -> None:
    me = served.owner
    await chat(me, "trip", "Where is it warm in May?")
    first = await last_event(me, "trip")
    assert [each["name"] for each in await family(me, "trip")] == ["trip"]
    await chat(me, "trip", "And in June?")
    sea = await branch(me, "trip", first)
    await chat(me, sea, "Near   the sea")
    deeper = await branch(me, sea, await last_event(me, sea))
    await me.ask("PATCH", f"/api/sessions/{deeper}", {"archived": True, "title": "Boats"})
    path = f"/api/sessions/{deeper}/branches"
    told = await settled(me, path, lambda told: told["branches"][-1]["archived"])
    found = told["branches"]
    assert told["more"] is False
    assert [(each["name"], each["origin"], each["title"]) for each in found] == [
        ("trip", "", "Where is it warm in May?"),
        (sea, "trip", "Where is it warm in May? (2)"),
        (deeper, sea, "Boats"),
    ]
    assert [(each["from_n"], each["turn"]) for each in found[:2]] == [(0, 0), (first, 1)]
    assert [(each["after"], each["words"]) for each in found] == [
        ("", "Where is it warm in May?"),
        ("Where is it warm in May?", "Near the sea"),
        ("Near the sea", ""),
    ]
    assert found[2]["turn"] == 2
    assert [each["archived"] for each in found] == [False, False, True]
    assert [each["current"] for each in found] == [False, False, True]
    assert all(each["at"] > 0 for each in found)
    await me.ask("DELETE", f"/api/sessions/{sea}")
    assert [each["name"] for each in await family(me, "trip")] == ["trip"]
    assert [(each["name"], each["origin"]) for each in await family(me, deeper)] == [(deeper, "")]


async def test_anothers_branch_is_not_told(served: Served) -> None:
    """Not even that there is one. The owner sees all."""
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    await chat(eve, "hers", "Plant the beans")
    at_n = await last_event(eve, "hers")
    theirs = await branch(served.owner, "default~web:eve:hers", at_n)
    await chat(served.owner, theirs, "kanari: what she must not read")
    await served.owner.ask("PATCH", f"/api/sessions/{theirs}", {"title": "kanari"})
    path = f"/api/sessions/{theirs}/branches"
    await settled(served.owner, path, lambda told: "kanari" in str(told))
    before = await eve.get("/api/sessions/hers/branches")
    assert [each["name"] for each in before["branches"]] == ["hers"]
    assert "kanari" not in str(before) and theirs not in str(before)
    own = await branch(eve, "hers", at_n)
    assert [(each["name"], each["origin"]) for each in await family(eve, "hers")] == [
        ("hers", ""),
        (own, "hers"),
    ]
    names = {each["name"] for each in await family(served.owner, theirs)}
    assert names == {"default~web:eve:hers", theirs, f"default~web:eve:{own}"}
    for name in (theirs, "default~web:owner:none", "none"):
        assert problem(await eve.ask("GET", f"/api/sessions/{name}/branches")) == (404, "not_found")


async def test_a_large_family_is_cut_but_not_where_one_is(served: Served) -> None:
    await chat(served.owner, "trip", "Where is it warm in May?")
    trip, owner = "default/web:owner:trip", Principal("owner", ("owner",))
    for i in range(MAX_BRANCHES):
        begun = Branched(trip, 3, owner, f"Branch {i}")
        name = f"{trip}.{i:03}"
        await served.app.store.commit(Commit(name, 1, 1.0 + i, (begun,), close=True))
    last = f"trip.{MAX_BRANCHES - 1:03}"
    told = await served.owner.get(f"/api/sessions/{last}/branches")
    assert told["more"] and len(told["branches"]) == MAX_BRANCHES
    assert [each["name"] for each in told["branches"][:3]] == ["trip", last, "trip.000"]
    assert [each["name"] for each in told["branches"] if each["current"]] == [last]


async def test_a_secret_is_not_shown_in_half(tmp_path: Path) -> None:
    """Also one that became a secret after it was said, where the line is cut in its middle."""
    value = "canary-of-the-branch-7f51"
    async with serving(tmp_path) as served:
        await chat(served.owner, "keys", "hello")
        other = await branch(served.owner, "keys", await last_event(served.owner, "keys"))
        await chat(served.owner, other, f"{'x' * 70} {value} and more")
        assert (await family(served.owner, other))[1]["words"] == f"{'x' * 70} canary-of{ELLIPSIS}"
    async with serving(tmp_path, environment={"LATE_TOKEN": value}) as served:
        words = (await family(served.owner, other))[1]["words"]
        assert words.startswith("x" * 70) and "canary" not in words
