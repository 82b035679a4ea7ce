"""The strong sandbox: bubblewrap outside (namespaces, mounts), Landlock and seccomp inside."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from stat import S_ISREG

from deskhand.sandbox.base import Exit, Sandbox, SandboxCommand
from deskhand.sandbox.launcher import (
    CA_FILE,
    ETC_PATHS,
    SYSTEM_FOLDERS,
    Launch,
    Python,
    find_ca_file,
    launch,
    make_orders,
)
from deskhand.sandbox.seccomp import build_filter
from deskhand.sandbox.supervisor import SUPERVISOR_PID, LaunchOrders

_RUN_FOLDER = "/run/deskhand"  # where the interpreter is seen
_TMP_BYTES = 512 << 20
_SHM_BYTES = 128 << 20
_ISOLATION = (
    *(
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
        "--new-session",
        "--clearenv",
    ),
    *("--cap-drop", "ALL", "--hostname", "deskhand"),
)
# uid 0 owns the sysctls even without capabilities, and the keys are not of this namespace.
_PROC_READ_ONLY = ("/proc/sys",)
_PROC_EMPTY = ("/proc/keys", "/proc/key-users")


class Bubblewrap:
    """Namespaces by `program`, a new view of the files, no network; Landlock within where
    `landlocked`."""

    has_egress = True

    def __init__(self, program: str, python: Python, landlocked: bool) -> None:
        self.name = "bubblewrap + Landlock + seccomp" if landlocked else "bubblewrap + seccomp"
        self._program = program
        self._landlocked = landlocked
        self._interpreter = python
        self._shown: list[tuple[str, str]] = []
        self._preset: dict[str, str] = {}
        self.python = python.program
        if not Path(python.prefix).is_relative_to("/usr"):
            inside = f"{_RUN_FOLDER}/python"
            self._shown.append((python.source, inside))
            self.python = inside + python.program.removeprefix(python.prefix)
            self._preset["LD_LIBRARY_PATH"] = f"{inside}/lib"  # it was linked for its old place
        self._fixed = self._build_fixed_argv()
        self._filter, self._filter_with_egress = (
            _build_filter(internet=False),
            _build_filter(internet=True),
        )

    async def run(self, command: SandboxCommand, output: Callable[[bytes, bool], None]) -> Exit:
        """See Sandbox.run."""
        orders = make_orders(command, "/tmp")
        orders.reads = [*SYSTEM_FOLDERS, "/etc", "/proc", *(seen for _, seen in self._shown)]
        orders.writes = ["/tmp", "/dev/shm"]
        orders.devices = ["/dev"]
        orders.alone = True
        orders.landlocked = self._landlocked
        orders.filter = self._filter
        if command.egress:
            orders.filter = self._filter_with_egress
        # Landlock keeps the command out of it; without Landlock there is none.
        orders.own_proc = f"{_RUN_FOLDER}/proc" if self._landlocked and os.getuid() == 0 else ""
        with ExitStack() as stack:
            files = _open_files(stack, find_ca_file(command))
            orders.reads += [CA_FILE] if CA_FILE in files else []
            argv = partial(self._build_argv, orders, files)
            kept = tuple(files.values())
            return await launch(Launch(argv, orders, self._interpreter, kept), command, output)

    def _build_argv(
        self, orders: LaunchOrders, files: dict[str, int], arguments: Sequence[str]
    ) -> Sequence[str]:
        argv = [*self._fixed]
        for path, descriptor in files.items():
            argv += ["--perms", "0444", "--file", str(descriptor), path]
        if orders.own_proc:
            argv += ["--proc", orders.own_proc]
        for source, seen in self._shown:
            argv += ["--ro-bind", source, seen]
        for path, write, _, _ in orders.mounts:
            argv += ["--bind" if write else "--ro-bind", path, path]
        argv += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/", "--"]
        return [*argv, self.python, *arguments]

    def _build_fixed_argv(self) -> list[str]:
        """What is the same for every command."""
        argv = [self._program, *_ISOLATION]
        for name, value in self._preset.items():
            argv += ["--setenv", name, value]
        for step in _system_mounts():
            argv += step
        for path in ETC_PATHS:
            if Path(path).is_dir():
                argv += ["--ro-bind", path, path]
        argv += ["--proc", "/proc", "--dev", "/dev"]
        argv += ["--perms", "1777", "--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"]
        argv += ["--perms", "1777", "--size", str(_TMP_BYTES), "--tmpfs", "/tmp"]
        argv += ["--dir", "/var", "--symlink", "../tmp", "/var/tmp"]
        for path in _PROC_READ_ONLY:
            argv += ["--ro-bind-try", path, path]
        for path in _PROC_EMPTY:
            if Path(path).exists():
                argv += ["--ro-bind", "/dev/null", path]
        return argv


def _open_files(stack: ExitStack, ca: str) -> dict[str, int]:
    """The files of /etc, and `ca` if any, to be copied: that takes a tenth of the time of a
    mount."""
    found = {}
    for path, source in (*((each, each) for each in ETC_PATHS), (CA_FILE, ca)):
        try:
            number = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        stack.callback(os.close, number)
        if S_ISREG(os.fstat(number).st_mode):
            found[path] = number
    return found


def _build_filter(*, internet: bool) -> bytes:
    """The filter that every supervisor puts on its command; where we know no such machine, it says
    so itself."""
    try:
        return build_filter(
            os.uname().machine, True, os.getuid() == 0, [SUPERVISOR_PID], internet=internet
        )
    except KeyError:
        return b""


def _system_mounts() -> list[tuple[str, ...]]:
    """The system's folders as this host has them: merged beneath /usr by links, or apart."""
    steps: list[tuple[str, ...]] = []
    for path in SYSTEM_FOLDERS:
        if Path(path).is_symlink():
            steps.append(("--symlink", str(Path(path).readlink()), path))
        elif Path(path).is_dir():
            steps.append(("--ro-bind", path, path))
    return steps


_: type[Sandbox] = Bubblewrap
