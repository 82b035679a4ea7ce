"""espeak-ng, the small program that speaks a hundred languages, plainly: what speaks where nothing
better is here. https://github.com/espeak-ng/espeak-ng/blob/master/src/espeak-ng.1.ronn
"""

from __future__ import annotations

import re
import shutil

from ..sandbox.base import SandboxCommand
from ..types.errors import SandboxError, SpeechError
from .base import WAV, Sound, Voice
from .held_process import OpenSandbox

PROGRAM = "espeak-ng"
INSTALL = "sudo apt-get install espeak-ng"
TIMEOUT_S = 60.0
MAX_SOUND_BYTES = 64 << 20
_CODE = re.compile(r"[a-z]{2,3}([-+][A-Za-z0-9]{1,12}){0,3}")
_VOICE = re.compile(r"[A-Za-z][A-Za-z0-9+_-]{0,40}")


def is_installed() -> bool:
    """Whether the program is here."""
    return shutil.which(PROGRAM) is not None


def may_be_voice(name: str) -> bool:
    """Whether this can be one of its voices, which are called like languages; '' is the usual
    one."""
    return not name or bool(_CODE.fullmatch(name))


async def say_with_espeak(text: str, voice: Voice, open_sandbox: OpenSandbox) -> Sound:
    """These words as WAV. Raises SpeechError."""
    program = shutil.which(PROGRAM)
    if program is None:
        raise SpeechError(f"{PROGRAM} is not installed: {INSTALL}")
    name = voice.name or voice.language or "en"
    if not _VOICE.fullmatch(name):
        raise SpeechError(f"{PROGRAM} has no voice {name[:60]!r}")
    said = bytearray()
    complained = bytearray()

    def on_output(piece: bytes, is_error: bool) -> None:
        held = complained if is_error else said
        if len(held) < MAX_SOUND_BYTES:
            held.extend(piece)

    command = SandboxCommand(
        argv=(program, "-v", name, "--stdin", "--stdout"),
        cwd="/",
        mounts=(),
        stdin=text.encode("utf-8", "replace"),
        timeout_s=TIMEOUT_S,
        processes=16,
    )
    try:
        sandbox = await open_sandbox()
        ended = await sandbox.run(command, on_output)
    except SandboxError as error:
        raise SpeechError(f"{PROGRAM} did not start: {error}") from error
    if ended.code != 0 or not said.startswith(b"RIFF"):
        why = complained.decode(errors="replace").strip()[:200] or f"it ended with {ended.code}"
        raise SpeechError(f"{PROGRAM} could not say it: {why}")
    return Sound(bytes(said), WAV)
