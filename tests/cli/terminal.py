"""A real terminal for a real process: a pty on one side, a screen of pyte on the other."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte

# The child takes the terminal as its own, so that it hears of a new size and of a lost line.
_OWN_IT = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


class Screen(pyte.HistoryScreen):
    """Answers when it is asked where the cursor is, as terminals do."""

    reply: Callable[[str], None]

    def write_process_input(self, data: str) -> None:
        self.reply(data)


class Terminal:
    """Runs `argv` and keeps what it shows. `raw` is every byte that it wrote."""

    screen_type: type[Screen] = Screen

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], columns: int = 80, rows: int = 24
    ) -> None:
        self.screen = self.screen_type(columns, rows, history=2000)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._lock = threading.Lock()
        self._master, slave = pty.openpty()
        self.screen.reply = self.type
        self._size(columns, rows)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_IT, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={"TERM": "xterm-256color", **env},
            start_new_session=True,
        )
        os.close(slave)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self.raw += data
                self._stream.feed(data)

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def shown(self) -> str:
        """What can be seen now, without empty lines at the end."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    @property
    def all(self) -> str:
        """What has scrolled away, and what can be seen."""
        with self._lock:
            top = [
                "".join(line[x].data for x in range(self.screen.columns))
                for line in self.screen.history.top
            ]
            return "\n".join(line.rstrip() for line in [*top, *self.screen.display]).rstrip()

    @property
    def reads_lines(self) -> bool:
        """Whether it hands over what is typed line by line, and echoes it, as for a program that
        takes no keys."""
        flags: int = termios.tcgetattr(self._master)[3]
        return bool(flags & termios.ICANON)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode("utf-8", "surrogateescape"))

    def say(self, text: str) -> None:
        """Type a line and send it."""
        self.type(text)
        self.wait_for(text.splitlines()[-1][-20:])
        self.type("\r")

    def wait_for(self, text: str, timeout_s: float = 30.0) -> float:
        """Until it is seen somewhere. Returns how long that took, in seconds."""
        began = time.monotonic()
        while text not in self.all:
            assert time.monotonic() - began < timeout_s, f"no {text!r} in:\n{self.all}"
            time.sleep(0.01)
        return time.monotonic() - began

    def wait_ready(self) -> None:
        """Until the chat takes keys: what is typed sooner is still read by lines, and Enter is
        none."""
        self.wait_for("Write a message.")
        began = time.monotonic()
        while (
            b"\x1b[?2004h" not in self.raw
        ):  # where it asks for pastes to be marked, it has the keyboard
            assert time.monotonic() - began < 30, self.all
            time.sleep(0.01)

    def wait_gone(self, text: str, timeout_s: float = 30.0) -> float:
        """Until it can no longer be seen. It must have been seen: else this would wait for
        nothing."""
        began = time.monotonic()
        assert text.encode() in self.raw, f"never {text!r} in:\n{self.all}"
        while text in self.shown:
            assert time.monotonic() - began < timeout_s, f"still {text!r} in:\n{self.shown}"
            time.sleep(0.01)
        return time.monotonic() - began

    def resize(self, columns: int, rows: int) -> None:
        with self._lock:
            self.screen.resize(rows, columns)
        self._size(columns, rows)

    def wait(self, timeout_s: float = 30.0) -> int:
        """Until it ends by itself. Returns its exit code."""
        code = self.process.wait(timeout_s)
        self._reader.join(1)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._master)
        self._reader.join(1)


DESK = Path(__file__).with_name("desk.py")
