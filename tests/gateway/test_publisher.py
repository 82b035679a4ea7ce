"""Who is told of what happens."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deskhand.config.statements import load_statements
from deskhand.gateway.feed import Feed
from deskhand.gateway.publisher import EventPublisher
from deskhand.gateway.streamed_replies import Drafts
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.clock import SetClock
from deskhand.types.door import Progress
from deskhand.types.events import AnyEvent, Masked, Recorded, ToolStarted

SESSION = "default/memory:1"
STARTED = Recorded(1, SESSION, 1, 0.0, ToolStarted("a"))
MASKED = Recorded(2, SESSION, 2, 0.0, Masked(1))


class Listening:
    """Remembers what it was told; with `fails` it is broken."""

    def __init__(self, *kinds: type[AnyEvent], fails: bool = False) -> None:
        self.listens_to = kinds
        self.told: list[Recorded] = []
        self._fails = fails

    def on_event(self, recorded: Recorded) -> None:
        self.told.append(recorded)
        if self._fails:
            raise RuntimeError("broken")


@pytest.fixture
async def feed() -> Feed:
    return Feed()


@pytest.fixture
async def publisher(tmp_path: Path, feed: Feed) -> AsyncIterator[EventPublisher]:
    store = SqliteStore(tmp_path / "d.db", load_statements())
    drafts = Drafts(store, {}, SetClock(), lambda session: None)
    yield EventPublisher(feed, drafts, lambda text: text.replace("hunter2", "[secret]"))
    await store.close()


async def test_each_is_told_of_its_kinds_alone(publisher: EventPublisher) -> None:
    one = Listening(ToolStarted)
    both = Listening(ToolStarted, Masked)
    publisher.join(one, both)
    for item in (STARTED, Progress("text", 2, text="hello"), MASKED):
        publisher.publish(SESSION, item)
    assert one.told == [STARTED] and both.told == [STARTED, MASKED]


async def test_one_that_fails_holds_up_nobody(
    publisher: EventPublisher, caplog: pytest.LogCaptureFixture
) -> None:
    """The event is on disk: neither the turn nor the others may suffer."""
    broken = Listening(ToolStarted, fails=True)
    well = Listening(ToolStarted)
    publisher.join(broken, well)
    with caplog.at_level(logging.ERROR):
        publisher.publish(SESSION, STARTED)
    assert broken.told == well.told == [STARTED]
    assert "failed on an event" in caplog.text and "broken" in caplog.text


@pytest.mark.parametrize("kind", ["tool_result", "prompt", "request", "status"])
async def test_progress_is_shown_without_secrets(
    kind: str, feed: Feed, publisher: EventPublisher
) -> None:
    with feed.following(SESSION, sees_prompts=True) as reader:
        publisher.publish(SESSION, Progress(kind, 1, text="it is hunter2"))  # type: ignore[arg-type]
        shown = reader.take(0)
    assert isinstance(shown, Progress) and shown.text == "it is [secret]"
