"""Which system calls a command may not make, as a classic BPF program. It runs inside the
sandbox."""

from __future__ import annotations

from deskhand.sandbox.kernel import AUDIT_ARCH, FIRST_UNKNOWN, syscall_numbers

_NEVER = (
    "ptrace process_vm_readv process_vm_writev kcmp pidfd_getfd process_madvise "
    "mount umount2 pivot_root chroot open_tree move_mount fsopen fsconfig fsmount fspick "
    "mount_setattr open_tree_attr "
    "unshare setns add_key request_key keyctl bpf perf_event_open userfaultfd "
    "io_uring_setup io_uring_enter io_uring_register init_module finit_module delete_module "
    "kexec_load kexec_file_load "
    "reboot syslog acct swapon swapoff quotactl quotactl_fd settimeofday clock_settime "
    "adjtimex clock_adjtime "
    "sethostname setdomainname lookup_dcookie vhangup iopl ioperm modify_ldt uselib sysfs "
    "fanotify_init "
    "open_by_handle_at name_to_handle_at"
)
# Answered with "no such call", so that a C library or a program takes its older way. A filter
# cannot look into the struct that clone3 and openat2 take; memory behind memfd_create is nobody's
# until it is mapped, so no limit sees it.
_MISSING = "clone3 memfd_create memfd_secret openat2"
# Beside the namespaces these are harmless. Without them they reach what other programs of the same
# user own, and Landlock does not look at them: modes and owners of files, System V memory, the
# priority of other processes.
_SHARED = (
    "setpriority ioprio_set move_pages migrate_pages process_mrelease inotify_add_watch "
    "shmget shmat shmctl semget semop semctl semtimedop msgget msgsnd msgrcv msgctl mq_open "
    "mq_unlink "
    "chmod chown lchown fchmodat fchmodat2 fchownat utime utimes futimesat setxattr "
    "lsetxattr removexattr lremovexattr "
    "setxattrat removexattrat file_setattr"
)
# uid 0 owns the system's files, and may open them to read
_SHARED_OF_ROOT = "fchmod fchown fsetxattr fremovexattr"
# argument 0: whose
_SHARED_OTHERS = "prlimit64 sched_setparam sched_setscheduler sched_setattr sched_setaffinity"
_SIGNALS = "kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open"  # argument 0: to whom

_NAMESPACES = 0x7E020080  # every CLONE_NEW*
# they type into the terminal of whoever is there
_TIOCSTI = 0x5412
_TIOCLINUX = 0x541C
# Reading leaves a trace, the time of the last access, by which we tell what a command read. These
# would leave none: a file opened or set so, and copies that only the file system makes. Programs
# take their other way. O_NOATIME, F_SETFL
_NO_TRACE = 0x40000
_SET_FLAGS = 4
_CLONES = (0x40049409, 0x4020940D, 0xC0189436)  # FICLONE, FICLONERANGE, FIDEDUPERANGE
# Bits that lend the rights of a file's owner to whoever runs it outlive the sandbox. So do words in
# attributes, which no look at names and contents sees; programs that copy them are used to file
# systems that have none. S_ISUID and S_ISGID; O_CREAT and O_TMPFILE
_SET_ID = 0o6000
_CREATE = 0x400040
_MODES = (
    ("chmod", 1),
    ("fchmod", 1),
    ("fchmodat", 2),
    ("fchmodat2", 2),
    ("creat", 1),
    ("mknod", 1),
    ("mknodat", 2),
)
_ATTRIBUTES = "setxattr lsetxattr fsetxattr setxattrat"
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERROR = 0x00050000
_EPERM = 1
_EXDEV = 18
_ENOSYS = 38
_EOPNOTSUPP = 95
_ARGUMENT = 16


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return (
        code.to_bytes(2, "little") + bytes((yes, no)) + value.to_bytes(4, "little")
    )  # struct sock_filter


def _refuse(number: int, error: int = _EPERM) -> bytes:
    return _instruction(_EQUAL, number, 0, 1) + _instruction(_RETURN, _ERROR | error)


def _refuse_unless(number: int, argument: int, allowed: tuple[int, ...]) -> bytes:
    """Refuse a call whose `argument` (its low 32 bits) is none of `allowed`."""
    tests = [_instruction(_EQUAL, value, len(allowed) - at, 0) for at, value in enumerate(allowed)]
    return (
        _instruction(_EQUAL, number, 0, len(allowed) + 3)
        + _instruction(_LOAD, _ARGUMENT + 8 * argument)
        + b"".join(tests)
        + _instruction(_RETURN, _ERROR | _EPERM)
        + _instruction(_RETURN, _ALLOW)
    )


def _refuse_if_any(number: int, argument: int, values: tuple[int, ...]) -> bytes:
    """Refuse a call whose `argument` (its low 32 bits) is one of `values`."""
    tests = [_instruction(_EQUAL, value, len(values) - at, 0) for at, value in enumerate(values)]
    return (
        _instruction(_EQUAL, number, 0, len(values) + 3)
        + _instruction(_LOAD, _ARGUMENT + 8 * argument)
        + b"".join(tests)
        + _instruction(_RETURN, _ALLOW)
        + _instruction(_RETURN, _ERROR | _EPERM)
    )


