"""Other agents reach ours by the Agent2Agent protocol: on the wire in both versions, with the
official SDK's client, and as its lint grades it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx
import msgspec
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, TaskState
from aiohttp import web

from deskhand.models.base import Item, Reply, Request, TextDelta
from deskhand.testing.scripted import say
from deskhand.types.messages import Usage

from .served import Client, Served, serving, until
from .test_compat_operator import running

TEXT = {"0.3": {"kind": "text", "text": "hello"}, "1.0": {"text": "hello"}}
SEND = {"0.3": "message/send", "1.0": "SendMessage"}
STREAM = {"0.3": "message/stream", "1.0": "SendStreamingMessage"}
GET = {"0.3": "tasks/get", "1.0": "GetTask"}
CANCEL = {"0.3": "tasks/cancel", "1.0": "CancelTask"}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
VERSIONS = pytest.mark.parametrize("version", ["0.3", "1.0"])


def message(version: str, text: str = "hello", **more: Any) -> dict[str, Any]:
    part = {**TEXT[version], "text": text}
    role = "user" if version == "0.3" else "ROLE_USER"
    return {"message": {"messageId": "m1", "role": role, "parts": [part], **more}}


async def ask(client: Client, method: str, params: Any, path: str = "/a2a/main") -> Any:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    status, answer = await client.ask("POST", path, body)
    assert status == 200 and answer["id"] == 7 and answer["jsonrpc"] == "2.0", answer
    return answer


def task_of(answer: Any) -> Any:
    return answer["result"].get("task", answer["result"])


async def follow(client: Client, method: str, params: Any) -> AsyncIterator[Any]:
    body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    url, headers = f"{client.url}/a2a/main", client.headers
    async with client.http.post(url, json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        async for line in answer.content:
            if line.startswith(b"data: "):
                yield msgspec.json.decode(line.removeprefix(b"data: "))["result"]


@VERSIONS
async def test_a_message_becomes_a_task(tmp_path: Path, version: str) -> None:
    async with running(tmp_path) as served:
        sent = await ask(served.owner, SEND[version], message(version, contextId="c1"))
        task = task_of(sent)
        state = "completed" if version == "0.3" else "TASK_STATE_COMPLETED"
        assert task["status"]["state"] == state and task["contextId"] == "c1"
        assert task["artifacts"][0]["parts"] == [{**TEXT[version], "text": "echo: hello"}]
        assert (task.get("kind") == "task") == (version == "0.3")
        assert task_of(await ask(served.owner, GET[version], {"id": task["id"]})) == task

        again = await ask(served.owner, SEND[version], message(version, contextId="c1"))
        assert task_of(again)["id"] == task["id"], "one message is taken in once"


class HaltingModel:
    """Says the first half, and the second one when somebody has heard the first."""

    def __init__(self) -> None:
        self.heard = anyio.Event()

    async def reply(self, request: Request) -> AsyncIterator[Item]:
        yield TextDelta("The first half, ")
        await self.heard.wait()
        yield TextDelta("and the second.")
        yield Reply(say("The first half, and the second."), "stop", Usage(10, 10))


@VERSIONS
async def test_a_task_is_followed(tmp_path: Path, version: str) -> None:
    model = HaltingModel()
    async with serving(tmp_path, model, agents={"main": {}}) as served:
        seen = []
        with anyio.fail_after(20):
            async for each in follow(served.owner, STREAM[version], message(version)):
                seen.append(each)
                if "The first half" in str(each):
                    model.heard.set()
        kinds = [each.get("kind") or next(iter(each)) for each in seen]
        assert kinds[0] == "task" and kinds[-1] in ("status-update", "statusUpdate")
        pieces = [each.get("artifactUpdate", each) for each in seen if "rtifact" in str(each)]
        pieces = [each for each in pieces if "append" in each]
        assert len(pieces) > 1 and pieces[-1]["lastChunk"] and not pieces[-1]["append"]
        whole = ""
        for each in pieces:
            text = each["artifact"]["parts"][0]["text"]
            whole = whole + text if each["append"] else text
        assert whole == "The first half, and the second."
        if version == "0.3":
            assert seen[-1]["final"] and seen[-1]["status"]["state"] == "completed"


@VERSIONS
async def test_a_task_that_asks_is_answered(tmp_path: Path, version: str) -> None:
    async with running(tmp_path) as served:
        task = task_of(await ask(served.owner, SEND[version], message(version, "ask me")))
        assert "input" in task["status"]["state"].lower()
        assert task["status"]["message"]["parts"][0]["text"] == "Which one?"
        more = {"taskId": task["id"], "contextId": task["contextId"], "messageId": "m2"}
        done = task_of(await ask(served.owner, SEND[version], message(version, "the red", **more)))
        assert done["id"] == task["id"]
        assert "the red" in done["artifacts"][0]["parts"][0]["text"]
        over = await ask(served.owner, SEND[version], message(version, "more", **more))
        assert over["error"]["code"] == -32004


@VERSIONS
async def test_a_task_is_cancelled(tmp_path: Path, version: str) -> None:
    async with running(tmp_path) as served:
        task = task_of(await ask(served.owner, SEND[version], message(version, "ask me")))
        gone = task_of(await ask(served.owner, CANCEL[version], {"id": task["id"]}))
        assert gone["status"]["state"] in ("canceled", "TASK_STATE_CANCELED")
        again = await ask(served.owner, CANCEL[version], {"id": task["id"]})
        assert again["error"]["code"] == -32002


async def begun(client: Client, text: str, context: str, **more: Any) -> Any:
    """A task that is not waited for."""
    params = message("1.0", text, contextId=context, **more)
    params["configuration"] = {"returnImmediately": True}
    return task_of(await ask(client, "SendMessage", params))


async def test_words_that_answer_a_question_are_a_task_too(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        params = message("1.0", "ask me", contextId="c")
        asked = task_of(await ask(served.owner, "SendMessage", params))
        more = message("1.0", "the red", contextId="c", messageId="m2")
        done = task_of(await ask(served.owner, "SendMessage", more))
        assert done["artifacts"][0]["parts"][0]["text"] == "You said the red."
        first = task_of(await ask(served.owner, "GetTask", {"id": asked["id"]}))
        assert first["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_an_answer_that_does_not_count_is_told(tmp_path: Path) -> None:
    async with running(tmp_path, policy=[{"verdict": "ask"}]) as served:
        await served.people.add_user("m", "member")
        _, client = await served.token("m", ("read", "chat"))
        asked = task_of(await ask(client, "SendMessage", message("1.0", "slow")))
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        yes = message("1.0", "yes", taskId=asked["id"], messageId="m2")
        with anyio.fail_after(20):
            told = task_of(await ask(client, "SendMessage", yes))
        assert told["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert "Only an owner or an approver" in told["status"]["message"]["parts"][0]["text"]


async def test_a_command_is_answered_by_its_reply(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        done = task_of(await ask(served.owner, "SendMessage", message("1.0", "/status")))
        assert done["status"]["state"] == "TASK_STATE_COMPLETED"
        assert done["artifacts"][0]["parts"][0]["text"].strip()


async def test_ids_of_messages_are_apart(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        pairs = [("x", "y:z"), ("x:y", "z"), ("c", f"{'m' * 220}1"), ("c", f"{'m' * 220}2")]
        found = [
            task_of(
                await ask(
                    served.owner,
                    "SendMessage",
                    message("1.0", f"no {n}", contextId=context, messageId=id_),
                )
            )
            for n, (context, id_) in enumerate(pairs)
        ]
        texts = [each["artifacts"][0]["parts"][0]["text"] for each in found]
        assert texts == [f"echo: no {n}" for n in range(4)]
        same = [
            task_of(await ask(served.owner, "SendMessage", message("1.0", messageId="one")))["id"]
            for _ in range(2)
        ]
        assert same[0] == same[1], "without a context, too"


async def test_names_of_contexts_are_apart(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        names = ["a/b", "a b", "客户", "顾客", "x" * 130 + "1", "x" * 130 + "2"]
        found = [(await begun(served.owner, "hi", name))["contextId"] for name in names]
        assert len(set(found)) == len(names)
        again = [(await begun(served.owner, "hi", n, messageId="2"))["contextId"] for n in names]
        assert again == found


async def test_tasks_of_one_agent_are_not_those_of_another(tmp_path: Path) -> None:
    async with running(tmp_path, roles={"coding": {"agents": ["coder"]}}) as served:
        task = task_of(await ask(served.owner, "SendMessage", message("1.0")))
        other = await ask(served.owner, "GetTask", {"id": task["id"]}, "/a2a/coder")
        assert other["error"]["code"] == -32001
        await served.people.add_user("partner", "coding")
        _, partner = await served.token("partner", ("read", "chat"))
        body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task["id"]}}
        assert (await partner.ask("POST", "/a2a/main", body))[0] == 404
        card = "/.well-known/agent-card.json"
        assert (await partner.ask("GET", f"/a2a/main{card}"))[0] == 404
        assert (await partner.get(f"/a2a/coder{card}"))["name"] == "coder"
        assert (await served.client().ask("GET", f"/a2a/coder{card}"))[0] == 401


async def test_parts_of_all_kinds_arrive(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        parts = [
            {"text": "look"},
            {"data": {"a": 1}},
            {"raw": PIXEL, "filename": "dir/dot.png", "mediaType": "text/plain"},
            {"url": "https://example.com/a.pdf"},
            {"kind": "file", "file": {"bytes": "aGk=", "name": "hi.txt", "mimeType": "text/plain"}},
        ]
        params = message("1.0", contextId="c")
        params["message"]["parts"] = parts
        await ask(served.owner, "SendMessage", params)
        log = await served.owner.get("/api/sessions/c/log")
        kept = log[0]["event"]["message"]["parts"]
        assert [each["type"] for each in kept] == ["text", "text", "image", "text", "file"]
        assert (
            kept[1]["text"] == '{"a":1}' and kept[3]["text"] == "[file: https://example.com/a.pdf]"
        )
        assert (kept[2]["name"], kept[2]["mime"]) == ("dot.png", "image/png")
        blob = kept[4]["blob"]
        assert await served.owner.get(f"/api/blobs/{blob}?session=c&name=hi.txt") == "hi"


NO_PARTS: list[tuple[list[Any], str]] = [
    ([{"text": "x"}] * 51, "at most 50 parts"),
    ([{"raw": "%"}], "no base64"),
    ([5], "is an object"),
    ([{"kind": "text"}], "has a text, data or a file"),
    ([{"text": " "}], "is empty"),
]


async def test_parts_that_are_none(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        for parts, told in NO_PARTS:
            params = message("1.0")
            params["message"]["parts"] = parts
            answer = await ask(served.owner, "SendMessage", params)
            assert answer["error"]["code"] == -32602 and told in answer["error"]["message"]


NO_ANSWERS: list[tuple[list[Any], dict[str, str], str]] = [
    ([{"text": " "}], {}, "1 to 1,000,000 characters"),
    ([{"text": "x" * 1_000_001}], {}, "1 to 1,000,000 characters"),
    ([{"text": "x"}, {"raw": "aGk="}], {}, "An answer is text"),
    ([{"text": "x"}], {"contextId": "other"}, "another context"),
]


async def test_what_is_no_answer_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        for parts, more, told in NO_ANSWERS:
            asked = task_of(await ask(served.owner, "SendMessage", message("1.0", "ask me")))
            params = message("1.0", taskId=asked["id"], messageId="m2", **more)
            params["message"]["parts"] = parts
            answer = await ask(served.owner, "SendMessage", params)
            assert told in answer["error"]["message"]


async def test_a_notification_is_not_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        body = {"jsonrpc": "2.0", "method": "SendMessage", "params": message("1.0")}
        assert await served.owner.ask("POST", "/a2a/main", body) == (202, "")


def waiting() -> int:
    """How many tasks of requests there are that wait for a run."""
    return sum("wait_for_run" in each.get_name() for each in asyncio.all_tasks())


def slow(**more: Any) -> dict[str, Any]:
    """A request that waits for a command."""
    params = message("1.0", "slow", **more)
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}


async def test_who_hangs_up_is_not_waited_for(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(served.owner.ask, "POST", "/a2a/main", slow()))
            await until(lambda: waiting() > 0)
            tasks.cancel_scope.cancel()
        await until(lambda: waiting() == 0)


async def test_a_token_that_ends_ends_the_wait(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        row, client = await served.token("owner", ("read", "chat"))
        answers: list[Any] = []

        async def wait() -> None:
            answers.append(await client.ask("POST", "/a2a/main", slow()))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await until(lambda: waiting() > 0)
                await served.people.revoke(row.id)
        assert answers[0][1]["error"]["code"] == -32603


async def test_who_waits_for_what_is_erased_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        answers: list[Any] = []

        async def wait() -> None:
            answers.append(await served.owner.ask("POST", "/a2a/main", slow(contextId="gone")))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                await until(lambda: waiting() > 0)
                assert (await served.owner.ask("DELETE", "/api/sessions/gone"))[0] == 200
        assert answers[0][0] == 200


async def test_a_stream_of_an_erased_conversation_is_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        params = message("1.0", contextId="gone")
        await ask(served.owner, "SendMessage", params)
        assert (await served.owner.ask("DELETE", "/api/sessions/gone"))[0] == 200
        answer = await ask(served.owner, "SendStreamingMessage", params)
        assert answer["error"]["code"] == -32001


WRONG = [
    (b"{", -32700),
    (b"[]", -32600),
    (b'{"jsonrpc":"2.0","id":1}', -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"tasks/get"}', -32600),
    (b'{"jsonrpc":"2.0","id":1,"method":"what"}', -32601),
    (b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":[]}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"1~main~x"}}', -32001),
    (b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}', -32602),
    (b'{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set"}', -32003),
    (b'{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig"}', -32003),
]


async def test_errors_are_those_of_the_protocol(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        for body, code in WRONG:
            headers = {"content-type": "application/json"}
            status, answer = await served.owner.ask("POST", "/a2a/main", data=body, headers=headers)
            assert status == 200 and answer["error"]["code"] == code and answer["error"]["message"]


async def test_versions_that_nobody_speaks_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("1.0")}
        status, answer = await served.owner.ask(
            "POST", "/a2a/main", body, headers={"a2a-version": "2.0"}
        )
        assert status == 200 and answer["error"]["code"] == -32009


async def test_nobody_comes_in_without_a_token(tmp_path: Path) -> None:
    async with running(tmp_path) as served:
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message("1.0")}
        assert (await served.client().ask("POST", "/a2a/main", body))[0] == 401
        assert (await served.owner.ask("POST", "/a2a/nobody", body))[0] == 404


async def test_the_official_client_finds_and_uses_it(tmp_path: Path) -> None:
    async with (
        running(tmp_path) as served,
        httpx.AsyncClient(headers=served.owner.headers, timeout=20) as http,
    ):
        card = await A2ACardResolver(http, served.url).get_agent_card()
        assert card.name == "main"
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=True)).create(card)
        sent = Message(message_id="m1", role=Role.ROLE_USER, parts=[Part(text="hello")])
        seen = [each async for each in client.send_message(SendMessageRequest(message=sent))]
        assert seen[0].task.id and seen[-1].status_update.status.state == (
            TaskState.TASK_STATE_COMPLETED
        )
        said = [each.artifact_update for each in seen if each.HasField("artifact_update")]
        assert said[-1].artifact.parts[0].text == "echo: hello"


@asynccontextmanager
async def behind_a_token(served: Served) -> AsyncIterator[str]:
    """The address of a proxy that sends the owner's token along: the lint has none."""

    async def pass_on(request: web.Request) -> web.Response:
        async with served.http.request(
            request.method,
            served.url + request.path,
            data=await request.read(),
            headers={**served.owner.headers, "content-type": request.content_type},
        ) as answer:
            data = (await answer.read()).replace(served.url.encode(), url.encode())
            kind = answer.headers["content-type"]
            return web.Response(status=answer.status, body=data, headers={"content-type": kind})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", pass_on)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield url
    finally:
        await runner.cleanup()


async def test_its_lint_gives_the_best_grade(tmp_path: Path) -> None:
    async with running(tmp_path) as served, behind_a_token(served) as url:
        done = await anyio.run_process(
            [sys.executable, "-m", "a2a_lint.cli", url, "--live", "--json"], check=False
        )
        found = msgspec.json.decode(done.stdout)
        assert found["summary"]["grade"] == "A" and not found["summary"]["errors"], found
        assert found["streamEvents"] > 2 and "liveRoundTripMs" in found
