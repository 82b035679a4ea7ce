"""`web_search` against every engine's wire."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args
from urllib.parse import parse_qs

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from deskhand.net.client import Fetched, Net
from deskhand.net.url import parse_url
from deskhand.testing.engines import PATHS, serve_engines
from deskhand.testing.site import PRIVATE, PUBLIC, LocalSite
from deskhand.tools.base import Done
from deskhand.tools.engines import ENGINES, EngineName, read_hits
from deskhand.tools.search_web import WebSearchConfig, make_web_search_tool
from deskhand.types.errors import NetError, ToolError
from deskhand.types.messages import Text
from tests.tools.conftest import Hands, text_of

KEY = "canary-0123456789abcdef"
RESULTS = [
    (
        "First & foremost",
        "https://example.com/a?b=c&d=e",
        "An excerpt that fit, with <tags> & signs.",
    ),
    ("Second", "https://example.org/", "Another."),
    ("First again", "https://example.com/a?b=c&d=e", "The same address."),
    ("Bad", "javascript:alert(1)", "No address."),
    ("Hid\u200bden\U000e0041", "https://example.net/", "Pay\u202e nothing."),
]
NAMES: tuple[EngineName, ...] = get_args(EngineName)
WITH_KEY = [name for name in NAMES if ENGINES[name].key_env]


@pytest.fixture
async def site() -> AsyncIterator[LocalSite]:
    async with LocalSite(host="search.test") as running:
        yield running


class Searching:
    def __init__(self, hands: Hands, site: LocalSite, key: str = KEY) -> None:
        self.hands, self.bases, self.net = hands, serve_engines(site, RESULTS), site.net()
        self.keys = {engine.key_env: key for engine in ENGINES.values() if engine.key_env}

    async def done(
        self, config: WebSearchConfig, query: str = "fit words", **arguments: Any
    ) -> Done:
        tool = make_web_search_tool(config, lambda name: self.keys.get(name, ""), self.bases)
        context = await self.hands.context()
        context = replace(context, reach=replace(context.reach, net=self.net))
        outcome = await tool.run(
            msgspec.Raw(msgspec.json.encode({"query": query, **arguments})), context
        )
        assert isinstance(outcome, Done)
        return outcome


@pytest.fixture
def searching(hands: Hands, site: LocalSite) -> Searching:
    return Searching(hands, site)


@pytest.mark.parametrize("name", NAMES)
async def test_every_engine_gives_the_same_plain_results(
    searching: Searching, site: LocalSite, name: EngineName
) -> None:
    done = await searching.done(WebSearchConfig(name, url=searching.bases["searxng"]))
    title = ENGINES[name].title
    assert text_of(done).split("\n") == [
        f"[web_search: 3 results of {title}]",
        "",
        "1. First & foremost",
        "   https://example.com/a?b=c&d=e",
        "   An excerpt that fit, with & signs.",
        "",
        "2. Second",
        "   https://example.org/",
        "   Another.",
        "",
        "3. Hidden",
        "   https://example.net/",
        "   Pay nothing.",
    ]
    [part] = [part for part in done.parts if isinstance(part, Text)]
    assert (part.label.integrity, part.label.source) == ("untrusted", site.url("/"))


@pytest.mark.parametrize("name", NAMES)
async def test_an_engine_is_asked_as_it_wants_to_be(
    searching: Searching, site: LocalSite, name: EngineName
) -> None:
    await searching.done(
        WebSearchConfig(name, url=searching.bases["searxng"]), query="!g grüße  du", max_results=3
    )
    [seen] = site.requests
    target, _, query = seen.target.partition("?")
    assert target == PATHS[name]
    asked = parse_qs(query, keep_blank_values=True)
    form = parse_qs(seen.body.decode(), keep_blank_values=True)
    match name:
        case "duckduckgo":
            assert seen.method == "POST" and form == {
                "q": ['"!g" grüße du'],
                "b": [""],
                "kl": ["wt-wt"],
            }
        case "brave":
            assert seen.method == "GET" and seen.headers["x-subscription-token"] == KEY
            assert asked == {"q": ["!g grüße du"], "count": ["3"], "text_decorations": ["false"]}
        case "tavily":
            body = msgspec.json.decode(seen.body)
            assert body == {"query": "!g grüße du", "max_results": 3, "search_depth": "basic"}
            assert seen.headers["authorization"] == f"Bearer {KEY}"
        case "exa":
            body = msgspec.json.decode(seen.body)
            assert body["numResults"] == 3 and body["contents"] == {"highlights": True}
            assert seen.headers["x-api-key"] == KEY
        case "searxng":
            assert seen.method == "GET" and asked == {"q": ["!g grüße du"], "format": ["json"]}
    assert "cookie" not in seen.headers


@pytest.mark.parametrize("name", WITH_KEY)
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_key_goes_to_its_engine_and_nowhere_else(
    hands: Hands, site: LocalSite, name: EngineName, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Not to where the engine leads, not to the free engine, not into a result, an error or a
    log."""
    caplog.set_level(logging.DEBUG)
    async with LocalSite(PUBLIC, "other.test") as other:
        searching = Searching(hands, site)
        searching.net = Net(
            resolve=lambda host, port: _addresses(),
            allow={(PUBLIC, site.port), (PUBLIC, other.port)},
        )
        site.page(PATHS[name], status=status, headers={"Location": other.url("/steal")})
        done = await searching.done(WebSearchConfig(name))
        assert other.connections == 0
    assert [KEY in str(seen) for seen in site.requests] == [True, False], (
        "the engine, then the free one"
    )
    assert "These are DuckDuckGo's results instead" in text_of(done)
    assert KEY not in str(done) and KEY not in caplog.text


