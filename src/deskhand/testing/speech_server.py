"""Providers that hear and speak, on loopback: OpenAI, Groq, Deepgram, ElevenLabs, Google, Sarvam,
and a server of the person's own that has OpenAI's interface.

They are stricter than the real ones: an unknown field, a missing header or a wrong form is refused,
in the provider's own form of an error. What they answer is what the documentation says that the
wires name; the official clients of the providers are the judges.
"""

from __future__ import annotations

from typing import Literal

import anyio
import msgspec
from aiohttp import web  # noqa: TID251 -- loopback

from .speech_dialects import (
    ERRORS,
    AskedSpeech,
    Refusal,
    answer_deepgram,
    answer_elevenlabs,
    answer_google,
    answer_openai,
    answer_sarvam,
)
from .speech_sounds import SpokenSounds

Provider = Literal["openai", "groq", "own", "deepgram", "elevenlabs", "google", "sarvam"]
BASES: dict[Provider, str] = {
    "openai": "/openai/v1",
    "groq": "/groq/openai/v1",
    "own": "/own/v1",
    "deepgram": "/deepgram",
    "elevenlabs": "/elevenlabs",
    "google": "/google/v1beta",
    "sarvam": "/sarvam",
}
"""What stands for the base URL of each."""
HUGE_BYTES = 40_000_000


class SpeechFault(msgspec.Struct, frozen=True):
    """What every request gets. With `status` it is that answer with this body; `kind` is something
    that no answer is: silence, a body cut off in the middle, bytes without a meaning, more bytes
    than anybody wants, or another address."""

    kind: Literal["answer", "hang", "cut", "nonsense", "huge", "redirect"] = "answer"
    status: int = 200
    body: bytes = b""


class SpeechServer:
    """Enter it to listen; `url(provider)` is the base URL of each. `key` is the one that they take,
    `sounds` knows what is said in a recording. `asked` are the requests that came, `elsewhere`
    counts those that followed a redirect. While `fault` is set, it is all that anybody gets."""

    def __init__(self) -> None:
        self.key = "sk-speech-0123456789abcdef"
        self.port = 0
        self.fault: SpeechFault | None = None
        self.asked: list[AskedSpeech] = []
        self.elsewhere = 0
        self.sounds = SpokenSounds()
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> SpeechServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; again on the same port after `stop`."""
        app = web.Application(client_max_size=100 << 20)
        app.router.add_route("*", "/elsewhere", self._arrive_elsewhere)
        app.router.add_route("*", "/{rest:.*}", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Nobody answers any more."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def url(self, provider: Provider) -> str:
        return f"http://127.0.0.1:{self.port}{BASES[provider]}"

    # ------------------------------------------------------------------ answering

    async def _arrive_elsewhere(self, request: web.Request) -> web.Response:
        self.elsewhere += 1
        return web.Response(text="you should not have come")

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        provider = _find_provider(request.path)
        if provider is None:
            return web.json_response({"error": "nothing is here"}, status=404)
        try:
            asked = await _read_request(request, provider)
            self.asked.append(asked)
            if self.fault is not None:
                return await self._fail(request, self.fault)
            method = request.path.removeprefix(f"{BASES[provider]}/")
            if request.method != "POST":
                raise ERRORS[provider](405, "method_not_allowed", "Not allowed to do that here.")
            match provider:
                case "deepgram":
                    return answer_deepgram(asked, method, self.key, self.sounds)
                case "elevenlabs":
                    return answer_elevenlabs(asked, method, self.key, self.sounds)
                case "google":
                    return answer_google(asked, method, self.key, self.sounds)
                case "sarvam":
                    return answer_sarvam(asked, method, self.key, self.sounds)
                case _:
                    return answer_openai(asked, method, self.key, self.sounds)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.status)

    async def _fail(self, request: web.Request, fault: SpeechFault) -> web.StreamResponse:
        match fault.kind:
            case "hang":
                await anyio.sleep_forever()
            case "nonsense":
                return web.Response(body=b"\x00\xff{]", content_type="application/json")
            case "redirect":
                return web.Response(status=307, headers={"Location": "/elsewhere"})
            case "huge" | "cut":
                return await _send_without_end(request, cut=fault.kind == "cut")
        return web.Response(status=fault.status, body=fault.body, content_type="application/json")


def _find_provider(path: str) -> Provider | None:
    for provider, base in BASES.items():
        if path.startswith(f"{base}/"):
            return provider
    return None


async def _read_request(request: web.Request, provider: Provider) -> AskedSpeech:
    headers = {name.lower(): value for name, value in request.headers.items()}
    fields: dict[str, str] = {}
    file = body = b""
    file_name = ""
    if request.content_type == "multipart/form-data":
        for name, value in (await request.post()).items():
            if isinstance(value, web.FileField) and name == "file":
                with value.file:
                    file = value.file.read()
                file_name = value.filename
            else:
                fields[name] = str(value)
    else:
        body = await request.read()
    return AskedSpeech(
        provider=provider,
        path=request.path,
        query=dict(request.query),
        headers=headers,
        fields=fields,
        file=file,
        file_name=file_name,
        body=body,
    )


async def _send_without_end(request: web.Request, cut: bool) -> web.StreamResponse:
    """More than anybody takes, or the beginning of it and then nothing."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = HUGE_BYTES
    await response.prepare(request)
    piece = b'{"text": "' + b"a" * 100_000
    if cut:
        await response.write(piece)
        if request.transport is not None:
            request.transport.abort()
        return response
    for _ in range(HUGE_BYTES // len(piece)):
        await response.write(piece)
    return response
