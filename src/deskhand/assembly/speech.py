"""The engines that the settings name: what listens to recordings, and what speaks."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection

import anyio
from msgspec.structs import replace

from ..agent.protocols import Ears, Transcript
from ..agent.state import State
from ..config.config import Settings
from ..net.client import Net
from ..sandbox.base import Sandbox
from ..speech.base import MAX_SAY_CHARS, OnShare, Recording, Sound, Speech, Use, Voice, ignore_share
from ..speech.local import LocalSpeech
from ..speech.long_recordings import InPieces
from ..speech.providers import ProviderAddress, open_api_speech
from ..speech.settings import OFF, SpeechConfig, find_local_model, is_local
from ..speech.voice_files import VoiceFiles
from ..store.blobs import Blobs
from ..types.errors import ConfigError, SpeechError, StoreError
from ..types.events import Turn
from ..types.messages import Audio

log = logging.getLogger(__name__)

HEAR_S = 3600.0
"""Nobody waits longer, whatever the recording."""
SAY_S = 120.0
SHORT_BYTES = 1 << 20
SHORT_AT_ONCE = 4


class SpeechEngines:
    """They; `run` holds those of this machine. `blobs` holds the recordings, and `speakers` are the
    channels that take voice messages. An `engine` that is given is used, whatever the settings
    say."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        sandbox: Callable[[], Awaitable[Sandbox]],
        net: Net,
        blobs: Blobs,
        speakers: Collection[str] = (),
        *,
        engine: Speech | None = None,
    ) -> None:
        self._settings = settings
        self._sandbox = sandbox
        self._net = net
        self._blobs = blobs
        self._speakers = frozenset(speakers)
        self._engine = engine
        self._locals: dict[str, LocalSpeech] = {}
        self._wanted: list[LocalSpeech] = []
        self._poke = anyio.Event()
        self._lanes: dict[bool, anyio.Semaphore] = {}

    async def run(self) -> None:
        """Hold the engines of this machine while they are used, until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                while True:
                    self._poke = anyio.Event()
                    while self._wanted:
                        tasks.start_soon(self._wanted.pop().run)
                    await self._poke.wait()
        finally:
            self._locals.clear()

    @property
    def config(self) -> SpeechConfig:
        return self._settings().config.speech

    def open(self, use: Use) -> Speech:
        """The engine for this use. Raises ConfigError with the next step."""
        if self._engine is not None:
            return self._engine
        name = self.config.hear if use == "hear" else self.config.say
        if name == OFF:
            raise ConfigError(f"speech.{use} is off: deskhand config set speech.{use} local")
        if is_local(name):
            return self.open_local(find_local_model(name) if use == "hear" else "")
        settings = self._settings()
        own = settings.config.providers.get(name.partition("/")[0])
        address = ProviderAddress(own.base_url, own.key_env) if own else None
        engine = open_api_speech(name, use, settings.environment, address, self._net)
        return InPieces(engine, self._sandbox)

    def open_local(self, model: str = "") -> LocalSpeech:
        """The engine on this machine."""
        if model not in self._locals:
            files = VoiceFiles(self._settings().cache_folder / "speech")
            engine = LocalSpeech(files, self._sandbox, model, self.config.idle_s)
            self._locals[model] = engine
            self._wanted.append(engine)
            self._poke.set()
        return self._locals[model]

    def find_problem(self, use: Use) -> str:
        """Why this does not work as it is set, with what to do; '' where nothing is known
        against it."""
        try:
            engine = self.open(use)
        except ConfigError as error:
            return str(error)
        if not isinstance(engine, LocalSpeech):
            return ""
        language = self.config.language
        if use == "hear":
            return engine.find_hearing_problem(language)
        return engine.find_speaking_problem(Voice(self.config.voice, language))

    async def hear(self, recording: Recording, on_share: OnShare = ignore_share) -> Transcript:
        """What is said in it. Where an engine of a provider fails, the one on this machine is
        asked, if it can hear. Raises SpeechError, ConfigError."""
        language = self.config.language
        engine = self.open("hear")
        try:
            heard = await engine.hear(recording, language, on_share)
        except SpeechError as error:
            here = self.open_local()
            if isinstance(engine, LocalSpeech) or here.find_hearing_problem(language):
                raise
            log.warning("%s could not hear; this machine does instead: %s", engine.name, error)
            engine = here
            heard = await engine.hear(recording, language, on_share)
        return Transcript(
            heard.text, language=heard.language, engine=engine.name, seconds=heard.seconds
        )

    async def say(self, text: str, voice: Voice) -> Sound:
        """These words. Raises SpeechError, also where it is not set up."""
        config = self.config
        wanted = Voice(voice.name or config.voice, voice.language or config.language)
        try:
            with anyio.fail_after(SAY_S):
                return await self.open("say").say(text, wanted)
        except ConfigError as error:
            raise SpeechError(str(error)) from error
        except TimeoutError:
            raise SpeechError(f"it took longer than {SAY_S:.0f} s") from None

    # What a turn needs: see `agent.protocols.Ears`

    async def transcribe(self, audio: Audio, on_share: OnShare) -> Transcript:
        try:
            with anyio.fail_after(HEAR_S):
                async with self._lane_of(audio.blob):
                    data = await self._blobs.get(audio.blob)
                    heard = await self.hear(Recording(data, audio.mime), on_share)
        except (SpeechError, ConfigError, StoreError) as error:
            log.warning("A recording was not heard: %s", error)
            return Transcript(problem=str(error))
        except TimeoutError:
            return Transcript(problem="listening took longer than an hour")
        return replace(heard, shown=self.config.show_heard)

    def _lane_of(self, blob: str) -> anyio.Semaphore:
        """Short recordings do not wait for long ones, and few are in memory at once."""
        is_long = self._blobs.size(blob) > SHORT_BYTES
        return self._lanes.setdefault(is_long, anyio.Semaphore(1 if is_long else SHORT_AT_ONCE))

    def speaks(self, state: State, turn: Turn, text: str) -> bool:
        wanted = state.options.voice
        if wanted == "off" or turn.address.channel not in self._speakers:
            return False
        if len(text) > MAX_SAY_CHARS or self.find_problem("say"):
            return False
        return wanted == "on" or (turn.spoken is not None and self.config.answer_aloud)


_: type[Ears] = SpeechEngines
