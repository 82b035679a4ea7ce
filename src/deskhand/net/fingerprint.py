"""Speaks to a server as a browser does, down to the TLS handshake, for sites that refuse programs.

`Net.with_exchange(exchange)` does all of the judging: names, addresses, redirects. This only talks
to the addresses it is given, and knows no others: no proxy, no name server, no cookies, no file of
settings. The extra [web].
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence

import anyio
import anyio.to_thread
from curl_cffi import Curl, CurlError, CurlInfo, CurlOpt  # noqa: TID251 -- it is given judged addresses only
from curl_cffi.requests.impersonate import DEFAULT_CHROME  # noqa: TID251 -- the same

from ..types.errors import NetError, TooLarge
from .client import NetLimits, OutboundRequest
from .inflate import InflateMeter, describe_too_large
from .url import quote_short

_HEADERS_BYTES = 64 << 10
_HEADERS = 200
_WHY = {
    1: "it did not answer with valid HTTP",
    7: "it refused the connection",
    8: "it did not answer with valid HTTP",
    16: "it did not answer with valid HTTP",
    18: "the answer was cut off",
    23: "it uses a compression that is not supported",
    35: "no encrypted connection could be established",
    52: "it closed the connection without an answer",
    56: "it closed the connection without an answer",
    60: "its certificate is not valid, so its identity cannot be verified",
    61: "its compressed body is damaged",
    92: "it did not answer with valid HTTP",
    100: "it did not answer with valid HTTP",
}
"""By curl's error code, https://curl.se/libcurl/c/libcurl-errors.html"""
_TIMED_OUT = 28
_TOO_LARGE = 63


async def exchange(
    request: OutboundRequest, addresses: Sequence[str], limits: NetLimits
) -> tuple[int, dict[str, str], bytes]:
    """One request to one of `addresses`, and its answer: status, headers, unpacked body.

    Raises NetError, TooLarge, TimeoutError. When it is cancelled its thread ends with the next
    piece that arrives, or with its time.
    """
    call = _Call(request, tuple(addresses), limits)
    try:
        own = anyio.CapacityLimiter(1)  # slow servers hold up nobody else's threads
        return await anyio.to_thread.run_sync(call.run, abandon_on_cancel=True, limiter=own)
    finally:
        call.abandoned.set()


