"""The buttons below a message, and what a press of one means. All of it pure.

What a button sends is one word that says what it is about, a space, and what was chosen: the id of
an ask, which nobody can guess, and an answer; or a turn and a chat command. Whoever forges the
second has typed the command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import get_args

import msgspec

from ..languages.sentences import say_notice
from ..types.commit import ActionName, Actions, Choices, Outgoing
from ..types.identity import Answer, Command
from ..types.marked_texts import mark_text
from .pieces import Piece, find_button_label, has_buttons

_TURN_PREFIX = "turn_"
_ASK_PREFIX = "ask_"
_ACTION_LABELS: dict[ActionName, str] = {
    "stop": mark_text("Stop"),
    "retry": mark_text("Try again"),
    "undo": mark_text("Undo changes"),
    "document": mark_text("As a document"),
}


class Button(msgspec.Struct, frozen=True):
    """`about` and `choice` are what it sends, as one text `data`. `answer` is the choice of an
    approval, for platforms that colour such buttons."""

    about: str
    choice: str
    label: str
    answer: str = ""

    @property
    def data(self) -> str:
        return f"{self.about} {self.choice}"


def list_buttons(outgoing: Outgoing, piece: Piece) -> list[Button]:
    """The buttons below this piece of it, in order."""
    ask = outgoing.ask if piece.asks else None
    if ask is not None and has_buttons(ask):
        return [_make_answer_button(ask, choice, outgoing.language) for choice in ask.choices]
    if outgoing.actions is None:
        return []
    shown = Actions(outgoing.actions.turn, piece.actions)
    return list_action_buttons(shown, outgoing.language)


def list_action_buttons(actions: Actions | None, language: str = "") -> list[Button]:
    """The buttons of these commands about a turn, in order, in this language."""
    if actions is None:
        return []
    about = f"{_TURN_PREFIX}{actions.turn}"
    return [
        Button(about, name, say_notice(_ACTION_LABELS[name], language)) for name in actions.names
    ]


def encode_buttons(
    buttons: Sequence[Button], is_too_long: Callable[[str], bool]
) -> list[tuple[Button, str]]:
    """Each button with what it sends. A choice that is too long for that is read off the button as
    it is pressed: it sends `#` and its number, and so does a choice that looks like one."""
    found = []
    for i, button in enumerate(buttons):
        is_numbered = button.choice.startswith("#") or is_too_long(button.data)
        found.append((button, f"{button.about} #{i}" if is_numbered else button.data))
    return found


def _make_answer_button(ask: Choices, choice: str, language: str) -> Button:
    answer = choice if ask.approval else ""
    return Button(ask.ask_id, choice, find_button_label(ask, choice, language), answer)


def read_press(about: str, choice: str) -> Answer | Command | None:
    """What the person who pressed a button with these wants; None where it is none of ours."""
    if about.startswith(_ASK_PREFIX) and choice:
        return Answer(about, choice)
    turn = about.removeprefix(_TURN_PREFIX)
    is_turn = turn != about and turn.isascii() and turn.isdecimal() and len(turn) < 19
    if is_turn and int(turn) and choice in get_args(ActionName):
        return Command(choice, turn=int(turn))
    return None
