"""The program that stands between the launcher and a command: it confines the command, watches it,
and ends it whole.

It runs inside the sandbox with whatever Python is there, so it imports only the standard library
and its neighbours (`boot`), and of those only what starts quickly: a command waits for it.
"""

from __future__ import annotations

import marshal
import posix as os  # what lies in `os` beside it takes longer to import than a command may wait
import select
import time

from deskhand.sandbox import kernel

# RLIMIT_*, the same numbers on both machines
_CORE = 4
_DATA = 2
_FSIZE = 1
_NOFILE = 7
_NPROC = 6
_SIGKILL = 9
_SIGCONT = 18
# Python ignores SIGPIPE and SIGXFSZ, a shell has what it puts in the background ignore SIGINT and
# SIGQUIT, `nohup` SIGHUP. A command inherits that, and a shell could not even undo it: Ctrl+C would
# end nothing.
_IGNORED = (13, 25, 2, 3, 1)
_TIOCSCTTY = 0x540E
_TIOCSWINSZ = 0x5414
_TICK_MS = 20
_CENSUS_MS = 100
_PAGE = os.sysconf("SC_PAGESIZE")
RELAY_PORT = 3128  # where a command finds the proxy, in its own network namespace
SUPERVISOR_PID = 2  # the number of the supervisor in a namespace of its own: bubblewrap has 1
_SLACK = (
    64  # the kernel's bound lies above ours: what reaches ours is ended, not left to try forever
)


class LaunchOrders:
    """What the launcher asks for. Both ends are ours: it travels as `marshal` in a sealed memory
    file."""

    argv: list[str]
    env: dict[str, str]
    cwd: str
    mounts: list[tuple[str, bool, int, int]]  # path, write, device and inode that it must be
    reads: list[str]  # system folders and files; one that is missing is passed over
    writes: list[str]
    devices: list[str]
    memory_bytes: int
    file_bytes: int
    processes: int
    alone: bool  # in namespaces of its own
    pid_namespace: str  # the launcher's
    landlocked: bool
    filter: bytes  # of system calls, for a supervisor with number FIRST; b"": to be made here
    own_proc: str  # a second /proc for the supervisor alone, with its sysctls open; "": none
    egress: int  # a connection to the proxy; -1: no way out
    terminal: tuple[int, int, int] | None  # the socket to hand our end out by, rows and columns
    lifeline: int  # its end of file means: end everything
    report: int

    def pack(self) -> bytes:
        """The bytes that `unpack` reads."""
        return marshal.dumps(vars(self), 2)

    @staticmethod
    def unpack(packed: bytes) -> LaunchOrders:
        """The orders in `packed`, which only the launcher writes."""
        orders = LaunchOrders()
        vars(orders).update(marshal.loads(packed))
        return orders


def main(packed: bytes) -> None:
    """Carry out the orders, and say on the report pipe how it went.

    That is `failed WHY`, or `started` and one of `exit CODE`, `signal NUMBER`, `limit WHICH`,
    `stopped`.
    """
    orders = LaunchOrders.unpack(packed)
    for each in (orders.lifeline, orders.report):
        os.set_inheritable(each, False)
    if orders.egress >= 0 and not orders.alone:
        os.write(orders.report, b"failed its network is not its own")
        return
    if orders.alone and os.readlink("/proc/self/ns/pid") == orders.pid_namespace:
        # At the end it kills everybody: that must never mean everybody on this machine.
        os.write(orders.report, b"failed there is no process namespace of its own")
        return
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    _prefer_for_the_oom_killer()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # its memory and descriptors are closed to the command
    _raise_priority()
    if orders.own_proc:
        _limit_pids(orders)
    if orders.egress >= 0 and (problem := _hand_over_relay(orders.egress)):
        os.write(orders.report, f"failed it has no way to the proxy: {problem}".encode())
        return
    guard, hold = os.pipe()  # closing `hold` sets off the guard
    supervisor = os.getpid()
    window = _open_terminal(orders)
    child = os.fork()
    if child == 0:
        os.close(hold)
        _become_command(orders, supervisor, guard, window)
    os.close(guard)
    if window >= 0:
        os.close(window)
    os.write(orders.report, b"started\n")
    ending = _watch(child, orders)
    os.close(hold)
    _kill_all(orders.alone)
    os.write(orders.report, ending.encode())
    os._exit(0)  # the interpreter need not be taken down piece by piece: somebody waits


def _hand_over_relay(connection: int) -> str:
    """Listen in this network namespace, and give the listening socket to the proxy on the other
    side of `connection`: it accepts from there what connects here. The command gets neither of the
    two. Why it failed; '' if it did not.
    """
    import _socket  # noqa: PLC0415  `socket` starts slowly, and most commands need neither

    proxy = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, connection)
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1", RELAY_PORT))
        listener.listen(128)
        rights = listener.fileno().to_bytes(4, "little")
        proxy.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, rights)])
    except OSError as error:
        return str(error)
    finally:
        proxy.close()
        listener.close()
    return ""


