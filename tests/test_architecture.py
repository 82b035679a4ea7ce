"""The hops in docs/architecture.md are those that a message takes: one is sent from Telegram, and
the functions that it passes are compared with the page."""

from __future__ import annotations

import math
import re
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import CodeType, FrameType

import anyio
import msgspec
import pytest

import deskhand
from deskhand.models.base import Model
from deskhand.runtime.app import App
from deskhand.testing.scripted import ScriptedModel
from deskhand.testing.telegram.server import TelegramServer

from .runtime.telegram_home import ANN, World, asked, calling, until

PAGE = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text()
SECTION = PAGE.partition("## One message")[2].partition("\n## ")[0]
SOURCE = Path(deskhand.__file__).parent
FOLDER = f"{SOURCE}/"
ROW = re.compile(r"^\| (\d+) \|(.*)\|(.*?)\|$", re.MULTILINE)
FUNCTION = re.compile(r"(?:`(\w+/\w+\.py)`: )?`([\w.]+)\(\)`")
WRITER = "deskhand-writer"
BEFORE = 2
"""So many turns Ann has had before."""
SESSION = f"default/telegram:4200:{ANN}"


class Hop(msgspec.Struct, frozen=True):
    """A function that a row of the table names: `name` as Python qualifies it, and the file, or
    '' where the row gives none."""

    number: int
    file: str
    name: str


class Entry(msgspec.Struct, frozen=True):
    """A function of ours was entered or went on. `is_within` says that a hop was waiting for it, or
    that it is in the thread that writes."""

    thread: str
    file: str
    name: str
    is_within: bool

    def matches(self, hop: Hop) -> bool:
        return self.name == hop.name and hop.file in ("", self.file)


def read_hops(section: str) -> list[Hop]:
    return [
        Hop(int(number), file, name)
        for number, row, _ in ROW.findall(section)
        for file, name in FUNCTION.findall(row)
    ]


HOPS = read_hops(SECTION)
STORED = [name for *_, cell in ROW.findall(SECTION) for name in re.findall(r"[A-Z]\w+", cell)]
ONLY_TOOLS = {int(number) for number in re.findall(r"\d", SECTION.partition(". Hops ")[2][:10])}
ROOMS = {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists()}
QUESTION = next(int(number) for number, *_, cell in ROW.findall(SECTION) if "Asked" in cell)
PLAIN_HOPS = [hop for hop in HOPS if hop.number not in ONLY_TOOLS]


