"""Every example in the documents of agent_computer and openagent-core, with our token added,
against a real server.

`documented/*.json` was made from the documents by scripts/documented.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import msgspec
import pytest

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.tools import task_board, tasks
from deskhand.types.messages import Message, ToolCall

from .served import Served, serving
from .test_sockets import act

FOLDER = Path(__file__).parent / "documented"
COMPUTER, OPENAGENT = (
    json.loads((FOLDER / f"{name}.json").read_text())
    for name in ("agent_computer", "openagent_core")
)
SHAPES: dict[str, tuple[str, ...]] = {
    "POST /api/models/select": ("status", "provider", "model_id", "base_url"),
    "POST /api/chat/my-session": ("response", "session_id", "mode"),
    "GET /api/status": (
        *("status", "agent", "model", "provider", "base_url"),
        *("tools", "sessions", "cron_jobs", "deep_work"),
    ),
    "GET /api/sessions": ("sessions",),
    "GET /api/sessions/my-session/history": ("session_id", "messages"),
    "GET /api/sessions/my-session/tasks": ("tasks", "summary"),
    "DELETE /api/sessions/my-session": ("status",),
    "GET /api/usage?range=7d": ("total", "sessions"),
    "GET /api/activity?limit=50": ("events",),
    "GET /api/models": ("current", "pinned", "providers", "models"),
    "GET /api/cron": ("jobs",),
    "POST /api/cron/daily-check/run": ("status", "job", "run_count"),
    "POST /api/cron/daily-check/toggle": ("status", "job"),
    "POST /api/cron/reload": ("status", "jobs_loaded"),
    "GET /health": ("status", "model"),
    "POST /api/chat": ("conversation_id",),
    "GET /api/conversations": ("id",),
    "GET /api/conversations/{id}": ("messages", "total_input_tokens", "total_output_tokens"),
    "DELETE /api/conversations/{id}": ("status",),
    "GET /api/tools": ("name", "description"),
    "GET /api/skills": ("name", "description"),
    "POST /api/skills": ("name", "description"),
    "GET /api/presets": ("name", "description"),
    "GET /api/workspace/files": ("name", "path", "size"),
    "GET /api/workspace/file/{path}": ("path", "name", "size", "content", "binary", "language"),
    "POST /api/workspace/upload": ("uploaded",),
}


def script(request: Request) -> Message:
    """Acts once for whoever asks to list files, and answers."""
    last = request.messages[-1].message
    if last.role == "tool":
        return say("Here they are.")
    if last.text.endswith("Plan"):
        create = msgspec.Raw(b'{"action": "create", "title": "read"}')
        return say("", ToolCall("c2", "manage_tasks", create))
    if last.text.endswith("tasks"):
        todos = msgspec.Raw(
            b'{"items": [{"content": "read", "activeForm": "Reading", "status": "in_progress"}]}'
        )
        create = msgspec.Raw(b'{"subject": "read"}')
        return say("", ToolCall("c3", "task_create", create), ToolCall("c4", "todo_write", todos))
    if "files" in last.text:
        return say("Looking.", ToolCall("c1", "act", msgspec.Raw(b'{"what": "ls"}')))
    return say("on and on " * 40)


def has(shape: tuple[str, ...], found: Any) -> bool:
    one = found[0] if isinstance(found, list) else found
    return set(shape) <= set(one)


def servings(home: Path, pause_s: float = 0.0) -> Any:
    policy = [{"tool": "act", "verdict": "allow"}]
    keys = {"OPENROUTER_API_KEY": "sk-or-0123456789"}
    return serving(
        home,
        ScriptedModel(script, pause_s=pause_s),
        (act, *tasks.TOOLS, *task_board.TOOLS),
        environment=keys,
        policy=policy,
    )


async def command(served: Served, example: dict[str, Any]) -> tuple[int, Any]:
    return await served.owner.ask(example["method"], example["path"], example["body"])


async def test_every_command_of_agent_computer(tmp_path: Path) -> None:
    ran = 0
    async with servings(tmp_path) as served:
        await served.owner.ask("POST", "/api/chat/my-session", {"message": "List the files"})
        job = {"name": "daily-check", "text": "---\nschedule: daily 09:00\n---\n\nCheck it."}
        assert (await served.owner.ask("POST", "/api/jobs", job))[0] == 201
        removals = [each for each in COMPUTER["commands"] if each["method"] == "DELETE"]
        for example in [each for each in COMPUTER["commands"] if each not in removals] + removals:
            name = f"{example['method']} {example['path']}"
            status, answer = await command(served, example)
            assert status == 200 and has(SHAPES[name], answer), (name, status, answer)
            ran += 1
    print(f"agent_computer: {ran} commands as documented")
    assert ran == len(COMPUTER["commands"]) == 17


async def test_every_command_and_endpoint_of_openagent(tmp_path: Path) -> None:
    ran = 0
    async with servings(tmp_path) as served:
        for example in OPENAGENT["commands"]:
            status, answer = await command(served, example)
            assert status == 200 and has(
                SHAPES[f"{example['method']} {example['path']}"], answer
            ), answer
            ran += 1
        assert (await served.owner.get("/health"))["status"] == "ok"
        conversation = answer["conversation_id"]
        assert len(conversation) == 12
        (served.app.settings.home.workspace("default") / "a.py").write_text("print()\n")
        upload = aiohttp.FormData(quote_fields=False)
        upload.add_field("files", b"x", filename="b.txt")
        bodies = {
            "POST /api/chat": {},
            "POST /api/skills": {"name": "my-skill", "description": "Use it", "body": "# x"},
        }
        for each in OPENAGENT["endpoints"]:
            name = f"{each['method']} {each['path']}"
            path = each["path"].replace("{id}", conversation).replace("{path}", "a.py")
            more: dict[str, Any] = {"data": upload} if name.endswith("/upload") else {}
            status, answer = await served.owner.ask(each["method"], path, bodies.get(name), **more)
            assert status in (200, 201) and has(SHAPES[name], answer), (name, status, answer)
            ran += 1
    print(f"openagent-core: {ran} commands and endpoints as documented")
    assert ran == len(OPENAGENT["commands"]) + len(OPENAGENT["endpoints"]) == 14


def check(documented: dict[str, Any], seen: list[dict[str, Any]]) -> int:
    """Each documented message of the server was seen, with its fields."""
    shown = 0
    seen = [message for message in seen if "phase" not in message]
    for frame in documented["frames"]:
        if frame["to"] != "client":
            continue
        found = [message for message in seen if message["type"] == frame["type"]]
        if "max_iterations" in frame["fields"]:  # as it is told in deep work
            found = [message for message in found if "max_iterations" in message]
        assert found and all(set(frame["fields"]) <= set(each) for each in found), (frame, found)
        shown += 1
    return shown


async def until(
    socket: aiohttp.ClientWebSocketResponse, last: str, seen: list[dict[str, Any]]
) -> None:
    with anyio.fail_after(20):
        while True:
            seen.append(await socket.receive_json())
            if seen[-1]["type"] == last:
                return


async def test_every_message_of_agent_computer(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    answers = {"message": "done", "set_mode": "mode_changed", "clear": "cleared", "ping": "pong"}
    async with (
        servings(tmp_path) as served,
        served.owner.ws(COMPUTER["sockets"][1].format(session_id="s")) as socket,
    ):
        sent = [frame for frame in COMPUTER["frames"] if frame["to"] == "server"]
        said = [{"type": "message", "content": text} for text in ("List the files", "Plan")]
        more = [{"type": "message", "frame": frame} for frame in said]
        for frame in [*sent, *more]:
            await socket.send_json(frame["frame"])
            await until(socket, answers[frame["type"]], seen)
        await socket.send_json({"type": "no such"})
        await until(socket, "error", seen)
        async with served.owner.ws(COMPUTER["sockets"][0]) as activity:
            await socket.send_json({"type": "message", "content": "more files"})
            told: list[dict[str, Any]] = []
            await until(activity, "tool_result", told)
            assert [each["type"] for each in told] == ["tool_call", "tool_result"]
    shown = check(COMPUTER, seen)
    print(f"agent_computer: {len(sent)} messages sent, {shown} received as documented")
    assert (len(sent), shown, len(COMPUTER["frames"])) == (4, 9, 13)


async def test_every_message_of_openagent(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    sent = [frame for frame in OPENAGENT["frames"] if frame["to"] == "server"]
    async with servings(tmp_path, pause_s=0.01) as served:
        flags = {"enable_tracing": True, "enable_approval": True}
        _, begun = await served.owner.ask("POST", "/api/chat", flags)
        path = OPENAGENT["sockets"][0].format(conversation_id=begun["conversation_id"])
        async with served.owner.ws(path) as socket:
            for decision in sent[-1]["frame"]["decision"].split("|"):
                await socket.send_json(sent[0]["frame"])
                await until(socket, "tool_approval_request", seen)
                await socket.send_json({**sent[-1]["frame"], "decision": decision})
                await until(socket, "done", seen)
            await socket.send_json(sent[1]["frame"])
            await until(socket, "text_delta", seen)
            await socket.send_json(sent[2]["frame"])
            await until(socket, "interrupted", seen)
            await socket.send_json(sent[3]["frame"])
            await until(socket, "done", seen)
            await socket.send_json({"type": "toggle_approval", "enabled": False})
            await socket.send_json({"type": "message", "content": "tasks"})
            await until(socket, "todo_update", seen)
            await until(socket, "done", seen)
            await socket.send_json({"type": "no such"})
            await until(socket, "error", seen)
    assert [frame["type"] for frame in sent[2:]] == [
        "interrupt",
        "cancel",
        "tool_approval_response",
    ]
    # see test_recorded_openagent.py
    elsewhere = (
        *("compact", "background_result"),
        *("subagent_start", "subagent_end", "teammate_status"),
    )
    left_out = {
        **OPENAGENT,
        "frames": [frame for frame in OPENAGENT["frames"] if frame["type"] not in elsewhere],
    }
    shown = check(left_out, seen)
    received = shown + len(elsewhere)
    print(f"openagent-core: {len(sent)} messages sent, {received} received as documented")
    assert (len(sent), received, len(OPENAGENT["frames"])) == (5, 17, 22)


@pytest.mark.parametrize(
    "documented", [COMPUTER, OPENAGENT], ids=["agent_computer", "openagent_core"]
)
def test_only_commands_and_shapes_were_taken(documented: dict[str, Any]) -> None:
    assert set(documented) == {"source", "commands", "endpoints", "sockets", "frames"}
    assert max(len(text) for text in json.dumps(documented).split('"')) < 60
