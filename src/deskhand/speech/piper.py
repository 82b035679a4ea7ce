"""Piper, which speaks with a voice of its own: a program under the GPL, run unchanged as a process
in the sandbox. It takes a line of text, writes a WAV file, and says where.

https://github.com/OHF-Voice/piper1-gpl/blob/main/docs/CLI.md
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

import anyio.to_thread

from ..sandbox.base import Mount, SandboxCommand
from ..tools.convert import find_python
from ..types.errors import SpeechError
from .base import WAV, Sound
from .held_process import IDLE_S, LIFE_S, HeldProcess, OpenSandbox

LIBRARIES = ("onnxruntime", "numpy")
MEMORY_BYTES = 2 << 30
FILE_BYTES = 256 << 20
THREADS = 96
SILENCE_S = 120.0
_WROTE = re.compile(rb"Wrote (/\S+\.wav)\s*$")
# Its messages go to stderr; here they are the answer.
_START = (
    "import sys, os, runpy; os.dup2(1, 2); folders = sys.argv[1].split(':');"
    " sys.path[:0] = folders; sys.argv = ['piper', *sys.argv[2:]]; runpy.run_module('piper',"
    " run_name='__main__')"
)


class PiperProcess:
    """Piper with one voice, an ONNX file beside its JSON. `run` keeps it."""

    def __init__(
        self, program: Path, voice: Path, sandbox: OpenSandbox, idle_s: float = IDLE_S
    ) -> None:
        self._program = program
        self._voice = voice
        self._scratch = Path()
        self.held = HeldProcess("speaking", self._make_command, sandbox, idle_s)

    async def run(self) -> None:
        """Hold it whenever it is wanted, until cancelled."""
        self._scratch = Path(tempfile.mkdtemp(prefix="deskhand-piper-"))
        try:
            await self.held.run()
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _make_command(self) -> SandboxCommand:
        python = find_python(LIBRARIES)
        folders = ":".join((str(self._program), *python.libraries))
        settings = ("-m", str(self._voice), "-d", str(self._scratch), "--sentence-silence", "0.2")
        return SandboxCommand(
            argv=(python.program, "-I", "-S", "-B", "-u", "-c", _START, folders, *settings),
            cwd=str(self._scratch),
            mounts=(
                *python.mounts,
                Mount(str(self._program)),
                Mount(str(self._voice.parent)),
                Mount(str(self._scratch), write=True),
            ),
            timeout_s=LIFE_S,
            memory_bytes=MEMORY_BYTES,
            file_bytes=FILE_BYTES,
            processes=THREADS,
        )

    async def say(self, text: str) -> Sound:
        """These words as WAV. Raises SpeechError."""
        line = " ".join(text.split())
        if not line:
            raise SpeechError("there is nothing to say")
        path = await self.held.ask(line.encode("utf-8", "replace"), _find_written, SILENCE_S)
        if path.parent != self._scratch:
            raise SpeechError("piper wrote elsewhere than it was told to")
        try:
            return Sound(await anyio.to_thread.run_sync(_read_file, path), WAV)
        except OSError as error:
            raise SpeechError(f"piper wrote no sound: {error.strerror}") from error
        finally:
            path.unlink(missing_ok=True)


def _read_file(path: Path) -> bytes:
    """Not what a link leads to: the process writes beside it."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(path, flags), "rb") as file:
        return file.read(FILE_BYTES)


def _find_written(line: bytes) -> Path | None:
    found = _WROTE.search(line)
    return Path(found[1].decode(errors="replace")) if found else None
