"""Engines of providers: a request, its answer, and why it did not work."""

from __future__ import annotations

from ..net.client import Fetched, Net, NetLimits, OutboundRequest
from ..types.errors import NetError, SpeechError
from ..types.messages import clean_text
from .base import MAX_SAY_CHARS, Heard, OnShare, Recording, Sound, Speech, Voice, ignore_share
from .wire import SpeechProvider, SpeechWire

LIMITS = NetLimits(body_bytes=30_000_000, total_s=300.0, idle_s=120.0, redirects=0)
"""An address that leads elsewhere is not followed: the key would go along."""
_ERROR_CHARS = 300


class ApiSpeech:
    """An engine of a provider. Recordings and words go to it alone."""

    def __init__(
        self, provider: SpeechProvider, wire: SpeechWire, net: Net, limits: NetLimits = LIMITS
    ) -> None:
        self._provider = provider
        self._wire = wire
        self._net = net
        self._limits = limits
        self.max_say_chars = min(MAX_SAY_CHARS, provider.max_say_chars)
        self.max_hear_s = provider.max_hear_s
        self.name = f"{provider.name}/{provider.model}"

    async def hear(
        self, recording: Recording, language: str = "", on_share: OnShare = ignore_share
    ) -> Heard:
        """See Speech.hear."""
        if not recording.data:
            raise SpeechError("the recording is empty: record it again")
        request = self._wire.make_hear_request(self._provider, recording, language)
        fetched = await self._send(request)
        try:
            heard = self._wire.read_heard(fetched)
        except ValueError as error:
            raise SpeechError(f"{self.name} gave an answer that is no transcript") from error
        on_share(1.0)
        return heard

    async def say(self, text: str, voice: Voice = Voice()) -> Sound:  # noqa: B008 -- it is frozen
        """See Speech.say."""
        text = clean_text(text)
        if not text.strip():
            raise SpeechError("there is nothing to say: the text is empty")
        most = self.max_say_chars
        if len(text) > most:
            raise SpeechError(f"{self.name} speaks at most {most:,} characters at once")
        fetched = await self._send(self._wire.make_say_request(self._provider, text, voice))
        try:
            return self._wire.read_sound(fetched)
        except ValueError as error:
            raise SpeechError(f"{self.name} gave an answer that is no sound") from error

    async def _send(self, request: OutboundRequest) -> Fetched:
        # The word of whoever sets it: it may stand on this machine.
        net = self._net.with_allowed_host(request.url.host, request.url.port)
        try:
            fetched = await net.send(request, self._limits)
        except NetError as error:
            raise SpeechError(f"{self.name} could not be asked: {error}") from error
        if fetched.status == 200:
            return fetched
        raise SpeechError(f"{self.name} {self._describe_refusal(fetched)}")

    def _describe_refusal(self, fetched: Fetched) -> str:
        if fetched.status in (401, 403):
            return f"did not take the key ({fetched.status}): check it, or choose another engine"
        if fetched.status == 429:
            return "asks us to wait: its limit is reached"
        # The key is taken out before anything is cut off: a part of it would not be found.
        said = clean_text(fetched.body.decode(errors="replace"))
        if self._provider.key:
            said = said.replace(self._provider.key, "…")
        return f"refused ({fetched.status}): {' '.join(said.split())[:_ERROR_CHARS]}"


_: type[Speech] = ApiSpeech
