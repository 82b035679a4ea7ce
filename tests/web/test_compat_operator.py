"""A client of operator-use's agent server, against a whole Deskhand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.models.base import Reply, Request
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ModelUnknown
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text, ToolCall, ToolResult
from deskhand.web.agent_signatures import SigningKey, to_base64url

from .served import Client, Served, serving

QUESTION = {"question": "Which one?"}


def script(request: Request) -> Message | Reply:
    last = request.messages[-1].message
    if last.role == "tool":
        return say(f"You said {said(last)}.")
    if "ask me" in last.text:
        return say("First:", ToolCall("c1", "ask_user", msgspec.Raw(msgspec.json.encode(QUESTION))))
    if "slow" in last.text:
        return say("", ToolCall("c2", "shell", msgspec.Raw(b'{"command": "sleep 60"}')))
    if "fail" in last.text:
        raise ModelUnknown("there is no such model")
    return say(f"echo: {last.text.partition('] ')[2]}")  # behind the time


def said(message: Message) -> str:
    return "".join(each.text for each in message.parts if isinstance(each, ToolResult))


@asynccontextmanager
async def running(home: Path, **config: Any) -> AsyncIterator[Served]:
    config["agents"] = {"main": {}, "coder": {}}
    async with serving(home, ScriptedModel(script), None, **config) as served:
        yield served


async def run(client: Client, text: str, mode: str = "sync", **more: Any) -> Any:
    body = {"mode": mode, "input": [{"type": "text", "text": text}], **more}
    status, answer = await client.ask("POST", "/runs", body)
    assert status == (200 if mode == "sync" else 202), answer
    return answer


async def events(client: Client, id_: str) -> list[Any]:
    with anyio.fail_after(20):
        _, text = await client.ask("GET", f"/runs/{id_}/await")
    lines = [line for line in text.splitlines() if line.startswith("data: ")]
    return [msgspec.json.decode(line.removeprefix("data: ")) for line in lines]


async def test_agents_are_listed(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        found = await served.owner.get("/agents")
        assert [each["id"] for each in found["agents"]] == ["main", "coder"]
        one = await served.owner.get("/agents/coder")
        assert one["name"] == "coder" and one["capabilities"]["streaming"]
        assert (await served.owner.ask("GET", "/agents/nobody"))[0] == 404
        assert (await served.client().ask("GET", "/agents"))[0] == 401


async def test_a_run_is_waited_for_and_goes_on_in_its_session(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        first = await run(served.owner, "hello", agent_id="operator", session_id="s1")
        assert first["status"] == "completed" and first["agent_id"] == "main"
        assert [each["text"] for each in first["output"]] == ["echo: hello"]
        assert first["input"] == [{"type": "text", "text": "hello"}]
        assert first["created_at"] and first["finished_at"]
        second = await run(served.owner, "again", session_id="s1")
        assert second["session_id"] == "s1" and second["id"] != first["id"]
        assert await served.owner.get(f"/runs/{first['id']}") == {**first, "mode": "async"}


async def test_a_run_is_followed(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        begun = await run(served.owner, "hello", "stream")
        assert begun["status"] in ("created", "in_progress")
        seen = await events(served.owner, begun["id"])
        assert [each["type"] for each in seen] == ["output", "completed"]
        assert seen[0]["part"] == {"type": "text", "text": "echo: hello"}
        assert await events(served.owner, begun["id"]) == seen


async def test_a_failed_run_says_why(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        failed = await run(served.owner, "fail")
        assert failed["status"] == "failed" and failed["error"]
        assert (await events(served.owner, failed["id"]))[-1]["type"] == "error"


async def test_a_run_that_waits_for_a_person_is_cancelled(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        asked = await run(served.owner, "ask me")
        assert asked["status"] == "awaiting"
        assert [each["text"] for each in asked["output"]] == ["First:", "Which one?"]
        following = served.http.get(
            f"{served.url}/runs/{asked['id']}/await", headers=served.owner.headers
        )
        with anyio.fail_after(20):
            async with following as stream:
                while b"Which one?" not in await stream.content.readline():
                    pass
        assert (await served.owner.ask("DELETE", f"/runs/{asked['id']}"))[0] == 204
        assert (await events(served.owner, asked["id"]))[-1]["error"] == "cancelled"
        assert (await served.owner.get(f"/runs/{asked['id']}"))["status"] == "cancelled"


async def test_files_come_along(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        file = {"name": "../notes.txt", "content": "aGVsbG8=", "mime_type": "text/plain"}
        given = [{"type": "text", "text": "read"}, {"type": "file", "file": file}]
        status, answer = await served.owner.ask("POST", "/runs", {"mode": "sync", "input": given})
        assert status == 200 and "read" in answer["output"][0]["text"]
        log = await served.owner.get(f"/api/sessions/{answer['session_id']}/log")
        parts = log[0]["event"]["message"]["parts"]
        assert parts[1]["name"] == "notes.txt" and parts[1]["size_bytes"] == 5


NO_RUNS: list[Any] = [
    {},
    {"input": []},
    {"input": [{"type": "text", "text": " "}]},
    {"input": [{"type": "file", "file": {"content": "%"}}]},
    {"input": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]},
    {"input": [{"type": "what"}]},
    {"mode": "later", "input": [{"type": "text", "text": "x"}]},
    {"input": [{"type": "text", "text": "x"}], "session_id": 5},
]


async def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        for body in NO_RUNS:
            status, answer = await served.owner.ask("POST", "/runs", body)
            assert status == 400 and answer["error"]["message"]


async def test_a_token_of_one_agent_sees_only_that(tmp_path: Path) -> None:
    async with running(tmp_path, roles={"coding": {"agents": ["coder"]}}) as served:
        await served.people.add_user("partner", "coding")
        _, client = await served.token("partner", ("read", "chat"))
        found = await client.get("/agents")
        assert [each["id"] for each in found["agents"]] == ["coder"]
        assert (await client.ask("GET", "/agents/main"))[0] == 404
        body = {"agent_id": "main", "input": [{"type": "text", "text": "x"}]}
        assert (await client.ask("POST", "/runs", body))[0] == 403
        mine = await run(client, "hello", agent_id="coder")
        assert mine["status"] == "completed"

        theirs = await run(served.owner, "secret", agent_id="coder")
        assert (await client.ask("GET", f"/runs/{theirs['id']}"))[0] == 404
        assert (await client.ask("DELETE", f"/runs/{theirs['id']}"))[0] == 404


NO_IDS = ["1", "1~main~nothing", "99999~main~x", "x~main~x", "1~nobody~x"]


async def test_there_is_no_such_run(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        for id_ in NO_IDS:
            await run(served.owner, "hello", session_id="x")
            assert (await served.owner.ask("GET", f"/runs/{id_}"))[0] == 404


async def test_a_device_is_let_in(tmp_path: Path) -> None:
    async with running(tmp_path, agent_server={"device_sign_in": True}) as served:
        stranger = served.client()
        status, asked = await stranger.ask("POST", "/auth/device")
        assert status == 200 and asked["expires_in"] == 600
        code = asked["user_code"]
        assert len(code) == 9 and code[4] == "-"
        wanted = {"device_code": asked["device_code"]}
        assert (await stranger.ask("POST", "/auth/token", wanted))[0] == 202

        assert (await stranger.ask("POST", f"/auth/approve/{code}", {"role": "member"}))[0] == 401
        status, user = await served.owner.ask("POST", f"/auth/approve/{code}", {"role": "member"})
        assert status == 200 and user["roles"] == ["member"]
        status, token = await stranger.ask("POST", "/auth/token", wanted)
        assert status == 200 and token["token_type"] == "bearer"
        device = served.client(authorization=f"Bearer {token['access_token']}")
        assert (await run(device, "hello"))["status"] == "completed"

        status, over = await stranger.ask("POST", "/auth/token", wanted)
        assert (status, over) == (400, {"error": "expired_token"})
        rows = await served.people.tokens(user["name"])
        assert [row.scopes for row in rows] == [("read", "chat")]
        assert not await served.app.store.outbox_due(1e12, 100)


async def test_nobody_becomes_the_owner_by_a_device(tmp_path: Path) -> None:
    async with running(tmp_path, agent_server={"device_sign_in": True}) as served:
        _, asked = await served.client().ask("POST", "/auth/device")
        user = await served.people.approve(asked["user_code"])
        assert user.name.startswith("device-") and user.roles == ("member",)


async def test_devices_are_off_until_they_are_allowed_and_few(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        status, answer = await served.client().ask("POST", "/auth/device")
        assert status == 404 and "device_sign_in" in answer["error"]["message"]
    async with running(tmp_path, agent_server={"device_sign_in": True}) as served:
        asked = [(await served.client().ask("POST", "/auth/device"))[0] for _ in range(12)]
        assert asked == [200] * 10 + [429] * 2


async def test_a_device_that_comes_too_late_gets_nothing(tmp_path: Path) -> None:
    clock = SetClock(1_795_000_000.0)
    allowed = {"device_sign_in": True}
    async with running(tmp_path, agent_server=allowed, clock=clock) as served:
        _, asked = await served.client().ask("POST", "/auth/device")
        await served.people.approve(asked["user_code"], "owner")
        clock.advance(601)
        wanted = {"device_code": asked["device_code"]}
        assert (await served.client().ask("POST", "/auth/token", wanted))[0] == 400
        clock.advance(-601)
        assert (await served.client().ask("POST", "/auth/token", wanted))[0] == 400


async def test_the_first_person_is_the_owner_though_a_device_came_first(tmp_path: Path) -> None:
    async with running(tmp_path, agent_server={"device_sign_in": True}) as served:
        _, asked = await served.client().ask("POST", "/auth/device")
        await served.people.approve(asked["user_code"])
        body = Said(Message("user", (Text("hello"),)))
        wrote = Inbound("1", Address("telegram", chat="5"), "5", 1.0, body)
        code = await served.people.request_pairing(wrote)
        assert (await served.people.approve(code)).name == "owner"


async def test_guessed_device_codes_are_counted(tmp_path: Path) -> None:
    async with running(tmp_path, agent_server={"device_sign_in": True}) as served:
        asked = [
            (await served.client().ask("POST", "/auth/token", {"device_code": str(n)}))[0]
            for n in range(40)
        ]
        assert asked[0] == 400 and asked[-1] == 429


async def test_requests_are_signed(tmp_path: Path) -> None:
    key = SigningKey(to_base64url(b"k" * 32))
    other = SigningKey(to_base64url(b"o" * 32))
    trusted = {"verify_signatures": True, "trusted_agents": {"friend": key.public}}
    async with running(tmp_path, agent_server=trusted) as served:
        body = msgspec.json.encode({"mode": "sync", "input": [{"type": "text", "text": "hi"}]})
        now = int(served.app.parts.clock.now())

        async def post(headers: dict[str, str], data: bytes = body) -> int:
            sent = {**headers, "content-type": "application/json"}
            status, _ = await served.owner.ask("POST", "/runs", headers=sent, data=data)
            return status

        good = key.sign("friend", now, body)
        assert await post(good) == 200
        assert await post({}) == 401
        assert await post(good, body + b" ") == 401
        assert await post(key.sign("friend", now - 40, body)) == 401
        assert await post(other.sign("friend", now, body)) == 401
        assert await post(key.sign("stranger", now, body)) == 401
        assert (await served.owner.ask("GET", "/agents"))[0] == 401
        assert await post(key.sign("friend", now + 40, body)) == 401
        done = (await served.owner.get("/api/sessions"))["sessions"]
        assert await post(good) == 200, "the same request again is the same message"
        assert await post({**good, "x-acp-signature": good["x-acp-signature"] + "=="}) == 200
        assert (await served.owner.get("/api/sessions"))["sessions"] == done
        status, found = await served.owner.ask(
            "POST", "/runs", headers={**good, "content-type": "application/json"}, data=body
        )
        assert status == 200
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/await")):
            assert (await served.owner.ask(method, f"/runs/{found['id']}{path}"))[0] == 401
        headers = key.sign("friend", now, b"")
        assert (await served.owner.ask("GET", "/agents", headers=headers))[0] == 200
