"""The session that agent_computer's document shows, from start to end: `agent_computer.py URL
TOKEN`.

Reads every key without a default, as such a client does: what is not there breaks it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import aiohttp

SESSION = "my-session"


class Client:
    """Prints what it reads, and returns it."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._url = url
        self.lines: list[str] = []

    async def run(self) -> list[str]:
        await self._chat()
        await self._look()
        await self._talk()
        await self._models()
        await self._cron()
        await self._end()
        return self.lines

    def _print(self, *words: object) -> None:
        self.lines.append(" ".join(map(str, words)))

    async def _ask(self, method: str, path: str, body: Any = None) -> Any:
        async with self._http.request(method, self._url + path, json=body) as answer:
            found = await answer.json()
            assert answer.status == 200, (method, path, found)
            return found

    async def _chat(self) -> None:
        answer = await self._ask(
            "POST", f"/api/chat/{SESSION}", {"message": "List the files in my workspace"}
        )
        self._print("chat:", answer["response"], answer["session_id"], answer["mode"])

    async def _look(self) -> None:
        status = await self._ask("GET", "/api/status")
        self._print(
            "status:", status["status"], status["model"], status["deep_work"]["max_iterations"] > 0
        )
        for each in (await self._ask("GET", "/api/sessions"))["sessions"]:
            self._print("session:", each["session_id"], each["messages"], each["preview"])
        history = await self._ask("GET", f"/api/sessions/{SESSION}/history")
        for message in history["messages"]:
            content = message["content"]
            text = (
                content
                if isinstance(content, str)
                else content["tool_calls"][0]["function"]["name"]
            )
            self._print("history:", message["role"], message["timestamp"] > 0, text.splitlines()[0])
        self._print("tasks:", (await self._ask("GET", f"/api/sessions/{SESSION}/tasks"))["tasks"])
        usage = await self._ask("GET", "/api/usage?range=7d")
        self._print("usage:", usage["total"]["total_tokens"], usage["sessions"][0]["session_id"])
        for event in (await self._ask("GET", "/api/activity?limit=50"))["events"]:
            self._print("activity:", event["type"], event["tool"], event["timestamp"] > 0)

    async def _talk(self) -> None:
        async with self._http.ws_connect(f"{self._url}/ws/{SESSION}") as socket:
            await socket.send_json({"type": "ping"})
            await self._read(socket, "pong")
            await socket.send_json({"type": "message", "content": "run a command"})
            await self._read(socket, "done")
            await socket.send_json({"type": "set_mode", "mode": "deep_work"})
            await self._read(socket, "mode_changed")
            await socket.send_json({"type": "message", "content": "make a plan"})
            await self._read(socket, "plan_ready")
            await socket.send_json({"type": "approve_plan"})
            await self._read(socket, "done")
            await socket.send_json({"type": "clear"})
            await self._read(socket, "cleared")

    async def _read(self, socket: aiohttp.ClientWebSocketResponse, last: str) -> None:
        """Show events up to the first of this type, and answer what is asked."""
        while True:
            event = await socket.receive_json(timeout=20)
            self._show(event)
            if event["type"] == "approval_request":
                answer = {
                    "type": "approval_response",
                    "tool_call_id": event["tool_call_id"],
                    "approved": True,
                }
                await socket.send_json(answer)
            if event["type"] == last:
                return

    def _show(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "thinking" if "phase" not in event:
                self._print("thinking:", event["iteration"])
            case "tool_call":
                self._print("tool_call:", event["tool"], json.dumps(event["input"]))
            case "approval_request":
                self._print("approval_request:", event["tool"], json.dumps(event["input"]))
            case "tool_result":
                self._print(
                    "tool_result:", event["tool"], event["success"], event["duration_ms"] >= 0
                )
                if event["tool"] == "shell":
                    self._print("exit code:", json.loads(event["result_preview"])["exit_code"])
            case "text":
                self._print("text:", event["text"])
            case "task_update" | "plan_ready":
                self._print(f"{event['type']}:", event["summary"])
            case "mode_changed":
                self._print("mode_changed:", event["mode"])
            case "done":
                self._print(
                    "done:", event["iterations"], event["usage"]["total_tokens"], event["mode"]
                )

    async def _models(self) -> None:
        models = await self._ask("GET", "/api/models")
        self._print("models:", models["current"]["model_id"], sorted(models["providers"]))
        wanted = {"provider": "openrouter", "model_id": "anthropic/claude-sonnet-4-6"}
        self._print(
            "selected:", (await self._ask("POST", "/api/models/select", wanted))["model_id"]
        )

    async def _cron(self) -> None:
        for job in (await self._ask("GET", "/api/cron"))["jobs"]:
            self._print("job:", job["id"], job["schedule"], job["enabled"], job["prompt_preview"])
        self._print("run:", (await self._ask("POST", "/api/cron/daily-check/run"))["run_count"])
        self._print("toggle:", (await self._ask("POST", "/api/cron/daily-check/toggle"))["status"])
        self._print("reload:", (await self._ask("POST", "/api/cron/reload"))["jobs_loaded"])

    async def _end(self) -> None:
        self._print("delete:", (await self._ask("DELETE", f"/api/sessions/{SESSION}"))["status"])


async def session(url: str, token: str) -> list[str]:
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        return await Client(http, url).run()


if __name__ == "__main__":
    print("\n".join(asyncio.run(session(sys.argv[1], sys.argv[2]))))
