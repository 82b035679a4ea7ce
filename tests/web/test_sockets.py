"""Both WebSocket dialects and the streams over real sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import anyio
import msgspec
import pytest
from starlette.websockets import WebSocket, WebSocketState

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools import plan, tasks
from deskhand.tools.define import tool
from deskhand.types.labels import LOCAL
from deskhand.types.messages import Message, ToolCall, ToolResult
from deskhand.web.conversation_socket import DialectActions
from deskhand.web.protocols import Web

from .served import Client, Served, serving
from .test_guard import problem


@tool(effect="host", replay="never", reads=LOCAL)
async def act(what: str) -> str:
    """Does something that matters.

    what: this
    """
    return f"did {what}"


def acting(request: Request) -> Message:
    """Calls the tool for whoever says `do`, and echoes all else."""
    last = request.messages[-1].message
    if last.role == "tool":
        return say("done")
    return (
        say("", ToolCall("c1", "act", msgspec.Raw(b'{"what": "it"}')))
        if "do" in last.text
        else say("hello there")
    )


async def heard(socket: aiohttp.ClientWebSocketResponse, last: str) -> list[dict[str, Any]]:
    """Messages up to the first of this type."""
    found: list[dict[str, Any]] = []
    with anyio.fail_after(20):
        while not found or found[-1]["type"] != last:
            found.append(await socket.receive_json())
    return found


def plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the phases of thinking."""
    return [message for message in messages if "phase" not in message]


@asynccontextmanager
async def conversing(served: Served) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """A conversation that was begun as openagent-core's clients do."""
    _, begun = await served.owner.ask("POST", "/api/chat", {})
    async with served.owner.ws(f"/api/chat/{begun['conversation_id']}/ws") as socket:
        yield socket


def types(messages: list[dict[str, Any]]) -> list[str]:
    return [message["type"] for message in messages]


async def test_as_agent_computer_talks(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, ScriptedModel(acting), (act,)) as served,
        served.owner.ws("/ws/my-session") as socket,
    ):
        await socket.send_json({"type": "ping"})
        assert await socket.receive_json() == {"type": "pong"}
        await socket.send_json({"type": "message", "content": "hi"})
        assert types(plain(await heard(socket, "done"))) == ["thinking", "text", "done"]
        await socket.send_json({"type": "message", "content": "do it"})
        asked = (await heard(socket, "approval_request"))[-1]
        await socket.send_json(
            {"type": "approval_response", "tool_call_id": asked["tool_call_id"], "approved": True}
        )
        rest = plain(await heard(socket, "done"))
        assert types(rest) == ["approval_resolved", "tool_result", "thinking", "text", "done"]
        assert rest[1]["result_preview"] == "did it" and rest[1]["success"]
        await socket.send_json({"type": "set_mode", "mode": "deep_work"})
        changed = await socket.receive_json()
        assert changed == {"type": "mode_changed", "mode": "deep_work"}
        await socket.send_json({"type": "clear"})
        assert (await socket.receive_json())["type"] == "cleared"
        for bad in (
            '{"type": "dance"}',
            "no json",
            "[]",
            '{"type": 1}',
            '{"type": "message"}',
            "[" * 5000,
        ):
            await socket.send_str(bad)
            assert (await socket.receive_json())["type"] == "error", bad
        await socket.send_bytes(b"\xff\xfe")
        assert (await socket.receive_json())["type"] == "error"
        await socket.send_json({"type": "message", "content": "hi"})
        assert (await heard(socket, "done"))[-1]["mode"] == "deep_work"


PLANNING = (*tasks.TOOLS, *plan.TOOLS)


def planning(request: Request) -> Message:
    """Plans one task, shows the plan until it is approved, and does it."""
    results = [
        p for shown in request.messages for p in shown.message.parts if isinstance(p, ToolResult)
    ]
    said = results[-1].text if results else ""
    number = f"c{len(results)}"
    if not results:
        return say(
            "",
            ToolCall(number, "manage_tasks", msgspec.Raw(b'{"action": "create", "title": "read"}')),
        )
    if "[x]" in said:
        return say("I have read it.")
    if said.startswith("The plan is approved"):
        done = b'{"action": "complete", "task_id": 1, "result": "read"}'
        return say("", ToolCall(number, "manage_tasks", msgspec.Raw(done)))
    return say("", ToolCall(number, "exit_plan_mode", msgspec.Raw(b'{"plan": "1. read it"}')))


