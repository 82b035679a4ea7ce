"""Parts that fail are started again, and how each is doing is known: in one process, and over
restarts."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from deskhand.channels.base import Channel
from deskhand.channels.base import ChannelHealth as Told
from deskhand.config.clock import SystemClock
from deskhand.config.config import Config, Home, Settings
from deskhand.models.base import Model, Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.sandbox.choose import Proven
from deskhand.store.sqlite import SqliteStore
from deskhand.supervision.health_checks import (
    PROVIDER_FAULT_S,
    ModelHealth,
    driver_fact,
    reset_model_health,
)
from deskhand.supervision.health_facts import DOWN_AFTER, Vitals
from deskhand.supervision.lock import Holder, acquire_lock, hold_lock, read_holder
from deskhand.supervision.restart_with_backoff import (
    LONGEST_PAUSE_S,
    REFUSED_PAUSE_S,
    Child,
    keep_running,
    restart_backoff_s,
)
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.commit import Change, Outgoing
from deskhand.types.errors import (
    ChannelError,
    LoginRefused,
    ModelKeyRefused,
    ModelUnavailable,
    SandboxUnavailable,
    StoreCorrupt,
    StoreFull,
    ToolError,
)
from deskhand.types.events import (
    ModelFailed,
    Recorded,
)
from deskhand.types.health import Health, HealthFact, HealthState, combine_states
from deskhand.types.identity import Inbound, Principal
from deskhand.types.messages import Message

ANN = Principal("ann", ("owner",))


def vitals_of(folder: Path, clock: SetClock) -> Vitals:
    return Vitals(clock, lambda text: text.replace("s3cret", "[KEY]"), folder / "health.json")


@pytest.mark.parametrize(
    ("states", "whole"),
    [
        ((("ok", True), ("ok", False)), "ok"),
        ((("ok", True), ("starting", False)), "starting"),
        ((("starting", True), ("degraded", False)), "degraded"),
        ((("ok", True), ("down", False)), "degraded"),
        ((("down", True), ("starting", False)), "down"),
        ((), "ok"),
    ],
)
def test_what_the_parts_come_to(
    states: Sequence[tuple[HealthState, bool]], whole: HealthState
) -> None:
    assert (
        combine_states(
            HealthFact(str(n), state, vital=vital) for n, (state, vital) in enumerate(states)
        )
        == whole
    )


def test_pauses_grow_and_end_growing() -> None:
    assert [restart_backoff_s(failures) for failures in range(1, 6)] == [0.5, 1, 2, 4, 8]
    assert restart_backoff_s(100_000) == LONGEST_PAUSE_S


def test_a_part_that_fails_is_degraded_then_down_and_well_again(tmp_path: Path) -> None:
    clock = SetClock(1000.0)
    vitals = vitals_of(tmp_path, clock)

    def fact() -> HealthFact:
        (found,) = vitals.facts()
        return found

    vitals.record_start("web", awaited=True)
    assert (fact().state, fact().since, fact().last_success_at) == ("starting", 1000.0, None)
    vitals.record_ready("web", "http://127.0.0.1:8000")
    assert (fact().state, fact().detail) == ("ok", "http://127.0.0.1:8000")
    for number in range(3):
        clock.advance(1)
        vitals.record_failure("web", ValueError("with s3cret"))
        assert fact().state == ("down" if number == 2 else "degraded")
    assert (fact().last_error, fact().last_error_at) == ("ValueError: with [KEY]", 1003.0)
    vitals.record_start("web")
    assert fact().state == "down", "it has only just begun again"
    clock.advance(10)
    assert fact().state == "ok" and fact().last_error_at == 1003.0, "it stays told"
    vitals.record_failure("web", "once more")
    assert fact().state == "degraded", "it had come through its start, so this is the first"
    vitals.record_success("web")
    assert (fact().state, fact().last_success_at) == ("ok", 1013.0)


async def kept(tmp_path: Path, ends: list[BaseException | None]) -> tuple[int, list[int]]:
    """A child that ends like this, one life after the other: how often it lived, and after which
    failures in a row there was a pause."""
    vitals = vitals_of(tmp_path, SetClock(1000.0))
    lives, pauses = 0, list[int]()

    def pause(failures: int) -> float:
        pauses.append(failures)
        return 0.0

    async def run() -> None:
        nonlocal lives
        lives += 1
        if not ends:
            scope.cancel()
            await anyio.sleep_forever()
        if (error := ends.pop(0)) is not None:
            raise error

    with anyio.CancelScope() as scope:
        await keep_running(Child("one", run), vitals, pause)
    assert vitals.facts()[0].restarts == lives - 1
    return lives, pauses


async def test_whatever_ends_is_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ends = [
        ValueError("a bug"),
        None,
        ExceptionGroup("of a task group", [OSError("gone")]),
        StoreFull("no room"),
    ]
    assert await kept(tmp_path, [*ends]) == (5, [1, 2, 3, 4])
    assert "one crashed (ValueError: a bug)" in caplog.text and "Traceback" in caplog.text
    assert "one: it ended by itself" in caplog.text and "one: no room; restarting in" in caplog.text


@pytest.mark.parametrize(
    "end",
    [
        StoreCorrupt("damaged"),
        ExceptionGroup("of a task group", [StoreCorrupt("damaged")]),
        SystemExit(3),
    ],
)
async def test_what_nothing_may_be_built_on_ends_it(tmp_path: Path, end: BaseException) -> None:
    with pytest.raises(type(end)):
        await kept(tmp_path, [end])


async def test_the_file_is_written_soon_after_a_failure_and_read_at_the_next_start(
    tmp_path: Path,
) -> None:
    clock = SetClock(1000.0)
    vitals = vitals_of(tmp_path, clock)
    vitals.record_failure("channel mail", LoginRefused("wrong key s3cret"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(vitals.run)
        with anyio.fail_after(10):
            while not (tmp_path / "health.json").exists():
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert (tmp_path / "health.json").stat().st_mode & 0o777 == 0o600
    assert "s3cret" not in (tmp_path / "health.json").read_text()
    after = vitals_of(tmp_path, SetClock(2000.0))
    after.load()
    after.record_start("channel mail")
    (fact,) = after.facts()
    assert (fact.state, fact.last_error) == ("down", "LoginRefused: wrong key [KEY]"), (
        "a new start mends no key"
    )
    after.record_success("channel mail")
    assert after.facts()[0].state == "ok"
    (tmp_path / "health.json").write_text("{torn")
    vitals_of(tmp_path, clock).load()


def test_a_lock_says_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    assert read_holder(path) is None
    fd = acquire_lock(path, Holder(77, 5.0))
    assert (
        fd is not None
        and acquire_lock(path, Holder(78, 6.0)) is None
        and read_holder(path) == Holder(77, 5.0)
    )
    os.close(fd)
    assert read_holder(path) is None, "what it says counts only while it is held"
    path.write_text("")
    fd = acquire_lock(path, Holder(1))
    path.write_text("?")
    assert fd is not None and read_holder(path) == Holder()
    os.close(fd)


async def test_a_lock_is_left_to_who_is_to_have_it_for_a_while(tmp_path: Path) -> None:
    path, asked = tmp_path / "x.lock", list[bool]()

    def first() -> bool:
        asked.append(read_holder(path) is None)
        return True

    async with hold_lock(path, Holder(77), first, 0.5):
        assert read_holder(path) == Holder(77) and asked == [True], "nobody came"


# ---------------------------------------------------------------------- a whole Deskhand


@asynccontextmanager
async def running(home: Path, channels: Sequence[Channel] = (), **parts: Any) -> AsyncIterator[App]:
    model: Model = parts.pop("model", ScriptedModel())
    settings = Settings(Home(home), Config(), environment={"HOME": str(home)}).with_model(
        "scripted/test"
    )
    made = Parts(lambda name: model, {}, channels=channels, authorize=lambda inbound: ANN, **parts)
    async with open_app(settings, made) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        yield app
        tasks.cancel_scope.cancel()


async def health(
    app: App, true: Callable[[dict[str, HealthFact]], bool] = bool
) -> tuple[Health, dict[str, HealthFact]]:
    """The health as soon as it is like this."""
    with anyio.fail_after(20):
        while True:
            found = await app.health()
            facts = {fact.name: fact for fact in found.facts}
            assert len(facts) == len(found.facts)
            if true(facts):
                return found, facts
            await anyio.sleep(0.01)


class Shaky(MemoryChannel):
    """Fails like this, and then works."""

    def __init__(self, *ends: Exception) -> None:
        super().__init__()
        self.ends = list(ends)

    async def receive(self) -> AsyncIterator[Inbound]:
        if self.ends:
            raise self.ends.pop(0)
        async for inbound in super().receive():
            yield inbound


async def test_one_broken_channel_holds_up_nobody(tmp_path: Path) -> None:
    channel, broken = MemoryChannel(), Shaky(LoginRefused("the token is revoked"))
    broken.name = "broken"
    async with running(tmp_path, (channel, broken)) as app:
        channel.write("hello")
        found, facts = await health(
            app, lambda facts: bool(channel.sent) and bool(facts["channel broken"].last_error)
        )
    assert found.state == "degraded" and found.pid and found.version
    assert facts["channel broken"].state == "down"
    assert (
        facts["channel memory"].state == "ok"
        and facts["channel memory"].last_success_at is not None
    )
    assert (
        facts["driver"].state == "ok"
        and facts["driver"].vital
        and facts["driver"].since is not None
    )
    assert facts["model scripted"].last_success_at is not None
    assert REFUSED_PAUSE_S > LONGEST_PAUSE_S, "who is refused does not knock every minute"


async def test_a_channel_comes_back_by_itself(tmp_path: Path) -> None:
    channel = Shaky(ChannelError("the platform is away"), ValueError("a bug"))
    async with running(tmp_path, (channel,)) as app:
        channel.write("hello")
        _, facts = await health(
            app, lambda facts: bool(channel.sent) and facts["channel memory"].state == "ok"
        )
    fact = facts["channel memory"]
    assert (fact.restarts, fact.last_error) == (2, "ValueError: a bug")


async def test_the_page_runs_beside_whoever_drives_and_is_started_again(tmp_path: Path) -> None:
    """Where another process drives, it is told which."""
    lives: list[App] = []

    async def page(app: App) -> None:
        lives.append(app)
        if len(lives) == 1:
            raise OSError("the port is taken")
        app.vitals.record_ready("web", "http://127.0.0.1:8000")
        await anyio.sleep_forever()

    home = Home(tmp_path)
    home.make_folder(home.state)
    fd = acquire_lock(home.lock, Holder(77, 5.0))
    assert fd is not None
    async with running(tmp_path, serve=page) as app:
        _, facts = await health(
            app, lambda facts: facts["web"].state == "degraded" and facts["web"].restarts == 0
        )
        assert facts["web"].last_error == "OSError: the port is taken"
        assert (facts["driver"].state, facts["driver"].since) == ("ok", 5.0)
        assert "process 77 is active" in facts["driver"].detail
        os.close(fd)
        _, facts = await health(
            app, lambda facts: facts["driver"].detail == "" and app.dispatch.is_driving
        )
        _, facts = await health(app, lambda facts: facts["web"].detail != "")
        assert len(lives) == 2 and facts["web"].restarts == 1


async def test_a_terminal_leaves_the_driving_to_a_service_whose_worker_is_on_its_way(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    home.make_folder(home.state)
    service = acquire_lock(home.serve_lock, Holder(77, 5.0))
    assert service is not None
    async with running(tmp_path) as app, running(tmp_path) as worker:
        worker.supervised = True
        await health(worker, lambda facts: worker.dispatch.is_driving)
        assert not app.dispatch.is_driving
        os.close(service)


class Failing(SqliteStore):
    """Raises these, one for each attempt: to begin to drive, and to change something."""

    begins: list[Exception]
    faults: list[Exception]

    async def begin_run(self, now: float) -> str:
        if self.begins:
            raise self.begins.pop(0)
        return await super().begin_run(now)

    async def change(self, changes: Sequence[Change]) -> list[int]:
        if self.faults:
            raise self.faults.pop(0)
        return await super().change(changes)


async def test_a_disk_without_room_at_the_start_is_waited_for(tmp_path: Path) -> None:
    channel = MemoryChannel()

    class Store(Failing):
        begins: list[Exception] = [StoreFull("no space left")]  # noqa: RUF012
        faults: list[Exception] = []  # noqa: RUF012

    async with running(tmp_path, (channel,), store=Store) as app:
        channel.write("hello")
        _, facts = await health(app, lambda facts: bool(channel.sent))
    assert (
        facts["driver"].restarts == 1 and facts["driver"].last_error == "StoreFull: no space left"
    )


async def test_a_damaged_database_ends_it(tmp_path: Path) -> None:
    class Store(Failing):
        begins: list[Exception] = [StoreCorrupt("'x' is damaged")]  # noqa: RUF012
        faults: list[Exception] = []  # noqa: RUF012

    with pytest.raises(BaseExceptionGroup) as raised:
        async with running(tmp_path, store=Store):
            await anyio.sleep(20)
    assert raised.group_contains(StoreCorrupt, match="is damaged")


def test_who_has_the_lock_and_drives_nothing_yet_is_starting() -> None:
    assert driver_fact(Holder(os.getpid())).state == driver_fact(None).state == "starting"
    assert driver_fact(Holder(os.getpid() + 1)).detail.startswith(
        f"process {os.getpid() + 1} is active"
    )


async def test_whether_it_can_write_is_tried(tmp_path: Path) -> None:
    clock = SetClock(1_700_000_000.0)

    class Store(Failing):
        begins: list[Exception] = []  # noqa: RUF012
        faults: list[Exception] = []  # noqa: RUF012

    async with running(tmp_path, store=Store, clock=clock) as app:
        found, facts = await health(app, lambda facts: facts["driver"].state == "ok")
        assert (found.state, facts["store"].state) == ("ok", "ok") and "are free" in facts[
            "store"
        ].detail
        Store.faults.append(StoreFull("no space left"))
        assert (await health(app))[0].state == "ok", "nobody makes it write by asking"
        clock.advance(5)
        found, facts = await health(app)
        assert (found.state, facts["store"].state) == ("down", "down")
        assert facts["store"].last_error == "StoreFull: no space left"
        clock.advance(5)
        assert (await health(app))[0].state == "ok"


async def test_what_is_owed_and_what_a_provider_said(tmp_path: Path) -> None:
    class Mute(MemoryChannel):
        async def send(self, outgoing: Outgoing, mark: str) -> str:
            raise ChannelError("not now", retry_after_s=1000)

    def refused(request: Request) -> Message:
        raise ModelKeyRefused("no")

    channel = Mute()
    clock = SetClock(1_700_000_000.0)
    async with running(tmp_path, (channel,), clock=clock, model=ScriptedModel(refused)) as app:
        channel.write("hello")
        _, facts = await health(app, lambda facts: facts["owed"].last_error != "")
        assert (facts["owed"].state, facts["owed"].detail) == ("ok", "1 to be sent")
        assert (
            facts["model scripted"].state == "degraded"
            and "ModelKeyRefused" in facts["model scripted"].last_error
        )
        clock.advance(400)
        _, facts = await health(app)
        assert facts["owed"].state == "degraded" and facts["owed"].last_error == "not now"


async def test_a_model_that_failed_and_is_used_no_more_is_well_again(tmp_path: Path) -> None:
    """Nothing else would ever say so: its next success, which is what ends a failure, never
    comes."""

    def away(request: Request) -> Message:
        raise ModelUnavailable("the server is away")

    channel, clock = MemoryChannel(), SetClock(1_700_000_000.0)
    models = {"other/x": ScriptedModel(away), "scripted/x": ScriptedModel()}
    config = msgspec.convert({"defaults": {"models": [*models]}}, Config, strict=False)
    settings = Settings(Home(tmp_path), config, environment={"HOME": str(tmp_path)})
    parts = Parts(
        models.__getitem__, {}, channels=(channel,), authorize=lambda inbound: ANN, clock=clock
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        channel.write("hello")
        _, facts = await health(app, lambda facts: bool(channel.sent))
        assert (facts["model other"].state, facts["model scripted"].state) == ("down", "ok")
        clock.advance(PROVIDER_FAULT_S)
        _, facts = await health(app)
        assert facts["model other"].state == "ok"
        assert facts["model other"].last_error == "ModelUnavailable: the server is away", (
            "it stays told"
        )
        tasks.cancel_scope.cancel()


def note(health: ModelHealth, event: ModelFailed) -> None:
    health.on_event(Recorded(1, "default/memory:1", 1, 0.0, event))


@pytest.mark.parametrize("error", ["ModelKeyRefused", "ModelUnknown"])
def test_what_a_person_must_mend_counts_until_the_configuration_is_another(
    tmp_path: Path, error: str
) -> None:
    clock = SetClock(1000.0)
    vitals = vitals_of(tmp_path, clock)

    def state() -> HealthState:
        (fact,) = vitals.facts()
        return fact.state

    note(ModelHealth(vitals, lambda: {"openai/x"}), ModelFailed("openai/x", error, "no"))
    clock.advance(100 * PROVIDER_FAULT_S)
    assert state() == "degraded"
    reset_model_health(vitals)
    assert state() == "ok"
    note(ModelHealth(vitals, lambda: {"openai/x"}), ModelFailed("openai/chosen-once", error, "no"))
    assert state() == "degraded"
    clock.advance(PROVIDER_FAULT_S)
    assert state() == "ok", "no agent is set to use it"


def test_a_failure_that_counts_no_more_is_not_the_first_of_a_row(tmp_path: Path) -> None:
    clock = SetClock(1000.0)
    vitals = vitals_of(tmp_path, clock)
    for _ in range(DOWN_AFTER):
        note(ModelHealth(vitals, set), ModelFailed("openai/x", "ModelTimeout", "slow"))
        clock.advance(PROVIDER_FAULT_S)
    note(ModelHealth(vitals, set), ModelFailed("openai/x", "ModelTimeout", "slow"))
    assert [fact.state for fact in vitals.facts()] == ["degraded"]


@pytest.mark.parametrize("error", ["ContextOverflow", "BudgetSpent", "AnswerUnfit"])
def test_what_is_no_fault_of_the_provider(tmp_path: Path, error: str) -> None:
    vitals = vitals_of(tmp_path, SetClock(1000.0))
    note(ModelHealth(vitals, lambda: {"openai/x"}), ModelFailed("openai/x", error, "too long"))
    assert combine_states(vitals.facts()) == "ok"


async def test_a_channel_that_knows_when_the_platform_answered(tmp_path: Path) -> None:
    class Polled(MemoryChannel):
        def health(self) -> Told:
            return Told(12345.0, 12346.0, "not for a moment")

    async with running(tmp_path, (Polled(),)) as app:
        _, facts = await health(app, lambda facts: "channel memory" in facts)
    fact = facts["channel memory"]
    assert (fact.last_success_at, fact.last_error_at, fact.last_error) == (
        12345.0,
        12346.0,
        "not for a moment",
    )


async def test_a_sandbox_that_does_not_hold_is_told_with_its_reason(tmp_path: Path) -> None:
    async def none() -> Proven:
        raise SandboxUnavailable("no sandbox works here")

    async with running(tmp_path, sandbox=none, clock=SystemClock()) as app:
        _, facts = await health(app)
        assert (facts["sandbox"].state, facts["sandbox"].detail) == (
            "ok",
            "tested before the first command",
        )
        with pytest.raises((SandboxUnavailable, ToolError)):
            await app.sandbox()
        _, facts = await health(app)
    assert (facts["sandbox"].state, facts["sandbox"].last_error) == (
        "degraded",
        "no sandbox works here",
    )
