"""The system calls that Python's library does not offer.

It runs inside the sandbox, where a command waits for it: so it uses the core of ctypes, without the
package around it, which takes longer to start than all the rest of the supervisor.
"""

from __future__ import annotations

import posix as os  # what lies in `os` beside it takes longer to import than a command may wait
from _ctypes import (
    FUNCFLAG_CDECL,
    FUNCFLAG_USE_ERRNO,
    Array,
    CFuncPtr,
    _SimpleCData,
    addressof,
    dlopen,
    dlsym,
    get_errno,
)

# From Linux: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h
# (aarch64).
_X86_64 = (
    "ptrace=101 process_vm_readv=310 process_vm_writev=311 kcmp=312 pidfd_getfd=438 "
    "process_madvise=440 "
    "mount=165 umount2=166 pivot_root=155 chroot=161 open_tree=428 move_mount=429 "
    "fsopen=430 fsconfig=431 fsmount=432 "
    "fspick=433 mount_setattr=442 open_tree_attr=467 unshare=272 setns=308 clone=56 clone3=435 "
    "add_key=248 request_key=249 keyctl=250 bpf=321 perf_event_open=298 userfaultfd=323 "
    "io_uring_setup=425 io_uring_enter=426 io_uring_register=427 "
    "init_module=175 finit_module=313 delete_module=176 kexec_load=246 kexec_file_load=320 "
    "reboot=169 syslog=103 "
    "acct=163 "
    "swapon=167 swapoff=168 quotactl=179 quotactl_fd=443 settimeofday=164 clock_settime=227 "
    "adjtimex=159 "
    "clock_adjtime=305 sethostname=170 setdomainname=171 lookup_dcookie=212 vhangup=153 "
    "iopl=172 ioperm=173 "
    "modify_ldt=154 uselib=134 sysfs=139 fanotify_init=300 open_by_handle_at=304 "
    "name_to_handle_at=303 "
    "memfd_create=319 memfd_secret=447 personality=135 ioctl=16 socket=41 "
    "kill=62 tkill=200 tgkill=234 rt_sigqueueinfo=129 rt_tgsigqueueinfo=297 pidfd_open=434 "
    "prlimit64=302 "
    "setpriority=141 ioprio_set=251 sched_setparam=142 sched_setscheduler=144 "
    "sched_setattr=314 sched_setaffinity=203 "
    "move_pages=279 migrate_pages=256 process_mrelease=448 inotify_add_watch=254 "
    "shmget=29 shmat=30 shmctl=31 semget=64 semop=65 semctl=66 semtimedop=220 msgget=68 "
    "msgsnd=69 msgrcv=70 msgctl=71 "
    "mq_open=240 mq_unlink=241 mknod=133 mknodat=259 creat=85 "
    "chmod=90 fchmod=91 chown=92 fchown=93 lchown=94 fchmodat=268 fchmodat2=452 fchownat=260 "
    "utime=132 utimes=235 futimesat=261 utimensat=280 setxattr=188 lsetxattr=189 "
    "fsetxattr=190 removexattr=197 "
    "lremovexattr=198 fremovexattr=199 setxattrat=463 removexattrat=466 file_setattr=469 "
    "capset=126 "
    "open=2 openat=257 openat2=437 fcntl=72 copy_file_range=326"
)
_AARCH64 = (
    "ptrace=117 process_vm_readv=270 process_vm_writev=271 kcmp=272 pidfd_getfd=438 "
    "process_madvise=440 "
    "mount=40 umount2=39 pivot_root=41 chroot=51 open_tree=428 move_mount=429 fsopen=430 "
    "fsconfig=431 fsmount=432 "
    "fspick=433 mount_setattr=442 open_tree_attr=467 unshare=97 setns=268 clone=220 clone3=435 "
    "add_key=217 request_key=218 keyctl=219 bpf=280 perf_event_open=241 userfaultfd=282 "
    "io_uring_setup=425 io_uring_enter=426 io_uring_register=427 "
    "init_module=105 finit_module=273 delete_module=106 kexec_load=104 kexec_file_load=294 "
    "reboot=142 syslog=116 "
    "acct=89 "
    "swapon=224 swapoff=225 quotactl=60 quotactl_fd=443 settimeofday=170 clock_settime=112 "
    "adjtimex=171 "
    "clock_adjtime=266 sethostname=161 setdomainname=162 lookup_dcookie=18 vhangup=58 "
    "fanotify_init=262 open_by_handle_at=265 name_to_handle_at=264 "
    "memfd_create=279 memfd_secret=447 personality=92 ioctl=29 socket=198 "
    "kill=129 tkill=130 tgkill=131 rt_sigqueueinfo=138 rt_tgsigqueueinfo=240 pidfd_open=434 "
    "prlimit64=261 "
    "setpriority=140 ioprio_set=30 sched_setparam=118 sched_setscheduler=119 "
    "sched_setattr=274 sched_setaffinity=122 "
    "move_pages=239 migrate_pages=238 process_mrelease=448 inotify_add_watch=27 "
    "shmget=194 shmat=196 shmctl=195 semget=190 semop=193 semctl=191 semtimedop=192 "
    "msgget=186 msgsnd=189 msgrcv=188 "
    "msgctl=187 mq_open=180 mq_unlink=181 mknodat=33 fchmod=52 fchown=55 fchmodat=53 "
    "fchmodat2=452 fchownat=54 "
    "utimensat=88 setxattr=5 lsetxattr=6 fsetxattr=7 removexattr=14 "
    "lremovexattr=15 fremovexattr=16 setxattrat=463 removexattrat=466 file_setattr=469 capset=91 "
    "openat=56 openat2=437 fcntl=25 copy_file_range=285"
)
# AUDIT_ARCH_* of linux/audit.h, which a seccomp filter compares.
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FIRST_UNKNOWN = 470  # the first number after those judged here (Linux 6.18)

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_SET_CHILD_SUBREAPER = 36
PR_CAP_AMBIENT = 47
# the same number everywhere
_LANDLOCK_CREATE = 444
_LANDLOCK_ADD = 445
_LANDLOCK_RESTRICT = 446


