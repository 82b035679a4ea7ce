"""What Deskhand says in a chat, in another language."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from deskhand.languages.sentences import say_notice


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Stopped.", "Gestoppt."),
        ("Nothing is running.\nStopped.", "Es läuft nichts.\nGestoppt."),
        ("  • Stopped.", "  • Gestoppt."),
        (
            "Deep work is off. The tasks stay as they are.",
            "Gründliche Arbeit ist aus. Die Aufgaben bleiben, wie sie sind.",
        ),
        ("They take about 12,345 tokens.", "Das sind etwa 12.345 Tokens."),
        ("once, at 2027-01-31 17:00 UTC", "einmal, am 31.01.2027, 17:00 UTC"),
        ("Not done: it failed repeatedly.", "Nicht gemacht: es ist mehrmals fehlgeschlagen."),
        (
            "at 08:00 and 18:00 on Monday through Friday (UTC)",
            "Montag bis Freitag um 08:00 und 18:00 (UTC)",
        ),
        ("Reading `a b.md` and 2 more things", "Liest `a b.md` und 2 weitere Sachen"),
        (
            "I do not know /foo. Did you mean /stop? /help lists what I know.",
            "/foo kenne ich nicht. Meintest du /stop? /help zeigt, was ich kenne.",
        ),
        (
            "because shell would run commands on this machine, and no rule allows it",
            "Grund: shell würde Befehle auf diesem Rechner ausführen, und keine Regel erlaubt es",
        ),
        ("It may be executed.", "Es darf ausgeführt werden."),
    ],
)
def test_what_is_known(written: str, said: str) -> None:
    assert say_notice(written, "de") == said
    assert say_notice(written, "de-AT") == said
    for language in ("", "en", "en-GB", "xx", "../de"):
        assert say_notice(written, language) == written


@pytest.mark.parametrize(
    "written",
    [
        "",
        "\n",
        "Rex is a dog.",
        "I stopped smoking. Stopped",
        "{name}",
        "a; b",
        "For a b.",
        "•",
        "ann: Stopped.",
    ],
)
def test_what_is_not_known_stays(written: str) -> None:
    assert say_notice(written, "de") == written


def test_what_is_filled_in_stays() -> None:
    title = "Stopped. {title} No"
    said = say_notice(f"This conversation is called “{title}”.", "de")
    assert said == f"Dieses Gespräch heißt „{title}“."


def count_calls(text: str) -> int:
    """Python calls and calls of built-in functions that saying this takes."""
    counted = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        say_notice(text, "de")
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("piece", ["Asked because ", "Stopped. ", "a; ", "Only ", "a\n"])
def test_a_long_text_takes_no_more_than_its_length(piece: str) -> None:
    say_notice(piece, "de")
    assert count_calls(piece * 2000) < 11 * count_calls(piece * 200)
