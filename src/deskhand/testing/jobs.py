"""A Deskhand with jobs whose time passes as a test says."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from ..channels.base import Channel
from ..config.config import Config, Home, Settings
from ..jobs.ledger import list_runs
from ..runtime.app import App, Parts, open_app
from ..sandbox.choose import Proven, open_sandbox
from ..store.sqlite import SqliteStore
from ..types.jobs import OPEN_STATES, Run
from .clock import SetClock
from .scripted import Script, ScriptedModel, say

POLL_S = 0.005


class JobDesk:
    """One home, and as many lives as a test gives it. Its clock is `clock`, and it keeps what it
    knows in a `store`."""

    def __init__(
        self, home: Path, script: Script | None = None, clock: SetClock | None = None, **config: Any
    ) -> None:
        self.clock = clock or SetClock()
        config = {"defaults": {"models": ["scripted/x"]} | config.pop("defaults", {})} | config
        made = msgspec.convert(config, Config, strict=False)
        self.settings = Settings(Home(home), made, (), {"HOME": str(home.parent)})
        self.model = ScriptedModel(script or (lambda request: say("done")))
        self.store = SqliteStore
        self._proven: Proven | None = None

    async def proven(self) -> Proven:
        """The sandbox, tried out once."""
        self._proven = self._proven or await open_sandbox()
        return self._proven

    @property
    def jobs(self) -> Path:
        return self.settings.home.root / "jobs"

    def write(self, name: str, schedule: str = "", prompt: str = "Do it.", **front: Any) -> Path:
        """A JOB.md as a person writes it. Returns its folder."""
        folder = self.jobs / name
        folder.mkdir(parents=True, exist_ok=True)
        lines = {"schedule": schedule, **front} if schedule else front
        head = "".join(
            f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in lines.items()
        )
        (folder / "JOB.md").write_text(f"---\n{head}---\n\n{prompt}\n")
        return folder

    def hook(self, name: str, script: str, text: str, mode: int = 0o755) -> None:
        """A script in the folder of a job."""
        path = self.jobs / name / script
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    @asynccontextmanager
    async def running(
        self, channels: Sequence[Channel] = (), prepare: Callable[[App], None] = lambda app: None
    ) -> AsyncIterator[App]:
        parts = Parts(
            lambda name: self.model,
            sandbox=self.proven,
            clock=self.clock,
            channels=channels,
            store=self.store,
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            prepare(app)
            tasks.start_soon(app.run)
            await self._begun(app)
            yield app
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[App]:
        """One in which nothing drives, and the clock of jobs stands still until it is asked."""
        parts = Parts(lambda name: self.model, sandbox=self.proven, clock=self.clock)
        async with open_app(self.settings, parts) as app, app.features.jobs.runs.open():
            yield app

    async def _begun(self, app: App) -> None:
        with anyio.fail_after(30):
            jobs = app.features.jobs
            while not jobs.runs.is_open or not jobs.scheduler.tick_count:  # noqa: ASYNC110
                await anyio.sleep(POLL_S)

    async def pass_time(self, app: App, seconds: float) -> None:
        """So much time passes, and the clock looks."""
        self.clock.advance(seconds)
        await self.look(app)

    async def look(self, app: App) -> None:
        """The clock looks at everything."""
        jobs = app.features.jobs.scheduler
        before = jobs.tick_count
        jobs.rescan()
        with anyio.fail_after(30):
            while jobs.tick_count < before + 2:
                jobs.rescan()
                await anyio.sleep(POLL_S)

    async def ended(self, app: App, name: str, number: int = 1) -> Run:
        """The latest run of a job, once so many are over."""
        with anyio.fail_after(30):
            while True:
                runs = await list_runs(app.store, name, 1000)
                if (
                    sum(run.state not in OPEN_STATES for run in runs) >= number
                    and runs[0].state not in OPEN_STATES
                ):
                    return runs[0]
                await anyio.sleep(POLL_S)