async def test_deep_work_as_agent_computer_talks(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, ScriptedModel(planning), PLANNING) as served,
        served.owner.ws("/ws/deep") as socket,
    ):
        await socket.send_json({"type": "approve_plan"})
        assert "no plan waits" in (await heard(socket, "error"))[-1]["message"].lower()
        await socket.send_json({"type": "set_mode", "mode": "deep_work"})
        await heard(socket, "mode_changed")
        await socket.send_json({"type": "message", "content": "read it"})
        first = plain(await heard(socket, "plan_ready"))
        assert types(first) == [
            "thinking",
            "tool_call",
            "tool_result",
            "task_update",
            "thinking",
            "plan_ready",
        ]
        task = {
            "id": 1,
            "title": "read",
            "description": "",
            "status": "pending",
            "parent_id": None,
            "result": "",
        }
        node = {
            "node_type": "agent",
            "depends_on": [],
            "config": {},
            "inputs": {},
            "output_schema": {},
            "output": {},
        }
        assert first[3]["tasks"] == [{**task, **node, "position": None}]
        assert first[3]["summary"] == "0 of 1 tasks done (0 %)"
        assert (first[-1]["text"], first[-1]["tasks"]) == ("1. read it", first[3]["tasks"])
        thinking = {"type": "thinking", "iteration": 1, "max_iterations": 50, "tokens_used": 0}
        summary = first[0].pop(
            "task_summary"
        )  # as the tasks are when it is sent: the model may be quicker
        assert summary in ("", "0 of 1 tasks done (0 %)")
        assert first[0] == {**thinking, "token_budget": 1_500_000}
        await socket.send_json({"type": "revise_plan", "feedback": "read it twice"})
        assert types(plain(await heard(socket, "plan_ready"))) == ["thinking", "plan_ready"]
        await socket.send_json({"type": "approve_plan"})
        rest = await heard(socket, "done")
        (update,) = [each for each in rest if each["type"] == "task_update"]
        assert [each["status"] for each in update["tasks"]] == ["completed"]
        assert rest[-1]["text"] == "I have read it." and rest[-1]["mode"] == "deep_work"
        assert (await heard(socket, "text"))[-1]["text"].startswith("1 of 1 tasks done (100 %)")
        told = await served.owner.get("/api/sessions/deep/tasks")
        assert (told["percent"], told["summary"], len(told["tasks"])) == (
            100,
            "1 of 1 tasks done (100 %)",
            1,
        )
        await served.people.add_user("eve", "member")
        _, eve = await served.token("eve")
        assert problem(await eve.ask("GET", "/api/sessions/default~web:owner:deep/tasks")) == (
            404,
            "not_found",
        )
        async with served.owner.ws("/ws/deep") as late:  # of what is past, nobody is told again
            await late.send_json({"type": "ping"})
            assert await late.receive_json() == {"type": "pong"}
    said = [shown.message.text for shown in served.app.parts.model("x").requests[-1].messages]  # type: ignore[attr-defined]
    assert any("read it twice" in text for text in said)


async def test_deep_work_over_http(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(planning), PLANNING) as served:
        body = {"message": "read it", "mode": "deep_work"}
        status, answer = await served.owner.ask("POST", "/api/chat/deep", body)
        assert (status, answer["mode"]) == (200, "deep_work") and answer["waiting"][
            "type"
        ] == "plan_ready"
        assert [task["title"] for task in answer["waiting"]["tasks"]] == ["read"]


