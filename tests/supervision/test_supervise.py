"""The parent and its worker, with real processes and real signals."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.config.config import Home, read_settings, worker_environment
from deskhand.models.base import Item, Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.runtime.worker import run_guarded, run_worker
from deskhand.supervision.lock import Holder, acquire_lock
from deskhand.supervision.start_log import (
    read_last_start,
    read_startup_error,
    record_start,
    write_startup_error,
)
from deskhand.supervision.supervise import (
    CRASHED,
    DRAIN_S,
    LONGEST_PAUSE_S,
    MAX_QUICK_CRASHES,
    RESTART,
    StartupRepair,
    Supervisor,
    worker_backoff_s,
)
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.errors import NotLeading, StoreUnavailable
from deskhand.types.events import TurnEnded
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.messages import Message, Text

LIVES = """
import os, pathlib, signal, sys, time
lives = pathlib.Path(sys.argv[1])
lives.write_text(lives.read_text() + f"{os.environ['IS_WORKER']}{os.environ['DESKHAND_WORKER']}")
"""
"""Each life leaves `11` behind."""


class Children:
    """Workers of a few lines. `pauses` are those that the parent asked about."""

    def __init__(
        self,
        folder: Path,
        script: str,
        *,
        now: float = 0.0,
        reload: bool = True,
        repair: StartupRepair | None = None,
    ) -> None:
        self.file = folder / "lives"
        self.file.write_text("")
        self.pauses: list[int] = []
        command = [sys.executable, "-c", LIVES + script, str(self.file)]
        env = worker_environment()
        self.parent = Supervisor(
            command, env, lambda: now, reload=reload, pause=self._pause, repair=repair
        )

    def _pause(self, quick: int) -> float:
        self.pauses.append(quick)
        return 0.0

    @property
    def lives(self) -> int:
        assert set(self.file.read_text()) <= {"1"}
        return len(self.file.read_text()) // 2

    async def until(self, lives: int) -> None:
        with anyio.fail_after(30):
            while self.lives < lives:
                await anyio.sleep(0.01)


class NotedRepair:
    """Notes what it was asked. Where it `helps`, it does so only for workers that were ended."""

    start_s = 2.0

    def __init__(self, *, possible: bool = True, helps: bool = True) -> None:
        self._possible = possible
        self._helps = helps
        self.asked = 0
        self.repaired: list[tuple[int, str]] = []

    def last_start(self) -> float | None:
        return 0.0

    async def can_repair(self) -> bool:
        self.asked += 1
        return self._possible

    async def repair(self, code: int, why: str) -> bool:
        self.repaired.append((code, why))
        return self._helps and bool(why)


async def test_a_worker_that_asks_for_it_is_started_again(tmp_path: Path) -> None:
    children = Children(tmp_path, "sys.exit(75 if len(lives.read_text()) < 8 else 3)")
    assert await children.parent.run() == 3
    assert children.lives == 4
    assert children.pauses == [1, 2, 3], "each of them ended soon after its start"


@pytest.mark.parametrize(
    ("ending", "code"),
    [("sys.exit(0)", 0), ("sys.exit(76)", 76), ("os.kill(os.getpid(), 10)", 138)],
)
async def test_any_other_end_is_the_end(tmp_path: Path, ending: str, code: int) -> None:
    children = Children(tmp_path, ending)
    assert await children.parent.run() == code
    assert children.lives == 1


@pytest.mark.parametrize(
    "crash", ["os.kill(os.getpid(), 9)", "os.kill(os.getpid(), 11)", "os.abort()"]
)
async def test_a_worker_that_crashes_is_started_again(tmp_path: Path, crash: str) -> None:
    children = Children(tmp_path, f"{crash} if len(lives.read_text()) < 8 else sys.exit(3)")
    assert await children.parent.run() == 3
    assert (children.lives, children.pauses) == (4, [1, 2, 3])


async def test_one_that_always_crashes_at_its_start_is_left(tmp_path: Path) -> None:
    children = Children(tmp_path, "os.kill(os.getpid(), 9)")
    assert await children.parent.run() == 137
    assert children.lives == MAX_QUICK_CRASHES + 1


def test_pauses_grow_and_end_growing() -> None:
    assert [worker_backoff_s(quick) for quick in range(5)] == [0, 1, 2, 4, 8]
    assert worker_backoff_s(1000) == LONGEST_PAUSE_S


HANGS_ONCE = """
if len(lives.read_text()) == 2:
    signal.signal(15, lambda *_: None)
    while True: time.sleep(9)
