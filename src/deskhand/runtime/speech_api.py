"""Implements `web.protocols.SpeechBackend`: what the page may ask of the engines that speak."""

from __future__ import annotations

import anyio.to_thread

from ..assembly.speech import SpeechEngines
from ..channels.spoken_text import render_spoken
from ..speech.base import Sound, Use, Voice
from ..web.protocols import SpeechBackend


class SpeechApi:
    def __init__(self, engines: SpeechEngines) -> None:
        self._engines = engines

    def find_problem(self, use: Use) -> str:
        return self._engines.find_problem(use)

    async def render(self, markdown: str) -> str:
        return await anyio.to_thread.run_sync(render_spoken, markdown)

    async def say(self, words: str, language: str) -> Sound:
        return await self._engines.say(words, Voice(language=language))


_: type[SpeechBackend] = SpeechApi