async def _addresses() -> list[str]:
    return [PUBLIC]


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "Brave rejected its key"),
        (403, "Brave rejected its key"),
        (402, "Brave received too many requests, or its paid quota is used up"),
        (429, "Brave received too many requests"),
        (500, "Brave answered with status 500"),
    ],
)
async def test_where_an_engine_fails_the_free_one_is_asked(
    searching: Searching, site: LocalSite, status: int, says: str
) -> None:
    site.page(PATHS["brave"], f"no, {KEY}", status)
    done = await searching.done(WebSearchConfig("brave"))
    text = text_of(done)
    assert done.status == "ok" and says in text and "These are DuckDuckGo's results instead" in text
    assert "First & foremost" in text and KEY not in text
    alone = await searching.done(WebSearchConfig("brave", fallback=False))
    assert alone.status == "error" and says in text_of(alone) and "DuckDuckGo" not in text_of(alone)


@pytest.mark.parametrize("key", ["", "  ", "kéy", "a\r\nHost: b"])
async def test_without_a_key_nothing_is_asked(hands: Hands, site: LocalSite, key: str) -> None:
    searching = Searching(hands, site, key)
    done = await searching.done(WebSearchConfig("tavily"))
    assert "Tavily needs a key: set TAVILY_API_KEY." in text_of(done) and done.status == "ok"
    assert [seen.target for seen in site.requests] == [PATHS["duckduckgo"]]


async def test_a_variable_of_another_name_holds_the_key(
    searching: Searching, site: LocalSite
) -> None:
    searching.keys = {"MY_KEY": KEY}
    await searching.done(WebSearchConfig("exa", key_env="MY_KEY"))
    assert site.requests[0].headers["x-api-key"] == KEY


async def test_an_engine_of_ones_own_may_stand_on_this_machine(hands: Hands) -> None:
    async with LocalSite(PRIVATE, "localhost") as own:
        serve_engines(own, RESULTS)
        searching = Searching(hands, own)
        searching.net = Net()
        done = await searching.done(
            WebSearchConfig("searxng", url=own.url("/searx/"), fallback=False)
        )
        assert "3 results of SearXNG]" in text_of(done)
        searching.bases["brave"] = own.url(PATHS["brave"])
        refused = await searching.done(WebSearchConfig("brave", fallback=False))
        assert "only the public web" in text_of(refused), "that holds for no other engine"
        own.page(PATHS["searxng"], "no", 403)
        hint = await searching.done(
            WebSearchConfig("searxng", url=own.url("/searx"), fallback=False)
        )
        assert "add `json` to `search.formats`" in text_of(hint)
    nowhere = await searching.done(WebSearchConfig("searxng", fallback=False))
    assert "set web_search.url" not in text_of(nowhere), "the tests have one"