"""
READY_AND_SLOW = """
os.write(int(os.environ['DESKHAND_READY']), b'1'); time.sleep(3); sys.exit(3)
"""


@pytest.mark.parametrize(
    ("script", "could", "asked", "told"),
    [
        (
            HANGS_ONCE + "sys.exit(3)",
            True,
            1,
            [(137, "it was not ready 2 s after its start"), (3, "")],
        ),
        (READY_AND_SLOW, True, 0, [(3, "")]),
        ("time.sleep(3); sys.exit(3)", False, 1, [(3, "")]),
        (
            "os.close(int(os.environ['DESKHAND_READY'])); time.sleep(3); sys.exit(3)",
            True,
            0,
            [(3, "")],
        ),
    ],
)
async def test_a_worker_that_hangs_before_it_is_ready_is_ended_where_that_may_help(
    tmp_path: Path, script: str, could: bool, asked: int, told: list[tuple[int, str]]
) -> None:
    repair = NotedRepair(possible=could)
    children = Children(tmp_path, script, repair=repair)
    with anyio.fail_after(20):
        assert await children.parent.run() == 3
    assert (repair.repaired, repair.asked) == (told, asked)


ENDS_IN_GOOD_ORDER = """
def end(*_):
    if BEGUN: os.write(int(os.environ['DESKHAND_READY']), b'1')
    sys.exit(0)
if len(lives.read_text()) == 2:
    signal.signal(15, end)
    while True: time.sleep(9)
