"""Calls to a platform's own HTTP API, at an address that a person configured or that is the
platform's: one try a call, and what came of it in full. Who calls knows what may be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp  # noqa: TID251 -- the platform's own address
import msgspec

REQUEST_S = 30.0
FILE_S = 120.0

Json = Mapping[str, Any]


class ApiFault(Exception):
    """A call that brought nothing. `status` is 0 where nobody answered; `body` is the answer, where
    it was an object. `unsent`: the request surely did not arrive."""

    def __init__(
        self, message: str, status: int = 0, body: Json | None = None, *, unsent: bool = False
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: Json = body or {}
        self.headers: Mapping[str, str] = {}
        self.unsent = unsent

    def find_wait_s(self) -> float:
        """How long the platform asks to wait, by its header; 1 where it does not say."""
        try:
            return max(float(self.headers.get("Retry-After", "")), 0.0)
        except ValueError:
            return 1.0


class WebApi:
    """Calls to addresses below `base`, each with these headers."""

    def __init__(self, base: str, headers: Mapping[str, str]) -> None:
        self._base = base.rstrip("/")
        self.headers = dict(headers)
        self._session: aiohttp.ClientSession | None = None

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        params: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_S,
    ) -> Any:
        """The answer to a request with this JSON, {} where it has no body. Raises ApiFault."""
        about: dict[str, Any] = {"params": params}
        if body is not None:
            about["data"] = msgspec.json.encode(body)
            about["headers"] = {"Content-Type": "application/json"}
        return await self._request(method, path, about, timeout_s)

    async def post_form(self, path: str, fields: Mapping[str, str]) -> Any:
        """The answer to these fields. Raises ApiFault."""
        return await self._request("POST", path, {"data": dict(fields)}, REQUEST_S)

    async def upload(
        self, method: str, path: str, data: bytes | aiohttp.FormData, headers: Json | None = None
    ) -> Any:
        """The answer to bytes or to a form. Raises ApiFault."""
        return await self._request(method, path, {"data": data, "headers": headers}, FILE_S)

    async def post_bytes(self, url: str, data: bytes) -> None:
        """Hand bytes to an address that was given for them, without our headers; whatever is
        answered, it is right where the status is. Raises ApiFault."""
        wait = aiohttp.ClientTimeout(total=FILE_S)
        try:
            async with self._open().post(
                url, data=data, timeout=wait, allow_redirects=False
            ) as answer:
                if answer.status >= 300:
                    raise ApiFault(f"HTTP {answer.status}", answer.status)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _describe(error) from error

    async def download(self, url: str, limit: int, *, own: bool = True) -> bytes:
        """A file of at most so many bytes. Only one of the platform's `own` gets the headers.
        Raises ApiFault."""
        headers = self.headers if own else {}
        wait = aiohttp.ClientTimeout(total=FILE_S)
        try:
            async with self._open().get(
                self._join(url), headers=headers, timeout=wait, allow_redirects=not own
            ) as answer:
                if answer.status != 200:
                    raise ApiFault(f"HTTP {answer.status}", answer.status)
                data = await answer.content.read(limit + 1)
                while len(data) <= limit and (more := await answer.content.read(limit + 1)):
                    data += more
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _describe(error) from error
        if len(data) > limit:
            raise ApiFault(f"it is larger than {limit // 2**20} MB", 413)
        return data

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _join(self, path: str) -> str:
        return path if "://" in path else f"{self._base}{path}"

    async def _request(
        self, method: str, path: str, about: dict[str, Any], timeout_s: float
    ) -> Any:
        headers = {**self.headers, **(about.pop("headers", None) or {})}
        wait = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._open().request(
                method,
                self._join(path),
                headers=headers,
                timeout=wait,
                allow_redirects=False,
                **about,
            ) as answer:
                text = await answer.read()
                return _read_answer(answer.status, answer.headers, text)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _describe(error) from error


def _read_answer(status: int, headers: Mapping[str, str], text: bytes) -> Any:
    try:
        body = msgspec.json.decode(text) if text else {}
    except (msgspec.DecodeError, RecursionError):
        body = {}
        if status < 300:
            raise ApiFault("the answer is no JSON", status) from None
    if status < 300:
        return body
    said = body if isinstance(body, dict) else {}
    fault = ApiFault(f"HTTP {status}", status, said)
    fault.headers = headers
    raise fault


def _describe(error: Exception) -> ApiFault:
    unsent = isinstance(error, aiohttp.ClientConnectorError)
    return ApiFault(str(error) or type(error).__name__, unsent=unsent)
