"""A clock that jumps: back by a day, as after a wrong start, and forward."""

from __future__ import annotations

import os
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Literal

import anyio
import msgspec
import pytest
from cryptography import x509

from deskhand.config.clock import SystemClock
from deskhand.config.config import Config, Home, Settings
from deskhand.gateway.housekeeping import collect_blobs
from deskhand.models.base import Request
from deskhand.net.egress_ca import Authority
from deskhand.net.host_rate_limit import HostRateLimiter
from deskhand.runtime.app import Parts, open_app
from deskhand.store.blobs import Blobs
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.clock import SetClock
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.commit import Outgoing
from deskhand.types.errors import ChannelError, ModelOverloaded, NetError
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, Text

CONFIG = msgspec.convert({"defaults": {"models": ["scripted/x"]}}, Config)
ANN = Principal("ann", ("owner",))
DAY_S = 86_400.0


class Refusing(MemoryChannel):
    """Takes the second try of each answer."""

    def __init__(self, wait_s: float | None = None) -> None:
        super().__init__()
        self.refused: list[str] = []
        self._wait_s = wait_s

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        if outgoing.key not in self.refused:
            self.refused.append(outgoing.key)
            raise ChannelError("not now", self._wait_s, unsent=True)
        return await super().send(outgoing, mark)


async def until(true: Callable[[], bool]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.01)


def repeat(request: Request) -> Message:
    return say(f"heard {request.messages[-1].message.text.split()[-1]}")