time.sleep(SLOW); sys.exit(3)
"""
HUNG = "it was not ready 2 s after its start"


@pytest.mark.parametrize(
    ("script", "helps", "told"),
    [
        ("BEGUN, SLOW = False, 0", True, [(0, HUNG), (3, "")]),
        ("BEGUN, SLOW = True, 3", False, [(3, "")]),
        ("BEGUN, SLOW = False, 3", False, [(0, HUNG), (3, "")]),
    ],
)
async def test_one_that_was_ended_is_started_again_whatever_its_code(
    tmp_path: Path, script: str, helps: bool, told: list[tuple[int, str]]
) -> None:
    """What is told to end may do so in good order. Mended, or ready after all, or nothing could be
    taken back: then the next start may be slow."""
    repair = NotedRepair(helps=helps)
    children = Children(tmp_path, script + ENDS_IN_GOOD_ORDER, repair=repair)
    with anyio.fail_after(20):
        assert await children.parent.run() == 3
    assert (repair.repaired, children.lives) == (told, 2)


async def test_it_is_up_while_what_crashed_is_driven_alone(tmp_path: Path) -> None:
    """Which may take longer than a start; the start counts as good only then."""
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)}).with_model("scripted/test")
    up = anyio.Event()
    started = anyio.Event()
    model = ScriptedModel(latency_s=60)
    async with open_app(settings, Parts(lambda name: model)) as app:
        await submit(app)
        for _ in range(3):
            await app.store.begin_run(1.0)
    async with (
        open_app(settings, Parts(lambda name: model)) as app,
        anyio.create_task_group() as tasks,
    ):
        app.on_up = up.set
        tasks.start_soon(app.run, started.set)
        with anyio.fail_after(10):
            await up.wait()
            while not model.requests:
                await anyio.sleep(0.01)
        assert not started.is_set()
        tasks.cancel_scope.cancel()


async def test_one_that_waits_for_another_is_up(tmp_path: Path) -> None:
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)}).with_model("scripted/test")
    up = anyio.Event()
    started = anyio.Event()
    async with (
        open_app(settings, Parts(lambda name: ScriptedModel())) as app,
        anyio.create_task_group() as tasks,
    ):
        fd = acquire_lock(settings.home.lock, Holder(os.getpid(), 0.0))
        assert fd is not None
        app.on_up = up.set
        tasks.start_soon(app.run, started.set)
        with anyio.fail_after(10):
            await up.wait()
            assert not started.is_set()
            os.close(fd)
            await started.wait()
        tasks.cancel_scope.cancel()


# Not `sys.exit`: where a signal comes in a callback of the interpreter, that is an exception which
# nobody sees.
WAITS = """
signal.signal(1, lambda *_: os._exit(75)); signal.signal(15, lambda *_: os._exit(7))
lives.write_text(lives.read_text() + '11'); time.sleep(60)
"""


@pytest.mark.parametrize("reload", [True, False])
async def test_orders_are_handed_on(tmp_path: Path, reload: bool) -> None:
    """SIGHUP makes a new worker, or ends both where a terminal was closed; SIGTERM ends both, as
    the worker says."""
    children = Children(tmp_path, WAITS, reload=reload)
    codes: list[int] = []

    async def run() -> None:
        codes.append(await children.parent.run())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await children.until(2)
        os.kill(os.getpid(), signal.SIGHUP)
        if reload:
            await children.until(4)
            os.kill(os.getpid(), signal.SIGTERM)
    assert codes == [7] and children.lives == (4 if reload else 2)


async def test_a_worker_is_replaced_on_demand(tmp_path: Path) -> None:
    """However the one that is told to end does so."""
    children = Children(tmp_path, WAITS)
    codes: list[int] = []

    async def run() -> None:
        codes.append(await children.parent.run())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        for lives in 2, 4:
            await children.until(lives)
            os.kill(os.getpid(), signal.SIGUSR1)
        await children.until(6)
        os.kill(os.getpid(), signal.SIGTERM)
    assert codes == [7] and children.lives == 6


async def submit(app: App) -> None:
    said = Said(Message("user", (Text("hello"),)))
    await app.door.submit(Inbound("1", Address("terminal", chat="t"), "owner", 1.0, said))


async def work_until(home: Path, model: ScriptedModel, orders: int) -> tuple[int, bool]:
    """Work on one message, and get these orders while the model thinks: the exit code, and whether
    it was answered."""
    settings = read_settings(None, {"DESKHAND_HOME": str(home)}).with_model("scripted/test")
    codes: list[int] = []
    async with open_app(settings, Parts(lambda name: model)) as app:

        async def worker() -> None:
            codes.append(await run_worker(app, lambda: record_start(settings.home, 1.0)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(worker)
            await submit(app)
            with anyio.fail_after(10):
                while not model.requests:
                    await anyio.sleep(0.01)
            for _ in range(orders):
                os.kill(os.getpid(), signal.SIGTERM)
                await anyio.sleep(0.1)
        events = [recorded.event for recorded in await app.store.events("default/terminal:t")]
    assert read_last_start(settings.home) == 1.0
    return codes[0], any(isinstance(event, TurnEnded) for event in events)


async def test_the_intake_is_closed_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    """While twenty are being answered. The best of three counts: this machine may have other things
    to do."""
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)}).with_model("scripted/test")
    owner, took = Principal("ann", ("owner",)), list[float]()
    for attempt in range(3):
        channel = MemoryChannel()
        model = ScriptedModel(latency_s=60)
        parts = Parts(
            lambda name, model=model: model,
            channels=(channel,),
            authorize=lambda inbound: owner,
        )
        async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(run_worker, app, lambda: None)
            for number in range(20):
                channel.write("go", chat=f"{attempt}.{number}", external_id=f"{attempt}.{number}")
            with anyio.fail_after(30):
                while len(model.requests) < 20:
                    await anyio.sleep(0.01)
                told = anyio.current_time()
                os.kill(os.getpid(), signal.SIGTERM)
                while not app.dispatch.is_draining:
                    await anyio.sleep(0.002)
                took.append(anyio.current_time() - told)
            os.kill(os.getpid(), signal.SIGTERM)  # the others would take too long
    assert min(took) <= 0.1, took
    assert DRAIN_S < 25, "and then it ends"


async def test_what_is_under_way_is_ended_first(tmp_path: Path) -> None:
    assert await work_until(tmp_path, ScriptedModel(latency_s=0.5), 1) == (0, True)


async def test_a_second_order_is_obeyed_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    with anyio.fail_after(4):
        assert await work_until(tmp_path, ScriptedModel(latency_s=60), 2) == (0, False)
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)}).with_model("scripted/test")
    model = ScriptedModel()
    async with (
        open_app(settings, Parts(lambda name: model)) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run)
        with anyio.fail_after(10):
            while not any(
                isinstance(r.event, TurnEnded) for r in await app.store.events("default/terminal:t")
            ):
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()


async def test_nothing_is_begun_while_it_ends(tmp_path: Path) -> None:
    """What comes in meanwhile is stored, and waits for the next."""
    gate = anyio.Event()
    model = ScriptedModel(lambda request: say("fine"))
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)}).with_model("scripted/test")
    async with (
        open_app(settings, Parts(lambda name: model)) as app,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(app.run, gate.set)
        await gate.wait()
        await app.dispatch.drain()
        await submit(app)
        await anyio.sleep(0.2)
        tasks.cancel_scope.cancel()
        assert model.requests == []
        assert len(await app.store.list_waiting("default/terminal:t")) == 1


async def test_why_it_broke_is_written_down(tmp_path: Path) -> None:
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path), "SOME_KEY": "sk-abcdefgh"})
    home = settings.home

    async def breaks() -> int:
        raise ExceptionGroup("of a task group", [ValueError("with sk-abcdefgh")])

    assert read_startup_error(home) is None
    assert await run_guarded(settings, breaks, lambda: 1_700_000_000.0) == CRASHED
    written = msgspec.json.decode(home.startup_error.read_bytes())
    assert (written["type"], written["message"], written["time"]) == (
        "ValueError",
        "with {{secret:SOME_KEY}}",
        "2023-11-14T22:13:20+00:00",
    )
    assert "in breaks" in written["traceback"] and "sk-abcdefgh" not in written["traceback"]
    assert home.startup_error.stat().st_mode & 0o777 == 0o600
    assert read_startup_error(home) is not None
    record_start(home, 1_700_000_001.0)
    assert read_startup_error(home) is None, "it has begun well since"
    write_startup_error(home, OSError("again"), 1_700_000_002.0, str)
    assert read_startup_error(home) is not None


async def test_an_ordinary_end_leaves_nothing_behind(tmp_path: Path) -> None:
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)})

    async def ends() -> int:
        return RESTART

    assert await run_guarded(settings, ends, lambda: 0.0) == RESTART
    assert not Home(tmp_path).startup_error.exists()


@pytest.mark.parametrize(
    ("store", "error", "code"),
    [
        ("postgresql://nowhere.test/x", StoreUnavailable("it is away"), RESTART),
        ("", StoreUnavailable("it is away"), CRASHED),
        ("", NotLeading("the home was replaced"), RESTART),
    ],
)
async def test_a_database_server_that_is_away_is_waited_for(
    store: str,
    error: StoreUnavailable,
    code: int,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A file that cannot be written is no better in a moment; one that was replaced is."""
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path), "DESKHAND_STORE": store})

    async def breaks() -> int:
        raise ExceptionGroup("of a task group", [error])

    assert await run_guarded(settings, breaks, lambda: 0.0) == code
    said = f"deskhand: {error}. Trying again.\n" if code == RESTART else ""
    assert capfd.readouterr().err == said


