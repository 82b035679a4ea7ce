"""Values of secrets that come from a person, a tool, a provider or a crash are nowhere afterwards:
not in what is kept, and not in what is shown."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import msgspec

from deskhand.models.base import Request
from deskhand.supervision.logs import logging_to_file
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools.base import Context
from deskhand.tools.define import tool
from deskhand.types.errors import ModelRequestRefused
from deskhand.types.messages import Message, ToolCall

from .served import Served, serving

SECRETS = {
    "PASTED_TOKEN": "canary-of-the-person-7f3a",
    "PRINTED_KEY": 'canary "of" the/tool+7f3b',
    "RAISED_SECRET": "canary-of-the-traceback-7f3c",
    "ECHOED_KEY": "canary-of-the-provider-7f3d",
    "KEPT_PASSWORD": "canary-in-a-file-7f3e",
    "ATTACHED_KEY": "canary-of-a-note-7f40",
    "EDITED_KEY": "canary-of-an-edit-7f3f",
}


@tool
async def leak(how: str, context: Context) -> str:
    """Gives away what it should not.

    how: in which way
    """
    value = SECRETS["PRINTED_KEY"]
    if how == "raise":
        raise RuntimeError(f"it broke with {SECRETS['RAISED_SECRET']}")
    context.emit(f"live: {value}\n")
    return f"the key is {value}, in JSON {msgspec.json.encode(value).decode()}"


def leaking(request: Request) -> Message:
    """Calls the tool in both ways, then a provider that refuses with the key in its words."""
    last = request.messages[-1].message
    if last.role == "user":
        if "refuse" in last.text:
            raise ModelRequestRefused(f"no such key: {SECRETS['ECHOED_KEY']}")
        calls = [
            ToolCall(how, "leak", msgspec.Raw(b'{"how": "%s"}' % how.encode()))
            for how in ("print", "raise")
        ]
        return say("", *calls)
    return say(f"It said: {last.parts}")


def raw_in(what: bytes) -> list[str]:
    return [name for name, value in SECRETS.items() if any(form in what for form in forms(value))]


def forms(value: str) -> tuple[bytes, ...]:
    return value.encode(), msgspec.json.encode(value)[1:-1]


async def talked(served: Served) -> bytes:
    """Everything that is said in a conversation in which all of them come up, as it is followed
    live."""
    heard = bytearray()
    path = "/api/sessions/trip"

    async def ended(count: int) -> None:
        with anyio.fail_after(20):
            while heard.count(b'"turn_ended"') < count:
                await anyio.sleep(0.01)

    async def follow() -> None:
        url = f"{served.url}{path}/events"
        async with served.http.get(url, headers=served.owner.headers) as stream:
            async for piece in stream.content.iter_any():
                heard.extend(piece)

    note = f"it is {SECRETS['ATTACHED_KEY']}".encode()
    kind = {"content-type": "text/plain"}
    status, attached = await served.owner.ask(
        "POST", "/api/blobs?name=note.txt", data=note, headers=kind
    )
    assert status == 201, attached
    body = {"text": f"use {SECRETS['PASTED_TOKEN']}", "files": [attached]}
    assert (await served.owner.ask("POST", f"{path}/messages", body))[0] == 202
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        await ended(1)
        assert (await served.owner.ask("POST", f"{path}/messages", {"text": "refuse"}))[0] == 202
        await ended(2)
        rewritten = {"to_n": 0, "text": f"and {SECRETS['EDITED_KEY']}"}
        assert (await served.owner.ask("POST", f"{path}/rewind", rewritten))[0] == 202
        await ended(3)
        tasks.cancel_scope.cancel()
    return bytes(heard)


async def test_no_value_is_kept_or_shown(tmp_path: Path) -> None:
    model = ScriptedModel(leaking)
    async with serving(tmp_path, model, (leak,), environment=SECRETS) as served:
        with logging_to_file(served.app.settings):
            heard = await talked(served)
            logging.getLogger("deskhand").error("with %s", SECRETS["KEPT_PASSWORD"])
        answers = b""
        for path in ("log", "trace", "state"):
            answers += msgspec.json.encode(await served.owner.get(f"/api/sessions/trip/{path}"))
        for path in (
            "/api/activity",
            "/api/search?q=canary",
            "/api/approvals",
            "/api/settings",
            "/health",
        ):
            answers += msgspec.json.encode(await served.owner.get(path))
        asked = repr([request.messages for request in model.requests]).encode()
    assert raw_in(heard) == [] and raw_in(answers) == [] and raw_in(asked) == []
    for name in SECRETS:
        assert name.encode() in heard + served.app.settings.home.log.read_bytes(), (
            "it never came up"
        )
    kept = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert any(name.endswith(".db") for name in kept)
    found = {name: secrets for name, data in kept.items() if (secrets := raw_in(data))}
    assert set(map(tuple, found.values())) == {("ATTACHED_KEY",)}, (
        "the file that was handed over is theirs"
    )
    assert all(name.startswith("state/blobs/") for name in found), found


async def test_a_call_with_a_value_is_not_made_with_a_name_in_its_place(tmp_path: Path) -> None:
    """What a model wrote from a time when it was no secret yet is not kept, and no file gets the
    name instead."""
    ran: list[str] = []

    @tool(effect="local_write")
    async def write(text: str) -> str:
        """Writes.

        text: this
        """
        ran.append(text)
        return "written"

    value = SECRETS["PASTED_TOKEN"]

    def writing(request: Request) -> Message:
        if request.messages[-1].message.role == "tool":
            return say(request.messages[-1].message.parts[0].text)  # type: ignore[union-attr]
        return say(
            "",
            ToolCall("c1", "write", msgspec.Raw(msgspec.json.encode({"text": f"TOKEN={value}"}))),
        )

    async with serving(tmp_path, ScriptedModel(writing), (write,), environment=SECRETS) as served:
        status, answer = await served.owner.ask("POST", "/api/chat/trip", {"message": "go"})
    assert status == 200 and "{{secret:PASTED_TOKEN}} stands for a secret" in answer["response"]
    assert ran == []
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert raw_in(kept) == []


async def test_no_side_door_keeps_or_tells_a_value(tmp_path: Path) -> None:
    """What a program asks for, what conversations are called and how they are held, jobs and
    skills: no value reaches a model or the disk. Where a name would be in its place for good, it is
    refused, and how to do it is said."""
    value = SECRETS["PASTED_TOKEN"]
    hidden = "{{secret:PASTED_TOKEN}}"
    model = ScriptedModel(lambda request: say("Fine."))
    function = {
        "name": "look",
        "description": value,
        "parameters": {"type": "object", "description": value},
    }
    asked = {
        "model": "default",
        "messages": [
            {"role": "system", "content": f"Use {value}."},
            {"role": "user", "content": "hello"},
        ],
        "tools": [{"type": "function", "function": function}],
        "stop": [value],
        "user": value,
    }
    async with serving(tmp_path, model, (), environment=SECRETS) as served:
        assert (await served.owner.ask("POST", "/v1/chat/completions", asked))[0] == 200
        assert (
            await served.owner.ask(
                "PATCH", "/api/sessions/trip", {"system_prompt": value, "title": value}
            )
        )[0] < 300
        assert (await served.owner.ask("POST", "/api/chat/trip", {"message": "hello"}))[0] == 200
        named = await served.owner.ask("POST", f"/api/sessions/{value}/messages", {"text": "hello"})
        branched = await served.owner.ask("POST", "/api/sessions/trip/branch", {"name": value})
        job = {"name": "send", "text": f"---\nschedule: hourly\ndescription: {value}\n---\nsend it"}
        made = await served.owner.ask("POST", "/api/jobs", job)
        skill = {"name": "send", "description": "Sends.", "body": f"Send {value}."}
        added = await served.owner.ask("POST", "/api/skills", skill)
        told = repr(
            [(request.system, request.messages, request.tools) for request in model.requests]
        )
    for status, problem in (named, made, added):
        assert status in (400, 403, 409) and hidden in problem["error"]["message"], problem
    assert branched[0] >= 400
    assert "contains the value of a secret: write" in made[1]["error"]["message"]
    assert raw_in(told.encode()) == [] and hidden in told
    kept = {
        str(path.relative_to(tmp_path)): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert {name: found for name, data in kept.items() if (found := raw_in(data))} == {}
