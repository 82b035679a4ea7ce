"""What it costs to judge a call and to keep what it changes: the policy and the two looks at the
workspace, without the command between them."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import anyio
import msgspec

from deskhand.config.statements import load_statements
from deskhand.policy.permission_modes import mode_rules
from deskhand.policy.rules import Case, apply_rules
from deskhand.store.blobs import Blobs
from deskhand.store.sqlite import SqliteStore
from deskhand.testing.tools import owner_context
from deskhand.tools.watch import FileWatch
from deskhand.types.identity import Principal
from deskhand.types.labels import OWNER
from deskhand.workspace.scope import SandboxProvider, ToolScopes

FILES = 20
TIMES = 200
ROUNDS = 5


async def figures() -> tuple[float, float]:
    """(CPU, wall) milliseconds of a call that changes nothing, in a workspace of FILES files in 4
    folders."""
    with tempfile.TemporaryDirectory(prefix="deskhand-bench-") as place:
        home = Path(place)
        folder = Path(place) / "workspace"
        for n in range(FILES):
            (folder / f"f{n % 4}").mkdir(parents=True, exist_ok=True)
            (folder / f"f{n % 4}" / f"{n}.txt").write_text("words\n" * 100)
        store = SqliteStore(home / "deskhand.db", load_statements())
        reaches = ToolScopes(store, Blobs(home / "blobs"), SandboxProvider())
        reach = await reaches.open_scope("bench", folder.resolve())
        who = Principal("owner", ("owner",))
        context = owner_context(reach, session="bench/terminal:1", agent="bench")
        rules = mode_rules("workspace-free")
        case = Case("bench", "shell", "local_write", who, OWNER, b'{"command": "true"}')

        async def once(n: int) -> None:
            apply_rules(rules, case)
            watch = await FileWatch.start(msgspec.structs.replace(context, key=f"call{n}"), "true")
            await watch.finish()

        cpu = list[float]()
        wall = list[float]()
        for n in range(ROUNDS + 1):
            began = time.perf_counter()
            used = time.process_time()
            for each in range(TIMES):
                await once(n * TIMES + each)
            wall.append((time.perf_counter() - began) / TIMES * 1e3)
            cpu.append((time.process_time() - used) / TIMES * 1e3)
        reaches.close()
        await store.close()
    return statistics.median(cpu[1:]), statistics.median(wall[1:])


if __name__ == "__main__":
    print("policy and journal, ms CPU, ms wall:", *(f"{each:.3f}" for each in anyio.run(figures)))
