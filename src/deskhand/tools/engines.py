"""Search engines: how each is asked over the wire, and how its answer is read. Pure: nothing is
sent here."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from typing import Any, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from ..net.client import Fetched, OutboundRequest
from ..net.url import parse_url
from ..types.errors import NetError
from .documents.invisible_characters import strip_invisible

EngineName = Literal["duckduckgo", "brave", "tavily", "exa", "searxng"]
MAX_TITLE_CHARS = 200
MAX_SNIPPET_CHARS = 500
MAX_URL_CHARS = 1000
MAX_QUERY_CHARS = 400
"""What every engine takes: Brave's limit, and DuckDuckGo's is 499."""
_TAG = re.compile(r"<[^<>]*>")


class SearchHit(msgspec.Struct, frozen=True):
    """One result, as plain text."""

    title: str
    url: str
    snippet: str


class EngineQuery(msgspec.Struct, frozen=True):
    """What is looked for. `key` is the engine's, and `base` where it is reached."""

    query: str
    count: int
    base: str
    key: str = ""


class SearchEngine(msgspec.Struct, frozen=True):
    """`base` is its address, `key_env` the variable with its key ('' needs none). `forbidden` is
    what a 403 means."""

    title: str
    base: str
    key_env: str
    request: Callable[[EngineQuery], OutboundRequest]
    read: Callable[[Fetched], list[SearchHit]]
    forbidden: str


