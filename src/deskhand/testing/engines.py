"""Search engines as their wires are described, on a site of our own: what they are asked is kept by
it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import quote

import msgspec

from ..tools.engines import EngineName
from .site import LocalSite

JSON = {"Content-Type": "application/json"}
PATHS: dict[EngineName, str] = {
    "duckduckgo": "/html/",
    "brave": "/res/v1/web/search",
    "tavily": "/search",
    "exa": "/exa/search",
    "searxng": "/searx/search",
}

Result = tuple[str, str, str]
"""(title, address, excerpt)"""


def serve_engines(site: LocalSite, results: Sequence[Result]) -> dict[EngineName, str]:
    """Let `site` be every engine, with these results; returns where each is reached."""
    site.page(PATHS["duckduckgo"], duckduckgo_page(results))
    brave = {
        "type": "search",
        "web": {"results": [_named(each, "description") for each in results]},
    }
    site.page(PATHS["brave"], msgspec.json.encode(brave), headers=JSON)
    tavily = {
        "query": "",
        "answer": None,
        "results": [_named(each, "content") | {"score": 0.9} for each in results],
    }
    site.page(PATHS["tavily"], msgspec.json.encode(tavily), headers=JSON)
    exa = [
        {"id": url, "title": title, "url": url, "highlights": [said]}
        for title, url, said in results
    ]
    site.page(PATHS["exa"], msgspec.json.encode({"requestId": "1", "results": exa}), headers=JSON)
    searxng = {
        "query": "",
        "results": [_named(each, "content") for each in results],
        "unresponsive_engines": [],
    }
    site.page(PATHS["searxng"], msgspec.json.encode(searxng), headers=JSON)
    bases = {name: site.url(path) for name, path in PATHS.items()}
    return bases | {"searxng": site.url("/searx")}


def duckduckgo_page(results: Sequence[Result]) -> str:
    """The page without scripts, with an advertisement in front."""
    ad = (
        '<div class="result results_links result--ad"><h2 class="result__title"><a '
        'class="result__a" '
        'href="https://duckduckgo.com/y.js?ad_domain=shop.test">Buy now</a></h2>'
        '<a class="result__snippet" href="#">An advertisement.</a></div>'
    )
    found = "".join(
        '<div class="result results_links results_links_deep web-result "><div '
        'class="links_main links_deep '
        'result__body"><h2 class="result__title"><a rel="nofollow" class="result__a" '
        f'href="//duckduckgo.com/l/?uddg={quote(url, safe="")}&amp;rut=abc">'
        f"{escape(title)}</a></h2>"
        f'<a class="result__url" href="#">{escape(url)}</a>'
        '<a class="result__snippet" '
        f'href="#">{escape(said).replace("fit", "<b>fit</b>")}</a></div></div>'
        for title, url, said in results
    )
    return f'<html><body><div id="links" class="results">{ad}{found}</div></body></html>'


def _named(result: Result, snippet: str) -> dict[str, object]:
    title, url, said = result
    return {"title": title, "url": url, snippet: said}
