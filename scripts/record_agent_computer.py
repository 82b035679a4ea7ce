"""Records what agent_computer's server answers: `record_agent_computer.py CHECKOUT [PYTHON]`.

CHECKOUT is a checkout of its source, PYTHON an interpreter that has its requirements. The server
runs on loopback in a copy of the checkout, with a scripted model. Writes
`tests/web/recorded/agent_computer.json`: shapes, keys and figures, no text
(`tests/web/recorded/compare.py` has the format).

Two things are not as they come: the server waits 2 s for an approval and not 300 s, and what looks
back at all past sessions (reflection) is off.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.web.recorded.model import reply_to
from tests.web.recorded.play import Player

RECORDING = ROOT / "tests" / "web" / "recorded" / "agent_computer.json"
LITERALS = (
    *("type", "role", "status", "mode", "phase", "reason", "finish_reason"),
    *("iteration", "iterations", "count", "run_count", "jobs_loaded", "exit_code"),
)
START = """
import asyncio, sys
import gateway
wait_for = asyncio.wait_for
asyncio.wait_for = lambda awaited, timeout=None: wait_for(awaited, 2.0 if timeout == 300.0 else timeout)
import uvicorn
gateway.agent.client.api_key = "none"
uvicorn.run(gateway.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
"""  # noqa: E501
CRON = [
    {
        "id": "daily-check",
        "name": "Daily check",
        "schedule": "daily 09:00",
        "prompt": "hello",
        "session_id": "cron-daily-check",
        "enabled": True,
    }
]

MODEL: dict[str, list[dict[str, Any]]] = {
    "hello": [{"text": "Hello."}],
    "list the files": [
        {"text": "Looking.", "calls": [["list_directory", {}]]},
        {"text": "Here they are."},
    ],
    "list them twice": [
        {"text": "", "calls": [["list_directory", {}], ["list_directory", {"path": "."}]]},
        {"text": "Twice."},
    ],
    "read what is not there": [
        {"text": "", "calls": [["read_file", {"path": "nothing.txt"}]]},
        {"text": "No."},
    ],
    "run a command": [
        {"text": "", "calls": [["shell", {"command": "echo out; echo err >&2; exit 3"}]]},
        {"text": "3."},
    ],
    "work on tasks": [
        {"text": "", "calls": [["manage_tasks", {"action": "create", "title": "read"}]]},
        {
            "text": "",
            "calls": [["manage_tasks", {"action": "complete", "task_id": 1, "result": "read"}]],
        },
        {"text": "Worked."},
    ],
    "make a plan": [
        {"text": "", "calls": [["manage_tasks", {"action": "create", "title": "read"}]]},
        {"text": "First I read."},
    ],
    "another plan": [{"text": "First I look."}],
    "Execute the plan now.": [
        {
            "text": "",
            "calls": [["manage_tasks", {"action": "complete", "task_id": 1, "result": "read"}]],
        },
        {"text": "Executed."},
    ],
    "fail": [{"fails": True}],
    "go round": [{"text": "", "calls": [["list_directory", {}]]}],
}

Steps = list[dict[str, Any]]


def get(path: str) -> dict[str, Any]:
    return {"http": "GET", "path": path}


def post(path: str, body: Any = None, **more: Any) -> dict[str, Any]:
    return {"http": "POST", "path": path, **({} if body is None else {"json": body}), **more}


def delete(path: str) -> dict[str, Any]:
    return {"http": "DELETE", "path": path}


def chat(name: str, message: str, **more: Any) -> dict[str, Any]:
    return post(f"/api/chat/{name}", {"message": message, **more})


def says(content: str, until: str = "done") -> dict[str, Any]:
    return {"send": {"type": "message", "content": content}, "until": until}


def frame(until: str, **fields: Any) -> dict[str, Any]:
    return {"send": fields, "until": until}


def before_ping(**fields: Any) -> dict[str, Any]:
    """A frame that may be passed over without a word: then only the answer to the ping behind it
    comes."""
    return {"send": [fields, {"type": "ping"}], "until": "pong"}


PING = frame("pong", type="ping")
CASES: dict[str, Steps] = {
    "nothing yet": [
        get("/api/sessions"),
        get("/api/usage"),
        get("/api/activity"),
        get("/api/cron"),
    ],
    "status": [get("/api/status")],
    "chat": [
        chat("a", "hello"),
        get("/api/sessions/a/history"),
        get("/api/sessions/a/tasks"),
        get("/api/sessions"),
    ],
    "chat with a tool": [chat("b", "list the files"), get("/api/sessions/b/history")],
    "chat with a command": [chat("c", "run a command"), get("/api/sessions/c/history")],
    "chat in deep work": [
        chat("d", "work on tasks", mode="deep_work"),
        get("/api/sessions/d/tasks"),
    ],
    "chat that fails": [chat("e", "fail")],
    "chat that goes round": [chat("f", "go round")],
    "chat: no message": [post("/api/chat/a", {})],
    "chat: empty message": [post("/api/chat/a", {"message": "  "})],
    "chat: message of a wrong type": [post("/api/chat/a", {"message": 3})],
    "chat: unknown mode": [chat("g", "hello", mode="nonsense")],
    "chat: a list": [post("/api/chat/a", [])],
    "chat: no JSON": [{"http": "POST", "path": "/api/chat/a", "text": "{no"}],
    "chat: no body": [post("/api/chat/a")],
    "usage": [get(f"/api/usage?range={each}") for each in ("today", "7d", "30d", "all")],
    "usage: unknown range": [get("/api/usage?range=nonsense")],
    "activity": [get("/api/activity?limit=50"), get("/api/activity?limit=1")],
    "activity: no number": [get("/api/activity?limit=x")],
    "unknown session": [
        get("/api/sessions/nobody/history"),
        get("/api/sessions/nobody/tasks"),
        delete("/api/sessions/never"),
    ],
    "delete": [
        delete("/api/sessions/b"),
        delete("/api/sessions/b"),
        get("/api/sessions/b/history"),
    ],
    "models": [get("/api/models"), get("/api/models/search?q=a")],
    "models: search for nothing": [get("/api/models/search")],
    "cron": [
        get("/api/cron"),
        post("/api/cron/daily-check/run"),
        get("/api/cron"),
        post("/api/cron/daily-check/toggle"),
        post("/api/cron/daily-check/toggle"),
        post("/api/cron/reload"),
    ],
    "cron: unknown job": [post("/api/cron/nobody/run"), post("/api/cron/nobody/toggle")],
    "unknown address": [get("/api/nothing"), delete("/api/status")],
    "socket": [
        {"open": "/ws/s"},
        PING,
        says("hello"),
        says("list the files"),
        says("list them twice"),
        says("read what is not there"),
        says("run a command"),
        frame("cleared", type="clear"),
        get("/api/sessions/s/history"),
        frame("mode_changed", type="set_mode", mode="deep_work"),
        frame("mode_changed", type="set_mode", mode="bounded"),
    ],
    "socket: fails": [{"open": "/ws/t"}, says("fail", "error"), PING],
    "socket: goes round": [{"open": "/ws/u"}, says("go round", "error|done"), PING],
    "socket: unknown mode": [
        {"open": "/ws/v"},
        frame("error", type="set_mode", mode="nonsense"),
        PING,
    ],
    "socket: empty message": [{"open": "/ws/v"}, before_ping(type="message", content="  ")],
    "socket: message of a wrong type": [
        {"open": "/ws/wrong"},
        frame("closed|error", type="message", content=3),
    ],
    "socket: unknown type": [{"open": "/ws/v"}, before_ping(type="nonsense")],
    "socket: nothing to approve": [
        {"open": "/ws/v"},
        before_ping(type="approval_response", tool_call_id="nothing", approved=True),
    ],
    "socket: nothing to revise": [{"open": "/ws/v"}, before_ping(type="revise_plan")],
    "socket: no plan": [{"open": "/ws/v"}, frame("error", type="approve_plan"), PING],
    "socket: no JSON": [{"open": "/ws/w"}, {"send": "{no", "until": "error"}],
    "socket: plan": [
        {"open": "/ws/x"},
        frame("mode_changed", type="set_mode", mode="deep_work"),
        says("make a plan", "plan_ready"),
        frame("plan_ready", type="revise_plan", feedback="another plan"),
        get("/api/sessions/x/tasks"),
        frame("done", type="approve_plan"),
        get("/api/sessions/x/tasks"),
    ],
    "select": [
        post("/api/models/select", {"provider": "lmstudio", "model_id": "fake-2"}),
        get("/api/models"),
    ],
    "select: no model": [post("/api/models/select", {"provider": "lmstudio"})],
    "select: unknown provider": [
        post("/api/models/select", {"provider": "nobody", "model_id": "x"})
    ],
    "select: wrong type": [post("/api/models/select", {"provider": 3, "model_id": "x"})],
    "select: no JSON": [{"http": "POST", "path": "/api/models/select", "text": "{no"}],
    "socket: activity": [{"open": "/ws/activity"}],
    "approval": [
        {"open": "/ws/p"},
        says("run a command", "approval_request") | {"keep": {"call": "-1.tool_call_id"}},
        frame("done", type="approval_response", tool_call_id="{call}", approved=True),
    ],
    "approval: refused": [
        {"open": "/ws/r"},
        says("run a command", "approval_request") | {"keep": {"call": "-1.tool_call_id"}},
        frame("done", type="approval_response", tool_call_id="{call}", approved=False),
    ],
    "approval: by HTTP": [chat("q", "run a command"), get("/api/sessions/q/history")],
}
ASKING = ("approval", "approval: refused", "approval: by HTTP")
"""Cases that a server plays which asks before commands; all others are played where nothing is
asked."""


class Provider:
    """An OpenAI-compatible provider with the models `fake-1` and `fake-2`, which say what the
    script has."""

    def __init__(self) -> None:
        self._number = 0

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            await runner.cleanup()

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "fake-1"}, {"id": "fake-2"}]})

    async def _complete(self, request: web.Request) -> web.Response:
        asked = await request.json()
        said = [(each["role"], each.get("content") or "") for each in asked["messages"]]
        reply = reply_to(MODEL, said)
        if reply.get("fails"):
            return web.json_response(
                {"error": {"message": "no", "type": "invalid_request_error"}}, status=400
            )
        return web.json_response(self._completion(asked["model"], reply))

    def _completion(self, model: str, reply: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply["text"]}
        calls = reply.get("calls", [])
        if calls:
            message["tool_calls"] = [self._call(name, arguments) for name, arguments in calls]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        return {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": model,
            "choices": [choice],
            "usage": usage,
        }

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"id": f"call_{self._number}", "type": "function", "function": function}


def config(provider: str, asks: bool) -> dict[str, Any]:
    names = ["shell", "read_file", "write_file", "list_directory", "manage_tasks", "memory_search"]
    return {
        "agent": {
            "model": {"provider": "lmstudio", "model_id": "fake-1", "base_url": provider},
            "tools": {
                "allow": names,
                "require_approval": ["shell"] if asks else [],
                "non_interactive_approval_policy": "deny",
            },
            "max_loop_iterations": 5,
            "deep_work": {
                "max_iterations": 200,
                "token_budget": 1_500_000,
                "warning_threshold": 0.8,
            },
        },
        "lmstudio": {"base_url": provider},
        "reflection": {"enabled": False},
        "memory": {"enabled": True, "embedding_base_url": provider},
    }


@asynccontextmanager
async def server(checkout: Path, python: str, provider: str, asks: bool) -> AsyncIterator[str]:
    """The real server in a copy of its checkout; gives its address."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        home = Path(folder) / "source"
        shutil.copytree(checkout, home)
        (home / "config.json").write_text(json.dumps(config(provider, asks)))
        (home / "workspace").mkdir(exist_ok=True)
        (home / "workspace" / "cron.json").write_text(json.dumps(CRON))
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        process = await asyncio.create_subprocess_exec(
            python, "-c", START, str(port), cwd=home, stderr=asyncio.subprocess.DEVNULL
        )
        try:
            url = f"http://127.0.0.1:{port}"
            await _answers(url)
            yield url
        finally:
            process.terminate()
            await process.wait()


async def _answers(url: str) -> None:
    async with aiohttp.ClientSession() as http, asyncio.timeout(60):
        while True:
            try:
                async with http.get(f"{url}/api/status"):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)


async def record(checkout: Path, python: str) -> dict[str, Any]:
    cases: dict[str, Any] = {}
    connector = aiohttp.TCPConnector(force_close=True)
    async with Provider().serve() as provider, aiohttp.ClientSession(connector=connector) as http:
        for asks in (False, True):
            async with server(checkout, python, provider, asks) as url:
                for name, steps in CASES.items():
                    if (name in ASKING) == asks:
                        cases[name] = await Player(http, url, {}, LITERALS).play(steps)
    return cases


def version(checkout: Path) -> str:
    asked = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    checkout = Path(sys.argv[1]).resolve()
    python = sys.argv[2] if len(sys.argv) > 2 else sys.executable
    found = {
        "system": "agent_computer",
        "version": version(checkout),
        "literals": LITERALS,
        "model": MODEL,
        "asking": ASKING,
        "cases": asyncio.run(record(checkout, python)),
    }
    RECORDING.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
