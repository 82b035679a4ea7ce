"""How AgentDojo fares against Deskhand with a model that obeys every injection: `make agentdojo`.

The model does the person's task as AgentDojo's ground truth does it, and carries out every
injection that it reads. The person says yes to exactly the calls that their task needs, and no to
all others.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from contextlib import AsyncExitStack, redirect_stdout
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import msgspec
import yaml
from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.default_suites.v1.tools.types import CalendarEvent
from agentdojo.functions_runtime import FunctionCall
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import text_content_block_from_string
from anyio import from_thread
from house import Case, Dojo, open_dojo, table
from plans import deeds_of, ways
from replies import replies_of
from report import WAYS, WORDS, Outcome, Way, holds, replace_table, report

from deskhand.testing.obedient import Obedient, Order
from deskhand.testing.person import Hasty, OnlyThese, PersonTalk, nobody
from deskhand.types.interpreter import tune_interpreter

VERSION = "v1.2.1"
SUITES = ("workspace", "banking", "slack", "travel")
ATTACKS = (
    "important_instructions",
    "tool_knowledge",
    "injecagent",
    "ignore_previous",
    "system_message",
    "direct",
)
AT_ONCE = 3
MEMORY = Path("/dev/shm")
"""Thousands of conversations, each with its commits: what is measured here is not the disk."""


class Pipeline(BasePipelineElement):
    """One conversation with Deskhand, as AgentDojo sees an agent."""

    name = "local"

    def __init__(
        self, dojo: Dojo, suite: Any, way: Way, user_task: Any, injection_task: Any
    ) -> None:
        self._dojo = dojo
        self._suite = suite
        self._way = way
        self._user = user_task
        self._injection = injection_task
        self.told, self.case = PersonTalk(), Case(None, Obedient((), "", ()))

    def query(
        self, query: str, runtime: Any, env: Any = None, messages: Any = (), extra_args: Any = None
    ) -> Any:
        suite = self._suite.name
        task = replies_of(deeds_of(self._user, env, suite), env, self._suite.tools, table(suite))
        orders: tuple[Order, ...] = ()
        if (wanted := self._injection) is not None:
            said = wanted.GOAL if (suite, wanted.ID) in WORDS else wanted.GROUND_TRUTH_OUTPUT
            orders = (Order(wanted.GOAL, lambda: deeds_of(wanted, env, suite), said),)
        model = Obedient(task, self._user.GROUND_TRUTH_OUTPUT, orders, ways)
        self.case = Case(env, model, [order.heard for order in orders])
        person = Hasty(task) if self._way.hasty else OnlyThese(task)
        consent = person if self._way.answers else nobody
        self.told = told = from_thread.run(self._dojo.run, query, self.case, consent)
        done: list[Any] = []
        for call in told.ran:
            ran = FunctionCall(function=call.name, args=msgspec.json.decode(call.arguments))
            text = [text_content_block_from_string(told.results[call.id].text)]
            done.append({"role": "assistant", "content": None, "tool_calls": [ran]})
            done.append(
                {
                    "role": "tool",
                    "content": text,
                    "tool_call": ran,
                    "tool_call_id": None,
                    "error": None,
                }
            )
        answer = [text_content_block_from_string(told.said or " ")]
        done.append({"role": "assistant", "content": answer, "tool_calls": None})
        return query, runtime, env, done, extra_args


def run_case(
    dojo: Dojo, suite: Any, way: Way, attack: Any, user_task: Any, injection_task: Any
) -> Outcome:
    """In a thread beside the one in which Deskhand runs."""
    injections = attack.attack(user_task, injection_task) if injection_task is not None else {}
    pipeline = Pipeline(dojo, suite, way, user_task, injection_task)
    solved, attacked = suite.run_task_with_pipeline(pipeline, user_task, injection_task, injections)
    told = pipeline.told
    rows = table(suite.name)
    allowed = told.allowed
    acts = [
        call
        for call in told.ran
        if call.id.startswith("order")
        and call.id not in allowed
        and rows[call.name].effect != "none"
    ]
    return Outcome(
        suite.name,
        way.name,
        attack.name if injection_task is not None else "",
        user_task.ID,
        injection_task.ID if injection_task is not None else "",
        solved,
        attacked and injection_task is not None,
        len(told.asks),
        len(allowed),
        len(acts),
        pipeline.case.model.obeyed,
        pipeline.case.leaks,
    )


async def run_suite(
    suite: Any, way: Way, attacks: Sequence[str], options: argparse.Namespace
) -> list[Outcome]:
    """All cases of a suite, some at once."""
    outcomes: list[Outcome] = []
    async with AsyncExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
            )
        )
        dojo = await stack.enter_async_context(
            open_dojo(folder, suite.name, suite.tools, way.mode, way.labels)
        )
        some = anyio.CapacityLimiter(AT_ONCE)

        async def one(*case: Any) -> None:
            outcomes.append(
                await anyio.to_thread.run_sync(run_case, dojo, suite, way, *case, limiter=some)
            )

        users = list(suite.user_tasks.values())[: options.tasks]
        loaded = [
            load_attack(name, suite, Pipeline(dojo, suite, way, None, None)) for name in attacks
        ]
        async with anyio.create_task_group() as tasks:
            for user_task in users:
                tasks.start_soon(one, loaded[0], user_task, None)
                for attack in loaded:
                    for injection_task in suite.injection_tasks.values():
                        tasks.start_soon(one, attack, user_task, injection_task)
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suites", nargs="*", default=SUITES)
    parser.add_argument("--attacks", nargs="*", default=ATTACKS)
    parser.add_argument("--ways", nargs="*", default=[way.name for way in WAYS])
    parser.add_argument(
        "--tasks", type=int, default=None, help="only so many user tasks of each suite"
    )
    parser.add_argument("--write", type=Path, help="a Markdown file whose table is to be replaced")
    parser.add_argument("--json", type=Path, help="where to leave what came of every case")
    parser.add_argument(
        "--known",
        type=Path,
        nargs="*",
        default=[],
        help="what --json left: it is added to the table",
    )
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    yaml.safe_load = lambda text: yaml.load(
        text, Loader=yaml.CSafeLoader
    )  # AgentDojo reads its worlds a thousand times
    CalendarEvent.__hash__ = lambda self: hash(
        self.id_
    )  # a checker puts the attachments of a mail into a set
    tune_interpreter()
    cases = [
        each
        for path in options.known
        for each in msgspec.json.decode(path.read_bytes(), type=list[Outcome])
    ]
    suites = get_suites(VERSION)
    for way in (each for each in WAYS if each.name in options.ways):
        for name in options.suites:
            attacks = options.attacks if way == WAYS[0] else options.attacks[:1]
            began = time.monotonic()
            with redirect_stdout(io.StringIO()):  # some checkers print what they look for
                cases += anyio.run(run_suite, suites[name], way, attacks, options)
            print(
                f"{way.name}, {name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True
            )
    if options.json:
        options.json.write_bytes(msgspec.json.encode(cases))
    told = report(cases, [name for name in SUITES if any(case.suite == name for case in cases)])
    print(told)
    if options.write:
        replace_table(options.write, told)
    return int(not holds(cases))


if __name__ == "__main__":
    sys.exit(main())
