"""Words are shown while the JSON around them is still being written."""

from __future__ import annotations

import json

import pytest

from deskhand.models.speech import Speech


@pytest.mark.parametrize(
    "text", ["Hello.", "", 'say "hi"\n\ttab', "Grüße 👋🏽 — 日本語", "back\\slash \\u0041", "a\0b"]
)
@pytest.mark.parametrize("escaped", [True, False])
def test_any_cut_gives_the_same_words(text: str, escaped: bool) -> None:
    written = json.dumps({"tool": "reply", "arguments": {"text": text}}, ensure_ascii=escaped)
    for size in (1, 2, 3, 7, len(written)):
        speech = Speech()
        pieces = [speech.feed(written[at : at + size]) for at in range(0, len(written), size)]
        assert "".join(pieces) == speech.said == text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def test_other_moves_say_nothing() -> None:
    speech = Speech()
    assert speech.feed('{"tool": "shell", "arguments": {"command": "echo \\"text\\""}}') == ""
