"""Finds model servers that run on this machine."""

from __future__ import annotations

import aiohttp  # noqa: TID251 -- servers of models on this machine
import anyio
import msgspec

from ..types.messages import clean_text

PROBE_S = 1.0
ANSWER_BYTES = 1 << 20


class LocalServer(msgspec.Struct, frozen=True):
    """A server that answered, and the names of its models."""

    provider: str
    base_url: str
    models: tuple[str, ...]


class _Listed(msgspec.Struct):
    id: str


class _Answer(msgspec.Struct):
    data: list[_Listed]


async def find_servers(
    addresses: dict[str, str], limit_s: float = PROBE_S
) -> tuple[LocalServer, ...]:
    """Which of these (provider -> base URL) answer now, in their order. What is something else is
    passed over.

    They are asked all at once, for their models:
    https://platform.openai.com/docs/api-reference/models/list
    """
    answers: dict[str, LocalServer] = {}

    async def ask(session: aiohttp.ClientSession, provider: str, base_url: str) -> None:
        url = f"{base_url.rstrip('/')}/models"
        try:
            async with session.get(url, allow_redirects=False) as response:
                if response.status != 200:
                    return
                body = await response.content.read(ANSWER_BYTES)
                listed = msgspec.json.decode(body, type=_Answer).data
                names = tuple(clean_text(model.id) for model in listed)
                answers[provider] = LocalServer(provider, base_url, names)
        except (aiohttp.ClientError, OSError, ValueError, RecursionError):
            return

    timeout = aiohttp.ClientTimeout(total=limit_s)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        anyio.create_task_group() as tasks,
    ):
        for provider, base_url in addresses.items():
            tasks.start_soon(ask, session, provider, base_url)
    return tuple(answers[provider] for provider in addresses if provider in answers)