@pytest.mark.parametrize("jump_s", [-DAY_S, DAY_S])
async def test_nothing_waits_for_the_clock_to_catch_up(jump_s: float, tmp_path: Path) -> None:
    """A try that was put off before the jump is made soon after it; the order, the log and its
    chain hold."""
    clock = SetClock()
    channel = Refusing()
    parts = Parts(
        lambda name: ScriptedModel(repeat), {}, {}, (channel,), lambda inbound: ANN, clock=clock
    )
    async with (
        open_app(Settings(Home(tmp_path), CONFIG), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        for number in range(3):
            channel.write(f"m{number}")
            await until(lambda: len(channel.refused) == number + 1)  # noqa: B023 -- awaited at once
            clock.advance(jump_s)
            clock.advance(5)
            await until(lambda: len(channel.sent) == number + 1)  # noqa: B023
        tasks.cancel_scope.cancel()
        texts = [
            part.text for out, _ in channel.sent for part in out.parts if isinstance(part, Text)
        ]
        assert texts == ["heard m0", "heard m1", "heard m2"]
        assert not (await app.store.audit())[1]  # type: ignore[attr-defined]


class ShiftedClock(SystemClock):
    """The machine's, of which somebody sets the time of day: where it is told `looks`, just before
    the last of so many."""

    shift_s = by_s = 0.0
    looks = 0

    def now(self) -> float:
        self.looks -= 1
        if self.looks == 0:
            self.shift_s += self.by_s
        return super().now() + self.shift_s


class Overloaded(ScriptedModel):
    """Asks once to be left alone for longer than one sleeps through. `busy` is called just before
    that."""

    def __init__(self, busy: Callable[[], None] = lambda: None) -> None:
        self.asked = 0
        self._busy = busy
        super().__init__(self._say)

    def _say(self, request: Request) -> Message:
        self.asked += 1
        if self.asked == 1:
            self._busy()
            raise ModelOverloaded("too many", retry_after_s=6)
        return repeat(request)


class Jump(msgspec.Struct, frozen=True):
    """By how much the clock is set, when: while the model waits, or the channel; and whether it was
    off meanwhile."""

    by_s: float
    at: Literal["model", "channel"]
    restart: bool


JUMPS = [
    Jump(by_s, at, restart)
    for by_s in (-2 * DAY_S, -3000.0, -2.0, 3000.0, 2 * DAY_S)
    for at in ("model", "channel")
    for restart in (False, True)
]


async def after_a_jump(home: Path, jump: Jump) -> list[str]:
    """What is answered to one message, within a minute of the jump."""
    clock, channel, model = ShiftedClock(), Refusing(6), Overloaded()
    parts = Parts(lambda name: model, {}, {}, (channel,), lambda inbound: ANN, clock=clock)
    settings = Settings(Home(home), CONFIG)

    def waits() -> bool:
        return bool(channel.refused) if jump.at == "channel" else model.asked == 1

    def answered() -> bool:
        return bool(channel.sent)

    channel.write("hi")
    for stops in (waits, answered) if jump.restart else (waits,):
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            await until(stops)
            await anyio.sleep(0.3)
            if stops is waits:
                clock.shift_s += jump.by_s
                await until(lambda: jump.restart or answered())
            tasks.cancel_scope.cancel()
    return [part.text for out, _ in channel.sent for part in out.parts if isinstance(part, Text)]


@pytest.mark.timeout(120)
async def test_whoever_waits_is_answered_whatever_the_clock_says(tmp_path: Path) -> None:
    """Soon, and once; also where the clock was set while nothing ran."""
    said: dict[Jump, list[str]] = {}

    async def put(jump: Jump) -> None:
        try:
            said[jump] = await after_a_jump(tmp_path / str(JUMPS.index(jump)), jump)
        except* TimeoutError:
            said[jump] = []

    async with anyio.create_task_group() as tasks:
        for jump in JUMPS:
            tasks.start_soon(put, jump)
    assert [jump for jump in JUMPS if said.get(jump) != ["heard hi"]] == []


async def after_a_jump_at(home: Path, looks: int, by_s: float) -> float:
    """How long it takes to answer where the clock is set while a wait for the model is worked
    out."""
    clock, channel = ShiftedClock(), MemoryChannel()

    def busy() -> None:
        clock.looks = looks
        clock.by_s = by_s

    model = Overloaded(busy)
    parts = Parts(lambda name: model, {}, {}, (channel,), lambda inbound: ANN, clock=clock)
    channel.write("hi")
    async with (
        open_app(Settings(Home(home), CONFIG), parts) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        await until(lambda: model.asked >= 1)  # it may be asked again at once
        began = anyio.current_time()
        await until(lambda: bool(channel.sent))
        tasks.cancel_scope.cancel()
    return anyio.current_time() - began


@pytest.mark.timeout(120)
async def test_a_wait_for_a_model_is_no_longer_wherever_the_clock_is_set(tmp_path: Path) -> None:
    late = list[tuple[int, float]]()

    async def put(looks: int, by_s: float) -> None:
        try:
            await after_a_jump_at(tmp_path / f"{looks}{by_s}", looks, by_s)
        except* TimeoutError:
            late.append((looks, by_s))

    async with anyio.create_task_group() as tasks:
        for looks in range(1, 11):
            for by_s in (-2 * DAY_S, -60.0):
                tasks.start_soon(put, looks, by_s)
    assert late == []


async def test_a_host_that_asked_us_to_wait_is_asked_again_in_time() -> None:
    clock = SetClock()
    manners = HostRateLimiter()
    manners.record_retry_after("slow.test", clock, {"retry-after": "30"})
    clock.at -= DAY_S
    with pytest.raises(NetError, match="try again in 30 s"):
        manners.check("slow.test", clock)
    clock.at += 2 * DAY_S
    with pytest.raises(NetError, match="try again in 30 s"):
        manners.check("slow.test", clock)
    clock.at -= 2 * DAY_S
    clock.advance(31)
    manners.check("slow.test", clock)
    assert manners.reserve_delay_s("slow.test", clock, 2) == 0
    clock.at -= DAY_S
    assert manners.reserve_delay_s("slow.test", clock, 2) == 2


@pytest.mark.parametrize("wrong_s", [-2 * DAY_S, 0.0, 2 * DAY_S])
async def test_a_date_counts_from_the_clock_of_who_says_it(wrong_s: float) -> None:
    clock = SetClock()
    said = {
        name: formatdate(clock.at + ahead, usegmt=True)
        for name, ahead in (("date", 0), ("retry-after", 90))
    }
    clock.at += wrong_s
    assert HostRateLimiter().record_retry_after("slow.test", clock, said) == 90
    assert HostRateLimiter().record_retry_after("slow.test", clock, {"retry-after": "soon"}) == 0
    here = {"retry-after": formatdate(clock.at + 90, usegmt=True), "date": "today"}
    assert HostRateLimiter().record_retry_after("slow.test", clock, here) == pytest.approx(
        90, abs=1
    ), "ours, where they say nothing of theirs"


async def test_what_was_just_stored_is_not_old_because_the_clock_was_set(tmp_path: Path) -> None:
    """Its commit may be on its way. What is old when no clock was set since goes."""
    store = SqliteStore(tmp_path / "x.db")
    blobs = Blobs(tmp_path / "blobs")
    clock = SetClock()
    digest = await blobs.put(b"new")
    os.utime(blobs.path(digest), (clock.at, clock.at))
    before = clock.now() - clock.monotonic()
    clock.at += 2 * DAY_S
    await collect_blobs(store, blobs, clock, before)
    assert blobs.size(digest)
    await collect_blobs(store, blobs, clock, clock.now() - clock.monotonic())
    assert not blobs.size(digest)
    await store.close()


@pytest.mark.parametrize("set_s", [-100 * DAY_S, -2 * DAY_S, 0.0, 100 * DAY_S])
def test_a_certificate_of_ours_is_good_whatever_the_clock_shows_then(set_s: float) -> None:
    now = SetClock().now()
    made = x509.load_pem_x509_certificate(Authority(now).pem.encode())
    assert (
        made.not_valid_before_utc.timestamp() < now + set_s < made.not_valid_after_utc.timestamp()
    )
