"""Arguments and texts as models really write them."""

from __future__ import annotations

import itertools

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from deskhand.models.decode import TextCleaner, make_calls, normalize_arguments
from deskhand.types.messages import clean_text

from .tools import ask, assistant, called, user

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from([b"", b" ", b"\n"]))
def test_json_is_kept_to_the_byte(value: object, space: bytes) -> None:
    written = msgspec.json.format(msgspec.json.encode(value), indent=2)
    assert bytes(normalize_arguments(space + written + space)) == written
    assert bytes(normalize_arguments(written.decode())) == written


@given(st.text() | st.binary())
def test_anything_else_becomes_a_json_string(written: str | bytes) -> None:
    kept = bytes(normalize_arguments(written))
    found = msgspec.json.decode(kept)
    given_bytes = written if isinstance(written, bytes) else written.encode("utf-8", "replace")
    if not given_bytes.strip():
        assert kept == b"{}"
    elif kept != given_bytes.strip():
        assert isinstance(found, str)


def test_nesting_that_would_break_a_decoder_is_text() -> None:
    assert isinstance(
        msgspec.json.decode(bytes(normalize_arguments("[" * 100_000 + "]" * 100_000))), str
    )


@given(st.text(st.characters(), max_size=40), st.lists(st.integers(0, 80)))
def test_text_is_clean_however_it_is_cut(text: str, cuts: list[int]) -> None:
    units = [
        chr(int.from_bytes(pair, "little"))
        for raw in [text.encode("utf-16-le", "surrogatepass")]
        for pair in (raw[n : n + 2] for n in range(0, len(raw), 2))
    ]
    places = [0, *sorted(min(cut, len(units)) for cut in cuts), len(units)]
    cleaner = TextCleaner()
    pieces = [cleaner.feed("".join(units[a:b])) for a, b in itertools.pairwise(places)]
    found = "".join(pieces) + cleaner.close()
    assert all(clean_text(piece) == piece for piece in pieces)
    assert found == clean_text(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))


def test_ids_are_made_where_they_are_missing_or_taken() -> None:
    raw = msgspec.Raw(b"{}")
    talk = ask(user("Go."), *([assistant("no")] * 5), assistant(called("old"), called("call_7_0")))
    made = [("", "a", raw), ("x", "b", raw), ("x", "c", raw), ("old", "d", raw)]
    for _ in range(2):  # the second time from memory
        assert [call.id for call in make_calls(made, talk)] == [
            "call_7_0_",
            "x",
            "call_7_2",
            "call_7_3",
        ]
    other = msgspec.structs.replace(talk, messages=talk.messages[:1])
    assert [call.id for call in make_calls(made, other)][3] == "old", "another conversation"
