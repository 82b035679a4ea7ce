"""Starts a confined program, carries its output, and ends it in time: what both sandboxes share."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import anyio
import msgspec

from deskhand.sandbox.base import Exit, Mount, SandboxCommand
from deskhand.sandbox.bundle_code import bundle_code, make_boot_program
from deskhand.sandbox.supervisor import RELAY_PORT, LaunchOrders
from deskhand.sandbox.terminal import TerminalHandover
from deskhand.types.errors import SandboxError, SandboxUnavailable

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# What ordinary programs need of /etc: libraries, names, time, fonts, certificates. No passwords, no
# keys. Few, because bubblewrap reads the whole table of mounts anew for each.
ETC_PATHS = tuple(
    f"/etc/{name}"
    for name in [
        "alternatives",
        "ld.so.cache",
        "passwd",
        "group",
        "nsswitch.conf",
        "localtime",
        "ssl/certs",
        "mime.types",
        "fonts",
    ]
)
_PIECE_BYTES = 1 << 16
_PIECES_IN_A_ROW = 8
_GRACE_S = 3.0  # to kill even a fork bomb process by process
_DRAIN_S = 10.0  # to hand on what was put out; who still has our pipes then is none of ours
_GRACE_ALONE_S = 1.0  # with a namespace of its own, killing the first process kills all at once
DID_NOT_START = "the sandbox did not start"
CA_FILE = "/run/deskhand/ca.pem"
"""Where a command sees the authorities that it is to trust."""
_PROXY_VARIABLES = "http_proxy https_proxy HTTP_PROXY HTTPS_PROXY"
_TRUST_VARIABLES = (
    "SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO NODE_EXTRA_CA_CERTS"
)
_FORBIDDEN = ("/", "/proc", "/sys", "/dev", "/run", "/etc", *SYSTEM_FOLDERS)


class Python(msgspec.Struct, frozen=True):
    """An interpreter for the supervisor: `program` as seen from the command, and the host's folder
    behind its `prefix`. `ours`: it is the one that we run in, so that it understands what we
    compiled."""

    program: str
    prefix: str
    source: str
    is_own: bool = False


def find_pythons() -> list[Python]:
    """The interpreters to try: our own first, which may live where no mount shows it, then the
    system's."""
    base = Path(sys.base_prefix).resolve()
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    own = Python(f"{base}/bin/{name}", str(base), str(base), is_own=True)
    system = Python("/usr/bin/python3", "/usr", "/usr")
    return [each for each in (own, system) if os.access(each.program, os.X_OK)]


class Launch(msgspec.Struct):
    """A launch: the program with its arguments, and what to tell the supervisor."""

    argv: Callable[[Sequence[str]], Sequence[str]]  # given the arguments of the interpreter
    orders: LaunchOrders
    python: Python
    kept_fds: tuple[int, ...] = ()  # descriptors for the program


def check_mounts(mounts: Sequence[Mount]) -> list[tuple[str, bool, int, int]]:
    """Each mount with the device and inode of its folder, outer folders first.

    Raises SandboxError for one that is missing, crosses a symbolic link (an earlier command may
    have put it there), or would show what no command may see.
    """
    found = []
    for mount in sorted(mounts, key=lambda each: len(each.path)):
        real = str(Path(mount.path).resolve())
        if real != mount.path:
            raise SandboxError(
                f"{mount.path!r} is not a plain path: name the real folder, {real!r}"
            )
        if real in _FORBIDDEN or real.startswith(("/proc/", "/sys/", "/dev/", "/run/deskhand")):
            raise SandboxError(
                f"{mount.path!r} cannot be made available to commands: name a folder inside it"
            )
        try:
            status = Path(real).stat()
        except OSError as error:
            raise SandboxError(
                f"{mount.path!r} cannot be made available to commands: {error.strerror}"
            ) from error
        found.append((real, mount.write, status.st_dev, status.st_ino))
    return found


def find_ca_file(command: SandboxCommand) -> str:
    """The file on the host with the certificates that the command is to trust; '' where those of
    the system do."""
    if not command.egress:
        return ""
    beside = Path(command.egress).with_name("ca.pem")
    return str(beside) if beside.is_file() else ""


