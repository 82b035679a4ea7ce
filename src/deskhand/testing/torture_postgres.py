"""The torture with its log in PostgreSQL: the server crashes too, in between and under load."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
import anyio.to_thread

from .postgres import PostgresServer, open_schema, running_server
from .torture import Torture, TortureReport
from .torture_child import store_beside

CRASH_BETWEEN = 0.1
CRASH_UNDER_LOAD = 0.2
"""How often the server crashes before a process is started, and while it works."""


class PostgresTorture(Torture):
    """One run of it."""

    def __init__(
        self, home: Path, kills: int, seed: int, server: PostgresServer, mode: str = "true"
    ) -> None:
        super().__init__(home, kills, seed, mode)
        self.server = server
        self.crashes = 0

    async def live(self, seconds: float) -> None:
        await anyio.sleep(seconds / 2)
        if self.platform.random.random() < CRASH_UNDER_LOAD:
            await self.crash_server()
        await anyio.sleep(seconds / 2)

    async def after_death(self) -> None:
        if self.platform.random.random() < CRASH_BETWEEN:
            await self.crash_server()

    async def crash_server(self) -> None:
        """As if its machine had been switched off, and on again."""
        self.crashes += 1
        await anyio.to_thread.run_sync(self.server.stop, "immediate")
        await anyio.to_thread.run_sync(self.server.start)


async def torture_with_server(kills: int, seed: int, mode: str = "true") -> TortureReport:
    """Run it with a home and a server of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="deskhand-torture-") as place,
        running_server(durable=True) as server,
        open_schema(server) as url,
    ):
        home = Path(place) / "home"
        home.mkdir()
        store_beside(home).write_text(url)
        made = PostgresTorture(home, kills, seed, server, mode)
        report = await made.run()
        if made.crashes < kills / 10:
            report.faults.append(f"the server crashed {made.crashes} times only")
        return report