def _request_duckduckgo(asked: EngineQuery) -> OutboundRequest:
    """The form of the page without scripts; `b` is empty for the first page of results. A word with
    a `!` at an end would lead to another site, so it is quoted. There is no official description:
    https://html.duckduckgo.com/html/, and searx/engines/duckduckgo.py of SearXNG."""
    words = (
        f'"{word}"' if word.startswith(("!", "\\")) or word.endswith("!") else word
        for word in asked.query.split()
    )
    form = urlencode({"q": " ".join(words), "b": "", "kl": "wt-wt"}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Referer": asked.base}
    return OutboundRequest(parse_url(asked.base), headers, "POST", form)


def _read_duckduckgo(fetched: Fetched) -> list[SearchHit]:
    page = fetched.body[:2_000_000].decode("utf-8", "replace")
    if fetched.status == 202 or "anomaly-modal" in page or 'id="challenge-form"' in page:
        raise NetError(_ROBOT_TEXT)
    parser = _Results()
    parser.feed(_clean_markup(page))
    parser.close()
    return [hit for hit in map(_make_duckduckgo_hit, parser.found) if hit is not None]


def _make_duckduckgo_hit(found: dict[str, str]) -> SearchHit | None:
    """Results lead through //duckduckgo.com/l/?uddg=ADDRESS; advertisements through y.js."""
    url = found.get("url", "")
    parts = urlsplit(f"https:{url}" if url.startswith("//") else url)
    if (parts.hostname or "").endswith("duckduckgo.com"):
        url = parse_qs(parts.query).get("uddg", [""])[0] if parts.path == "/l/" else ""
    return _make_hit(found.get("title", ""), url, found.get("snippet", ""))


def _clean_markup(page: str) -> str:
    """The page without comments, and with `<` as a sign where no `>` follows it: the parser would
    look for that to the end of the page, from each of them."""
    first, *rest = page.split("<!--")
    return _UNCLOSED_TAG.sub("&lt;", first + "".join(each.partition("-->")[2] for each in rest))


_UNCLOSED_TAG = re.compile(r"<(?![^<>]*>)")


class _Results(HTMLParser):
    """The links of class result__a and the texts of class result__snippet, outside of
    advertisements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, str]] = []
        self._field = ""
        self._is_ad = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        classes = given.get("class", "").split()
        if "result" in classes:
            self._is_ad = "result--ad" in classes
        if tag != "a" or self._is_ad:
            return
        if "result__a" in classes:
            self.found.append({"url": given.get("href", "")})
            self._field = "title"
        elif "result__snippet" in classes and self.found:
            self._field = "snippet"

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._field = ""

    def handle_data(self, data: str) -> None:
        if self._field:
            last = self.found[-1]
            last[self._field] = (last.get(self._field, "") + data)[: 2 * MAX_SNIPPET_CHARS]


def _request_brave(asked: EngineQuery) -> OutboundRequest:
    """https://api-dashboard.search.brave.com/app/documentation/web-search/get-started: at most 20
    results, the key in X-Subscription-Token; `text_decorations` would mark the words that fit."""
    query = urlencode(
        {"q": asked.query, "count": min(asked.count, 20), "text_decorations": "false"}
    )
    headers = {"X-Subscription-Token": asked.key, "Accept": "application/json"}
    return OutboundRequest(parse_url(f"{asked.base}?{query}"), headers)


def _read_brave(fetched: Fetched) -> list[SearchHit]:
    return _make_hits(_get_list(_decode_json(fetched), "web", "results"), "description")


def _request_tavily(asked: EngineQuery) -> OutboundRequest:
    """https://docs.tavily.com/documentation/api-reference/endpoint/search: at most 20 results, the
    key as Bearer."""
    body = {"query": asked.query, "max_results": min(asked.count, 20), "search_depth": "basic"}
    headers = {"Authorization": f"Bearer {asked.key}", "Content-Type": "application/json"}
    return OutboundRequest(parse_url(asked.base), headers, "POST", msgspec.json.encode(body))


def _read_tavily(fetched: Fetched) -> list[SearchHit]:
    return _make_hits(_get_list(_decode_json(fetched), "results"), "content")


def _request_exa(asked: EngineQuery) -> OutboundRequest:
    """https://docs.exa.ai/reference/search: the key in x-api-key, excerpts that fit as
    `highlights`."""
    body = {
        "query": asked.query,
        "numResults": asked.count,
        "type": "auto",
        "contents": {"highlights": True},
    }
    headers = {"x-api-key": asked.key, "Content-Type": "application/json"}
    return OutboundRequest(parse_url(asked.base), headers, "POST", msgspec.json.encode(body))


def _read_exa(fetched: Fetched) -> list[SearchHit]:
    return _make_hits(_get_list(_decode_json(fetched), "results"), "highlights", "text")


def _request_searxng(asked: EngineQuery) -> OutboundRequest:
    """https://docs.searxng.org/dev/search_api.html: `format=json`, where the instance allows it
    (`search.formats`)."""
    base = parse_url(asked.base)
    path = base.target.partition("?")[0].rstrip("/").removesuffix("/search")
    query = urlencode({"q": asked.query, "format": "json"})
    return OutboundRequest(
        parse_url(f"{base.origin}{path}/search?{query}"), {"Accept": "application/json"}
    )


def _read_searxng(fetched: Fetched) -> list[SearchHit]:
    return _make_hits(_get_list(_decode_json(fetched), "results"), "content")


def _key_refused_text(title: str) -> str:
    return f"{title} rejected its key: set a valid one in its environment variable."


_ROBOT_TEXT = "DuckDuckGo takes Deskhand for a robot and asks for a captcha."
_NO_JSON_TEXT = (
    "this SearXNG server does not return JSON: add `json` to `search.formats` in its settings.yml."
)
_BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
_TAVILY_URL = "https://api.tavily.com/search"
_EXA_URL = "https://api.exa.ai/search"
ENGINES: Mapping[EngineName, SearchEngine] = {
    "duckduckgo": SearchEngine(
        "DuckDuckGo",
        "https://html.duckduckgo.com/html/",
        "",
        _request_duckduckgo,
        _read_duckduckgo,
        _ROBOT_TEXT,
    ),
    "brave": SearchEngine(
        "Brave",
        _BRAVE_URL,
        "BRAVE_API_KEY",
        _request_brave,
        _read_brave,
        _key_refused_text("Brave"),
    ),
    "tavily": SearchEngine(
        "Tavily",
        _TAVILY_URL,
        "TAVILY_API_KEY",
        _request_tavily,
        _read_tavily,
        _key_refused_text("Tavily"),
    ),
    "exa": SearchEngine(
        "Exa", _EXA_URL, "EXA_API_KEY", _request_exa, _read_exa, _key_refused_text("Exa")
    ),
    "searxng": SearchEngine("SearXNG", "", "", _request_searxng, _read_searxng, _NO_JSON_TEXT),
}


def read_hits(engine: SearchEngine, fetched: Fetched, count: int) -> list[SearchHit]:
    """The results of an answer, each address once. Raises NetError with a sentence that says what
    to do."""
    if fetched.status in (401, 403):
        raise NetError(engine.forbidden)
    if fetched.status in (
        402,
        429,
        432,
        433,
    ):  # 432 and 433 are Tavily's for what a plan or a key may use
        raise NetError(f"{engine.title} received too many requests, or its paid quota is used up.")
    if fetched.status // 100 != 2:
        raise NetError(f"{engine.title} answered with status {fetched.status}.")
    once: dict[str, SearchHit] = {}
    for hit in engine.read(fetched):
        once.setdefault(hit.url, hit)
    return list(once.values())[:count]


def _decode_json(fetched: Fetched) -> Any:
    try:
        return msgspec.json.decode(fetched.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NetError("the search engine's answer could not be understood.") from None


def _get_list(value: Any, *names: str) -> list[Any]:
    """The list at a path, or an empty one."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, list) else []


def _make_hits(results: list[Any], *snippets: str) -> list[SearchHit]:
    found = []
    for result in results[:100]:
        if isinstance(result, dict):
            said = next((result[name] for name in snippets if result.get(name)), "")
            said = " … ".join(str(each) for each in said) if isinstance(said, list) else str(said)
            if (
                hit := _make_hit(str(result.get("title") or ""), str(result.get("url") or ""), said)
            ) is not None:
                found.append(hit)
    return found


def _make_hit(title: str, url: str, snippet: str) -> SearchHit | None:
    """A result as plain text; None for one whose address is none that could be fetched."""
    try:
        address = str(parse_url(url))
    except NetError:
        return None
    if len(address) > MAX_URL_CHARS:
        return None
    return SearchHit(
        _clean_line(title, MAX_TITLE_CHARS) or address,
        address,
        _clean_line(snippet, MAX_SNIPPET_CHARS),
    )


def _clean_line(text: str, limit: int) -> str:
    """One line of text without markup, and without what nobody sees."""
    text = html.unescape(_TAG.sub("", text[: 4 * limit]))
    text = " ".join(strip_invisible(text)[0].split())
    return text if len(text) <= limit else f"{text[:limit]}…"
