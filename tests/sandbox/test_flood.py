"""A flood of output neither fills our memory nor holds up the event loop."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import msgspec
import pytest

from deskhand.sandbox.base import Sandbox
from deskhand.sandbox.probes import open_sandbox
from deskhand.testing.sandbox_suite import Ground, command

_FLOODS = {  # a program, its bytes and its lines
    "bytes": ("import os; p = bytes(1 << 20)\nfor _ in range(1500): os.write(1, p)", 1500 << 20, 0),
    "lines": ("import os; p = b'\\n' * 1000\nfor _ in range(10_000): os.write(1, p)", 10_000_000, 10_000_000),
}


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize("flood", _FLOODS)
@pytest.mark.parametrize("kind", ["bubblewrap", "landlocked"])
async def test_a_flood_of_output(tmp_path: Path, kind: str, flood: str) -> None:
    code, size, lines = _FLOODS[flood]
    sandbox: Sandbox = (await open_sandbox() if kind == "bubblewrap" else await open_sandbox(bwrap=None)).sandbox
    ground = Ground(tmp_path.resolve(), tmp_path.resolve(), ())
    wanted = msgspec.structs.replace(command(ground, ""), argv=("/usr/bin/python3", "-c", code))
    counted = {"bytes": 0, "lines": 0}
    lags_s: list[float] = []
    before = peak = _resident_bytes()

    def count(piece: bytes, _: bool) -> None:
        counted["bytes"] += len(piece)
        counted["lines"] += piece.count(b"\n")

    async def measure() -> None:
        nonlocal peak
        while True:
            due = anyio.current_time() + 0.005
            await anyio.sleep_until(due)
            lags_s.append(anyio.current_time() - due)
            peak = max(peak, _resident_bytes())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(measure)
        ended = await sandbox.run(wanted, count)
        tasks.cancel_scope.cancel()
    print(f"{kind} {flood}: {ended.seconds:.2f} s, +{(peak - before) >> 20} MB, {len(lags_s)} samples")
    assert ended.code == 0 and counted == {"bytes": size, "lines": lines}
    assert peak - before <= 64 << 20
    assert sorted(lags_s)[int(len(lags_s) * 0.99)] < 0.1
