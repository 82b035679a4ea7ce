"""What channels cost: `bench/bench.py channels`.

How soon a message is safe, from the channel through the door into the store, beside bare inserts
into SQLite with the same settings; how long others wait while one chat is flooded; and how much
more an idle `deskhand serve` holds with seven channels than with one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import apsw
import msgspec
import serving
from aiohttp import web

from deskhand.channels.base import Channel
from deskhand.channels.settings import ChannelConfig
from deskhand.channels.telegram.channel import open_telegram
from deskhand.config.config import Config, Home, Settings
from deskhand.runtime.app import App, Parts, open_app
from deskhand.store.schema import PRAGMAS
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.broker import free_port, mosquitto
from deskhand.testing.channel import MemoryChannel, MemoryContext
from deskhand.testing.discord.server import DiscordServer
from deskhand.testing.mail.server import AUTHORITY, MailServer
from deskhand.testing.scripted import ScriptedModel
from deskhand.testing.slack.server import SlackServer
from deskhand.testing.telegram.chat import Refusal
from deskhand.testing.telegram.server import TelegramServer
from deskhand.testing.twitch.server import TwitchServer
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.interpreter import tune_interpreter
from deskhand.types.messages import Message, Text

Figure = tuple[str, float, str, float | None, float | None]
"""What it is, how much, the unit, what the bare reference has, and what it must not exceed."""

ANN = Principal("ann", ("owner",))
WORDS = "some words of an ordinary message, about as long as people write them. " * 2
MESSAGES = 4_000
CHATS = 50
ROUNDS = 3
ACCEPT_LIMIT_MS = 1.0
"""A thousand messages a second."""
FOREVER_S = 3_600.0

OTHERS = 20
FLOODED = 999
STORM_S = 5.0
AFTER_S = 3.0
"""So long the flood lasts, and so long others still talk: what it held up is sent then."""
STORM_ROUNDS = 2
RETRY_AFTER_S = 1
STORM_LIMIT_MS = 200.0

SETTLE_S = 5.0
IDLE_ROUNDS = 2
IDLE_LIMIT_MB = 20.0
LEANEST = "matrix"

BARE = """
CREATE TABLE inbox(
  id INTEGER PRIMARY KEY, channel TEXT NOT NULL, account TEXT NOT NULL, external_id TEXT NOT NULL,
  session TEXT NOT NULL, body BLOB NOT NULL, n INTEGER, UNIQUE(channel, account, external_id)
) STRICT;
CREATE INDEX inbox_waiting ON inbox(session, id) WHERE n IS NULL;
"""
INSERT = "INSERT INTO inbox(channel, account, external_id, session, body) VALUES(?, '', ?, ?, ?)"


async def figures(home: Path) -> list[Figure]:
    """What `bench.py` shows."""
    rows: list[Figure] = []
    for name, measure in (("accept", accept), ("storm", storm), ("idle", idle)):
        folder = home / name
        folder.mkdir()
        rows += await measure(folder)
    return rows


# ---------------------------------------------------------------------- messages that come in


class Cost(msgspec.Struct, frozen=True):
    """Milliseconds for one message."""

    wall: float
    cpu: float


class Watch:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def cost(self, messages: int) -> Cost:
        wall = time.perf_counter() - self._wall
        cpu = time.process_time() - self._cpu
        return Cost(wall / messages * 1e3, cpu / messages * 1e3)


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(each.wall for each in costs),
        statistics.median(each.cpu for each in costs),
    )


def make_inbound(number: int) -> Inbound:
    said = Said(Message("user", (Text(WORDS),)))
    return Inbound(str(number), Address("memory", chat=str(number % CHATS)), "ann", 1.7e9, said)


def insert_bare(path: Path) -> Cost:
    """The same rows, each in a transaction of its own, and nothing else."""
    body = msgspec.json.encode((ANN, make_inbound(0)))
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute(PRAGMAS).fetchall()
    db.execute(BARE).fetchall()
    watch = Watch()
    for number in range(MESSAGES):
        db.execute("BEGIN IMMEDIATE")
        db.execute(INSERT, ("memory", str(number), f"default/memory:{number % CHATS}", body))
        db.execute("COMMIT")
    cost = watch.cost(MESSAGES)
    db.close()
    return cost


async def accept_raw(path: Path) -> Cost:
    """Into the store, one after the other."""
    store = SqliteStore(path)
    watch = Watch()
    for number in range(MESSAGES):
        await store.accept(make_inbound(number), ANN, f"default/memory:{number % CHATS}")
    cost = watch.cost(MESSAGES)
    await store.close()
    return cost


@asynccontextmanager
async def running(
    home: Path, channels: Sequence[Channel], model: ScriptedModel
) -> AsyncIterator[App]:
    """A Deskhand with these channels, on which everybody is let in."""
    off = {"enabled": False}
    raw = {"memory": {"harvester": off, "cleaner": off}, "reflection": off}
    settings = Settings(Home(home), msgspec.convert(raw, Config)).with_model("scripted/bench")
    parts = Parts(lambda name: model, {}, channels=channels, authorize=lambda inbound: ANN)
    async with open_app(settings, parts) as app, anyio.create_task_group() as tasks:
        ready = anyio.Event()
        tasks.start_soon(app.run, ready.set)
        await ready.wait()
        yield app
        tasks.cancel_scope.cancel()


async def accept_by_channel(home: Path, count: int) -> Cost:
    """Over so many channels at once, into conversations that are at work already: what it costs to
    drive them is another figure."""
    channels = [MemoryChannel(f"memory{number}") for number in range(count)]
    model = ScriptedModel(latency_s=FOREVER_S)
    async with running(home, channels, model):
        write(channels, CHATS)
        await wait_until(lambda: len(model.requests) >= CHATS and not any_waits(channels))
        watch = Watch()
        write(channels, MESSAGES)
        await wait_until(lambda: not any_waits(channels))
        return watch.cost(MESSAGES)


async def accept_new(home: Path) -> Cost:
    """Each begins a turn, and all of it up to the model's request happens meanwhile."""
    channel = MemoryChannel()
    model = ScriptedModel(latency_s=FOREVER_S)
    count = MESSAGES // 4
    async with running(home, [channel], model):
        watch = Watch()
        for number in range(count):
            channel.write(WORDS, chat=str(number))
        await wait_until(lambda: not channel.waiting and len(model.requests) >= count)
        return watch.cost(count)