async def restarted(
    home: Path, channel: MemoryChannel, words: str = "", sender: str = "ann"
) -> int | None:
    """Work, and say this on the channel: the exit code, once it has ended, or None where nothing
    ends it."""
    settings = read_settings(None, {"DESKHAND_HOME": str(home)}).with_model("scripted/test")
    roles = {"ann": ("owner",), "bob": ("member",)}
    parts = Parts(
        lambda name: ScriptedModel(),
        channels=(channel,),
        authorize=lambda inbound: Principal(sender, roles[sender]),
    )
    codes: list[int] = []
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:

        async def worker() -> None:
            codes.append(await run_worker(app, lambda: None))
            tasks.cancel_scope.cancel()

        tasks.start_soon(worker)
        said = len(channel.sent)
        if words:
            channel.write(words, sender=sender)
        with anyio.fail_after(20):
            while len(channel.sent) == said:
                await anyio.sleep(0.01)
        await anyio.sleep(0.2)  # what might come besides
        tasks.cancel_scope.cancel()
    return codes[0] if codes else None


def texts(channel: MemoryChannel) -> list[str]:
    return [
        "".join(part.text for part in out.parts if isinstance(part, Text))
        for out, _ in channel.sent
    ]


async def test_a_restart_is_told_where_it_was_asked_for_once(tmp_path: Path) -> None:
    channel = MemoryChannel()
    assert await restarted(tmp_path, channel, "/restart") == RESTART
    assert await restarted(tmp_path, channel) is None
    assert texts(channel) == [
        "I am restarting and will write here when I am back.",
        "System restarted. Send me a message to continue.",
    ]
    assert channel.sent[1][0].address == channel.sent[0][0].address
    assert await restarted(tmp_path, channel, "hello") is None
    assert texts(channel)[2:] == ["You said: hello"], "and the model has heard nothing of it"


