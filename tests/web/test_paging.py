"""Lists in pages: each person turns their own, whatever comes meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from deskhand.testing.scripted import ScriptedModel
from deskhand.types import events as e
from deskhand.types.commit import Commit
from deskhand.types.messages import Message, Text, Usage

from .served import Client, Served, serving
from .test_guard import problem
from .test_lookup import ended, settled
from .test_sockets import act, acting


async def pages(client: Client, path: str, field: str, between: Any = None) -> list[Any]:
    """All of a list, page by page. `between` is done before each next one."""
    found = list[Any]()
    more = ""
    while True:
        page = await client.get(f"{path}{'&' if '?' in path else '?'}limit=3{more}")
        found += page[field]
        if page.get("more") is None:
            return found
        more = f"&before={quote(str(page['more']))}"
        if between:
            await between()


async def talk(client: Client, name: str, text: str) -> None:
    assert (await client.ask("POST", f"/api/chat/{name}", {"message": text}))[0] == 200


async def test_conversations_and_what_is_found_in_pages(served: Served) -> None:
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    for n in range(8):
        await talk(served.owner, f"n{n}", f"the {'RIVER' if n % 2 else 'river'} number {n}")
    await talk(eve, "hers", "another river")
    made = 0

    async def more() -> None:
        nonlocal made
        made += 1
        await talk(served.owner, f"late{made}", "a late river")

    whole = [f"n{n}" for n in range(7, -1, -1)]
    listed = [row["name"] for row in await pages(served.owner, "/api/sessions", "sessions", more)]
    assert listed == ["default~web:eve:hers", *whole]
    titled = [
        row["name"]
        for row in await pages(served.owner, "/api/sessions?title=River+number", "sessions", more)
    ]
    assert titled == whole
    assert [row["name"] for row in await pages(eve, "/api/sessions", "sessions")] == ["hers"]
    assert [row["name"] for row in await pages(eve, "/api/sessions?title=river", "sessions")] == [
        "hers"
    ]
    mine = await served.owner.get("/api/sessions?name=n3&brief=true")
    assert [(row["name"], row["title"], row["messages"]) for row in mine["sessions"]] == [
        ("n3", "the RIVER number 3", 0)
    ]
    assert (await eve.get("/api/sessions?name=default~web:owner:n3"))["sessions"] == []
    stolen = (await served.owner.get("/api/sessions?limit=1"))["more"]
    assert [
        row["name"] for row in (await eve.get(f"/api/sessions?before={quote(stolen)}"))["sessions"]
    ] in (
        [],
        ["hers"],
    )
    assert problem(await eve.ask("GET", "/api/sessions?before=soon")) == (400, "bad_request")

    hits = await served.owner.get("/api/search?q=river&order=latest&limit=100")
    turned = list[Any]()
    before = ""
    while page := await served.owner.get(f"/api/search?q=river&order=latest&limit=3{before}"):
        turned = [*turned, *page]
        before = f"&before={page[-1]['seq']}"
        await more()
    assert turned == hits and {hit["seq"] for hit in hits} == {hit["seq"] for hit in turned}
    assert {
        hit["name"] for hit in await eve.get(f"/api/search?q=river&order=latest&before={2**60}")
    } == {"hers"}


async def test_a_log_in_pages_and_what_amends_it(served: Served) -> None:
    for words in ("one", "two", "three"):
        await talk(served.owner, "talk", words)
    log = await settled(served.owner, "/api/sessions/talk/log", ended(3))
    first = next(each["n"] for each in log if each["event"]["type"] == "turn_ended")
    assert (await served.owner.ask("POST", "/api/sessions/talk/rewind", {"to_n": first}))[0] == 202
    log = await settled(
        served.owner, "/api/sessions/talk/log", lambda log: log[-1]["event"]["type"] == "compacted"
    )
    joined = list[Any]()
    while page := await served.owner.get(f"/api/sessions/talk/log?after={len(joined)}&limit=4"):
        assert len(page) <= 4
        joined += page
    assert joined == log
    amended = await served.owner.get("/api/sessions/talk/amendments")
    assert [each["event"]["type"] for each in amended] == ["undone"]
    assert await served.owner.get(f"/api/sessions/talk/amendments?after={amended[0]['n']}") == []
    for last, after in ((5, 0), (5, len(log) - 2), (10_000, 3)):
        url = f"{served.url}/api/sessions/talk/events?after={after}&last={last}"
        async with served.http.get(url, headers=served.owner.headers) as stream:
            async for line in stream.content:
                if line.startswith(b"id: "):
                    assert int(line[4:]) == max(after, len(log) - last, 0) + 1
                    break
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    for path in ("log?limit=4", "amendments", "events?last=5"):
        assert problem(await eve.ask("GET", f"/api/sessions/default~web:owner:talk/{path}")) == (
            404,
            "not_found",
        )


async def test_activity_in_pages(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(acting), (act,)) as served:
        await talk(served.owner, "n", "do it")
        ask = (await served.owner.get("/api/approvals"))[0]
        assert (ask["name"], ask["key"]) == ("n", "default/web:owner:n")
        assert (
            await served.owner.ask(
                "POST", f"/api/sessions/n/asks/{ask['ask_id']}", {"choice": "always"}
            )
        )[0] == 202
        await settled(served.owner, "/api/sessions/n/log", ended(1))
        for n in range(5):
            await talk(served.owner, f"n{n}", "do it")
        whole = (await served.owner.get("/api/activity?limit=100"))["events"]
        assert len(whole) >= 10
        found = list[Any]()
        more = ""
        while True:
            page = await served.owner.get(f"/api/activity?limit=3{more}")
            found = [*page["events"], *found]
            await talk(served.owner, "meanwhile", "do it")
            if page.get("more") is None:
                break
            more = f"&before={page['more']}"
        assert found == whole, (
            "a result names its tool and how long it took, where its call is on another page too"
        )
        await served.people.add_user("eve", "member")
        _, eve = await served.token("eve")
        assert (await eve.get("/api/activity"))["events"] == []


async def test_a_conversation_that_begins_with_a_command_can_be_read(served: Served) -> None:
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    for n, said in enumerate(("/help", "/status", "/nonsense")):
        assert (await served.owner.ask("POST", f"/api/sessions/c{n}/messages", {"text": said}))[
            0
        ] == 202
        log = await served.owner.get(f"/api/sessions/c{n}/log")
        assert [each["event"]["type"] for each in log] == ["command_run"], said
        assert problem(await eve.ask("GET", f"/api/sessions/default~web:owner:c{n}/log")) == (
            404,
            "not_found",
        )
    await talk(served.owner, "c0", "and now this")
    listed = {
        row["name"]: row["title"] for row in (await served.owner.get("/api/sessions"))["sessions"]
    }
    assert listed == {"c0": "and now this", "c1": "", "c2": ""}
    assert (await eve.get("/api/sessions"))["sessions"] == []


async def test_a_branch_tells_itself_apart_and_keeps_its_times(served: Served) -> None:
    await talk(served.owner, "talk", "The river")
    await talk(served.owner, "talk", "and the tent")
    log = await settled(served.owner, "/api/sessions/talk/log", ended(2))
    said = [
        each["at"] for each in log if each["event"]["type"] in ("message_received", "model_replied")
    ]
    one = (await served.owner.ask("POST", "/api/sessions/talk/branch", {"at_n": len(log)}))[1]
    await talk(served.owner, one["name"], "in the branch")
    log = await settled(served.owner, f"/api/sessions/{one['name']}/log", ended(1))
    assert log[0]["event"]["times"] == said
    two = (
        await served.owner.ask("POST", f"/api/sessions/{one['name']}/branch", {"at_n": len(log)})
    )[1]
    later = (await served.owner.get(f"/api/sessions/{two['name']}/log"))[0]["event"]["times"]
    own = [
        each["at"] for each in log if each["event"]["type"] in ("message_received", "model_replied")
    ]
    assert later == [*said, *own]
    titles = {
        row["name"]: row["title"] for row in (await served.owner.get("/api/sessions"))["sessions"]
    }
    assert titles == {
        "talk": "The river",
        one["name"]: "The river (2)",
        two["name"]: "The river (3)",
    }


async def test_what_was_said_elsewhere_used_nothing_here(served: Served) -> None:
    await talk(served.owner, "one", "hello")
    before = await served.owner.get("/api/usage")
    told = Message("assistant", (Text("It was said long ago."),))
    dear = e.ModelReplied(told, "unknown/dear", "stop", Usage(70, 30))
    events = (e.ModelReplied(told, "", "stop"), dear)
    await served.app.store.commit(
        Commit("default/web:owner:moved", 1, 1_760_000_000.0, events, close=True)
    )
    used = await served.owner.get("/api/usage")
    assert [line["id"] for line in used["models"]] == ["unknown/dear", "scripted/echo"]
    assert used["total"]["api_calls"] == before["total"]["api_calls"] + 1
    assert (used["total"]["cost"], used["total"]["known_cost"]) == (None, before["total"]["cost"])
    assert (await served.owner.get("/api/auth/me"))["name"] == "owner"
