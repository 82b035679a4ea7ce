"""Serves one program over standard streams, with the HTTP API of a Deskhand that runs."""

from __future__ import annotations

import httpx2

from ..types.errors import ToolError
from .own_server import ApiAnswer, Context, serve_streams
from .own_tools import ApiRequest

ANSWER_S = 3_600.0
"""So long an agent may take to answer."""


async def serve_program(url: str, token: str) -> None:
    """Serve until the program has gone. `url` is that of the page, which is on this machine."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    timeout = httpx2.Timeout(10.0, read=ANSWER_S)
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=timeout, trust_env=False
    ) as client:

        async def ask(context: Context, request: ApiRequest) -> ApiAnswer:
            try:
                answer = await client.request(request.method, request.path, content=request.body)
            except httpx2.TransportError as error:
                raise ToolError(f"Deskhand does not answer at {url}: {error}") from error
            return ApiAnswer(answer.status_code, answer.content)

        await serve_streams(ask)
