"""Channels that are switched off and on while Deskhand runs: nothing is lost, nothing repeated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Config, Home, Settings
from deskhand.config.last_good import keys_needing_restart
from deskhand.runtime.app import OWNER, App, Parts, open_app
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, echo


def settings_of(home: Path, *, on: bool) -> Settings:
    given = {
        "defaults": {"models": ["scripted/echo"]},
        "channels": {"memory": {"type": "memory", "enabled": on}, "other": {"type": "memory"}},
    }
    config = msgspec.convert(given, Config)
    return Settings(Home(home), config, environment={"HOME": str(home.parent)})


@asynccontextmanager
async def running(
    home: Path, *places: MemoryChannel, on: bool = True
) -> AsyncIterator[tuple[App, Callable[[bool], None]]]:
    parts = Parts(
        lambda name: ScriptedModel(echo), channels=places, authorize=lambda inbound: OWNER
    )
    async with (
        open_app(settings_of(home, on=on), parts) as app,
        anyio.create_task_group() as tasks,
    ):

        def switch(on: bool) -> None:
            app.current.settings = settings_of(home, on=on)
            app.on_settings_changed(app.current.settings)

        tasks.start_soon(app.run)
        yield app, switch
        tasks.cancel_scope.cancel()


async def until(met: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not met():
            await anyio.sleep(0.005)


async def test_one_that_is_off_takes_nothing_and_sends_nothing(tmp_path: Path) -> None:
    here, other = MemoryChannel("memory"), MemoryChannel("other")
    async with running(tmp_path, here, other, on=False) as (_, switch):
        here.write("hello")
        other.write("hi")
        await until(lambda: len(other.sent) == 1)
        await anyio.sleep(0.1)
        assert here.confirmed == [] and here.sent == []
        switch(True)
        await until(lambda: len(here.sent) == 1)
        switch(False)
        await anyio.sleep(0.05)
        here.write("again")
        other.write("hi again")
        await until(lambda: len(other.sent) == 2)
        await anyio.sleep(0.1)
        assert len(here.sent) == 1 and len(here.confirmed) == 1
        switch(True)
        await until(lambda: len(here.sent) == 2)
    assert len(here.confirmed) == 2


async def test_what_is_owed_waits_for_it(tmp_path: Path) -> None:
    here, other = MemoryChannel("memory"), MemoryChannel("other")
    begun = anyio.Event()
    go = anyio.Event()

    class Slow(ScriptedModel):
        async def reply(self, request):  # type: ignore[no-untyped-def]
            begun.set()
            await go.wait()
            async for item in super().reply(request):
                yield item

    parts = Parts(lambda name: Slow(echo), channels=(here, other), authorize=lambda inbound: OWNER)
    async with (
        open_app(settings_of(tmp_path, on=True), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        here.write("hello")
        await begun.wait()
        app.current.settings = settings_of(tmp_path, on=False)
        app.on_settings_changed(app.current.settings)
        go.set()
        await anyio.sleep(0.3)
        assert here.sent == []
        app.current.settings = settings_of(tmp_path, on=True)
        app.on_settings_changed(app.current.settings)
        await until(lambda: len(here.sent) == 1)
        await anyio.sleep(0.1)
        assert len(here.sent) == 1
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("on", [True, False])
def test_switching_needs_no_restart(tmp_path: Path, on: bool) -> None:
    before, after = settings_of(tmp_path, on=not on).config, settings_of(tmp_path, on=on).config
    assert keys_needing_restart(before, after) == ()
