"""Whatever a provider does ends in an answer, a visible failure or a wait; and nobody else's
conversation suffers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.assembly.models import Models
from deskhand.config.config import Config, Home, Settings
from deskhand.models.transport import TransportLimits
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour
from deskhand.types import events as e
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.messages import Message, Text

QUICK = TransportLimits(connect_s=5, first_s=1.5, idle_s=1.5, total_s=5)
OVERFLOW = "overflow_openai"

FAILS = {
    "500": "server had an error",
    "502": "m",
    "503": "unavailable",
    "reset": "m",
    "hang": "m",
    "hang_mid": "m",
    "garbage": "m",
    "401": "key",
    "404": "model",
    "400": "colour",
    "empty": "no answer",
    "blank": "no answer",
    OVERFLOW: "m",
}
"""What a provider does for ever, and a word of the sentence that the person reads."""
RECOVERS = (
    *("429_ms", "500", "529", "reset", "hang", "hang_mid", "cut", "error_event"),
    *("empty", "bad_json", "unknown_tool", "wrong_types", "length", OVERFLOW),
)
"""What it does once, after which it answers."""


@asynccontextmanager
async def running(home: Path, url: str, chains: dict[str, list[str]]) -> AsyncIterator[App]:
    """An app with an agent for each chain of models."""
    agents = {
        name: {"models": [f"fake/{model}" for model in chain]} for name, chain in chains.items()
    }
    raw = {"agents": agents, "providers": {"fake": {"base_url": url}}}
    settings = Settings(Home(home), msgspec.convert(raw, Config, strict=False))
    async with (
        Models(settings, QUICK) as models,
        open_app(settings, Parts(models.open)) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        yield app
        tasks.cancel_scope.cancel()


async def ask(app: App, agent: str, number: int = 1) -> list[e.AnyEvent]:
    """Ask that agent, and return the events of the turn up to its end or a rest of more than ten
    seconds."""
    session = f"{agent}/terminal:{agent}"
    said = Said(Message("user", (Text("hello"),)))
    inbound = Inbound(
        f"{agent}{number}", Address("terminal", chat=agent), "owner", 1.0, said, session
    )
    receipt = await app.door.submit(inbound)
    seen: list[e.AnyEvent] = []
    async with aclosing(app.door.follow(session, OWNER, receipt.after)) as items:
        async for item in items:
            if isinstance(item, e.Recorded):
                seen.append(item.event)
                if isinstance(item.event, e.TurnEnded) and receipt.inbox_id in item.event.answers:
                    break
                if (
                    isinstance(item.event, e.ModelFailed)
                    and (item.event.retry_at or 0) > time.time() + 10
                ):
                    break
    return seen


async def ask_all(app: App, agents: list[str]) -> dict[str, list[e.AnyEvent]]:
    turns: dict[str, list[e.AnyEvent]] = {}

    async def one(agent: str) -> None:
        turns[agent] = await ask(app, agent)

    async with anyio.create_task_group() as tasks:
        for agent in agents:
            tasks.start_soon(one, agent)
    return turns


async def test_what_fails_for_ever_is_told_and_the_session_still_works(tmp_path: Path) -> None:
    async with FakeLLM() as fake:
        chains = {f"a{name}": [f"m{name}"] for name in FAILS}
        fake.script(*(Behaviour(named=name, model=f"m{name}") for name in FAILS))
        async with running(tmp_path, fake.url, chains) as app:
            turns = await ask_all(app, list(chains))
            for name, words in FAILS.items():
                end = turns[f"a{name}"][-1]
                assert isinstance(end, e.TurnEnded) and end.reason == "failed", name
                assert end.said.startswith("Sorry, I could not answer") and words in end.said, (
                    name,
                    end.said,
                )
                assert sum(isinstance(event, e.ModelFailed) for event in turns[f"a{name}"]) <= 5
            fake.script(Behaviour(text="better now"))
            again = await ask(app, "a500", number=2)
            assert isinstance(again[-1], e.TurnEnded) and again[-1].reason == "done"


async def test_what_fails_once_is_mended(tmp_path: Path) -> None:
    async with FakeLLM() as fake:
        chains = {f"a{name}": [f"m{name}"] for name in RECOVERS}
        rules = [Behaviour(named=name, model=f"m{name}", times=1) for name in RECOVERS]
        fake.script(*rules, Behaviour(text="here it is"))
        async with running(tmp_path, fake.url, chains) as app:
            turns = await ask_all(app, list(chains))
            for name in RECOVERS:
                events = turns[f"a{name}"]
                end = events[-1]
                reply = [event for event in events if isinstance(event, e.ModelReplied)][-1]
                assert isinstance(end, e.TurnEnded) and end.reason == "done", (name, end)
                assert "here it is" in reply.message.text, name
                assert sum(isinstance(event, e.Compacted) for event in events) == (name == OVERFLOW)


async def test_the_next_model_of_the_chain_takes_over(tmp_path: Path) -> None:
    """At once where the first refuses or asks for a long wait."""
    names = ("401", "404", "429_9999")
    async with FakeLLM() as fake:
        chains = {f"a{name}": [f"m{name}", "good"] for name in names}
        fake.script(
            *(Behaviour(named=name, model=f"m{name}") for name in names),
            Behaviour(text="from the other"),
        )
        async with running(tmp_path, fake.url, chains) as app:
            with anyio.fail_after(30):  # less than the first asks to wait
                turns = await ask_all(app, list(chains))
            for name, events in turns.items():
                reply = [event for event in events if isinstance(event, e.ModelReplied)][-1]
                assert reply.model == "fake/good", name


@pytest.mark.parametrize(("fault", "wait_s"), [("429_2", 2.0), ("429_google", 37.0)])
async def test_a_provider_that_asks_to_wait_is_obeyed_within_reason(
    fault: str, wait_s: float, tmp_path: Path
) -> None:
    async with FakeLLM() as fake:
        fake.script(Behaviour(named=fault, model="busy", times=1), Behaviour(text="fine"))
        async with running(tmp_path, fake.url, {"busy": ["busy"], "other": ["idle"]}) as app:
            async with anyio.create_task_group() as tasks:
                turns: list[list[e.AnyEvent]] = []

                async def busy() -> None:
                    turns.append(await ask(app, "busy"))

                tasks.start_soon(busy)
                with anyio.fail_after(30):  # less than the others are asked to wait
                    other = await ask(app, "other")
            assert isinstance(other[-1], e.TurnEnded) and other[-1].reason == "done"
            session = "busy/terminal:busy"
            failed = [
                r for r in await app.store.events(session) if isinstance(r.event, e.ModelFailed)
            ]
            assert (
                isinstance(failed[0].event, e.ModelFailed) and failed[0].event.retry_at is not None
            )
            assert wait_s * 0.8 <= failed[0].event.retry_at - failed[0].at <= wait_s * 1.2


async def test_a_provider_that_asks_to_wait_for_hours_is_not_waited_for(tmp_path: Path) -> None:
    """Nothing is promised then: the person hears at once why there is no answer."""
    async with FakeLLM() as fake:
        fake.script(Behaviour(named="429_9999", model="busy"))
        async with running(tmp_path, fake.url, {"busy": ["busy"]}) as app:
            with anyio.fail_after(30):
                end = (await ask(app, "busy"))[-1]
        assert isinstance(end, e.TurnEnded) and end.reason == "failed"
        assert end.said.startswith("Sorry, I could not answer: fake/busy is overloaded")
        assert end.said.endswith("It asks to wait for 3 hours; another model may answer now.")


async def test_streams_that_hang_hold_up_nobody(tmp_path: Path) -> None:
    async with FakeLLM() as fake:
        chains = {f"h{i}": [f"hang{i}"] for i in range(5)} | {"fine": ["fine"]}
        fake.script(
            *(Behaviour(named="hang_mid", model=f"hang{i}") for i in range(5)),
            Behaviour(text="fine"),
        )
        async with running(tmp_path, fake.url, chains) as app, anyio.create_task_group() as tasks:
            ended: list[e.AnyEvent] = []

            async def hang(agent: str) -> None:
                ended.append((await ask(app, agent))[-1])

            for i in range(5):
                tasks.start_soon(hang, f"h{i}")
            await anyio.sleep(0.1)
            assert isinstance((await ask(app, "fine"))[-1], e.TurnEnded)
            assert len(ended) < 5, "it waited for those that hang"
        assert len(ended) == 5
        assert fake.open == 0, "a connection was left open"
    assert TransportLimits().idle_s <= 70, (
        "after which a silent stream is given up where nothing else is said"
    )


async def test_200_calls_in_one_reply_are_all_answered(tmp_path: Path) -> None:
    async with FakeLLM() as fake:
        fake.script(Behaviour(named="many_calls", times=1), Behaviour(text="done"))
        async with running(tmp_path, fake.url, {"a": ["m"]}) as app:
            events = await ask(app, "a")
            results = [event.result for event in events if isinstance(event, e.ToolFinished)]
            calls = next(
                event.message.calls for event in events if isinstance(event, e.ModelReplied)
            )
            assert [result.call_id for result in results] == [call.id for call in calls]
            assert len(results) == 200 and isinstance(events[-1], e.TurnEnded)
