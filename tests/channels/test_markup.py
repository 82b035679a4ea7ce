"""Formatted text in the forms of platforms: what it says stays, and nothing it says is a mark."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.channels.discord.markdown import write_markdown
from deskhand.channels.markup import break_addresses, write_html, write_plain
from deskhand.channels.rich_text import Rich, Span, defang_links, iter_runs, render_markdown
from deskhand.channels.slack.translate import make_blocks
from deskhand.types.addresses import find_live_spans

from .stages import live_discord, live_html, live_plain, read_discord, read_html

MARKDOWN = "Some **bold *both*** and `code`, [a link](https://a.test/x), ~~gone~~.\n\n> quoted"
PIECES = ["https://evil.test/?d=1", "evil.test", *"`[)<> \n\\a", "**", "]("]
TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80)
SPECIAL = st.text(alphabet="ab \n*_~`|<>[]()#+-\\&\"'!@:/.", max_size=60)


def test_discord() -> None:
    assert write_markdown(render_markdown(MARKDOWN)) == (
        "Some **bold *both*** and `code`, [a link](<https://a.test/x>), ~~gone~~.\n\n> quoted"
    )


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("# no heading", "\\# no heading"),
        ("- no list", "\\- no list"),
        ("a_b_c and 2 * 3 * 4", "a\\_b\\_c and 2 \\* 3 \\* 4"),
        ("<@123> <#4>", "\\<@123\\> \\<#4\\>"),
        ("https://a.test/a_b_c", "https://a.test/a_b_c"),
        ("||spoiler||", "\\|\\|spoiler\\|\\|"),
    ],
)
def test_what_is_no_mark_is_escaped_on_discord(said: str, written: str) -> None:
    assert write_markdown(Rich(said)) == written


def test_code_with_backticks_stays_code_on_discord() -> None:
    text = "a `b` c"
    assert write_markdown(Rich(text, (Span("code", 0, len(text)),))) == "``a `b` c``"
    assert write_markdown(Rich("`", (Span("code", 0, 1),))) == "`` ` ``"
    block = Rich("x\n```\ny", (Span("pre", 0, 7, "py"),))
    assert write_markdown(block) == "```py\nx\n``\u200b`\ny\n```"


def test_html_and_plain() -> None:
    rich = render_markdown(MARKDOWN)
    assert write_html(rich) == (
        "Some <strong>bold </strong><em><strong>both</strong></em> and <code>code</code>, "
        '<a href="https://a.test/x" rel="noreferrer">a link</a>, <del>gone</del>.'
        "<blockquote>quoted</blockquote>"
    )
    assert write_plain(rich) == (
        "Some bold both and code, a link (https://a.test/x), gone.\n\nquoted"
    )


def test_slack() -> None:
    (block,) = make_blocks(render_markdown("See https://a.test and `b`\n\n```\ncode\n```"))
    section, pre = block["elements"]
    assert section["elements"] == [
        {"type": "text", "text": "See "},
        {"type": "link", "url": "https://a.test"},
        {"type": "text", "text": " and "},
        {"type": "text", "text": "b", "style": {"code": True}},
        {"type": "text", "text": "\n\n"},
    ]
    assert pre["type"] == "rich_text_preformatted"
    assert pre["elements"] == [{"type": "text", "text": "code"}]


def elements(rich: Rich) -> list[dict[str, Any]]:
    """All that stands in a message on Slack, in order."""
    parts = [part for block in make_blocks(rich) for part in block["elements"]]
    return [each for part in parts for each in part["elements"]]


@given(SPECIAL)
def test_what_is_said_is_what_is_read(said: str) -> None:
    """Nothing in a text is taken for a mark, on any platform."""
    rich = Rich(said)
    assert read_discord(write_markdown(rich)) == said
    assert read_html(write_html(rich)) == said.strip()
    assert write_plain(rich) == said
    shown = [
        each
        for block in make_blocks(rich)
        for part in block["elements"]
        for each in part["elements"]
    ]
    assert "".join(each.get("text", each.get("url", "")) for each in shown) == said


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_what_is_not_allowed_leads_nowhere(pieces: list[str]) -> None:
    rich = defang_links(render_markdown("".join(pieces)), ())
    assert "evil.test" not in live_discord(write_markdown(rich))
    assert "evil.test" not in live_html(write_html(rich))
    assert "evil.test" not in live_plain(write_plain(rich))
    assert [each for each in elements(rich) if each["type"] == "link"] == []


@given(TEXT)
def test_a_broken_address_is_none(text: str) -> None:
    broken = break_addresses(f"{text} https://evil.test/{text} someone@evil.test")
    assert "evil.test" not in broken
    live = [broken[start:end] for start, end in find_live_spans(broken)]
    assert not [each for each in live if "evil" in each and "test" in each]


@given(TEXT, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=5))
def test_runs_are_the_text_in_order(text: str, places: list[tuple[int, int]]) -> None:
    spans = tuple(Span("bold", min(each), max(each)) for each in places)
    runs = "".join(run for run, _ in iter_runs(Rich(text, spans)))
    assert runs.encode("utf-16", "surrogatepass") == text.encode("utf-16")
