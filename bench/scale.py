"""How far one database carries, and what a number of people needs: `python bench/scale.py`.

What a turn costs was measured here (27 November 2026, two cores, PostgreSQL 15); the rest are
assumptions. Change any of them: `python bench/scale.py --people 50000 --round-trip-ms 0.5`.
`--measure 1000` measures bytes and the database's processor time on your machine.

A cell is one PostgreSQL database with its workers. One transaction of a cell writes at a time, so
the time that a turn holds the database decides how many turns a cell takes. More people get more
cells: nothing is shared between two of them.
"""

from __future__ import annotations

import argparse
import heapq
import math
import os
import random
import statistics
from pathlib import Path

import anyio
import msgspec
import psycopg
import workers

DAY_S = 86_400.0
CONNECTIONS = 3
"""Of each worker: one that writes, one that reads, one that hears of news."""
BUSY_S = 60.0
"""So long a busy time is simulated."""


class Assumptions(msgspec.Struct, frozen=True):
    """`people` write `turns_a_day` each, at the busiest time `peak` times as many as on average. A
    model takes `model_s`. A worker may be busy for the share `load` of its time, a database too.
    `round_trip_ms` is the way to the database and back, `flush_ms` what its disk takes for a
    commit.

    The rest was measured, of a plain turn: `worker_cpu_ms` and `database_cpu_ms` of the processor,
    `commits` and `round_trips` to the database, for which all others wait, `log_bytes` of tables
    and indexes, `wal_bytes` of its write-ahead log, `conversation_bytes` of a worker's memory."""

    people: int = 1_000_000
    turns_a_day: float = 20.0
    peak: float = 4.0
    model_s: float = 8.0
    load: float = 0.6
    round_trip_ms: float = 0.3
    flush_ms: float = 1.0
    worker_cpu_ms: float = 7.2
    database_cpu_ms: float = 2.8
    commits: float = 3.0
    round_trips: float = 22.0
    log_bytes: float = 2_400.0
    wal_bytes: float = 4_100.0
    conversation_bytes: float = 20_000.0


class Needs(msgspec.Struct, frozen=True):
    """What that comes to, of all cells together where nothing else is said."""

    turns_a_second: float
    held_ms: float
    cell_turns_a_second: float
    cells: int
    workers: int
    connections_of_a_cell: int
    database_cores: float
    open_turns: float
    memory_gb: float
    log_gb_a_day: float
    wal_mb_a_second: float


def estimate(given: Assumptions) -> Needs:
    """By arithmetic, at the busiest time."""
    rate = given.people * given.turns_a_day / DAY_S * given.peak
    held_ms = given.round_trips * given.round_trip_ms + given.commits * given.flush_ms
    held_ms += given.database_cpu_ms
    most = given.load * 1_000 / held_ms
    cells = math.ceil(rate / most)
    needed = math.ceil(rate * given.worker_cpu_ms / 1_000 / given.load)
    needed = max(cells, needed)
    open_turns = rate * given.model_s
    return Needs(
        turns_a_second=rate,
        held_ms=held_ms,
        cell_turns_a_second=most,
        cells=cells,
        workers=needed,
        connections_of_a_cell=CONNECTIONS * math.ceil(needed / cells),
        database_cores=rate * given.database_cpu_ms / 1_000 / given.load,
        open_turns=open_turns,
        memory_gb=(open_turns * given.conversation_bytes + needed * 120e6) / 1e9,
        log_gb_a_day=given.people * given.turns_a_day * given.log_bytes / 1e9,
        wal_mb_a_second=rate * given.wal_bytes / 1e6,
    )


def simulate(given: Assumptions, needs: Needs, seed: int = 1) -> list[float]:
    """A minute of one cell at its busiest, message by message: for each turn the seconds by which
    Deskhand made it longer than the model did. Each worker has one processor and does one thing at
    a time; all of them wait for the database, which lets one write at a time."""
    chance = random.Random(seed)
    count = math.ceil(needs.workers / needs.cells)
    rate = needs.turns_a_second / needs.cells
    steps = round(given.commits)
    worker_s = given.worker_cpu_ms / 1_000 / steps
    held_s = needs.held_ms / 1_000 / steps
    free_at = [0.0] * count
    database_free_at = 0.0
    waits = list[float]()
    steps_due = list[tuple[float, int, int, int, float]]()
    at = 0.0
    number = 0
    while (at := at + chance.expovariate(rate)) < BUSY_S:
        number += 1
        steps_due.append((at, number, chance.randrange(count), 0, 0.0))
    heapq.heapify(steps_due)
    while steps_due:
        at, number, worker, step, waited = heapq.heappop(steps_due)
        done = max(at, free_at[worker]) + worker_s
        free_at[worker] = done
        done = max(done, database_free_at) + held_s
        database_free_at = done
        waited += done - at
        if step + 1 == steps:
            waits.append(waited)
        else:
            model_s = chance.expovariate(1 / given.model_s) if step + 2 == steps else 0.0
            heapq.heappush(steps_due, (done + model_s, number, worker, step + 1, waited))
    return waits


def show(given: Assumptions) -> str:
    needs = estimate(given)
    waits = simulate(given, needs)
    lines = [f"{name:>24}  {value:,.6g}" for name, value in msgspec.structs.asdict(needs).items()]
    late = statistics.quantiles(waits, n=100)
    shares = ", ".join(f"{1_000 * late[n - 1]:,.0f} ms ({n} %)" for n in (50, 95, 99))
    return "\n".join([*lines, f"{'added to a turn':>24}  {shares}"])


def measure(turns: int) -> dict[str, float]:
    """What a plain turn costs the database of one worker here. `turns` is rounded, so that each
    conversation has as many."""
    turns = max(1, round(turns / workers.SESSIONS)) * workers.SESSIONS
    with workers.running(1) as (server, url, _), psycopg.connect(url, autocommit=True) as db:
        before = read_database(db, server.process_id)
        anyio.run(workers.put, url, 0, turns)
        while workers.count_ended(db) < turns:
            anyio.run(anyio.sleep, 0.05)
        after = read_database(db, server.process_id)
    return {name: (after[name] - before[name]) / turns for name in after}


def read_database(db: psycopg.Connection[tuple[int]], process_id: int) -> dict[str, float]:
    """Bytes of its tables and of its write-ahead log, and its processor's time."""
    tables = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
    written = "SELECT pg_current_wal_lsn() - '0/0'"
    found = [(db.execute(each).fetchone() or (0,))[0] for each in (tables, written)]
    cpu_ms = sum(cpu_of(each) for each in processes_of(process_id))
    return {
        "log_bytes": float(found[0]),
        "wal_bytes": float(found[1]),
        "database_cpu_ms": cpu_ms,
    }


def processes_of(process_id: int) -> list[Path]:
    """A process and its children."""
    found = [Path(f"/proc/{process_id}")]
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = (each / "stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        found += [each] * (parent == str(process_id))
    return found


def cpu_of(process: Path) -> float:
    """Milliseconds of the processor, with those of its children that have ended."""
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return 1_000 * sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=int, metavar="TURNS", help="measure so many turns here")
    for field in msgspec.structs.fields(Assumptions):
        name = f"--{field.name.replace('_', '-')}"
        parser.add_argument(name, type=field.type, default=field.default)
    chosen = vars(parser.parse_args())
    if turns := chosen.pop("measure"):
        for name, value in measure(turns).items():
            print(f"{name:>24}  {value:,.1f} a turn")
        return
    print(show(Assumptions(**chosen)))


if __name__ == "__main__":
    main()