class Recorder:
    """Notes what this thread, and each that begins meanwhile, enters."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._hops: dict[CodeType, bool] = {}

    def __enter__(self) -> list[Entry]:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self.entries

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(FOLDER):
            return
        thread = threading.current_thread().name
        within = thread == WRITER or any(self._is_hop(each.f_code) for each in waiting(frame))
        file = code.co_filename.removeprefix(FOLDER)
        self.entries.append(Entry(thread, file, code.co_qualname, within))

    def _is_hop(self, code: CodeType) -> bool:
        known = self._hops.get(code)
        if known is None:
            place = code.co_filename.removeprefix(FOLDER), code.co_qualname
            known = self._hops[code] = place in {(hop.file, hop.name) for hop in HOPS}
        return known


def swaps(hops: list[Hop]) -> Iterator[tuple[int, list[Hop]]]:
    """The hops with each two neighbours swapped, and where."""
    for i in range(len(hops) - 1):
        yield i, [*hops[:i], hops[i + 1], hops[i], *hops[i + 2 :]]


def waiting(frame: FrameType) -> Iterator[FrameType]:
    """The frame, and those that wait for it."""
    at: FrameType | None = frame
    while at is not None:
        yield at
        at = at.f_back


def entered_at(entries: Sequence[Entry], hop: Hop, start: int = 0) -> int | None:
    """Where it is entered for the first time from `start` on."""
    found = (i for i in range(start, len(entries)) if entries[i].matches(hop))
    return next(found, None)


def first_out_of_order(entries: Sequence[Entry], hops: Iterable[Hop]) -> Hop | None:
    """The first hop that is not entered, or was entered before one that stands above it."""
    last = -1
    for hop in hops:
        at = entered_at(entries, hop)
        if at is None or at < last:
            return hop
        last = at
    return None


def first_missing(entries: Sequence[Entry], hops: Iterable[Hop]) -> Hop | None:
    """The first hop that is not entered after those above it, however often they were entered
    before: a turn with a question goes round."""
    last = -1
    for hop in hops:
        at = entered_at(entries, hop, last + 1)
        if at is None:
            return hop
        last = at
    return None


@asynccontextmanager
async def on_telegram(home: Path, model: Model) -> AsyncIterator[tuple[World, App]]:
    """A Deskhand that reads Telegram and sends whole answers: a growing one may be sent before its
    turn ends. Ann has talked with it before it was started, so her conversation is in the log and
    not in memory."""
    async with TelegramServer() as server:
        world = World(home, server)
        world.channel["streaming"] = False
        async with world.running() as app:
            world.chats.says(ANN, "hello")
            await wait_for_answer(app, 1)
            world.chats.says(ANN, "thanks")
            await wait_for_answer(app, BEFORE)
        world.model = model
        async with world.running() as app:
            await until(lambda: "getUpdates" in dict(server.calls))
            yield world, app


async def kinds_of(app: App) -> list[str]:
    """The kinds of the events of Ann's conversation."""
    return [type(recorded.event).__name__ for recorded in await app.store.events(SESSION)]


async def wait_for_answer(app: App, number: int) -> None:
    """Until that many turns have ended, and the last answer is known to have arrived."""
    with anyio.fail_after(60):
        while True:
            ended = (await kinds_of(app)).count("TurnEnded") == number
            unsent = await app.store.outbox_due(math.inf, 1)
            unreported = len(await app.store.list_delivered(SESSION))
            if ended and not unsent and unreported == 1:
                return
            await anyio.sleep(0.002)


async def trace_plain_turns(home: Path) -> list[list[Entry]]:
    """What each message of a conversation passes, until one is admitted while it is accepted."""
    turns: list[list[Entry]] = []
    with Recorder() as entries:
        async with on_telegram(home, ScriptedModel()) as (world, app):
            while len(turns) < 20 and not (turns and is_warm(turns[-1])):
                start = len(entries)
                world.chats.says(ANN, "hello")
                await wait_for_answer(app, BEFORE + len(turns) + 1)
                turns.append(entries[start:])
    return turns


@pytest.fixture(scope="module")
def plain_turns(tmp_path_factory: pytest.TempPathFactory) -> list[list[Entry]]:
    for _ in range(10):
        turns = anyio.run(trace_plain_turns, tmp_path_factory.mktemp("plain") / "home")
        if not was_seen_early(turns[0]):
            return turns
    raise AssertionError("somebody else always woke the session first")


def was_seen_early(turn: list[Entry]) -> bool:
    """Whether the watch for messages that other processes accept saw this one before the door had
    noted it as its own. That wakes the session too, a moment before hop 3."""
    return "Dispatch.wake" in names_of(turn)


def is_warm(turn: list[Entry]) -> bool:
    """Whether the session was at rest in memory, and only the door woke it."""
    names = names_of(turn)
    return "Session.apply_admission" in names and "Dispatch.wake" not in names


def names_of(entries: list[Entry]) -> set[str]:
    return {entry.name for entry in entries}


def test_the_page_can_be_read() -> None:
    assert {hop.number for hop in HOPS} == set(range(1, 10)) and len(HOPS) >= 12
    assert {6, 7} == ONLY_TOOLS
    assert len(STORED) >= 6


