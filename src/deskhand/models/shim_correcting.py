"""What a person corrects of the turn before: a fact that was to be remembered, the time of a
reminder. Pure."""

from __future__ import annotations

import re

from .shim_request import FILE_NAME
from .shim_turn import ShimTurn


def make_correction_program(turn: ShimTurn) -> str:
    """The program that puts right what was said to be remembered, or when something will be said;
    '' for a request that corrects nothing."""
    request = " ".join(turn.request.split())
    if len(request) > MAX_REQUEST_CHARS or FILE_NAME.search(request) or request.endswith("?"):
        return ""
    told = [
        line
        for role, text in reversed(turn.earlier[-EARLIER_MESSAGES:])
        if role == "assistant"
        for line in text.split("\n")
    ]
    return _correct_fact(request, told) or _correct_time(request, told)


MAX_REQUEST_CHARS = 160
EARLIER_MESSAGES = 6


def _correct_fact(request: str, told: list[str]) -> str:
    facts = [
        line.removeprefix(REMEMBERED_PREFIX) for line in told if line.startswith(REMEMBERED_PREFIX)
    ]
    if not _MISTAKEN.search(request):
        return ""
    for fact in facts:
        for word, value in re.findall(
            r"\b([a-z]\w+) ([\w.:-]*\d[\w.:-]*\w|\d)\b", request, re.IGNORECASE
        ):
            new, times = re.subn(
                rf"\b({word}) [\w.:-]*\d[\w.:-]*\b", rf"\1 {value}", fact, flags=re.IGNORECASE
            )
            if times == 1 and new != fact:
                return f"forget({fact!r})\nremember({new!r})"
    return ""


def _correct_time(request: str, told: list[str]) -> str:
    times = _TIME.findall(request)
    words = set(re.findall(r"[a-z]{3,}", request.lower()))
    said = list(
        {
            found[3]: found for line in reversed(told) if (found := _WILL_TELL.fullmatch(line))
        }.values()
    )
    if len(times) != 1 or not _MOVED.search(request) or not said:
        return ""
    meant = [found for found in said if words & set(re.findall(r"[a-z]{3,}", found[3].lower()))]
    one = meant if meant or len(said) > 1 else said
    if len(one) != 1:
        return ""
    again = one[0][1] == "tell"
    when = one[0][2]
    what = one[0][3]
    when, changed = _TIME_SAID.subn(f" at {times[0]}", when)
    if changed != 1:
        return ""
    name = "every" if again else "remind"
    return f"cancel({what!r})\n{name}({when.removeprefix('every ') if again else when!r}, {what!r})"


REMEMBERED_PREFIX = "I will remember: "
_WILL_TELL = re.compile(r"I will (tell|remind) you (.+?\d:\d\d): (.+)")
_MISTAKEN = re.compile(
    (
        r"\b(sorry|mixed|mistake|wrong|no,|actually|i meant|i mean|correct|correction|not \w+ "
        r"\d|oops|rather)"
    ),
    re.IGNORECASE,
)
_MOVED = re.compile(
    r"\b(make|move|change|shift|set|push|instead|rather|better|later|earlier|actually)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b\d{1,2}:\d\d(?:\s?[ap]m)?\b|\b\d{1,2}\s?(?:am|pm|o'clock)\b"
    r"|(?:(?<=\bat )|(?<=\bto )|(?<=\bby ))\d{1,2}\b(?! \w+s\b)",
    re.IGNORECASE,
)
_TIME_SAID = re.compile(r"(?:, | at )\d{1,2}:\d\d\b")
