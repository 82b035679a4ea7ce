"""A real mosquitto on a loopback port, for as long as it is needed."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

PROGRAM = "/usr/sbin/mosquitto"


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@asynccontextmanager
async def mosquitto(folder: Path, port: int, *lines: str) -> AsyncIterator[None]:
    """It keeps what it knows in this folder, so that it can be started again."""
    file = folder / "mosquitto.conf"
    said = [
        f"listener {port} 127.0.0.1",
        "persistence true",
        f"persistence_location {folder}/",
        "user root",
    ]
    file.write_text("\n".join([*said, *(lines or ("allow_anonymous true",)), ""]))
    quiet = subprocess.DEVNULL
    async with await anyio.open_process(
        [PROGRAM, "-c", str(file)], stdout=quiet, stderr=quiet
    ) as running:
        try:
            with anyio.fail_after(20):
                while not _answers(port):
                    if running.returncode is not None:
                        raise RuntimeError("mosquitto has ended by itself")
                    await anyio.sleep(0.02)
            yield
        finally:
            running.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0