def test_a_plain_turn_takes_the_hops_of_the_page(plain_turns: list[list[Entry]]) -> None:
    cold = plain_turns[0]
    assert first_out_of_order(cold, PLAIN_HOPS) is None
    tool_hops = [hop for hop in HOPS if hop.number in ONLY_TOOLS]
    assert [hop for hop in tool_hops if entered_at(cold, hop) is not None] == []
    for _, swapped in swaps(PLAIN_HOPS):
        assert first_out_of_order(cold, swapped) is not None, "the order is seen"


def test_the_rooms_of_a_plain_turn_are_named(plain_turns: list[list[Entry]]) -> None:
    """Of the code that a hop waits for, in the section about the hops."""
    cold = plain_turns[0]
    rooms = {entry.file.partition("/")[0] for entry in cold if entry.is_within} - {"testing"}
    named = set(re.findall(r"`(\w+)[`/]", SECTION))
    assert rooms - named - {"types"} == set()
    assert named & ROOMS - rooms == set(), "what the section names is entered"


def test_one_thread_writes(plain_turns: list[list[Entry]]) -> None:
    for turn in plain_turns:
        transactions = [entry for entry in turn if entry.name == "Writer._transact"]
        assert {entry.thread for entry in transactions} == {WRITER}


def test_a_conversation_in_memory_admits_while_it_accepts(
    plain_turns: list[list[Entry]],
) -> None:
    cold = plain_turns[0]
    warm = plain_turns[-1]
    assert not is_warm(cold) and is_warm(warm)
    assert names_of(warm).isdisjoint({"Dispatch.adopt", "admit_messages"})
    names = (
        "LocalDoor.submit",
        "Session.prepare_admission",
        "SqlStore._accept",
        "admit_next",
        "drive",
    )
    assert first_out_of_order(warm, [Hop(2, "", name) for name in names]) is None
    admitting = [entry.thread for entry in warm if entry.name == "admit_next"]
    assert admitting[0] == WRITER, "in the transaction"


def first_misplaced(before: list[Entry], turn: list[Entry], hops: list[Hop]) -> Hop | None:
    """The first hop that a turn did not pass, or, in the part before its question, not in this
    order."""
    reached = [hop for hop in hops if hop.number <= QUESTION]
    return first_out_of_order(before, reached) or first_missing(turn, hops)


class Asked(msgspec.Struct, frozen=True):
    """What a message passes whose tool call is allowed with a button: until it is asked about, and
    in all. `kinds` are those of its events; that of the delivery comes with the next message."""

    before: list[Entry]
    turn: list[Entry]
    kinds: list[str]


async def trace_asked_turn(home: Path) -> Asked:
    with Recorder() as entries:
        async with on_telegram(home, calling("act", text="rm x")) as (world, app):
            start = len(entries)
            world.chats.says(ANN, "do it")
            post = await asked(world, ANN)
            before = entries[start:]
            world.chats.presses(ANN, post, "Yes, once")
            await wait_for_answer(app, BEFORE + 1)
            turn = entries[start:]
            world.chats.says(ANN, "thanks")
            await asked(world, ANN)
            return Asked(before, turn, await kinds_of(app))


def test_a_call_that_is_asked_about_takes_all_hops(tmp_path: Path) -> None:
    """In the order of the page, though the question is sent as an answer is; and the events are
    those of the page, in its order."""
    for number in range(10):
        traced = anyio.run(trace_asked_turn, tmp_path / str(number))
        if not was_seen_early(traced.turn):
            break
    before, turn = traced.before, traced.turn
    assert first_misplaced(before, turn, HOPS) is None
    for i, swapped in swaps(HOPS):
        if ONLY_TOOLS & {HOPS[i].number, HOPS[i + 1].number}:
            assert first_misplaced(before, turn, swapped) is not None, "the order is seen"
    assert {hop.number for hop in HOPS if entered_at(before, hop) is None} == {7, 8}
    at = 0
    for kind in STORED:
        assert kind in traced.kinds[at:]
        at = traced.kinds.index(kind, at) + 1
