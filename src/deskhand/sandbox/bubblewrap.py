"""The strong sandbox: bubblewrap outside (namespaces, mounts), Landlock and seccomp inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from deskhand.sandbox.base import Command, Exit, Sandbox
from deskhand.sandbox.launcher import CA, ETC, SYSTEM, Python, Started, authorities, boot, launch, orders_for
from deskhand.sandbox.warden import Orders

_HOUSE = "/run/deskhand"  # where the interpreter and the warden are seen
_TMP_BYTES, _SHM_BYTES = 512 << 20, 128 << 20
_ISOLATION = (
    *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"),
    *("--cap-drop", "ALL", "--hostname", "deskhand"),
)
# uid 0 owns the sysctls even without capabilities, and the keys are not of this namespace.
_PROC_READ_ONLY, _PROC_EMPTY = ("/proc/sys",), ("/proc/keys", "/proc/key-users")


class Bubblewrap:
    """Namespaces by `program`, a new view of the files, no network; Landlock within where `landlocked`."""

    def __init__(self, program: str, python: Python, landlocked: bool) -> None:
        self.name = "bubblewrap + Landlock + seccomp" if landlocked else "bubblewrap + seccomp"
        self._program = program
        self._landlocked = landlocked
        self._shown = [(str(Path(__file__).parent), f"{_HOUSE}/lib/deskhand/sandbox")]
        self._preset: dict[str, str] = {}
        self.python = python.program
        if not Path(python.prefix).is_relative_to("/usr"):
            inside = f"{_HOUSE}/python"
            self._shown.append((python.source, inside))
            self.python = inside + python.program.removeprefix(python.prefix)
            self._preset["LD_LIBRARY_PATH"] = f"{inside}/lib"  # it was linked for its old place
        self.room = f"{_HOUSE}/lib/deskhand/sandbox"
        self._system = [*_system(), *(("--ro-bind", each, each) for each in ETC if Path(each).exists())]

    async def run(self, command: Command, output: Callable[[bytes, bool], None]) -> Exit:
        """See Sandbox.run."""
        orders = orders_for(command, "/tmp")
        orders.reads = [*SYSTEM, "/etc", "/proc", *(seen for _, seen in self._shown)]
        orders.writes = ["/tmp", "/dev/shm"]
        orders.devices = ["/dev"]
        if ca := authorities(command):
            orders.reads.append(CA)
        orders.alone, orders.landlocked = True, self._landlocked
        # Landlock keeps the command out of it; without Landlock there is none.
        orders.own_proc = f"{_HOUSE}/proc" if self._landlocked and os.getuid() == 0 else ""
        return await launch(Started(lambda fd: self._argv(orders, fd, ca), orders, {}), command, output)

    def _argv(self, orders: Orders, descriptor: int, ca: str) -> Sequence[str]:
        argv = [self._program, *_ISOLATION]
        for name, value in self._preset.items():
            argv += ["--setenv", name, value]
        for step in self._system:
            argv += step
        argv += ["--proc", "/proc", "--dev", "/dev"]
        argv += ["--perms", "1777", "--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"]
        argv += ["--perms", "1777", "--size", str(_TMP_BYTES), "--tmpfs", "/tmp"]
        argv += ["--dir", "/var", "--symlink", "../tmp", "/var/tmp"]
        for path in _PROC_READ_ONLY:
            argv += ["--ro-bind-try", path, path]
        for path in _PROC_EMPTY:
            if Path(path).exists():
                argv += ["--ro-bind", "/dev/null", path]
        if orders.own_proc:
            argv += ["--proc", orders.own_proc]
        for source, seen in self._shown:
            argv += ["--ro-bind", source, seen]
        if ca:
            argv += ["--ro-bind", ca, CA]
        for path, write, _, _ in orders.mounts:
            argv += ["--bind" if write else "--ro-bind", path, path]
        argv += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]
        return [*argv, self.python, "-I", "-S", "-B", "-c", boot(f"{_HOUSE}/lib", descriptor)]


def _system() -> list[tuple[str, ...]]:
    """The system's folders as this host has them: merged beneath /usr by links, or apart."""
    steps: list[tuple[str, ...]] = []
    for path in SYSTEM:
        if Path(path).is_symlink():
            steps.append(("--symlink", str(Path(path).readlink()), path))
        elif Path(path).is_dir():
            steps.append(("--ro-bind", path, path))
    return steps


_: type[Sandbox] = Bubblewrap
