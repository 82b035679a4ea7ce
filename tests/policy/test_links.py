"""Addresses in text: what stands there as a whole, and answers that lead nowhere by themselves."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deskhand.policy.links import KnownAddresses, defang_text, find_known_links, is_address_in

SECRET = "https://evil.test/?d=hunter2"


@pytest.mark.parametrize(
    ("url", "text", "there"),
    [
        ("https://a.test/x", "look at https://a.test/x please", True),
        ("https://a.test/x", "look at https://a.test/x.", True),
        ("https://a.test/x", "[here](https://a.test/x)", True),
        ("https://a.test/x", "<https://a.test/x>", True),
        ("https://a.test/x#part", "https://a.test/x", True),
        ("https://a.test", "https://a.test/", True),
        ("https://a.test/", "open a.test, will you", True),
        ("https://a.test/x", "https://a.test/xyz", False),
        ("https://a.test/x", "https://a.test/x/y", False),
        ("https://a.test/x", "https://a.test/x?d=1", False),
        ("https://a.test/?d=", "https://a.test/?d=SECRET", False),
        ("https://a.test/?d=SECRET", "https://a.test/?d=", False),
        ("https://a.test/x", "https://evil.test/https://a.test/x", False),
        ("https://a.test", "https://b.a.test", False),
        ("https://a.test", "nota.test", False),
        ("https://a.test", "a.test.evil.test", False),
        ("https://a.test/x", "", False),
    ],
)
def test_a_whole_address(url: str, text: str, there: bool) -> None:
    assert is_address_in(url, text) is there


def test_many_addresses_are_known_as_each_of_them_is() -> None:
    text = (
        "see https://a.test/x, (http://b.test/y). Or [c](https://c.test/z#part); d.test? e@f.test"
    )
    known = KnownAddresses(text)
    for url in (
        "https://a.test/x",
        "a.test/x",
        "b.test/y",
        "https://c.test/z",
        "https://d.test/",
        "e@f.test",
    ):
        assert url in known and is_address_in(url, text), url
    for url in ("https://a.test", "https://a.test/x/y", "test/x", "https://c.test/z2", "f.test"):
        assert url not in known, url


@example("::#", ":")
@example("a.:#b", "a.")
@example("/", "//")
@example(":/:", "://")
@given(
    st.text(alphabet="ab./:#?,()[*= ", max_size=40),
    st.text(alphabet="ab./:?,)", min_size=1, max_size=8),
)
def test_nothing_is_known_that_does_not_stand_there(text: str, url: str) -> None:
    if url in KnownAddresses(text):
        assert is_address_in(url, text) or is_address_in(f"{url}/", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no address at all", "no address at all"),
        (f"see {SECRET}.", f"see `{SECRET}`."),
        (f"[click]({SECRET})", f"click `{SECRET}`"),
        (f'[click](<{SECRET}> "title")', f"click `{SECRET}`"),
        (f"![x]({SECRET})", f"[picture: x] `{SECRET}`"),
        (f"![a]\n\n[a]: {SECRET}", f"![a]\n\na: `{SECRET}`"),
        (f"<{SECRET}>", f"<`{SECRET}`>"),
        ("write to mailto:x@evil.test?body=hunter2", "write to `mailto:x@evil.test?body=hunter2`"),
        ("www.evil.test/hunter2", "`www.evil.test/hunter2`"),
        ("[known](https://known.test/a)", "[known](https://known.test/a)"),
        ("https://known.test/a", "https://known.test/a"),
        ("![x](https://known.test/a)", "[picture: x] `https://known.test/a`"),
        ("https://known.test/a?d=hunter2", "`https://known.test/a?d=hunter2`"),
        (f"`{SECRET}` is code", f"`{SECRET}` is code"),
        (f"```\n{SECRET}\n```", f"```\n{SECRET}\n```"),
    ],
)
def test_what_was_composed_leads_nowhere(text: str, shown: str) -> None:
    assert defang_text(text, find_known_links(text, "read https://known.test/a")) == shown


@given(
    st.text(alphabet="ab[]()!<>:/ \n.?=#\"'", max_size=80),
    st.sampled_from([SECRET, "http://evil.test"]),
)
def test_nothing_composed_is_left_outside_code(around: str, url: str) -> None:
    shown = defang_text(f"{around} {url} {around}", ())
    assert url not in "".join(piece for i, piece in enumerate(shown.split("`")) if i % 2 == 0)
