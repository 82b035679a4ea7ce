"""The language of pages that have no scripts: that of the browser."""

from __future__ import annotations

import pytest

from deskhand.languages.catalogue import ENGLISH, Language, choose_language


@pytest.mark.parametrize(
    ("accepted", "code"),
    [
        ("", "en"),
        ("de", "de"),
        ("de-AT,de;q=0.9,en;q=0.8", "de"),
        ("DE-ch", "de"),
        ("en-GB,de;q=0.9", "en"),
        ("de;q=0.5, en;q=0.9", "en"),
        ("xx,de;q=0.1", "de"),
        ("de;q=0", "en"),
        ("de;q=much", "en"),
        ("*", "en"),
        ("../../de", "en"),
        (";,;q=;" * 200, "en"),
    ],
)
def test_the_first_that_there_is(accepted: str, code: str) -> None:
    assert choose_language(accepted).code == code


def test_what_it_says() -> None:
    german = choose_language("de")
    assert german.say("This link does not work any more") == "Dieser Link funktioniert nicht mehr"
    assert german.say("anything else") == "anything else"
    assert ENGLISH.say("This link does not work any more") == "This link does not work any more"
    unfinished = Language(
        "da", "Dansk", texts={"a": "", "{count} files": {"other": "{count} filer"}}
    )
    assert [unfinished.say(text) for text in ("a", "b")] == ["a", "b"]
