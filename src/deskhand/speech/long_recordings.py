"""Long recordings and long answers, heard and said piece by piece: providers take no more than some
minutes, megabytes or sentences at once."""

from __future__ import annotations

from ..types.errors import SpeechError
from .api import ApiSpeech
from .base import MAX_SAY_CHARS, Heard, OnShare, Recording, Sound, Speech, Voice, ignore_share
from .held_process import OpenSandbox
from .recordings import (
    INSTALL,
    RATE,
    RecordingTask,
    encode_as_opus,
    is_installed,
    read_piece,
    read_samples,
)
from .sentences import split_sentences
from .wav import wrap_samples
from .wire import MAX_HEAR_S

SHORT_BYTES = 1 << 20
"""A smaller recording goes as it is: about eight minutes as chats record."""
MAX_WHOLE_BYTES = 24 << 20
"""So much OpenAI and Groq take at once."""


class InPieces:
    """An engine of a provider, for recordings and answers of any length. What it says becomes Opus
    where that can be written here."""

    def __init__(self, engine: ApiSpeech, open_sandbox: OpenSandbox) -> None:
        self._engine = engine
        self._open_sandbox = open_sandbox
        self.name = engine.name

    async def hear(
        self, recording: Recording, language: str = "", on_share: OnShare = ignore_share
    ) -> Heard:
        """See Speech.hear."""
        if len(recording.data) <= SHORT_BYTES and self._engine.max_hear_s >= MAX_HEAR_S:
            return await self._engine.hear(recording, language, on_share)
        if not is_installed():
            if len(recording.data) > MAX_WHOLE_BYTES:
                raise SpeechError(
                    f"recordings of more than {MAX_WHOLE_BYTES >> 20} MB are heard in pieces, and "
                    f"that needs: {INSTALL}"
                )
            return await self._engine.hear(recording, language, on_share)
        return await self._hear_pieces(recording, language, on_share)

    async def _hear_pieces(self, recording: Recording, language: str, on_share: OnShare) -> Heard:
        texts: list[str] = []
        begin = 0
        seconds = 0.0
        while True:
            task = RecordingTask("opus", begin, self._engine.max_hear_s)
            piece, data = await read_piece(recording, task, self._open_sandbox)
            heard = await self._engine.hear(Recording(data), language)
            texts.append(heard.text)
            language = language or heard.language
            seconds += piece.seconds
            on_share(piece.share)
            if not piece.more:
                text = " ".join(each for each in texts if each)
                return Heard(text, language if text else "", seconds)
            begin = piece.end

    async def say(self, text: str, voice: Voice = Voice()) -> Sound:  # noqa: B008 -- it is frozen
        """See Speech.say."""
        if len(text) > MAX_SAY_CHARS:
            raise SpeechError(f"at most {MAX_SAY_CHARS:,} characters are spoken at once")
        pieces = split_sentences(text, self._engine.max_say_chars)
        if len(pieces) > 1:
            return await self._say_pieces(pieces, voice)
        sound = await self._engine.say(text, voice)
        return await encode_as_opus(sound, self._open_sandbox) if is_installed() else sound

    async def _say_pieces(self, pieces: list[str], voice: Voice) -> Sound:
        if not is_installed():
            raise SpeechError(
                f"{self.name} says {self._engine.max_say_chars:,} characters at once, and joining "
                f"them needs: {INSTALL}"
            )
        samples = []
        for piece in pieces:
            sound = await self._engine.say(piece, voice)
            samples.append(await read_samples(sound, self._open_sandbox))
        return await encode_as_opus(wrap_samples(b"".join(samples), RATE), self._open_sandbox)


_: type[Speech] = InPieces