class _Char(_SimpleCData):  # type: ignore[type-arg]  # it is generic for type checkers alone
    _type_ = "c"


class _Int(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "i"


class _Long(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "l"


class _Pair(Array):  # type: ignore[type-arg]
    """struct rlimit."""

    _type_ = _Long
    _length_ = 2


class _Returns(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Int


class _ReturnsLong(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Long


_library = dlopen(None, 0)  # type: ignore[arg-type]  # None: this program itself
_syscall = _ReturnsLong(dlsym(_library, "syscall"))
_prctl = _Returns(dlsym(_library, "prctl"))
_signal = _ReturnsLong(dlsym(_library, "signal"))
_getrlimit = _Returns(dlsym(_library, "getrlimit"))
_setrlimit = _Returns(dlsym(_library, "setrlimit"))


def syscall_numbers(machine: str) -> dict[str, int]:
    """The system call numbers of `x86_64` or `aarch64`. KeyError for another machine: there is no
    filter for it."""
    table = {"x86_64": _X86_64, "aarch64": _AARCH64}[machine]
    return {
        name: int(number) for name, _, number in (entry.partition("=") for entry in table.split())
    }


def _last_error() -> OSError:
    code = get_errno()
    return OSError(code, os.strerror(code))


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """Call the kernel. Raises OSError as the library would."""
    done: int = _syscall(
        _Long(number), *(_Long(each) if isinstance(each, int) else each for each in arguments)
    )
    if done < 0:
        raise _last_error()
    return done


def prctl(option: int, *arguments: int | bytes) -> None:
    """Set a property of this process or thread. Raises OSError."""
    padded = (*arguments, 0, 0, 0, 0)[:4]
    if _prctl(option, *(_Long(each) if isinstance(each, int) else each for each in padded)) != 0:
        raise _last_error()


def reset_signal(number: int) -> None:
    """Give a signal its default action back: a program inherits what is ignored."""
    _signal(number, None)


def set_limit(resource: int, amount: int) -> None:
    """Set the soft and hard limit of this process; never above the hard limit that it already
    has."""
    pair = _Pair()
    _getrlimit(resource, pair)
    most = pair[1] if 0 <= pair[1] < amount else amount  # below 0: no limit
    _setrlimit(resource, _Pair(most, most))


def drop_capabilities(machine: str) -> None:
    """Give up every capability for good, so that uid 0 is but an owner of files."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break  # EINVAL: past the last one; EPERM: an ordinary user, who has none to lose
    header = (0x20080522).to_bytes(8, "little")  # _LINUX_CAPABILITY_VERSION_3, this thread
    syscall(syscall_numbers(machine)["capset"], header, bytes(24))


def landlock_abi() -> int:
    """The version of Landlock in this kernel; 0: none, or switched off."""
    try:
        return syscall(_LANDLOCK_CREATE, None, 0, 1)
    except OSError:
        return 0


_EXECUTE = 1
_WRITE_FILE = 2
_READ_FILE = 4
_READ_DIR = 8
_MAKE_CHAR = 1 << 6
_MAKE_BLOCK = 1 << 11
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15
READ = _EXECUTE | _READ_FILE | _READ_DIR
DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV | READ
WRITE = ((1 << 16) - 1) & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV


def apply_landlock(rules: list[tuple[int, int]], port: int = 0) -> None:
    """Confine this thread and its children to `rules`: (descriptor, READ or WRITE or DEVICE).
    Closes the descriptors.

    Where the kernel can, TCP (but for connections to `port`), abstract sockets and signals to
    processes outside are closed as well. Raises OSError.
    https://docs.kernel.org/userspace-api/landlock.html
    """
    abi = landlock_abi()
    rights = 13 if abi < 2 else 14 if abi < 3 else 15 if abi < 5 else 16
    files = (1 << rights) - 1
    closed = (files, 3 if abi >= 4 else 0, 3 if abi >= 6 else 0)
    attribute = b"".join(
        each.to_bytes(8, "little") for each in closed
    )  # struct landlock_ruleset_attr
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = syscall(_LANDLOCK_CREATE, attribute, size, 0)
    for descriptor, wanted in rules:
        allowed = wanted & files
        if os.fstat(descriptor).st_mode & 0o170000 != 0o040000:
            allowed &= _FILE_RIGHTS
        rule = allowed.to_bytes(8, "little") + descriptor.to_bytes(
            4, "little"
        )  # struct landlock_path_beneath_attr
        syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0)
        os.close(descriptor)
    if port and abi >= 4:
        rule = (2).to_bytes(8, "little") + port.to_bytes(
            8, "little"
        )  # struct landlock_net_port_attr, CONNECT_TCP
        syscall(_LANDLOCK_ADD, ruleset, 2, rule, 0)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    syscall(_LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def apply_seccomp(program: bytes) -> None:
    """Filter the system calls of this thread and its children for good. Raises OSError."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    kind = type("_Filter", (Array,), {"_type_": _Char, "_length_": len(program)})
    held = kind.from_buffer_copy(program)  # type: ignore[attr-defined]
    whole = (len(program) // 8) | addressof(
        held
    ) << 64  # struct sock_fprog: a short, padding, a pointer
    prctl(PR_SET_SECCOMP, 2, whole.to_bytes(16, "little"))
