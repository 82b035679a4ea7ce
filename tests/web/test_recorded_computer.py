"""Our answers to agent_computer's clients, beside those that its own server was recorded to
give."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.models.base import Reply, Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import ModelRequestRefused
from deskhand.types.messages import Message, ToolCall

from .recorded.compare import (
    Difference,
    compare_cases,
    documented_rows,
    table_rows,
    unexplained,
    unused,
)
from .recorded.model import Script, reply_to
from .recorded.play import Player
from .served import Served, serving

RECORDED = json.loads((Path(__file__).parent / "recorded" / "agent_computer.json").read_text())
API = Path(__file__).parents[2] / "docs" / "api.md"
PLAN = "exit_plan_mode"
OURS: Script = {
    **RECORDED["model"],
    "List the files in my workspace": RECORDED["model"]["list the files"],
    "make a plan": [
        RECORDED["model"]["make a plan"][0],
        {"text": "", "calls": [[PLAN, {"plan": "First I read."}]]},
        *RECORDED["model"]["Execute the plan now."],
    ],
    "another plan": [
        {"text": "", "calls": [[PLAN, {"plan": "First I look."}]]},
        *RECORDED["model"]["Execute the plan now."],
    ],
}
"""A plan is shown by a tool here; what comes after a yes to it is the same turn."""

CODE = "Every error has a code and a request id in `error`, beside `detail`."
PAGE = "More than their clients read; our page does."
CLEAR = "A wrong field is refused by its name; their server breaks, or takes it silently."
SILENT = "A frame that does nothing is answered with the reason."
TASKS = "When a task was made is not kept."
PROSE = "This tool answers in plain text, which a model reads well; `task_update` has the task."
DURABLE = (
    "An approval waits until a person answers, also over a restart; over HTTP the answer says "
    "what waits."
)
HEARD = "Their server cannot read the answer while a run goes on, and refuses when its time is up."
STEPS = "When the steps are used up, the model says what it has done and what is left."
MODEL_FACTS = "What a model costs and whether it can be used."

DIFFERENCES: tuple[Difference, ...] = (
    Difference("*", "body.error", "object", "absent", CODE),
    Difference("*", "body.sessions[].*", "*", "absent", PAGE),
    Difference("*", "body.percent", "integer", "absent", PAGE),
    Difference("*", "body.work", "*", "absent", PAGE),
    Difference("*", "body.total.cost", "number", "absent", PAGE),
    Difference("*", "body.total.known_cost", "number", "absent", PAGE),
    Difference("*", "body.total.unpriced_calls", "integer", "absent", PAGE),
    Difference("*", "body.agents", "array", "absent", PAGE),
    Difference("*", "body.people", "array", "absent", PAGE),
    Difference("*", "body.month", "object", "absent", PAGE),
    Difference("*", "body.models", "array", "absent", PAGE),
    Difference("*", "body.days", "array", "absent", PAGE),
    Difference("status", "body.version", "string", "absent", PAGE),
    Difference("status", "body.agents", "array", "absent", PAGE),
    Difference("status", "body.started_at", "number", "absent", PAGE),
    Difference("activity", "body.events[*].tool_call_id", "string", "absent", PAGE),
    Difference("activity", "body.more", "integer", "absent", PAGE),
    Difference("delete", "body.erased", "integer", "absent", PAGE),
    Difference("delete", "body.memories", "integer", "absent", PAGE),
    Difference("delete", "body.kept", "integer", "absent", PAGE),
    Difference("models*", "body.models[].*", "*", "absent", MODEL_FACTS),
    Difference(
        "*", "*.lmstudio.models[]", "absent", "object", "No LM Studio runs beside this test."
    ),
    Difference("*", "*tasks[].created_at", "absent", "number", TASKS),
    Difference(
        "chat in deep work",
        "body.mode",
        "=deep_work",
        "=bounded",
        "A mode is kept by the conversation, however it was chosen.",
    ),
    Difference("*wrong type", "status", "422", "500", CLEAR),
    Difference("*wrong type", "body", "object", "text", CLEAR),
    Difference("chat: unknown mode", "status", "422", "200", CLEAR),
    Difference("chat: unknown mode", "body.response", "absent", "string", CLEAR),
    Difference("chat: unknown mode", "body.session_id", "absent", "string", CLEAR),
    Difference("chat: unknown mode", "body.mode", "absent", "=nonsense", CLEAR),
    Difference("chat: unknown mode", "body.detail", "array", "absent", CLEAR),
    Difference("usage: unknown range", "status", "422", "200", CLEAR),
    Difference("usage: unknown range", "body.total", "absent", "object", CLEAR),
    Difference("usage: unknown range", "body.sessions", "absent", "array", CLEAR),
    Difference("usage: unknown range", "body.detail", "array", "absent", CLEAR),
    Difference(
        "chat: a list",
        "body.detail[*]",
        "*",
        "*",
        "The type of the fault is that of an object with fields, not of any object.",
    ),
    Difference(
        "socket", "events", "text", "absent", "What a model says beside its calls is shown too."
    ),
    Difference("socket: goes round", "events", "absent", "error", STEPS),
    Difference("socket: goes round", "events", "thinking", "absent", STEPS),
    Difference("socket: goes round", "events", "text", "absent", STEPS),
    Difference("socket: goes round", "events", "done", "absent", STEPS),
    Difference(
        "socket: goes round",
        "events[thinking].iteration",
        "=1|=2|=3|=4|=5|=6",
        "=1|=2|=3|=4|=5",
        STEPS,
    ),
    Difference("socket: *", "events", "error", "absent", SILENT),
    Difference("socket: plan", "events[tool_result].result_preview", "string", "object", PROSE),
    Difference(
        "socket: plan",
        "events",
        "absent",
        "thinking:memory_search*",
        "What a yes to a plan begins is the same turn: nothing new was said to search for.",
    ),
    Difference(
        "approval*",
        "events[approval_request].question",
        "string",
        "absent",
        "What is asked, in a sentence.",
    ),
    Difference(
        "approval*", "events[approval_request].reason", "string", "absent", "Why it is asked."
    ),
    Difference("approval*", "events[approval_request].until", "number", "absent", DURABLE),
    Difference("approval*", "events[approval_resolved].reason", "*", "=timeout", HEARD),
    Difference(
        "approval", "events[tool_result].result_preview.json.error", "absent", "string", HEARD
    ),
    Difference(
        "approval", "events[tool_result].result_preview.json.tool", "absent", "string", HEARD
    ),
    Difference(
        "approval", "events[tool_result].result_preview.json.exit_code", "=3", "absent", HEARD
    ),
    Difference(
        "approval", "events[tool_result].result_preview.json.stdout", "string", "absent", HEARD
    ),
    Difference(
        "approval", "events[tool_result].result_preview.json.stderr", "string", "absent", HEARD
    ),
    Difference("approval: by HTTP", "body.waiting", "object", "absent", DURABLE),
    Difference(
        "approval: by HTTP", "body.messages[assistant].content", "object", "object|string", DURABLE
    ),
    Difference("approval: by HTTP", "body.messages[tool]", "absent", "object", DURABLE),
)
"""What differs and stays so; `docs/api.md` has the same table."""


def script(request: Request) -> Message | Reply:
    said = [(each.message.role, each.message.text) for each in request.messages]
    reply = reply_to(OURS, said)
    if reply.get("fails"):
        raise ModelRequestRefused("no")
    calls = [
        ToolCall(f"call_{len(said)}_{n}", name, msgspec.Raw(json.dumps(arguments).encode()))
        for n, (name, arguments) in enumerate(reply.get("calls", []))
    ]
    return say(reply["text"], *calls)


@asynccontextmanager
async def server(home: Path, asks: bool) -> AsyncIterator[Served]:
    verdict = "ask" if asks else "allow"
    """With the same model, job and limits as the recorded one; it allows commands, or asks."""
    async with serving(
        home,
        ScriptedModel(script),
        tools=None,
        policy=[{"tool": "shell", "verdict": verdict}],
        defaults={"models": ["scripted/echo"], "steps": 5},
        environment={"OPENROUTER_API_KEY": "sk-or-0123456789"},
    ) as served:
        job = {"name": "daily-check", "text": "---\nschedule: daily 09:00\n---\n\nhello"}
        assert (await served.owner.ask("POST", "/api/jobs", job))[0] == 201
        yield served


async def test_every_answer_beside_the_recorded_one(tmp_path: Path) -> None:
    ours: dict[str, Any] = {}
    for asks in (False, True):
        home = tmp_path / str(asks)
        home.mkdir()
        async with server(home, asks) as served:
            for name, steps in RECORDED["cases"].items():
                if (name in RECORDED["asking"]) == asks:
                    player = Player(
                        served.http, served.url, served.owner.headers, RECORDED["literals"]
                    )
                    ours[name] = await player.play(steps)
    found = compare_cases(RECORDED["cases"], ours, RECORDED["literals"])
    assert unexplained(found, DIFFERENCES) == []
    assert unused(found, DIFFERENCES) == []


def test_the_document_has_the_same_table() -> None:
    assert documented_rows(API.read_text(), RECORDED["system"]) == table_rows(
        RECORDED["system"], DIFFERENCES
    )


def test_the_recording_has_no_text() -> None:
    sent = {"http", "path", "json", "text", "open", "send", "until", "keep"}
    words = {
        word
        for steps in RECORDED["cases"].values()
        for step in steps
        for word in _strings(step, sent)
    }
    assert max(map(len, words)) <= 40
    assert not [word for word in words if " " in word]


def _strings(value: Any, without: set[str]) -> Iterator[str]:
    match value:
        case dict():
            for key, each in value.items():
                if key not in without:
                    yield key
                    yield from _strings(each, set())
        case list():
            for each in value:
                yield from _strings(each, set())
        case str():
            yield value


async def test_the_documented_session_from_start_to_end(tmp_path: Path) -> None:
    """By a client that was written from the document alone, in a process of its own."""
    async with server(tmp_path, asks=True) as served:
        token = served.owner.headers["authorization"].removeprefix("Bearer ")
        command = [sys.executable, "-m", "tests.web.clients.agent_computer", served.url, token]
        ran = await anyio.run_process(command, cwd=API.parents[1], check=False)
        lines = ran.stdout.decode().splitlines()
    assert ran.returncode == 0, ran.stderr.decode()
    ended = "text: 1 of 1 tasks done"  # may come before the conversation is cleared, or not
    assert [line for line in lines if not line.startswith(ended)] == SESSION.strip().splitlines()


SESSION = """
chat: Here they are. my-session bounded
status: ok echo True
session: my-session 3 List the files in my workspace
history: user True List the files in my workspace
history: assistant True list_directory
history: tool True knowledge/
history: assistant True Here they are.
tasks: []
usage: 40 my-session
activity: tool_call list_directory True
activity: tool_result list_directory True
thinking: 1
tool_call: shell {"command": "echo out; echo err >&2; exit 3"}
approval_request: shell {"command": "echo out; echo err >&2; exit 3"}
tool_result: shell False True
exit code: 3
thinking: 2
text: 3.
done: 2 40 bounded
mode_changed: deep_work
thinking: 1
tool_call: manage_tasks {"action": "create", "title": "read"}
tool_result: manage_tasks True True
task_update: 0 of 1 tasks done (0 %)
thinking: 2
plan_ready: 0 of 1 tasks done (0 %)
thinking: 1
tool_call: manage_tasks {"action": "complete", "task_id": 1, "result": "read"}
tool_result: manage_tasks True True
task_update: 1 of 1 tasks done (100 %)
thinking: 2
text: Executed.
done: 2 40 deep_work
models: echo ['lmstudio', 'openrouter']
selected: anthropic/claude-sonnet-4-6
job: daily-check daily 09:00 True hello
run: 1
toggle: disabled
reload: 1
delete: deleted
"""