def _proxy_environment(command: SandboxCommand) -> dict[str, str]:
    if not command.egress:
        return {}
    # Not ALL_PROXY: what is no HTTP would only fail later, and say less.
    return dict.fromkeys(_PROXY_VARIABLES.split(), f"http://127.0.0.1:{RELAY_PORT}") | (
        dict.fromkeys(_TRUST_VARIABLES.split(), CA_FILE) if find_ca_file(command) else {}
    )


def build_environment(command: SandboxCommand, tmp: str) -> dict[str, str]:
    """The whole environment of a command: HOME is the outermost writable folder around its
    `cwd`."""
    around = [
        each.path
        for each in command.mounts
        if each.write and Path(command.cwd).is_relative_to(each.path)
    ] or [command.cwd]
    return {
        "PATH": PATH,
        "HOME": min(around, key=len),
        "LANG": "C.UTF-8",
        "TMPDIR": tmp,
        "PWD": command.cwd,
        "TERM": command.terminal.name if command.terminal is not None else "dumb",
        "USER": "agent",
        **_proxy_environment(command),
        **dict(command.env),
    }


def make_orders(command: SandboxCommand, tmp: str) -> LaunchOrders:
    """The part of the orders that does not depend on the kind of sandbox. Raises SandboxError."""
    if not command.argv or any("\0" in each for each in (*command.argv, command.cwd)):
        raise SandboxError("a command must be a program and its arguments, without NUL characters")
    orders = LaunchOrders()
    orders.argv, orders.cwd, orders.env = (
        list(command.argv),
        command.cwd,
        build_environment(command, tmp),
    )
    orders.mounts = check_mounts(command.mounts)
    orders.memory_bytes = command.memory_bytes
    orders.file_bytes = command.file_bytes
    orders.processes = command.processes
    orders.pid_namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    return orders


async def launch(
    started: Launch, command: SandboxCommand, output: Callable[[bytes, bool], None]
) -> Exit:
    """Run it to its end. Raises SandboxUnavailable where the sandbox did not come up, SandboxError
    where it refused."""
    begun_at = anyio.current_time()
    heard: list[bytes] = []
    complaint = bytearray()

    def on_output(piece: bytes, is_error: bool) -> None:
        if is_error and len(complaint) < 400:
            complaint.extend(piece[:400])
        output(piece, is_error)

    with ExitStack() as stack:
        lifeline_in, lifeline = _open_pipe(stack)
        report, report_in = _open_pipe(stack)
        out, out_in = _open_pipe(stack)
        error, error_in = _open_pipe(stack)
        for each in (report, out, error):
            os.set_blocking(each.number, False)
        way_out = _connect_proxy(stack, command.egress)
        line = TerminalHandover(stack, command.terminal)
        started.orders.lifeline = lifeline_in.number
        started.orders.report = report_in.number
        started.orders.egress = way_out[0] if way_out else -1
        started.orders.terminal = line.offer
        stdin = command.stdin_fd
        standard = (
            stdin if stdin >= 0 else _make_memory_file(stack, "stdin", command.stdin),
            out_in.number,
            error_in.number,
        )
        process = _start_supervisor(
            stack,
            started,
            standard,
            (lifeline_in.number, report_in.number, *way_out, *line.far_fds),
        )
        for each in (lifeline_in, report_in, out_in, error_in):
            each.close()
        line.close()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_pump, out.number, False, on_output)
                tasks.start_soon(_pump, error.number, True, on_output)
                tasks.start_soon(_pump, report.number, False, lambda piece, _: heard.append(piece))
                tasks.start_soon(line.forward_output, output)
                with anyio.move_on_after(command.timeout_s) as deadline:
                    await process.wait()
                if deadline.cancelled_caught:
                    await _stop_child(process, lifeline, started.orders.alone)
                tasks.cancel_scope.deadline = anyio.current_time() + _DRAIN_S
        finally:
            with anyio.CancelScope(shield=True):
                await _stop_child(process, lifeline, started.orders.alone)
    ended = _parse_report(
        b"".join(heard).decode(errors="replace"), complaint.decode(errors="replace")
    )
    seconds = anyio.current_time() - begun_at
    return msgspec.structs.replace(ended, seconds=seconds, timeout=deadline.cancelled_caught)


