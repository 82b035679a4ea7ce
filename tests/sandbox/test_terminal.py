"""Commands at a terminal: a real one, of the size that was asked for, and nothing of it is left."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from deskhand.sandbox.base import Exit, Mount, Sandbox, SandboxCommand
from deskhand.sandbox.choose import open_sandbox
from deskhand.sandbox.terminal import Terminal


class _At:
    """A shell at a terminal, and what it has shown."""

    def __init__(self, sandbox: Sandbox, folder: Path, terminal: Terminal) -> None:
        where = str(folder.resolve())
        argv = ("/bin/bash", "--norc", "-i")
        mounts = (Mount(where, write=True),)
        self.terminal, self.shown, self.ended = terminal, "", list[Exit]()
        self._command = SandboxCommand(
            argv, where, mounts, env=(("PS1", "> "),), terminal=terminal, timeout_s=30
        )
        self._sandbox = sandbox

    async def run(self) -> None:
        self.ended.append(await self._sandbox.run(self._command, self._hear))

    def _hear(self, piece: bytes, stderr: bool) -> None:
        assert not stderr, piece
        self.shown += piece.decode()

    async def type(self, line: str, until: str) -> None:
        """Type it, and wait until this is shown after it."""
        await self.terminal.attached.wait()
        before = len(self.shown)
        assert await self.terminal.write(line.encode()) == len(line)
        with anyio.fail_after(10):
            while until not in self.shown[before:]:
                await anyio.sleep(0.01)


@pytest.mark.parametrize("kind", ["bubblewrap", "landlocked"])
async def test_a_terminal(tmp_path: Path, kind: str) -> None:
    sandbox = (
        await open_sandbox() if kind == "bubblewrap" else await open_sandbox(bwrap=None)
    ).sandbox
    at = _At(sandbox, tmp_path, Terminal(90, 25))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(at.run)
        await at.type(
            "stty size; echo $TERM; test -t 0 -a -t 1 -a -t 2 && echo all $((1 + 2))\r", "all 3\r\n"
        )
        assert "25 90\r\n" in at.shown and "xterm-256color\r\n" in at.shown
        await at.type("tty; echo hi $((3 + 4)) > /dev/tty\r", "hi 7\r\n")
        assert "/dev/pts/" in at.shown
        await at.type("sh -c 'echo on $((5 + 4)); exec sleep 60'\r", "on 9\r\n")
        await at.type("\x03", "^C")
        at.terminal.resize(120, 40)
        await at.type("stty size\r", "40 120\r\n")
        await at.type(
            "set +m; python3 -c 'import fcntl; fcntl.ioctl(0, 0x5412, b\"x\")'\r", "Error"
        )
        assert "Operation not permitted" in at.shown, "it can type for whoever is there"
        await at.type("exit 5\r", "exit")
    assert at.ended[0].code == 5 and not at.terminal.is_open
    assert await at.terminal.write(b"x") == 0


@contextmanager
def ignoring(*numbers: signal.Signals) -> Iterator[None]:
    """As what a shell starts in the background, or `nohup`."""
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize("kind", ["bubblewrap", "landlocked"])
async def test_a_command_ignores_no_signal_because_we_do(tmp_path: Path, kind: str) -> None:
    sandbox = (
        await open_sandbox() if kind == "bubblewrap" else await open_sandbox(bwrap=None)
    ).sandbox
    where = str(tmp_path.resolve())
    shown = list[bytes]()
    script = (
        "for each in INT QUIT HUP; do sh -c 'kill -s $0 $$; echo ignored $0' $each; done; echo over"
    )
    wanted = SandboxCommand(
        ("/bin/bash", "-c", script), where, (Mount(where, write=True),), timeout_s=30
    )
    with ignoring(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        await sandbox.run(wanted, lambda piece, error: None if error else shown.append(piece))
    assert b"".join(shown) == b"over\n"


async def test_what_nobody_reads_is_not_waited_for_long(tmp_path: Path) -> None:
    where = str(tmp_path.resolve())
    terminal = Terminal()
    wanted = SandboxCommand(
        ("/bin/sleep", "30"), where, (Mount(where, write=True),), terminal=terminal, timeout_s=30
    )
    sandbox = (await open_sandbox()).sandbox
    before = len(list(Path("/proc/self/fd").iterdir()))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sandbox.run, wanted, lambda piece, error: None)
        await terminal.attached.wait()
        assert 0 < await terminal.write(b"x\r" * 100_000) < 200_000
        tasks.cancel_scope.cancel()
    assert not terminal.is_open and len(list(Path("/proc/self/fd").iterdir())) == before
