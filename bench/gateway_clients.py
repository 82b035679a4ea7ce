"""The clients of the gateway's bench, in a process of their own: many who follow, some who talk,
one who reads slowly.

Reads one `Wanted` as JSON from its input, prints one `Seen` as JSON when all turns are over.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress

import aiohttp
import msgspec

_AT = re.compile(rb'"at":([0-9.e+]+)')
_N = re.compile(rb'"n":(\d+)')
WORDS = "some words of an ordinary message, about as long as people write them. "


class Wanted(msgspec.Struct, frozen=True):
    """What to do: `followers` clients spread over `sessions` conversations, each of which is talked
    in for `turns` turns. `pace_s` stands between two of them. `flood` messages come from one more
    user within `flood_s`."""

    url: str
    token: str
    transport: str = "sse"
    sessions: int = 50
    followers: int = 500
    turns: int = 4
    pace_s: float = 0.5
    flood: int = 0
    flood_s: float = 10.0
    prefix: str = "c"


class Seen(msgspec.Struct):
    """`events` are (conversation, its number, when it was here), `ends` the same with how many
    turns had ended before; `frames` is what one client of each conversation got: (seconds since the
    first, conversation, bytes)."""

    delivered: int = 0
    events: list[tuple[int, int, float]] = []
    ends: list[tuple[int, int, float]] = []
    lags_ms: list[float] = []
    frames: list[tuple[float, int, int]] = []
    gaps: int = 0
    accepted: int = 0
    flooded: int = 0
    took_s: float = 0.0
    began: float = 0.0


class Clients:
    def __init__(self, wanted: Wanted, http: aiohttp.ClientSession) -> None:
        self._wanted, self._http, self.seen = wanted, http, Seen()
        self._ended: Counter[int] = Counter()
        self._changed = asyncio.Condition()
        self._ready = 0
        self._began = 0.0

    async def run(self) -> Seen:
        wanted = self._wanted
        for i in range(wanted.sessions):  # a conversation is there once something was said in it
            await self._say(f"{wanted.prefix}{i}", "first", "begin")
        following = [
            asyncio.create_task(self._follow(i))
            for i in range(min(wanted.sessions, wanted.followers))
        ]
        async with asyncio.timeout(120):
            await self._turn_ended(1)
            following += [
                asyncio.create_task(self._follow(i))
                for i in range(wanted.sessions, wanted.followers)
            ]
            while self._ready < wanted.followers:
                await asyncio.sleep(0.02)
        await asyncio.sleep(1)
        self._began = self.seen.began = time.time()
        self.seen.delivered = 0
        self.seen.events = []
        self.seen.ends = []
        self.seen.frames = []
        print("ready", flush=True)
        flood = asyncio.create_task(self._flood()) if wanted.flood else None
        await asyncio.gather(*(self._talk(i) for i in range(wanted.sessions)))
        self.seen.took_s = time.time() - self._began
        print("done", flush=True)
        if flood is not None:
            await flood
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
        return self.seen

    async def _talk(self, i: int) -> None:
        wanted = self._wanted
        await asyncio.sleep(i / wanted.sessions * wanted.pace_s)
        for turn in range(wanted.turns):
            await self._say(f"{wanted.prefix}{i}", f"{turn} {WORDS}", f"t{turn}")
            await self._turn_ended(turn + 2, i)
            await asyncio.sleep(wanted.pace_s)

    async def _turn_ended(self, turns: int, i: int | None = None) -> None:
        wanted = range(self._wanted.sessions) if i is None else (i,)
        async with self._changed:
            await self._changed.wait_for(lambda: all(self._ended[each] >= turns for each in wanted))

    async def _flood(self) -> None:
        gap = self._wanted.flood_s / self._wanted.flood
        began = time.monotonic()
        for k in range(self._wanted.flood):
            await asyncio.sleep(max(0.0, began + k * gap - time.monotonic()))
            self.seen.flooded += await self._say(
                f"{self._wanted.prefix}flood", f"flood {k}", f"f{k}"
            )

    async def _say(self, name: str, text: str, own_id: str) -> bool:
        url = f"{self._wanted.url}/api/sessions/{name}/messages"
        while True:
            async with self._http.post(
                url, json={"text": text, "id": f"{name}-{own_id}"}
            ) as response:
                await response.read()
                if response.status == 202:
                    self.seen.accepted += 1
                    return True
            if response.status not in (403, 429, 503):
                raise AssertionError(f"{response.status} for {name}")
            await asyncio.sleep(0.05)

    async def _follow(self, k: int) -> None:
        """The first of each conversation tells when a turn has ended, and is a stream of
        server-sent events always."""
        wanted = self._wanted
        seen = self.seen
        i = k % wanted.sessions
        n = 0
        first = k < wanted.sessions
        ended = 0
        told = k // wanted.sessions == (1 if wanted.followers > wanted.sessions else 0)
        transport = TRANSPORTS["sse" if first else wanted.transport]
        async for frame in transport(self._http, wanted.url, f"{wanted.prefix}{i}"):
            now = time.time()
            if frame == b"":
                self._ready += 1
                continue
            seen.delivered += 1
            if told:
                seen.frames.append((now - self._began, i, len(frame)))
            if not first and frame.startswith(b'{"type":"done"'):
                seen.ends.append((i, ended, now))
                ended += 1
            if b"recorded" not in frame[:40] or (found := _N.search(frame)) is None:
                continue
            seen.gaps += int(found[1]) != n + 1
            n = int(found[1])
            seen.events.append((i, n, now))
            if first and b'"turn_ended"' in frame:
                async with self._changed:
                    self._ended[i] += 1
                    self._changed.notify_all()


async def sse(http: aiohttp.ClientSession, url: str, name: str) -> AsyncIterator[bytes]:
    """The frames of a stream of server-sent events, without comments; an empty one first, when it
    is there."""
    async with http.get(f"{url}/api/sessions/{name}/events") as response:
        if response.status != 200:
            raise AssertionError(f"{response.status}: {await response.text()}")
        yield b""
        rest = b""
        async for chunk in response.content.iter_any():
            *frames, rest = (rest + chunk).split(b"\n\n")
            for frame in frames:
                if not frame.startswith(b":"):
                    yield frame


async def ws(http: aiohttp.ClientSession, url: str, name: str) -> AsyncIterator[bytes]:
    """The frames of a WebSocket in openagent-core's dialect; an empty one first."""
    async with http.ws_connect(f"{url}/api/chat/{name}/ws", max_msg_size=0) as socket:
        yield b""
        async for message in socket:
            yield message.data if isinstance(message.data, bytes) else message.data.encode()