def _start_supervisor(
    stack: ExitStack, started: Launch, standard: tuple[int, int, int], kept: tuple[int, ...]
) -> _Child:
    """Start the supervisor with its orders and these descriptors."""
    written = _make_memory_file(
        stack, "orders", bundle_code(started.python.is_own, started.orders.pack())
    )
    argv = started.argv(("-I", "-S", "-B", "-c", make_boot_program(written)))
    return _Child(stack, argv, standard, (*kept, written, *started.kept_fds))


def _parse_report(report: str, complaint: str) -> Exit:
    _, failed, why = report.partition("failed ")
    if failed:
        raise SandboxError(
            f"the command could not be confined, so it did not run: {why.splitlines()[0]}"
        )
    if not report.startswith("started\n"):
        raise SandboxUnavailable(f"{DID_NOT_START}: {complaint.strip() or 'it gave no reason'}")
    kind, _, value = report.removeprefix("started\n").partition(" ")
    match kind, value:
        case "exit", code:
            return Exit(int(code))
        case "signal", number:
            return Exit(None, signal=int(number))
        case "limit", ("memory" | "processes") as limit:
            return Exit(None, signal=9, limit=limit)
        case _:  # stopped, or the supervisor itself was killed
            return Exit(None, signal=9)


class _Descriptor:
    """A file descriptor that may be closed twice."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._open = True

    def close(self) -> None:
        if self._open:
            self._open = False
            os.close(self.number)


class _Child:
    """The outermost process of a sandbox; anyio's own would start a thread to wait for each."""

    def __init__(
        self,
        stack: ExitStack,
        argv: Sequence[str],
        standard: tuple[int, int, int],
        kept: Sequence[int],
    ) -> None:
        stdin, stdout, stderr = standard
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd="/",
                env={},
                pass_fds=kept,
                start_new_session=True,
            )
        except OSError as cause:
            raise SandboxUnavailable(f"the sandbox could not start: {cause}") from cause
        self._ended = os.pidfd_open(self._process.pid)
        stack.callback(os.close, self._ended)

    async def wait(self) -> None:
        """Until it has ended; it is collected then, and what of its group is left is killed: a
        process that was stopped before it could be bound to the life of this one would hold our
        pipes for ever."""
        if self._process.returncode is None:
            await anyio.wait_readable(self._ended)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(
                    self._process.pid, signal.SIGKILL
                )  # its number is not given away before it is collected
            self._process.wait()

    def kill(self) -> None:
        self._process.kill()


def _connect_proxy(stack: ExitStack, path: str) -> tuple[int, ...]:
    """A connection to the proxy, if one is asked for. What it was given over it, it gives up when
    we let go."""
    if not path:
        return ()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            number = connection.detach()
    except OSError as error:
        raise SandboxError(
            f"the proxy for the network cannot be reached: {error.strerror}"
        ) from error
    stack.callback(os.close, number)
    return (number,)


def _open_pipe(stack: ExitStack) -> tuple[_Descriptor, _Descriptor]:
    ends = tuple(_Descriptor(number) for number in os.pipe())
    for end in ends:
        stack.callback(end.close)
    return ends[0], ends[1]


def _make_memory_file(stack: ExitStack, name: str, content: bytes) -> int:
    """A descriptor to read `content` from, which nobody can change or enlarge."""
    number = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, number)
    view = memoryview(content)
    while view:
        view = view[os.write(number, view) :]
    os.lseek(number, 0, os.SEEK_SET)
    fcntl.fcntl(
        number, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
    )
    return number


async def _pump(number: int, is_error: bool, output: Callable[[bytes, bool], None]) -> None:
    """Hand on what can be read, to its end. Nothing is kept, and other tasks get their turn."""
    while True:
        await anyio.wait_readable(number)
        for _ in range(_PIECES_IN_A_ROW):
            try:
                piece = os.read(number, _PIECE_BYTES)
            except BlockingIOError:
                break
            if not piece:
                return
            output(piece, is_error)


async def _stop_child(process: _Child, lifeline: _Descriptor, alone: bool) -> None:
    """Have the supervisor kill everything; where it does not answer, kill the supervisor, and its
    namespace with it."""
    lifeline.close()
    with anyio.move_on_after(_GRACE_ALONE_S if alone else _GRACE_S):
        await process.wait()
        return
    process.kill()
    await process.wait()
