"""Looked up across conversations, and going back in one; each person finds only their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.define import tool
from deskhand.types import events as e
from deskhand.types.commit import Change
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, ToolCall, ToolResult
from deskhand.web.session import iter_decisions

from .served import Client, Served, serving
from .test_guard import problem
from .test_sockets import act, acting


async def settled(client: Client, path: str, good: Callable[[Any], bool]) -> Any:
    """What is there once it is as it should be."""
    with anyio.fail_after(20):
        while True:
            status, found = await client.ask("GET", path)
            if status == 200 and good(found):
                return found
            await anyio.sleep(0.02)


def ended(count: int) -> Callable[[Any], bool]:
    return lambda log: sum(each["event"]["type"] == "turn_ended" for each in log) >= count


async def test_search_usage_and_lists(served: Served) -> None:
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    await served.owner.ask("POST", "/api/chat/one", {"message": "the quick brown fox"})
    await eve.ask("POST", "/api/chat/hers", {"message": "a slow brown bear"})
    hits = await served.owner.get("/api/search?q=brown")
    assert {(hit["name"], hit["role"]) for hit in hits} >= {
        ("one", "user"),
        ("default~web:eve:hers", "user"),
    }
    mine = await eve.get("/api/search?q=brow")
    assert {hit["name"] for hit in mine} == {"hers"}
    assert any("\ue000brown\ue001" in hit["excerpt"] for hit in mine)
    assert problem(await eve.ask("GET", "/api/search?q=fox&session=default~web:owner:one")) == (
        404,
        "not_found",
    )
    assert await eve.get("/api/search?q=%22%20OR%20NEAR(") == []
    for filters, count in (
        ("by=me", 1),
        ("by=agent", 1),
        ("agent=default", 2),
        ("agent=nobody", 0),
        ("since=1&archived=false", 2),
        ("until=1", 0),
    ):
        assert len(await eve.get(f"/api/search?q=brown&{filters}")) == count, filters
        titled = (await eve.get(f"/api/sessions?title=brown&{filters}"))["sessions"]
        assert len(titled) == min(count, 1), filters
    status, told = await eve.ask("GET", "/api/search?q=brown&by=bob")
    assert status == 400 and "by" in str(told)
    used = await served.owner.get("/api/usage?range=today")
    assert used["total"] == {
        **{"prompt_tokens": 20, "completion_tokens": 20, "total_tokens": 40},
        **{"api_calls": 2, "cost": 0.0, "known_cost": 0.0, "unpriced_calls": 0},
    }
    assert [line["id"] for line in used["models"]] == ["scripted/echo"] and len(used["days"]) == 1
    assert [line["session_id"] for line in (await eve.get("/api/usage?range=all"))["sessions"]] == [
        "hers"
    ]
    row = next(
        each
        for each in (await served.owner.get("/api/sessions"))["sessions"]
        if each["name"] == "one"
    )
    assert (row["session_id"], row["messages"], row["preview"]) == ("one", 2, "the quick brown fox")
    assert (
        row["token_usage"]["total_tokens"] == 20 and row["last_activity"] >= row["created_at"] > 0
    )


async def test_all_conversations_are_listed(served: Served) -> None:
    for n in range(55):
        assert (await served.owner.ask("POST", f"/api/sessions/n{n}/messages", {"text": "hi"}))[
            0
        ] == 202
    await settled(served.owner, "/api/sessions", lambda found: len(found["sessions"]) == 55)
    assert len((await served.owner.get("/api/sessions?limit=3"))["sessions"]) == 3
    assert problem(await served.owner.ask("GET", "/api/sessions?limit=0")) == (400, "bad_request")


async def test_one_question_about_several_calls(tmp_path: Path) -> None:
    @tool(effect="send_other", replay="never", reads=LOCAL)
    async def tell(who: str) -> str:
        """Tell somebody.

        who: whom
        """
        return f"told {who}"

    def both(request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say("done")
        raw = (msgspec.Raw(b'{"who":"%s"}' % who) for who in (b"ada", b"bob"))
        return say("", *(ToolCall(f"c{i}", "tell", each) for i, each in enumerate(raw)))

    async with serving(tmp_path, ScriptedModel(both), (tell,)) as served:
        await served.owner.ask("POST", "/api/chat/work", {"message": "tell both"})
        (waiting,) = await served.owner.get("/api/approvals")
        assert waiting["question"] == 'tell {"who":"ada"}\ntell {"who":"bob"}'
        assert (waiting["tool"], waiting["arguments"], waiting["call_id"]) == (
            "tell",
            '{"who":"ada"}',
            "c0",
        )
        assert (waiting["calls"], waiting["choices"]) == (["c0", "c1"], ["once", "each", "no"])
        path = f"/api/sessions/work/asks/{waiting['ask_id']}"
        assert (await served.owner.ask("POST", path, {"choice": "once"}))[0] == 202
        await settled(served.owner, "/api/sessions/work/log", ended(1))
        rests = await served.owner.get("/api/sessions/work/state?n=3")
        decided = [(each["call_id"], each["verdict"]) for each in rests["decisions"]]
        assert decided == [("c0", "asked"), ("c1", "asked")]


async def test_approvals_and_grants(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(acting), (act,)) as served:
        _, answer = await served.owner.ask("POST", "/api/chat/work", {"message": "do it"})
        assert answer["waiting"]["tool_call_id"] == "c1"
        await served.people.add_user("eve", "member")
        _, eve = await served.token("eve")
        waiting = await served.owner.get("/api/approvals")
        assert [(each["name"], each["tool"], each["approval"]) for each in waiting] == [
            ("work", "act", True)
        ]
        assert await eve.get("/api/approvals") == []
        ask = waiting[0]["ask_id"]
        theirs = await eve.ask(
            "POST", f"/api/sessions/default~web:owner:work/asks/{ask}", {"choice": "once"}
        )
        assert problem(theirs) == (404, "not_found")
        assert (
            await served.owner.ask("POST", f"/api/sessions/work/asks/{ask}", {"choice": "always"})
        )[0] == 202
        await settled(served.owner, "/api/sessions/work/log", ended(1))
        assert await served.owner.get("/api/approvals") == []
        grants = await served.owner.get("/api/grants")
        assert [(each["verdict"], each["tool"]) for each in grants] == [("always", "act")]
        assert await eve.get("/api/grants") == []
        await served.people.add_user("amy", "approver")
        _, amy = await served.token("amy")
        assert problem(await amy.ask("DELETE", f"/api/grants/{grants[0]['id']}")) == (
            404,
            "not_found",
        )
        assert (await served.owner.ask("DELETE", f"/api/grants/{grants[0]['id']}"))[0] == 200
        assert await served.owner.get("/api/grants") == []
        said = {(note.who, note.what) for note in await served.people.list_audit_notes()}
        assert {("eve", "conversation refused"), ("amy", "grant refused")} <= said


async def test_back_on_and_aside(served: Served) -> None:
    for words in ("one", "two"):
        await served.owner.ask("POST", "/api/chat/talk", {"message": words})
    log = await settled(served.owner, "/api/sessions/talk/log", ended(2))
    first = next(each["n"] for each in log if each["event"]["type"] == "turn_ended")
    middle = problem(
        await served.owner.ask("POST", "/api/sessions/talk/rewind", {"to_n": first + 1})
    )
    assert middle == (409, "not_at_rest")
    assert (
        problem(await served.owner.ask("POST", "/api/sessions/talk/rewind", {"to_n": 9999}))[0]
        == 400
    )
    status, branch = await served.owner.ask("POST", "/api/sessions/talk/branch", {"at_n": first})
    assert status == 201
    again = (await served.owner.ask("POST", "/api/sessions/talk/branch", {"at_n": first}))[1]
    assert again["name"] != branch["name"]
    aside = await served.owner.get(f"/api/sessions/{branch['name']}/state")
    assert [each["role"] for each in aside["context"]] == ["user", "assistant"] and aside["rest"]
    status, _ = await served.owner.ask(
        "POST", "/api/sessions/talk/rewind", {"to_n": first, "text": "instead"}
    )
    assert status == 202
    await settled(served.owner, "/api/sessions/talk/log", ended(3))
    now = await served.owner.get("/api/sessions/talk/state")
    assert "two" not in str(now["context"]) and "You said: instead" in str(now["context"])
    then = await served.owner.get(f"/api/sessions/talk/state?n={len(log)}")
    assert "two" in str(then["context"]) and then["usage"]["input_tokens"] == 20
    assert (await served.owner.ask("POST", "/api/sessions/talk/retry"))[0] == 202
    await settled(served.owner, "/api/sessions/talk/log", ended(4))
    spans = await served.owner.get("/api/sessions/talk/trace")
    assert [(span["kind"], span["name"]) for span in spans] == [
        ("llm_call", "scripted/echo"),
        ("agent_run", "default"),
    ] * 4


async def test_how_a_conversation_is_held(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(acting), (act,)) as served:
        wanted = {"title": "Mine", "approval": True, "teams": True, "thinking": "high"}
        assert (await served.owner.ask("PATCH", "/api/sessions/new", wanted))[0] == 202
        held = await settled(
            served.owner, "/api/sessions/new", lambda found: found["options"]["approval"]
        )
        assert held["session"]["title"] == "Mine" and held["options"]["teams"]
        assert held["options"]["thinking"] == "high" and not held["running"]
        await served.owner.ask("POST", "/api/chat/new", {"message": "do it"})
        state = await served.owner.get("/api/sessions/new/state")
        assert [(each["tool"], each["verdict"]) for each in state["decisions"]] == [
            ("act", "asked")
        ]
        assert state["decisions"][0]["reason"]
        bad = await served.owner.ask("PATCH", "/api/sessions/new", {"preset": "no-such"})
        assert problem(bad)[0] in (400, 403)
        assert (
            problem(await served.owner.ask("PATCH", "/api/sessions/new", {"mode": "dance"}))[0]
            == 400
        )


async def test_a_viewer_changes_nothing(served: Served) -> None:
    await served.people.add_user("vic", "viewer")
    _, viewer = await served.token("vic")
    for method, path in (
        ("POST", "/api/sessions/mine/messages"),
        ("POST", "/api/chat/mine"),
        ("POST", "/v1/chat/completions"),
        ("PATCH", "/api/settings"),
        ("POST", "/api/users"),
        ("GET", "/api/users"),
        ("DELETE", "/api/grants/x"),
    ):
        body: dict[str, str] | None = None if method == "GET" else {}
        assert problem(await viewer.ask(method, path, body)) == (403, "forbidden"), path
    assert await viewer.get("/api/sessions") == {"sessions": []}
    assert any(
        note.who == "vic" and note.what == "refused"
        for note in await served.people.list_audit_notes()
    )


async def test_people_over_http(served: Served) -> None:
    new = {"name": "ann", "role": "member", "channel": "telegram", "external_id": "77"}
    status, user = await served.owner.ask("POST", "/api/users", new)
    assert (status, user["name"], user["identities"][0]["external_id"]) == (201, "ann", "77")
    assert (await served.owner.ask("POST", "/api/users/ann/roles/approver"))[1]["roles"] == [
        "approver",
        "member",
    ]
    assert (await served.owner.ask("DELETE", "/api/users/ann/roles/member"))[1]["roles"] == [
        "approver"
    ]
    body = {"channel": "telegram", "external_id": "77"}
    assert (await served.owner.ask("DELETE", "/api/users/ann/identities", body))[0] == 204
    status, made = await served.owner.ask(
        "POST", "/api/tokens", {"name": "phone", "user": "ann", "days": 1}
    )
    ann = served.client(authorization=f"Bearer {made['secret']}")
    assert status == 201 and made["token"]["scopes"] == ["read", "chat", "approve"]
    assert (await ann.get("/api/auth/me"))["user"] == "ann"
    assert {row["user"] for row in await ann.get("/api/tokens")} == {"ann"}
    assert [row["current"] for row in await ann.get("/api/tokens")] == [True]
    others = await served.owner.get("/api/tokens")
    owners = next(row["id"] for row in others if row["user"] == "owner")
    assert [row["current"] for row in others if row["user"] == "ann"] == [False]
    assert problem(await ann.ask("DELETE", f"/api/tokens/{owners}")) == (404, "not_found")
    assert (await served.owner.ask("POST", f"/api/tokens/{made['token']['id']}/rotate"))[0] == 200
    assert problem(await ann.ask("GET", "/api/auth/me")) == (401, "unauthenticated")
    status, login = await served.owner.ask("POST", "/api/logins")
    assert status == 201 and login["url"].startswith(f"{served.url}/#login=dh_")
    assert login["qr_svg"] == "", "a phone that follows it would look for Deskhand in itself"
    assert await served.owner.get("/api/pairings") == []
    assert (
        problem(await served.owner.ask("POST", "/api/pairings/AAAAAAAA", {"role": "member"}))[0]
        == 403
    )
    assert (await served.owner.ask("DELETE", "/api/users/ann"))[0] == 204
    assert problem(await served.owner.ask("DELETE", "/api/users/ann")) == (404, "not_found")
    assert problem(await served.owner.ask("DELETE", "/api/users/owner"))[0] == 403
    assert "secret" not in str(await served.owner.get("/api/tokens"))


def test_a_decision_has_the_reason_that_it_had() -> None:
    """The stored one, and none for a call that nobody allowed."""
    calls = tuple(ToolCall(name, "act", msgspec.Raw(b"{}")) for name in ("a", "b", "c"))
    log: list[e.AnyEvent] = [
        e.ModelReplied(Message("assistant", calls), "m", "calls"),
        e.ToolFinished(ToolResult("a", ()), allowed="rule 3 of mine"),
        e.ApprovalAsked("ask_b", "b", "hash", "act?", "it acts outward", 9.0),
        e.ToolFinished(ToolResult("b", ())),
        e.ApprovalAsked("ask_c", "c", "hash", "act?", "it acts outward", 9.0),
        e.ToolFinished(ToolResult("c", (), "expired")),
    ]
    found = iter_decisions(
        [e.Recorded(0, "s", n, 0.0, event) for n, event in enumerate(log, 1)], str
    )
    assert [(each.call_id, each.verdict, each.reason) for each in found] == [
        ("a", "allowed", "rule 3 of mine"),
        ("b", "asked", "it acts outward"),
        ("b", "allowed", "a person said yes"),
        ("c", "asked", "it acts outward"),
    ]


async def test_what_runs_beside(served: Served) -> None:
    """Each sees what runs beside their own conversations, and may end it; owners all of it."""
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    await served.owner.ask("POST", "/api/chat/one", {"message": "hello"})
    await eve.ask("POST", "/api/chat/hers", {"message": "hello"})
    for id_, session in (
        ("11111111", "default/web:owner:one"),
        ("22222222", "default/web:eve:hers"),
    ):
        row = (
            id_,
            session,
            "default",
            "background",
            "sleep 60",
            "",
            300.0,
            b"{}",
            "running",
            1.0,
            1.0,
            1,
        )
        await served.app.store.change((Change("process_add", row),))
    assert {each["id"] for each in await served.owner.get("/api/processes")} == {
        "11111111",
        "22222222",
    }
    assert [
        each["id"] for each in await served.owner.get("/api/processes?session=default/web:eve:hers")
    ] == ["22222222"]
    (hers,) = await eve.get("/api/processes")
    assert (hers["id"], hers["command"], hers["state"]) == ("22222222", "sleep 60", "running")
    assert problem(await eve.ask("DELETE", "/api/processes/11111111")) == (404, "not_found")
    status, ended = await eve.ask("DELETE", "/api/processes/22222222")
    assert status == 200 and ended["id"] == "22222222"
    assert dict(await served.app.store.query("process_alive", ())) == {
        "11111111": "",
        "22222222": "stopped by eve",
    }
