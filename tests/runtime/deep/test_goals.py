"""A standing goal in a whole Deskhand: judged after each turn, worked on again, and ended in words."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from deskhand.models.base import Request
from deskhand.runtime.deep.judge import verdict_of
from deskhand.testing.long_work import House, log, nudges, until
from deskhand.testing.scripted import say
from deskhand.types import events as e
from deskhand.types.messages import Message

REACHED, GO_ON = '{"verdict": "reached", "missing": ""}', '{"verdict": "not_reached", "missing": "the second page"}'


class Judged:
    """A model that works, and is also the judge: these are its verdicts, one after the other."""

    def __init__(self, *verdicts: str) -> None:
        self.verdicts, self.judged, self.worked = list(verdicts), list[str](), 0

    def __call__(self, request: Request) -> Message:
        if "You judge whether" in request.system[0]:
            self.judged.append(request.messages[-1].message.text)
            return say(self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0])
        self.worked += 1
        return say(f"I wrote page {self.worked}.")


async def test_it_goes_on_until_the_judge_says_that_the_goal_is_reached(tmp_path: Path) -> None:
    script = Judged(GO_ON, REACHED)
    house = House(tmp_path, script)
    async with house.running() as app:
        house.channel.write("/goal two pages are written")
        await house.hears("The goal is reached.")
        await anyio.sleep(0.2)
        events = await log(app)
        house.channel.write("/goal", external_id="what")
        await house.hears("/goal TEXT to set")
    assert script.worked == 2 and len(script.judged) == 2
    assert script.judged[0].startswith("# Goal\ntwo pages are written\n") and "I wrote page 1." in script.judged[0]
    (push,) = nudges(events, "goal")
    assert "The goal is not reached yet: two pages are written" in push.message.text
    assert "the second page" in push.message.text and push.principal.on_behalf_of == "ann"
    first = next(each for each in events if isinstance(each, e.MessageReceived))
    assert first.message.text.endswith("two pages are written") and first.principal.id == "ann"


JUNK = (
    *("", "yes, reached", '"reached"', '["reached"]', "[" * 10_000, '{"verdict": "reached"'),
    *('{"verdict": "done"}', '{"verdict": true}', '{"verdict": "reached", "also": 1}'),
    '{"verdict": "reached"} {"verdict": "reached"}',
)


@pytest.mark.parametrize("text", JUNK)
def test_what_is_not_strict_json_means_not_reached(text: str) -> None:
    assert verdict_of(text).verdict == "not_reached"


def test_a_fence_is_no_harm_and_what_is_missing_stays_short() -> None:
    assert verdict_of('```json\n{"verdict": "reached"}\n```').verdict == "reached"
    assert len(verdict_of(f'{{"verdict": "not_reached", "missing": "{"x" * 5_000}"}}').missing) == 600


async def test_junk_goes_on_only_for_so_many_rounds(tmp_path: Path) -> None:
    script = Judged("I think so")
    house = House(tmp_path, script, goal_rounds=3)
    async with house.running() as app:
        house.channel.write("/goal write")
        assert "its 3 rounds are used up" in await house.hears("I end the goal here, not reached")
        await anyio.sleep(0.2)
        assert len(nudges(await log(app), "goal")) == 3 and script.worked == 4


async def test_tokens_end_it_too(tmp_path: Path) -> None:
    house = House(tmp_path, Judged(GO_ON), goal_tokens=1_000, goal_rounds=1_000)
    async with house.running() as app:
        house.channel.write("/goal write")
        await house.hears("its 1,000 tokens are used up")
        assert 49 <= len(nudges(await log(app), "goal")) <= 51  # each turn of the script uses 20


async def test_it_waits_for_a_person_who_is_needed(tmp_path: Path) -> None:
    house = House(tmp_path, Judged('{"verdict": "needs_person", "missing": "which page?"}'))
    async with house.running() as app:
        house.channel.write("/goal write")
        assert await house.hears("The goal waits for you") == "The goal waits for you: which page?"
        await anyio.sleep(0.2)
        assert not nudges(await log(app), "goal")


async def test_while_a_person_writes_it_pauses(tmp_path: Path) -> None:
    script = Judged('{"verdict": "needs_person"}', GO_ON, REACHED)
    house = House(tmp_path, script, quiet_s=60)
    async with house.running() as app:
        house.channel.write("/goal write")
        await house.hears("The goal waits for you")
        house.channel.write("a question in between", external_id="q")
        await house.hears("I wrote page 2.")
        await anyio.sleep(1.5)
        assert len(script.judged) == 1 and not nudges(await log(app), "goal")
        house.clock.advance(61)
        await house.hears("The goal is reached.")
        assert len(script.judged) == 3


async def test_off_means_off_over_a_restart_too(tmp_path: Path) -> None:
    house = House(tmp_path, Judged('{"verdict": "needs_person"}'))
    async with house.running():
        house.channel.write("/goal write")
        await house.hears("The goal waits for you")
        house.channel.write("/status", external_id="status")
        assert "Goal: write" in await house.hears("Nothing is going on.")
        house.channel.write("/goal off", external_id="off")
        await house.hears("no goal here any more")
        house.channel.write("hello", external_id="hello")
        await house.hears("I wrote page 2.")
    script = Judged(GO_ON)
    again = House(tmp_path, script, quiet_s=0)
    async with again.running() as app:
        await anyio.sleep(0.3)
        assert not script.judged and not nudges(await log(app), "goal")


async def test_a_new_process_takes_up_a_goal(tmp_path: Path) -> None:
    house = House(tmp_path, Judged(GO_ON), quiet_s=3_600)
    async with house.running() as app:
        house.channel.write("hello", external_id="hello")
        await house.hears("I wrote page 1.")
        house.channel.write("/stop", external_id="stop")
        await house.hears("closed")
        house.channel.write("/goal write", external_id="goal")
        await until(app, lambda events: len(nudges(events, "goal")) > 0)
    script = Judged(REACHED)
    again = House(tmp_path, script)
    async with again.running():
        await again.hears("The goal is reached.")
