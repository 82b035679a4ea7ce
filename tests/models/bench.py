"""CPU of a call through each wire, beside a bare aiohttp loop over the same stream: `python
tests/models/bench.py`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp
import msgspec

from deskhand.models.anthropic import AnthropicModel
from deskhand.models.base import ContextMessage, Request
from deskhand.models.openai import OpenAIModel
from deskhand.models.settings import Facts, ModelSpec, Quirks
from deskhand.models.transport import Transport
from deskhand.types.messages import Message, Text

Once = Callable[[], Awaitable[object]]


async def cpu_ms(once: Once, times: int, at_once: int = 1) -> float:
    """Milliseconds of CPU of this process per call, the best of five rounds."""

    async def some() -> None:
        for _ in range(times // at_once):
            await once()

    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        await asyncio.gather(*(some() for _ in range(at_once)))
        best = min(best, time.process_time() - start)
    return best / times * 1000


def talk(count: int) -> Request:
    shown = [
        ContextMessage(
            n,
            Message(
                "user" if n % 2 else "assistant", (Text(f"Message {n}: " + "some words " * 20),)
            ),
        )
        for n in range(1, count + 1)
    ]
    return Request("m", ("Be brief.",), tuple(shown))


class Bench:
    """Two ways to one server."""

    def __init__(self, root: str, session: aiohttp.ClientSession) -> None:
        self.root = root
        self.session = session

    async def script(self, **behaviour: object) -> None:
        async with self.session.post(f"{self.root}/script", json=[behaviour]) as response:
            await response.read()

    def bare(self, path: str, body: bytes, parse: bool = False) -> Once:
        url = f"{self.root}/v1/{path}"
        headers = {"Content-Type": "application/json"}

        async def once() -> None:
            async with self.session.post(url, data=body, headers=headers) as response:
                if not parse:
                    async for _ in response.content.iter_any():
                        pass
                    return
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        msgspec.json.decode(line[6:])

        return once


def through(model: OpenAIModel | AnthropicModel, request: Request) -> Once:
    async def once() -> None:
        async for _ in model.reply(request):
            pass

    return once


async def main(root: str) -> None:
    facts = Facts(window=10**6, max_output=1000)
    async with Transport() as transport, aiohttp.ClientSession() as session:
        mine = OpenAIModel(transport, ModelSpec("fake", "m", f"{root}/v1", facts))
        theirs = AnthropicModel(
            transport, ModelSpec("fake", "m", f"{root}/v1", facts, Quirks(auth="x-api-key"))
        )
        bench = Bench(root, session)
        both = (("openai", mine, "chat/completions"), ("anthropic", theirs, "messages"))
        for name, gap, times, at_once in (("burst", 0.0, 300, 1), ("spread", 0.002, 64, 8)):
            await bench.script(text="word " * 100, chunks=100, gap_s=gap)
            for wire, model, path in both:
                body = await model.encode_request(talk(1))
                loop = await cpu_ms(bench.bare(path, body), times, at_once)
                line = await cpu_ms(bench.bare(path, body, parse=True), times, at_once)
                ours = await cpu_ms(through(model, talk(1)), times, at_once)
                print(
                    (
                        f"100 chunks, {name}, {wire}: bare {loop:.2f} ms, bare+json {line:.2f}, "
                        f"ours {ours:.2f}"
                    ),
                    end=" ",
                )
                print(f"= {ours / loop:.2f}x and {ours / line:.2f}x")
        await bench.script(chunks=1)
        request = talk(1000)
        for wire, model, path in both:
            body = await model.encode_request(request)
            loop = await cpu_ms(bench.bare(path, body), 200)
            ours = await cpu_ms(through(model, request), 200)
            print(f"1,000 messages, {len(body)} bytes, {wire}: bare {loop:.2f} ms, ours {ours:.2f}")


with subprocess.Popen(
    [sys.executable, "-m", "deskhand.testing.llm"], stdout=subprocess.PIPE
) as child:
    assert child.stdout is not None
    try:
        asyncio.run(main(f"http://127.0.0.1:{int(child.stdout.readline())}"))
    finally:
        child.terminate()