def write(channels: Sequence[MemoryChannel], messages: int) -> None:
    for number in range(messages):
        channels[number % len(channels)].write(WORDS, chat=str(number % CHATS))


def any_waits(channels: Sequence[MemoryChannel]) -> bool:
    return any(each.waiting for each in channels)


async def wait_until(is_so: Callable[[], bool], every_s: float = 0.002) -> None:
    while not is_so():
        await anyio.sleep(every_s)


async def accept(home: Path) -> list[Figure]:
    found: dict[str, list[Cost]] = {}
    for number in range(ROUNDS):
        place = home / str(number)
        for part in ("one", "seven", "new"):
            (place / part).mkdir(parents=True)
        costs = {
            "bare": insert_bare(place / "bare.db"),
            "raw": await accept_raw(place / "raw.db"),
            "one": await accept_by_channel(place / "one", 1),
            "seven": await accept_by_channel(place / "seven", 7),
            "new": await accept_new(place / "new"),
        }
        for name, cost in costs.items():
            found.setdefault(name, []).append(cost)
    by = {name: median(costs) for name, costs in found.items()}
    return [*show_accepted(by)]


def show_accepted(by: Mapping[str, Cost]) -> Iterator[Figure]:
    bare = by["bare"]
    names = {
        "raw": ("accept in the store alone", None),
        "one": ("channel -> door -> store, one channel", ACCEPT_LIMIT_MS),
        "seven": ("channel -> door -> store, seven at once", ACCEPT_LIMIT_MS),
        "new": ("the same, each begins a turn", None),
    }
    for key, (name, limit) in names.items():
        cost = by[key]
        yield name, 1e3 / cost.wall, "msg/s", 1e3 / bare.wall, None
        yield f"{name}, each", cost.wall, "ms wall", bare.wall, limit
        yield f"{name}, each", cost.cpu, "ms CPU", bare.cpu, None


# ---------------------------------------------------------------------- a flood in one chat


class StormServer(TelegramServer):
    """While it `is_flooded`, everything that is asked for the chat FLOODED is answered with 429."""

    flooded_until = 0.0
    refused = 0

    @property
    def is_flooded(self) -> bool:
        return time.monotonic() < self.flooded_until

    async def _do(self, method: str, params: dict[str, Any]) -> object:
        if self.is_flooded and str(params.get("chat_id")) == str(FLOODED):
            self.refused += 1
            raise Refusal(429, "Too Many Requests", RETRY_AFTER_S)
        return await super()._do(method, params)


