"""People with a browser, while the process behind it is killed again and again: some write, some
follow.

Who writes sends each message under a name of its own until it is told that it was taken, and now
and then once more. Who follows takes every event down, and after each break resumes behind the last
one. In the end all of them must have the very bytes that stand in the log.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector  # noqa: TID251 -- loopback

from ..assembly.models import Models
from ..config.address import read_address
from ..config.config import Home, Settings
from ..runtime.app import Parts, open_app
from ..store.base import Store
from ..types import events as e

CHATS = 3
FOLLOWERS = 2
"""Conversations, and who follows each."""
FIRST = 1_000_000
"""The numbers of their messages begin here: the platform's are smaller."""
OPEN = 3
"""Messages of one conversation that may be without an answer before the next is written."""
AGAIN = 0.2
PAUSE_S = (0.02, 0.3)
RETRY_S = 0.1
REACH_S = 10.0


class _Receipt(msgspec.Struct):
    status: str
    inbox_id: int


class _Seen(msgspec.Struct):
    """An event as far as a client looks into it."""

    n: int
    session: str
    event: dict[str, object]


async def make_token(settings: Settings) -> str:
    async with Models(settings) as models, open_app(settings, Parts(models.open, {})) as app:
        return (await app.people.make_token("owner", "torture"))[1]


class EventFollower:
    """One who follows: `log` is the data of each event as it came, by number."""

    def __init__(self, chat: str) -> None:
        self.chat = chat
        self.session = ""
        self.log: list[bytes] = []
        self.answered: set[int] = set()
        self.faults: list[str] = []
        self.breaks = 0

    def take(self, frame: bytes) -> None:
        lines = dict(
            line.partition(b": ")[::2] for line in frame.split(b"\n") if not line.startswith(b":")
        )
        if lines.get(b"event") != b"recorded":
            return
        data = lines[b"data"]
        seen = msgspec.json.decode(data, type=_Seen)
        if seen.n != len(self.log) + 1 or lines[b"id"] != b"%d" % seen.n:
            self.faults.append(f"{self.chat}: event {seen.n} came after {len(self.log)}")
            return
        self.session = seen.session
        self.log.append(data)
        if seen.event["type"] == "turn_ended":
            answers = seen.event.get("answers", ())
            self.answered |= set(answers if isinstance(answers, list) else ())


