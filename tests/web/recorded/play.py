"""Plays the steps of a recording against a server, and notes the shapes of what it answers (see
`compare.py`)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import aiohttp

from .compare import shape_of

SENT = ("http", "path", "json", "text", "open", "send", "until", "keep")
"""The keys of a step that say what is sent."""


class Player:
    """One client of a server at `url` that sends `headers` with everything. Events that do not come
    within `wait_s` are noted as one event of type `silence`."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        url: str,
        headers: Mapping[str, str],
        literals: Iterable[str],
        wait_s: float = 30,
    ) -> None:
        self._http, self._url, self._headers = http, url, dict(headers)
        self._wait_s = wait_s
        self._literals = frozenset(literals)
        self._names: dict[str, str] = {}
        self._sockets: dict[str, aiohttp.ClientWebSocketResponse] = {}
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def play(self, steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The same steps, each with what came."""
        found = []
        try:
            for step in steps:
                sent = {key: step[key] for key in SENT if key in step}
                found.append({**sent, **await self._one(self._filled(sent))})
        finally:
            for socket in self._sockets.values():
                await socket.close()
            self._sockets.clear()
            self._socket = None
        return found

    def _filled(self, sent: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(sent)
        for name, value in self._names.items():
            text = text.replace("{" + name + "}", value)
        return dict(json.loads(text))

    async def _one(self, step: dict[str, Any]) -> dict[str, Any]:
        if "http" in step:
            return await self._ask(step)
        if "open" in step:
            return await self._open(step["open"])
        return {"events": await self._talk(step)}

    async def _ask(self, step: dict[str, Any]) -> dict[str, Any]:
        more: dict[str, Any] = {}
        headers = dict(self._headers)
        if "json" in step:
            more["json"] = step["json"]
        if "text" in step:
            more["data"] = step["text"]
            headers["Content-Type"] = "application/json"
        async with self._http.request(
            step["http"], self._url + step["path"], headers=headers, **more
        ) as answer:
            text = await answer.text()
        try:
            body = json.loads(text)
        except ValueError:
            return {"status": answer.status, "body": "text" if text else "empty"}
        self._keep(step, body)
        return {"status": answer.status, "body": shape_of(body, self._literals)}

    async def _receive(
        self, socket: aiohttp.ClientWebSocketResponse, last: Sequence[str], events: list[Any]
    ) -> None:
        while not events or events[-1].get("type") not in last:
            message = await socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                events.append({"type": "closed"})
                return
            events.append(json.loads(message.data))

    def _keep(self, step: dict[str, Any], came: Any) -> None:
        for name, where in step.get("keep", {}).items():
            self._names[name] = str(_at(came, where))

    async def _open(self, path: str) -> dict[str, Any]:
        if path not in self._sockets:
            try:
                self._sockets[path] = await self._http.ws_connect(
                    self._url + path, headers=self._headers
                )
            except aiohttp.WSServerHandshakeError as refused:
                return {"status": refused.status}
        self._socket = self._sockets[path]
        return {"status": 101}

    async def _talk(self, step: dict[str, Any]) -> list[Any]:
        assert self._socket is not None, "a frame is sent before a socket is open"
        send = step["send"]
        for frame in send if isinstance(send, list) else [send]:
            if frame is not None:
                await self._socket.send_str(frame if isinstance(frame, str) else json.dumps(frame))
        last = step["until"].split("|")
        events: list[Any] = []
        try:
            async with asyncio.timeout(self._wait_s):
                await self._receive(self._socket, last, events)
        except TimeoutError:
            events.append({"type": "silence"})
        self._keep(step, events)
        return [shape_of(event, self._literals) for event in events]


def _at(body: Any, where: str) -> Any:
    for key in where.split("."):
        body = body[int(key)] if isinstance(body, list) else body[key]
    return body
