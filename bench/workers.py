"""How many turns a second one, two and four workers finish on one PostgreSQL database, beside the
cores that there are: `python bench/workers.py`.

Everything runs on this machine: the workers, the server of the database, and who writes the
messages. The model answers at once, so that what is measured is our work.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import anyio
import msgspec
import psycopg

from deskhand.config.config import Config, Home, Settings
from deskhand.config.statements import load_statements
from deskhand.runtime.app import Parts, open_app
from deskhand.store.postgres import PostgresStore
from deskhand.testing.postgres import PostgresServer, open_schema, running_server
from deskhand.testing.scripted import ScriptedModel
from deskhand.types.identity import Address, Inbound, Principal, Said
from deskhand.types.interpreter import tune_interpreter
from deskhand.types.messages import Message, Text

AGENTS = 8
SESSIONS = 200
WRITER = Principal("owner", ("owner",))


def settings_of(home: Path, url: str, worker: str) -> Settings:
    raw = {
        "store": url,
        "defaults": {"models": ["scripted/x"]},
        "agents": {f"a{number}": {} for number in range(AGENTS)},
        "web": {"enabled": False},
    }
    return Settings(Home(home, worker), msgspec.convert(raw, Config))


async def work(home: Path, url: str, worker: str) -> None:
    """One worker, until it is killed."""
    tune_interpreter()
    model = ScriptedModel(piece=1_000, remember=False)
    settings = settings_of(home, url, worker)
    async with open_app(settings, Parts(lambda name: model, {})) as app:
        await app.run()


async def put(url: str, round_: int, turns: int) -> None:
    """Write this many messages, over all conversations."""
    store = PostgresStore(url, load_statements("postgresql"))

    async def write(session: int) -> None:
        for number in range(turns // SESSIONS):
            inbound = Inbound(
                external_id=f"{round_}-{session}-{number}",
                address=Address("web", chat=str(session)),
                sender="owner",
                at=1.0,
                body=Said(Message("user", (Text("some words of an ordinary message"),))),
                when="queue",
            )
            await store.accept(inbound, WRITER, f"a{session % AGENTS}/web:owner:{session}")

    async with anyio.create_task_group() as tasks:
        for session in range(SESSIONS):
            tasks.start_soon(write, session)
    await store.close()


def count_ended(db: psycopg.Connection[tuple[int]]) -> int:
    row = db.execute("SELECT count(*) FROM event WHERE kind = 'turn_ended'").fetchone()
    return row[0] if row else 0


@contextmanager
def running(workers: int) -> Iterator[tuple[PostgresServer, str, list[subprocess.Popen[bytes]]]]:
    """So many workers on a database of their own, which have shared the agents out; they are killed
    in the end."""
    with (
        tempfile.TemporaryDirectory(prefix="deskhand-bench-") as place,
        running_server(durable=True) as server,
        open_schema(server) as url,
    ):
        home = Path(place) / "home"
        home.mkdir()
        anyio.run(put, url, 0, 0)  # makes the tables
        names = ["", *(str(number) for number in range(1, workers))]
        command = [sys.executable, __file__, "--home", str(home), "--url", url, "--worker"]
        children = [subprocess.Popen([*command, name]) for name in names]
        try:
            with psycopg.connect(url, autocommit=True) as db:
                shared = "SELECT count(DISTINCT worker) FROM lease WHERE duty LIKE 'agent/%'"
                while (row := db.execute(shared).fetchone()) is None or row[0] < workers:
                    anyio.run(anyio.sleep, 0.2)
            yield server, url, children
        finally:
            for child in children:
                child.kill()
                child.wait()


def measure(workers: int, turns: int) -> tuple[float, float]:
    """Turns a second, and the CPU of the workers for each, in milliseconds."""
    with running(workers) as (_, url, children), psycopg.connect(url, autocommit=True) as db:
        began = monotonic()
        anyio.run(put, url, 0, turns)
        while count_ended(db) < turns:
            anyio.run(anyio.sleep, 0.05)
        took = monotonic() - began
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for child in children:
            child.kill()
            child.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime"))
    return turns / took, 1_000 * used / turns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--worker")
    chosen = parser.parse_args()
    if chosen.worker is not None:
        anyio.run(work, chosen.home, chosen.url, chosen.worker)
        return
    print(f"{os.cpu_count()} cores")
    for workers in (1, 2, 4):
        rate, cpu_ms = measure(workers, chosen.turns)
        print(f"{workers} workers: {rate:6.0f} turns/s, {cpu_ms:.2f} ms of CPU of workers for each")


if __name__ == "__main__":
    main()