async def answer_delays(home: Path, *, is_flooded: bool) -> list[float]:
    """How long everybody else waits for their answers, in milliseconds."""
    delays: list[float] = []
    async with StormServer() as server:
        config = ChannelConfig(base_url=server.base_url.removesuffix("/bot"))
        channel = open_telegram(MemoryContext("telegram", config, home / "state", server.token))
        model = ScriptedModel(latency_s=0.05, remember=False)
        async with running(home, [channel], model), anyio.create_task_group() as tasks:
            tasks.start_soon(write_for_ever, server, FLOODED)
            now = time.monotonic()
            server.flooded_until = now + STORM_S if is_flooded else now
            end = now + STORM_S + AFTER_S
            async with anyio.create_task_group() as others:
                for number in range(OTHERS):
                    others.start_soon(talk, server, 100 + number, delays, end)
            tasks.cancel_scope.cancel()
        await channel.close()
        if is_flooded and server.refused < STORM_S / RETRY_AFTER_S / 2:
            raise AssertionError(f"the flood was felt only {server.refused} times")
    return delays


async def write_for_ever(server: TelegramServer, chat: int) -> None:
    while True:
        server.chats.says(chat, "and another one")
        await anyio.sleep(0.1)


async def talk(server: TelegramServer, chat: int, delays: list[float], end: float) -> None:
    """Write, wait for the answer, think, and write again."""
    await anyio.sleep(chat % 7 * 0.05)
    while time.monotonic() < end:
        answers = len(server.chats.said(chat)) + 1
        server.chats.says(chat, "hello there")
        written = time.monotonic()
        await wait_until(lambda answers=answers: len(server.chats.said(chat)) >= answers, 0.005)
        delays.append((time.monotonic() - written) * 1e3)
        await anyio.sleep(0.2)


async def storm(home: Path) -> list[Figure]:
    """Rounds with and without take turns, as the machine is not always as busy."""
    quiet: list[float] = []
    beside: list[float] = []
    worst_quiet = []
    worst_beside = []
    for number in range(2 * STORM_ROUNDS):
        place = home / str(number)
        place.mkdir()
        is_flooded = bool(number % 2)
        delays = await answer_delays(place, is_flooded=is_flooded)
        (beside if is_flooded else quiet).extend(delays)
        (worst_beside if is_flooded else worst_quiet).append(max(delays))
    middle = statistics.median(quiet)
    worst = statistics.median(worst_quiet)
    return [
        (
            f"{OTHERS} chats beside a flooded one, median",
            statistics.median(beside),
            "ms wall",
            middle,
            middle + STORM_LIMIT_MS,
        ),
        (
            f"{OTHERS} chats beside a flooded one, worst of a round",
            statistics.median(worst_beside),
            "ms wall",
            worst,
            worst + STORM_LIMIT_MS,
        ),
    ]


# ---------------------------------------------------------------------- channels with nothing to do


class Account(msgspec.Struct, frozen=True):
    """A channel as it is configured, and whether it reads its account now."""

    name: str
    config: Mapping[str, object]
    secrets: Mapping[str, str]
    is_read: Callable[[], bool]


class MatrixStub:
    """As much of a homeserver as an account needs in whose rooms nothing happens."""

    def __init__(self) -> None:
        self.syncs = 0

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/_matrix/client/v3/account/whoami", self._whoami)
        app.router.add_get("/_matrix/client/v3/sync", self._sync)
        return app

    async def _whoami(self, request: web.Request) -> web.Response:
        return web.json_response({"user_id": "@desk:localhost"})

    async def _sync(self, request: web.Request) -> web.Response:
        self.syncs += 1
        await anyio.sleep(float(request.query.get("timeout", "0")) / 1000)
        return web.json_response({"next_batch": str(self.syncs), "rooms": {}})