async def test_as_openagent_talks(tmp_path: Path) -> None:
    async with serving(tmp_path, ScriptedModel(acting, piece=4), (act,)) as served:
        status, begun = await served.owner.ask("POST", "/api/chat", {"enable_tracing": True})
        conversation = begun["conversation_id"]
        assert status == 200 and len(conversation) == 12
        async with served.owner.ws(f"/api/chat/{conversation}/ws") as socket:
            await socket.send_str("just words")
            first = await heard(socket, "done")
            assert (
                "".join(each["content"] for each in first if each["type"] == "text_delta")
                == "hello there"
            )
            assert {"llm_request", "llm_response"} <= set(types(first))
            await socket.send_json({"type": "message", "content": "do it"})
            asked = (await heard(socket, "tool_approval_request"))[-1]
            assert asked["tools"] == [{"name": "act", "input": {"what": "it"}, "id": "c1"}]
            await socket.send_json({"type": "tool_approval_response", "decision": "deny"})
            rest = await heard(socket, "done")
            assert (
                next(each for each in rest if each["type"] == "tool_approval_result")["decision"]
                == "denied"
            )
            await socket.send_json({"type": "tool_approval_response", "decision": "approve"})
            assert "nothing is asked" in (await heard(socket, "error"))[-1]["message"].lower()
        detail = await served.owner.get(f"/api/conversations/{conversation}")
        assert detail["total_input_tokens"] > 0 and detail["messages"][0]["content"] == "just words"
        assert detail["title"] == "just words"


async def test_a_plan_is_shown_and_answered(tmp_path: Path) -> None:
    def planning(request: Request) -> Message:
        results = sum(shown.message.role == "tool" for shown in request.messages)
        if "plan_mode" not in str([tool.name for tool in request.tools]) or results == 2:
            return say("done")
        made = msgspec.Raw(msgspec.json.encode({"plan": f"1. step {results}"}))
        return say("", ToolCall(f"c{results}", "exit_plan_mode", made))

    async with serving(tmp_path, ScriptedModel(planning), plan.TOOLS) as served:
        _, begun = await served.owner.ask(
            "POST", "/api/chat", {"enable_plan_mode": True, "enable_teams": True}
        )
        async with served.owner.ws(f"/api/chat/{begun['conversation_id']}/ws") as socket:
            await socket.send_json({"type": "plan_approval", "decision": "approve"})
            assert "no plan waits" in (await heard(socket, "error"))[-1]["message"].lower()
            await socket.send_json({"type": "message", "content": "tidy up"})
            shown = await heard(socket, "done")
            assert types(shown)[-2:] == ["plan_ready", "done"] and shown[-2]["plan"] == "1. step 0"
            await socket.send_json(
                {"type": "plan_approval", "decision": "reject", "feedback": "shorter"}
            )
            again = await heard(socket, "done")
            assert again[0] == {
                "type": "plan_rejected",
                "feedback": "shorter",
            } and "plan_ready" in types(again)
            await socket.send_json({"type": "plan_approval", "decision": "approve"})
            rest = types(await heard(socket, "done"))
            assert "plan_approved" in rest and "plan_mode_changed" in rest


async def test_approval_enabled_asks_for_every_tool(tmp_path: Path) -> None:
    @tool(effect="local_write", reads=LOCAL)
    async def act(what: str) -> str:
        """Does something small.

        what: this
        """
        return f"did {what}"

    async with serving(tmp_path, ScriptedModel(acting), (act,)) as served:
        for enabled, wanted in ((False, "done"), (True, "tool_approval_request")):
            _, begun = await served.owner.ask(
                "POST", "/api/chat", {"enable_approval": enabled, "enable_teams": enabled}
            )
            async with served.owner.ws(f"/api/chat/{begun['conversation_id']}/ws") as socket:
                await socket.send_json({"type": "message", "content": "do it"})
                found = await heard(socket, wanted)
                assert ("tool_approval_request" in types(found)) == enabled
                if enabled:
                    await socket.send_json(
                        {"type": "tool_approval_response", "decision": "auto_approve"}
                    )
                    assert "approval_changed" in types(await heard(socket, "done"))


