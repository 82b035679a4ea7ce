"""A small client of openagent-core, as its documentation shows one: HTTP, then one WebSocket; our
token is added."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio

Event = dict[str, Any]
WAIT_S = 20.0


class Conversation:
    """One WebSocket."""

    def __init__(self, id_: str, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.id = id_
        self._socket = socket

    async def send(self, type_: str, **fields: Any) -> None:
        await self._socket.send_json({"type": type_, **fields})

    async def until(self, type_: str) -> list[Event]:
        """All events up to the first of this type."""
        events: list[Event] = []
        with anyio.fail_after(WAIT_S):
            while not events or events[-1]["type"] != type_:
                events.append(await self._socket.receive_json())
        return events

    async def ask(self, text: str) -> list[Event]:
        """Say it, and wait until the agent has finished."""
        await self.send("message", content=text)
        return await self.until("done")


class OpenAgentClient:
    """The server at `url`; `token` is the one thing that openagent-core does not ask for."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str) -> None:
        self._http = http
        self._url = url
        self._headers: Mapping[str, str] = {"Authorization": f"Bearer {token}"}

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer that must be a success."""
        more = {} if body is None else {"json": body}
        async with self._http.request(
            method, self._url + path, headers=self._headers, **more
        ) as answer:
            answer.raise_for_status()
            return await answer.json()

    async def upload(self, name: str, data: bytes) -> list[str]:
        """Where the file lies now."""
        form = aiohttp.FormData(quote_fields=False)
        form.add_field("files", data, filename=name)
        async with self._http.post(
            self._url + "/api/workspace/upload", data=form, headers=self._headers
        ) as answer:
            answer.raise_for_status()
            paths: list[str] = (await answer.json())["uploaded"]
            return paths

    @asynccontextmanager
    async def conversation(self, **flags: Any) -> AsyncIterator[Conversation]:
        """A new one."""
        id_ = (await self.call("POST", "/api/chat", flags))["conversation_id"]
        async with self._http.ws_connect(
            f"{self._url}/api/chat/{id_}/ws", headers=self._headers
        ) as socket:
            yield Conversation(id_, socket)


async def example(url: str, token: str) -> list[Event]:
    """The session of the documentation's quick start: is it well, begin, connect, ask."""
    async with aiohttp.ClientSession() as http:
        client = OpenAgentClient(http, url, token)
        assert (await client.call("GET", "/health"))["status"] == "ok"
        async with client.conversation() as conversation:
            return await conversation.ask("List the files in the workspace")


async def main() -> None:
    url, token = sys.argv[1:3]
    for event in await example(url, token):
        print(event)


if __name__ == "__main__":
    anyio.run(main)
