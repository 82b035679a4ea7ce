"""Marks and control tokens in an answer, however the stream is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskhand.models.answer_cleaner import Echoes

CASES = [
    ("Hello", "Hello"),
    ("[msg_id:12] Hello", "Hello"),
    ("[bot_msg_id:12] Hello", "Hello"),
    ("\n [bot_msg_id:12 reactions:👍(2)]\n\nHello", "Hello"),
    ("[msg_id:1][bot_msg_id:2] [msg_id:3] Hello", "Hello"),
    ("[msg_id:1700.22-a]Hello", "Hello"),
    ("Hello [msg_id:12] there", "Hello [msg_id:12] there"),
    ("[msg_id:] Hello", "[msg_id:] Hello"),
    ("[msg_id: never closed\nHello]", "[msg_id: never closed\nHello]"),
    ("[msg_id:" + "x" * 200 + "] Hello", "[msg_id:" + "x" * 200 + "] Hello"),
    ("[msg_idea] Hello", "[msg_idea] Hello"),
    ("[bot] Hello", "[bot] Hello"),
    ("[", "["),
    ("[msg_id:1", "[msg_id:1"),
    ("[msg_id:1]", ""),
    (" " * 300 + "[msg_id:1] Hello", " " * 300 + "[msg_id:1] Hello"),
    ("[msg_id:1]" + " " * 150 + "Hello", " " * 50 + "Hello"),
    (" \n Hello", " \n Hello"),
    (" ", " "),
    ("<ctrl46>Hello<ctrl1> there<ctrl999>", "Hello there"),
    ("<ctrl3>[msg_id:4] <ctrl5>Hello", "Hello"),
    ("[msg<ctrl3>_id:4] Hello", "Hello"),
    ("a <ctrl> b <ctrl1234> c <ctrlx> d <ct", "a <ctrl> b <ctrl1234> c <ctrlx> d <ct"),
    ("<ct<ctrl1>rl2>", "<ctrl2>"),
    ("x < y <<ctrl1>", "x < y <"),
    ("<ctrl12", "<ctrl12"),
    ("", ""),
]


def through(pieces: list[str]) -> str:
    echoes = Echoes()
    return "".join([*(echoes.feed(piece) for piece in pieces), echoes.close()])


@pytest.mark.parametrize(("whole", "text"), CASES)
@given(data=st.data())
def test_any_cut_gives_the_same(whole: str, text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert through(pieces) == text
    assert through(list(whole)) == text


PARTS = [
    "[",
    "msg_id:",
    "bot_",
    "7",
    "]",
    " ",
    "\n",
    "<",
    "ctrl",
    "1",
    ">",
    "x",
    "<ctrl2>",
    "[msg_id:3]",
]


@given(parts=st.lists(st.sampled_from(PARTS), max_size=12))
def test_one_piece_or_many(parts: list[str]) -> None:
    assert through(parts) == through(["".join(parts)]) == through(list("".join(parts)))


def test_what_is_certain_is_not_held_back() -> None:
    echoes = Echoes()
    assert [echoes.feed(piece) for piece in ("Hel", "lo <", "b> and")] == ["Hel", "lo ", "<b> and"]


def test_little_is_held_back() -> None:
    assert Echoes().feed(" " * 300) == " " * 300
    assert Echoes().feed("[msg_id:" + "x" * 300) != ""
