"""What a person reads before they say yes: why, for whom, where, and what it does."""

from __future__ import annotations

from typing import get_args

from msgspec.structs import replace

from deskhand.policy.ask_text import EFFECT_SENTENCES, render_ask_context
from deskhand.policy.rules import Case
from deskhand.types.effects import Effect
from deskhand.types.identity import Principal
from deskhand.types.labels import Label

from .deciding import decide

PAGE = Label("untrusted", source="https://evil.test/page")


def test_it_says_who_where_why_and_what() -> None:
    case = Case(
        "main", "send_message", "send_other", Principal("clock", ("owner",), "clock", "ann"), PAGE
    )
    case = replace(case, channel="telegram", group=True)
    assert render_ask_context([case], decide((), case).reason) == (
        "Asked because it acts outside the workspace, and this conversation has read "
        "https://evil.test/page.\nFor clock, for ann on telegram in a group. It sends something "
        "to others, and this cannot be undone."
    )


def test_every_effect_is_told() -> None:
    assert set(EFFECT_SENTENCES) == set(get_args(Effect))
    undone = {effect for effect, words in EFFECT_SENTENCES.items() if "/undo reverses it" in words}
    assert undone == {"local_write"}
