"""Whether a model sees pictures: asked of its server at the first picture, where it tells. Where a
model does not see, its answer begins with that, so that nobody believes that it looked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from urllib.parse import quote, urlsplit

import aiohttp  # noqa: TID251 -- servers of models
import anyio
import msgspec

from ..types.messages import Image, Message, Text, ToolCall
from .base import Item, Model, Reply, Request, TextDelta, is_selective
from .settings import ModelSpec

ASK_S = 3.0
ANSWER_BYTES = 8 << 20
"""OpenRouter lists all of its models in one answer."""
OPENROUTER = "openrouter"


async def detect_vision(spec: ModelSpec) -> bool | None:
    """What the model's server says of it; None where it says nothing.

    Ollama: https://github.com/ollama/ollama/blob/main/docs/api.md#show-model-information
    (`capabilities`); LM Studio: https://lmstudio.ai/docs/app/api/endpoints/rest (`type`: vlm);
    llama.cpp's server: GET /props (`modalities`); OpenRouter:
    https://openrouter.ai/docs/api-reference/list-available-models
    (`architecture.input_modalities`).
    """
    address = urlsplit(spec.base_url)
    root = f"{address.scheme}://{address.netloc}"
    name = spec.name
    found: list[bool] = []

    async def ask(
        method: str,
        url: str,
        read: Callable[[Any], bool | None],
        body: dict[str, str] | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {spec.key}"} if spec.key else {}
        try:
            async with session.request(
                method, url, json=body, headers=headers, allow_redirects=False
            ) as response:
                if response.status != 200:
                    return
                said = read(msgspec.json.decode(await response.content.read(ANSWER_BYTES)))
        except (
            aiohttp.ClientError,
            OSError,
            ValueError,
            TypeError,
            AttributeError,
            KeyError,
            TimeoutError,
            RecursionError,
        ):
            return  # it is another kind of server
        if said is not None:
            found.append(said)

    timeout = aiohttp.ClientTimeout(total=ASK_S)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        anyio.create_task_group() as tasks,
    ):
        if spec.provider == OPENROUTER:
            tasks.start_soon(
                ask,
                "GET",
                f"{spec.base_url.rstrip('/')}/models",
                lambda told: _parse_openrouter(told, name),
            )
        else:
            tasks.start_soon(ask, "POST", f"{root}/api/show", _parse_ollama, {"model": name})
            tasks.start_soon(
                ask, "GET", f"{root}/api/v0/models/{quote(name, safe='/')}", _parse_lm_studio
            )
            tasks.start_soon(ask, "GET", f"{root}/props", _parse_llama_cpp)
    return any(found) if found else None


def _parse_ollama(told: Any) -> bool | None:
    return "vision" in told["capabilities"]


def _parse_lm_studio(told: Any) -> bool | None:
    return bool(told["type"] == "vlm")


def _parse_llama_cpp(told: Any) -> bool | None:
    return bool(told["modalities"]["vision"])


def _parse_openrouter(told: Any, name: str) -> bool | None:
    for each in told["data"]:
        if each["id"] == name:
            return "image" in each["architecture"]["input_modalities"]
    return None


DetectVision = Callable[[], Awaitable[bool | None]]
"""Finds out whether a model sees; None: nobody can tell."""


class Sighted:
    """A Model of which it is not known that it sees. `ask` finds that out at the first picture,
    `seeing` opens it as one that does."""

    def __init__(
        self,
        blind: Model,
        name: str,
        ask: DetectVision | None = None,
        seeing: Callable[[], Model] | None = None,
    ) -> None:
        self.inner = blind
        self._name = name
        self._ask = ask
        self._seeing = seeing
        self._sees = False
        self.selective = is_selective(blind)

    def reply(self, request: Request) -> AsyncIterator[Item]:
        """See Model.reply."""
        if self._sees or not request.encoded.look_through(request.messages).has_pictures:
            return self.inner.reply(request)
        return self._reply_unseeing(request)

    async def _reply_unseeing(self, request: Request) -> AsyncGenerator[Item, None]:
        await self._find_out(request)
        unseen = self._list_unseen(request)
        note = render_blind_note(self._name, unseen) if unseen else ""
        if note:
            yield TextDelta(note)
        pieces = self.inner.reply(request)
        async with aclosing(pieces):  # type: ignore[type-var]
            async for item in pieces:
                yield _prepend_note(note, item) if note and isinstance(item, Reply) else item

    async def _find_out(self, request: Request) -> None:
        """Ask whether the model sees, once, at the first picture."""
        if self._ask is None or not request.encoded.look_through(request.messages).has_pictures:
            return
        ask = self._ask
        self._ask = None
        if await ask() and self._seeing is not None:
            self.inner = self._seeing()
            self._sees = True

    def _list_unseen(self, request: Request) -> list[str]:
        """The pictures of what a person said last, where the model does not see them."""
        last = request.messages[-1].message if request.messages else None
        if last is None or last.role != "user" or self._sees:
            return []
        return picture_names(last)

    async def aclose(self) -> None:
        """End what the model holds."""
        if (close := getattr(self.inner, "aclose", None)) is not None:
            await close()


def picture_names(message: Message) -> list[str]:
    """The names of a message's pictures."""
    return [part.name or "the picture" for part in message.parts if isinstance(part, Image)]


def render_blind_note(model: str, unseen: list[str]) -> str:
    """What a person is told whose pictures a model does not see."""
    named = ", ".join(unseen[:3])
    if len(unseen) > 3:
        named = f"{named} and {len(unseen) - 3} more"
    provider = model.partition("/")[0]
    return (
        f"(I could not see {named}: {model} does not accept pictures. Choose a model that does "
        f"with /model; if this one does, set providers.{provider}.vision to true.)\n\n"
    )


def _prepend_note(note: str, reply: Reply) -> Reply:
    """The reply with the note before its words."""
    parts = reply.message.parts
    texts = [at for at, part in enumerate(parts) if isinstance(part, Text)]
    calls = [at for at, part in enumerate(parts) if isinstance(part, ToolCall)]
    if texts:
        at = texts[0]
        said = parts[at]
        assert isinstance(said, Text)
        noted = msgspec.structs.replace(said, text=note + said.text)
        changed = (*parts[:at], noted, *parts[at + 1 :])
    else:
        at = calls[0] if calls else len(parts)
        changed = (*parts[:at], Text(note), *parts[at:])
    message = msgspec.structs.replace(reply.message, parts=changed)
    return msgspec.structs.replace(reply, message=message)


_: type[Model] = Sighted
