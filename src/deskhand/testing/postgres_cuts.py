"""A way to a PostgreSQL server that breaks when it hurts most: at a COMMIT, before its answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

COMMIT = b"Q\x00\x00\x00\x0bCOMMIT\x00"
"""The message that asks for it, as the protocol has it: see "Message Formats" in the manual."""
BUFFER = 65_536


class CuttingProxy:
    """Passes on what comes to a socket in `folder`. While `cuts` is above 0 the connection of each
    COMMIT is closed without an answer; every second COMMIT has not even reached the server."""

    def __init__(self, folder: Path, server: Path) -> None:
        self._server = server
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / server.name))
        self._listening.listen(64)
        self.cuts = 0
        self.cut = 0

    def run(self) -> None:
        """Accept connections until it is closed."""
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(self._server))
            lost = threading.Event()
            for run, one, other in (
                (self._pass_on, client, server),
                (self._answer, server, client),
            ):
                threading.Thread(target=run, args=(one, other, lost), daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _pass_on(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(BUFFER):
                if self.cuts > 0 and COMMIT in data:
                    self.cuts -= 1
                    self.cut += 1
                    lost.set()
                    if self.cut % 2 == 0:
                        break
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _answer(self, server: socket.socket, client: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(BUFFER):
                if lost.is_set():
                    break
                client.sendall(data)
        for each in (client, server):
            with suppress(OSError):
                # Another thread waits for it, so `close` is not enough.
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def cutting(folder: Path, server: Path) -> Iterator[CuttingProxy]:
    """`folder` is where clients look for the socket; `server` is that of the server."""
    proxy = CuttingProxy(folder, server)
    threading.Thread(target=proxy.run, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()
