"""What a sandbox is: it runs one command inside limits, or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from deskhand.sandbox.terminal import Terminal


class Mount(msgspec.Struct, frozen=True, gc=False):
    """A folder of the host that the command may see at the same path, read-only unless `write`."""

    path: str
    write: bool = False


class SandboxCommand(msgspec.Struct, frozen=True):
    """A program to run. `argv` is never given to a shell by us. `cwd` lies beneath a mount.

    `mounts` are all that it sees of the host beside the system's programs. `env` is added to a
    clean environment. `memory_bytes` and `processes` (threads count) are for all that it starts
    together, `file_bytes` for each file. `egress` is the socket of a proxy on the host, its only
    way out: HTTP programs find it in their environment. What lies beside it as `ca.pem` is what
    they trust. Empty: no network at all. With a `terminal` it runs in that: its output is one
    stream, and `stdin` is what is typed. `stdin_fd` is a descriptor of the caller, which it reads
    from instead of `stdin`; -1 for none.
    """

    argv: tuple[str, ...]
    cwd: str
    mounts: tuple[Mount, ...]
    env: tuple[tuple[str, str], ...] = ()
    stdin: bytes = b""
    timeout_s: float = 120.0
    memory_bytes: int = 2 << 30
    file_bytes: int = 1 << 30
    processes: int = 256
    egress: str = ""
    terminal: Terminal | None = None
    stdin_fd: int = -1


class Exit(msgspec.Struct, frozen=True, gc=False):
    """How it ended. `code` is None when it was killed: by its `timeout`, by a `limit`, or by a
    signal (`signal`)."""

    code: int | None
    timeout: bool = False
    signal: int = 0
    seconds: float = 0.0
    limit: Literal["", "memory", "processes"] = ""


class Sandbox(Protocol):
    """Runs commands so that they can neither reach the network nor read secrets nor outlive their
    call."""

    @property
    def name(self) -> str:
        """What `doctor` and the audit trail call it."""
        ...

    @property
    def has_egress(self) -> bool:
        """Whether a command may have a way out here: `SandboxCommand.egress`."""
        ...

    async def run(self, command: SandboxCommand, output: Callable[[bytes, bool], None]) -> Exit:
        """Run to the end, or to the timeout, when everything that it started is killed. Cancelling
        kills it too.

        `output` gets each piece as it comes, True for stderr; it must not block. Raises
        SandboxError when the command cannot be run as asked (its folders), SandboxUnavailable when
        no safe way to run exists here: nothing is ever run bare.
        """
        ...
