"""Signing in at MCP servers that want it (OAuth 2.1, as the protocol's authorization pages have
it): the flow is the official SDK's, what is kept are secrets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.auth.oauth2 import OAuthClientProvider, OAuthContext
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from pydantic import AnyUrl
from starlette.datastructures import QueryParams

from ..config.clock import SystemClock
from ..types.errors import ToolError

PATH = "/callback"
WAIT_S = 300.0
"""So long a person has to sign in."""
REQUEST_S = 10.0
MAX_HEAD_BYTES = 16_384
_DONE = b"Signed in. You can close this page and go back to Deskhand."


class LoginPlace(Protocol):
    """Where what a sign-in gives is kept: values by their names, for one server. Implemented by
    `sign_in_secrets.ServerLogin`."""

    def get(self, name: str) -> str: ...

    def set(self, name: str, value: str) -> None: ...


class _Kept(msgspec.Struct, frozen=True):
    """What is no secret of a sign-in; `expires_at` is in seconds since the epoch."""

    expires_at: float | None = None
    scope: str | None = None
    has_refresh: bool = False


class StoredTokens:
    """Implements `mcp.client.auth.oauth2.TokenStorage`."""

    def __init__(self, place: LoginPlace) -> None:
        self._place = place
        self.context: OAuthContext | None = None

    def metadata(self) -> OAuthMetadata | None:
        """What is known of where one signs in."""
        text = self._place.get("metadata")
        return OAuthMetadata.model_validate_json(text) if text else None

    @property
    def expires_at(self) -> float | None:
        """When the token ends that is kept."""
        return self._kept().expires_at

    def _kept(self) -> _Kept:
        text = self._place.get("about")
        return msgspec.json.decode(text, type=_Kept) if text else _Kept()

    async def get_tokens(self) -> OAuthToken | None:
        access = self._place.get("access_token")
        if not access:
            return None
        kept = self._kept()
        # Without it, the SDK would renew at the server itself, which need not be who signs in.
        can_renew = kept.has_refresh and bool(self._place.get("metadata"))
        refresh = self._place.get("refresh_token") if can_renew else None
        return OAuthToken(access_token=access, refresh_token=refresh, scope=kept.scope)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        expires_at = None
        if tokens.expires_in is not None:
            expires_at = SystemClock().now() + tokens.expires_in  # as the SDK compares it
        self._place.set("access_token", tokens.access_token)
        if self.context is not None and self.context.oauth_metadata is not None:
            known = self.context.oauth_metadata.model_dump_json(exclude_none=True)
            self._place.set("metadata", known)
        if tokens.refresh_token:
            self._place.set("refresh_token", tokens.refresh_token)
        kept = _Kept(expires_at, tokens.scope, bool(tokens.refresh_token))
        self._place.set("about", msgspec.json.encode(kept).decode())

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        text = self._place.get("client")
        return OAuthClientInformationFull.model_validate_json(text) if text else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._place.set("client", client_info.model_dump_json(exclude_none=True))


def make_client(client_id: str, client_secret: str) -> str:
    """What is kept of a client that the server was told of by hand."""
    known: dict[str, Any] = {"client_id": client_id, "redirect_uris": [f"http://127.0.0.1{PATH}"]}
    if client_secret:
        known["client_secret"] = client_secret
    known["token_endpoint_auth_method"] = "client_secret_basic" if client_secret else "none"
    return OAuthClientInformationFull.model_validate(known).model_dump_json(exclude_none=True)


class SignInPage(Protocol):
    """How a person signs in, and comes back to `redirect_uri`."""

    redirect_uri: str

    async def show(self, address: str) -> None:
        """Give them the address where they sign in. Raises ToolError."""

    async def wait(self) -> AuthorizationCodeResult:
        """What they bring back. Raises ToolError."""


class NoPerson:
    """Implements `SignInPage` where nobody is there to sign in."""

    redirect_uri = f"http://127.0.0.1{PATH}"

    def __init__(self, server: str) -> None:
        self._why = f"sign in first: deskhand mcp login {server}"

    async def show(self, address: str) -> None:
        raise ToolError(self._why)

    async def wait(self) -> AuthorizationCodeResult:
        raise ToolError(self._why)


def make_auth(url: str, place: LoginPlace, page: SignInPage) -> OAuthClientProvider:
    """What signs requests to the server at this address, by what is kept of its sign-in, and renews
    that; `page` is for a new one."""
    storage = StoredTokens(place)
    provider = OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="Deskhand", redirect_uris=[AnyUrl(page.redirect_uri)]),
        storage,
        redirect_handler=page.show,
        callback_handler=page.wait,
    )
    provider.context.token_expiry_time = storage.expires_at
    provider.context.oauth_metadata = storage.metadata()
    storage.context = provider.context
    return provider


class LocalPage:
    """Implements `SignInPage` with a page on this machine; `show` is called with the address."""

    def __init__(self, port: int, show: Callable[[str], Awaitable[None]]) -> None:
        self.redirect_uri = f"http://127.0.0.1:{port}{PATH}"
        self._show = show
        self._brought: AuthorizationCodeResult | None = None
        self._is_back = anyio.Event()

    async def show(self, address: str) -> None:
        await self._show(address)

    async def wait(self) -> AuthorizationCodeResult:
        with anyio.move_on_after(WAIT_S):
            await self._is_back.wait()
        if self._brought is None:
            raise ToolError(f"nobody has signed in within {WAIT_S:.0f} s")
        return self._brought

    async def answer(self, stream: SocketStream) -> None:
        """Answer a browser. A connection that breaks harms no other."""
        with suppress(anyio.BrokenResourceError, anyio.IncompleteRead, anyio.DelimiterNotFound):
            async with stream:
                with anyio.move_on_after(REQUEST_S):
                    await self._answer(stream)

    async def _answer(self, stream: SocketStream) -> None:
        buffered = BufferedByteReceiveStream(stream)
        found = read_callback(await buffered.receive_until(b"\r\n\r\n", MAX_HEAD_BYTES))
        body = _DONE if found is not None else b"Nothing was signed in here."
        status = b"200 OK" if found is not None else b"404 Not Found"
        await stream.send(
            b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"
            b"Connection: close\r\n\r\n%b" % (status, len(body), body)
        )
        if found is not None and self._brought is None:
            self._brought = found
            self._is_back.set()


@asynccontextmanager
async def open_local_page(show: Callable[[str], Awaitable[None]]) -> AsyncIterator[LocalPage]:
    """A page on this machine to which a person comes back."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    page = LocalPage(listener.extra(SocketAttribute.local_port), show)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, page.answer)
        yield page
        tasks.cancel_scope.cancel()


def read_callback(head: bytes) -> AuthorizationCodeResult | None:
    """What a person brings back, from the first line of the request; None for any other."""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    path, _, query = (words[1] if len(words) > 1 else "").partition("?")
    given = QueryParams(query)
    code = given.get("code")
    if path != PATH or not code:
        return None
    return AuthorizationCodeResult(code=code, state=given.get("state"), iss=given.get("iss"))