class WebClients:
    """All of them. `take_no_more` ends the writing; `at_rest` tells when everything that was
    written is everywhere."""

    def __init__(self, home: Path, token: str, seed: int) -> None:
        self._home = Home(home)
        self._token = token
        self._random = random.Random(seed)
        self.followers = {
            f"w{i}": [EventFollower(f"w{i}") for _ in range(FOLLOWERS)] for i in range(CHATS)
        }
        self.taken: dict[str, list[tuple[str, int]]] = {chat: [] for chat in self.followers}
        self.pause_s = PAUSE_S
        self.twice = 0
        self.faults: list[str] = []
        self._writing = True
        self.paused = False
        self._writers = 0

    async def run(self) -> None:
        """Write and follow until cancelled."""
        headers = {"authorization": f"Bearer {self._token}"}
        timeout = ClientTimeout(total=None, sock_connect=REACH_S)
        async with (
            ClientSession(
                headers=headers, timeout=timeout, connector=TCPConnector(limit=0)
            ) as http,
            anyio.create_task_group() as tasks,
        ):
            for number, (chat, followers) in enumerate(self.followers.items()):
                tasks.start_soon(self._write, http, chat, FIRST * (number + 1))
                for follower in followers:
                    tasks.start_soon(self._follow, http, follower)

    def take_no_more(self) -> None:
        self._writing = False

    async def at_rest(self, store: Store) -> bool:
        """Whether nobody is writing, and each who follows has come to the end of the log."""
        if self._writers and not self.paused:
            return False
        for chat, followers in self.followers.items():
            for each in followers:
                if not self.taken[chat]:
                    continue
                if not each.session or await store.events(each.session, len(each.log), 1):
                    return False
        return True

    async def _write(self, http: ClientSession, chat: str, number: int) -> None:
        self._writers += 1
        try:
            while self._writing:
                await anyio.sleep(self._random.uniform(*self.pause_s))
                answered = set[int]().union(*(each.answered for each in self.followers[chat]))
                if (
                    self.paused
                    or sum(inbox_id not in answered for _, inbox_id in self.taken[chat]) >= OPEN
                ):
                    continue
                number += 1
                inbox_id = await self._say(http, chat, number)
                self.taken[chat].append((f"m{number}", inbox_id))
                if (
                    self._random.random() < AGAIN
                    and await self._say(http, chat, number) != inbox_id
                ):
                    self.faults.append(f"m{number} was taken twice")
        finally:
            self._writers -= 1

    async def _say(self, http: ClientSession, chat: str, number: int) -> int:
        """Until it is told that it was taken: then it must never be lost."""
        body = {"text": f"please do m{number}", "id": f"m{number}"}
        while True:
            url = read_address(self._home)
            try:
                async with http.post(f"{url}/api/sessions/{chat}/messages", json=body) as response:
                    answer = await response.read()
                    if response.status == 202:
                        receipt = msgspec.json.decode(answer, type=_Receipt)
                        self.twice += receipt.status == "duplicate"
                        return receipt.inbox_id
                    if response.status not in (403, 503):  # too much waits; the store is away
                        self.faults.append(
                            f"m{number} was answered with {response.status}: {answer[:200]!r}"
                        )
            except (ClientError, OSError, TimeoutError, ValueError):
                pass  # it is dead, or not there yet
            await anyio.sleep(RETRY_S)

    async def _follow(self, http: ClientSession, follower: EventFollower) -> None:
        while True:
            connected = False
            url = read_address(self._home)
            headers = {"last-event-id": str(len(follower.log))}
            try:
                async with http.get(
                    f"{url}/api/sessions/{follower.chat}/events", headers=headers
                ) as response:
                    if response.status == 200:
                        rest = b""
                        connected = True
                        async for chunk in response.content.iter_any():
                            *frames, rest = (rest + chunk).split(b"\n\n")
                            for frame in frames:
                                follower.take(frame)
                        follower.breaks += 1
                    elif response.status not in (404, 503):  # nothing was said in it yet
                        follower.faults.append(
                            f"{follower.chat}: following was answered with {response.status}"
                        )
            except (ClientError, OSError, TimeoutError, ValueError):
                follower.breaks += connected
            await anyio.sleep(RETRY_S)

    def compare(self, logs: Mapping[str, list[e.Recorded]]) -> tuple[int, int]:
        """(messages that are not in the log just once and answered, events that some client and the
        log do not have in common). What else is wrong is in `faults`."""
        lost = astray = 0
        encode = msgspec.json.Encoder().encode
        for chat, followers in self.followers.items():
            session = next((each.session for each in followers if each.session), "")
            log = logs.get(session, [])
            truth = [encode(recorded) for recorded in log]
            received = [r.event for r in log if isinstance(r.event, e.MessageReceived)]
            counts = Counter(event.inbox_id for event in received)
            answered = {
                inbox_id
                for r in log
                if isinstance(r.event, e.TurnEnded)
                for inbox_id in r.event.answers
            }
            taken = [inbox_id for _, inbox_id in self.taken[chat]]
            lost += sum(counts[inbox_id] != 1 or inbox_id not in answered for inbox_id in taken)
            if taken != [event.inbox_id for event in received if event.inbox_id in set(taken)]:
                self.faults.append(
                    f"{chat}: the messages are not in the order in which they were written"
                )
            for each in followers:
                same = sum(theirs == ours for theirs, ours in zip(each.log, truth, strict=False))
                astray += max(len(each.log), len(truth)) - same
                apart = [
                    n
                    for n, (theirs, ours) in enumerate(zip(each.log, truth, strict=False), 1)
                    if theirs != ours
                ]
                self.faults += [
                    f"{chat}: {each.log[n - 1]!r} is {truth[n - 1]!r} in the log" for n in apart[:2]
                ]
                self.faults += each.faults[:5]
        return lost, astray
