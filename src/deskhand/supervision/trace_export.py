"""Sends what happened to an OpenTelemetry collector: each turn, and each call of a model or of a
tool, as a span.

It reads the log, and keeps in a file how far it has come. So a turn costs nothing more, whichever
worker ran it, and what happens while the collector is away is sent when it is back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec

from ..assembly.trace import Trace, TraceSpan
from ..assembly.trace_tree import is_given, read_parents
from ..config.config import Settings
from ..config.sections import parse_headers
from ..net.client import Net, OutboundRequest
from ..net.url import parse_url
from ..store.base import Store
from ..types.errors import NetError
from ..types.events import Recorded
from ..types.private_files import write_private_file
from ..users.user_cache import OWNER
from .otlp import encode_spans

log = logging.getLogger(__name__)

EXPORT_EVERY_S = 5.0
PAGE = 500
"""So many events are read at once. Each ends one span at most, and what it opens."""
MAX_TRACED = 1_000
"""So many conversations are remembered; the log of another is read again."""
_TOO_LARGE = 413
_REFUSED_FOR_GOOD = frozenset({400, _TOO_LARGE, 422})
"""Statuses that say that this body will not be taken later either."""


async def export_traces(
    settings: Settings, store: Store, net: Net, redact: Callable[[str], str]
) -> None:
    """Send to the collector of the settings, for ever. Raises ConfigError, NetError,
    StoreUnavailable: begin again later, and nothing is lost."""
    config = settings.config.traces
    headers = parse_headers(settings.environment.get(config.headers_env, ""), config.headers_env)
    service = {"service.name": "deskhand", "service.version": version("deskhand")}
    collector = Collector(config.endpoint, headers, net, service, content=config.content)
    # Without content no text leaves, so none needs to be searched for secrets.
    hide = redact if config.content else str
    exporter = TraceExporter(store, collector, hide, settings.home.sent_traces)
    while True:
        await exporter.export()
        await anyio.sleep(EXPORT_EVERY_S)


class Collector:
    """Where spans go. `service` are the attributes of what sends them; with `content` they have
    text (see `TracesConfig`)."""

    def __init__(
        self,
        endpoint: str,
        headers: Mapping[str, str],
        net: Net,
        service: Mapping[str, str],
        *,
        content: bool,
    ) -> None:
        address = parse_url(endpoint)  # checked with the settings
        self._url = parse_url(f"{endpoint.rstrip('/')}/v1/traces")
        self._net = net.with_allowed_host(address.host, address.port)
        self._headers = {"content-type": "application/json", **headers}
        self._service = service
        self._content = content

    async def send(self, spans: Sequence[TraceSpan]) -> None:
        """Raises NetError while it does not take them. What is too large is sent in halves; what it
        will never take is left out."""
        body = encode_spans(spans, self._service, content=self._content)
        answer = await self._net.send(OutboundRequest(self._url, self._headers, "POST", body))
        if answer.status == _TOO_LARGE and len(spans) > 1:
            half = len(spans) // 2
            await self.send(spans[:half])
            await self.send(spans[half:])
        elif answer.status in _REFUSED_FOR_GOOD:
            said = answer.body[:200].decode(errors="replace")
            log.warning("The collector did not accept %d spans: %s", len(spans), said)
        elif answer.status >= 300:
            raise NetError(f"the collector {self._url.origin} answered with status {answer.status}")
        elif said := read_refusal(answer.body):
            log.warning("The collector did not accept all of %d spans: %s", len(spans), said)


class _PartialSuccess(msgspec.Struct, frozen=True, rename="camel"):
    """See `ExportTracePartialSuccess` of OTLP. A count is a string in its JSON."""

    rejected_spans: int | str | None = 0
    error_message: str | None = ""


class _Accepted(msgspec.Struct, frozen=True, rename="camel"):
    partial_success: _PartialSuccess = _PartialSuccess()


def read_refusal(body: bytes) -> str:
    """What a collector that took a request says that it did not take of it; '' for nothing."""
    try:
        partial = msgspec.json.decode(body, type=_Accepted).partial_success
    except (msgspec.MsgspecError, RecursionError):  # one that answers in no JSON has taken all
        return ""
    if partial.rejected_spans in (0, "0", "", None):
        return ""  # what it says then is advice
    said = " ".join((partial.error_message or "").split())
    return f"{str(partial.rejected_spans)[:20]} rejected{f': {said[:200]}' if said else ''}"


class TraceExporter:
    """Belongs to the process that leads. `cursor` is the file with the `seq` up to which everything
    is sent. Without it, only what happens from now on is sent."""

    def __init__(
        self, store: Store, collector: Collector, redact: Callable[[str], str], cursor: Path
    ) -> None:
        self._store = store
        self._collector = collector
        self._redact = redact
        self._cursor = cursor
        self._traces: dict[str, Trace] = {}
        self._seq: int | None = None

    async def export(self) -> None:
        """Send all that has ended since the last time. Raises NetError, StoreUnavailable: go on
        with a new exporter, as this one may know more than was sent."""
        if self._seq is None:
            self._seq = self._read_cursor()
        more = True
        while more:
            page = await self._store.events_since(OWNER, self._seq, PAGE)
            more = page.more
            if not page:
                return
            spans = [span for each in page for span in await self._add(each)]
            if spans:
                await self._collector.send(spans)
            self._seq = page[-1].seq
            write_private_file(self._cursor, str(self._seq))

    def _read_cursor(self) -> int:
        last = self._store.last_seq()
        try:
            return min(int(self._cursor.read_text()), last)
        except (OSError, ValueError):
            write_private_file(self._cursor, str(last))
            return last

    async def _add(self, recorded: Recorded) -> list[TraceSpan]:
        """What this event ended."""
        trace = self._traces.pop(recorded.session, None)
        if trace is None:
            trace = await self._begin(recorded)
        elif is_given(recorded):
            trace.parents = await read_parents(self._store, recorded.session)
        self._traces[recorded.session] = trace  # behind all others: it was used last
        return list(trace.add(recorded))

    async def _begin(self, recorded: Recorded) -> Trace:
        """The trace of this conversation as it was before the event."""
        trace = Trace(self._redact, await read_parents(self._store, recorded.session))
        after = 0
        more = recorded.n > 1
        while more:
            page = await self._store.events(recorded.session, after, PAGE)
            for earlier in page:
                if earlier.n < recorded.n:
                    for _ in trace.add(earlier):
                        pass
            after = page[-1].n if page else recorded.n
            more = page.more and after < recorded.n
            await anyio.lowlevel.checkpoint()
        while len(self._traces) >= MAX_TRACED:
            del self._traces[next(iter(self._traces))]
        return trace