@asynccontextmanager
async def all_accounts(folder: Path) -> AsyncIterator[list[Account]]:
    """Seven platforms on loopback, with an account on each."""
    async with AsyncExitStack() as stack:
        telegram = await stack.enter_async_context(TelegramServer())
        slack = await stack.enter_async_context(SlackServer())
        discord = await stack.enter_async_context(DiscordServer())
        twitch = await stack.enter_async_context(TwitchServer())
        mail = await stack.enter_async_context(MailServer())
        broker = free_port()
        log = folder / "mosquitto.log"
        logs = (f"log_dest file {log}", "log_type all", "allow_anonymous true")
        await stack.enter_async_context(mosquitto(folder, broker, *logs))
        matrix = MatrixStub()
        runner = web.AppRunner(matrix.app(), shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        bot = mail.person("bot")
        yield [
            Account(
                "telegram",
                {"base_url": telegram.base_url.removesuffix("/bot")},
                {"TELEGRAM_BOT_TOKEN": telegram.token},
                lambda: any(method == "getUpdates" for method, _ in telegram.calls),
            ),
            Account(
                "slack",
                {"base_url": slack.base_url.removesuffix("/")},
                {"SLACK_BOT_TOKEN": slack.token, "SLACK_APP_TOKEN": slack.app_token},
                lambda: bool(slack.socket_mode.links),
            ),
            Account(
                "discord",
                {"base_url": discord.api_url},
                {"DISCORD_BOT_TOKEN": discord.token},
                lambda: any(each.connection for each in discord.gateway.sessions.values()),
            ),
            Account(
                "twitch",
                {
                    "base_url": twitch.base_url.removesuffix("/helix/"),
                    "rooms": [twitch.channel.login],
                },
                {"TWITCH_ACCESS_TOKEN": twitch.token.access},
                lambda: bool(twitch.events.enabled()),
            ),
            Account(
                "matrix",
                {"base_url": f"http://127.0.0.1:{runner.addresses[0][1]}"},
                {"MATRIX_ACCESS_TOKEN": "token"},
                lambda: matrix.syncs > 1,
            ),
            Account(
                "mqtt",
                {"base_url": f"mqtt://127.0.0.1:{broker}"},
                {},
                lambda: "SUBSCRIBE" in log.read_text(errors="replace"),
            ),
            Account(
                "mail",
                {
                    "base_url": f"imap://127.0.0.1:{mail.imap.port}",
                    "send_url": f"smtp://127.0.0.1:{mail.smtp_port}",
                    "user": bot.address,
                    "verified_by": AUTHORITY,
                },
                {"MAIL_PASSWORD": bot.password},
                lambda: "Login" in mail.imap.log,
            ),
        ]


async def idle_mb(accounts: Sequence[Account]) -> float:
    """Resident memory of the worker, some seconds after all accounts are read."""
    channels = {each.name: each.config for each in accounts}
    secrets = {name: value for each in accounts for name, value in each.secrets.items()}
    with serving.served(channels=channels, secrets=secrets) as (process, home, _):
        await anyio.to_thread.run_sync(serving.ready, home)
        with anyio.move_on_after(30):
            await wait_until(lambda: all(each.is_read() for each in accounts), 0.05)
        if away := [each.name for each in accounts if not each.is_read()]:
            raise AssertionError(f"nobody reads {away}")
        await anyio.sleep(SETTLE_S)
        return serving.rss_mb(serving.worker_of(process))


async def idle(home: Path) -> list[Figure]:
    """The leanest channel is the hardest to compare with."""
    found: dict[str, list[float]] = {"none": [], LEANEST: [], "telegram": [], "all": []}
    for number in range(IDLE_ROUNDS):
        for which, figures in found.items():
            folder = home / f"{number}-{which}"
            folder.mkdir()
            async with all_accounts(folder) as accounts:
                chosen = [each for each in accounts if which in (each.name, "all")]
                figures.append(await idle_mb(chosen))
    none, lean, telegram, seven = (statistics.median(each) for each in found.values())
    return [
        ("serve: idle with no channel", none, "MB", None, None),
        ("serve: idle with the leanest channel", lean, "MB", none, None),
        ("serve: idle with Telegram alone", telegram, "MB", none, None),
        ("serve: idle with seven channels", seven, "MB", lean, lean + IDLE_LIMIT_MB),
    ]


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-", dir=Path.cwd()) as folder:
        for name, value, unit, bare, limit in await figures(Path(folder)):
            beside = "" if bare is None else f"bare {bare:8.2f} x{value / bare:5.2f}"
            print(f"{name:44} {value:8.2f} {unit:8} {beside} {'' if limit is None else limit}")


if __name__ == "__main__":
    tune_interpreter()
    anyio.run(main)