def _prefer_for_the_oom_killer() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123  pathlib starts slowly
            file.write("500")
    except OSError:
        pass  # a /proc without it: the kernel chooses by size alone


def _raise_priority() -> None:
    """Run before thousands of others where we may (root without namespaces); our children do
    not."""
    try:  # noqa: SIM105  contextlib takes 8 ms to import
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        pass  # an ordinary user: there the kernel's limit on processes holds


def _limit_pids(orders: LaunchOrders) -> None:
    """Let the kernel count: the limit on processes does not bind uid 0, that on numbers does (a
    namespace's own since Linux 6.14; the first 300 are used only once).
    """
    try:
        with open(f"{orders.own_proc}/sys/kernel/pid_max", "w") as file:  # noqa: PTH123
            file.write(str(orders.processes + 300))
    except OSError:
        pass  # an older kernel: the watch alone


def _open_terminal(orders: LaunchOrders) -> int:
    """The command's end of a new terminal, -1 for none. The other end goes out, and nobody in here
    has it."""
    if orders.terminal is None:
        return -1
    from _socket import SCM_RIGHTS, SOL_SOCKET, socket  # noqa: PLC0415  not every command has one

    way_out, rows, columns = orders.terminal
    near, window = os.openpty()
    size = b"".join(each.to_bytes(2, "little") for each in (rows, columns, 0, 0))  # struct winsize
    kernel.syscall(kernel.syscall_numbers(os.uname().machine)["ioctl"], window, _TIOCSWINSZ, size)
    sender = socket(fileno=way_out)
    sender.sendmsg([b"t"], [(SOL_SOCKET, SCM_RIGHTS, near.to_bytes(4, "little"))])
    sender.close()
    os.close(near)
    return window


def _become_command(orders: LaunchOrders, supervisor: int, guard: int, window: int) -> None:
    """Turn this child into the command. Never returns."""
    try:
        os.setsid()
        if window >= 0:
            kernel.syscall(
                kernel.syscall_numbers(os.uname().machine)["ioctl"], window, _TIOCSCTTY, 0
            )
            for each in (0, 1, 2):
                os.dup2(window, each)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, _SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        for number in _IGNORED:
            kernel.reset_signal(number)
        os.nice(5)  # whoever waits for an answer goes first
        _confine(orders, supervisor, guard)
    except (OSError, KeyError) as error:
        os.write(orders.report, f"failed {type(error).__name__}: {error}".encode())
        os._exit(1)
    os.closerange(3, 1024)
    try:
        _exec_program(orders.argv, orders.env)
    except FileNotFoundError:
        os.write(2, f"{orders.argv[0]}: not found\n".encode())
        os._exit(127)
    except (OSError, ValueError) as error:
        os.write(2, f"{orders.argv[0]}: {error}\n".encode())
        os._exit(126)


