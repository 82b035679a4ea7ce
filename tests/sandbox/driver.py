"""Runs checks in a process of its own, as whatever user starts it.

`driver.py KIND suite|evasions` prints a JSON object: each check with what failed, empty where
nothing did.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

import anyio

from deskhand.sandbox.base import Sandbox
from deskhand.sandbox.choose import open_sandbox
from deskhand.sandbox.kernel import landlock_abi
from deskhand.testing.evasions import EVASIONS, contained
from deskhand.testing.sandbox_suite import CHECKS, Check, Ground
from deskhand.types.errors import DeskhandError


async def _holds(check: Check, sandbox: Sandbox) -> str:
    folder = Path(tempfile.mkdtemp(prefix="deskhand-suite-")).resolve()
    try:
        ground = Ground(
            folder / "workspace",
            folder / "outside",
            tuple(f"canary-{at}-of-20" for at in range(20)),
        )
        for each in (ground.workspace, ground.outside):
            each.mkdir()
        (ground.outside / "key").write_text("canary-key-outside")
        try:
            await check(sandbox, ground)
        except (AssertionError, OSError, DeskhandError, BaseExceptionGroup):
            return traceback.format_exc()
        return ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def main(kind: str, only: str) -> None:
    proven = await open_sandbox(
        bwrap=shutil.which("bwrap") if kind == "bubblewrap" else None, abi=landlock_abi
    )
    outcome = {"name": proven.sandbox.name, "uid": str(os.getuid())}
    for check in CHECKS if only == "suite" else ():
        outcome[check.__name__] = await _holds(check, proven.sandbox)
    limiter = anyio.CapacityLimiter(4)

    async def evade(script: str) -> None:
        async with limiter:
            outcome[script] = await _holds(contained(script), proven.sandbox)

    async with anyio.create_task_group() as tasks:
        for script in EVASIONS if only == "evasions" else ():
            tasks.start_soon(evade, script)
    print(json.dumps(outcome))


if __name__ == "__main__":
    os.environ.update({f"SERVICE_{at}_API_KEY": f"canary-{at}-of-20" for at in range(20)})
    anyio.run(main, sys.argv[1], sys.argv[2])