async def test_a_robot_is_told_so(searching: Searching, site: LocalSite) -> None:
    for body, status in (
        ("<div class='anomaly-modal'>", 200),
        ("", 202),
        ('<form id="challenge-form">', 200),
        ("", 403),
    ):
        site.page(PATHS["duckduckgo"], body, status)
        done = await searching.done(WebSearchConfig())
        assert done.status == "error" and "takes Deskhand for a robot" in text_of(done)
        assert "An engine with an API key is more reliable" in text_of(done)


async def test_who_asks_for_patience_gets_it(searching: Searching, site: LocalSite) -> None:
    site.page(PATHS["duckduckgo"], "", 429, {"Retry-After": "60"})
    await searching.done(WebSearchConfig())
    assert "asked to wait" in text_of(await searching.done(WebSearchConfig()))
    assert len(site.requests) == 1


async def test_what_was_looked_for_is_not_found_by_that(searching: Searching) -> None:
    """Results count as named by others: else a model could name any address by looking for it."""
    for engine in NAMES:
        done = await searching.done(
            WebSearchConfig(engine, url=searching.bases["searxng"]), query="https://x.test/?d=1"
        )
        assert done.status == "ok" and "x.test" not in text_of(done)


async def test_nothing_found_is_an_answer(searching: Searching, site: LocalSite) -> None:
    serve_engines(site, [])
    done = await searching.done(WebSearchConfig())
    assert (
        done.status == "ok"
        and "0 results of DuckDuckGo" in text_of(done)
        and "fewer or other words" in text_of(done)
    )


async def test_as_many_as_were_asked_for(searching: Searching) -> None:
    assert "[web_search: 1 results" in text_of(
        await searching.done(WebSearchConfig(), max_results=1)
    )
    assert "[web_search: 3 results" in text_of(
        await searching.done(WebSearchConfig(), max_results=10**9)
    )
    for query in ("", "  ", "x" * 401):
        with pytest.raises(ToolError, match="a search has 1 to 400 characters"):
            await searching.done(WebSearchConfig(), query=query)


@given(
    st.sampled_from(NAMES),
    st.one_of(st.binary(max_size=300), st.text(max_size=300).map(str.encode)),
)
def test_whatever_an_engine_answers_is_read_or_explained(name: EngineName, body: bytes) -> None:
    try:
        hits = read_hits(ENGINES[name], Fetched(parse_url("https://x.test"), 200, {}, body), 10)
    except NetError as error:
        assert str(error).endswith(".")
    else:
        assert all(parse_url(hit.url) and "\n" not in hit.title + hit.snippet for hit in hits)


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["web", "results", "title", "url", "content", "description", "x"]),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from([name for name in NAMES if name != "duckduckgo"]), JSONISH)
def test_json_of_any_shape_breaks_nothing(name: EngineName, value: Any) -> None:
    assert isinstance(
        read_hits(
            ENGINES[name],
            Fetched(parse_url("https://x.test"), 200, {}, msgspec.json.encode(value)),
            10,
        ),
        list,
    )


def test_the_addresses_of_engines_are_their_own() -> None:
    """A key is only ever sent to one of these; who changes them sees this."""
    assert {name: engine.base for name, engine in ENGINES.items() if engine.key_env} == {
        "brave": "https://api.search.brave.com/res/v1/web/search",
        "tavily": "https://api.tavily.com/search",
        "exa": "https://api.exa.ai/search",
    }
    source = (Path(__file__).parents[2] / "src" / "deskhand" / "assembly" / "tools.py").read_text()
    assert "web_search_tool(" in source and "bases" not in source