class _Call:
    """One exchange, in a thread of its own."""

    def __init__(
        self, request: OutboundRequest, addresses: tuple[str, ...], limits: NetLimits
    ) -> None:
        self._request = request
        self._addresses = addresses
        self._limits = limits
        self.abandoned = threading.Event()
        self._meter = InflateMeter(limits.body_bytes, limits.ratio)
        self._curl = Curl()
        self._body = bytearray()
        self._status = 0
        self._head_bytes = 0
        self._headers: dict[str, str] = {}

    def run(self) -> tuple[int, dict[str, str], bytes]:
        where = quote_short(str(self._request.url))
        try:
            self._set_up()
            self._curl.perform()
            if str(self._connected_address()) not in self._addresses:
                raise NetError(f"{where} was answered from an address that was not checked.")
        except TooLarge as error:
            raise TooLarge(f"{where} was refused: {error}") from None
        except CurlError as error:
            if error.code == _TIMED_OUT:
                raise TimeoutError from error
            if error.code == _TOO_LARGE:
                raise TooLarge(
                    f"{where} was refused: {describe_too_large(self._limits.body_bytes)}"
                ) from None
            why = _WHY.get(error.code, "no connection could be established")
            raise NetError(f"{self._request.url.origin} could not be fetched: {why}.") from error
        finally:
            self._curl.close()
        return self._status, self._headers, bytes(self._body)

    def _set_up(self) -> None:
        url = self._request.url
        limits = self._limits
        curl = self._curl
        curl.impersonate(DEFAULT_CHROME, default_headers=True)
        host = f"[{url.host}]" if ":" in url.host else url.host
        pinned = ",".join(f"[{each}]" if ":" in each else each for each in self._addresses)
        options: Mapping[CurlOpt, object] = {
            CurlOpt.URL: str(url).encode(),
            CurlOpt.RESOLVE: [f"{host}:{url.port}:{pinned}"],
            CurlOpt.PROXY: "",
            CurlOpt.NOPROXY: "*",
            CurlOpt.PROTOCOLS_STR: "http,https",
            CurlOpt.FOLLOWLOCATION: 0,
            CurlOpt.TIMEOUT_MS: math.ceil(limits.total_s * 1000) + 1000,  # nobody waits for it then
            CurlOpt.CONNECTTIMEOUT_MS: math.ceil(limits.idle_s * 1000),
            CurlOpt.LOW_SPEED_LIMIT: 1,
            CurlOpt.LOW_SPEED_TIME: math.ceil(limits.idle_s),
            # as the browser says, and curl unpacks them
            CurlOpt.ACCEPT_ENCODING: "gzip, deflate, br, zstd",
            # as it is sent, where nothing of it comes out
            CurlOpt.MAXFILESIZE_LARGE: limits.body_bytes,
            CurlOpt.FORBID_REUSE: 1,
            CurlOpt.NOSIGNAL: 1,
            CurlOpt.HEADERFUNCTION: self._on_header,
            CurlOpt.WRITEFUNCTION: self._on_body,
        }
        for option, value in options.items():
            curl.setopt(option, value)
        headers = self._request.headers.items()
        if headers:
            lines = [f"{name}: {value}".encode() for name, value in headers]
            curl.setopt(CurlOpt.HTTPHEADER, lines)
        if self._request.body is not None:
            curl.setopt(CurlOpt.POSTFIELDS, self._request.body)
        if self._request.method != "GET":
            curl.setopt(CurlOpt.CUSTOMREQUEST, self._request.method)

    def _connected_address(self) -> str:
        found = self._curl.getinfo(CurlInfo.PRIMARY_IP)
        return found.decode() if isinstance(found, bytes) else str(found)

    def _on_header(self, line: bytes) -> int:
        self._head_bytes += len(line)
        if self._head_bytes > _HEADERS_BYTES or len(self._headers) > _HEADERS:
            raise NetError(
                f"{self._request.url.origin} could not be fetched: its headers never end."
            )
        text = line.decode("latin-1").strip()
        if text.startswith("HTTP/"):
            self._headers.clear()  # 100 Continue comes before the answer
            self._status = int([*text.split(), "0", "0"][1])
            return len(line)
        name, colon, value = text.partition(":")
        if colon:
            self._add_header(name.strip().lower(), value.strip())
        elif not text:
            self._check_headers()
        return len(line)

    def _add_header(self, name: str, value: str) -> None:
        """Several lines of one name are one value, as RFC 9110 section 5.3 has it."""
        before = self._headers.get(name)
        self._headers[name] = value if before is None else f"{before}, {value}"

    def _check_headers(self) -> None:
        """The headers are all here. Raises TooLarge before anything of the body is unpacked."""
        encodings = self._headers.get("content-encoding", "").split(",")
        packed = [each for each in encodings if each.strip()]
        if len(packed) > 1:  # curl unpacks them all before we see anything
            raise TooLarge(f"it is compressed {len(packed)} times over, like a decompression bomb.")
        length = self._headers.get("content-length", "")
        is_number = length.isdecimal() and len(length) < 20
        self._meter.expect(int(length) if is_number else 0)

    def _on_body(self, piece: bytes) -> int:
        if self.abandoned.is_set():
            raise NetError("the request was cancelled.")
        arrived = self._curl.getinfo(CurlInfo.SIZE_DOWNLOAD_T)
        if isinstance(arrived, int):
            self._meter.receive(max(0, arrived - self._meter.received))
        self._meter.count(len(piece))
        self._body += piece
        return len(piece)
