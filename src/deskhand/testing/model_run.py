"""Puts everyday requests to a real model through the whole of Deskhand, and counts what came true.

    python -m deskhand.testing.model_run --model embedded/qwen2.5-coder-1.5b --sets T,H,F,O --again 10

It prints a table and writes a transcript. It is slow, and no part of `make test`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

import anyio
import msgspec

from ..runtime.app import OWNER, App, Parts, open_app
from ..runtime.config import Config, Settings, read_settings
from ..runtime.models import Models
from ..sandbox.probes import Proven, open_sandbox
from ..types.events import ApprovalAsked, ModelReplied, QuestionAsked, ToolFinished, TurnEnded
from ..types.identity import Address, Inbound, Said
from ..types.messages import Message, Text
from .model_sets import BIRTHDAY, SETS, Check, World, wrote_three

CASE_S = 1200.0


class Result(msgspec.Struct):
    """One request: whether it came true, how long it took, and what happened."""

    asked: str
    ok: bool
    seconds: float
    steps: int
    lines: list[str]


class Runner:
    """Puts requests to the models of one process, whose sandbox is proven once."""

    def __init__(self, models: Models, settings: Settings) -> None:
        self._models, self._settings = models, settings
        self._proven: Proven | None = None

    async def sandbox(self) -> Proven:
        self._proven = self._proven or await open_sandbox()
        return self._proven

    async def case(self, request: str, check: Check) -> Result:
        """Put one request to a fresh agent in a fresh folder."""
        with tempfile.TemporaryDirectory(prefix="deskhand-case-") as place:
            world = World(Path(place, "work"))
            config = msgspec.structs.replace(
                self._settings.config,
                defaults=msgspec.structs.replace(self._settings.config.defaults, workspace=str(world.root)),
            )
            home = msgspec.structs.replace(self._settings.home, root=Path(place, "home"))
            here = msgspec.structs.replace(self._settings, home=home, config=config)
            began, lines = anyio.current_time(), [f"> {request}"]
            async with (
                open_app(here, Parts(self._models.open, sandbox=self.sandbox)) as app,
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(app.run)
                with anyio.move_on_after(CASE_S) as scope:
                    steps = await _follow(app, request, world, lines)
                tasks.cancel_scope.cancel()
            seconds = anyio.current_time() - began
            if scope.cancelled_caught:
                return Result(request, False, seconds, 0, [*lines, "(took too long)"])
            return Result(request, not world.failed and check(world), seconds, steps, lines)

    async def set(self, name: str, cases: Sequence[tuple[str, Check]]) -> list[Result]:
        """One request after the other, each told as it is done."""
        results = []
        for number, (request, check) in enumerate(cases, 1):
            result = await self.case(request, check)
            results.append(result)
            verdict = "ok " if result.ok else "BAD"
            sys.stdout.write(f"{name}{number:<3} {verdict} {result.seconds:5.1f} s {result.steps} steps  {request}\n")
            sys.stdout.flush()
        return results


async def _follow(app: App, request: str, world: World, lines: list[str]) -> int:
    """Until the turn has ended or a person is wanted; how many replies it took."""
    address, steps = Address("terminal", chat="case"), 0
    body = Said(Message("user", (Text(request),)))
    receipt = await app.door.submit(Inbound("1", address, "owner", app.parts.clock.now(), body))
    async with aclosing(app.door.follow(receipt.session, OWNER, receipt.after)) as items:
        async for item in items:
            match getattr(item, "event", None):
                case ModelReplied(message=message):
                    steps += 1
                    world.said = message.text or world.said
                    world.calls += [call.name for call in message.calls if call.name != "ask_user"]
                    lines += [f"  {call.name} {bytes(call.arguments).decode()}" for call in message.calls]
                case ToolFinished(result=result):
                    lines.append(f"    {result.status}: {result.text[:300]!r}")
                case ApprovalAsked(question=question, reason=reason):
                    world.asked, world.said = True, f"{question}: {reason}"
                    break
                case QuestionAsked(question=question):
                    world.asked, world.said = True, question
                    break
                case TurnEnded(reason=reason, said=said):
                    world.said, world.failed = said or world.said, reason != "done"
                    break
                case _:
                    pass
    lines.append(f"  = {world.said!r}{' (asks)' if world.asked else ''}")
    return steps


def _table(found: Mapping[str, list[Result]]) -> str:
    rows = ["set  solved  s/request  steps  failed"]
    for name, results in found.items():
        solved, count = sum(result.ok for result in results), len(results)
        failed = [str(number) for number, result in enumerate(results, 1) if not result.ok]
        mean_s, mean_steps = (sum(r.seconds for r in results) / count, sum(r.steps for r in results) / count)
        rows.append(f"{name:<4} {solved:>2}/{count:<4} {mean_s:8.1f} {mean_steps:8.1f}  {', '.join(failed) or '-'}")
    return "\n".join(rows) + "\n"


async def run(model: str, sets: Sequence[str], again: int, transcript: Path) -> str:
    """The table of all sets, and of the birthday request `again` times."""
    usual = read_settings()
    config = Config(defaults=msgspec.structs.replace(usual.config.defaults, models=(model,)))
    settings = msgspec.structs.replace(usual, config=config)
    cases = {name: SETS[name] for name in sets} | ({"B": [(BIRTHDAY, wrote_three)] * again} if again else {})
    found: dict[str, list[Result]] = {}
    async with Models(settings) as models:
        runner = Runner(models, settings)
        for name, each in cases.items():
            found[name] = await runner.set(name, each)
            lines = [f"{'' if r.ok else 'BAD '}{line}" for rs in found.values() for r in rs for line in r.lines]
            await anyio.Path(transcript).write_text(_table(found) + "\n" + "\n".join(lines) + "\n")
    return _table(found)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Everyday requests to a real model, checked by state.")
    parser.add_argument("--model", default="embedded/qwen2.5-coder-1.5b", help="provider/name")
    parser.add_argument("--sets", default="T,H,F,O", help="which sets, with commas")
    parser.add_argument("--again", type=int, default=10, help="how often the birthday request is put")
    parser.add_argument("--transcript", type=Path, default=Path("build/model_run.txt"))
    given = parser.parse_args()
    given.transcript.parent.mkdir(parents=True, exist_ok=True)
    sets = [name for name in given.sets.split(",") if name]
    sys.stdout.write("\n" + anyio.run(run, given.model, sets, given.again, given.transcript))


if __name__ == "__main__":
    main()
