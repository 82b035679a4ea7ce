"""The program that tries to break out, inside, once after start: it prints one JSON object for each
attempt.

Where it gets through it does no harm: it opens a door and changes nothing behind it but its own
canaries.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_EXPECTED_ENV = {
    "LD_LIBRARY_PATH",
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "PWD",
    "TERM",
    "USER",
    "LC_CTYPE",
}


def main(facts_json: str) -> None:
    """Make every attempt. `facts` names what lies outside: canary files, listeners, a process."""
    facts: dict[str, str] = json.loads(facts_json)
    for name, attempt in _ATTEMPTS.items():
        try:
            escaped = attempt(facts)
        except (OSError, ValueError) as error:
            escaped = ""
            detail = f"{type(error).__name__}: {error}"
        else:
            detail = escaped or "nothing there"
        sys.stdout.write(json.dumps({"name": name, "ok": not escaped, "detail": detail}) + "\n")
    sys.stdout.flush()


def _read(path: str) -> str:
    found = Path(path).read_bytes()
    return f"{path} was read" if found else ""


def _secret_by_dots(facts: dict[str, str]) -> str:
    return _read(os.path.relpath(facts["secret"], facts["workspace"]))


def _secret_by_link(facts: dict[str, str]) -> str:
    link = Path(facts["workspace"]) / "link"
    link.symlink_to(facts["secret"])
    return _read(str(link))


def _secret_by_listing(facts: dict[str, str]) -> str:
    return ", ".join(
        str(each)
        for each in Path(facts["secret"]).parent.iterdir()
        if each == Path(facts["secret"])
    )


def _shadow(_: dict[str, str]) -> str:
    return _read("/etc/shadow")


def _connect(family: int, kind: int, address: object) -> str:
    with socket.socket(family, kind) as connection:
        connection.settimeout(0.3)
        connection.connect(address)  # type: ignore[arg-type]  # one of three shapes, by the family
        connection.send(b"out")
    return f"a packet left for {address}"


def _tcp(facts: dict[str, str]) -> str:
    return _connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", int(facts["tcp"])))


def _udp(facts: dict[str, str]) -> str:
    """Another network's loopback accepts the packet too: what counts is whether it came, which the
    host knows."""
    try:
        _connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", int(facts["udp"])))
    except OSError:
        return ""
    return "" if _has_own_network() else "a datagram left"


def _has_own_network() -> bool:
    names = [name for _, name in socket.if_nameindex()]
    return names == ["lo"]


def _metadata(_: dict[str, str]) -> str:
    return _connect(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80))


def _unix(facts: dict[str, str]) -> str:
    return _connect(socket.AF_UNIX, socket.SOCK_STREAM, facts["unix"])


def _abstract(facts: dict[str, str]) -> str:
    return _connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + facts["abstract"])


def _packet_socket(_: dict[str, str]) -> str:
    opened = []
    for family in (socket.AF_NETLINK, socket.AF_PACKET, 38, 40):  # 38: AF_ALG, 40: AF_VSOCK
        try:
            socket.socket(family, socket.SOCK_RAW).close()
            opened.append(str(int(family)))
        except OSError:
            continue
    return f"socket families {', '.join(opened)} open" if opened else ""


def _environment(facts: dict[str, str]) -> str:
    found = os.environ  # noqa: TID251  whether it is clean is the question
    strange = sorted(set(found) - _EXPECTED_ENV)
    if not strange and facts["canary"] not in str(found):
        return ""
    return f"variables {', '.join(strange)}"


def _processes(facts: dict[str, str]) -> str:
    found = [each.name for each in Path("/proc").iterdir() if each.name.isdigit()]
    for pid in found:
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if facts["canary"].encode() in environ:
            return f"the environment of process {pid} was read"
    return f"{len(found)} processes are seen" if len(found) > 8 else ""


def _environ_of_parent(facts: dict[str, str]) -> str:
    found = Path(f"/proc/{facts['bystander']}/environ").read_bytes()
    return (
        "the environment of a process outside was read" if facts["canary"].encode() in found else ""
    )


def _signal_out(facts: dict[str, str]) -> str:
    pid = int(facts["bystander"])
    try:
        elsewhere = str(Path("/proc/self/ns/pid").readlink()) != facts["pid_namespace"]
    except OSError:
        elsewhere = False
    if elsewhere:
        return ""  # its number means another process here, or none
    os.kill(pid, signal.SIGCONT)
    return f"process {pid} was signalled"


def _user_namespace(_: dict[str, str]) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    return "a user namespace was made" if libc.unshare(_CLONE_NEWUSER) == 0 else ""


def _write(path: Path) -> str:
    path.write_text("x")
    return f"{path} was written"


def _write_secret(facts: dict[str, str]) -> str:
    return _write(Path(facts["secret"]))


def _write_system(_: dict[str, str]) -> str:
    """A file without a name, gone when it is closed: nothing is left behind where this works."""
    tries = ("/etc", "/usr/bin", "/dev", "/", "/run", "/var")
    return ", ".join(
        folder for folder in tries if _succeeds(partial(_open, folder, os.O_TMPFILE | os.O_WRONLY))
    )


def _sysctl(_: dict[str, str]) -> str:
    """Opened for writing, and not written."""
    _open("/proc/sys/kernel/core_pattern", os.O_WRONLY)
    return "the kernel's settings could be changed"


def _open(path: str, flags: int) -> None:
    os.close(os.open(path, flags, 0o600))


def _change_mode(facts: dict[str, str]) -> str:
    Path(facts["secret"]).chmod(0o666)
    return "the mode of a file outside was changed"


def _succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _write_workspace(facts: dict[str, str]) -> str:
    path = Path(facts["workspace"]) / "inside"
    return (
        ""
        if _succeeds(lambda: _write(path)) and path.read_text() == "x"
        else "the workspace cannot be written"
    )


def _privileges(_: dict[str, str]) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(39, 0, 0, 0, 0) != 1:  # PR_GET_NO_NEW_PRIVS
        return "it may gain privileges"
    return "it has no filter" if libc.prctl(21, 0, 0, 0, 0) != 2 else ""  # PR_GET_SECCOMP


def _file_size(facts: dict[str, str]) -> str:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    path = Path(facts["workspace"]) / "large"
    with path.open("wb") as file:
        os.ftruncate(file.fileno(), int(facts["file_bytes"]) + 1)
    return "a file outgrew its limit"


_ATTEMPTS: dict[str, Callable[[dict[str, str]], str]] = {
    "a secret outside": lambda facts: _read(facts["secret"]),
    "a secret outside, by ..": _secret_by_dots,
    "a secret outside, by a link": _secret_by_link,
    "the folder of a secret": _secret_by_listing,
    "the system's password file": _shadow,
    "TCP to a listener of this machine": _tcp,
    "UDP out": _udp,
    "the cloud's metadata address": _metadata,
    "a Unix socket outside": _unix,
    "an abstract socket outside": _abstract,
    "other socket families": _packet_socket,
    "a clean environment": _environment,
    "other processes": _processes,
    "the environment of another process": _environ_of_parent,
    "a signal to another process": _signal_out,
    "a new user namespace": _user_namespace,
    "writing outside": _write_secret,
    "writing to the system": _write_system,
    "the kernel's settings": _sysctl,
    "changing a mode outside": _change_mode,
    "writing in the workspace": _write_workspace,
    "no new privileges": _privileges,
    "the limit on file sizes": _file_size,
}


if __name__ == "__main__":
    main(sys.argv[1])