def _exec_program(argv: list[str], env: dict[str, str]) -> None:
    """Become the program, looked for as a shell does. Raises OSError, ValueError."""
    if "/" in argv[0]:
        os.execve(argv[0], argv, env)
    error: OSError = FileNotFoundError()
    for folder in env["PATH"].split(":"):
        try:
            os.execve(f"{folder}/{argv[0]}", argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as failed:
            error = failed
    raise error


def _confine(orders: LaunchOrders, supervisor: int, guard: int) -> None:
    machine = os.uname().machine
    root = os.getuid() == 0
    rules = []
    for path, write, device, inode in orders.mounts:
        descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != (device, inode):
            raise OSError(f"{path!r} was replaced by another folder while the command started")
        rules.append((descriptor, kernel.WRITE if write else kernel.READ))
    for paths, rights in (
        (orders.reads, kernel.READ),
        (orders.writes, kernel.WRITE),
        (orders.devices, kernel.DEVICE),
    ):
        for path in paths:
            try:
                rules.append((os.open(path, os.O_PATH), rights))
            except OSError:
                continue
    os.chdir(orders.cwd)
    kernel.set_limit(_CORE, 0)
    kernel.set_limit(_NOFILE, 1024)
    kernel.set_limit(_FSIZE, orders.file_bytes)
    kernel.set_limit(_DATA, orders.memory_bytes)
    if (
        not root
    ):  # counted for the user in our namespace, where we have one; uid 0 is not bound by it
        kernel.set_limit(
            _NPROC, orders.processes + _SLACK + (0 if orders.alone else _count_user_threads())
        )
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if orders.landlocked:
        kernel.apply_landlock(rules, RELAY_PORT if orders.egress >= 0 else 0)
    protected = [supervisor]
    if not orders.alone:
        protected.append(_leave_guard(guard, supervisor))
    kernel.drop_capabilities(machine)
    if not orders.filter or protected != [SUPERVISOR_PID]:
        from deskhand.sandbox.seccomp import build_filter  # noqa: PLC0415  loaded where it is needed: a command waits

        orders.filter = build_filter(
            machine, orders.alone, root, protected, internet=orders.egress >= 0
        )
    kernel.apply_seccomp(orders.filter)


def _count_user_threads() -> int:
    user = os.getuid()
    total = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                total += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return total


def _leave_guard(guard: int, supervisor: int) -> int:
    """Leave a process inside the rules that, when the supervisor goes or says so, kills all within
    them at once.

    A signal to everybody stops at the edge of the Landlock scope. That it does is tried first, on
    the supervisor.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        _raise_priority()
        kernel.prctl(
            kernel.PR_SET_PDEATHSIG, _SIGCONT
        )  # who stopped it and then the supervisor gains nothing
        os.dup2(guard, 0)
        os.closerange(1, 1024)
        os.read(0, 1)
        os.kill(supervisor, 0)
    except PermissionError:
        os.kill(-1, _SIGKILL)
    finally:
        os._exit(0)


def _watch(child: int, orders: LaunchOrders) -> str:
    """Wait until the command ends, the launcher wants it ended, or it outgrows a limit; name that
    as in a report."""
    poll = select.poll()
    poll.register(orders.lifeline, select.POLLIN | select.POLLHUP)
    poll.register(os.pidfd_open(child), select.POLLIN)
    next_census = time.monotonic()
    while True:
        if any(descriptor == orders.lifeline for descriptor, _ in poll.poll(_TICK_MS)):
            return "stopped"
        status = _reap(child)
        if status is not None:
            return (
                f"signal {os.WTERMSIG(status)}"
                if os.WIFSIGNALED(status)
                else f"exit {os.WEXITSTATUS(status)}"
            )
        if (
            orders.alone
            and sum(name.isdigit() for name in os.listdir("/proc")) > orders.processes + 2
        ):
            return "limit processes"
        now = time.monotonic()
        if now >= next_census:
            threads, memory_bytes = _measure_usage(orders)
            if threads > orders.processes + 1:  # with the guard
                return "limit processes"
            if memory_bytes > orders.memory_bytes:
                return "limit memory"
            spent_s = time.monotonic() - now
            next_census = now + max(_CENSUS_MS / 1000, 10 * spent_s)


def _reap(child: int) -> int | None:
    """Collect whatever has ended: all orphans come to us. The wait status of `child`, once it is
    among them."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in (0, child):
                return status if pid else None
    except ChildProcessError:
        return 0


def _list_processes(alone: bool) -> dict[int, tuple[int, int]]:
    """The command's processes: their number of threads and resident bytes."""
    everyone: dict[int, tuple[int, int, int]] = {}
    me = os.getpid()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123
                fields = file.read(1024).rpartition(b")")[2].split()
        except OSError:
            continue
        everyone[int(name)] = (int(fields[1]), int(fields[17]), int(fields[21]) * _PAGE)
    if alone:
        return {
            pid: (threads, size)
            for pid, (_, threads, size) in everyone.items()
            if pid not in (1, me)
        }
    ours = {me}
    fresh = {me}
    while fresh:
        fresh = {
            pid for pid, (parent, _, _) in everyone.items() if parent in fresh and pid not in ours
        }
        ours |= fresh
    return {pid: everyone[pid][1:] for pid in ours - {me}}


def _measure_usage(orders: LaunchOrders) -> tuple[int, int]:
    """How many threads there are in all, and how many bytes of memory they hold."""
    living = _list_processes(orders.alone)
    threads = sum(count for count, _ in living.values())
    resident = sum(size for _, size in living.values())
    if resident > orders.memory_bytes:  # shared pages were counted once for each: look closely
        resident = sum(_proportional_bytes(pid, size) for pid, (_, size) in living.items())
    return threads, resident


def _proportional_bytes(pid: int, resident_bytes: int) -> int:
    """The bytes of one process, each shared page divided among those who share it."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:  # noqa: PTH123
            lines = file.read().split(b"\n")
    except OSError:
        return resident_bytes
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))


def _kill_all(alone: bool) -> None:
    """Kill everything that the command started, and return when nothing of it is left."""
    pause = select.poll()
    pauses = 0
    while True:
        if alone:
            try:  # noqa: SIM105
                os.kill(-1, _SIGKILL)  # at once: the whole namespace but its first process and us
            except ProcessLookupError:
                pass
        elif pauses > 10:  # the guard was killed, say for want of memory: one by one
            for pid in _list_processes(alone):
                try:
                    os.kill(pid, _SIGKILL)
                except ProcessLookupError:
                    continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return  # no child, and every orphan becomes one: nobody is left
        pause.poll(2)
        pauses += 1
