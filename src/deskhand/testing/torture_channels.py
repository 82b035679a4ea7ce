"""Kills a running `deskhand serve` again and again while people write to it on Telegram, Slack and
Discord at once, and these platforms have troubles of their own. Then it compares what was said in
each chat with the truth outside it.

Each chat has a canary: a word that its people write and the model says back, with every other
canary that it was shown.

python -m deskhand.testing.torture_channels [--kills 40] [--seed 1]
    [--mutant confirm-first|take-twice]
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from time import monotonic

import anyio
import anyio.abc
import apsw
import msgspec
from aiohttp import web as http  # noqa: TID251 -- loopback

from ..config.config import environment_of
from ..gateway.outbox import DUPLICATE
from ..gateway.streamed_replies import GOES_ON
from ..store.sql_store import SqlStore
from ..types import events as e
from .torture import FAILURES, READY_S, SESSIONS, Torture, TortureReport
from .torture_channels_child import MUTANTS
from .torture_chats import DiscordChats, SlackChats, TelegramChats, TortureChats
from .torture_child import ANN

WRITE_S = 0.02
LOOK_S = 0.2
OPEN_IN_CHAT = 3
OPEN = 60
"""Messages without an answer, of one chat and of all, with which nobody writes another."""
UPSET_S = (0.05, 0.5)
AT_ONCE = 0.25
"""How often a process is killed while it starts."""
LONGEST_LIFE_S = 2.5
DRAIN_S = 150.0
"""A call that hangs is given up after 30 s, and the answer is sent again after a pause."""
SLOW = 0.2
"""How often the model writes so slowly that its answer is shown while it is written."""
SLOW_PIECES = 8
SLOW_S = 0.3
LATENCY_S = (0.01, 0.15)
_WORD = re.compile(r"\bm\d+\b")
_CANARY = re.compile(r"\bcanary[a-z]{12}\b")
_SHOWN = (
    "kills",
    "chats",
    "messages",
    "upsets",
    "in_open_turn",
    "in_sending_row",
    "slowest_ready_s",
    "slowest_rest_s",
    "lost",
    "unmarked_duplicates",
    "marked_duplicates",
    "out_of_order",
    "foreign_canaries",
    "cursor_ahead",
    "told_failure",
    "faults",
)


class ChannelsReport(TortureReport):
    """`foreign_canaries` counts the canaries that were said in a chat of others or stand in its
    log, `cursor_ahead` the messages that were confirmed to a platform and not in the inbox when the
    process was killed. `upsets` are what went wrong with the platforms."""

    chats: int = 0
    upsets: dict[str, int] = msgspec.field(default_factory=dict)
    foreign_canaries: int = 0
    cursor_ahead: int = 0

    @property
    def is_clean(self) -> bool:
        bad = self.lost or self.unmarked_duplicates or self.out_of_order
        return not (bad or self.foreign_canaries or self.cursor_ahead or self.faults)

    @property
    def good(self) -> bool:
        """That, and few turns were given up."""
        return self.is_clean and self.told_failure <= FAILURES * self.messages

    def show(self) -> str:
        shown = msgspec.structs.asdict(self)
        return "\n".join(f"{name:>20}  {shown[name]}" for name in _SHOWN)


class CanaryModel:
    """A model that answers what was said since its last answer, with every canary that it sees."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def app(self) -> http.Application:
        app = http.Application(client_max_size=2**26)
        app.router.add_post("/v1/chat/completions", self._reply)
        return app

    async def _reply(self, request: http.Request) -> http.StreamResponse:
        asked = await request.json()
        words: dict[str, None] = {}
        for message in asked["messages"]:
            if message["role"] == "assistant":
                words.clear()
            elif message["role"] == "user":
                words |= dict.fromkeys(_WORD.findall(str(message["content"])))
        canaries = dict.fromkeys(_CANARY.findall(str(asked)))
        await anyio.sleep(self._random.uniform(*LATENCY_S))
        return await self._stream(request, f"done {' '.join(words)} for {' '.join(canaries)}")

    async def _stream(self, request: http.Request, text: str) -> http.StreamResponse:
        slow = self._random.random() < SLOW
        size = max(1, len(text) // SLOW_PIECES) if slow else len(text)
        response = http.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with suppress(ConnectionResetError):  # who asked was killed
            await response.prepare(request)
            for start in range(0, len(text), size):
                await response.write(_encode_piece({"content": text[start : start + size]}))
                await anyio.sleep(SLOW_S if slow else 0)
            await response.write(_encode_piece({}, finish="stop") + b"data: [DONE]\n\n")
        return response


def _encode_piece(delta: Mapping[str, str], *, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"id": "x", "choices": [choice]}) + b"\n\n"


