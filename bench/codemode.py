"""Twenty tasks of ten calls and more: by one call of a model after the other, and by one script."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec

from deskhand.models.base import Request
from deskhand.models.token_estimate import CHARS_PER_TOKEN, estimate_tokens
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.temporary_home import TemporaryHome, results, until
from deskhand.types.messages import Message, ToolCall

LATENCY_S = 0.2
Call = tuple[str, dict[str, Any]]


class Work(msgspec.Struct, frozen=True):
    """A task: the calls that it takes, and a script that makes the same ones."""

    calls: Sequence[Call]
    script: str


def _write(n: int) -> Work:
    calls = [("write_file", {"path": f"w{n}/{k}.txt", "content": f"{k}"}) for k in range(n)]
    script = f"for k in range({n}): write_file(f'w{n}/{{k}}.txt', f'{{k}}')\nprint('written')"
    return Work(calls, script)


def _read(n: int) -> Work:
    calls = [("read_file", {"path": f"in/{k}.txt"}) for k in range(n)]
    script = f"print(sum(len(read_file(f'in/{{k}}.txt')) for k in range({n})))"
    return Work(calls, script)


def _edit(n: int) -> Work:
    """A file is read before it is changed."""
    reads = [("read_file", {"path": f"in/{k}.txt"}) for k in range(n)]
    edits = [[{"old": f"line 3 of {k}.", "new": f"n{n}"}] for k in range(n)]
    changes = [("edit_file", {"path": f"in/{k}.txt", "edits": edits[k]}) for k in range(n)]
    script = (
        f"for k in range({n}):\n"
        "    read_file(f'in/{k}.txt')\n"
        f"    edit_file(f'in/{{k}}.txt', edits=[{{'old': f'line 3 of {{k}}.', 'new': 'n{n}'}}])\n"
        "print('edited')"
    )
    return Work([*reads, *changes], script)


def _keep(n: int) -> Work:
    calls = [("kv_set", {"key": f"k{n}.{k}", "value": f"{k}"}) for k in range(n)]
    script = (
        f"for k in range({n}): call('kv_set', key=f'k{n}.{{k}}', value=f'{{k}}')\nprint('kept')"
    )
    return Work(calls, script)


WORKS = [make(n) for n in (10, 13, 16, 19, 22) for make in (_write, _read, _edit, _keep)]


class Figures(msgspec.Struct):
    """Of one task: seconds, tokens read and written by models, and how often one was asked."""

    seconds: float
    read: int
    written: int
    asked: int


class OneByOne:
    """A model that makes these calls one by one."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __call__(self, request: Request) -> Message:
        done = sum(len(each.message.calls) for each in request.messages)
        if done >= len(self.calls):
            return say("It is done.")
        name, arguments = self.calls[done]
        return say("", ToolCall(f"c{done}", name, msgspec.Raw(msgspec.json.encode(arguments))))


async def measure(home: Path, *, by_script: bool) -> list[Figures]:
    """All tasks, one after the other, in conversations of their own."""
    script = OneByOne()
    desk = TemporaryHome(home, machine_rounds_per_hour=0)
    desk.model = ScriptedModel(script, latency_s=LATENCY_S)
    figures = []
    async with desk.running() as app:
        folder = desk.settings.home.workspace("default") / "in"
        folder.mkdir(parents=True)
        for number, work in enumerate(WORKS):
            for k in range(26):
                lines = "\n".join(f"line {line} of {k}." for line in range(40))
                (folder / f"{k}.txt").write_text(lines)
            script.calls = [("run_script", {"script": work.script})] if by_script else [*work.calls]
            desk.model.requests.clear()
            wanted = len(script.calls)
            session = f"default/terminal:{number}"
            began = time.perf_counter()
            await desk.say(app, "Do it.", chat=str(number))
            await until(app, lambda found, wanted=wanted: len(found) >= wanted, session)
            seconds = time.perf_counter() - began
            said = await results(app, session)
            assert not any("failed" in each for each in said), said
            figures.append(_count(seconds, desk.model.requests))
    return figures


def _count(seconds: float, requests: Sequence[Request]) -> Figures:
    read = sum(map(_request_tokens, requests))
    last = requests[-1].messages
    written = sum(
        estimate_tokens(each.message) for each in last if each.message.role == "assistant"
    )
    return Figures(seconds, read, written, len(requests))


def _request_tokens(request: Request) -> int:
    beside = sum(map(len, request.system)) + sum(tool.size for tool in request.tools)
    return int(beside / CHARS_PER_TOKEN) + sum(estimate_tokens(e.message) for e in request.messages)


def _line(name: str, figures: Sequence[Figures]) -> str:
    asked = statistics.mean(each.asked for each in figures)
    read = statistics.mean(each.read for each in figures)
    written = statistics.mean(each.written for each in figures)
    seconds = statistics.mean(each.seconds for each in figures)
    return f"| {name} | {asked:.1f} | {read:,.0f} | {written:,.0f} | {seconds:.2f} s |"


async def _main() -> None:
    print("| a task on average | model calls | tokens read | tokens written | time |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as place:
        tools = await measure(Path(place, "tools"), by_script=False)
        print(_line("by tools", tools))
        script = await measure(Path(place, "script"), by_script=True)
        print(_line("in code mode", script))
    print(json.dumps([msgspec.to_builtins(each) for each in (*tools[:2], *script[:2])]))


if __name__ == "__main__":
    anyio.run(_main)
