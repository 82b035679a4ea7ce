"""Forty ordinary tasks with the gate as it comes: they are done, and the owner is seldom asked."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from deskhand.testing.conversations import Conversations
from deskhand.testing.obedient import Obedient
from deskhand.testing.ordinary import FROM_OUTSIDE, Day, ordinary, prepare
from deskhand.testing.person import OnlyThese, PersonTalk
from deskhand.testing.site import LocalSite
from deskhand.types.commit import Outgoing


@pytest.mark.timeout(240)
async def test_forty_ordinary_tasks_are_done_with_few_questions(tmp_path: Path) -> None:
    """The figures stand in docs/safety-figures.md."""
    asked = Counter[int]()
    undone = list[str]()
    async with LocalSite() as site:
        desk = prepare(tmp_path, site)
        async with desk.running():
            for path, source in FROM_OUTSIDE.items():
                await desk.mark(path, source)
            tasks = ordinary(site.url)
            for number, task in enumerate(tasks):
                model = Obedient(task.deeds, "done", ())
                told = await desk.hold(str(number), task.said, model, OnlyThese(task.deeds))
                await desk.settled()
                if task.done(Day(desk.work, told, _sent(desk, told))):
                    asked[len(told.asks)] += 1
                else:
                    undone.append(
                        f"{task.said}: {[result.text[:200] for result in told.results.values()]}"
                    )
    assert len(tasks) == 40
    assert undone == []
    assert asked[0] + asked[1] >= 0.9 * len(tasks)
    assert asked == {0: 34, 1: 5, 2: 1}


def _sent(desk: Conversations, told: PersonTalk) -> list[Outgoing]:
    return [each for each in desk.sent if each.key.startswith(f"{told.session}#")]