class Written(msgspec.Struct, frozen=True):
    """A message that somebody wrote, as the inbox calls it, with its word."""

    channel: str
    chat: str
    external_id: str
    word: str


class ChannelsTorture(Torture):
    """One run of it. `written` is the truth, in order."""

    def __init__(self, home: Path, kills: int, seed: int, mutant: str = "") -> None:
        super().__init__(home, kills, seed, mutant)
        self.report: ChannelsReport = ChannelsReport()
        self.drain_s = DRAIN_S
        self.written: list[Written] = []
        self._random = random.Random(seed)
        self._platforms: tuple[TortureChats, ...] = (
            TelegramChats(seed),
            SlackChats(seed),
            DiscordChats(seed, home / "state"),
        )
        self._chats = [(each, chat) for each in self._platforms for chat in each.chats]
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._canaries = {
            (each.name, chat): "canary" + "".join(self._random.choices(letters, k=12))
            for each, chat in self._chats
        }
        self._open = collections.Counter[tuple[str, str]]()
        self._busy = True

    # ------------------------------------------------------------------ running

    async def run(self) -> ChannelsReport:
        model = http.AppRunner(CanaryModel(self._random.randint(0, 2**32)).app())
        await model.setup()
        site = http.TCPSite(model, "127.0.0.1", 0)
        await site.start()
        try:
            for each in self._platforms:
                await each.start()
            self._write_settings(f"http://127.0.0.1:{model.addresses[0][1]}/v1")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write)
                tasks.start_soon(self._look)
                tasks.start_soon(self._upset)
                await self.kill_all()
                tasks.cancel_scope.cancel()
        finally:
            for each in self._platforms:
                await each.stop()
            await model.cleanup()
        await self.compare()
        return self.report

    def take_no_more(self) -> None:
        self._busy = False

    def _write_settings(self, model_url: str) -> None:
        off = {"enabled": False}
        config = {
            "defaults": {"models": ["fake/model"]},
            "providers": {"fake": {"base_url": model_url}},
            "channels": {each.name: each.config for each in self._platforms},
            "memory": {"harvester": off, "cleaner": off},
            "reflection": off,
            "web": off,
        }
        self.home.mkdir(exist_ok=True)
        (self.home / "deskhand.yaml").write_bytes(msgspec.json.encode(config))  # JSON is YAML
        secrets = [pair for each in self._platforms for pair in each.secrets.items()]
        file = self.home / ".env"
        file.write_text("".join(f"{name}={value}\n" for name, value in secrets))
        file.chmod(0o600)

    # ------------------------------------------------------------------ people and platforms

    async def _write(self) -> None:
        """People write in every chat once, and then here and there."""
        fresh = [*self._chats]
        self._random.shuffle(fresh)
        while self._busy:
            await anyio.sleep(WRITE_S)
            # What was written before a bot was there for the first time is not for it.
            if not self._ready_s or self._open.total() >= OPEN:
                continue
            platform, chat = fresh.pop() if fresh else self._random.choice(self._chats)
            key = platform.name, chat
            if self._open[key] >= OPEN_IN_CHAT:
                continue
            word = f"m{len(self.written) + 1}"
            name = platform.write(chat, f"please do {word} for {self._canaries[key]}")
            self.written.append(Written(platform.name, chat, name, word))
            self._open[key] += 1

    async def _look(self) -> None:
        """Count the messages that have no answer yet."""
        while True:
            await anyio.sleep(LOOK_S)
            self._open = self._count_open()

    def _count_open(self) -> collections.Counter[tuple[str, str]]:
        said = {word for key in self._canaries for _, words in self._answers(key) for word in words}
        missing = [each for each in self.written if each.word not in said]
        return collections.Counter((each.channel, each.chat) for each in missing)

    def _answers(self, key: tuple[str, str]) -> Iterator[tuple[str, list[str]]]:
        """What was said in a chat and the words in it; not what is still being written."""
        platform = next(each for each in self._platforms if each.name == key[0])
        for text in platform.said(key[1]):
            if not text.endswith(GOES_ON):
                yield text, _WORD.findall(text)

    async def _upset(self) -> None:
        while self._busy:
            await anyio.sleep(self._random.uniform(*UPSET_S))
            platform = self._random.choice(self._platforms)
            if what := await platform.upset():
                name = f"{platform.name}: {what}"
                self.report.upsets[name] = self.report.upsets.get(name, 0) + 1

    # ------------------------------------------------------------------ lives

    async def _start(self) -> anyio.abc.Process:
        """A process that reads all platforms, or one that is about to."""
        before = [each.readings for each in self._platforms]
        began = monotonic()
        environment = {**environment_of(), "DESKHAND_HOME": str(self.home), "HOME": str(self.home)}
        child = await anyio.open_process(
            self._command(), stdin=None, stdout=None, stderr=None, env=environment
        )
        if self._busy and self._ready_s and self._random.random() < AT_ONCE:
            await anyio.sleep(self._random.uniform(0, self._ready_s))
            return child
        with anyio.fail_after(READY_S):
            while any(
                each.readings <= count for each, count in zip(self._platforms, before, strict=True)
            ):
                if child.returncode is not None:
                    raise RuntimeError(f"the child ended by itself with {child.returncode}")
                await anyio.sleep(0.01)
        self._ready_s = monotonic() - began
        self.report.slowest_ready_s = round(max(self.report.slowest_ready_s, self._ready_s), 3)
        return child

    def _command(self) -> list[str]:
        if self.mode:
            module = "deskhand.testing.torture_channels_child"
            return [sys.executable, "-P", "-m", module, self.mode]
        worker = ["serve", "--worker", str(os.getpid())]
        return [sys.executable, "-P", "-m", "deskhand", *worker]

    async def live(self, seconds: float) -> None:
        await anyio.sleep(self._random.uniform(0, LONGEST_LIFE_S))

    async def after_death(self) -> None:
        """What a platform takes for delivered must be safe in the inbox."""
        await anyio.sleep(0.02)  # what the dead process sent last is still on its way
        stored = self._read_inbox()
        for platform in self._platforms:
            ahead = platform.confirmed() - stored[platform.name]
            self.report.cursor_ahead += len(ahead)
            if ahead and len(self.report.faults) < 20:
                told = f"{platform.name}: confirmed and not stored: {sorted(ahead)[:3]}"
                self.report.faults.append(told)

    def _read_inbox(self) -> dict[str, set[str]]:
        """The ids that are in the inbox, by channel, as a process finds it that starts now."""
        found: dict[str, set[str]] = {each.name: set() for each in self._platforms}
        path = self.home / "state" / "deskhand.db"
        if not path.exists():
            return found
        db = apsw.Connection(str(path))
        try:
            for channel, name in db.execute("SELECT channel, external_id FROM inbox"):
                if channel in found:  # what Deskhand tells itself is of none of them
                    found[channel].add(name.partition("#")[0])
        finally:
            db.close()
        return found

    async def drain(self) -> None:
        began = monotonic()
        settled = 0
        store = self.open_store()
        try:
            while settled < 5 and monotonic() < began + self.drain_s:
                await anyio.sleep(0.1)
                settled = 0 if await self._is_owed(store) else settled + 1
        finally:
            await store.close()
        self.report.slowest_rest_s = round(monotonic() - began, 3)
        if settled < 5:
            self.report.faults.append(f"it did not come to rest within {self.drain_s:.0f} s")

    async def _is_owed(self, store: SqlStore) -> bool:
        stored = self._read_inbox()
        if any(each.external_id not in stored[each.channel] for each in self.written):
            return True
        return bool(await store.open_sessions() or await store.outbox_due(1e12, 1))

    # ------------------------------------------------------------------ comparing

    async def compare(self) -> None:
        self.report.chats = len(self._canaries)
        self.report.messages = len(self.written)
        store = self.open_store()
        try:
            sessions = await store.sessions(ANN, SESSIONS)
            logs = {row.session: await store.events(row.session) for row in sessions}
            self._compare_answers(logs)
            for log in logs.values():
                self._compare_log(log)
            left = [row for session in logs for row in await store.list_waiting(session)]
            self.report.faults += [f"still waiting: {row.inbox_id}" for row in left]
            _, breaks = await store.audit()
            self.report.faults += [f"chain: {broken}" for broken in breaks]
            self.report.faults += [f"integrity: {found}" for found in store.check_integrity()]
        finally:
            await store.close()
        for key in self._canaries:
            self._compare_chat(key)

    def _compare_answers(self, logs: Mapping[str, Sequence[e.Recorded]]) -> None:
        """Every message is in the log and answered, in its chat or by a failure that was told."""
        said = {key: {text for text, _ in self._answers(key)} for key in self._canaries}
        words = {word for key in said for _, found in self._answers(key) for word in found}
        ended: set[tuple[str, str]] = set()
        failed: set[tuple[str, str]] = set()
        for log in logs.values():
            names = _external_ids(log)
            for event in [recorded.event for recorded in log]:
                if isinstance(event, e.TurnEnded):
                    answered = {names[each] for each in event.answers if each in names}
                    ended |= answered
                    told = any(event.said in texts for texts in said.values())
                    failed |= answered if event.reason != "done" and told else set()
        self.report.told_failure = len(failed)
        for each in self.written:
            key = each.channel, each.external_id
            if key not in ended or (each.word not in words and key not in failed):
                self.report.lost += 1
                if len(self.report.faults) < 20:
                    self.report.faults.append(f"lost: {each}, ended: {key in ended}")

    def _compare_log(self, log: Sequence[e.Recorded]) -> None:
        """What was written in one chat is in the order in which it was, and nothing else is."""
        order = {(each.channel, each.external_id): n for n, each in enumerate(self.written)}
        taken = [order[name] for name in _external_ids(log).values() if name in order]
        self.report.out_of_order += sum(a >= b for a, b in pairwise(taken))
        chats = {(self.written[n].channel, self.written[n].chat) for n in taken}
        if len(chats) > 1:
            self.report.faults.append(f"one conversation in several chats: {sorted(chats)}")
        own = {self._canaries[chat] for chat in chats}
        found = set(_CANARY.findall(msgspec.json.encode(log).decode()))
        self.report.foreign_canaries += len(found - own)

    def _compare_chat(self, key: tuple[str, str]) -> None:
        """In one chat: nothing is said twice without a mark, all of it in order, no canary of
        another."""
        report = self.report
        platform = next(each for each in self._platforms if each.name == key[0])
        for text in platform.ever_said(key[1]):
            report.foreign_canaries += len(set(_CANARY.findall(text)) - {self._canaries[key]})
        seen: set[str] = set()
        latest = 0
        for text, words in self._answers(key):
            again = seen.intersection(words)
            seen.update(words)
            if DUPLICATE in text:
                report.marked_duplicates += bool(again)
                continue
            report.unmarked_duplicates += len(again)
            numbers = [int(word[1:]) for word in words if word not in again]
            if again and len(report.faults) < 20:
                report.faults.append(f"twice in {key}: {text!r}")
            if numbers:
                report.out_of_order += numbers[0] <= latest or numbers != sorted(numbers)
                latest = max(latest, *numbers)


def _external_ids(log: Sequence[e.Recorded]) -> dict[int, tuple[str, str]]:
    """The channel and the id there of each message, by its number in the inbox."""
    received = [each.event for each in log if isinstance(each.event, e.MessageReceived)]
    return {
        event.inbox_id: (event.address.channel, event.external_id.partition("#")[0])
        for event in received
    }


async def torture_channels(kills: int, seed: int, mutant: str = "") -> ChannelsReport:
    """Run it in a home of its own."""
    with tempfile.TemporaryDirectory(prefix="deskhand-torture-") as place:
        return await ChannelsTorture(Path(place) / "home", kills, seed, mutant).run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutant", default="", choices=["", *MUTANTS])
    chosen = parser.parse_args()
    report = anyio.run(torture_channels, chosen.kills, chosen.seed, chosen.mutant)
    sys.stdout.write(report.show() + "\n")
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