async def test_an_interrupt_while_it_speaks(tmp_path: Path) -> None:
    def script(request: Request) -> Message:
        last = request.messages[-1].message.text
        return say("as you wish") if "stop that" in last else say("on and on " * 200)

    model = ScriptedModel(script, pause_s=0.02)
    async with serving(tmp_path, model) as served, conversing(served) as socket:
        await socket.send_json({"type": "message", "content": "go"})
        await heard(socket, "text_delta")
        await socket.send_json({"type": "interrupt", "content": "stop that"})
        rest = await heard(socket, "done")
        assert "interrupted" in types(rest)
        after = rest[types(rest).index("interrupted") :]
        assert "".join(each.get("content", "") for each in after) == "as you wish"
        await socket.send_json({"type": "message", "content": "go"})
        await heard(socket, "text_delta")
        await socket.send_json({"type": "cancel"})
        assert (await heard(socket, "done"))[-1]["reason"] == "stopped"


async def test_activity_of_all_conversations(tmp_path: Path) -> None:
    @tool(reads=LOCAL)
    async def act(what: str) -> str:
        """Looks.

        what: this
        """
        return f"saw {what}"

    async with (
        serving(tmp_path, ScriptedModel(acting), (act,)) as served,
        served.owner.ws("/ws/activity") as socket,
    ):
        status, answer = await served.owner.ask("POST", "/api/chat/one", {"message": "do it"})
        assert (status, answer) == (
            200,
            {"response": "done", "session_id": "one", "mode": "bounded"},
        )
        call = await socket.receive_json()
        result = await socket.receive_json()
        assert (call["type"], call["session_id"], call["input"]) == (
            "tool_call",
            "one",
            {"what": "it"},
        )
        assert (result["type"], result["tool"], result["result_preview"]) == (
            "tool_result",
            "act",
            "saw it",
        )
        listed = (await served.owner.get("/api/activity?limit=1"))["events"]
        assert listed == [result]
        await served.people.add_user("eve", "member")
        _, eve = await served.token("eve")
        assert (await eve.get("/api/activity"))["events"] == []


async def test_a_revoked_token_ends_its_sockets(served: Served) -> None:
    await served.owner.ask("POST", "/api/chat/one", {"message": "hi"})
    for path in ("/ws/one", "/api/chat/one/ws", "/ws/activity"):
        row, client = await served.token()
        async with client.ws(path) as socket:
            await served.people.revoke(row.id)
            with anyio.fail_after(20):
                assert (await socket.receive()).type is aiohttp.WSMsgType.CLOSE
            assert socket.close_code == 4001


async def test_the_conversation_of_another(served: Served) -> None:
    await served.owner.ask("POST", "/api/chat/mine", {"message": "secret"})
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    for path in (
        "/ws/default~web:owner:mine",
        "/api/chat/default~web:owner:mine/ws",
        "/ws/default~terminal",
    ):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await eve.ws(path)
        assert refused.value.status == 404
    async with eve.ws("/ws/mine") as socket:  # her own of that name
        await socket.send_json({"type": "message", "content": "hi"})
        assert (await heard(socket, "done"))[-1]["text"] == "You said: hi"
    assert len((await eve.get("/api/sessions"))["sessions"]) == 1
    _, viewer = await served.token("eve", ("read",))
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await viewer.ws("/ws/mine")
    assert refused.value.status == 403


async def test_a_frame_that_is_too_large(served: Served) -> None:
    async with served.owner.ws("/ws/big", max_msg_size=0) as socket:
        await socket.send_str("x" * 1_000_001)
        with anyio.fail_after(20):
            answer = await socket.receive()
        assert answer.type is aiohttp.WSMsgType.CLOSE and socket.close_code == 1009


async def events(
    client: Client, path: str, until: bytes, after: str = ""
) -> list[tuple[str, str, Any]]:
    """(event, id, data) of a stream up to the first with this in it."""
    found: list[tuple[str, str, Any]] = []
    headers = {**client.headers, **({"last-event-id": after} if after else {})}
    async with client.http.get(client.url + path, headers=headers) as stream:
        assert stream.status == 200 and stream.content_type == "text/event-stream"
        kind = number = ""
        with anyio.fail_after(20):
            async for raw in stream.content:
                line = raw.decode().rstrip("\n")
                name, _, value = line.partition(": ")
                if name == "event":
                    kind = value
                elif name == "id":
                    number = value
                elif name == "data":
                    found.append((kind, number, msgspec.json.decode(value)))
                    if until in raw:
                        break
    return found