async def test_a_restart_is_for_owners(tmp_path: Path) -> None:
    channel = MemoryChannel()
    assert await restarted(tmp_path, channel, "/restart", "bob") is None
    assert texts(channel) == ["/restart is for owners."]


async def test_where_nobody_would_start_it_again_it_goes_on(tmp_path: Path) -> None:
    channel = MemoryChannel()
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)}).with_model("scripted/test")
    owner = Principal("ann", ("owner",))
    parts = Parts(
        lambda name: ScriptedModel(), channels=(channel,), authorize=lambda inbound: owner
    )
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        for times in (1, 2):
            channel.write("/restart")
            with anyio.fail_after(20):
                while len(channel.sent) < 2 * times:
                    await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert texts(channel)[1::2] == ["System restarted. Send me a message to continue."] * 2


async def test_twenty_turns_that_are_under_way_lose_nothing(tmp_path: Path) -> None:
    """Told to end while twenty are being answered: the quick ones are ended, the others go on at
    the next start, and what is written meanwhile is neither taken from the platform nor lost."""
    channel = MemoryChannel()
    began: set[str] = set()

    class Model(ScriptedModel):
        slow = True

        async def reply(self, request: Request) -> AsyncIterator[Item]:
            text = request.messages[-1].message.text
            began.add(text)
            await anyio.sleep(0.5 if text.endswith("q") or not self.slow else 60)
            async for item in super().reply(request):
                yield item

    model = Model()
    settings = read_settings(None, {"DESKHAND_HOME": str(tmp_path)}).with_model("scripted/test")
    owner = Principal("ann", ("owner",))
    parts = Parts(lambda name: model, channels=(channel,), authorize=lambda inbound: owner)
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(run_worker, app, lambda: None)
        for number in range(20):
            channel.write(f"{number} {'q' if number % 2 else 's'}", chat=str(number))
        with anyio.fail_after(30):
            while len(began) < 20:
                await anyio.sleep(0.01)
            os.kill(os.getpid(), signal.SIGTERM)
            while len(channel.sent) < 10:
                await anyio.sleep(0.01)
        confirmed = len(channel.confirmed)
        channel.write("late q", chat="late")
        await anyio.sleep(0.3)
        assert len(channel.confirmed) == confirmed, "the intake is closed"
        os.kill(os.getpid(), signal.SIGTERM)
    model.slow = False
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        tasks.start_soon(app.run)
        with anyio.fail_after(30):
            while len(channel.sent) < 21:
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert sorted(out.address.chat for out, _ in channel.sent) == sorted(
        [*map(str, range(20)), "late"]
    )
    assert {mark for _, mark in channel.sent} == {""}, "and nothing is said twice"