async def bare(http: aiohttp.ClientSession, url: str, name: str) -> AsyncIterator[bytes]:
    """The frames of the bare reference: a WebSocket."""
    async with http.ws_connect(f"{url}/{name}", max_msg_size=0) as socket:
        async for message in socket:
            yield message.data if isinstance(message.data, bytes) else message.data.encode()


TRANSPORTS = {"sse": sse, "ws": ws, "bare": bare}


class Counted(msgspec.Struct, frozen=True):
    """What to hear from the bare reference: so many frames in all."""

    url: str
    sessions: int
    followers: int
    frames: int


async def listen(counted: Counted) -> Seen:
    seen = Seen()
    ready = 0

    async def follow(k: int) -> None:
        nonlocal ready
        async for frame in bare(http, counted.url, f"{k % counted.sessions}"):
            if frame == b"hello":
                ready += 1
                if ready == counted.followers:
                    print("ready", flush=True)
                continue
            seen.delivered += 1
            if (at := _AT.search(frame)) is not None:
                seen.lags_ms.append((time.time() - float(at[1])) * 1e3)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        tasks = [asyncio.create_task(follow(k)) for k in range(counted.followers)]
        with suppress(TimeoutError):
            async with asyncio.timeout(180):
                while seen.delivered < counted.frames:
                    await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return seen


async def main() -> None:
    line = sys.stdin.buffer.readline()
    if sys.argv[1:] == ["bare"]:
        seen = await listen(msgspec.json.decode(line, type=Counted))
    else:
        wanted = msgspec.json.decode(line, type=Wanted)
        headers = {"authorization": f"Bearer {wanted.token}"}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(
            connector=connector, headers=headers, timeout=timeout
        ) as http:
            seen = await Clients(wanted, http).run()
    sys.stdout.write(msgspec.json.encode(seen).decode() + "\n")


if __name__ == "__main__":
    asyncio.run(main())
