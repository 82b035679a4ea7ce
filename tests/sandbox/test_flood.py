"""A flood of output neither fills our memory nor holds up the event loop."""

from __future__ import annotations

from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.sandbox.base import Sandbox
from deskhand.sandbox.choose import open_sandbox
from deskhand.testing.effort import LoopWatch
from deskhand.testing.sandbox_suite import Ground, command

_FLOODS = {  # a program, its bytes and its lines
    "bytes": ("import os; p = bytes(1 << 20)\nfor _ in range(1500): os.write(1, p)", 1500 << 20, 0),
    "lines": (
        "import os; p = b'\\n' * 1000\nfor _ in range(10_000): os.write(1, p)",
        10_000_000,
        10_000_000,
    ),
}


@pytest.mark.parametrize("flood", _FLOODS)
@pytest.mark.parametrize("kind", ["bubblewrap", "landlocked"])
async def test_a_flood_of_output(tmp_path: Path, kind: str, flood: str) -> None:
    code, size, lines = _FLOODS[flood]
    sandbox: Sandbox = (
        await open_sandbox() if kind == "bubblewrap" else await open_sandbox(bwrap=None)
    ).sandbox
    ground = Ground(tmp_path.resolve(), tmp_path.resolve(), ())
    wanted = msgspec.structs.replace(command(ground, ""), argv=("/usr/bin/python3", "-c", code))
    counted = {"bytes": 0, "lines": 0}
    watch = LoopWatch()

    def count(piece: bytes, _: bool) -> None:
        counted["bytes"] += len(piece)
        counted["lines"] += piece.count(b"\n")

    async with anyio.create_task_group() as tasks:
        watch.start(tasks)
        ended = await sandbox.run(wanted, count)
        tasks.cancel_scope.cancel()
    assert ended.code == 0 and counted == {"bytes": size, "lines": lines}
    assert watch.grown_bytes <= 64 << 20 and watch.worst_percent_s < 0.1
