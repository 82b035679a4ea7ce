"""`web_search`: one engine that a person chose, and DuckDuckGo where that one fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio.to_thread
import msgspec

from ..net.client import Net, NetLimits
from ..net.url import parse_url
from ..types.errors import NetError, ToolError
from ..types.labels import UNTRUSTED, Label
from ..types.messages import ResultStatus, Text, clean_text
from .base import Context, Done
from .define import FunctionTool, tool
from .engines import (
    ENGINES,
    MAX_QUERY_CHARS,
    EngineName,
    EngineQuery,
    SearchEngine,
    SearchHit,
    read_hits,
)

DEFAULT_HITS = 8
MAX_HITS = 20
LIMITS = NetLimits(body_bytes=4_000_000, total_s=20.0, idle_s=10.0, redirects=0)
"""An engine that leads elsewhere is not followed: a key would go along."""
_FREE_ENGINE: EngineName = "duckduckgo"


class WebSearchConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`engine` is asked; `key_env` names the variable with its key, if not the usual one. `url` is
    where your SearXNG is. With `fallback`, DuckDuckGo is asked when it fails."""

    engine: EngineName = _FREE_ENGINE
    key_env: str = ""
    url: str = ""
    fallback: bool = True


class _Found(msgspec.Struct, frozen=True):
    engine: SearchEngine
    base: str
    hits: list[SearchHit]


def make_web_search_tool(
    config: WebSearchConfig = WebSearchConfig(),  # noqa: B008 -- frozen
    key: Callable[[str], str] = lambda variable: "",
    bases: Mapping[EngineName, str] | None = None,
) -> FunctionTool:
    """The tool with the engine of a configuration. `key` gives what an environment variable holds,
    '' for nothing; it is asked for each search, and what it gives goes to the engine's host alone.
    `bases` are other addresses."""
    search = _Search(config, key, bases or {})

    @tool(effect="fetch", reads=UNTRUSTED, timeout_s=60)
    async def web_search(query: str, context: Context, max_results: int = DEFAULT_HITS) -> Done:
        """Search the web; read what you find with web_fetch."""
        query = " ".join(query.split())
        if not query or len(query) > MAX_QUERY_CHARS:
            raise ToolError(
                f"a search has 1 to {MAX_QUERY_CHARS} characters, and this one has {len(query)}"
            )
        return await search.run(query, min(max(max_results, 1), MAX_HITS), context)

    return web_search


class _Search:
    def __init__(
        self, config: WebSearchConfig, key: Callable[[str], str], bases: Mapping[EngineName, str]
    ) -> None:
        self._config = config
        self._key = key
        self._bases = bases

    async def run(self, query: str, count: int, context: Context) -> Done:
        """Ask the engine, then the free one; say which failed, and what can be done about it."""
        names: list[EngineName] = [self._config.engine]
        if self._config.fallback and _FREE_ENGINE not in names:
            names.append(_FREE_ENGINE)
        failed: list[str] = []
        for name in names:
            try:
                found = await self._query_engine(name, query, count, context)
                return _render_results(found, failed)
            except NetError as error:
                failed.append(_name_problem(ENGINES[name], str(error)))

        said = " ".join(failed)
        if names == [_FREE_ENGINE]:
            said += " An engine with an API key is more reliable: see docs/web.md."
        return _untrusted_result(f"[web_search: no engine answered. {said}]", "", "error")

    async def _query_engine(
        self, name: EngineName, query: str, count: int, context: Context
    ) -> _Found:
        engine = ENGINES[name]
        own = name == self._config.engine
        base = self._config.url if own and name == "searxng" else ""
        base = base or self._bases.get(name, engine.base)
        if not base:
            raise NetError(f"{engine.title} has no address: set web_search.url.")
        variable = (self._config.key_env if own else "") or engine.key_env
        key = self._key(variable).strip() if engine.key_env else ""
        if engine.key_env and not _is_sendable(key):
            raise NetError(f"{engine.title} needs a key: set {variable}.")
        net = context.reach.net
        if name == "searxng":
            net = _allow_own_engine(net, base)
        request = engine.request(EngineQuery(query, count, base, key))
        net.rate_limiter.check(request.url.authority, context.clock)
        fetched = await net.send(request, LIMITS)
        net.rate_limiter.record_retry_after(request.url.authority, context.clock, fetched.headers)
        hits = await anyio.to_thread.run_sync(read_hits, engine, fetched, count)
        return _Found(engine, request.url.origin, hits)


def _allow_own_engine(net: Net, base: str) -> Net:
    """The client that also reaches the engine of a person's own, which may stand on this
    machine."""
    url = parse_url(base)
    return net.with_allowed_host(f"[{url.host}]" if ":" in url.host else url.host, url.port)


def _name_problem(engine: SearchEngine, problem: str) -> str:
    """The problem as a sentence that says whose it is."""
    if engine.title not in problem:
        return f"{engine.title}: {problem}"
    return f"{problem[:1].upper()}{problem[1:]}"


def _is_sendable(key: str) -> bool:
    return bool(key) and key.isascii() and key.isprintable()


def _render_results(found: _Found, failed: list[str]) -> Done:
    """The results as a numbered list, with where they are from, and what failed before. The words
    of the search do not stand in it: an address among the results counts as found, and a model must
    not be able to find its own."""
    lines = [f"[web_search: {len(found.hits)} results of {found.engine.title}]"]
    if failed:
        lines.append(f"[{' '.join(failed)} These are {found.engine.title}'s results instead.]")
    if not found.hits:
        lines.append("[nothing was found: try fewer or other words]")
    for number, hit in enumerate(found.hits, 1):
        lines += [
            "",
            f"{number}. {hit.title}",
            f"   {hit.url}",
            *([f"   {hit.snippet}"] if hit.snippet else []),
        ]
    return _untrusted_result("\n".join(lines), f"{found.base}/")


def _untrusted_result(text: str, source: str, status: ResultStatus = "ok") -> Done:
    """A result that is somebody else's word: whoever writes a page writes its title and its
    excerpt."""
    return Done((Text(clean_text(text), Label("untrusted", None, source)),), status)
