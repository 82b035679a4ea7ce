"""What a process printed can be read after its end, without a descriptor of its own."""

from __future__ import annotations

from pathlib import Path

from deskhand.tools.base import CommandRequest
from deskhand.workspace.live_process import MAX_ENDED, Live, LiveProcess, ProcessEnd
from deskhand.workspace.output_spool import Spool, read_leftover


def test_it_is_read_from_any_place_while_it_prints_and_after(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a.out")
    spool.add(b"one\n", False)
    spool.add(b"two\n", True)
    printed = b"one\n[stderr]\ntwo\n"
    assert spool.read(0, 100) == (0, printed)
    spool.close()
    spool.close()
    assert spool.read(4, 8) == (4, b"[stderr]")
    assert spool.read_all() == printed == read_leftover(tmp_path / "a.out")


def test_what_was_removed_is_answered_by_its_end(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a.out")
    spool.add(b"hello", False)
    spool.close()
    spool.path.unlink()
    assert spool.read(1, 3) == (1, b"ell")
    assert spool.read_all() == b""


async def test_those_that_have_ended_hold_no_descriptor(tmp_path: Path) -> None:
    held = LiveProcess()
    before = len([*Path("/proc/self/fd").iterdir()])
    for n in range(MAX_ENDED):
        live = Live(f"p{n}", "default/x", "session", CommandRequest("true"), tmp_path / f"{n}.out")
        held.add(live)
        live.add(b"said", False)
        live.finish(ProcessEnd("completed", "exit code: 0", 0))
    assert len([*Path("/proc/self/fd").iterdir()]) == before
    assert [live.spool.read(0, 10)[1] for live in held.all.values()] == [b"said"] * MAX_ENDED
