"""Recordings, read in the sandbox by a process for each: whoever has made one learns nothing of
another, and reaches nothing of the machine."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Literal

import anyio
import msgspec
from anyio.lowlevel import RunVar
from msgspec.structs import replace

from ..tools.convert import make_python_command
from ..types.errors import SandboxError, SpeechError
from .base import OGG, Recording, Sound
from .held_process import OpenSandbox

MODULE = "deskhand.speech.recording_main"
LIBRARIES = ("av", "numpy")
INSTALL = "pip install 'deskhand[voice]'"
RATE = 16_000
"""Samples a second, of 16 bits each: what Whisper takes."""
MAX_RECORDING_BYTES = 100 << 20
MAX_S = 3 * 3600.0
TIMEOUT_S = 120.0
MEMORY_BYTES = 1 << 30
MAX_COMPLAINT_BYTES = 2_000
AT_ONCE = 3
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("deskhand_recordings")
WHOLE_S = 3600.0
"""Words that we have spoken are never longer than this."""


class RecordingTask(msgspec.Struct, frozen=True):
    """A piece of at most `piece_s` seconds from sample `begin` on: as samples, or as a file, OGG
    with Opus."""

    form: Literal["samples", "opus"]
    begin: int = 0
    piece_s: float = 300.0


class RecordingPiece(msgspec.Struct, frozen=True):
    """What is told of a piece. `end` is the sample at which it ends, `share` how much of the whole
    that is, `problem` why there is none."""

    end: int = 0
    more: bool = False
    share: float = 1.0
    seconds: float = 0.0
    problem: str = ""


def _get_limiter() -> anyio.CapacityLimiter:
    """Each reader takes memory for a recording, and there are two cores in most machines."""
    try:
        return _limiter.get()
    except LookupError:
        _limiter.set(anyio.CapacityLimiter(AT_ONCE))
        return _limiter.get()


def is_installed() -> bool:
    """Whether recordings can be read here. What does it is never loaded into this process."""
    return all(find_spec(each) is not None for each in LIBRARIES)


async def read_piece(
    recording: Recording, task: RecordingTask, open_sandbox: OpenSandbox
) -> tuple[RecordingPiece, bytes]:
    """A piece of a recording, and what is told of it. Raises SpeechError."""
    if not is_installed():
        raise SpeechError(f"recordings are not read without this: {INSTALL}")
    if len(recording.data) > MAX_RECORDING_BYTES:
        most = MAX_RECORDING_BYTES >> 20
        raise SpeechError(f"the recording has more than {most} MB, and was not read")
    if task.begin / RATE > MAX_S:
        raise SpeechError(f"the recording is longer than {MAX_S / 3600:.0f} hours")
    said = bytearray()
    complained = bytearray()

    def on_output(piece: bytes, is_error: bool) -> None:
        if is_error:
            complained.extend(piece[: MAX_COMPLAINT_BYTES - len(complained)])
        elif len(said) < MAX_RECORDING_BYTES:
            said.extend(piece)

    command = make_python_command(
        MODULE, msgspec.json.encode(task) + b"\n" + recording.data, LIBRARIES
    )
    limited = replace(command, timeout_s=TIMEOUT_S, memory_bytes=MEMORY_BYTES)
    try:
        sandbox = await open_sandbox()
        async with _get_limiter():
            ended = await sandbox.run(limited, on_output)
    except SandboxError as error:
        why = f"recordings are only read in the sandbox: {error}"
        raise SpeechError(f"the recording was not read, because {why}") from error
    head, _, data = bytes(said).partition(b"\n")
    try:
        piece = msgspec.json.decode(head, type=RecordingPiece)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if ended.timeout or ended.limit:
            why = f"it takes more {ended.limit or 'time'} than a recording does"
        else:
            why = complained.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise SpeechError(f"the recording was not read: {why or 'it ended early'}") from None
    if piece.problem:
        raise SpeechError(f"the recording was not read: {piece.problem[:200]}")
    if piece.more and piece.end <= task.begin:
        raise SpeechError("the recording was not read: it has no end")
    return piece, data


async def read_samples(sound: Sound, open_sandbox: OpenSandbox) -> bytes:
    """What was said, as samples. Raises SpeechError."""
    task = RecordingTask("samples", piece_s=WHOLE_S)
    _, data = await read_piece(Recording(sound.data, sound.mime), task, open_sandbox)
    return data


async def encode_as_opus(sound: Sound, open_sandbox: OpenSandbox) -> Sound:
    """The sound as OGG with Opus, which chats take as a voice message. Raises SpeechError."""
    if sound.mime == OGG:
        return sound
    task = RecordingTask("opus", piece_s=WHOLE_S)
    _, data = await read_piece(Recording(sound.data, sound.mime), task, open_sandbox)
    if not data.startswith(b"OggS"):
        raise SpeechError("the words could not be written as Opus")
    return Sound(data)
