"""What a person corrects of the turn before."""

from __future__ import annotations

import pytest

from deskhand.models.shim_correcting import make_correction_program
from deskhand.models.shim_turn import ShimTurn

BIKE = ("assistant", "I will remember: My bike is in rack 7 at the station.")
TOMATOES = ("assistant", "I will tell you every day at 8:00: Water the tomatoes.")
CHOIR = ("assistant", "I will tell you every Wednesday at 18:00: Choir.")
DENTIST = ("assistant", "I will remind you tomorrow, Monday 23 November, 9:00: Call the dentist.")


@pytest.mark.parametrize(
    ("said", "request_", "program"),
    [
        (
            [BIKE],
            "sorry, I mixed that up, it's rack 9",
            (
                "forget('My bike is in rack 7 at the station.')\nremember('My bike is in rack 9 "
                "at the station.')"
            ),
        ),
        ([BIKE], "thanks, that is all for platform 3", ""),
        ([BIKE], "no, I meant locker 3", ""),
        ([BIKE], "sorry, change rack 7 to rack 9 in list.txt", ""),
        (
            [CHOIR, TOMATOES],
            "it gets hot so early, make the tomatoes 7:15 instead",
            "cancel('Water the tomatoes.')\nevery('day at 7:15', 'Water the tomatoes.')",
        ),
        ([CHOIR, TOMATOES], "make it 7:15 instead", ""),
        (
            [DENTIST],
            "Oh, better at 10",
            (
                "cancel('Call the dentist.')\nremind('tomorrow, Monday 23 November at 10', "
                "'Call the dentist.')"
            ),
        ),
        ([DENTIST], "make a list of 3 dentists", ""),
        ([DENTIST], "what is better at 10?", ""),
        ([("assistant", "Made n.txt with 1 line.")], "make it 7:15 instead", ""),
        (
            [TOMATOES, ("assistant", "I will tell you every day at 7:00: Water the tomatoes.")],
            "change the tomatoes to 6:30",
            "cancel('Water the tomatoes.')\nevery('day at 6:30', 'Water the tomatoes.')",
        ),
    ],
)
def test_what_was_said_just_before_is_put_right(
    said: list[tuple[str, str]], request_: str, program: str
) -> None:
    assert make_correction_program(ShimTurn(request_, 9, earlier=tuple(said))) == program
