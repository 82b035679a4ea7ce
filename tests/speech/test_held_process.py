"""A program that is kept while it is used: in the real sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from deskhand.sandbox.base import Sandbox, SandboxCommand
from deskhand.sandbox.choose import open_sandbox
from deskhand.speech.held_process import HeldProcess
from deskhand.tools.convert import find_python
from deskhand.types.errors import SandboxUnavailable, SpeechError

ECHO = """
import sys, time, os
for line in sys.stdin:
    word = line.strip()
    if word == "die":
        os._exit(3)
    if word == "hang":
        time.sleep(60)
    if word == "twice":
        print("half", flush=True)
    print(f"{word} {os.getpid()}", flush=True)
"""


async def sandbox() -> Sandbox:
    return (await open_sandbox()).sandbox


def command() -> SandboxCommand:
    python = find_python(())
    return SandboxCommand(
        argv=(python.program, "-I", "-S", "-c", ECHO), cwd="/", mounts=python.mounts
    )


def whole(line: bytes) -> str | None:
    return None if line == b"half" else line.decode()


@asynccontextmanager
async def held(idle_s: float = 60.0) -> AsyncIterator[HeldProcess]:
    process = HeldProcess("echoing", command, sandbox, idle_s)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.run)
        yield process
        tasks.cancel_scope.cancel()


async def test_it_is_kept_and_begun_only_when_asked() -> None:
    async with held() as process:
        await anyio.sleep(0.05)
        assert process.starts == 0 and not process.is_running
        first = await process.ask(b"one", whole, 20)
        second = await process.ask(b"twice", whole, 20)
        assert first.split()[1] == second.split()[1] and process.starts == 1


async def test_its_memory_is_given_back() -> None:
    async with held(idle_s=0.2) as process:
        await process.ask(b"one", whole, 20)
        with anyio.fail_after(10):
            while process.is_running:
                await anyio.sleep(0.05)
        assert (await process.ask(b"two", whole, 20)).startswith("two") and process.starts == 2


async def test_one_that_dies_is_told_and_begun_anew() -> None:
    async with held() as process:
        with pytest.raises(SpeechError, match="echoing it ended with code 3"):
            await process.ask(b"die", whole, 20)
        assert (await process.ask(b"again", whole, 20)).startswith("again")


async def test_one_that_says_nothing_is_stopped() -> None:
    async with held() as process:
        await process.ask(b"one", whole, 20)
        with pytest.raises(SpeechError, match="said nothing for 1 s"):
            await process.ask(b"hang", whole, 1)
        assert (await process.ask(b"again", whole, 20)).startswith("again")
        assert process.starts == 2


async def test_who_stops_waiting_leaves_no_answer_behind() -> None:
    async with held() as process:
        await process.ask(b"one", whole, 20)
        with anyio.move_on_after(0.3):
            await process.ask(b"hang", whole, 20)
        assert (await process.ask(b"next", whole, 20)).startswith("next")


async def test_several_take_turns() -> None:
    async with held() as process, anyio.create_task_group() as tasks:
        said: list[str] = []

        async def ask(word: str) -> None:
            said.append((await process.ask(word.encode(), whole, 20)).split()[0])

        for number in range(10):
            tasks.start_soon(ask, f"w{number}")
    assert sorted(said) == sorted(f"w{number}" for number in range(10)) and process.starts == 1


async def test_without_a_sandbox_it_does_not_start() -> None:
    async def none() -> Sandbox:
        raise SandboxUnavailable("no sandbox here")

    process = HeldProcess("echoing", command, none)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(process.run)
        for _ in range(2):
            with pytest.raises(SpeechError, match="echoing did not start: no sandbox here"):
                await process.ask(b"one", whole, 5)
        tasks.cancel_scope.cancel()
