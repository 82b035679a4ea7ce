"""The second sandbox, for machines where bubblewrap does not work: Landlock and seccomp, without
namespaces.

It closes more system calls than the first, because nothing else stands between the command and what
other programs of this user own: no sockets at all, no System V memory, no changing of modes or
owners by name. /tmp is a private folder named by TMPDIR, and /proc is closed but for the machine's
figures.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence

from anyio import CancelScope, to_thread

from deskhand.sandbox.base import Exit, Sandbox, SandboxCommand
from deskhand.sandbox.launcher import ETC_PATHS, SYSTEM_FOLDERS, Launch, Python, launch, make_orders
from deskhand.types.errors import SandboxError

_PROC_FILES = (
    "cpuinfo",
    "meminfo",
    "stat",
    "loadavg",
    "uptime",
    "version",
    "filesystems",
    "sys/kernel/osrelease",
)
NEEDED_ABI = 6  # the first that keeps signals inside


class Landlocked:
    """Rules of the kernel for one thread and its children; the supervisor stays outside them and
    finds every orphan."""

    has_egress = False

    def __init__(self, python: Python) -> None:
        self.name = "Landlock + seccomp"
        self.python = python.program
        self._interpreter = python
        self._reads = [*SYSTEM_FOLDERS, *ETC_PATHS, python.source]
        self._reads += [f"/proc/{each}" for each in _PROC_FILES]

    async def run(self, command: SandboxCommand, output: Callable[[bytes, bool], None]) -> Exit:
        """See Sandbox.run."""
        if (
            command.egress
        ):  # Landlock can bind it to a port, not to an address: that port is open everywhere
            raise SandboxError("commands can reach the network only with bubblewrap: install it")
        tmp = await to_thread.run_sync(tempfile.mkdtemp, "", "deskhand-")
        try:
            orders = make_orders(command, tmp)
            orders.reads = self._reads
            orders.writes = [tmp]
            orders.devices = [
                f"/dev/{each}" for each in ("null", "zero", "full", "random", "urandom")
            ]
            orders.devices += (
                ["/dev/tty"] if command.terminal is not None else []
            )  # its own, if any
            orders.alone = False
            orders.landlocked = True
            orders.own_proc = ""
            orders.filter = b""
            return await launch(
                Launch(self._build_argv, orders, self._interpreter), command, output
            )
        finally:
            with CancelScope(shield=True):
                await to_thread.run_sync(lambda: shutil.rmtree(tmp, ignore_errors=True))

    def _build_argv(self, arguments: Sequence[str]) -> Sequence[str]:
        return [self.python, *arguments]


_: type[Sandbox] = Landlocked
