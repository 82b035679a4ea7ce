"""What is stopped or killed from outside holds nobody up, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from deskhand.sandbox.base import Exit, Mount, SandboxCommand
from deskhand.sandbox.choose import open_sandbox
from deskhand.sandbox.launcher import Launch, Python, launch, make_orders
from deskhand.testing.temporary_home import processes_with
from deskhand.types.errors import SandboxUnavailable


def _offspring() -> list[int]:
    """All processes that come from this one, by their parents."""
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit():
                parents[int(each.name)] = int(
                    (each / "stat").read_text().rpartition(")")[2].split()[1]
                )
        except OSError:
            continue
    found = set[int]()
    fresh = {os.getpid()}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return sorted(found)


def _working_in(where: str) -> list[int]:
    """Every process, stopped ones too, whose folder this is."""
    found = list[int]()
    for each in Path("/proc").iterdir():
        with suppress(OSError):
            if each.name.isdigit() and str((each / "cwd").readlink()) == where:
                found.append(int(each.name))
    return found


@pytest.mark.parametrize("harm", ["stop", "kill"])
@pytest.mark.parametrize("kind", ["bubblewrap", "landlocked"])
async def test_it_ends_all_the_same(tmp_path: Path, kind: str, harm: str) -> None:
    """Its watcher, too, is stopped or killed."""
    sandbox = (
        await open_sandbox() if kind == "bubblewrap" else await open_sandbox(bwrap=None)
    ).sandbox
    where = str(tmp_path.resolve())
    mark = f"72{os.getpid()}"
    wanted = SandboxCommand(("/bin/sleep", mark), where, (Mount(where, write=True),), timeout_s=1.5)
    before = _offspring()
    ended = list[Exit]()

    async def run() -> None:
        ended.append(await sandbox.run(wanted, lambda piece, error: None))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        with anyio.fail_after(20):
            while not processes_with(mark):
                await anyio.sleep(0.01)
        for pid in set(_offspring()) - set(before):
            with suppress(ProcessLookupError):  # its end came with that of another
                os.kill(pid, signal.SIGSTOP if harm == "stop" else signal.SIGKILL)
    print(f"{kind}, {harm}: over {ended[0].seconds:.1f} s after it began, its time was 1.5 s")
    assert ended[0].code is None and ended[0].timeout == (harm == "stop")
    with anyio.fail_after(20):
        while processes_with(mark):
            await anyio.sleep(0.01)
        while _working_in(where):  # whoever its parent is by now
            await anyio.sleep(0.01)
    assert _offspring() == before, "something is left, a zombie perhaps"


@pytest.mark.parametrize(
    "left", ["sleep 300 &", "(kill -STOP $(exec sh -c 'echo $PPID')) &", "setsid sleep 60 &"]
)
async def test_nobody_waits_for_who_holds_its_pipes(tmp_path: Path, left: str) -> None:
    """A process that is stopped just when it begins is bound to the life of nobody yet, and does
    not read that it is over. What is in the same group is killed; for anything else nobody waits
    long."""
    where = str(tmp_path.resolve())
    wanted = SandboxCommand(("true",), where, (Mount(where, write=True),))
    orders = make_orders(wanted, where)
    born = ("/bin/sh", "-c", f"cd {where}; {left} exit 0")
    orders.alone = True
    started = Launch(lambda _: born, orders, Python("", "", ""))
    with anyio.fail_after(20), pytest.raises(SandboxUnavailable):
        await launch(started, wanted, lambda piece, error: None)
    if left.startswith("setsid"):
        for pid in _working_in(where):
            os.kill(pid, signal.SIGKILL)
    with anyio.fail_after(10):  # who was killed goes in a moment
        while _working_in(where):
            await anyio.sleep(0.01)
