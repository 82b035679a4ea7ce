"""Starts a Chromium in the sandbox: it speaks over a pipe, and nothing goes out but through the
guarded proxy."""

from __future__ import annotations

from pathlib import Path

from ...sandbox.base import Mount, SandboxCommand
from ...sandbox.supervisor import RELAY_PORT
from ...tools.documents.browser import CONFINED_FLAGS

LIFE_S = 24 * 3600.0
MEMORY_BYTES = 3 << 30
FILE_BYTES = 512 << 20
MAX_PROCESSES = 600
"""Threads count, and a browser has many."""
WIDTH, HEIGHT = 1280, 900
UPLOADS, DOWNLOADS = "uploads", "downloads"
"""Folders through which files go and come. It writes in the second alone."""

_FLAGS = (
    "--user-data-dir=/tmp/profile",
    "--disk-cache-size=33554432",
    f"--window-size={WIDTH},{HEIGHT}",
    "--hide-scrollbars",
    # Without it, a click before the first picture of a page is dropped, and nobody is told.
    # https://github.com/microsoft/playwright/issues/6100
    "--allow-pre-commit-input",
    # All frames of a page are in one process, so that they are one tree. What keeps pages from
    # this machine is our sandbox, and from each other's accounts that each conversation has a
    # browser of its own.
    "--disable-site-isolation-trials",
    "--renderer-process-limit=4",
)
JOIN_PIPES = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null'
"""For a shell: Chromium reads commands from descriptor 3 and writes to 4."""


def make_command(program: str, exchange: Path, egress: str) -> SandboxCommand:
    """The browser, which sees the two folders in `exchange` on the host."""
    features = "IsolateOrigins,site-per-process"
    flags = [_add_disabled(each, features) for each in (*CONFINED_FLAGS, *_FLAGS)]
    proxy = f"--proxy-server=http://127.0.0.1:{RELAY_PORT}"
    beside = () if program.startswith("/usr/") else (Mount(str(Path(program).parent)),)
    return SandboxCommand(
        argv=("/bin/sh", "-c", JOIN_PIPES, "sh", program, *flags, proxy, "about:blank"),
        cwd=str(exchange / DOWNLOADS),
        mounts=(
            Mount(str(exchange / UPLOADS)),
            Mount(str(exchange / DOWNLOADS), write=True),
            *beside,
        ),
        env=(("DBUS_SESSION_BUS_ADDRESS", "disabled:"), ("DBUS_SYSTEM_BUS_ADDRESS", "disabled:")),
        timeout_s=LIFE_S,
        memory_bytes=MEMORY_BYTES,
        file_bytes=FILE_BYTES,
        processes=MAX_PROCESSES,
        egress=egress,
    )


def _add_disabled(flag: str, features: str) -> str:
    """Chromium heeds the last such list alone."""
    return f"{flag},{features}" if flag.startswith("--disable-features=") else flag