async def test_everything_of_a_person_as_one_stream(served: Served) -> None:
    await served.owner.ask("POST", "/api/chat/one", {"message": "hi"})
    await served.people.add_user("eve", "member")
    _, eve = await served.token("eve")
    await eve.ask("POST", "/api/chat/hers", {"message": "hello"})
    whole = await events(served.owner, "/api/watch?after_seq=0", b"web:eve")
    assert {each["session"] for _, _, each in whole} == {
        "default/web:owner:one",
        "default/web:eve:hers",
    }
    hers = await events(eve, "/api/watch?after_seq=0", b"turn_ended")
    assert {each["session"] for _, _, each in hers} == {"default/web:eve:hers"}
    assert [number for _, number, _ in hers] == [str(each["seq"]) for _, _, each in hers]
    resumed = await events(eve, "/api/watch", b"turn_ended", after=hers[0][1])
    assert resumed == hers[1:]
    async with anyio.create_task_group() as tasks:
        live: list[Any] = []

        async def listen() -> None:
            live.extend(await events(eve, "/api/watch", b"turn_ended"))

        tasks.start_soon(listen)
        await anyio.sleep(0.2)
        await eve.ask("POST", "/api/chat/more", {"message": "hello"})
    assert {each["session"] for _, _, each in live} == {"default/web:eve:more"}


async def test_resumed_in_the_middle(served: Served) -> None:
    await served.owner.ask("POST", "/api/chat/one", {"message": "hi"})
    whole = await events(served.owner, "/api/sessions/one/events", b"turn_ended")
    for _, number, _ in whole[:-1]:
        rest = await events(served.owner, "/api/sessions/one/events", b"turn_ended", after=number)
        assert whole == [*whole[: int(number)], *rest]
    bad = {"headers": {**served.owner.headers, "last-event-id": "x"}}
    assert problem(await served.owner.ask("GET", "/api/sessions/one/events", **bad)) == (
        400,
        "bad_request",
    )


async def test_what_is_erased_is_told_and_gone(served: Served) -> None:
    await served.owner.ask("POST", "/api/chat/one", {"message": "a secret word"})
    async with served.http.get(
        f"{served.url}/api/sessions/one/events?after=99", headers=served.owner.headers
    ):
        status, erased = await served.owner.ask("DELETE", "/api/sessions/one")
        assert (
            status == 200
            and erased["erased"] > 0
            and (erased["memories"], erased["kept"]) == (0, 0)
        )
    assert problem(await served.owner.ask("GET", "/api/sessions/one/log")) == (404, "not_found")
    assert problem(await served.owner.ask("DELETE", "/api/sessions/one")) == (404, "not_found")
    assert problem(await served.owner.ask("DELETE", "/api/conversations/one")) == (404, "not_found")


async def test_backups_are_told_what_is_erased_on_the_page(tmp_path: Path) -> None:
    async with serving(tmp_path, backup={"folder": str(tmp_path / "b")}) as served:
        await served.owner.ask("POST", "/api/chat/one", {"message": "a secret word"})
        assert list(tmp_path.glob("b/*-erased.json")) == []
        assert (await served.owner.ask("DELETE", "/api/sessions/one"))[0] == 200
    (index,) = tmp_path.glob("b/*-erased.json")
    assert len(msgspec.json.decode(index.read_bytes())) == 1


async def test_a_client_that_is_gone_while_it_is_sent_something_is_hung_up_on(
    served: Served,
) -> None:
    async def lost(message: Any) -> None:
        raise OSError("connection lost")

    async def nothing() -> Any:
        await anyio.sleep_forever()

    socket = WebSocket({"type": "websocket"}, nothing, lost)
    socket.client_state = socket.application_state = WebSocketState.CONNECTED
    grant = await served.people.authenticate(
        served.owner.headers["authorization"].removeprefix("Bearer ")
    )
    assert grant is not None
    talk = DialectActions(cast(Web, None), socket, grant, "s")  # sending needs nothing of it
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(talk.send, {"type": "text"})
        with anyio.fail_after(5):
            await talk.wait_until_stuck()
        tasks.cancel_scope.cancel()