def _refuse_flag(number: int, argument: int, flag: int) -> bytes:
    """Refuse a call whose `argument` (its low 32 bits) has any of these bits."""
    return (
        _instruction(_EQUAL, number, 0, 4)
        + _instruction(_LOAD, _ARGUMENT + 8 * argument)
        + _instruction(_ANY_BIT, flag, 0, 1)
        + _instruction(_RETURN, _ERROR | _EPERM)
        + _instruction(_RETURN, _ALLOW)
    )


def _refuse_traceless_open(number: int, flags: int, mode: int) -> bytes:
    """Refuse to open a file, by these arguments, in a way that leaves no trace, or to make one with
    set-ID bits."""
    return (
        _instruction(_EQUAL, number, 0, 7)
        + _instruction(_LOAD, _ARGUMENT + 8 * flags)
        + _instruction(_ANY_BIT, _NO_TRACE, 3, 0)
        + _instruction(_ANY_BIT, _CREATE, 0, 3)
        + _instruction(_LOAD, _ARGUMENT + 8 * mode)
        + _instruction(_ANY_BIT, _SET_ID, 0, 1)
        + _instruction(_RETURN, _ERROR | _EPERM)
        + _instruction(_RETURN, _ALLOW)
    )


def _refuse_traceless_reads(table: dict[str, int]) -> bytes:
    """Refuse the ways of reading that leave none."""
    lines = _refuse(table["copy_file_range"], _EXDEV) + _refuse_traceless_open(
        table["openat"], 2, 3
    )
    if "open" in table:
        lines += _refuse_traceless_open(table["open"], 1, 2)
    lines += (
        _instruction(_EQUAL, table["fcntl"], 0, 6)
        + _instruction(_LOAD, _ARGUMENT + 8)
        + _instruction(_EQUAL, _SET_FLAGS, 0, 3)
    )
    lines += (
        _instruction(_LOAD, _ARGUMENT + 16)
        + _instruction(_ANY_BIT, _NO_TRACE, 0, 1)
        + _instruction(_RETURN, _ERROR | _EPERM)
    )
    return lines + _instruction(_RETURN, _ALLOW)


def build_filter(
    machine: str, alone: bool, root: bool, watchers: list[int], *, internet: bool = False
) -> bytes:
    """The filter for a command. `alone`: it has namespaces of its own. `watchers`: whom it may not
    signal. `internet`: it may open IPv4 sockets, which in its namespace lead to the relay alone.

    Every number above those judged here does not exist for it: what a newer kernel adds is closed
    until we know it. KeyError for a machine that we have no table for.
    """
    table = syscall_numbers(machine)
    lines = (
        _instruction(_LOAD, 4)
        + _instruction(_EQUAL, AUDIT_ARCH[machine], 1, 0)
        + _instruction(_RETURN, _KILL)
        + _instruction(_LOAD, 0)
    )
    lines += _instruction(_AT_LEAST, FIRST_UNKNOWN, 0, 1) + _instruction(
        _RETURN, _ERROR | _ENOSYS
    )  # the x32 numbers lie there too
    refused = _NEVER if alone else f"{_NEVER} {_SHARED} {_SHARED_OF_ROOT if root else ''}"
    lines += b"".join(_refuse(table[name]) for name in refused.split() if name in table)
    lines += b"".join(_refuse(table[name], _ENOSYS) for name in _MISSING.split())
    lines += (
        _instruction(_EQUAL, table["clone"], 0, 4)
        + _instruction(_LOAD, _ARGUMENT)
        + _instruction(_ANY_BIT, _NAMESPACES, 0, 1)
    )
    lines += _instruction(_RETURN, _ERROR | _EPERM) + _instruction(_RETURN, _ALLOW)
    lines += _refuse_unless(table["personality"], 0, (0, 0xFFFFFFFF))
    # Unix sockets reach only what is mounted, where mounts and the network are our own; else they
    # reach every daemon.
    lines += (
        _refuse_unless(table["socket"], 0, (1, 2) if internet else (1,))
        if alone
        else _refuse(table["socket"])
    )
    lines += _refuse_if_any(table["ioctl"], 1, (_TIOCSTI, _TIOCLINUX, *_CLONES))
    lines += _refuse_traceless_reads(table)
    lines += b"".join(
        _refuse_flag(table[name], argument, _SET_ID) for name, argument in _MODES if name in table
    )
    lines += b"".join(
        _refuse(table[name], _EOPNOTSUPP) for name in _ATTRIBUTES.split() if name in table
    )
    if not alone:
        lines += b"".join(_refuse_unless(table[name], 0, (0,)) for name in _SHARED_OTHERS.split())
        # By descriptor the name is NULL. Both halves of the pointer: a name could lie at a round
        # address.
        lines += (
            _instruction(_EQUAL, table["utimensat"], 0, 6)
            + _instruction(_LOAD, _ARGUMENT + 8)
            + _instruction(_EQUAL, 0, 0, 2)
        )
        lines += _instruction(_LOAD, _ARGUMENT + 12) + _instruction(_EQUAL, 0, 1, 0)
        lines += _instruction(_RETURN, _ERROR | _EPERM) + _instruction(_RETURN, _ALLOW)
    # Everybody (-1), and the watchers or their groups: stopped, they could not watch.
    untouchable = ((1 << 32) - 1, *watchers, *((1 << 32) - pid for pid in watchers))
    lines += b"".join(_refuse_if_any(table[name], 0, untouchable) for name in _SIGNALS.split())
    return lines + _instruction(_RETURN, _ALLOW)
