"""The small world in which a service is soaked: a home, people on Telegram and on the page, a
model, a site, and all that goes wrong with them."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import anyio
import anyio.abc
import msgspec

from ..assembly.models import Models
from ..config.config import Config, Home, Settings, environment_of
from ..config.statements import load_statements
from ..gateway.streamed_replies import GOES_ON
from ..runtime.app import Parts, open_app
from ..store.sqlite import SqliteStore
from ..types.people import Identity
from ..workspace.queries import stop_reasons
from .clock import Shift, somewhere
from .everyday.processes import tree
from .site import PUBLIC, LocalSite
from .soak_day import FAULTY, HANGING, PAGES, DayModel, answered
from .soak_gauge import arguments_of, began, state_of
from .telegram.server import TelegramServer
from .torture_web import WebClients

PEOPLE = (71, 72, 73, 74, 75)
READER = PEOPLE[-1]
"""Has pages read: in a conversation with words from outside some of the rest would ask first."""
WAITING = 3
PAUSE_S = (2.0, 9.0)
READS = 0.2
UPSET_S = (4.0, 14.0)
HURT_S = (10.0, 40.0)
SET_S = (60.0, 180.0)
START_S = 90.0
STOP_S = 40.0
GONE_S = 1.0
CONTEXT = 0.1
"""What was said is summed up when it fills so much of what the model can read."""
JOBS = {
    "often": "schedule: every 30s\nmisfire: run_once\nsession: often\n",
    "all": "schedule: '*/20 * * * *'\nmisfire: run_all\noverlap: queue_one\nsession: all\n",
    "gated": "schedule: every 60s\nmisfire: skip\nsession: gated\nhooks: {prerun: check.sh}\n",
    "said": f"schedule: every 2m\nmisfire: run_once\nkind: deliver\nto: telegram:{PEOPLE[0]}\n",
}


class SoakWorld:
    """All of it. `pid` is the service's parent and `worker` who works; `written` says who wrote
    each message, and `waiting` since when whom an answer is owed. While it is not `busy` nobody
    writes, and nothing goes wrong."""

    def __init__(self, place: Path, seed: int, *, hangs: bool) -> None:
        self.place = place
        self.home = place / "home"
        self.random = random.Random(seed)
        self.shift_path = place / "shift"
        self.says_path = place / "says"
        self.shift = Shift(self.shift_path)
        self.telegram, self.model, self.site = TelegramServer(), DayModel(seed), LocalSite()
        self.hanging = HANGING if hangs else 0.0
        self.pid = self.worker = 0
        self.written: dict[str, int] = {}
        self.waiting: dict[int, dict[str, float]] = {chat: {} for chat in PEOPLE}
        self.slowest_s = 0.0
        self.upsets = self.hurts = self.sets = 0
        self.busy = True
        self._seed = seed
        self._web: WebClients | None = None
        self._heard: dict[int, int] = {}
        self._seen: dict[int, str] = {}

    @property
    def web(self) -> WebClients:
        """Who writes and follows on the page."""
        if self._web is None:
            raise AssertionError("nobody was let in yet")
        return self._web

    def store(self) -> SqliteStore:
        return SqliteStore(self.home / "state" / "deskhand.db", load_statements())

    def be_busy(self, busy: bool) -> None:
        """Whether people write, and things go wrong."""
        self.busy = busy
        self.web.paused = not busy
        self.model.faulty = FAULTY if busy else 0.0
        self.model.hanging = self.hanging if busy else 0.0

    async def owes(self, store: SqliteStore) -> str:
        """What is not done yet; '' for nothing. Jobs never end."""
        if self.telegram.confirmed < len(self.telegram.chats.updates):
            return "updates"
        if await store.outbox_due(1e12, 1):
            return "answers that are not sent"
        jobs = tuple(f":{name}" for name in JOBS)
        if turns := [
            row.session for row in await store.open_sessions() if not row.session.endswith(jobs)
        ]:
            return f"turns in {turns}"
        if processes := await stop_reasons(store):
            return f"processes: {[*processes]}"
        return "" if await self.web.at_rest(store) else "events"

    # ------------------------------------------------------------------ the service

    async def set_up(self) -> None:
        """Write a home, and let these people in."""
        self.site.page("/page", "<title>A page</title>" + "<p>Words of a page.</p>" * 20)
        self.site.page(
            "/rendered", "<title>A page</title><p id=x></p><script>x.textContent = 'Made.'</script>"
        )
        self.home.mkdir()
        config = {
            "defaults": {
                "models": ["openai/gpt-5-mini"],
                "profile": "full",
                "tokens": 100_000_000,
                "context_ratio": CONTEXT,
            },
            "providers": {"openai": {"base_url": self.model.url}},
            "channels": {
                "telegram": {
                    "base_url": self.telegram.base_url.removesuffix("/bot"),
                    "token_env": "BOT",
                }
            },
            "processes": {"idle_s": 30},
            "memory": {
                "harvester": {"schedule": "*/4 * * * *"},
                "cleaner": {"schedule": "*/7 * * * *"},
            },
            "reflection": {"schedule": "*/9 * * * *"},
            "web": {"port": 0},
        }
        (self.home / "deskhand.yaml").write_bytes(msgspec.json.encode(config))  # JSON is YAML
        secrets = self.home / ".env"
        secrets.write_text(f"BOT={self.telegram.token}\nOPENAI_API_KEY=sk-nobody\n")
        secrets.chmod(0o600)
        for name, front in JOBS.items():
            folder = self.home / "jobs" / name
            folder.mkdir(parents=True)
            (folder / "JOB.md").write_text(f"---\n{front}---\n\nIt is time.\n")
        check = self.home / "jobs" / "gated" / "check.sh"
        check.write_text("#!/bin/sh\necho one\n")
        check.chmod(0o755)
        settings = Settings(
            Home(self.home), msgspec.convert({"defaults": {"models": ["scripted/echo"]}}, Config)
        )
        async with Models(settings) as models, open_app(settings, Parts(models.open, {})) as app:
            for person in PEOPLE:
                await app.people.link("owner", Identity("telegram", str(person)))
            token = (await app.people.make_token("owner", "soak"))[1]
        self._web = WebClients(self.home, token, self._seed)
        self._web.pause_s = PAUSE_S
        self.be_busy(True)

    async def start(self) -> anyio.abc.Process:
        """The service, once it drives."""
        usual = environment_of()
        env = {"HOME": str(self.place), "DESKHAND_HOME": str(self.home), "TZ": "UTC"}
        env |= {name: usual[name] for name in ("PATH", "PYTHONTRACEMALLOC") if name in usual}
        place = [str(self.shift_path), str(self.says_path), f"{PUBLIC}:{self.site.port}"]
        command = [sys.executable, "-P", "-m", "deskhand.testing.soak_child", *place]
        process = await anyio.open_process(command, env=env, stdin=None, stdout=None, stderr=None)
        self.pid = process.pid
        noted = self.home / "state" / "last_start"
        with anyio.fail_after(START_S):
            while not noted.exists():
                if process.returncode is not None:
                    raise RuntimeError(f"the service ended by itself with {process.returncode}")
                await anyio.sleep(0.05)
        self.worker = _only_child(self.pid)
        return process

    async def end(self, process: anyio.abc.Process) -> list[str]:
        """End it as a person would. Returns what is wrong with that: nothing may be left of it."""
        self._note(tree(self.pid))
        wrong = list[str]()
        with anyio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                process.terminate()
            with anyio.move_on_after(STOP_S):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            if process.returncode != 0:
                wrong.append(f"it ended with {process.returncode}")
            await anyio.sleep(GONE_S)
        for pid, at in self._seen.items():
            if at and began(pid) == at and state_of(pid) != "Z":
                wrong.append(f"process {pid} is left in state {state_of(pid)}: {arguments_of(pid)}")
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return wrong + [
            f"a temporary file is left: {path.name}" for path in self.home.rglob("*.part")
        ]

    def _note(self, pids: set[int]) -> None:
        for pid in pids:
            self._seen[pid] = began(pid)

    # ------------------------------------------------------------------ what people do

    async def write(self, chat: int) -> None:
        """One person: writes, and writes again, but not while too much waits for an answer."""
        while True:
            await anyio.sleep(self.random.uniform(*PAUSE_S))
            self._hear(chat)
            if not self.busy or len(self.waiting[chat]) >= WAITING:
                continue
            word = f"m{len(self.written) + 1}"
            link = ""
            if chat == READER and self.random.random() < READS:
                page = self.random.choices(PAGES, (4, 1))[0]
                link = f" with {self.site.url(f'/{page}?{word}')}"
            self.written[word] = chat
            self.waiting[chat][word] = monotonic()
            self.telegram.chats.says(chat, f"please do {word}{link}")

    def _hear(self, chat: int) -> None:
        """See what was answered there. After a failure, which does not say of what, nobody waits
        any more."""
        said = self.telegram.chats.said(chat)
        new = said[self._heard.get(chat, 0) :]
        self._heard[chat] = len(said)
        for text in said[-20:]:  # drafts become answers
            if text.endswith(GOES_ON):
                continue
            for word in answered(text):
                if (since := self.waiting[chat].pop(word, None)) is not None:
                    self.slowest_s = max(self.slowest_s, monotonic() - since)
        if any(text.startswith(("Sorry", "I stopped")) for text in new):
            self.waiting[chat].clear()

    # ------------------------------------------------------------------ what goes wrong

    def _upsets(self) -> tuple[tuple[str, Callable[[], None]], ...]:
        """Telegram: updates that come again, messages that are taken and not confirmed, floods,
        silence; each with the method that it is about."""
        telegram = self.telegram
        post, edit, poll = "sendMessage", "editMessageText", "getUpdates"
        return (
            ("", lambda: telegram.redeliver(self.random.randint(1, 5))),
            (post, lambda: telegram.lose(post)),
            (post, lambda: telegram.fail(post, 429, retry_after=self.random.randint(1, 4))),
            (post, lambda: telegram.fail(post, 500)),
            (post, lambda: telegram.hang(post)),
            (edit, lambda: telegram.fail(edit, 429, retry_after=2)),
            (edit, lambda: telegram.lose(edit)),
            (poll, lambda: telegram.fail(poll, 502)),
            (poll, lambda: telegram.lose(poll)),
        )

    async def upset(self) -> None:
        """Something of it now and then. One of a kind at a time: they are not saved up while nobody
        calls."""
        upsets = self._upsets()
        while True:
            await anyio.sleep(self.random.uniform(*UPSET_S))
            self.telegram.calls.clear()  # they are many, and nobody looks at them
            method, happen = self.random.choice(upsets)
            if self.busy and not self.telegram.fails_next(method):
                happen()
                self.upsets += 1

    async def hurt(self) -> None:
        """A process of a tool dies, or hangs, now and then."""
        while True:
            await anyio.sleep(self.random.uniform(*HURT_S))
            below = await self._somebody_below()
            number = self.random.choice((signal.SIGKILL, signal.SIGSTOP))
            chosen = self.random.choice(below) if below else 0
            if self._seen.get(chosen):
                with suppress(ProcessLookupError):
                    os.kill(chosen, number)
                self.hurts += 1

    async def _somebody_below(self) -> list[int]:
        """The processes of tools, as soon as there are any."""
        while True:
            below = sorted(tree(self.worker) - {self.worker})
            self._note({*below})
            if self.busy and below:
                return below
            await anyio.sleep(0.02)

    async def set_clock(self) -> None:
        """Somebody sets the clock now and then."""
        while True:
            await anyio.sleep(self.random.uniform(*SET_S))
            if self.busy:
                self.shift.set(somewhere(self.random, self.shift.get()))
                self.sets += 1


def _only_child(pid: int) -> int:
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)
